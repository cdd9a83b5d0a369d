/*-------------------------------------------------------------------------
 *
 * size.h
 *	  Sizes of remote tables for planning, cached for the session.
 *
 *-------------------------------------------------------------------------
 */
#ifndef TIDRANGE_SIZE_H
#define TIDRANGE_SIZE_H

#include "nodes/pathnodes.h"
#include "remote_table.h"

extern void size_lookup(PlannerInfo *root, RelOptInfo *rel, Oid relid,
						RemoteSize *size);

/* What the remote's planner expects of a statement. */
typedef struct RemoteEstimate
{
	double		startup_cost;
	double		total_cost;
	double		rows;
	double		width;
} RemoteEstimate;

extern bool size_estimate(RelOptInfo *rel, Oid relid, const char *select_sql,
						  RemoteEstimate *estimate);

#endif							/* TIDRANGE_SIZE_H */
