/*-------------------------------------------------------------------------
 *
 * scan_join.c
 *	  How a participant gets a connection, joins the claim loop and leaves it.
 *
 * To return "no more rows" is a statement about the whole scan: Append marks a
 * child finished for everybody, and a Parallel Hash closes its batch.  So a
 * participant ends only when it saw the counter exhausted, or the stop flag, or
 * while another one that already holds snapshot and lock is in the claim loop.
 * One that the remote refuses waits for that, and retries; if nobody else can
 * read, it raises the remote's error.
 *
 * Connections: the control connection lends itself as the leader's stream when
 * it is free.  A scan that finds all connections of its process busy opens one
 * more, which adopts the snapshot; if the remote refuses that, it parks the
 * stream of another scan and takes over its connection.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "compat.h"
#include "miscadmin.h"
#include "scan.h"
#include "scan_team.h"

/* How long a refused participant sleeps between two tries. */
#define RETRY_MIN_MS			20
#define RETRY_MAX_MS			1000

/* How long it goes on when no other participant can read either: if the leader
 * does not take part, and if it does but is busy elsewhere. */
#define JOIN_PATIENCE_MS		5000
#define JOIN_LONG_PATIENCE_MS	600000

/* Wake up for nothing else than the end of all work. */
bool
scan_stop_requested(void *arg)
{
	TidrangeScan *scan = arg;

	return scan->shared != NULL &&
		pg_atomic_read_u32(&scan->shared->stop) != 0;
}

/* Before the first claim there is more that makes joining pointless. */
static bool
nothing_left(void *arg)
{
	TidrangeScan *scan = arg;

	return scan_stop_requested(scan) || claim_exhausted(scan->claim);
}

/* ----------
 * Connections of this process
 * ----------
 */

/* The scan's stream that reads from the connection. */
static ScanStream *
borrowing_stream(Connection *conn)
{
	return (ScanStream *) ((char *) conn->borrower -
						   offsetof(ScanStream, stream.conn));
}

/* Take the connection away from the stream that reads from it. */
void
scan_park_borrower(Connection *conn)
{
	ScanStream *owner = borrowing_stream(conn);
	WaitLimits	limits = {0};

	scan_free_waits(owner->scan);
	stream_park(&owner->stream, owner->scan->context, &limits);
	Assert(conn->borrower == NULL);
}

/* Is it at rest?  A control connection left in mid-answer is brought there. */
static bool
make_ready(Connection *conn)
{
	if (conn->borrower != NULL || PQstatus(conn->pg) != CONNECTION_OK)
		return false;
	if (conn->is_control && conn->in_transaction &&
		(conn->dirty || PQtransactionStatus(conn->pg) != PQTRANS_INTRANS))
	{
		WaitLimits	limits = connection_limits(CONNECTION_RECOVER_MS);

		if (!connection_recover(conn, &limits))
			return false;
	}
	return PQtransactionStatus(conn->pg) == PQTRANS_INTRANS;
}

/* A free connection that has locked `oid` (InvalidOid: any); NULL if none. */
Connection *
scan_find_connection(ConnectionPool *pool, Oid oid)
{
	dlist_mutable_iter iter;

	dlist_foreach_modify(iter, &pool->connections)
	{
		Connection *conn = dlist_container(Connection, node, iter.cur);

		if (OidIsValid(oid) && !list_member_oid(conn->locked, oid))
			continue;
		if (make_ready(conn))
			return conn;
	}
	return NULL;
}

/*
 * One more connection with the scan's snapshot.  NULL with `error` set if it
 * cannot be had; *retry tells whether that may change.
 */
Connection *
scan_open_connection(TidrangeScan *scan, const WaitLimits *limits,
					 RemoteError *error, bool *retry)
{
	char		role[32];
	Connection *conn;

	if (scan->slot > 0)
		snprintf(role, sizeof(role), "worker %d", scan->slot - 1);
	else
		snprintf(role, sizeof(role), "leader extra");

	*retry = true;
	conn = connection_open(scan->pool, &scan->ticket.peer, role, limits,
						   error);
	if (conn == NULL)
		return NULL;
	if (snapshot_adopt(conn, &scan->ticket, limits, error))
		return conn;
	*retry = error->sqlstate == ERRCODE_OUT_OF_MEMORY;
	connection_close(conn);
	return NULL;
}

