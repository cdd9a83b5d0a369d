/*-------------------------------------------------------------------------
 *
 * scan.c
 *	  The scan node: claim a chunk, stream it, decode it, fill the slot.
 *
 * There is one path through this file.  Every scan claims from a counter; a
 * serial scan, a parallel plan that runs without DSM, and a leader alone claim
 * from a private one, which the DSM hooks (parallel.c) replace.  Where the
 * counter is private there is one chunk, the whole statement without bounds.
 *
 * A claimed chunk is finished or the query fails.  When a participant may end is
 * said in scan_join.c, what precedes the first claim is in scan_prepare.c.
 *
 * Nothing is opened before the first row is asked for, or the DSM is sized.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "compat.h"
#include "executor/executor.h"
#include "insert_select.h"
#include "miscadmin.h"
#include "scan.h"
#include "scan_team.h"
#include "utils/memutils.h"
#include "utils/rel.h"

/* Scans of this process, for locking together and for subtransactions. */
static dlist_head scans = DLIST_STATIC_INIT(scans);
static bool callbacks_registered = false;

/* ----------
 * Life and death
 * ----------
 */

/* No I/O, no errors. */
static void
abandon_streams(TidrangeScan *scan)
{
	int			i;

	for (i = 0; i < scan->nstreams; i++)
		stream_abandon(&scan->streams[i].stream);
}

static void
unregister(TidrangeScan *scan)
{
	if (scan->registered)
		dlist_delete(&scan->node);
	scan->registered = false;
}

/*
 * The executor's memory goes away, after an error without scan_end.  No I/O
 * here, no errors.
 */
static void
scan_cleanup(void *arg)
{
	TidrangeScan *scan = arg;

	unregister(scan);
	scan_detach_shared(scan);
	abandon_streams(scan);
	scan_free_waits(scan);
}

/*
 * A subtransaction that ends badly takes its scans along without scan_end.  The
 * pool, called after us or when the connection is needed next, stops the remote.
 */
static void
subxact_callback(SubXactEvent event, SubTransactionId subid,
				 SubTransactionId parent_subid, void *arg)
{
	dlist_mutable_iter iter;

	dlist_foreach_modify(iter, &scans)
	{
		TidrangeScan *scan = dlist_container(TidrangeScan, node, iter.cur);

		if (scan->subid != subid)
			continue;
		if (event == SUBXACT_EVENT_COMMIT_SUB)
			scan->subid = parent_subid;
		else if (event == SUBXACT_EVENT_ABORT_SUB)
		{
			unregister(scan);
			abandon_streams(scan);
		}
	}
}

/*
 * What other scans of this process that have begun read from the same remote; a list
 * of SnapshotWish, in which a table may be more than once.
 */
List *
scan_other_tables(TidrangeScan *scan)
{
	List	   *others = NIL;
	dlist_iter	iter;

	dlist_foreach(iter, &scans)
	{
		TidrangeScan *other = dlist_container(TidrangeScan, node, iter.cur);

		if (other->pool == scan->pool && other != scan)
		{
			SnapshotWish *wish = palloc(sizeof(SnapshotWish));

			scan_make_wish(other, wish);
			others = lappend(others, wish);
		}
	}
	return others;
}

/* The local user whose mapping applies. */
static Oid
effective_user(ForeignScanState *node)
{
	ForeignScan *fsplan = (ForeignScan *) node->ss.ps.plan;
	Index		rtindex = fsplan->scan.scanrelid;
	RangeTblEntry *rte = exec_rt_fetch(rtindex, node->ss.ps.state);
	Oid			userid = COMPAT_SCAN_CHECK_AS_USER(fsplan, rte);

	(void) rte;
	return OidIsValid(userid) ? userid : GetUserId();
}

/*
 * Set up the state of a scan.  Opens no connection.
 */
