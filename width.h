/*-------------------------------------------------------------------------
 *
 * width.h
 *	  How wide rows are, and what it costs to decode them.
 *
 *-------------------------------------------------------------------------
 */
#ifndef TIDRANGE_WIDTH_H
#define TIDRANGE_WIDTH_H

#include "nodes/pathnodes.h"
#include "remote_table.h"

extern void width_set(RelOptInfo *rel, Oid relid, const RemoteSize *size);
extern Cost width_decode_cost(RelOptInfo *rel, Oid relid,
							  const RemoteSize *size);

#endif							/* TIDRANGE_WIDTH_H */
