/*-------------------------------------------------------------------------
 *
 * parallel.c
 *	  What the participants of a parallel scan share, who writes it, and when
 *	  it dies.
 *
 * The leader prepares the scan (lock, snapshot, measure) when the segment is
 * sized, because the size of what it shares depends on the remote's answer.
 * It fills the segment before any worker exists; afterwards the shared parts
 * are written through atomics only, and each counter slot by its owner.
 *
 * Life: parallel_initialize begins it.  A rescan reuses it: the leader resets
 * the counter and its limits together while no worker runs
 * (parallel_reinitialize), and scan_rescan touches no shared state, since the
 * executor may call it after either.  It ends when the leader detaches from the
 * segment, after all workers have finished: only then are the counters complete
 * (under LIMIT the shutdown callback comes before workers have even started), so
 * they are collected there.
 *
 * The shutdown callback is not the end of a scan: it also runs after every
 * FETCH of a cursor, and in workers.  In the leader it raises the stop flag in the
 * segment, for workers that wait for a slow remote, and closes nothing.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "miscadmin.h"
#include "optimizer/optimizer.h"
#include "parallel.h"
#include "scan.h"

/* The texts behind the shared state, in this order. */
enum
{
	TEXT_SNAPSHOT_ID,
	TEXT_IDENTITY,
	TEXT_HOST,
	TEXT_HOSTADDR,
	TEXT_PORT,
	TEXT_NAME,
	TEXT_SELECT_LIST,
	NTEXTS
};

static void
list_texts(const TidrangeScan *scan, const char **texts)
{
	texts[TEXT_SNAPSHOT_ID] = scan->ticket.id;
	texts[TEXT_IDENTITY] = scan->ticket.identity;
	texts[TEXT_HOST] = scan->ticket.peer.host;
	texts[TEXT_HOSTADDR] = scan->ticket.peer.hostaddr;
	texts[TEXT_PORT] = scan->ticket.peer.port;
	texts[TEXT_NAME] = scan->remote.name;
	texts[TEXT_SELECT_LIST] = scan->remote.select_list;
}

/* Where each part stands; returns the size of all. */
static Size
lay_out(const TidrangeScan *scan, int nslots, ScanShared *shared)
{
	const char *texts[NTEXTS];
	Size		size = MAXALIGN(sizeof(ScanShared));
	int			ncolumns = list_length(scan->plan.attnums);
	int			i;

	shared->nslots = nslots;
	shared->ncolumns = ncolumns;
	shared->counters_offset = size;
	size += MAXALIGN(nslots * sizeof(ScanCounters));
	shared->claim_offset = size;
	size += MAXALIGN(scan_claim_size(scan));
	shared->leaves_offset = size;
	shared->nleaves = scan->remote.nleaves;
	size += MAXALIGN(scan_leaves_size(&scan->remote));
	shared->binary_offset = size;
	size += MAXALIGN(ncolumns * sizeof(bool));
	shared->texts_offset = size;
	list_texts(scan, texts);
	for (i = 0; i < NTEXTS; i++)
		size += strlen(texts[i]) + 1;
	return size;
}

static ScanCounters *
shared_counters(ScanShared *shared)
{
	return (ScanCounters *) ((char *) shared + shared->counters_offset);
}

static Claim *
shared_claim(ScanShared *shared)
{
	return (Claim *) ((char *) shared + shared->claim_offset);
}

/* Nobody has begun. */
static void
reset_participants(ScanShared *shared)
{
	pg_atomic_write_u32(&shared->stop, 0);
	pg_atomic_write_u32(&shared->joining, 0);
	pg_atomic_write_u32(&shared->active, 0);
	pg_atomic_write_u32(&shared->started, 0);
	pg_atomic_write_u32(&shared->exhausted, 0);
}

/*
 * Size of the shared state.  Locks and measures the remote table.
 */
Size
parallel_estimate(ForeignScanState *node, ParallelContext *pcxt)
{
	TidrangeScan *scan = node->fdw_state;

	scan_prepare_leader(scan);
	return scan_shared_size(scan, pcxt->nworkers + 1);
}

