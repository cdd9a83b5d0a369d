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
 * To return "no more rows" is a statement about the whole scan: Append marks a
 * child finished for everybody, and a Parallel Hash closes its batch.  So a
 * participant ends only when it saw the counter exhausted, or the stop flag, or
 * while another one that already holds snapshot and lock is in the claim loop.
 * One that the remote refuses waits for that, and retries.  A claimed chunk is
 * finished or the query fails.
 *
 * Connections: the control connection lends itself as the leader's stream when
 * it is free.  A scan that finds all connections of its process busy opens one
 * more, which adopts the snapshot; if the remote refuses that, it parks the
 * stream of another scan and takes over its connection.
 *
 * Nothing is opened before the first row is asked for, or the DSM is sized.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/parallel.h"
#include "access/sysattr.h"
#include "access/xact.h"
#include "catalog/pg_class.h"
#include "columns.h"
#include "compat.h"
#include "ctid.h"
#include "deparse.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "scan.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"

/* How long a refused participant sleeps between two tries. */
#define RETRY_MIN_MS			20
#define RETRY_MAX_MS			1000

/* How long it goes on when no other participant can read either: if the leader
 * does not take part, and if it does but is busy elsewhere. */
#define JOIN_PATIENCE_MS		5000
#define JOIN_LONG_PATIENCE_MS	600000

/* Patience with one more connection of the leader, which can do without. */
#define EXTRA_CONNECTION_MS		10000

/* Scans of this process, for locking together and for subtransactions. */
static dlist_head scans = DLIST_STATIC_INIT(scans);
static bool callbacks_registered = false;

/* ----------
 * Life and death
 * ----------
 */

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
	stream_abandon(&scan->stream);
}

/*
 * A subtransaction that ends badly takes its scans along without scan_end.
 * Their connections must stop now, not when somebody needs them.
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
			Connection *conn = scan->stream.conn;
			bool		is_control = conn != NULL && conn->is_control;

			unregister(scan);
			stream_abandon(&scan->stream);
			if (is_control)
			{
				WaitLimits	limits = connection_limits(1000);
				RemoteError error;

				limits.no_interrupts = true;
				if (!connection_recover(conn, &limits, &error))
					connection_lose_control(conn->pool);
			}
		}
	}
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

	node->fdw_state = scan;
	scan->state = node;
	scan->relid = RelationGetRelid(node->ss.ss_currentRelation);
	scan->relation_name = pstrdup(RelationGetRelationName(node->ss.ss_currentRelation));
	plan_unpack(fsplan, &scan->plan);
	option_resolve_table(scan->relid, &scan->options);
	if (eflags & EXEC_FLAG_EXPLAIN_ONLY)
		return;

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
	}
	else
		errcontext("foreign table \"%s\"", scan->relation_name);
}

static void
push_error_context(TidrangeScan *scan, ErrorContextCallback *callback)
{
	callback->callback = error_callback;
	callback->arg = scan;
	callback->previous = error_context_stack;
	error_context_stack = callback;
}

/* ----------
 * The remote SQL
 * ----------
 */

/*
 * SELECT list FROM name WHERE bounds AND quals.  `values` are the parameters'
 * texts; NULL shows them as $1, $2 ... for EXPLAIN.
 */
void
scan_append_select(StringInfo buf, const char *select_list, const char *name,
				   bool chunked, const char *bounds, List *fragments,
				   List *params, const char *const *values)
{
	/* ONLY: a table that gets a child after it was measured stays itself. */
	appendStringInfo(buf, "SELECT%s%s FROM %s%s",
					 select_list[0] != '\0' ? " " : "", select_list,
					 chunked ? "ONLY " : "", name);
	if (chunked)
		appendStringInfo(buf, " WHERE %s", bounds);
	if (fragments == NIL)
		return;
	appendStringInfoString(buf, chunked ? " AND " : " WHERE ");
	if (values != NULL)
		deparse_fill_params(buf, fragments, params, values);
	else
		deparse_show_params(buf, fragments, params);
}

/* The bounds of a chunk, constant text for all of them. */
#define CHUNK_BOUNDS \
	"ctid >= current_setting('tidrange.lo')::tid AND " \
	"ctid < current_setting('tidrange.hi')::tid"

