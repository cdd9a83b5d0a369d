/*-------------------------------------------------------------------------
 *
 * shippable.h
 *	  Which expressions may be evaluated by the remote server.
 *
 *-------------------------------------------------------------------------
 */
#ifndef TIDRANGE_SHIPPABLE_H
#define TIDRANGE_SHIPPABLE_H

#include "nodes/pathnodes.h"

/*
 * True if `expr` (a qual or target over columns of the foreign base relation
 * `rel`, parameters and constants) gives the same result on the remote as
 * here.  `extensions` lists OIDs of extensions whose members may be sent.
 */
extern bool shippable_expr(PlannerInfo *root, RelOptInfo *rel, Expr *expr,
						   List *extensions);

/* True if the type, function, operator or collation is built in (same
 * meaning on every server) or belongs to one of the extensions. */
extern bool shippable_object(Oid object, Oid class_id, List *extensions);

/*
 * True if a call of the function under this collation was found shippable
 * because the collation is "C": the remote text must then say so.
 */
extern bool shippable_spells_collation(Oid funcid, Oid collation);

#endif							/* TIDRANGE_SHIPPABLE_H */
