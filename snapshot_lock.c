/*-------------------------------------------------------------------------
 *
 * snapshot_lock.c
 *	  The locks that reading needs beyond those that the snapshot was taken under,
 *	  and the proof that chunks are planned by tid.
 *
 * COPY locks the indexes of what it reads, where a REINDEX may be waiting, and the
 * relations below a view.  EXPLAIN of the same statement takes and keeps these
 * locks, so every connection runs it before its first claim: the leader's asks
 * again while somebody is in the way, the others do not wait behind anybody.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "deparse.h"
#include "miscadmin.h"
#include "snapshot.h"

/* How long the control connection keeps asking for an index lock. */
#define PIN_PATIENCE_MS		60000

/* ----------
 * The leader's connection
 * ----------
 */

/*
 * EXPLAIN of the statements, and of chunks under their settings and arbitrary
 * bounds.  It locks the indexes and keeps them locked, and shows the plans.
 */
static void
append_explain(StringInfo buf, const SnapshotLock *lock)
{
	int			i;

	appendStringInfoString(buf, "SET LOCAL lock_timeout = '1s'; ");
	if (lock->chunked)
		appendStringInfoString(buf, SNAPSHOT_CHUNK_SETTINGS
							   "SELECT set_config('tidrange.lo', '(0,0)', true), "
							   "set_config('tidrange.hi', '(1,0)', true); ");
	for (i = 0; i < lock->nleaves; i++)
		appendStringInfo(buf, "EXPLAIN (COSTS OFF) %s; ", lock->selects[i]);
	appendStringInfoString(buf, "SET LOCAL lock_timeout = 0");
}

/* Does the EXPLAIN output read the relation by tid? */
static bool
is_tid_plan(PGresult *result)
{
	int			row;

	for (row = 0; row < PQntuples(result); row++)
	{
		const char *line = PQgetvalue(result, row, 0);

		if (strstr(line, "Tid Range Scan on") || strstr(line, "Tid Scan on"))
			return true;
		/* A constant-false qual reads nothing, which is as well. */
		if (strstr(line, "One-Time Filter"))
			return true;
	}
	return false;
}

/* Does the EXPLAIN output say that constraints leave nothing to be read? */
static bool
is_empty_plan(PGresult *result)
{
	return PQntuples(result) >= 2 &&
		strcmp(PQgetvalue(result, 0, 0), "Result") == 0 &&
		strcmp(PQgetvalue(result, 1, 0), "  One-Time Filter: false") == 0;
}

/*
 * Are all leaves that have bounds read by tid?  Tells in `excluded`, if it is not
 * NULL, which are not read at all.
 */
static bool
look_at_plans(Connection *conn, const SnapshotLock *lock, bool *excluded)
{
	bool		by_tid = true;
	int			position = 0;
	int			i;

	for (i = 0; i < lock->nleaves; i++)
	{
		PGresult   *result = snapshot_next_result(conn, "QUERY PLAN", &position);

		if (result == NULL)
			elog(ERROR, "remote server sent no result \"%s\"", "QUERY PLAN");
		if (excluded != NULL)
			excluded[i] = is_empty_plan(result);
		if (!lock->leaves[i].whole && !is_tid_plan(result))
			by_tid = false;
	}
	return by_tid;
}

/*
 * Raise an error if row-level security hides rows from the remote user, in the
 * relation or in one that a view reads: the remote itself knows best.
 */
void
snapshot_refuse_row_security(Connection *conn, const char *from)
{
	WaitLimits	limits = {0};
	RemoteError error;
	char	   *sql;

	sql = psprintf("SET LOCAL row_security = off; EXPLAIN SELECT FROM %s; "
				   CONNECTION_TO_SAVEPOINT, from);
	if (!connection_exec(conn, sql, &limits, &error))
		connection_report(ERROR, &error, conn->pool, sql);
	connection_clear_results(conn);
	pfree(sql);
}

/*
 * Let the leader's connection take the locks that reading needs beyond the
 * table's: those on indexes, or any lock at all where LOCK TABLE is refused.
 * Asks again while somebody holds an index (REINDEX), then raises the error.
 *
 * Returns whether the statements with bounds are planned by tid, and in `excluded`
 * which leaves need not be read.
 */
