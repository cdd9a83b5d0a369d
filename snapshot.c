/*-------------------------------------------------------------------------
 *
 * snapshot.c
 *	  Gives all participants one view of the remote: lock, export, adopt.
 *
 * The control connection of a local transaction runs, in this order,
 *
 *	 START TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY; SET LOCAL ...
 *	 LOCK TABLE ... IN ACCESS SHARE MODE   (all tables of the statement)
 *	 SELECT pg_export_snapshot(), ...      (the first query takes the snapshot)
 *	 SELECT the relation's blocks and columns
 *
 * and every other connection
 *
 *	 START TRANSACTION ...; SET LOCAL ...; SET TRANSACTION SNAPSHOT
 *	 LOCK TABLE ... NOWAIT; identity; EXPLAIN of what it will read
 *
 * The order is the whole point.  LOCK TABLE and SET take no snapshot, any SELECT
 * does.  Without the lock, or with a snapshot older than the lock, a TRUNCATE or
 * VACUUM FULL by somebody else empties the table under the snapshot and nobody
 * notices.  Measured before the snapshot, rows in new blocks are lost.
 *
 * A table that is met after the snapshot was taken, or that LOCK TABLE refuses,
 * is compared once it is locked: the file that the snapshot's catalog names must
 * be the present one, for it and for whatever was locked with it (the leaves of a
 * partitioned table, the tables under a view).
 *
 * Nobody waits behind queued DDL: an ALTER TABLE that waits for the control
 * connection would block every later ACCESS SHARE, and the remote deadlock
 * detector cannot see that the control connection waits for us.  Hence NOWAIT,
 * and hence the EXPLAIN under a lock_timeout: it takes the locks on the indexes
 * beforehand, where a REINDEX may be waiting.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "deparse.h"
#include "option.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "snapshot.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"

/* How long it waits for a table's lock while other streams are open, when the
 * remote deadlock detector cannot see everything. */
#define LATE_LOCK_TIMEOUT	"10s"

/* As far back as pg_inherits says which partitions are being detached. */
#define FIRST_VERSION_WITH_LEAVES	140000

#define START_TRANSACTION \
	"START TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY; "

/* Server, database and user as one text that can be compared. */
#define IDENTITY_EXPRESSION \
	"(SELECT system_identifier FROM pg_control_system())::text || ' ' || " \
	"extract(epoch FROM pg_postmaster_start_time())::text || ' ' || " \
	"(SELECT oid FROM pg_database WHERE datname = current_database())::text || ' ' || " \
	"current_user"

/* ----------
 * Settings
 * ----------
 */

/*
 * Pin everything that changes how values are written or which rows are found.
 * SET LOCAL, inside the transaction: behind a pooler nothing is left behind.
 * Timeouts are off, since an idle timeout would kill the holder of the
 * snapshot; in exchange the remote looks after dead clients.
 */
static void
append_settings(StringInfo buf, Connection *conn)
{
	int			server_version = connection_server_version(conn);
	const char *encoding = PQparameterStatus(conn->pg, "server_encoding");

	appendStringInfoString(buf,
						   "SET LOCAL statement_timeout = 0; "
						   "SET LOCAL lock_timeout = 0; "
						   "SET LOCAL idle_in_transaction_session_timeout = 0; "
						   "SET LOCAL search_path = pg_catalog; "
						   "SET LOCAL datestyle = 'ISO'; "
						   "SET LOCAL intervalstyle = 'postgres'; "
						   "SET LOCAL timezone = 'UTC'; "
						   "SET LOCAL extra_float_digits = 3; "
						   "SET LOCAL bytea_output = 'hex'; "
						   "SET LOCAL xmlbinary = 'base64'; "
						   "SET LOCAL array_nulls = on; "
						   "SET LOCAL transform_null_equals = off; "
						   "SET LOCAL standard_conforming_strings = on; "
						   "SET LOCAL quote_all_identifiers = off; "
						   "SET LOCAL tcp_keepalives_idle = 30; "
						   "SET LOCAL tcp_keepalives_interval = 10; "
						   "SET LOCAL tcp_keepalives_count = 3; ");

	/*
	 * Such a database may hold any bytes.  They are looked at here, where the
	 * column is known, not by the remote, which would only say that one is bad.
	 */
	if (encoding != NULL && strcmp(encoding, "SQL_ASCII") == 0)
		appendStringInfoString(buf, "SET LOCAL client_encoding = 'SQL_ASCII'; ");
	if (server_version >= 120000)
		appendStringInfoString(buf, "SET LOCAL tcp_user_timeout = '60s'; ");
	if (server_version >= 140000)
		appendStringInfoString(buf,
							   "SET LOCAL idle_session_timeout = 0; "
							   "SET LOCAL client_connection_check_interval = '1s'; ");
	if (server_version >= 170000)
		appendStringInfoString(buf, "SET LOCAL transaction_timeout = 0; ");
}