/* Add what the participants did to the leader's totals, and start from zero. */
static void
collect_counters(TidrangeScan *scan)
{
	ScanShared *shared = scan->shared;
	ScanCounters *counters = shared_counters(shared);
	Claim	   *claim = shared_claim(shared);
	int			i;

	for (i = 0; i < Min(shared->nslots, scan->ntotals); i++)
	{
		scan_add_counters(&scan->totals[i], &counters[i]);
		memset(&counters[i], 0, sizeof(ScanCounters));
	}
	memset(&scan->counters, 0, sizeof(ScanCounters));
	if (scan->remote.chunked)
	{
		scan->claimed += claim_claimed(claim);
		scan->finished += claim_finished(claim);
	}
}

/* The leader leaves the segment.  Must not raise an error. */
static void
detach_callback(dsm_segment *segment, Datum arg)
{
	TidrangeScan *scan = (TidrangeScan *) DatumGetPointer(arg);

	collect_counters(scan);
	scan->segment = NULL;
	scan->shared = NULL;
	scan->claim = NULL;
	scan->joined = false;
	scan->detached = true;
}

/* The scan's memory dies before the segment: it must not be written to. */
void
scan_detach_shared(TidrangeScan *scan)
{
	if (scan->segment != NULL)
		cancel_on_dsm_detach(scan->segment, detach_callback,
							 PointerGetDatum(scan));
	scan->segment = NULL;
	scan->shared = NULL;
}

/*
 * Bytes that scan_share() fills.  The scan is prepared.
 */
Size
scan_shared_size(const TidrangeScan *scan, int nslots)
{
	ScanShared	layout;

	return lay_out(scan, nslots, &layout);
}

/*
 * Fill the shared state, for the leader and `nslots` - 1 others, and take part in
 * it.
 */
void
scan_share(TidrangeScan *scan, ScanShared *shared, int nslots,
		   bool leader_participates)
{
	const char *texts[NTEXTS];
	char	   *text;
	int			i;

	lay_out(scan, nslots, shared);
	pg_atomic_init_u32(&shared->stop, 0);
	pg_atomic_init_u32(&shared->joining, 0);
	pg_atomic_init_u32(&shared->active, 0);
	pg_atomic_init_u32(&shared->started, 0);
	pg_atomic_init_u32(&shared->exhausted, 0);
	shared->leader_participates = leader_participates;
	shared->chunked = scan->remote.chunked;
	shared->by_leaf = scan->remote.by_leaf;
	shared->filter_locally = scan->remote.filter_locally;
	shared->oid = scan->remote.oid;
	shared->filenode = scan->remote.filenode;
	shared->server_version = scan->ticket.server_version;

	memset(shared_counters(shared), 0, nslots * sizeof(ScanCounters));
	shared->nparticipants = nslots - (leader_participates ? 0 : 1);
	scan_lay_out_claim(scan, shared_claim(shared), shared->nparticipants);
	scan_write_leaves(&scan->remote, (char *) shared + shared->leaves_offset);
	memcpy((char *) shared + shared->binary_offset, scan->remote.binary,
		   shared->ncolumns * sizeof(bool));

	list_texts(scan, texts);
	text = (char *) shared + shared->texts_offset;
	for (i = 0; i < NTEXTS; i++)
	{
		strcpy(text, texts[i]);
		text += strlen(text) + 1;
	}
	scan->shared = shared;
	scan->slot = 0;
	scan->claim = shared_claim(shared);
}

/*
 * Fill the shared state.
 */
void
parallel_initialize(ForeignScanState *node, ParallelContext *pcxt,
					void *coordinate)
{
	TidrangeScan *scan = node->fdw_state;
	int			nslots = pcxt->nworkers + 1;

	/* No segment could be had: the leader runs alone, on its own counter. */
	if (pcxt->seg == NULL)
		return;

	scan_share(scan, coordinate, nslots, parallel_leader_participation);
	if (scan->totals == NULL)
	{
		scan->totals = MemoryContextAllocZero(scan->context,
											  nslots * sizeof(ScanCounters));
		scan->ntotals = nslots;
	}
	scan->segment = pcxt->seg;
	scan->joined = false;
	scan->ended = false;
	scan->detached = false;
	on_dsm_detach(pcxt->seg, detach_callback, PointerGetDatum(scan));
}

