/*-------------------------------------------------------------------------
 *
 * insert_select.h
 *	  Whether INSERT ... SELECT may read in parallel.
 *
 *-------------------------------------------------------------------------
 */
#ifndef TIDRANGE_INSERT_SELECT_H
#define TIDRANGE_INSERT_SELECT_H

#include "nodes/execnodes.h"
#include "nodes/pathnodes.h"
#include "utils/rel.h"

/* GUC tidrange_fdw.parallel_insert */
extern bool insert_select_enabled;

extern const char *insert_select_volatile_reason(Relation relation);
extern bool insert_select_is_volatile_text(const char *text);
extern bool insert_select_is_insert(PlannerInfo *root);
extern const char *insert_select_plan_reason(PlannerInfo *root,
											 RelOptInfo *rel);
extern const char *insert_select_row_reason(PlannerInfo *root,
											RelOptInfo *rel, Oid relid);
extern const char *insert_select_begin(ForeignScanState *node);
extern bool insert_select_decodes_safely(RelOptInfo *rel, Oid relid);

#endif							/* TIDRANGE_INSERT_SELECT_H */
