/*-------------------------------------------------------------------------
 *
 * plan.c
 *	  Sizes, costs and paths of foreign tables; the plan for the executor.
 *
 * A foreign table gets two paths:
 *
 * - whole: one remote statement, so that the remote is free to use an index or
 *	 parallel workers of its own.  It is never parallel-safe: core would run all
 *	 of it in every participant below a Gather, and without a DSM hook such a
 *	 scan could not learn the snapshot.
 * - chunked: a parallel-aware partial path, each participant reading ranges of
 *	 blocks.
 *
 * Costs: connecting counts once, since participants connect at the same time;
 * transfer and CPU divide by the participants; remote I/O does not.
 *
 * The block count used here is an estimate.  The one that the scan divides is
 * measured when it starts.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "access/sysattr.h"
#include "access/table.h"
#include "compat.h"
#include "deparse.h"
#include "miscadmin.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/planmain.h"
#include "optimizer/plancat.h"
#include "optimizer/restrictinfo.h"
#include "option.h"
#include "plan.h"
#include "shippable.h"
#include "size.h"
#include "utils/rel.h"

/* Blocks of an adaptive chunk, for how many participants find work. */
#define PLANNED_CHUNK_BLOCKS	64

/* Bytes of a block that rows can use, and of a row beside its data. */
#define USABLE_BLOCK_BYTES		(BLCKSZ - 24)
#define ROW_OVERHEAD_BYTES		28

/* Guess when nothing is known: as core for a foreign table. */
#define DEFAULT_TUPLES			1000

/* Planner state of one foreign table; RelOptInfo.fdw_private. */
typedef struct PlanRelInfo
{
	TableOptions options;
	RemoteSize	size;
	List	   *remote_quals;	/* RestrictInfos that the remote evaluates */
	List	   *local_quals;	/* the others */
	double		rows_sent;		/* how many rows pass the remote quals */
	QualCost	remote_cost;	/* of the remote quals */
	QualCost	local_cost;
} PlanRelInfo;

/* Positions in fdw_private. */
enum ScanPlanItem
{
	PLAN_FRAGMENTS,				/* list of String */
	PLAN_ATTNUMS,				/* list of integers */
	PLAN_QUAL_ATTNUMS,			/* list of integers */
	PLAN_NEEDS_CTID,			/* Boolean */
	PLAN_PAGES,					/* Float */
};

/* ----------
 * Sizes
 * ----------
 */

/* Rows that fit into the pages when the remote was never analyzed. */
static double
tuples_by_width(Oid relid, double pages)
{
	int32		width = get_relation_data_width(relid, NULL);

	return pages * USABLE_BLOCK_BYTES / (width + ROW_OVERHEAD_BYTES);
}

/* Fill pages and tuples of the relation from what the remote said. */
static void
set_size(RelOptInfo *rel, Oid relid, const RemoteSize *size)
{
	if (!size->known)
	{
		/* ANALYZE may have left something; else core's default. */
		if (rel->tuples <= 0)
			rel->tuples = rel->pages > 0 ?
				tuples_by_width(relid, rel->pages) : DEFAULT_TUPLES;
		return;
	}
	rel->pages = (BlockNumber) Min(size->pages, (double) MaxBlockNumber);
	if (size->tuples >= 0 && size->tuples_pages > 0)
		rel->tuples = size->tuples / size->tuples_pages * size->pages;
	else if (size->pages > 0)
		rel->tuples = tuples_by_width(relid, size->pages);
	else
		rel->tuples = size->kind == RELKIND_RELATION ? 0 : DEFAULT_TUPLES;
}

/* Divide the quals between the remote and us. */
static void
classify_quals(PlannerInfo *root, RelOptInfo *rel, PlanRelInfo *info)
{
	ListCell   *lc;

	foreach(lc, rel->baserestrictinfo)
	{
		RestrictInfo *rinfo = lfirst_node(RestrictInfo, lc);

		if (shippable_expr(root, rel, rinfo->clause, info->options.extensions))
			info->remote_quals = lappend(info->remote_quals, rinfo);
		else
			info->local_quals = lappend(info->local_quals, rinfo);
	}
	info->rows_sent = rel->tuples *
		clauselist_selectivity(root, info->remote_quals, rel->relid,
							   JOIN_INNER, NULL);
	info->rows_sent = clamp_row_est(info->rows_sent);
	cost_qual_eval(&info->remote_cost, info->remote_quals, root);
	cost_qual_eval(&info->local_cost, info->local_quals, root);
}