/*
 * A connection of this process that is free and has snapshot and lock.  NULL
 * with `error` set if there is none and the remote gives none.
 */
static Connection *
try_connection(TidrangeScan *scan, const WaitLimits *limits,
			   RemoteError *error, bool *retry)
{
	Connection *conn = scan_find_connection(scan->pool, scan->lock_key);
	SnapshotLock lock;

	*retry = false;
	if (conn != NULL)
		return conn;
	conn = scan_find_connection(scan->pool, InvalidOid);
	if (conn == NULL && scan_team_needs_snapshot(scan))
	{
		conn = snapshot_join(scan->pool, &scan->ticket, limits, error);
		*retry = conn == NULL;
	}
	else if (conn == NULL)
		conn = scan_open_connection(scan, limits, error, retry);
	if (conn == NULL)
		return NULL;

	scan_fill_lock(scan, &lock);
	if (snapshot_lock(conn, &lock, limits, error))
		return conn;
	/* Others may read on where the remote's lock table is full. */
	*retry = error->sqlstate == ERRCODE_LOCK_NOT_AVAILABLE ||
		error->sqlstate == ERRCODE_OUT_OF_MEMORY;
	if (conn->is_control)
		make_ready(conn);
	else
		connection_close(conn);
	return NULL;
}

/* The connection that has locked the table, whoever reads from it. */
static Connection *
find_locked(ConnectionPool *pool, Oid oid)
{
	dlist_iter	iter;

	dlist_foreach(iter, &pool->connections)
	{
		Connection *conn = dlist_container(Connection, node, iter.cur);

		if (list_member_oid(conn->locked, oid))
			return conn;
	}
	return NULL;
}

/*
 * As try_connection, for a participant that has joined: it must go on, so that
 * the last resort is to park the stream of another scan.
 */
Connection *
scan_require_connection(TidrangeScan *scan)
{
	WaitLimits	limits = connection_limits(SCAN_EXTRA_CONNECTION_MS);
	RemoteError error = {0};
	bool		retry;
	Connection *conn = try_connection(scan, &limits, &error, &retry);

	if (conn != NULL)
		return conn;
	conn = find_locked(scan->pool, scan->lock_key);
	if (conn != NULL && conn->borrower != NULL && conn->parkable)
	{
		scan_park_borrower(conn);
		return conn;
	}
	if (error.sqlstate == 0)
		ereport(ERROR,
				(errcode(ERRCODE_CONNECTION_FAILURE),
				 errmsg("connection to the remote server was lost"),
				 errhint("Retry the transaction.")));
	connection_report(ERROR, &error, scan->pool, NULL);
	return NULL;
}

/*
 * As try_connection, for a stream that the scan can do without.  NULL if there
 * is none to be had; then there is no use in asking again soon.
 */
Connection *
scan_extra_connection(TidrangeScan *scan)
{
	WaitLimits	limits = connection_limits(SCAN_SPARE_CONNECTION_MS);
	RemoteError error = {0};
	bool		retry;
	Connection *conn;

	limits.stop = scan_stop_requested;
	limits.stop_arg = scan;
	conn = try_connection(scan, &limits, &error, &retry);
	if (conn == NULL)
		ereport(DEBUG1,
				(errmsg_internal("tidrange_fdw: no further connection: %s",
								 error.message ? error.message : "")));
	return conn;
}

/* ----------
 * Joining and leaving
 * ----------
 */

/* Sleep before the next try; interruptible. */
static void
sleep_before_retry(int milliseconds)
{
	(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
					 milliseconds, PG_WAIT_EXTENSION);
	ResetLatch(MyLatch);
	CHECK_FOR_INTERRUPTS();
}