/* The texts of the parameters' present values; NULL where SQL NULL. */
static const char **
param_values(TidrangeScan *scan)
{
	ExprContext *econtext = scan->state->ss.ps.ps_ExprContext;
	int			nparams = list_length(scan->param_states);
	const char **values = palloc0(Max(nparams, 1) * sizeof(char *));
	int			nestlevel = deparse_set_output_settings();
	ListCell   *lc_state;
	ListCell   *lc_param;
	int			i = 0;

	forboth(lc_state, scan->param_states, lc_param, scan->plan.params)
	{
		bool		isnull;
		Datum		value = ExecEvalExpr((ExprState *) lfirst(lc_state),
										 econtext, &isnull);

		if (!isnull)
		{
			Oid			output;
			bool		is_varlena;

			getTypeOutputInfo(exprType((Node *) lfirst(lc_param)),
							  &output, &is_varlena);
			values[i] = OidOutputFunctionCall(output, value);
		}
		i++;
	}
	deparse_reset_output_settings(nestlevel);
	return values;
}

/* The SELECT that one chunk runs, with the present parameters. */
static char *
build_select(TidrangeScan *scan)
{
	StringInfoData buf;

	initStringInfo(&buf);
	scan_append_select(&buf, scan->remote.select_list, scan->remote.name,
					   scan->remote.chunked, CHUNK_BOUNDS,
					   scan->plan.fragments, scan->plan.params,
					   param_values(scan));
	return buf.data;
}

/* The COPY of it; built once a (re)scan. */
static const char *
copy_statement(TidrangeScan *scan)
{
	if (scan->copy_sql == NULL)
	{
		MemoryContext oldcontext;

		/* A nested loop may rescan a million times. */
		MemoryContextReset(scan->sql_context);
		oldcontext = MemoryContextSwitchTo(scan->sql_context);
		scan->copy_sql = psprintf("COPY (%s) TO STDOUT (FORMAT binary)",
								  build_select(scan));
		MemoryContextSwitchTo(oldcontext);
	}
	return scan->copy_sql;
}

static void
fill_lock(TidrangeScan *scan, SnapshotLock *lock)
{
	lock->name = scan->remote.name;
	lock->oid = scan->remote.oid;
	lock->filenode = scan->remote.filenode;
	lock->lock_refused = scan->remote.lock_refused;
	lock->chunked = scan->remote.chunked;
	lock->select_sql = build_select(scan);
}

/* ----------
 * Connections of this process
 * ----------
 */

static bool
never_stop(void *arg)
{
	return false;
}

/* Wake up for nothing else than the end of all work. */
static bool
stop_requested(void *arg)
{
	TidrangeScan *scan = arg;

	return scan->shared != NULL &&
		pg_atomic_read_u32(&scan->shared->stop) != 0;
}

/* Before the first claim there is more that makes joining pointless. */
static bool
nothing_left(void *arg)
{
	TidrangeScan *scan = arg;

	return stop_requested(scan) || claim_exhausted(scan->claim);
}

/* The scan whose stream reads from the connection. */
static TidrangeScan *
borrowing_scan(Connection *conn)
{
	return (TidrangeScan *) ((char *) conn->borrower -
							 offsetof(TidrangeScan, stream.conn));
}

/* Take the connection away from the stream that reads from it. */
static void
park_borrower(Connection *conn)
{
	TidrangeScan *owner = borrowing_scan(conn);
	WaitLimits	limits = {0};

	stream_park(&owner->stream, owner->context, &limits);
	Assert(conn->borrower == NULL);
}

/* Is it at rest?  A control connection left in mid-answer is brought there. */
static bool
make_ready(Connection *conn)
{
	if (conn->borrower != NULL || PQstatus(conn->pg) != CONNECTION_OK)
		return false;
	if (conn->is_control && conn->in_transaction &&
		(conn->dirty || PQtransactionStatus(conn->pg) != PQTRANS_INTRANS))
	{
		WaitLimits	limits = connection_limits(5000);
		RemoteError error;

		if (!connection_recover(conn, &limits, &error))
		{
			connection_lose_control(conn->pool);
			return false;
		}
	}
	return PQtransactionStatus(conn->pg) == PQTRANS_INTRANS;
}