/*
 * GetForeignRelSize.
 */
void
plan_rel_size(PlannerInfo *root, RelOptInfo *rel, Oid relid)
{
	PlanRelInfo *info = palloc0(sizeof(PlanRelInfo));

	rel->fdw_private = info;
	option_resolve_table(relid, &info->options);
	size_lookup(root, rel, relid, &info->size);
	set_size(rel, relid, &info->size);
	classify_quals(root, rel, info);
	set_baserel_size_estimates(root, rel);
}

/* ----------
 * Paths
 * ----------
 */

/* Cost of a scan by `divisor` participants: the total; *startup also. */
static Cost
scan_cost(RelOptInfo *rel, const PlanRelInfo *info, double divisor,
		  Cost *startup)
{
	Cost		disk = rel->pages * seq_page_cost;
	Cost		cpu;

	*startup = info->options.fdw_startup_cost + info->remote_cost.startup +
		info->local_cost.startup;

	/* the remote looks at every row, we at those that it sends */
	cpu = rel->tuples * (cpu_tuple_cost + info->remote_cost.per_tuple);
	cpu += info->rows_sent * (info->options.fdw_tuple_cost + cpu_tuple_cost +
							  info->local_cost.per_tuple);
	return *startup + disk + cpu / divisor;
}

/* Core's get_parallel_divisor (costsize.c), which is static there. */
static double
parallel_divisor(int workers)
{
	double		divisor = workers;

	if (parallel_leader_participation)
	{
		double		leader = 1.0 - 0.3 * workers;

		if (leader > 0)
			divisor += leader;
	}
	return divisor;
}

/* How many workers a chunked scan should have; 0: none. */
static int
planned_workers(RelOptInfo *rel, const PlanRelInfo *info)
{
	double		chunk = info->options.chunk_blocks > 0 ?
	(double) info->options.chunk_blocks : PLANNED_CHUNK_BLOCKS;
	double		chunks = ceil(Max((double) rel->pages, 1) / chunk);
	int			workers = info->options.parallel_workers;

	if (workers < 0)
		workers = compute_parallel_worker(rel, rel->pages, -1,
										  max_parallel_workers_per_gather);
	workers = Min(workers, max_parallel_workers_per_gather);

	/* More participants than chunks would connect for nothing. */
	if (workers >= chunks)
		workers = (int) chunks - (parallel_leader_participation ? 1 : 0);
	return Max(workers, 0);
}

/* Can the relation be read in chunks, as far as is known? */
static bool
may_be_chunked(const PlanRelInfo *info)
{
	const RemoteSize *size = &info->size;

	return !size->known ||
		remote_table_kind_reason(size->kind, size->is_heap,
								 size->has_children,
								 size->server_version) == NULL;
}

static void
add_chunked_path(PlannerInfo *root, RelOptInfo *rel, PlanRelInfo *info)
{
	ForeignPath *path;
	Cost		startup;
	Cost		total;
	double		divisor;
	int			workers;

	if (!rel->consider_parallel || rel->lateral_relids != NULL ||
		!may_be_chunked(info))
		return;
	workers = planned_workers(rel, info);
	if (workers == 0)
		return;

	divisor = parallel_divisor(workers);
	total = scan_cost(rel, info, divisor, &startup);
	path = compat_create_foreignscan_path(root, rel,
										  clamp_row_est(rel->rows / divisor),
										  startup, total, NIL, NULL, NIL);
	path->path.parallel_aware = true;
	path->path.parallel_safe = true;
	path->path.parallel_workers = workers;
	add_partial_path(rel, (Path *) path);
}

/*
 * GetForeignPaths.
 */
void
plan_paths(PlannerInfo *root, RelOptInfo *rel, Oid relid)
{
	PlanRelInfo *info = rel->fdw_private;
	ForeignPath *path;
	Cost		startup;
	Cost		total = scan_cost(rel, info, 1, &startup);

	path = compat_create_foreignscan_path(root, rel, rel->rows, startup, total,
										  NIL, rel->lateral_relids, NIL);
	path->path.parallel_safe = false;
	add_path(rel, (Path *) path);
	add_chunked_path(root, rel, info);
}

