/*-------------------------------------------------------------------------
 *
 * scan_team.c
 *	  A scan whose participants are sessions of their own, not the workers of a
 *	  parallel plan.
 *
 * Each member of the team runs the same statement in its own local transaction,
 * with a plan in which one foreign table is read once.  The scan of that table
 * is shared: member 0 leads, which means that it prepares the scan as the leader
 * of a parallel plan does, puts the shared state (parallel.c) into a segment and
 * publishes it.  The others wait for that before their first row, and take over.
 * From there on they are participants as any other: scan_join.c.
 *
 * All of a member's scans on that remote see the leader's snapshot, whichever
 * table they read.  So a member that meets another foreign table first also waits
 * for the leader, and its control connection adopts the snapshot.
 *
 * A leader whose statement ends without a look at the table has found the result
 * to be empty.  The statement, the local snapshot and the remote one are the same
 * for all: whoever still waits has no rows either.
 *
 * The leader's remote transaction must last until all others have adopted its
 * snapshot: it must not end its local one before all have executed the statement.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "compat.h"
#include "miscadmin.h"
#include "scan_team.h"
#include "utils/lsyscache.h"

#define POLL_MS		20

/* The team of this process; there is one in a lifetime. */
static struct
{
	ScanTeam   *team;			/* NULL: none */
	Oid			relid;			/* the foreign table that is divided */
	int			member;
	int			nmembers;
	ScanTeamProgress progress;
	dsm_segment *segment;
	ScanShared *shared;			/* NULL: not there yet */
	TidrangeScan *scan;			/* the scan that is divided; only compared */
}			own;

void
scan_team_init(ScanTeam *team)
{
	pg_atomic_init_u32(&team->state, SCAN_TEAM_NEW);
	team->handle = 0;
	team->nblocks = 0;
}

/*
 * From now on this process shares its scan of `relid` with the other members.
 */
void
scan_team_begin(ScanTeam *team, Oid relid, int member, int nmembers,
				ScanTeamProgress progress)
{
	Assert(own.team == NULL);
	own.team = team;
	own.relid = relid;
	own.member = member;
	own.nmembers = nmembers;
	own.progress = progress;
}

/* This member has executed its statement. */
void
scan_team_executed(void)
{
	own.scan = NULL;
	if (own.member == 0 && own.shared == NULL)
		pg_atomic_write_u32(&own.team->state, SCAN_TEAM_UNUSED);
}

/*
 * All members have executed the statement: raise an error unless every block was
 * read, as far as that can be told.
 */
void
scan_team_check(void)
{
	if (own.shared != NULL)
		scan_check_coverage(own.shared, get_rel_name(own.relid));
}

/* Is it the scan that the team shares? */
bool
scan_team_divides(const TidrangeScan *scan)
{
	return own.team != NULL && scan->relid == own.relid;
}

/* The leader prepares the scan, and shows it to the others. */
static void
lead(TidrangeScan *scan)
{
	scan_prepare_leader(scan);
	if (!scan->remote.chunked)
		ereport(NOTICE,
				(errmsg("foreign table \"%s\" is read by one worker",
						scan->relation_name),
				 errdetail("It cannot be divided: %s.",
						   scan->remote.whole_reason)));
	own.segment = dsm_create(scan_shared_size(scan, own.nmembers), 0);
	dsm_pin_mapping(own.segment);
	own.shared = dsm_segment_address(own.segment);
	scan_share(scan, own.shared, own.nmembers, true);
	own.team->handle = dsm_segment_handle(own.segment);
	own.team->nblocks = scan->remote.nblocks;
	pg_write_barrier();
	pg_atomic_write_u32(&own.team->state, SCAN_TEAM_SHARED);
}

/* Wait until the leader has shown the scan.  False: it will not. */
static bool
wait_for_leader(void)
{
	while (own.shared == NULL)
	{
		uint32		state = pg_atomic_read_u32(&own.team->state);

		if (state == SCAN_TEAM_UNUSED)
			return false;
		if (state == SCAN_TEAM_SHARED)
		{
			pg_read_barrier();
			own.segment = dsm_attach(own.team->handle);
			if (own.segment == NULL)
				ereport(ERROR,
						(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
						 errmsg("the first worker of the parallel insert is gone")));
			dsm_pin_mapping(own.segment);
			own.shared = dsm_segment_address(own.segment);
			break;
		}
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 POLL_MS, PG_WAIT_EXTENSION);
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
	}
	return true;
}

/* Another foreign table of the statement: read it as the leader sees it. */
static void
join_snapshot(ConnectionPool *pool)
{
	SnapshotTicket ticket;
	WaitLimits	limits = {0};
	RemoteError error;

	if (pool->snapshot != NULL)
		return;
	scan_shared_ticket(own.shared, &ticket);
	if (snapshot_join(pool, &ticket, &limits, &error) == NULL)
		connection_report(ERROR, &error, pool, NULL);
}

/*
 * Before a scan's first row: make it a part of the team's, where it is one.  False:
 * it has no rows for this process.
 */
bool
scan_team_enter(TidrangeScan *scan)
{
	if (own.team == NULL)
		return true;
	if (own.member > 0 && !wait_for_leader())
		return false;
	if (!scan_team_divides(scan))
	{
		if (own.member > 0)
			join_snapshot(scan->pool);
		return true;
	}
	if (own.scan != NULL)
		elog(ERROR, "foreign table \"%s\" is read twice", scan->relation_name);
	own.scan = scan;
	if (own.member == 0)
		lead(scan);
	else
		scan_take_over(scan, own.shared, own.member);
	return true;
}

/* Has this process no view of the remote yet, of those that the team shares? */
bool
scan_team_needs_snapshot(const TidrangeScan *scan)
{
	return own.team != NULL && own.member > 0 && own.shared != NULL &&
		scan->pool->snapshot == NULL;
}

/* A chunk is finished, or the scan is. */
void
scan_team_progress(TidrangeScan *scan)
{
	if (own.scan == scan && own.progress != NULL)
		own.progress(&scan->counters, scan->state->ss.ps.state);
}

/* A second pass would find that others have claimed rows of the first. */
void
scan_team_refuse_rescan(const TidrangeScan *scan)
{
	if (own.scan == scan && own.scan != NULL)
		elog(ERROR, "shared scan of foreign table \"%s\" cannot be repeated",
			 scan->relation_name);
}
