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

#endif							/* TIDRANGE_SIZE_H */