/* ----------
 * The plan
 * ----------
 */

/* The columns that the remote must send, in their order; then ctid. */
static List *
needed_columns(RelOptInfo *rel, Oid relid, List *local_exprs, bool *ctid)
{
	Relation	relation = table_open(relid, NoLock);
	TupleDesc	desc = RelationGetDescr(relation);
	Bitmapset  *used = NULL;
	List	   *attnums = NIL;
	bool		whole_row;
	int			i;

	pull_varattnos((Node *) rel->reltarget->exprs, rel->relid, &used);
	pull_varattnos((Node *) local_exprs, rel->relid, &used);
	whole_row = bms_is_member(0 - FirstLowInvalidHeapAttributeNumber, used);
	for (i = 1; i <= desc->natts; i++)
	{
		if (TupleDescAttr(desc, i - 1)->attisdropped)
			continue;
		if (whole_row ||
			bms_is_member(i - FirstLowInvalidHeapAttributeNumber, used))
			attnums = lappend_int(attnums, i);
	}
	*ctid = bms_is_member(SelfItemPointerAttributeNumber -
						  FirstLowInvalidHeapAttributeNumber, used);
	if (*ctid)
		attnums = lappend_int(attnums, SelfItemPointerAttributeNumber);
	table_close(relation, NoLock);
	return attnums;
}

/* The columns in these quals; *ctid is set if it is among them. */
static List *
mentioned_columns(RelOptInfo *rel, List *exprs, bool *ctid)
{
	Bitmapset  *used = NULL;
	List	   *attnums = NIL;
	int			member = -1;

	pull_varattnos((Node *) exprs, rel->relid, &used);
	while ((member = bms_next_member(used, member)) >= 0)
	{
		AttrNumber	attnum = member + FirstLowInvalidHeapAttributeNumber;

		if (attnum > 0)
			attnums = lappend_int(attnums, attnum);
		else if (attnum == SelfItemPointerAttributeNumber)
			*ctid = true;
	}
	return attnums;
}

/*
 * GetForeignPlan.
 */
ForeignScan *
plan_scan(PlannerInfo *root, RelOptInfo *rel, Oid relid, ForeignPath *path,
		  List *tlist, List *scan_clauses, Plan *outer_plan)
{
	PlanRelInfo *info = rel->fdw_private;
	List	   *remote_exprs = NIL;
	List	   *local_exprs = NIL;
	DeparsedQuals quals;
	List	   *attnums;
	List	   *qual_attnums;
	List	   *private;
	bool		needs_ctid;
	ListCell   *lc;

	foreach(lc, scan_clauses)
	{
		RestrictInfo *rinfo = lfirst_node(RestrictInfo, lc);

		/* Pseudoconstants are evaluated above the scan. */
		if (rinfo->pseudoconstant)
			continue;
		if (list_member_ptr(info->remote_quals, rinfo))
			remote_exprs = lappend(remote_exprs, rinfo->clause);
		else
			local_exprs = lappend(local_exprs, rinfo->clause);
	}
	quals = deparse_quals(root, rel, remote_exprs);
	attnums = needed_columns(rel, relid, local_exprs, &needs_ctid);
	qual_attnums = mentioned_columns(rel, remote_exprs, &needs_ctid);

	/* Without a decimal point it would come back to a worker as an Integer. */
	private = list_make5(quals.fragments, attnums, qual_attnums,
						 makeBoolean(needs_ctid),
						 makeFloat(psprintf("%.1f", info->size.known ?
											info->size.pages : -1.0)));
	return make_foreignscan(tlist, local_exprs, rel->relid, quals.params,
							private, NIL, remote_exprs, outer_plan);
}

/*
 * What plan_scan packed.
 */
void
plan_unpack(const ForeignScan *scan, ScanPlan *plan)
{
	List	   *private = scan->fdw_private;

	plan->fragments = (List *) list_nth(private, PLAN_FRAGMENTS);
	plan->attnums = (List *) list_nth(private, PLAN_ATTNUMS);
	plan->qual_attnums = (List *) list_nth(private, PLAN_QUAL_ATTNUMS);
	plan->needs_ctid = boolVal(list_nth(private, PLAN_NEEDS_CTID));
	plan->pages = floatVal(list_nth(private, PLAN_PAGES));
	plan->params = scan->fdw_exprs;
}