/* LOCK TABLE a, ONLY b IN ACCESS SHARE MODE */
static void
append_lock(StringInfo buf, List *tables)
{
	ListCell   *lc;
	bool		first = true;

	appendStringInfoString(buf, "LOCK TABLE ");
	foreach(lc, tables)
	{
		RemoteTable *table = lfirst(lc);

		appendStringInfo(buf, "%s%s%s", first ? "" : ", ",
						 table->only || table->shallow ? "ONLY " : "",
						 table->name);
		first = false;
	}
	appendStringInfoString(buf, " IN ACCESS SHARE MODE; ");
}

/* May the lock be had some other way?  (No such kind, no right to it.) */
static bool
is_lock_refusal(const RemoteError *error)
{
	return error->sqlstate == ERRCODE_WRONG_OBJECT_TYPE ||
		error->sqlstate == ERRCODE_INSUFFICIENT_PRIVILEGE ||
		error->sqlstate == ERRCODE_FEATURE_NOT_SUPPORTED;
}

/* ----------
 * The control connection
 * ----------
 */

/* A RemoteTable that is only a name yet. */
static RemoteTable *
name_table(const SnapshotWish *wish)
{
	RemoteTable *table = palloc0(sizeof(RemoteTable));
	TableOptions options;

	option_resolve_table(wish->relid, &options);
	table->relid = wish->relid;
	table->only = options.only;
	table->shallow = wish->shallow;
	table->list_leaves = wish->list_leaves;
	table->name = deparse_foreign_table(wish->relid);
	return table;
}

/* Run `sql` on the control connection or raise its error. */
static void
control_exec(ConnectionPool *pool, const char *sql)
{
	WaitLimits	limits = {0};
	RemoteError error;

	if (!connection_exec(pool->control, sql, &limits, &error))
		connection_report(ERROR, &error, pool, sql);
}

/* Bring the control connection to a fresh transaction with our settings. */
static void
start_transaction(ConnectionPool *pool)
{
	WaitLimits	limits = {0};
	RemoteError error;
	StringInfoData sql;
	Connection *conn = connection_control(pool, &limits, &error);

	if (conn == NULL)
		connection_report(ERROR, &error, pool, NULL);

	/* A failed attempt of this transaction may have left one open. */
	if (PQtransactionStatus(conn->pg) == PQTRANS_ACTIVE)
	{
		WaitLimits	recover_limits = connection_limits(CONNECTION_RECOVER_MS);

		conn->has_savepoint = false;
		if (!connection_recover(conn, &recover_limits))
		{
			start_transaction(pool);
			return;
		}
	}
	if (PQtransactionStatus(conn->pg) != PQTRANS_IDLE)
		control_exec(pool, "ROLLBACK TRANSACTION");

	initStringInfo(&sql);
	appendStringInfoString(&sql, START_TRANSACTION);
	append_settings(&sql, conn);

	/*
	 * A cached session may have died while it was idle.  Nothing was promised
	 * yet, so a new one serves as well: once.
	 */
	conn->in_transaction = true;
	if (!connection_exec(conn, sql.data, &limits, &error))
	{
		bool		lost = PQstatus(conn->pg) != CONNECTION_OK;

		if (!lost)
			connection_report(ERROR, &error, pool, sql.data);
		ereport(DEBUG1,
				(errmsg_internal("tidrange_fdw: cached connection was lost, reconnecting: %s",
								 error.message)));
		connection_close(conn);
		conn = connection_control(pool, &limits, &error);
		if (conn == NULL)
			connection_report(ERROR, &error, pool, NULL);
		conn->in_transaction = true;
		control_exec(pool, sql.data);
	}
	pfree(sql.data);
}