/* A free connection that has locked `oid` (InvalidOid: any); NULL if none. */
static Connection *
find_ready(ConnectionPool *pool, Oid oid)
{
	dlist_mutable_iter iter;

	dlist_foreach_modify(iter, &pool->connections)
	{
		Connection *conn = dlist_container(Connection, node, iter.cur);

		if (OidIsValid(oid) && !list_member_oid(conn->locked, oid))
			continue;
		if (make_ready(conn))
			return conn;
	}
	return NULL;
}

/*
 * One more connection with the scan's snapshot.  NULL with `error` set if it
 * cannot be had; *retry tells whether that may change.
 */
static Connection *
open_adopted(TidrangeScan *scan, const WaitLimits *limits,
			 RemoteError *error, bool *retry)
{
	char		role[32];
	Connection *conn;

	if (IsParallelWorker())
		snprintf(role, sizeof(role), "worker %d", ParallelWorkerNumber);
	else
		snprintf(role, sizeof(role), "leader extra");

	*retry = true;
	conn = connection_open(scan->pool, &scan->ticket.peer, role, limits,
						   error);
	if (conn == NULL)
		return NULL;
	if (snapshot_adopt(conn, &scan->ticket, limits, error))
		return conn;
	*retry = false;
	connection_close(conn);
	return NULL;
}

/*
 * A connection of this process that is free and has snapshot and lock.  NULL
 * with `error` set if there is none and the remote gives none.
 */
static Connection *
try_connection(TidrangeScan *scan, const WaitLimits *limits,
			   RemoteError *error, bool *retry)
{
	Connection *conn = find_ready(scan->pool, scan->remote.oid);
	SnapshotLock lock;

	*retry = false;
	if (conn != NULL)
		return conn;
	conn = find_ready(scan->pool, InvalidOid);
	if (conn == NULL)
		conn = open_adopted(scan, limits, error, retry);
	if (conn == NULL)
		return NULL;

	fill_lock(scan, &lock);
	if (snapshot_lock(conn, &lock, limits, error))
		return conn;
	*retry = error->sqlstate == ERRCODE_LOCK_NOT_AVAILABLE;
	if (conn->is_control)
		make_ready(conn);
	else
		connection_close(conn);
	return NULL;
}

/* The connection that has locked the table, whoever reads from it. */
static Connection *
find_locked(ConnectionPool *pool, Oid oid)
{
	dlist_iter	iter;

	dlist_foreach(iter, &pool->connections)
	{
		Connection *conn = dlist_container(Connection, node, iter.cur);

		if (list_member_oid(conn->locked, oid))
			return conn;
	}
	return NULL;
}

/*
 * As try_connection, for a participant that has joined: it must go on, so that
 * the last resort is to park the stream of another scan.
 */
static Connection *
require_connection(TidrangeScan *scan)
{
	WaitLimits	limits = connection_limits(EXTRA_CONNECTION_MS);
	RemoteError error = {0};
	bool		retry;
	Connection *conn = try_connection(scan, &limits, &error, &retry);

	if (conn != NULL)
		return conn;
	conn = find_locked(scan->pool, scan->remote.oid);
	if (conn != NULL && conn->borrower != NULL && conn->parkable)
	{
		park_borrower(conn);
		return conn;
	}
	if (error.sqlstate == 0)
		ereport(ERROR,
				(errcode(ERRCODE_CONNECTION_FAILURE),
				 errmsg("connection to the remote server was lost"),
				 errhint("Retry the transaction.")));
	connection_report(ERROR, &error, scan->pool, NULL);
	return NULL;
}

/* ----------
 * Preparing: lock, snapshot, measure, choose formats
 * ----------
 */

/*
 * Other tables that scans of this process have begun on the same remote.
 */
static List *
other_tables(TidrangeScan *scan)
{
	List	   *others = NIL;
	dlist_iter	iter;

	dlist_foreach(iter, &scans)
	{
		TidrangeScan *other = dlist_container(TidrangeScan, node, iter.cur);

		if (other->pool == scan->pool && other->relid != scan->relid)
			others = list_append_unique_oid(others, other->relid);
	}
	return others;
}

/*
 * The remote table under this transaction's snapshot, and in *conn the
 * connection that holds its lock.  A table that is met while the control
 * connection is busy is locked by another one.
 */
