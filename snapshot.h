/*-------------------------------------------------------------------------
 *
 * snapshot.h
 *	  One view of the remote for all participants of a scan.
 *
 *-------------------------------------------------------------------------
 */
#ifndef TIDRANGE_SNAPSHOT_H
#define TIDRANGE_SNAPSHOT_H

#include "connection.h"
#include "remote_table.h"

/* What a connection needs to join the view of another one. */
typedef struct SnapshotTicket
{
	char	   *id;				/* of the exported snapshot */
	char	   *identity;		/* server, database and user, as one text */
	ConnectionPeer peer;		/* where it is */
	int			server_version;
} SnapshotTicket;

/* The view that this transaction has of one remote. */
typedef struct RemoteSnapshot
{
	SnapshotTicket ticket;
	MemoryContext context;		/* lives until the end of the transaction */
	List	   *tables;			/* RemoteTable: locked and measured */
} RemoteSnapshot;

/* A foreign table that will be read in this transaction. */
typedef struct SnapshotWish
{
	Oid			relid;
	bool		shallow;		/* by one statement, which locks what it reads */
	bool		list_leaves;	/* its leaves must be known */
} SnapshotWish;

/* What a connection must lock before it reads from it. */
typedef struct SnapshotLock
{
	const char *name;			/* of the relation, for messages */
	Oid			key;			/* under which the connection notes it */
	int			nleaves;
	const RemoteLeaf *leaves;	/* what their names must mean */
	const char **selects;		/* what will be read of each, to lock indexes */
	bool		chunked;		/* with ctid bounds */
	bool		others_locked;	/* reading locks more than the leaves */
} SnapshotLock;

/*
 * The remote settings under which a chunk is planned as a Tid Range Scan, or not
 * read at all where a partition's bounds and the filter exclude each other.
 */
#define SNAPSHOT_CHUNK_SETTINGS \
	"SET LOCAL enable_tidscan = on; SET LOCAL enable_seqscan = off; " \
	"SET LOCAL enable_indexscan = off; SET LOCAL enable_indexonlyscan = off; " \
	"SET LOCAL enable_bitmapscan = off; SET LOCAL jit = off; " \
	"SET LOCAL constraint_exclusion = on; " \
	"SET LOCAL max_parallel_workers_per_gather = 0; "

/* The same settings as the session had before. */
#define SNAPSHOT_RESET_CHUNK_SETTINGS \
	"SET LOCAL enable_tidscan TO DEFAULT; SET LOCAL enable_seqscan TO DEFAULT; " \
	"SET LOCAL enable_indexscan TO DEFAULT; " \
	"SET LOCAL enable_indexonlyscan TO DEFAULT; " \
	"SET LOCAL enable_bitmapscan TO DEFAULT; SET LOCAL jit TO DEFAULT; " \
	"SET LOCAL constraint_exclusion TO DEFAULT; " \
	"SET LOCAL max_parallel_workers_per_gather TO DEFAULT; "

/*
 * Relations that this session has locked and whose file is not what the
 * snapshot's catalog says, or that the snapshot does not know at all (an index
 * may be younger: it is only a way to the rows).
 */
#define SNAPSHOT_REWRITTEN_QUERY \
	"SELECT count(*) AS rewritten FROM pg_locks l LEFT JOIN pg_class c ON c.oid = l.relation " \
	"WHERE l.pid = pg_backend_pid() AND l.locktype = 'relation' AND l.granted " \
	"AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database()) " \
	"AND CASE WHEN c.oid IS NULL " \
	"THEN pg_index_has_property(l.relation::oid::regclass, 'clusterable') IS NULL " \
	"ELSE c.relkind IN ('r', 'm') AND c.relfilenode <> 0 AND " \
	"c.relfilenode IS DISTINCT FROM pg_relation_filenode(c.oid) END"

extern RemoteTable *snapshot_find_table(ConnectionPool *pool,
										const SnapshotWish *wish);
extern void snapshot_take(ConnectionPool *pool, const SnapshotWish *wish,
						  List *others);
extern Connection *snapshot_join(ConnectionPool *pool,
								 const SnapshotTicket *ticket,
								 const WaitLimits *limits, RemoteError *error);
extern RemoteTable *snapshot_add_table(Connection *conn,
									   const SnapshotWish *wish);
extern bool snapshot_adopt(Connection *conn, const SnapshotTicket *ticket,
						   const WaitLimits *limits, RemoteError *error);

/* what the last command brought, for snapshot_lock.c as well */
extern PGresult *snapshot_next_result(Connection *conn, const char *name,
									  int *position);
extern PGresult *snapshot_find_result(Connection *conn, const char *name);
extern bool snapshot_was_rewritten(Connection *conn);
extern void snapshot_check_not_rewritten(const char *name, bool rewritten);

/* snapshot_lock.c */
extern void snapshot_refuse_row_security(Connection *conn, const char *from);
extern bool snapshot_pin(Connection *conn, const SnapshotLock *lock,
						 bool *excluded);
extern bool snapshot_lock(Connection *conn, const SnapshotLock *lock,
						  const WaitLimits *limits, RemoteError *error);

#endif							/* TIDRANGE_SNAPSHOT_H */
