/*-------------------------------------------------------------------------
 *
 * tidrange_fdw.c
 *	  Front door of the extension: settings, the handler and its callbacks.
 *
 * The callbacks only forward, each to the room that does the work: plan.c,
 * scan.c, parallel.c, explain.c, import.c.  doc/ARCHITECTURE.md has the map.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "analyze.h"
#include "compat.h"
#include "codec.h"
#include "connection.h"
#include "explain.h"
#include "foreign/fdwapi.h"
#include "import.h"
#include "insert.h"
#include "insert_batch.h"
#include "insert_select.h"
#include "parallel.h"
#include "plan.h"
#include "scan.h"
#include "utils/guc.h"

PG_MODULE_MAGIC;

TIDRANGE_FUNCTION(tidrange_fdw_handler);

extern PGDLLEXPORT void _PG_init(void);

/*
 * Module load.
 */
void
_PG_init(void)
{
	DefineCustomBoolVariable("tidrange_fdw.log_remote_sql",
							 "Writes every command sent to a remote server to the log.",
							 "The number in parentheses is the remote process.",
							 &connection_log_sql, false, PGC_SUSET, 0,
							 NULL, NULL, NULL);
	DefineCustomBoolVariable("tidrange_fdw.force_text",
							 "Transfers every column as text.",
							 "For tests: results must be the same.",
							 &codec_force_text, false, PGC_USERSET,
							 GUC_NOT_IN_SAMPLE, NULL, NULL, NULL);
	DefineCustomBoolVariable("tidrange_fdw.parallel_insert",
							 "Lets INSERT ... SELECT read foreign tables in parallel where that is safe.",
							 NULL,
							 &insert_select_enabled, true, PGC_USERSET, 0,
							 NULL, NULL, NULL);
	DefineCustomBoolVariable("tidrange_fdw.batch_insert",
							 "Lets INSERT ... SELECT from foreign tables write its rows in batches where nobody can see a difference.",
							 NULL,
							 &insert_batch_enabled, true, PGC_USERSET, 0,
							 NULL, NULL, NULL);
	DefineCustomIntVariable("tidrange_fdw.connection_patience",
							"Waits that long for a remote server before another connection is opened.",
							"0 opens one whenever there is a wait.",
							&scan_connection_patience, 50, 0, 60000,
							PGC_USERSET, GUC_UNIT_MS, NULL, NULL, NULL);
	DefineCustomStringVariable("tidrange_fdw.insert_crash_point",
							   "Kills a process of a parallel insert when it comes to this point.",
							   "For tests: a server crash must leave all rows or none.",
							   &insert_crash_point, "", PGC_SUSET,
							   GUC_NOT_IN_SAMPLE, NULL, NULL, NULL);
	MarkGUCPrefixReserved("tidrange_fdw");
	insert_batch_init();
}

static void
tidrangeGetForeignRelSize(PlannerInfo *root, RelOptInfo *rel, Oid relid)
{
	plan_rel_size(root, rel, relid);
}

static void
tidrangeGetForeignPaths(PlannerInfo *root, RelOptInfo *rel, Oid relid)
{
	plan_paths(root, rel, relid);
}

static ForeignScan *
tidrangeGetForeignPlan(PlannerInfo *root, RelOptInfo *rel, Oid relid,
					   ForeignPath *path, List *tlist, List *scan_clauses,
					   Plan *outer_plan)
{
	return plan_scan(root, rel, relid, path, tlist, scan_clauses, outer_plan);
}

/*
 * Workers share the leader's snapshot, which is what makes the scan safe; they
 * must be able to decode the rows as well.
 */
static bool
tidrangeIsForeignScanParallelSafe(PlannerInfo *root, RelOptInfo *rel,
								  RangeTblEntry *rte)
{
	return insert_select_decodes_safely(rel, rte->relid);
}

static void
tidrangeBeginForeignScan(ForeignScanState *node, int eflags)
{
	scan_begin(node, eflags);
}

static TupleTableSlot *
tidrangeIterateForeignScan(ForeignScanState *node)
{
	return scan_next(node);
}

static void
tidrangeReScanForeignScan(ForeignScanState *node)
{
	scan_rescan(node);
}

static void
tidrangeEndForeignScan(ForeignScanState *node)
{
	scan_end(node);
}

static Size
tidrangeEstimateDSMForeignScan(ForeignScanState *node, ParallelContext *pcxt)
{
	return parallel_estimate(node, pcxt);
}

static void
tidrangeInitializeDSMForeignScan(ForeignScanState *node,
								 ParallelContext *pcxt, void *coordinate)
{
	parallel_initialize(node, pcxt, coordinate);
}

static void
tidrangeReInitializeDSMForeignScan(ForeignScanState *node,
								   ParallelContext *pcxt, void *coordinate)
{
	parallel_reinitialize(node, pcxt, coordinate);
}

static void
tidrangeInitializeWorkerForeignScan(ForeignScanState *node, shm_toc *toc,
									void *coordinate)
{
	parallel_initialize_worker(node, toc, coordinate);
}

static void
tidrangeShutdownForeignScan(ForeignScanState *node)
{
	parallel_shutdown(node);
}

static void
tidrangeExplainForeignScan(ForeignScanState *node, ExplainState *es)
{
	explain_scan(node, es);
}

static List *
tidrangeImportForeignSchema(ImportForeignSchemaStmt *stmt, Oid serverid)
{
	return import_schema(stmt, serverid);
}

static bool
tidrangeAnalyzeForeignTable(Relation relation, AcquireSampleRowsFunc *func,
							BlockNumber *totalpages)
{
	return analyze_table(relation, func, totalpages);
}

/* Are these the callbacks of this wrapper? */
bool
plan_is_our_routine(const FdwRoutine *routine)
{
	return routine != NULL &&
		routine->IterateForeignScan == tidrangeIterateForeignScan;
}

/* Is this foreign table read by this wrapper? */
bool
plan_is_ours(Oid relid)
{
	return plan_is_our_routine(GetFdwRoutineByRelId(relid));
}

/*
 * The functions of the wrapper.
 */
Datum
tidrange_fdw_handler(PG_FUNCTION_ARGS)
{
	FdwRoutine *routine = makeNode(FdwRoutine);

	routine->GetForeignRelSize = tidrangeGetForeignRelSize;
	routine->GetForeignPaths = tidrangeGetForeignPaths;
	routine->GetForeignPlan = tidrangeGetForeignPlan;
	routine->IsForeignScanParallelSafe = tidrangeIsForeignScanParallelSafe;

	routine->BeginForeignScan = tidrangeBeginForeignScan;
	routine->IterateForeignScan = tidrangeIterateForeignScan;
	routine->ReScanForeignScan = tidrangeReScanForeignScan;
	routine->EndForeignScan = tidrangeEndForeignScan;

	routine->EstimateDSMForeignScan = tidrangeEstimateDSMForeignScan;
	routine->InitializeDSMForeignScan = tidrangeInitializeDSMForeignScan;
	routine->ReInitializeDSMForeignScan = tidrangeReInitializeDSMForeignScan;
	routine->InitializeWorkerForeignScan = tidrangeInitializeWorkerForeignScan;
	routine->ShutdownForeignScan = tidrangeShutdownForeignScan;

	routine->ExplainForeignScan = tidrangeExplainForeignScan;
	routine->AnalyzeForeignTable = tidrangeAnalyzeForeignTable;
	routine->ImportForeignSchema = tidrangeImportForeignSchema;

	PG_RETURN_POINTER(routine);
}
