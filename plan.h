/*-------------------------------------------------------------------------
 *
 * plan.h
 *	  Sizes, costs and paths of foreign tables; the plan for the executor.
 *
 *-------------------------------------------------------------------------
 */
#ifndef TIDRANGE_PLAN_H
#define TIDRANGE_PLAN_H

#include "foreign/fdwapi.h"
#include "nodes/pathnodes.h"
#include "nodes/plannodes.h"

/*
 * What the executor gets from the planner.  ForeignScan.fdw_private holds it as
 * a list in the order of ScanPlanItem, fdw_exprs holds the parameters.
 */
typedef struct ScanPlan
{
	List	   *fragments;		/* of the remote WHERE; see DeparsedQuals */
	List	   *params;			/* Expr nodes between the fragments */
	List	   *ctid_operators; /* quals on ctid; see ctid.h */
	List	   *ctid_exprs;		/* their values; Expr nodes */
	List	   *attnums;		/* columns that the remote sends, as integers */
	List	   *qual_attnums;	/* columns in the remote WHERE */
	bool		needs_ctid;		/* its ctid is wanted, or part of a qual */
	double		limit;			/* rows that a statement need not exceed; -1: all */
	int			connections;	/* at once, at most, where the scan is not
								 * parallel */
	const char *serial_reason;	/* why an INSERT does not read in parallel;
								 * empty: it does, or is none */
	const char *row_reason;		/* why an INSERT must not write in batches;
								 * empty: the target decides */
	double		pages;			/* block space as estimated; -1: unknown */
	bool		has_leaves;		/* the remote table is a parent, it seems */
	bool		is_flat;		/* of leaves only, and partitioned */
	const char *whole_reason;	/* why chunks are impossible; "": none */
} ScanPlan;

extern void plan_rel_size(PlannerInfo *root, RelOptInfo *rel, Oid relid);
extern void plan_paths(PlannerInfo *root, RelOptInfo *rel, Oid relid);
extern ForeignScan *plan_scan(PlannerInfo *root, RelOptInfo *rel, Oid relid,
							  ForeignPath *path, List *tlist,
							  List *scan_clauses, Plan *outer_plan);
extern bool plan_is_ours(Oid relid);
extern bool plan_is_our_routine(const FdwRoutine *routine);

/* plan_pack.c */
extern List *plan_pack(const ScanPlan *plan);
extern void plan_unpack(const ForeignScan *scan, ScanPlan *plan);

#endif							/* TIDRANGE_PLAN_H */