void
scan_begin(ForeignScanState *node, int eflags)
{
	TidrangeScan *scan = palloc0(sizeof(TidrangeScan));
	ForeignScan *fsplan = (ForeignScan *) node->ss.ps.plan;
	const char *reason;

	node->fdw_state = scan;
	scan->state = node;
	scan->relid = RelationGetRelid(node->ss.ss_currentRelation);
	scan->relation_name = pstrdup(RelationGetRelationName(node->ss.ss_currentRelation));
	plan_unpack(fsplan, &scan->plan);
	option_resolve_table(scan->relid, &scan->options);
	if (eflags & EXEC_FLAG_EXPLAIN_ONLY)
		return;

	reason = insert_select_begin(node);
	if (reason != NULL)
		scan->plan.serial_reason = reason;
	scan->pool = connection_pool(effective_user(node),
								 GetForeignTable(scan->relid)->serverid);
	scan->context = CurrentMemoryContext;
	scan->sql_context = AllocSetContextCreate(scan->context,
											  "tidrange_fdw SQL",
											  ALLOCSET_SMALL_SIZES);
	scan->param_states = ExecInitExprList(scan->plan.params,
										  (PlanState *) node);
	scan->ctid_states = ExecInitExprList(scan->plan.ctid_exprs,
										 (PlanState *) node);
	scan->subid = GetCurrentSubTransactionId();
	scan_init_streams(scan);

	if (!callbacks_registered)
	{
		RegisterSubXactCallback(subxact_callback, NULL);
		callbacks_registered = true;
	}
	dlist_push_tail(&scans, &scan->node);
	scan->registered = true;
	scan->cleanup.func = scan_cleanup;
	scan->cleanup.arg = scan;
	MemoryContextRegisterResetCallback(scan->context, &scan->cleanup);
}

/* ----------
 * Error context
 * ----------
 */

static void
error_callback(void *arg)
{
	TidrangeScan *scan = arg;
	AttrNumber	attnum = InvalidAttrNumber;

	if (scan->codec != NULL)
		attnum = codec_current_column(scan->codec);
	if (attnum > 0)
	{
		TupleDesc	desc = scan->state->ss.ss_ScanTupleSlot->tts_tupleDescriptor;

		errcontext("column \"%s\" of foreign table \"%s\"",
				   NameStr(TupleDescAttr(desc, attnum - 1)->attname),
				   scan->relation_name);
		/* of the row's own stream: each may read another partition */
		if (scan->streams[scan->current].has_chunk)
			errcontext("remote SQL command: %s",
					   scan->streams[scan->current].stream.request.copy_sql);
	}
	else
		errcontext("foreign table \"%s\"", scan->relation_name);
}

void
scan_push_error_context(TidrangeScan *scan, ErrorContextCallback *callback)
{
	callback->callback = error_callback;
	callback->arg = scan;
	callback->previous = error_context_stack;
	error_context_stack = callback;
}

/* ----------
 * Again, and the end
 * ----------
 */

/*
 * Start again, perhaps with other parameters.  Touches local state only: the
 * leader's may run after the DSM was set up for the coming execution.
 */
void
scan_rescan(ForeignScanState *node)
{
	TidrangeScan *scan = node->fdw_state;

	scan_team_refuse_rescan(scan);
	scan_close_streams(scan);
	scan->joined = false;
	scan->ended = false;
	scan->detached = false;
	if (scan->param_states != NIL)
		scan->copy_sql = NULL;

	/* A private counter is laid out anew: the quals on ctid may differ. */
	if (scan->claim == scan->private_claim)
		scan->claim = NULL;
}

/*
 * The end, perhaps in mid-chunk.  Connections stay for the transaction.
 */
void
scan_end(ForeignScanState *node)
{
	TidrangeScan *scan = node->fdw_state;

	if (scan == NULL || !scan->registered)
		return;
	scan_close_streams(scan);
	scan_free_waits(scan);
	scan_leave(scan, false);
	unregister(scan);
}

/* Sum of what a participant did. */
void
scan_add_counters(ScanCounters *sum, const ScanCounters *counters)
{
	sum->chunks += counters->chunks;
	sum->blocks += counters->blocks;
	sum->rows += counters->rows;
	sum->bytes += counters->bytes;
	sum->round_trips += counters->round_trips;
	sum->wait_seconds += counters->wait_seconds;
	sum->streams = Max(sum->streams, counters->streams);
	sum->joined += counters->joined;
	sum->bowed_out += counters->bowed_out;
}
