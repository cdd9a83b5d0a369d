/*-------------------------------------------------------------------------
 *
 * compat.h
 *	  Every difference between PostgreSQL versions that this extension meets.
 *
 * No other file may mention PG_VERSION_NUM.  A wrapper here has the shape of
 * the newest server's function, so that an old branch can be dropped by
 * deleting lines.
 *
 *-------------------------------------------------------------------------
 */
#ifndef TIDRANGE_COMPAT_H
#define TIDRANGE_COMPAT_H

#include "fmgr.h"
#include "nodes/pathnodes.h"
#include "nodes/plannodes.h"
#include "optimizer/pathnode.h"
#include "storage/latch.h"
#include "utils/memutils.h"
#include "utils/rel.h"
#include "utils/typcache.h"

/* Wait events got a header of their own in 14. */
#if PG_VERSION_NUM >= 140000
#include "utils/wait_event.h"
#else
#include "pgstat.h"
#endif

/*
 * Before 16 the server did not mark exported functions, so with
 * -fvisibility=hidden they would stay hidden.
 */
#if PG_VERSION_NUM < 160000
#undef PGDLLEXPORT
#define PGDLLEXPORT __attribute__((visibility("default")))
#endif

/* Declares one SQL-callable function, exported on every version. */
#define TIDRANGE_FUNCTION(name) \
	extern PGDLLEXPORT Datum name(PG_FUNCTION_ARGS); \
	PG_FUNCTION_INFO_V1(name)

/* ForeignPath creation: fdw_restrictinfo came in 17, disabled_nodes in 18. */
static inline ForeignPath *
compat_create_foreignscan_path(PlannerInfo *root, RelOptInfo *rel,
							   double rows, Cost startup_cost, Cost total_cost,
							   List *pathkeys, Relids required_outer,
							   List *fdw_private)
{
#if PG_VERSION_NUM >= 180000
	return create_foreignscan_path(root, rel, NULL, rows, 0,
								   startup_cost, total_cost, pathkeys,
								   required_outer, NULL, NIL, fdw_private);
#elif PG_VERSION_NUM >= 170000
	return create_foreignscan_path(root, rel, NULL, rows,
								   startup_cost, total_cost, pathkeys,
								   required_outer, NULL, NIL, fdw_private);
#else
	return create_foreignscan_path(root, rel, NULL, rows,
								   startup_cost, total_cost, pathkeys,
								   required_outer, NULL, fdw_private);
#endif
}

/* A WaitEventSet that lives until it is freed; 17 changed its owner. */
#if PG_VERSION_NUM >= 180000
#include "storage/waiteventset.h"
#endif
static inline WaitEventSet *
compat_create_wait_event_set(int nevents)
{
#if PG_VERSION_NUM >= 170000
	return CreateWaitEventSet(NULL, nevents);
#else
	return CreateWaitEventSet(TopMemoryContext, nevents);
#endif
}

/* EXPLAIN's property functions moved to a header of their own in 18. */
#if PG_VERSION_NUM >= 180000
#include "commands/explain_format.h"
#include "commands/explain_state.h"
#endif

/* ForeignScan.checkAsUser came in 16; before, the range table entry has it. */
#if PG_VERSION_NUM >= 160000
#define COMPAT_SCAN_CHECK_AS_USER(fsplan, rte)	((fsplan)->checkAsUser)
#define COMPAT_SCAN_RELIDS(fsplan)	((fsplan)->fs_base_relids)
#else
#define COMPAT_SCAN_CHECK_AS_USER(fsplan, rte)	((rte)->checkAsUser)
#define COMPAT_SCAN_RELIDS(fsplan)	((fsplan)->fs_relids)
#endif

/*
 * Is this what the rewriter leaves of a view that was the target of an INSERT?
 * Before 16 a view that is read leaves the entries OLD and NEW as well.
 */
#if PG_VERSION_NUM >= 160000
#define compat_is_target_view(rte) \
	((rte)->rtekind == RTE_RELATION && (rte)->relkind == RELKIND_VIEW)
#else
#define compat_is_target_view(rte) \
	((rte)->rtekind == RTE_RELATION && (rte)->relkind == RELKIND_VIEW && \
	 ((rte)->requiredPerms & ACL_INSERT) != 0)
#endif