/* The statement that takes the snapshot, and what is measured under it. */
static void
append_measure(StringInfo buf, const Connection *conn, List *tables,
			   bool export)
{
	bool		list_leaves = false;
	ListCell   *lc;

	if (export)
		appendStringInfoString(buf, "SELECT pg_export_snapshot(), "
							   IDENTITY_EXPRESSION " AS identity; ");
	remote_table_describe_sql(buf, tables);
	appendStringInfoString(buf, "; ");
	remote_table_columns_sql(buf, tables);
	foreach(lc, tables)
		list_leaves |= ((RemoteTable *) lfirst(lc))->list_leaves;
	if (list_leaves &&
		connection_server_version(conn) >= FIRST_VERSION_WITH_LEAVES)
	{
		appendStringInfoString(buf, "; ");
		remote_leaves_sql(buf, tables);
	}
}

/*
 * Lock and measure `tables` in one message.  False if a lock was refused, or
 * if one of several tables could not be had; the remote transaction has failed
 * then.
 */
static bool
lock_and_measure(ConnectionPool *pool, List *tables, RemoteError *error,
				 char **sql_text)
{
	WaitLimits	limits = {0};
	StringInfoData sql;

	initStringInfo(&sql);
	append_lock(&sql, tables);
	/* What fails is nearly always the lock: the rest would hide it. */
	*sql_text = pstrdup(sql.data);
	append_measure(&sql, pool->control, tables, true);
	appendStringInfoString(&sql, "; " CONNECTION_SET_SAVEPOINT);
	return connection_exec(pool->control, sql.data, &limits, error);
}

/*
 * Lock the tables one by one, noting those that refuse it, and measure.
 * The transaction has just been started.
 */
static void
lock_singly_and_measure(ConnectionPool *pool, List *tables)
{
	WaitLimits	limits = {0};
	StringInfoData sql;
	ListCell   *lc;

	initStringInfo(&sql);
	control_exec(pool, CONNECTION_SET_SAVEPOINT);
	foreach(lc, tables)
	{
		RemoteTable *table = lfirst(lc);
		RemoteError error;

		resetStringInfo(&sql);
		append_lock(&sql, list_make1(table));
		appendStringInfoString(&sql, CONNECTION_MOVE_SAVEPOINT);
		if (connection_exec(pool->control, sql.data, &limits, &error))
			continue;
		if (!is_lock_refusal(&error))
			connection_report(ERROR, &error, pool, sql.data);
		table->lock_refused = true;
		control_exec(pool, CONNECTION_TO_SAVEPOINT);
	}

	/* A snapshot cannot be exported from a subtransaction. */
	resetStringInfo(&sql);
	appendStringInfoString(&sql, "RELEASE SAVEPOINT tidrange_base; ");
	append_measure(&sql, pool->control, tables, true);
	appendStringInfoString(&sql, "; " CONNECTION_SET_SAVEPOINT);
	control_exec(pool, sql.data);
}

/*
 * The first result at or after *position whose last column has that name;
 * *position is moved beyond it.  NULL if there is none.
 */
PGresult *
snapshot_next_result(Connection *conn, const char *name, int *position)
{
	while (*position < conn->nresults)
	{
		PGresult   *result = conn->results[(*position)++];
		int			nfields = PQnfields(result);

		if (nfields > 0 && strcmp(PQfname(result, nfields - 1), name) == 0)
			return result;
	}
	return NULL;
}

