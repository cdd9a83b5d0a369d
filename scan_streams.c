/*-------------------------------------------------------------------------
 *
 * scan_streams.c
 *	  The loop of a scan: claim a chunk, stream it, decode it, fill the slot;
 *	  over one connection or over several at once.
 *
 * A claimed chunk is finished or the query fails.
 *
 * A process begins with one stream.  Where more are allowed (option
 * "connections"), one is added each time that this process has had to wait for
 * the remote for a good part of a while: then the remote, or the way to it, is
 * what is slow, and another session helps.  A process that is busy itself never
 * opens one.  While one stream is drained the sockets of the others fill, so that
 * their chunks' round trips are hidden.
 *
 * Rows are taken from one stream until it has none at hand, then from the next;
 * only when none has any does the process sleep, on all sockets together.  What
 * is not being drained is not read: memory is that of libpq's buffers, one row
 * and what one read of a socket brings for each stream.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "compat.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "scan.h"
#include "utils/memutils.h"

/*
 * GUC tidrange_fdw.connection_patience: another stream is worth its connection
 * after that many milliseconds of waiting, ...
 */
int			scan_connection_patience = 50;

/*
 * ... if they were that part of the time.  Ranges cost a source more than a whole
 * scan, and each further session takes from its caches and processors.
 */
#define STARVED_FRACTION	0.5

/* What part of a chunk's time its transfer took, at least. */
#define SHORTEST_TRANSFER	0.125

/* ----------
 * Streams
 * ----------
 */

/* No connection is opened here. */
void
scan_init_streams(TidrangeScan *scan)
{
	int			n = Max(scan->plan.connections, scan->options.connections);
	int			i;

	n = Max(n, 1);
	scan->streams = palloc0(n * sizeof(ScanStream));
	for (i = 0; i < n; i++)
		scan->streams[i].scan = scan;
	scan->nstreams = 1;
}

/* Stop all streams, wherever they are; the scan starts again or ends. */
void
scan_close_streams(TidrangeScan *scan)
{
	int			i;

	for (i = 0; i < scan->nstreams; i++)
	{
		ScanStream *ss = &scan->streams[i];

		stream_close(&ss->stream);
		ss->has_chunk = false;
		ss->pace.last_blocks = 0;
	}
	scan->nstreams = 1;
	scan->current = 0;
}

/* The set of sockets; must not raise an error. */
void
scan_free_waits(TidrangeScan *scan)
{
	if (scan->waits != NULL)
		FreeWaitEventSet(scan->waits);
	scan->waits = NULL;
}

/*
 * Claim the next chunk and ask for its rows.  `conn` may be NULL: one will be
 * found.  False: nothing is left to claim.
 */
static bool
begin_chunk(TidrangeScan *scan, ScanStream *ss, Connection *conn)
{
	StreamRequest request;
	WaitLimits	limits = {0};

	if (!claim_next(scan->claim, &ss->pace, &ss->chunk))
		return false;
	ss->has_chunk = true;
	scan_free_waits(scan);
	claim_format_bounds(&ss->chunk, ss->lower, ss->upper);

	if (conn == NULL)
		conn = scan_require_connection(scan);
	scan_fill_request(scan, &ss->chunk, &request);
	request.parkable = true;
	request.lower = ss->lower;
	request.upper = ss->upper;
	ss->round_trips_before = conn->round_trips;
	ss->wait_seconds_before = conn->wait_seconds;
	stream_open(&ss->stream, conn, &request, &limits);
	return true;
}

/* Every row of the chunk was delivered; `conn` is what it came over, if known. */
static void
finish_chunk(TidrangeScan *scan, ScanStream *ss, const Connection *conn)
{
	instr_time	now;
	double		seconds;

	if (conn != NULL)
	{
		scan->counters.round_trips += conn->round_trips - ss->round_trips_before;
		scan->counters.wait_seconds += conn->wait_seconds - ss->wait_seconds_before;
	}
	INSTR_TIME_SET_CURRENT(now);
	INSTR_TIME_SUBTRACT(now, ss->stream.sent);
	seconds = INSTR_TIME_GET_DOUBLE(now);
	/* with several, an answer may have waited for us */
	if (scan->nstreams == 1)
	{
		ss->pace.round_trip = ss->stream.answer_seconds;
		/* the rate is that of rows; a short chunk may come all at once */
		seconds = Max(seconds - ss->stream.answer_seconds,
					  seconds * SHORTEST_TRANSFER);
	}
	claim_finish(scan->claim, &ss->pace, &ss->chunk, seconds);
	scan->counters.chunks++;
	if (scan->remote.chunked)
		scan->counters.blocks += ss->chunk.nblocks;
	scan->counters.rows += ss->stream.rows;
	scan->counters.bytes += ss->stream.bytes;
	ss->has_chunk = false;
	scan_free_waits(scan);
	scan_publish_counters(scan);
}