static RemoteTable *
find_remote_table(TidrangeScan *scan, Connection **conn)
{
	ConnectionPool *pool = scan->pool;
	RemoteTable *table = snapshot_find_table(pool, scan->relid);
	WaitLimits	limits = {0};
	RemoteError error;

	if (connection_control(pool, &limits, &error) == NULL)
		connection_report(ERROR, &error, pool, NULL);
	if (pool->snapshot == NULL)
	{
		snapshot_take(pool, scan->relid, other_tables(scan));
		table = snapshot_find_table(pool, scan->relid);
	}
	scan->ticket = pool->snapshot->ticket;

	*conn = NULL;
	if (table != NULL)
		return table;
	*conn = find_ready(pool, InvalidOid);
	if (*conn == NULL)
	{
		WaitLimits	patience = connection_limits(EXTRA_CONNECTION_MS);
		bool		retry;

		*conn = open_adopted(scan, &patience, &error, &retry);
	}
	if (*conn == NULL)
	{
		*conn = pool->control;
		if (*conn == NULL || (*conn)->borrower == NULL || !(*conn)->parkable)
			connection_report(ERROR, &error, pool, NULL);
		park_borrower(*conn);
	}
	return snapshot_add_table(*conn, scan->relid);
}

/* Fetch the columns of the quals and send no WHERE. */
static void
plan_local_filter(TidrangeScan *scan)
{
	MemoryContext oldcontext = MemoryContextSwitchTo(scan->context);

	/* The plan's own list may be in a cached plan: leave it alone. */
	scan->plan.attnums = list_concat_unique_int(list_copy(scan->plan.attnums),
												scan->plan.qual_attnums);
	scan->plan.fragments = NIL;
	MemoryContextSwitchTo(oldcontext);
}

/* A view may have a column of its own called ctid: it must not be taken. */
static void
check_ctid(TidrangeScan *scan, const RemoteTable *table)
{
	if (scan->plan.needs_ctid &&
		table->kind != RELKIND_RELATION && table->kind != RELKIND_MATVIEW &&
		table->kind != RELKIND_PARTITIONED_TABLE)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("remote relation %s has no ctid", table->name),
				 errdetail("It is not a table.")));
}

/*
 * The leader's way to everything that must be known before the first claim.
 * Without DSM to follow (`parallel` false) the scan reads the whole relation in
 * one piece, and needs no bounds.
 */
static void
prepare(TidrangeScan *scan, bool parallel)
{
	MemoryContext oldcontext;
	Connection *conn;
	RemoteTable *table = find_remote_table(scan, &conn);
	TupleDesc	desc = RelationGetDescr(scan->state->ss.ss_currentRelation);
	SelectList	list;

	check_ctid(scan, table);
	oldcontext = MemoryContextSwitchTo(scan->context);
	scan->remote.name = table->name;
	scan->remote.oid = table->oid;
	scan->remote.filenode = table->filenode;
	scan->remote.lock_refused = table->lock_refused;
	scan->remote.nblocks = table->nblocks;
	scan->remote.whole_reason =
		remote_table_whole_reason(table, scan->ticket.server_version);
	if (scan->remote.whole_reason == NULL && !parallel)
		scan->remote.whole_reason = "one participant";
	scan->remote.chunked = scan->remote.whole_reason == NULL;
	if (!columns_same_types(scan->relid, desc, scan->plan.qual_attnums, table))
	{
		scan->remote.filter_locally = true;
		plan_local_filter(scan);
	}
	columns_choose(&list, scan->relid, desc, scan->plan.attnums, table,
				   scan->ticket.server_version);
	scan->remote.select_list = list.text;
	scan->remote.binary = list.binary;
	scan->remote.text_columns = list.text_columns;
	scan_set_remote(scan, &scan->remote);

	/* Take the index locks now: a chunk may come when a REINDEX waits. */
	if (scan->remote.chunked || scan->remote.lock_refused)
	{
		SnapshotLock lock;

		if (conn == NULL)
			conn = require_connection(scan);
		fill_lock(scan, &lock);
		if (!snapshot_pin(conn, &lock) && scan->remote.chunked)
		{
			scan->remote.chunked = false;
			scan->remote.whole_reason =
				"remote plan of a chunk is not a Tid Range Scan";
		}
		if (!list_member_oid(conn->locked, table->oid))
		{
			MemoryContextSwitchTo(TopMemoryContext);
			conn->locked = lappend_oid(conn->locked, table->oid);
		}
	}
	MemoryContextSwitchTo(oldcontext);
}

