/*-------------------------------------------------------------------------
 *
 * connection.h
 *	  Remote sessions of this process: opened, used, accounted for.
 *
 *-------------------------------------------------------------------------
 */
#ifndef TIDRANGE_CONNECTION_H
#define TIDRANGE_CONNECTION_H

#include "foreign/foreign.h"
#include "lib/ilist.h"
#include "libpq-fe.h"
#include "storage/latch.h"
#include "utils/timestamp.h"

/*
 * What went wrong on the remote or on the way to it.  Functions here return
 * errors instead of raising them, so that the caller decides whether a refused
 * connection ends the query, is waited out, or does not matter (planning).
 * Strings are in the memory context that was current.
 */
typedef struct RemoteError
{
	int			sqlstate;		/* 0: no error */
	bool		stopped;		/* not an error: the wait was stopped */
	bool		timed_out;		/* the deadline passed */
	char	   *message;
	char	   *detail;
	char	   *hint;
	char	   *context;
	char	   *sql;			/* the command that failed; NULL: none */
} RemoteError;

/* Bounds of a wait.  All zero: until it is over or the query is cancelled. */
typedef struct WaitLimits
{
	TimestampTz deadline;		/* 0: none */
	bool		(*stop) (void *arg);	/* polled; true ends the wait */
	void	   *stop_arg;
	bool		no_wait;		/* take what is there; if that is nothing, be
								 * stopped */
	bool		no_interrupts;	/* in callbacks that must not raise an error;
								 * needs a deadline */
} WaitLimits;

/* Where a connection must go: to the same server as another one. */
typedef struct ConnectionPeer
{
	char	   *host;
	char	   *hostaddr;		/* NULL or empty: not TCP */
	char	   *port;
} ConnectionPeer;

typedef struct ConnectionPool ConnectionPool;

/* One remote session. */
typedef struct Connection
{
	dlist_node	node;			/* in its pool */
	ConnectionPool *pool;
	PGconn	   *pg;
	WaitEventSet *events;		/* latch, postmaster death, socket */
	bool		is_control;		/* holds the locks and exports the snapshot */
	bool		in_transaction; /* our remote transaction is open */
	bool		dirty;			/* its stream was abandoned in mid-answer */
	bool		has_savepoint;	/* its standing savepoint exists */
	bool		chunk_settings; /* planner settings of chunks are in force */
	struct Connection **borrower;	/* the pointer to us of the stream that
									 * reads from us; NULL: free */
	bool		parkable;		/* and that stream belongs to a scan */
	List	   *locked;			/* remote OIDs it has locked and checked */
	PGresult  **results;		/* of the last connection_exec */
	int			nresults;
	int			maxresults;
	/* what it cost */
	uint64		round_trips;
	double		wait_seconds;	/* spent waiting for the remote */
} Connection;

/* All sessions of this process that were made from one user mapping. */
struct ConnectionPool
{
	Oid			serverid;
	Oid			userid;			/* whose mapping it is; InvalidOid: public */
	bool		invalidated;	/* server or mapping was altered */
	uint32		server_hash;	/* hash values in the syscache, */
	uint32		mapping_hash;	/* to recognize an invalidation */
	dlist_head	connections;
	Connection *control;		/* NULL: none */
	struct RemoteSnapshot *snapshot;	/* of this transaction; NULL: none */
	TimestampTz silent_until;	/* planning does not try to connect before */
	bool		snapshot_lost;	/* the control connection broke in this
								 * transaction */
};

/*
 * The savepoint that stands in every remote transaction of ours once it has its
 * snapshot.  Whatever is cancelled or fails afterwards, going back to it leaves
 * snapshot and table locks in place.  A savepoint made along with each command
 * would not do: the cancel might come before it.  To keep a lock, the savepoint
 * is moved beyond it.
 */
#define CONNECTION_SET_SAVEPOINT	"SAVEPOINT tidrange_base"
#define CONNECTION_TO_SAVEPOINT		"ROLLBACK TO SAVEPOINT tidrange_base"
#define CONNECTION_MOVE_SAVEPOINT \
	"RELEASE SAVEPOINT tidrange_base; SAVEPOINT tidrange_base"

/* How often the caller's condition is looked at while waiting. */
#define CONNECTION_STOP_POLL_MS	100

/* Patience with a cancelled command, where the transaction goes on. */
#define CONNECTION_RECOVER_MS	5000

/* GUC tidrange_fdw.log_remote_sql */
extern bool connection_log_sql;


extern ConnectionPool *connection_pool(Oid userid, Oid serverid);


extern Connection *connection_open(ConnectionPool *pool,
								   const ConnectionPeer *peer,
								   const char *role, const WaitLimits *limits,
								   RemoteError *error);
extern void connection_return(Connection *conn);
extern void connection_close(Connection *conn);
extern Connection *connection_control(ConnectionPool *pool,
									  const WaitLimits *limits,
									  RemoteError *error);
extern void connection_lose_control(ConnectionPool *pool);
extern bool connection_drain(Connection *conn, const WaitLimits *limits,
							 RemoteError *error);
extern bool connection_recover(Connection *conn, const WaitLimits *limits);
extern void connection_note_lock(Connection *conn, Oid oid);

extern bool connection_send(Connection *conn, const char *sql,
							const WaitLimits *limits, RemoteError *error);
extern bool connection_wait(Connection *conn, uint32 io,
							const WaitLimits *limits, RemoteError *error);
extern bool connection_consume(Connection *conn);
extern PGresult *connection_get_result(Connection *conn,
									   const WaitLimits *limits,
									   RemoteError *error);
extern bool connection_exec(Connection *conn, const char *sql,
							const WaitLimits *limits, RemoteError *error);
extern void connection_clear_results(Connection *conn);
extern bool connection_is_local(const Connection *conn);
extern int	connection_server_version(const Connection *conn);

extern void connection_fill_error(RemoteError *error, const Connection *conn,
								  const PGresult *result);
extern void connection_report(int elevel, const RemoteError *error,
							  ConnectionPool *pool, const char *sql);
extern TimestampTz connection_deadline(int milliseconds);

/* Limits that end that many milliseconds from now. */
static inline WaitLimits
connection_limits(int milliseconds)
{
	WaitLimits	limits = {0};

	limits.deadline = connection_deadline(milliseconds);
	return limits;
}

#endif							/* TIDRANGE_CONNECTION_H */