/* Take part, if that was not done yet.  False: there is nothing to do. */
static bool
enter_loop(TidrangeScan *scan)
{
	if (scan->ended)
		return false;

	/* Reading again what others have read would double rows. */
	if (scan->detached)
		elog(ERROR, "parallel scan of foreign table \"%s\" was asked for rows after its end",
			 scan->relation_name);
	if (scan->joined)
		return true;
	if (!scan_join(scan))
	{
		scan->ended = true;
		scan_publish_counters(scan);
		return false;
	}
	scan->counters.streams = Max(scan->counters.streams, 1);
	/* workers are connections enough, unless somebody says otherwise */
	scan->max_streams = scan->shared == NULL ? scan->plan.connections :
		Max(scan->options.connections, 1);
	scan->starved = 0;
	INSTR_TIME_SET_CURRENT(scan->joined_at);
	return true;
}

/*
 * Make the current stream one that has a chunk: by a claim, or if nothing is
 * left, by turning to another one.  False: all is read.
 */
static bool
find_work(TidrangeScan *scan)
{
	int			i;

	if (!enter_loop(scan))
		return false;
	if (begin_chunk(scan, &scan->streams[scan->current], NULL))
		return true;
	for (i = 0; i < scan->nstreams; i++)
	{
		if (scan->streams[i].has_chunk)
		{
			scan->current = i;
			return true;
		}
	}
	scan->ended = true;
	scan_leave(scan, true);
	return false;
}

/* ----------
 * Waiting for several
 * ----------
 */

/* Do several streams have something to read? */
static bool
has_other_chunk(const TidrangeScan *scan)
{
	int			i;

	for (i = 0; i < scan->nstreams; i++)
	{
		if (i != scan->current && scan->streams[i].has_chunk)
			return true;
	}
	return false;
}

/* Is there room for another stream, and something for it to read? */
static bool
may_grow(TidrangeScan *scan)
{
	return scan->nstreams < scan->max_streams && scan->remote.chunked &&
		!claim_exhausted(scan->claim);
}

/* Has this process waited so much that another connection will help? */
static bool
is_starved(TidrangeScan *scan)
{
	instr_time	now;

	if (scan->starved * 1000 < scan_connection_patience || !may_grow(scan))
		return false;
	if (scan_connection_patience == 0)
		return true;
	INSTR_TIME_SET_CURRENT(now);
	INSTR_TIME_SUBTRACT(now, scan->joined_at);
	return scan->starved >= STARVED_FRACTION * INSTR_TIME_GET_DOUBLE(now);
}

/* One more stream, if the remote lets us and there is something to claim. */
static bool
add_stream(TidrangeScan *scan)
{
	ScanStream *ss = &scan->streams[scan->nstreams];
	Connection *conn = scan_extra_connection(scan);

	scan->starved = 0;
	INSTR_TIME_SET_CURRENT(scan->joined_at);
	if (conn == NULL)
	{
		scan->max_streams = scan->nstreams;
		return false;
	}
	ss->pace = scan->streams[0].pace;
	ss->pace.last_blocks = 0;
	/* It counts before it borrows: an error has to take the connection back. */
	scan->current = scan->nstreams++;
	if (scan->shared == NULL)
		scan->claim->nparticipants = scan->nstreams;
	if (!begin_chunk(scan, ss, conn))
	{
		scan->current = 0;
		scan->nstreams--;
		return false;
	}
	scan->counters.streams = Max(scan->counters.streams, scan->nstreams);
	return true;
}

/* The sockets of all streams that read; the user data is the stream. */
static void
make_waits(TidrangeScan *scan)
{
	WaitEventSet *waits = compat_create_wait_event_set(scan->nstreams + 2);
	int			i;

	/* known at once, so that an error does not lose it */
	scan->waits = waits;
	AddWaitEventToSet(waits, WL_LATCH_SET, PGINVALID_SOCKET, MyLatch, NULL);
	AddWaitEventToSet(waits, WL_EXIT_ON_PM_DEATH, PGINVALID_SOCKET, NULL,
					  NULL);
	for (i = 0; i < scan->nstreams; i++)
	{
		ScanStream *ss = &scan->streams[i];

		if (ss->has_chunk && ss->stream.conn != NULL)
			AddWaitEventToSet(waits, WL_SOCKET_READABLE,
							  PQsocket(ss->stream.conn->pg), NULL, ss);
	}
}

