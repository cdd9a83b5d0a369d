/*-------------------------------------------------------------------------
 *
 * scan_team.h
 *	  A scan whose participants are sessions of their own.
 *
 *-------------------------------------------------------------------------
 */
#ifndef TIDRANGE_SCAN_TEAM_H
#define TIDRANGE_SCAN_TEAM_H

#include "port/atomics.h"
#include "scan.h"
#include "storage/dsm.h"

/* How far the leader is. */
#define SCAN_TEAM_NEW		0	/* it has not begun the scan */
#define SCAN_TEAM_SHARED	1	/* the others may begin */
#define SCAN_TEAM_UNUSED	2	/* it ended without needing the scan */

/* What the members share beside the scan itself; in a segment of the caller's. */
typedef struct ScanTeam
{
	pg_atomic_uint32 state;		/* [A] SCAN_TEAM_* */
	dsm_handle	handle;			/* [leader] of the ScanShared */
	uint64		nblocks;		/* [leader] of the remote table */
} ScanTeam;

/* Called after each chunk, with what this member has read and the query state. */
typedef void (*ScanTeamProgress) (const ScanCounters *counters, EState *estate);

extern void scan_team_init(ScanTeam *team);
extern void scan_team_begin(ScanTeam *team, Oid relid, int member,
							int nmembers, ScanTeamProgress progress);
extern void scan_team_executed(void);
extern void scan_team_check(void);
extern bool scan_team_divides(const TidrangeScan *scan);
extern bool scan_team_enter(TidrangeScan *scan);
extern bool scan_team_needs_snapshot(const TidrangeScan *scan);
extern void scan_team_progress(TidrangeScan *scan);
extern void scan_team_refuse_rescan(const TidrangeScan *scan);

#endif							/* TIDRANGE_SCAN_TEAM_H */
