/*-------------------------------------------------------------------------
 *
 * scan.h
 *	  The scan of one foreign table by one participant.
 *
 *-------------------------------------------------------------------------
 */
#ifndef TIDRANGE_SCAN_H
#define TIDRANGE_SCAN_H

#include "claim.h"
#include "codec.h"
#include "connection.h"
#include "nodes/execnodes.h"
#include "option.h"
#include "plan.h"
#include "snapshot.h"
#include "storage/dsm.h"
#include "stream.h"

/* Patience with one more connection, which the leader can do without. */
#define SCAN_EXTRA_CONNECTION_MS	10000

/* And with one that only makes it faster. */
#define SCAN_SPARE_CONNECTION_MS	2000

/* What one participant did; in DSM, one slot each, written by its owner. */
typedef struct ScanCounters
{
	uint64		chunks;			/* finished */
	uint64		blocks;			/* of those chunks */
	uint64		rows;
	uint64		bytes;			/* of the rows, as they arrived */
	uint64		round_trips;
	double		wait_seconds;	/* spent waiting for the remote */
	uint32		streams;		/* connections at once */
	uint32		joined;			/* times it took part */
	uint32		bowed_out;		/* times the remote refused it */
} ScanCounters;

/*
 * What the participants of a parallel scan share.  Behind it in the segment
 * stand the counters, the claim and the texts.  [L] written by the leader before
 * workers exist (and at a reset, when none runs), [A] atomic.
 */
typedef struct ScanShared
{
	pg_atomic_uint32 stop;		/* [A] nobody wants more rows */
	pg_atomic_uint32 joining;	/* [A] connecting, without a failure so far */
	pg_atomic_uint32 active;	/* [A] with snapshot and lock, in the claim loop */
	pg_atomic_uint32 started;	/* [A] have ever been active */
	pg_atomic_uint32 exhausted; /* [A] of those, saw the counter's end */
	bool		leader_participates;	/* [L] the leader will claim as well */
	bool		chunked;		/* [L] ranges of blocks, or all in one piece */
	bool		by_leaf;		/* [L] its leaves are read by their names */
	bool		filter_locally; /* [L] the remote must not evaluate the quals */
	Oid			oid;			/* [L] of the remote table */
	Oid			filenode;		/* [L] its file */
	int			server_version; /* [L] of the remote */
	int			nslots;			/* [L] participants at most */
	int			nparticipants;	/* [L] who will claim, for the sizing */
	int			ncolumns;		/* [L] */
	int			nleaves;		/* [L] */
	Size		counters_offset;	/* [L] ScanCounters[nslots] */
	Size		claim_offset;	/* [L] Claim */
	Size		leaves_offset;	/* [L] see scan_leaves.c */
	Size		binary_offset;	/* [L] bool[ncolumns] */
	Size		texts_offset;	/* [L] SCAN_NTEXTS strings */
} ScanShared;

/* The remote relation as this scan reads it; the same in every participant. */
typedef struct ScanRemote
{
	const char *name;			/* qualified and quoted */
	Oid			oid;
	Oid			filenode;
	bool		lock_refused;
	bool		chunked;
	bool		filter_locally; /* the remote must not evaluate the quals */
	const char *select_list;
	bool	   *binary;			/* format of each column */
	int			nleaves;		/* what is read one after the other */
	RemoteLeaf *leaves;
	bool		by_leaf;		/* these are not the relation itself */
	const char *tableoids;		/* whose rows count; "": of all */
	/* leader only */
	int64		nblocks;		/* measured under the snapshot */
	int			nexcluded;		/* leaves that the quals rule out */
	bool		shallow;		/* its children are not locked beforehand */
	const char *whole_reason;	/* why it is read whole; NULL: it is not */
	const char *parent_reason;	/* why leaves are not read by their names */
	const char *text_columns;	/* columns that travel as text, and why */
} ScanRemote;

/* One of the remote connections that this process reads a scan from. */
typedef struct ScanStream
{
	struct TidrangeScan *scan;
	Stream		stream;
	bool		has_chunk;
	ClaimPace	pace;
	ClaimChunk	chunk;
	char		lower[CLAIM_TID_SIZE];
	char		upper[CLAIM_TID_SIZE];
	uint64		round_trips_before; /* of the connection, at the chunk's start */
	double		wait_seconds_before;
} ScanStream;