bool
snapshot_pin(Connection *conn, const SnapshotLock *lock, bool *excluded)
{
	ConnectionPool *pool = conn->pool;
	TimestampTz patience = connection_deadline(PIN_PATIENCE_MS);
	WaitLimits	limits = {0};
	RemoteError error;
	StringInfoData sql;
	bool		by_tid;

	initStringInfo(&sql);
	append_explain(&sql, lock);
	if (lock->chunked)
		appendStringInfoString(&sql, "; " SNAPSHOT_RESET_CHUNK_SETTINGS);
	appendStringInfoString(&sql, "; " CONNECTION_MOVE_SAVEPOINT);
	if (lock->others_locked)
		appendStringInfoString(&sql, "; " SNAPSHOT_REWRITTEN_QUERY);

	for (;;)
	{
		WaitLimits	recover_limits;

		if (connection_exec(conn, sql.data, &limits, &error))
			break;
		recover_limits = connection_limits(CONNECTION_RECOVER_MS);
		if (error.sqlstate == ERRCODE_UNDEFINED_TABLE && lock->others_locked)
			ereport(ERROR,
					(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
					 errmsg("partitions of remote table %s were removed after the snapshot was taken",
							lock->name),
					 errdetail("The remote server reports: %s.", error.message),
					 errhint("Retry the transaction.")));
		if (!connection_recover(conn, &recover_limits) ||
			error.sqlstate != ERRCODE_LOCK_NOT_AVAILABLE ||
			GetCurrentTimestamp() > patience)
			connection_report(ERROR, &error, pool, sql.data);
		CHECK_FOR_INTERRUPTS();
	}

	if (lock->others_locked)
		snapshot_check_not_rewritten(lock->name, snapshot_was_rewritten(conn));
	by_tid = look_at_plans(conn, lock, excluded);
	connection_clear_results(conn);
	pfree(sql.data);
	return by_tid;
}

/* ----------
 * Every other connection
 * ----------
 */

/* LOCK TABLE ONLY a, ONLY b IN ACCESS SHARE MODE NOWAIT */
static void
append_leaf_locks(StringInfo buf, const SnapshotLock *lock)
{
	bool		first = true;
	int			i;

	for (i = 0; i < lock->nleaves; i++)
	{
		const RemoteLeaf *leaf = &lock->leaves[i];

		if (!leaf->lockable)
			continue;
		appendStringInfo(buf, "%s%s%s", first ? "LOCK TABLE " : ", ",
						 leaf->lock_only ? "ONLY " : "", leaf->name);
		first = false;
	}
	if (!first)
		appendStringInfoString(buf, " IN ACCESS SHARE MODE NOWAIT; ");
}

/* How many leaves' names or files are others than those that were measured. */
static void
append_leaf_check(StringInfo buf, const SnapshotLock *lock)
{
	int			i;

	appendStringInfoString(buf, "SELECT count(*) AS replaced FROM (VALUES ");
	for (i = 0; i < lock->nleaves; i++)
	{
		const RemoteLeaf *leaf = &lock->leaves[i];

		appendStringInfoString(buf, i > 0 ? ", (" : "(");
		deparse_string_literal(buf, leaf->name);
		appendStringInfo(buf, ", '%u'::oid, '%u'::oid)",
						 leaf->oid, leaf->filenode);
	}
	appendStringInfoString(buf, ") v(name, oid, filenode) "
						   "WHERE v.oid <> v.name::regclass::oid "
						   "OR v.filenode <> coalesce(pg_relation_filenode(v.oid), 0)");
}

/*
 * Lock the leaves on `conn`, which has adopted the snapshot, without waiting
 * behind anybody, and check that their names mean what was measured.  False with
 * `error` set if they cannot be had now; an ERROR if one is another now.
 */
bool
snapshot_lock(Connection *conn, const SnapshotLock *lock,
			  const WaitLimits *limits, RemoteError *error)
{
	StringInfoData sql;

	if (list_member_oid(conn->locked, lock->key) || lock->nleaves == 0)
		return true;

	initStringInfo(&sql);
	append_leaf_locks(&sql, lock);
	append_explain(&sql, lock);
	appendStringInfoString(&sql, "; ");
	append_leaf_check(&sql, lock);
	if (conn->is_control && lock->chunked)
		appendStringInfoString(&sql, "; " SNAPSHOT_RESET_CHUNK_SETTINGS);
	appendStringInfoString(&sql, "; " CONNECTION_MOVE_SAVEPOINT);
	if (!lock->chunked)
		appendStringInfoString(&sql, "; " SNAPSHOT_REWRITTEN_QUERY);
	if (!connection_exec(conn, sql.data, limits, error))
		return false;

	if (strcmp(PQgetvalue(snapshot_find_result(conn, "replaced"), 0, 0), "0") != 0)
		ereport(ERROR,
				(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
				 errmsg("remote table %s is another one now than when the scan began",
						lock->name),
				 errhint("Retry the transaction.")));
	/* One statement may read more than the named relation: its children. */
	if (!lock->chunked)
		snapshot_check_not_rewritten(lock->name, snapshot_was_rewritten(conn));
	if (!conn->is_control)
		conn->chunk_settings = conn->chunk_settings || lock->chunked;
	if (lock->chunked && !look_at_plans(conn, lock, NULL))
		ereport(DEBUG1,
				(errmsg_internal("tidrange_fdw: remote plan of a chunk of %s is not a Tid Range Scan",
								 lock->name)));
	connection_note_lock(conn, lock->key);
	connection_clear_results(conn);
	pfree(sql.data);
	return true;
}