/* Reserving a GUC prefix got a proper name in 15. */
#if PG_VERSION_NUM < 150000
#define MarkGUCPrefixReserved(prefix)	EmitWarningsOnPlaceholders(prefix)
#endif

/* The value nodes were one struct before 15. */
#if PG_VERSION_NUM < 150000
#define Integer Value
#define String Value
#define boolVal(v)	(intVal(v) != 0)
#define makeBoolean(b)	makeInteger((b) ? 1 : 0)
#endif

/* Reading a known number of bytes from a temporary file. */
#if PG_VERSION_NUM >= 160000
#define compat_buffile_read(file, ptr, size)	BufFileReadExact(file, ptr, size)
#else
#define compat_buffile_read(file, ptr, size) \
	do { \
		if (BufFileRead(file, ptr, size) != (size_t) (size)) \
			ereport(ERROR, \
					(errcode_for_file_access(), \
					 errmsg("could not read from temporary file"))); \
	} while (0)
#endif

/* Intervals can be infinite since 17. */
#define COMPAT_FIRST_INFINITE_INTERVAL	170000
#define COMPAT_LOCAL_VERSION			PG_VERSION_NUM

/* A random fraction for sampling; the state became a struct in 15. */
#if PG_VERSION_NUM >= 150000
#define COMPAT_SAMPLER_RANDOM(state)	sampler_random_fract(&(state))
#else
#define COMPAT_SAMPLER_RANDOM(state)	sampler_random_fract(state)
#endif

/* The varlena macros got a header of their own in 16. */
#if PG_VERSION_NUM >= 160000
#include "varatt.h"
#endif

/* 18 replaced the macro for it by another one, in another place. */
#define COMPAT_NORETURN	__attribute__((noreturn))

/* 19's compiler flags want more than a comment. */
#if defined(__has_attribute) && __has_attribute(fallthrough)
#define COMPAT_FALLTHROUGH	__attribute__((fallthrough))
#else
#define COMPAT_FALLTHROUGH	((void) 0)
#endif

/* The relations in an expression; 14 added the planner's state. */
#if PG_VERSION_NUM >= 140000
#define compat_pull_varnos(node)	pull_varnos(NULL, node)
#else
#define compat_pull_varnos(node)	pull_varnos(node)
#endif

/* 19 also says whether a check is volatile. */
static inline bool
compat_domain_has_constraints(Oid type)
{
#if PG_VERSION_NUM >= 190000
	bool		has_volatile;

	return DomainHasConstraints(type, &has_volatile);
#else
	return DomainHasConstraints(type);
#endif
}

/* The targets of a statement: 19 has a set of them. */
static inline List *
compat_result_relations(PlannedStmt *stmt)
{
#if PG_VERSION_NUM >= 190000
	List	   *list = NIL;
	int			member = -1;

	while ((member = bms_next_member(stmt->resultRelationRelids, member)) >= 0)
		list = lappend_int(list, member);
	return list;
#else
	return stmt->resultRelations;
#endif
}

/* Parse analysis of a statement without parameters; 15 renamed it. */
#if PG_VERSION_NUM >= 150000
#define compat_analyze(raw, sql) \
	pg_analyze_and_rewrite_fixedparams(raw, sql, NULL, 0, NULL)
#else
#define compat_analyze(raw, sql) \
	pg_analyze_and_rewrite(raw, sql, NULL, 0, NULL)
#endif

/* Planning of a statement without parameters; 19 added EXPLAIN's state. */
#if PG_VERSION_NUM >= 190000
#define compat_plan(query, sql)	pg_plan_query(query, sql, 0, NULL, NULL)
#else
#define compat_plan(query, sql)	pg_plan_query(query, sql, 0, NULL)
#endif

/* Run a query to its end; 18 dropped an argument. */
#if PG_VERSION_NUM >= 180000
#define compat_executor_run(desc)	ExecutorRun(desc, ForwardScanDirection, 0)
#else
#define compat_executor_run(desc) \
	ExecutorRun(desc, ForwardScanDirection, 0, true)
#endif

/* What an INSERT inserts; one of several plans before 14. */
#if PG_VERSION_NUM >= 140000
#define compat_modify_table_plan(node)	outerPlan(node)
#else
#define compat_modify_table_plan(node)	((Plan *) linitial((node)->plans))
#endif

