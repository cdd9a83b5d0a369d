/*-------------------------------------------------------------------------
 *
 * connection_pool.c
 *	  The remote sessions of this process, by user mapping, and their end.
 *
 * What must hold:
 *
 * - At the end of a local transaction the remote one ends too.  The control
 *	 connection, which holds locks and snapshot meanwhile, is kept for the next
 *	 one; all others are closed.
 * - A parallel worker closes everything when it leaves its transaction: PG_CATCH
 *	 blocks are skipped when a worker is terminated, transaction callbacks are
 *	 not.
 * - The control connection is never replaced within a transaction: a new one
 *	 would have another snapshot.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/xact.h"
#include "compat.h"
#include "connection.h"
#include "funcapi.h"
#include "miscadmin.h"
#include "option.h"
#include "storage/ipc.h"
#include "utils/builtins.h"
#include "utils/hsearch.h"
#include "utils/inval.h"
#include "utils/memutils.h"
#include "utils/syscache.h"
#include "utils/tuplestore.h"

TIDRANGE_FUNCTION(tidrange_fdw_get_connections);
TIDRANGE_FUNCTION(tidrange_fdw_disconnect);
TIDRANGE_FUNCTION(tidrange_fdw_disconnect_all);

/* Patience with a remote when a local transaction ends.  An abort must return
 * within two seconds, whatever the network does. */
#define END_COMMIT_MS			5000
#define END_ABORT_MS			1000

typedef struct PoolKey
{
	Oid			umid;
	Oid			userid;			/* a mapping for PUBLIC is checked per user */
} PoolKey;

typedef struct PoolEntry
{
	PoolKey		key;
	ConnectionPool pool;
} PoolEntry;

static HTAB *pools = NULL;

/* ----------
 * The control connection
 * ----------
 */

/*
 * The pool's control connection, opened if need be.  NULL with `error` set if
 * that failed.
 */
Connection *
connection_control(ConnectionPool *pool, const WaitLimits *limits,
				   RemoteError *error)
{
	Connection *conn = pool->control;

	if (pool->snapshot_lost)
	{
		memset(error, 0, sizeof(*error));
		error->sqlstate = ERRCODE_CONNECTION_FAILURE;
		error->message = pstrdup("connection to the remote server was lost");
		error->detail = pstrdup("The snapshot of this transaction was lost with it.");
		error->hint = pstrdup("Retry the transaction.");
		return NULL;
	}
	if (conn != NULL && !conn->in_transaction &&
		(pool->invalidated || PQstatus(conn->pg) != CONNECTION_OK))
	{
		connection_close(conn);
		conn = NULL;
	}
	if (conn != NULL)
		return conn;

	pool->invalidated = false;
	conn = connection_open(pool, NULL, "leader", limits, error);
	if (conn != NULL)
	{
		conn->is_control = true;
		pool->control = conn;
	}
	return conn;
}

/*
 * The control connection is of no more use.  If it held this transaction's
 * snapshot, nothing can be read in the transaction any more.
 */
void
connection_lose_control(ConnectionPool *pool)
{
	if (pool->control == NULL)
		return;
	if (pool->snapshot != NULL)
		pool->snapshot_lost = true;
	connection_close(pool->control);
}

/* ----------
 * The end of transactions
 * ----------
 */

/* End the remote transaction of the control connection, or its session. */
static void
end_control(ConnectionPool *pool, bool commit)
{
	Connection *conn = pool->control;
	WaitLimits	limits = {0};
	RemoteError error;
	bool		good = true;

	if (conn == NULL)
		return;
	limits.deadline = connection_deadline(commit ? END_COMMIT_MS : END_ABORT_MS);
	limits.no_interrupts = true;
	connection_return(conn);

	if (PQstatus(conn->pg) != CONNECTION_OK)
		good = false;
	conn->has_savepoint = false;
	if (good && PQtransactionStatus(conn->pg) == PQTRANS_ACTIVE &&
		!connection_recover(conn, &limits))
		return;
	if (good && PQtransactionStatus(conn->pg) != PQTRANS_IDLE)
		good = connection_exec(conn, commit ? "COMMIT TRANSACTION" :
							   "ROLLBACK TRANSACTION", &limits, &error);
	conn->in_transaction = false;
	conn->dirty = false;
	list_free(conn->locked);
	conn->locked = NIL;
	connection_clear_results(conn);
	if (!good || pool->invalidated)
		connection_close(conn);
}