/*
 * No stream has a row at hand: sleep until one may have.  False: the scan is to
 * stop.  Returns now and then without reason.
 */
static bool
wait_for_any(TidrangeScan *scan)
{
	WaitEvent	event;
	long		timeout = scan->shared ? CONNECTION_STOP_POLL_MS : -1;
	instr_time	begin;
	instr_time	end;

	if (scan_stop_requested(scan))
		return false;
	/* A remote that says nothing at all is the one that needs help most. */
	if (may_grow(scan))
		timeout = Max(Min(scan_connection_patience, CONNECTION_STOP_POLL_MS), 1);
	if (scan->waits == NULL)
		make_waits(scan);
	INSTR_TIME_SET_CURRENT(begin);
	if (WaitEventSetWait(scan->waits, timeout, &event, 1,
						 PG_WAIT_EXTENSION) == 1)
	{
		if (event.events & WL_LATCH_SET)
		{
			ResetLatch(MyLatch);
			CHECK_FOR_INTERRUPTS();
		}
		else if (event.user_data != NULL)
			scan->current = (ScanStream *) event.user_data - scan->streams;
	}
	INSTR_TIME_SET_CURRENT(end);
	INSTR_TIME_SUBTRACT(end, begin);
	scan->starved += INSTR_TIME_GET_DOUBLE(end);
	scan->counters.wait_seconds += INSTR_TIME_GET_DOUBLE(end);
	return true;
}

/* ----------
 * The loop
 * ----------
 */

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

/*
 * The current stream has no row at hand (`tried` streams in turn had none).
 * Turn to one that may have.  False: the scan is to stop.
 */
static bool
turn(TidrangeScan *scan, int *tried)
{
	int			i;

	if (is_starved(scan) && add_stream(scan))
	{
		*tried = 0;
		return true;
	}
	if (++*tried < scan->nstreams)
	{
		for (i = 1; i < scan->nstreams; i++)
		{
			int			next = (scan->current + i) % scan->nstreams;

			if (scan->streams[next].has_chunk)
			{
				scan->current = next;
				return true;
			}
		}
	}
	*tried = 0;
	return wait_for_any(scan);
}

/* The next row in the slot, or an empty slot. */
static TupleTableSlot *
next_row(TidrangeScan *scan, TupleTableSlot *slot)
{
	WaitLimits	limits = {0};
	int			tried = 0;

	limits.stop = scan->shared ? scan_stop_requested : NULL;
	limits.stop_arg = scan;
	for (;;)
	{
		ScanStream *ss = &scan->streams[scan->current];
		Connection *conn = ss->stream.conn;
		char	   *row;
		int			length;

		if (!ss->has_chunk)
		{
			if (!find_work(scan))
				return slot;
			continue;
		}

		/* Alone, it waits by itself. */
		limits.no_wait = scan->max_streams > 1 && scan->remote.chunked;
		switch (stream_next(&ss->stream, &limits, &row, &length))
		{
			case STREAM_ROW:
				codec_decode(scan->codec, row, length, slot->tts_values,
							 slot->tts_isnull, &slot->tts_tid);
				ExecStoreVirtualTuple(slot);
				if (passes_local_filter(scan, slot))
					return slot;
				ExecClearTuple(slot);
				tried = 0;
				break;
			case STREAM_STOPPED:
				if (limits.no_wait && turn(scan, &tried))
					break;
				scan->ended = true;
				scan_leave(scan, false);
				return slot;
			case STREAM_END:
				finish_chunk(scan, ss, conn);
				/* chunks without rows may follow each other without a wait */
				CHECK_FOR_INTERRUPTS();
				tried = 0;
				/* nobody is to wait for ever while another one is fast */
				if (has_other_chunk(scan) &&
					begin_chunk(scan, ss, NULL))
					scan->current = (scan->current + 1) % scan->nstreams;
				break;
		}
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
	if (unlikely(scan->codec == NULL ||
				 !scan->streams[scan->current].has_chunk))
	{
		/* Columns that are not sent stay NULL for the whole scan. */
		memset(slot->tts_isnull, true,
			   slot->tts_tupleDescriptor->natts * sizeof(bool));
	}
	scan_push_error_context(scan, &callback);
	next_row(scan, slot);
	error_context_stack = callback.previous;
	return slot;
}