/* The same when it runs. */
#if PG_VERSION_NUM >= 140000
#define compat_modify_table_source(state)	outerPlanState(state)
#else
#define compat_modify_table_source(state)	((state)->mt_plans[0])
#endif

/* How a row of the named table becomes one of a partition; NULL: as it is. */
#if PG_VERSION_NUM >= 160000
#define compat_partition_map(relinfo, estate)	ExecGetRootToChildMap(relinfo, estate)
#elif PG_VERSION_NUM >= 140000
#define compat_partition_map(relinfo, estate)	((relinfo)->ri_RootToPartitionMap)
#else
#define compat_partition_map(relinfo, estate) \
	((relinfo)->ri_PartitionInfo ? \
	 (relinfo)->ri_PartitionInfo->pi_RootToPartitionMap : NULL)
#endif

/* 14 names the relation. */
#if PG_VERSION_NUM >= 140000
#define compat_compute_generated(relinfo, estate, slot) \
	ExecComputeStoredGenerated(relinfo, estate, slot, CMD_INSERT)
#else
#define compat_compute_generated(relinfo, estate, slot) \
	((estate)->es_result_relation_info = (relinfo), \
	 ExecComputeStoredGenerated(estate, slot, CMD_INSERT))
#endif

/* Index entries of a new row; 14, 16 and 19 changed it. */
#if PG_VERSION_NUM >= 190000
#define compat_insert_index_tuples(relinfo, slot, estate) \
	ExecInsertIndexTuples(relinfo, estate, 0, slot, NIL, NULL)
#elif PG_VERSION_NUM >= 160000
#define compat_insert_index_tuples(relinfo, slot, estate) \
	ExecInsertIndexTuples(relinfo, slot, estate, false, false, NULL, NIL, false)
#elif PG_VERSION_NUM >= 140000
#define compat_insert_index_tuples(relinfo, slot, estate) \
	ExecInsertIndexTuples(relinfo, slot, estate, false, false, NULL, NIL)
#else
#define compat_insert_index_tuples(relinfo, slot, estate) \
	((estate)->es_result_relation_info = (relinfo), \
	 ExecInsertIndexTuples(slot, estate, false, NULL, NIL))
#endif

/* Joins whose rows are those of the inner side: 16 and 18 added some. */
static inline bool
compat_is_right_side_join(JoinType type)
{
#if PG_VERSION_NUM >= 160000
	if (type == JOIN_RIGHT_ANTI)
		return true;
#endif
#if PG_VERSION_NUM >= 180000
	if (type == JOIN_RIGHT_SEMI)
		return true;
#endif
	return false;
}

/* Timeouts of idle sessions came in 14, but a source may be newer than us. */
#ifndef ERRCODE_IDLE_SESSION_TIMEOUT
#define ERRCODE_IDLE_SESSION_TIMEOUT	MAKE_SQLSTATE('5','7','P','0','5')
#endif

/* 14 gave the type its usual name. */
#if PG_VERSION_NUM < 140000
#define PG_LSNOID	LSNOID
#endif

/* A set-returning function that materializes its rows; a call since 15. */
#if PG_VERSION_NUM < 150000
#include "funcapi.h"
#include "miscadmin.h"
static inline void
InitMaterializedSRF(FunctionCallInfo fcinfo, bits32 flags)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	MemoryContext oldcontext;
	TupleDesc	desc;

	if (rsinfo == NULL || !IsA(rsinfo, ReturnSetInfo) ||
		!(rsinfo->allowedModes & SFRM_Materialize))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("set-valued function called in context that cannot accept a set")));
	if (get_call_result_type(fcinfo, NULL, &desc) != TYPEFUNC_COMPOSITE)
		elog(ERROR, "return type must be a row type");

	oldcontext = MemoryContextSwitchTo(rsinfo->econtext->ecxt_per_query_memory);
	rsinfo->returnMode = SFRM_Materialize;
	rsinfo->setResult = tuplestore_begin_heap(true, false, work_mem);
	rsinfo->setDesc = CreateTupleDescCopy(desc);
	MemoryContextSwitchTo(oldcontext);
}
#endif

/* 18 names only the collation "C"; "POSIX" kept its OID. */
#if PG_VERSION_NUM >= 180000
#define POSIX_COLLATION_OID 951
#endif

#endif							/* TIDRANGE_COMPAT_H */