/* Adopt what is known of the remote relation: the decoder follows from it. */
void
scan_set_remote(TidrangeScan *scan, const ScanRemote *remote)
{
	MemoryContext oldcontext = MemoryContextSwitchTo(scan->context);
	TupleTableSlot *slot = scan->state->ss.ss_ScanTupleSlot;
	AttrNumber *attnums;
	ListCell   *lc;
	int			ncolumns;
	int			i = 0;

	if (remote->filter_locally)
		plan_local_filter(scan);
	ncolumns = list_length(scan->plan.attnums);
	attnums = palloc(Max(ncolumns, 1) * sizeof(AttrNumber));
	foreach(lc, scan->plan.attnums)
		attnums[i++] = lfirst_int(lc);
	if (remote != &scan->remote)
		scan->remote = *remote;
	scan->codec = codec_create(slot->tts_tupleDescriptor, attnums,
							   scan->remote.binary, ncolumns);
	scan->copy_sql = NULL;
	scan->prepared = true;
	MemoryContextSwitchTo(oldcontext);
}

/* prepare() for the DSM hooks, with errors in the scan's name. */
void
scan_prepare_leader(TidrangeScan *scan)
{
	ErrorContextCallback callback;

	if (scan->prepared && scan->remote.chunked)
		return;
	push_error_context(scan, &callback);
	prepare(scan, true);
	error_context_stack = callback.previous;
}

/*
 * The block space of the coming (re)scan, cut by the quals on ctid; ready to be
 * claimed.  Only while no other participant runs.  The claim has room for one
 * piece.
 */
void
scan_lay_out_claim(TidrangeScan *scan, Claim *claim, int nparticipants)
{
	ClaimPiece	piece = {0};
	CtidRange	range;
	uint64		beyond;

	if (!scan->remote.chunked)
	{
		piece.nblocks = 1;
		piece.whole = true;
		claim_init(claim, &piece, 1, nparticipants, 0);
		return;
	}

	/*
	 * An empty relation has one block all the same: its chunk is open-ended,
	 * and reading it costs nothing.
	 */
	beyond = Max(scan->remote.nblocks, 1);
	range = ctid_range(scan->plan.ctid_operators, scan->ctid_states,
					   scan->state->ss.ps.ps_ExprContext);
	piece.open_end = range.beyond >= beyond;
	beyond = Min(beyond, range.beyond);
	if (range.first < beyond)
	{
		piece.first_block = (uint32) range.first;
		piece.nblocks = beyond - range.first;
	}
	claim_init(claim, &piece, piece.nblocks > 0 ? 1 : 0, nparticipants,
			   scan->options.chunk_blocks);
}

/* A counter for this process alone. */
static void
make_private_claim(TidrangeScan *scan)
{
	if (scan->private_claim == NULL)
		scan->private_claim = MemoryContextAlloc(scan->context,
												 claim_size(1));
	scan_lay_out_claim(scan, scan->private_claim, 1);
	scan->claim = scan->private_claim;
}

/* ----------
 * Joining and leaving
 * ----------
 */

/* Sleep before the next try; interruptible. */
static void
sleep_before_retry(int milliseconds)
{
	(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
					 milliseconds, PG_WAIT_EXTENSION);
	ResetLatch(MyLatch);
	CHECK_FOR_INTERRUPTS();
}

/*
 * The remote refused a worker.  True: it may end, another participant is in
 * the claim loop.  Raises the remote's error if nobody else can read.
 */
static bool
may_bow_out(TidrangeScan *scan, const RemoteError *error,
			TimestampTz first_failure)
{
	ScanShared *shared = scan->shared;
	int			patience = shared->leader_participates ?
	JOIN_LONG_PATIENCE_MS : JOIN_PATIENCE_MS;

	if (pg_atomic_read_u32(&shared->active) > 0)
	{
		ereport(DEBUG1,
				(errmsg_internal("tidrange_fdw: worker %d does not take part: %s",
								 ParallelWorkerNumber, error->message)));
		scan->counters.bowed_out++;
		return true;
	}
	if (pg_atomic_read_u32(&shared->joining) == 0 &&
		TimestampDifferenceExceeds(first_failure, GetCurrentTimestamp(),
								   patience))
		connection_report(ERROR, error, scan->pool, NULL);
	return false;
}