/* The first result whose last column has that name. */
PGresult *
snapshot_find_result(Connection *conn, const char *name)
{
	int			position = 0;
	PGresult   *result = snapshot_next_result(conn, name, &position);

	if (result == NULL)
		elog(ERROR, "remote server sent no result \"%s\"", name);
	return result;
}

/* What append_measure asked for, in the current memory context. */
static void
parse_measure(Connection *conn, List *tables)
{
	int			position = 0;

	remote_table_parse(tables, snapshot_find_result(conn, "unchanged"),
					   snapshot_find_result(conn, "output_function"),
					   snapshot_next_result(conn, "leaf_name", &position));
}

/* The answer to SNAPSHOT_REWRITTEN_QUERY. */
bool
snapshot_was_rewritten(Connection *conn)
{
	PGresult   *result = snapshot_find_result(conn, "rewritten");

	return strcmp(PQgetvalue(result, 0, 0), "0") != 0;
}

/* Remember what the control connection has locked and measured. */
static void
keep_snapshot(ConnectionPool *pool, List *tables)
{
	Connection *conn = pool->control;
	PGresult   *exported = snapshot_find_result(conn, "identity");
	MemoryContext oldcontext = MemoryContextSwitchTo(TopTransactionContext);
	RemoteSnapshot *snapshot = palloc0(sizeof(RemoteSnapshot));
	SnapshotTicket *ticket = &snapshot->ticket;
	const char *hostaddr = PQhostaddr(conn->pg);
	ListCell   *lc;

	snapshot->context = TopTransactionContext;
	ticket->id = pstrdup(PQgetvalue(exported, 0, 0));
	ticket->identity = pstrdup(PQgetvalue(exported, 0, 1));
	ticket->peer.host = pstrdup(PQhost(conn->pg));
	ticket->peer.hostaddr = pstrdup(hostaddr ? hostaddr : "");
	ticket->peer.port = pstrdup(PQport(conn->pg));
	ticket->server_version = connection_server_version(conn);
	snapshot->tables = list_copy(tables);
	parse_measure(conn, tables);
	MemoryContextSwitchTo(oldcontext);
	pool->snapshot = snapshot;
	conn->has_savepoint = true;
	foreach(lc, tables)
	{
		RemoteTable *table = lfirst(lc);

		if (table->found && !table->lock_refused)
			connection_note_lock(conn, table->oid);
	}
}

/* Raise an error unless the snapshot's file of the table is the present one. */
void
snapshot_check_not_rewritten(const char *name, bool rewritten)
{
	if (rewritten)
		ereport(ERROR,
				(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
				 errmsg("remote table %s was rewritten after the snapshot was taken",
						name),
				 errdetail("Its present file holds no rows that this transaction can see."),
				 errhint("Retry the transaction.")));
}

/* The table among those that are to be locked. */
static RemoteTable *
find_named(List *tables, Oid relid)
{
	ListCell   *lc;

	foreach(lc, tables)
	{
		RemoteTable *table = lfirst(lc);

		if (table->relid == relid)
			return table;
	}
	return NULL;
}

/*
 * Take the transaction's snapshot of the remote with the table that is wished for
 * locked and measured.  `others` (SnapshotWish) are further tables that the
 * statement will need: they are locked along with it, before the snapshot is taken.
 */
void
snapshot_take(ConnectionPool *pool, const SnapshotWish *wish, List *others)
{
	MemoryContext oldcontext = MemoryContextSwitchTo(TopTransactionContext);
	List	   *tables = list_make1(name_table(wish));
	RemoteTable *first = linitial(tables);
	RemoteError error;
	char	   *sql;
	ListCell   *lc;

	foreach(lc, others)
	{
		SnapshotWish *other = lfirst(lc);
		RemoteTable *table = find_named(tables, other->relid);

		if (table == NULL)
			tables = lappend(tables, name_table(other));
		else
		{
			table->shallow = table->shallow && other->shallow;
			table->list_leaves = table->list_leaves || other->list_leaves;
		}
	}
	MemoryContextSwitchTo(oldcontext);

	start_transaction(pool);
	if (!lock_and_measure(pool, tables, &error, &sql))
	{
		/*
		 * Another table of the statement may be the reason, one that run-time
		 * pruning would have skipped: go on with the one that is needed.
		 */
		if (!is_lock_refusal(&error) && list_length(tables) == 1)
			connection_report(ERROR, &error, pool, sql);
		if (!is_lock_refusal(&error))
			tables = list_truncate(tables, 1);
		start_transaction(pool);
		lock_singly_and_measure(pool, tables);
	}
	keep_snapshot(pool, tables);
	snapshot_check_not_rewritten(first->name, !first->found);
}

