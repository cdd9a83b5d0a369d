/*-------------------------------------------------------------------------
 *
 * ctid.h
 *	  Quals on ctid, as limits of the blocks to read.
 *
 *-------------------------------------------------------------------------
 */
#ifndef TIDRANGE_CTID_H
#define TIDRANGE_CTID_H

#include "nodes/execnodes.h"
#include "nodes/pathnodes.h"

/* Blocks [first, beyond) that can hold matching rows. */
typedef struct CtidRange
{
	uint64		first;
	uint64		beyond;
} CtidRange;

extern void ctid_extract(RelOptInfo *rel, List *clauses,
						 List **operators, List **exprs);
extern double ctid_planned_fraction(RelOptInfo *rel, List *clauses);
extern CtidRange ctid_range(List *operators, List *states, ExprContext *econtext);

#endif							/* TIDRANGE_CTID_H */
