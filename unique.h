/*-------------------------------------------------------------------------
 *
 * unique.h
 *	  Tells the planner which columns are unique on the remote.
 *
 *-------------------------------------------------------------------------
 */
#ifndef TIDRANGE_UNIQUE_H
#define TIDRANGE_UNIQUE_H

#include "nodes/pathnodes.h"

extern void unique_show(RelOptInfo *rel, Oid relid, const char *columns);

#endif							/* TIDRANGE_UNIQUE_H */