/* Close what must not outlive the transaction; end it on the others. */
static void
end_transaction(bool commit, bool close_all)
{
	HASH_SEQ_STATUS scan;
	PoolEntry  *entry;

	hash_seq_init(&scan, pools);
	while ((entry = hash_seq_search(&scan)) != NULL)
	{
		ConnectionPool *pool = &entry->pool;
		dlist_mutable_iter iter;

		dlist_foreach_modify(iter, &pool->connections)
		{
			Connection *conn = dlist_container(Connection, node, iter.cur);

			if (close_all || !conn->is_control)
				connection_close(conn);
		}
		end_control(pool, commit);
		pool->snapshot = NULL;
		pool->snapshot_lost = false;
	}
}

/* keep_connections off: the control connection goes as well. */
static void
close_unwanted(void)
{
	HASH_SEQ_STATUS scan;
	PoolEntry  *entry;

	hash_seq_init(&scan, pools);
	while ((entry = hash_seq_search(&scan)) != NULL)
	{
		ForeignServer *server;

		if (entry->pool.control == NULL)
			continue;
		/* The server may have been dropped in this very transaction. */
		server = GetForeignServerExtended(entry->pool.serverid, FSV_MISSING_OK);
		if (server == NULL || !option_keep_connections(server))
			connection_close(entry->pool.control);
	}
}

static void
xact_callback(XactEvent event, void *arg)
{
	switch (event)
	{
		case XACT_EVENT_PARALLEL_PRE_COMMIT:
		case XACT_EVENT_PARALLEL_COMMIT:
		case XACT_EVENT_PARALLEL_ABORT:
			end_transaction(false, true);
			break;
		case XACT_EVENT_PRE_COMMIT:
		case XACT_EVENT_PRE_PREPARE:
			/* We have only read: PREPARE has nothing to wait for. */
			end_transaction(true, false);
			close_unwanted();
			break;
		case XACT_EVENT_ABORT:
			end_transaction(false, false);
			break;
		case XACT_EVENT_COMMIT:
		case XACT_EVENT_PREPARE:
			break;
	}
}

/*
 * A subtransaction that ended badly may have left a connection in mid-answer:
 * the scan's memory goes away, or a command was interrupted.  The remote must
 * stop now, not when somebody needs the connection.
 */
static void
subxact_callback(SubXactEvent event, SubTransactionId subid,
				 SubTransactionId parent_subid, void *arg)
{
	HASH_SEQ_STATUS scan;
	PoolEntry  *entry;

	if (event != SUBXACT_EVENT_ABORT_SUB)
		return;
	hash_seq_init(&scan, pools);
	while ((entry = hash_seq_search(&scan)) != NULL)
	{
		dlist_mutable_iter iter;

		dlist_foreach_modify(iter, &entry->pool.connections)
		{
			Connection *conn = dlist_container(Connection, node, iter.cur);

			if (conn->borrower != NULL || conn->pg == NULL ||
				PQtransactionStatus(conn->pg) != PQTRANS_ACTIVE)
				continue;
			if (conn->is_control)
			{
				WaitLimits	limits = connection_limits(END_ABORT_MS);

				limits.no_interrupts = true;
				connection_recover(conn, &limits);
			}
			else
				connection_close(conn);
		}
	}
}

/* Say goodbye: the remote would log a lost client. */
static void
shmem_exit_callback(int code, Datum arg)
{
	end_transaction(false, true);
}

/* An altered server or mapping must not be used with old parameters. */
static void
inval_callback(Datum arg, int cacheid, uint32 hashvalue)
{
	HASH_SEQ_STATUS scan;
	PoolEntry  *entry;

	hash_seq_init(&scan, pools);
	while ((entry = hash_seq_search(&scan)) != NULL)
	{
		ConnectionPool *pool = &entry->pool;

		if (hashvalue == 0 ||
			(cacheid == FOREIGNSERVEROID && pool->server_hash == hashvalue) ||
			(cacheid == USERMAPPINGOID && pool->mapping_hash == hashvalue))
			pool->invalidated = true;
	}
}