/* Is a stream open on any connection of the pool? */
static bool
has_open_streams(ConnectionPool *pool)
{
	dlist_iter	iter;

	dlist_foreach(iter, &pool->connections)
	{
		if (dlist_container(Connection, node, iter.cur)->borrower != NULL)
			return true;
	}
	return false;
}

/*
 * Lock and measure one more table under the snapshot that this transaction has.
 * `conn` is the control connection or one that has adopted its snapshot, and
 * free.  Raises errors.
 */
RemoteTable *
snapshot_add_table(Connection *conn, const SnapshotWish *wish)
{
	ConnectionPool *pool = conn->pool;
	RemoteSnapshot *snapshot = pool->snapshot;
	MemoryContext oldcontext = MemoryContextSwitchTo(snapshot->context);
	SnapshotWish deep = *wish;
	RemoteTable *table;
	WaitLimits	limits = {0};
	RemoteError error;
	StringInfoData sql;
	bool		rewritten = false;

	deep.shallow = false;
	table = name_table(&deep);
	MemoryContextSwitchTo(oldcontext);
	initStringInfo(&sql);
	if (has_open_streams(pool))
		appendStringInfoString(&sql, "SET LOCAL lock_timeout = '"
							   LATE_LOCK_TIMEOUT "'; ");
	append_lock(&sql, list_make1(table));
	appendStringInfoString(&sql, "SET LOCAL lock_timeout = 0; ");
	append_measure(&sql, conn, list_make1(table), false);
	appendStringInfoString(&sql, "; " SNAPSHOT_REWRITTEN_QUERY "; "
						   CONNECTION_MOVE_SAVEPOINT);

	if (connection_exec(conn, sql.data, &limits, &error))
		rewritten = snapshot_was_rewritten(conn);
	else
	{
		WaitLimits	recover_limits = connection_limits(CONNECTION_RECOVER_MS);
		bool		usable = connection_recover(conn, &recover_limits);

		if (!usable || !is_lock_refusal(&error))
			connection_report(ERROR, &error, pool, sql.data);
		table->lock_refused = true;
		resetStringInfo(&sql);
		append_measure(&sql, conn, list_make1(table), false);
		if (!connection_exec(conn, sql.data, &limits, &error))
			connection_report(ERROR, &error, pool, sql.data);
	}

	oldcontext = MemoryContextSwitchTo(snapshot->context);
	parse_measure(conn, list_make1(table));
	MemoryContextSwitchTo(oldcontext);
	snapshot_check_not_rewritten(table->name, rewritten || !table->found);
	oldcontext = MemoryContextSwitchTo(snapshot->context);
	snapshot->tables = lappend(snapshot->tables, table);
	MemoryContextSwitchTo(oldcontext);
	if (!table->lock_refused)
		connection_note_lock(conn, table->oid);
	return table;
}

/*
 * The foreign table as this transaction's snapshot sees it, locked and measured as
 * it is wished for; NULL if it was not asked for yet.
 */
RemoteTable *
snapshot_find_table(ConnectionPool *pool, const SnapshotWish *wish)
{
	ListCell   *lc;

	if (pool->snapshot == NULL)
		return NULL;
	foreach(lc, pool->snapshot->tables)
	{
		RemoteTable *table = lfirst(lc);

		if (table->relid == wish->relid &&
			remote_table_serves(table, wish->shallow, wish->list_leaves))
			return table;
	}
	return NULL;
}

/* ----------
 * Every other connection
 * ----------
 */

