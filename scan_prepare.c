/*-------------------------------------------------------------------------
 *
 * scan_prepare.c
 *	  What must be known before the first claim: lock, snapshot, measure,
 *	  formats, SQL.
 *
 * The leader does this once a scan, before any worker exists; the answers go to
 * the workers through DSM.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_class.h"
#include "columns.h"
#include "ctid.h"
#include "deparse.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "scan.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/rel.h"

/* ----------
 * The remote SQL
 * ----------
 */

/*
 * SELECT list FROM [ONLY] name WHERE bounds AND quals.  `bounds` may be NULL.
 * `values` are the parameters' texts; NULL shows them as $1, $2 ... for EXPLAIN.
 */
void
scan_append_select(StringInfo buf, const char *select_list, const char *name,
				   bool only, const char *bounds, const ScanPlan *plan,
				   const char *const *values)
{
	appendStringInfo(buf, "SELECT%s%s FROM %s%s",
					 select_list[0] != '\0' ? " " : "", select_list,
					 only ? "ONLY " : "", name);
	if (bounds != NULL)
		appendStringInfo(buf, " WHERE %s", bounds);
	if (plan->fragments != NIL)
	{
		appendStringInfoString(buf, bounds != NULL ? " AND " : " WHERE ");
		if (values != NULL)
			deparse_fill_params(buf, plan->fragments, plan->params, values);
		else
			deparse_show_params(buf, plan->fragments, plan->params);
	}
	if (plan->limit >= 0)
		appendStringInfo(buf, " LIMIT %.0f", plan->limit);
}

/* The texts of the parameters' present values; NULL where SQL NULL. */
const char **
scan_param_values(TidrangeScan *scan)
{
	ExprContext *econtext = scan->state->ss.ps.ps_ExprContext;
	int			nparams = list_length(scan->param_states);
	const char **values = palloc0(Max(nparams, 1) * sizeof(char *));
	ListCell   *lc_state;
	ListCell   *lc_param;
	int			nestlevel;
	int			i = 0;

	if (nparams == 0)
		return values;
	nestlevel = deparse_set_output_settings();
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

/* ----------
 * Preparing: lock, snapshot, measure, choose formats
 * ----------
 */

/*
 * The remote table under this transaction's snapshot, and in *conn the
 * connection that holds its lock.  A table that is met while the control
 * connection is busy is locked by another one.
 */
static RemoteTable *
find_remote_table(TidrangeScan *scan, Connection **conn)
{
	ConnectionPool *pool = scan->pool;
	SnapshotWish wish;
	RemoteTable *table;
	WaitLimits	limits = {0};
	RemoteError error;

	scan_make_wish(scan, &wish);
	table = snapshot_find_table(pool, &wish);
	if (connection_control(pool, &limits, &error) == NULL)
		connection_report(ERROR, &error, pool, NULL);
	if (pool->snapshot == NULL)
	{
		snapshot_take(pool, &wish, scan_other_tables(scan));
		table = snapshot_find_table(pool, &wish);
	}
	scan->ticket = pool->snapshot->ticket;

	*conn = NULL;
	if (table != NULL)
		return table;
	*conn = scan_find_connection(pool, InvalidOid);
	if (*conn == NULL)
	{
		WaitLimits	patience = connection_limits(SCAN_EXTRA_CONNECTION_MS);
		bool		retry;

		*conn = scan_open_connection(scan, &patience, &error, &retry);
	}
	if (*conn == NULL)
	{
		*conn = pool->control;
		if (*conn == NULL || (*conn)->borrower == NULL || !(*conn)->parkable)
			connection_report(ERROR, &error, pool, NULL);
		scan_park_borrower(*conn);
	}

	/* A leaf may have left since the snapshot was taken: see check_leaves. */
	if (scan->plan.has_leaves || scan->plan.pages < 0)
		wish.list_leaves = true;
	table = snapshot_add_table(*conn, &wish);
	if (remote_leaves_is_parent(table) && !table->list_leaves)
	{
		wish.list_leaves = true;
		table = snapshot_add_table(*conn, &wish);
	}
	return table;
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
	scan->plan.limit = -1;
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
 * A leaf that has left since the snapshot was taken would be missing from what is
 * read by the parent's name.  By its own it can be read all the same.
 */
static void
check_leaves(const TidrangeScan *scan, const RemoteTable *table)
{
	if (remote_leaves_lost(table, scan->remote.by_leaf))
		ereport(ERROR,
				(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
				 errmsg("partitions of remote table %s were removed after the snapshot was taken",
						table->name),
				 errhint("Retry the transaction.")));
}

/*
 * Take the index locks now: a chunk may come when a REINDEX waits.  The plans that
 * come along tell whether chunks are worth it, and which leaves need not be read.
 */
static void
pin_leaves(TidrangeScan *scan, Connection *conn, const RemoteTable *table)
{
	SnapshotLock lock;
	bool	   *excluded;

	scan_fill_lock(scan, &lock);
	excluded = palloc0(Max(lock.nleaves, 1) * sizeof(bool));
	if (snapshot_pin(conn, &lock, excluded))
		scan_drop_leaves(scan, excluded);
	else if (scan->remote.chunked)
	{
		scan->remote.chunked = false;
		scan->remote.whole_reason =
			"remote plan of a chunk is not a Tid Range Scan";
		scan_choose_leaves(scan, table);
		check_leaves(scan, table);
	}
	connection_note_lock(conn, scan_choose_lock_key(scan));
}

/*
 * The leader's way to everything that must be known before the first claim.
 * Without DSM to follow (`parallel` false), and with one connection, the scan reads
 * the whole relation in one piece, and needs no bounds.
 */
void
scan_prepare(TidrangeScan *scan, bool parallel)
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
	scan->remote.parent_reason = table->indirect_reason;
	scan->remote.whole_reason =
		remote_table_whole_reason(table, scan->ticket.server_version);
	if (scan->remote.whole_reason == NULL && !parallel &&
		scan->plan.connections <= 1)
		scan->remote.whole_reason = "one participant";
	scan->remote.chunked = scan->remote.whole_reason == NULL;
	if (scan->remote.chunked && remote_leaves_is_parent(table) &&
		!table->list_leaves)
		elog(ERROR, "leaves of remote table %s are not known", table->name);
	scan_choose_leaves(scan, table);
	check_leaves(scan, table);
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

	if (scan->options.refuse_row_security)
	{
		if (conn == NULL)
			conn = scan_require_connection(scan);
		snapshot_refuse_row_security(conn, table->name);
	}
	if (scan->remote.chunked || scan->remote.lock_refused)
	{
		if (conn == NULL)
			conn = scan_require_connection(scan);
		pin_leaves(scan, conn, table);
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

/* scan_prepare() for the DSM hooks, with errors in the scan's name. */
void
scan_prepare_leader(TidrangeScan *scan)
{
	ErrorContextCallback callback;

	if (scan->prepared && scan->remote.chunked)
		return;
	scan_push_error_context(scan, &callback);
	scan_prepare(scan, true);
	error_context_stack = callback.previous;
}