/* Execution state of one foreign scan in one process. */
typedef struct TidrangeScan
{
	dlist_node	node;			/* in the list of this process's scans */
	bool		registered;
	ForeignScanState *state;
	Oid			relid;
	const char *relation_name;	/* local, for messages */
	ConnectionPool *pool;
	SubTransactionId subid;		/* where it began; dies with it */
	MemoryContext context;		/* lives as long as the scan */
	MemoryContext sql_context;	/* holds copy_sql */
	MemoryContextCallback cleanup;
	TableOptions options;
	ScanPlan	plan;
	const char *batch_reason;	/* the INSERT writes row by row; "": it does
								 * not; NULL: it is none */
	List	   *param_states;	/* ExprState of plan.params */
	List	   *ctid_states;	/* ExprState of plan.ctid_exprs */

	/* the remote side, known once prepared */
	bool		prepared;
	SnapshotTicket ticket;
	ScanRemote	remote;
	Oid			lock_key;		/* see scan_leaves.c */
	Codec	   *codec;
	const char *copy_sql;		/* the last one; NULL: to be built */
	const char **leaf_sql;		/* of each leaf; NULL: to be built */

	/* claiming */
	Claim	   *claim;			/* in DSM, or private */
	Claim	   *private_claim;
	Size		private_claim_size;
	ScanShared *shared;			/* NULL: nobody else takes part */
	dsm_segment *segment;		/* leader: the DSM segment of shared */
	int			slot;			/* ours among the counters */
	bool		joined;			/* counted as active */
	bool		ended;			/* no more rows until the next rescan */
	bool		detached;		/* the shared state is gone, its rows were read */

	/* streams: see scan_streams.c */
	ScanStream *streams;		/* max_streams of them */
	int			max_streams;	/* how many there may be */
	int			nstreams;		/* of them, how many take part */
	int			current;		/* the one that is being drained */
	WaitEventSet *waits;		/* for several sockets; NULL: to be made */
	double		starved;		/* seconds of waiting since the last one
								 * joined, */
	instr_time	joined_at;		/* and when that was */

	/* instrumentation */
	ScanCounters counters;		/* this process; since it began */
	ScanCounters *totals;		/* leader: one a participant, over all rescans */
	int			ntotals;
	uint64		claimed;		/* leader: blocks, over all rescans */
	uint64		finished;
} TidrangeScan;

extern void scan_begin(ForeignScanState *node, int eflags);
extern void scan_rescan(ForeignScanState *node);
extern void scan_end(ForeignScanState *node);

/* scan.c, for the other rooms of the scan */
extern List *scan_other_tables(TidrangeScan *scan);
extern void scan_push_error_context(TidrangeScan *scan,
									ErrorContextCallback *callback);
extern void scan_add_counters(ScanCounters *sum, const ScanCounters *counters);

/* scan_streams.c */
extern int	scan_connection_patience;
extern TupleTableSlot *scan_next(ForeignScanState *node);
extern void scan_init_streams(TidrangeScan *scan);
extern void scan_close_streams(TidrangeScan *scan);
extern void scan_free_waits(TidrangeScan *scan);

/* scan_prepare.c */
extern void scan_prepare(TidrangeScan *scan, bool parallel);
extern void scan_prepare_leader(TidrangeScan *scan);
extern void scan_set_remote(TidrangeScan *scan, const ScanRemote *remote);
extern const char **scan_param_values(TidrangeScan *scan);
extern void scan_append_select(StringInfo buf, const char *select_list,
							   const char *name, bool only,
							   const char *bounds, const ScanPlan *plan,
							   const char *const *values);

/* scan_leaves.c */
extern void scan_choose_leaves(TidrangeScan *scan, const RemoteTable *table);
extern void scan_drop_leaves(TidrangeScan *scan, const bool *excluded);
extern Oid	scan_choose_lock_key(TidrangeScan *scan);
extern void scan_make_wish(const TidrangeScan *scan, SnapshotWish *wish);
extern void scan_fill_request(TidrangeScan *scan, const ClaimChunk *chunk,
							  StreamRequest *request);
extern void scan_fill_lock(TidrangeScan *scan, SnapshotLock *lock);
extern void scan_lay_out_claim(TidrangeScan *scan, Claim *claim,
							   int nparticipants);
extern Size scan_claim_size(const TidrangeScan *scan);
extern void scan_make_private_claim(TidrangeScan *scan);
extern Size scan_leaves_size(const ScanRemote *remote);
extern void scan_write_leaves(const ScanRemote *remote, char *to);
extern void scan_read_leaves(TidrangeScan *scan, ScanRemote *remote,
							 char *from);

/* scan_join.c */
extern bool scan_stop_requested(void *arg);
extern bool scan_join(TidrangeScan *scan);
extern void scan_leave(TidrangeScan *scan, bool exhausted);
extern void scan_publish_counters(TidrangeScan *scan);
extern Connection *scan_find_connection(ConnectionPool *pool, Oid oid);
extern Connection *scan_open_connection(TidrangeScan *scan,
										const WaitLimits *limits,
										RemoteError *error, bool *retry);
extern Connection *scan_require_connection(TidrangeScan *scan);
extern Connection *scan_extra_connection(TidrangeScan *scan);
extern void scan_park_borrower(Connection *conn);

/* parallel.c */
extern void scan_detach_shared(TidrangeScan *scan);
extern Size scan_shared_size(const TidrangeScan *scan, int nslots);
extern void scan_share(TidrangeScan *scan, ScanShared *shared, int nslots,
					   bool leader_participates);
extern void scan_take_over(TidrangeScan *scan, ScanShared *shared, int slot);
extern void scan_shared_ticket(ScanShared *shared, SnapshotTicket *ticket);
extern void scan_check_coverage(ScanShared *shared, const char *relation_name);

#endif							/* TIDRANGE_SCAN_H */