/*
 * A worker's way to snapshot and lock.  False if there is nothing to do for it.
 * It has claimed nothing yet.
 */
static bool
join_as_worker(TidrangeScan *scan)
{
	ScanShared *shared = scan->shared;
	WaitLimits	limits = {0};
	TimestampTz first_failure = 0;
	int			delay = RETRY_MIN_MS;
	bool		joined = false;

	if (nothing_left(scan))
		return false;
	limits.stop = nothing_left;
	limits.stop_arg = scan;
	pg_atomic_fetch_add_u32(&shared->joining, 1);
	while (!nothing_left(scan))
	{
		RemoteError error = {0};
		bool		retry;

		if (try_connection(scan, &limits, &error, &retry) != NULL)
		{
			joined = true;
			break;
		}
		if (error.stopped)
			break;
		if (!retry)
			connection_report(ERROR, &error, scan->pool, NULL);
		if (first_failure == 0)
		{
			first_failure = GetCurrentTimestamp();
			pg_atomic_fetch_sub_u32(&shared->joining, 1);
		}
		if (may_bow_out(scan, &error, first_failure))
			break;
		sleep_before_retry(delay);
		delay = Min(delay * 2, RETRY_MAX_MS);
	}
	if (joined)
		pg_atomic_fetch_add_u32(&shared->active, 1);
	if (first_failure == 0)
		pg_atomic_fetch_sub_u32(&shared->joining, 1);
	return joined;
}

/* Take part in the scan: from here on this process may claim. */
static bool
join(TidrangeScan *scan)
{
	if (scan->shared == NULL)
	{
		if (!scan->prepared)
			prepare(scan, false);
		if (scan->claim == NULL)
			make_private_claim(scan);
	}
	else if (IsParallelWorker())
	{
		if (!join_as_worker(scan))
			return false;
	}
	else
		pg_atomic_fetch_add_u32(&scan->shared->active, 1);

	if (scan->shared != NULL)
		pg_atomic_fetch_add_u32(&scan->shared->started, 1);
	scan->joined = true;
	scan->counters.joined++;
	return true;
}

/* Show the others what this process did so far. */
static void
publish_counters(TidrangeScan *scan)
{
	if (scan->shared == NULL)
		return;
	((ScanCounters *) ((char *) scan->shared +
					   scan->shared->counters_offset))[scan->slot] =
		scan->counters;
}

/* Leave the claim loop. */
static void
leave(TidrangeScan *scan, bool exhausted)
{
	if (!scan->joined)
		return;
	scan->joined = false;
	publish_counters(scan);
	if (scan->shared == NULL)
		return;
	if (exhausted)
		pg_atomic_fetch_add_u32(&scan->shared->exhausted, 1);
	pg_atomic_fetch_sub_u32(&scan->shared->active, 1);
}

/* ----------
 * The loop
 * ----------
 */

/* Claim the next chunk and ask for its rows.  False: nothing is left. */
static bool
begin_chunk(TidrangeScan *scan)
{
	StreamRequest request;
	WaitLimits	limits = {0};
	Connection *conn;

	if (scan->ended)
		return false;

	/* Reading again what others have read would double rows. */
	if (scan->detached)
		elog(ERROR, "parallel scan of foreign table \"%s\" was asked for rows after its end",
			 scan->relation_name);
	if (!scan->joined && !join(scan))
	{
		scan->ended = true;
		publish_counters(scan);
		return false;
	}
	if (!claim_next(scan->claim, &scan->pace, &scan->chunk))
	{
		scan->ended = true;
		leave(scan, true);
		return false;
	}
	scan->has_chunk = true;
	claim_format_bounds(&scan->chunk, scan->lower, scan->upper);

	conn = require_connection(scan);
	request.copy_sql = copy_statement(scan);
	request.relation = scan->remote.name;
	request.oid = scan->remote.oid;
	request.chunked = scan->remote.chunked;
	request.parkable = true;
	request.lower = scan->lower;
	request.upper = scan->upper;
	scan->round_trips_before = conn->round_trips;
	scan->wait_seconds_before = conn->wait_seconds;
	stream_open(&scan->stream, conn, &request, &limits);
	return true;
}