/*
 * Give `conn`, fresh or at rest, the snapshot of the ticket.  It must be told
 * before anything that takes a snapshot of its own.
 */
bool
snapshot_adopt(Connection *conn, const SnapshotTicket *ticket,
			   const WaitLimits *limits, RemoteError *error)
{
	StringInfoData sql;
	bool		done;

	initStringInfo(&sql);
	if (conn->in_transaction)
		appendStringInfoString(&sql, "ROLLBACK TRANSACTION; ");
	appendStringInfoString(&sql, START_TRANSACTION);
	append_settings(&sql, conn);
	appendStringInfoString(&sql, "SET TRANSACTION SNAPSHOT ");
	deparse_string_literal(&sql, ticket->id);

	list_free(conn->locked);
	conn->locked = NIL;
	conn->in_transaction = true;
	conn->chunk_settings = false;
	conn->has_savepoint = false;
	done = connection_exec(conn, sql.data, limits, error);
	if (done)
	{
		resetStringInfo(&sql);
		appendStringInfoString(&sql, "SELECT " IDENTITY_EXPRESSION "; "
							   CONNECTION_SET_SAVEPOINT);
		done = connection_exec(conn, sql.data, limits, error);
	}
	if (done)
	{
		const char *identity = PQgetvalue(conn->results[0], 0, 0);

		conn->has_savepoint = true;

		/* A pooler or balancer may lead to where the same name means another
		 * snapshot. */
		if (strcmp(identity, ticket->identity) != 0)
			ereport(ERROR,
					(errcode(ERRCODE_FDW_ERROR),
					 errmsg("connections of one scan reach different servers, databases or users"),
					 errdetail("The leader's connection is to \"%s\", another one to \"%s\".",
							   ticket->identity, identity),
					 errhint("Point the foreign server at one PostgreSQL server instead of a list, a load balancer or a pooler.")));
	}
	pfree(sql.data);
	return done;
}

/* Does the connection lead to where the ticket is from? */
static bool
is_same_peer(const Connection *conn, const ConnectionPeer *peer)
{
	const char *hostaddr = PQhostaddr(conn->pg);

	return strcmp(PQhost(conn->pg), peer->host) == 0 &&
		strcmp(hostaddr ? hostaddr : "", peer->hostaddr) == 0 &&
		strcmp(PQport(conn->pg), peer->port) == 0;
}

/*
 * Let this transaction see the remote as another session of ours does: its
 * control connection adopts that one's snapshot.  NULL with `error` set if there
 * is no connection to be had.
 */
Connection *
snapshot_join(ConnectionPool *pool, const SnapshotTicket *ticket,
			  const WaitLimits *limits, RemoteError *error)
{
	Connection *conn = pool->control;
	RemoteSnapshot *snapshot;
	MemoryContext oldcontext;

	Assert(pool->snapshot == NULL);
	if (conn != NULL && (PQstatus(conn->pg) != CONNECTION_OK ||
						 !is_same_peer(conn, &ticket->peer)))
	{
		connection_close(conn);
		conn = NULL;
	}
	if (conn == NULL)
		conn = connection_open(pool, &ticket->peer, "leader", limits, error);
	if (conn == NULL)
		return NULL;
	conn->is_control = true;
	pool->control = conn;
	if (!snapshot_adopt(conn, ticket, limits, error))
	{
		connection_close(conn);
		return NULL;
	}
	oldcontext = MemoryContextSwitchTo(TopTransactionContext);
	snapshot = palloc0(sizeof(RemoteSnapshot));
	snapshot->context = TopTransactionContext;
	snapshot->ticket.id = pstrdup(ticket->id);
	snapshot->ticket.identity = pstrdup(ticket->identity);
	snapshot->ticket.peer.host = pstrdup(ticket->peer.host);
	snapshot->ticket.peer.hostaddr = pstrdup(ticket->peer.hostaddr);
	snapshot->ticket.peer.port = pstrdup(ticket->peer.port);
	snapshot->ticket.server_version = ticket->server_version;
	MemoryContextSwitchTo(oldcontext);
	pool->snapshot = snapshot;
	return conn;
}