/*
 * The same segment for another execution: everything that it says of the last
 * one is reset, counter and limits together, for quals on ctid may have other
 * values now.  The measured size stays: rows added since are invisible to the
 * snapshot.
 */
void
parallel_reinitialize(ForeignScanState *node, ParallelContext *pcxt,
					  void *coordinate)
{
	TidrangeScan *scan = node->fdw_state;

	if (scan->shared == NULL)
		return;
	collect_counters(scan);
	reset_participants(scan->shared);
	scan_lay_out_claim(scan, shared_claim(scan->shared),
					   scan->shared->nparticipants);
}

/* The ticket in the shared state; its texts stay where they are. */
static void
read_texts(ScanShared *shared, char **texts, SnapshotTicket *ticket)
{
	char	   *text = (char *) shared + shared->texts_offset;
	int			i;

	for (i = 0; i < NTEXTS; i++)
	{
		texts[i] = text;
		text += strlen(text) + 1;
	}
	ticket->id = texts[TEXT_SNAPSHOT_ID];
	ticket->identity = texts[TEXT_IDENTITY];
	ticket->peer.host = texts[TEXT_HOST];
	ticket->peer.hostaddr = texts[TEXT_HOSTADDR];
	ticket->peer.port = texts[TEXT_PORT];
	ticket->server_version = shared->server_version;
}

void
scan_shared_ticket(ScanShared *shared, SnapshotTicket *ticket)
{
	char	   *texts[NTEXTS];

	read_texts(shared, texts, ticket);
}

/*
 * Take over what the leader prepared, as participant number `slot`.
 */
void
scan_take_over(TidrangeScan *scan, ScanShared *shared, int slot)
{
	ScanRemote	remote = {0};
	char	   *texts[NTEXTS];

	read_texts(shared, texts, &scan->ticket);
	remote.name = texts[TEXT_NAME];
	remote.select_list = texts[TEXT_SELECT_LIST];
	remote.oid = shared->oid;
	remote.filenode = shared->filenode;
	remote.filter_locally = shared->filter_locally;
	remote.chunked = shared->chunked;
	remote.binary = (bool *) ((char *) shared + shared->binary_offset);
	remote.by_leaf = shared->by_leaf;
	remote.nleaves = shared->nleaves;
	scan_read_leaves(scan, &remote, (char *) shared + shared->leaves_offset);
	scan_set_remote(scan, &remote);
	scan_choose_lock_key(scan);

	scan->shared = shared;
	scan->claim = shared_claim(shared);
	scan->slot = slot;
	Assert(scan->slot < shared->nslots);
}

/*
 * A worker takes over what the leader prepared.
 */
void
parallel_initialize_worker(ForeignScanState *node, shm_toc *toc,
						   void *coordinate)
{
	scan_take_over(node->fdw_state, coordinate, ParallelWorkerNumber + 1);
}

/*
 * All participants that began have seen the end: then every block must have
 * been read.  Not so after LIMIT, where some stop before.
 */
void
scan_check_coverage(ScanShared *shared, const char *relation_name)
{
	Claim	   *claim = shared_claim(shared);
	uint32		started = pg_atomic_read_u32(&shared->started);

	if (started == 0 ||
		started != pg_atomic_read_u32(&shared->exhausted) ||
		pg_atomic_read_u32(&shared->active) != 0)
		return;
	if (pg_atomic_read_u64(&claim->finished) != claim->end - claim->start)
		elog(ERROR, "only " UINT64_FORMAT " of " UINT64_FORMAT " parts of foreign table \"%s\" were read",
			 pg_atomic_read_u64(&claim->finished), claim->end - claim->start,
			 relation_name);
}

/*
 * The executor wants no more rows for now: tell workers that wait for a slow
 * remote.  See the top of this file for what it must not do.
 */
void
parallel_shutdown(ForeignScanState *node)
{
	TidrangeScan *scan = node->fdw_state;

	if (scan == NULL || scan->shared == NULL || scan->segment == NULL)
		return;
	pg_atomic_write_u32(&scan->shared->stop, 1);
	scan_check_coverage(scan->shared, scan->relation_name);
}