/* Every row of the chunk was delivered. */
static void
finish_chunk(TidrangeScan *scan)
{
	instr_time	now;

	INSTR_TIME_SET_CURRENT(now);
	INSTR_TIME_SUBTRACT(now, scan->stream.sent);
	scan->pace.round_trip = scan->stream.answer_seconds;
	claim_finish(scan->claim, &scan->pace, &scan->chunk,
				 INSTR_TIME_GET_DOUBLE(now));
	scan->counters.chunks++;
	if (scan->remote.chunked)
		scan->counters.blocks += scan->chunk.nblocks;
	scan->counters.rows += scan->stream.rows;
	scan->counters.bytes += scan->stream.bytes;
	scan->has_chunk = false;
	publish_counters(scan);
}

/* Evaluate here what the remote could not be asked to. */
static bool
passes_local_filter(TidrangeScan *scan, TupleTableSlot *slot)
{
	ExprContext *econtext = scan->state->ss.ps.ps_ExprContext;

	if (!scan->remote.filter_locally)
		return true;

	/* Rows that fail are not seen by the executor, which would clean up. */
	ResetExprContext(econtext);
	CHECK_FOR_INTERRUPTS();
	econtext->ecxt_scantuple = slot;
	return ExecQual(scan->state->fdw_recheck_quals, econtext);
}

/* The next row in the slot, or an empty slot. */
static TupleTableSlot *
next_row(TidrangeScan *scan, TupleTableSlot *slot)
{
	WaitLimits	limits = {0};

	limits.stop = scan->shared ? stop_requested : never_stop;
	limits.stop_arg = scan;
	for (;;)
	{
		if (scan->has_chunk)
		{
			Connection *conn = scan->stream.conn;
			char	   *row;
			int			length;

			switch (stream_next(&scan->stream, &limits, &row, &length))
			{
				case STREAM_ROW:
					codec_decode(scan->codec, row, length, slot->tts_values,
								 slot->tts_isnull, &slot->tts_tid);
					ExecStoreVirtualTuple(slot);
					if (passes_local_filter(scan, slot))
						return slot;
					ExecClearTuple(slot);
					break;
				case STREAM_STOPPED:
					scan->ended = true;
					leave(scan, false);
					return slot;
				case STREAM_END:
					if (conn != NULL)
					{
						scan->counters.round_trips +=
							conn->round_trips - scan->round_trips_before;
						scan->counters.wait_seconds +=
							conn->wait_seconds - scan->wait_seconds_before;
					}
					finish_chunk(scan);
					break;
			}
		}
		else if (!begin_chunk(scan))
			return slot;
	}
}

/*
 * The next row of the scan.
 */
TupleTableSlot *
scan_next(ForeignScanState *node)
{
	TidrangeScan *scan = node->fdw_state;
	TupleTableSlot *slot = node->ss.ss_ScanTupleSlot;
	ErrorContextCallback callback;

	ExecClearTuple(slot);
	if (unlikely(scan->codec == NULL || !scan->has_chunk))
	{
		/* Columns that are not sent stay NULL for the whole scan. */
		memset(slot->tts_isnull, true,
			   slot->tts_tupleDescriptor->natts * sizeof(bool));
	}
	push_error_context(scan, &callback);
	next_row(scan, slot);
	error_context_stack = callback.previous;
	return slot;
}

/*
 * Start again, perhaps with other parameters.  Touches local state only: the
 * leader's may run after the DSM was set up for the coming execution.
 */
void
scan_rescan(ForeignScanState *node)
{
	TidrangeScan *scan = node->fdw_state;

	if (scan->has_chunk)
		stream_close(&scan->stream);
	scan->has_chunk = false;
	scan->joined = false;
	scan->ended = false;
	scan->detached = false;
	scan->pace.last_blocks = 0;
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
	stream_close(&scan->stream);
	leave(scan, false);
	scan->has_chunk = false;
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
	sum->joined += counters->joined;
	sum->bowed_out += counters->bowed_out;
}
