/*-------------------------------------------------------------------------
 *
 * insert.h
 *	  INSERT ... SELECT by several writers.
 *
 *-------------------------------------------------------------------------
 */
#ifndef TIDRANGE_INSERT_H
#define TIDRANGE_INSERT_H

#include "nodes/plannodes.h"
#include "port/atomics.h"
#include "scan_team.h"
#include "storage/lock.h"
#include "storage/proc.h"

#define INSERT_MAX_WORKERS		1024

/* What pg_stat_activity calls a worker. */
#define INSERT_WORKER_TYPE		"tidrange_fdw insert worker"

/* Keys of the parts of the segment. */
enum
{
	INSERT_KEY_SHARED = 1,
	INSERT_KEY_STATEMENT,
	INSERT_KEY_LIBRARIES,
	INSERT_KEY_SETTINGS,
	INSERT_KEY_SNAPSHOT,
	INSERT_KEY_QUEUES
};

/* How far a worker is.  Only ever grows. */
typedef enum InsertState
{
	INSERT_STARTING,
	INSERT_LOCKED,				/* has the locks that its statement needs */
	INSERT_EXECUTED,			/* has inserted its part */
	INSERT_PREPARED,			/* and prepared its transaction */
	INSERT_COMMITTED,			/* and committed it, without preparing */
	INSERT_LEFT					/* did not take part: others go on */
} InsertState;

/* What the caller lets the workers do. */
typedef enum InsertPhase
{
	INSERT_WAIT,				/* not all of them are registered yet */
	INSERT_RUN,					/* execute */
	INSERT_FINISH				/* prepare, or commit */
} InsertPhase;

/* What becomes of prepared transactions; decided once, by whoever is first. */
typedef enum InsertDecision
{
	INSERT_UNDECIDED,
	INSERT_COMMIT,
	INSERT_ABORT
} InsertDecision;

/* One worker.  [W] written by it, before its state says so. */
typedef struct InsertSlot
{
	pg_atomic_uint32 state;		/* [W] InsertState */
	int			pid;			/* [W] */
	PGPROC	   *proc;			/* [W] for its latch */
	TransactionId xid;			/* [W] of its transaction */
	uint64		rows;			/* [W] inserted */
} InsertSlot;

/* What caller and workers share.  [C] written by the caller before they start. */
typedef struct InsertShared
{
	Oid			database;		/* [C] */
	Oid			authenticated_user; /* [C] as whom the caller logged in, */
	Oid			session_user;	/* [C] SET SESSION AUTHORIZATION, */
	Oid			current_user;	/* [C] SET ROLE */
	Oid			marker_table;	/* [C] see insert_recover.c */
	PGPROC	   *caller;			/* [C] */
	TimestampTz transaction_start;	/* [C] what now() says */
	TimestampTz statement_start;	/* [C] */
	int			isolation;		/* [C] */
	uint64		call_id;		/* [C] */
	bool		two_phase;		/* [C] prepare, then commit */
	pg_atomic_uint32 nworkers;	/* [A] registered */
	pg_atomic_uint32 phase;		/* [A] InsertPhase */
	pg_atomic_uint32 decision;	/* [A] InsertDecision */
	ScanTeam	team;
	InsertSlot	slots[FLEXIBLE_ARRAY_MEMBER];
} InsertShared;

/* Of the segment, and of the message queue of each worker. */
#define PARALLEL_MAGIC_INSERT	0x7464696e
#define INSERT_QUEUE_SIZE		16384

/* Text of a call in the names of its prepared transactions, and of such a name. */
#define INSERT_ID_SIZE			17
#define INSERT_GID_PREFIX		"tidrange_fdw_"
#define INSERT_GID_SIZE			64

/* GUC tidrange_fdw.insert_crash_point */
extern char *insert_crash_point;

/* insert_check.c */
extern PlannedStmt *insert_plan(const char *sql, Oid *driver, double *pages);

/* insert_recover.c */
extern void insert_reach(const char *point, int number);
extern void insert_format_id(uint64 call_id, char *id);
extern void insert_format_gid(uint64 call_id, int part, char *gid);
extern void insert_call_lock(uint64 call_id, LOCKTAG *tag);
extern Oid	insert_marker_table(Oid function);
extern void insert_marker_add(Oid table, uint64 call_id);
extern void insert_marker_remove(Oid table, uint64 call_id);

#endif							/* TIDRANGE_INSERT_H */