/* Make the table of pools and hook into transactions, once per process. */
static void
create_pools(void)
{
	HASHCTL		ctl = {0};

	ctl.keysize = sizeof(PoolKey);
	ctl.entrysize = sizeof(PoolEntry);
	pools = hash_create("tidrange_fdw connections", 8, &ctl,
						HASH_ELEM | HASH_BLOBS);
	RegisterXactCallback(xact_callback, NULL);
	RegisterSubXactCallback(subxact_callback, NULL);
	before_shmem_exit(shmem_exit_callback, (Datum) 0);
	CacheRegisterSyscacheCallback(FOREIGNSERVEROID, inval_callback, (Datum) 0);
	CacheRegisterSyscacheCallback(USERMAPPINGOID, inval_callback, (Datum) 0);
}

/*
 * The pool of `userid`'s mapping on the server.  Opens nothing.
 */
ConnectionPool *
connection_pool(Oid userid, Oid serverid)
{
	UserMapping *user = GetUserMapping(userid, serverid);
	PoolKey		key = {user->umid, userid};
	PoolEntry  *entry;
	bool		found;

	if (pools == NULL)
		create_pools();

	entry = hash_search(pools, &key, HASH_ENTER, &found);
	if (!found)
	{
		memset(&entry->pool, 0, sizeof(ConnectionPool));
		dlist_init(&entry->pool.connections);
		entry->pool.userid = userid;
		entry->pool.serverid = serverid;
		entry->pool.server_hash =
			GetSysCacheHashValue1(FOREIGNSERVEROID, ObjectIdGetDatum(serverid));
		entry->pool.mapping_hash =
			GetSysCacheHashValue1(USERMAPPINGOID, ObjectIdGetDatum(user->umid));
	}
	return &entry->pool;
}

/* ----------
 * SQL functions
 * ----------
 */

/*
 * tidrange_fdw_get_connections(): the open sessions of this process, a row each:
 * the server's name (NULL if it was dropped), whether the session belongs to the
 * running transaction, and the remote process.
 */
Datum
tidrange_fdw_get_connections(PG_FUNCTION_ARGS)
{
	ReturnSetInfo *rsinfo = (ReturnSetInfo *) fcinfo->resultinfo;
	HASH_SEQ_STATUS scan;
	PoolEntry  *entry;

	InitMaterializedSRF(fcinfo, 0);
	if (pools == NULL)
		return (Datum) 0;
	hash_seq_init(&scan, pools);
	while ((entry = hash_seq_search(&scan)) != NULL)
	{
		ForeignServer *server = GetForeignServerExtended(entry->pool.serverid,
														 FSV_MISSING_OK);
		dlist_iter	iter;

		dlist_foreach(iter, &entry->pool.connections)
		{
			Connection *conn = dlist_container(Connection, node, iter.cur);
			Datum		values[3];
			bool		nulls[3] = {false, false, false};

			values[0] = server ? CStringGetTextDatum(server->servername) : 0;
			nulls[0] = server == NULL;
			values[1] = BoolGetDatum(conn->in_transaction);
			values[2] = Int32GetDatum(PQbackendPID(conn->pg));
			tuplestore_putvalues(rsinfo->setResult, rsinfo->setDesc, values,
								 nulls);
		}
	}
	return (Datum) 0;
}

/* Close the idle sessions of the server (InvalidOid: of all). */
static bool
disconnect(Oid serverid)
{
	HASH_SEQ_STATUS scan;
	PoolEntry  *entry;
	bool		closed = false;

	if (pools == NULL)
		return false;
	hash_seq_init(&scan, pools);
	while ((entry = hash_seq_search(&scan)) != NULL)
	{
		Connection *conn = entry->pool.control;

		if (conn == NULL ||
			(OidIsValid(serverid) && entry->pool.serverid != serverid))
			continue;
		if (conn->in_transaction)
		{
			ereport(WARNING,
					(errmsg("cannot close a connection of server \"%s\" because it is in use by this transaction",
							GetForeignServer(entry->pool.serverid)->servername)));
			continue;
		}
		connection_close(conn);
		closed = true;
	}
	return closed;
}

/*
 * tidrange_fdw_disconnect(server_name): closes this process's sessions on the
 * server; true if there was one.
 */
Datum
tidrange_fdw_disconnect(PG_FUNCTION_ARGS)
{
	char	   *name = text_to_cstring(PG_GETARG_TEXT_PP(0));

	PG_RETURN_BOOL(disconnect(GetForeignServerByName(name, false)->serverid));
}

/*
 * tidrange_fdw_disconnect_all(): closes all of this process's sessions; true if
 * there was one.
 */
Datum
tidrange_fdw_disconnect_all(PG_FUNCTION_ARGS)
{
	PG_RETURN_BOOL(disconnect(InvalidOid));
}