/*
 * The remote refused a worker.  True: it may end, another participant is in
 * the claim loop.  Raises the remote's error if nobody else can read.
 */
static bool
may_bow_out(TidrangeScan *scan, const RemoteError *error,
			TimestampTz first_failure)
{
	ScanShared *shared = scan->shared;
	int			patience = shared->leader_participates ?
	JOIN_LONG_PATIENCE_MS : JOIN_PATIENCE_MS;

	if (pg_atomic_read_u32(&shared->active) > 0)
	{
		ereport(DEBUG1,
				(errmsg_internal("tidrange_fdw: worker %d does not take part: %s",
								 scan->slot - 1, error->message)));
		scan->counters.bowed_out++;
		return true;
	}
	if (pg_atomic_read_u32(&shared->joining) == 0 &&
		TimestampDifferenceExceeds(first_failure, GetCurrentTimestamp(),
								   patience))
		connection_report(ERROR, error, scan->pool, NULL);
	return false;
}

/*
 * A worker's way to snapshot and lock.  False if there is nothing to do for it.
 * It has claimed nothing yet.
 */
static bool
join_as_worker(TidrangeScan *scan)
{
	ScanShared *shared = scan->shared;
	WaitLimits	limits = {0};
	TimestampTz first_failure = 0;
	int			delay = RETRY_MIN_MS;
	bool		joined = false;

	if (nothing_left(scan))
		return false;
	limits.stop = nothing_left;
	limits.stop_arg = scan;
	pg_atomic_fetch_add_u32(&shared->joining, 1);
	while (!nothing_left(scan))
	{
		RemoteError error = {0};
		bool		retry;

		if (try_connection(scan, &limits, &error, &retry) != NULL)
		{
			joined = true;
			break;
		}
		if (error.stopped)
			break;
		if (!retry)
			connection_report(ERROR, &error, scan->pool, NULL);
		if (first_failure == 0)
		{
			first_failure = GetCurrentTimestamp();
			pg_atomic_fetch_sub_u32(&shared->joining, 1);
		}
		if (may_bow_out(scan, &error, first_failure))
			break;
		sleep_before_retry(delay);
		delay = Min(delay * 2, RETRY_MAX_MS);
	}
	if (joined)
		pg_atomic_fetch_add_u32(&shared->active, 1);
	if (first_failure == 0)
		pg_atomic_fetch_sub_u32(&shared->joining, 1);
	return joined;
}

/* Take part in the scan: from here on this process may claim. */
bool
scan_join(TidrangeScan *scan)
{
	/* Its leader may be another session, and may have found nothing to do. */
	if (scan->shared == NULL && !scan_team_enter(scan))
		return false;
	if (scan->shared == NULL)
	{
		if (!scan->prepared)
			scan_prepare(scan, false);
		if (scan->claim == NULL)
			scan_make_private_claim(scan);
	}
	else if (scan->slot > 0)
	{
		if (!join_as_worker(scan))
			return false;
	}
	else
		pg_atomic_fetch_add_u32(&scan->shared->active, 1);

	if (scan->shared != NULL)
		pg_atomic_fetch_add_u32(&scan->shared->started, 1);
	scan->joined = true;
	scan->counters.joined++;
	return true;
}

/* Show the others what this process did so far. */
void
scan_publish_counters(TidrangeScan *scan)
{
	if (scan->shared == NULL)
		return;
	scan_team_progress(scan);
	((ScanCounters *) ((char *) scan->shared +
					   scan->shared->counters_offset))[scan->slot] =
		scan->counters;
}

/* Leave the claim loop. */
void
scan_leave(TidrangeScan *scan, bool exhausted)
{
	if (!scan->joined)
		return;
	scan->joined = false;
	scan_publish_counters(scan);
	if (scan->shared == NULL)
		return;
	if (exhausted)
		pg_atomic_fetch_add_u32(&scan->shared->exhausted, 1);
	pg_atomic_fetch_sub_u32(&scan->shared->active, 1);
}
