/*-------------------------------------------------------------------------
 *
 * plan.c
 *	  Sizes, costs and paths of foreign tables; the plan for the executor.
 *
 * A foreign table gets up to three paths:
 *
 * - whole: one remote statement, so that the remote is free to use an index or
 *	 parallel workers of its own.  It is never parallel-safe: core would run all
 *	 of it in every participant below a Gather, and without a DSM hook such a
 *	 scan could not learn the snapshot.
 * - chunked: a parallel-aware partial path, each participant reading ranges of
 *	 blocks;
 * - chunked in one process, over several connections: for all that core will not
 *	 run in parallel.
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
#include "catalog/pg_type.h"
#include "compat.h"
#include "ctid.h"
#include "deparse.h"
#include "insert_select.h"
#include "miscadmin.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/pathnode.h"
#include "optimizer/paths.h"
#include "optimizer/planmain.h"
#include "optimizer/plancat.h"
#include "optimizer/prep.h"
#include "optimizer/restrictinfo.h"
#include "option.h"
#include "plan.h"
#include "shippable.h"
#include "size.h"
#include "unique.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "width.h"

/* Blocks of an adaptive chunk, for how many participants find work. */
#define PLANNED_CHUNK_BLOCKS	64

/* Bytes of a block that rows can use, and of a row beside its data. */
#define USABLE_BLOCK_BYTES		(BLCKSZ - 24)
#define ROW_OVERHEAD_BYTES		28

/*
 * What a further connection of a process counts for: they are opened one by one,
 * while the scan runs, and only if it waits.
 */
#define CONNECTION_SHARE	0.2

/* Rows whose transfer costs as much as that of a block of large values. */
#define TOAST_PAGE_TUPLES		10

/* Cost of a block in a range, of a table with more blocks than these: a quarter of
 * the default shared_buffers. */
#define CHUNK_BLOCK_COST		4.0
#define CACHED_BLOCKS			4096

/* Cost of a leaf, in starts of a scan. */
#define LEAF_STARTUP_FACTOR		3

/* What a look-up costs of fdw_startup_cost, since the connection is open. */
#define LOOKUP_SHARE		0.2

/* A larger LIMIT limits nothing, and a sum with OFFSET could overflow. */
#define MAX_SENT_LIMIT			1e15

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
	const char *serial_reason;	/* why an INSERT does not read in parallel */
	bool		estimated;		/* the remote planned the whole statement */
	RemoteEstimate estimate;	/* what it expects */
	QualCost	remote_cost;	/* of the remote quals */
	QualCost	local_cost;
	Cost		decode_cost;	/* of a row, beyond fdw_tuple_cost */
	double		toast_pages;	/* to be read along with the rows; or 0 */
	Cost		toast_cost;		/* of one row's part of them */
	double		block_share;	/* of the blocks: what ctid quals leave */
} PlanRelInfo;

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
	else if (size->planned)
		rel->tuples = size->tuples;
	else if (size->pages > 0)
		rel->tuples = tuples_by_width(relid, size->pages);
	else
		rel->tuples = size->kind == RELKIND_RELATION ? 0 : DEFAULT_TUPLES;
}

/*
 * Are values among those that the query needs which may be stored out of line?
 * It then reads, sends and decodes far more than the table's own blocks tell.
 */
static bool
reads_toast(RelOptInfo *rel, Oid relid)
{
	Relation	relation = table_open(relid, NoLock);
	TupleDesc	desc = RelationGetDescr(relation);
	Bitmapset  *used = NULL;
	bool		result = false;
	ListCell   *lc;
	int			i;

	pull_varattnos((Node *) rel->reltarget->exprs, rel->relid, &used);
	foreach(lc, rel->baserestrictinfo)
		pull_varattnos((Node *) lfirst_node(RestrictInfo, lc)->clause,
					   rel->relid, &used);
	for (i = 1; i <= desc->natts && !result; i++)
	{
		Form_pg_attribute attribute = TupleDescAttr(desc, i - 1);

		result = !attribute->attisdropped && attribute->attlen == -1 &&
			attribute->attstorage != TYPSTORAGE_PLAIN &&
			(bms_is_member(i - FirstLowInvalidHeapAttributeNumber, used) ||
			 bms_is_member(0 - FirstLowInvalidHeapAttributeNumber, used));
	}
	table_close(relation, NoLock);
	return result;
}

/* What the TOAST table adds to the size of what is read. */
static void
set_toast(RelOptInfo *rel, Oid relid, PlanRelInfo *info)
{
	if (info->size.known && info->size.toast_pages > 0 &&
		reads_toast(rel, relid))
	{
		info->toast_pages = info->size.toast_pages;
		info->toast_cost = info->toast_pages / Max(rel->tuples, 1) *
			(seq_page_cost + TOAST_PAGE_TUPLES * info->options.fdw_tuple_cost);
	}
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
	cost_qual_eval(&info->remote_cost, info->remote_quals, root);
	cost_qual_eval(&info->local_cost, info->local_quals, root);
}

/* What the remote's planner expects of a statement with these quals. */
static bool
ask_estimate(PlannerInfo *root, RelOptInfo *rel, Oid relid,
			 const PlanRelInfo *info, List *restrictinfos,
			 RemoteEstimate *estimate)
{
	List	   *clauses = get_actual_clauses(restrictinfos);
	DeparsedQuals quals = deparse_quals(root, rel, clauses);
	StringInfoData sql;

	initStringInfo(&sql);
	appendStringInfo(&sql, "SELECT FROM %s%s",
					 info->options.only ? "ONLY " : "",
					 deparse_foreign_table(relid));
	if (quals.fragments != NIL)
	{
		appendStringInfoString(&sql, " WHERE ");
		deparse_hide_params(&sql, quals.fragments, quals.params);
	}
	return size_estimate(rel, relid, sql.data, estimate);
}

/*
 * Is the remote's opinion worth a round trip?  It knows its indexes and has
 * statistics; what it decides is whether a filter is a look-up or a scan.
 */
static bool
wants_estimate(RelOptInfo *rel, const PlanRelInfo *info)
{
	if (info->options.use_remote_estimate >= 0)
		return info->options.use_remote_estimate > 0;
	/* a view is as large as its rows */
	return Max(rel->pages + info->toast_pages,
			   rel->tuples * info->size.width / BLCKSZ) >=
		min_parallel_table_scan_size;
}

/* The remote's plan of a whole view, for a part as well: a qual may spare nothing. */
static void
take_plan_of_view(PlannerInfo *root, RelOptInfo *rel, PlanRelInfo *info)
{
	info->estimated = true;
	info->estimate.startup_cost = info->size.startup_cost;
	info->estimate.total_cost = info->size.total_cost;
	info->estimate.rows = rel->tuples *
		clauselist_selectivity(root, info->remote_quals, rel->relid,
							   JOIN_INNER, NULL);
}

/* How many rows pass the remote quals, and how many the others as well. */
static void
set_rows(PlannerInfo *root, RelOptInfo *rel, Oid relid, PlanRelInfo *info)
{
	if (info->remote_quals != NIL && wants_estimate(rel, info))
		info->estimated = ask_estimate(root, rel, relid, info,
									   info->remote_quals, &info->estimate);
	if (!info->estimated && info->size.planned)
		take_plan_of_view(root, rel, info);
	set_baserel_size_estimates(root, rel);
	if (info->estimated)
	{
		info->rows_sent = clamp_row_est(info->estimate.rows);
		rel->rows = clamp_row_est(info->rows_sent *
								  clauselist_selectivity(root,
														 info->local_quals,
														 rel->relid,
														 JOIN_INNER, NULL));
	}
	else
		info->rows_sent =
			clamp_row_est(rel->tuples *
						  clauselist_selectivity(root, info->remote_quals,
												 rel->relid, JOIN_INNER,
												 NULL));
}

/* The remote transaction is read-only: a lock must not be promised. */
static void
refuse_row_locks(PlannerInfo *root, RelOptInfo *rel, Oid relid)
{
	PlanRowMark *mark = get_plan_rowmark(root->rowMarks, rel->relid);

	if (mark != NULL && mark->strength != LCS_NONE)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot lock rows of foreign table \"%s\"",
						get_rel_name(relid)),
				 errdetail("Remote tables are only read.")));
}

/*
 * GetForeignRelSize.
 */
void
plan_rel_size(PlannerInfo *root, RelOptInfo *rel, Oid relid)
{
	PlanRelInfo *info = palloc0(sizeof(PlanRelInfo));

	rel->fdw_private = info;
	refuse_row_locks(root, rel, relid);
	option_resolve_table(relid, &info->options);
	size_lookup(root, rel, relid, &info->size);
	if (info->options.only)
		remote_table_only_size(&info->size);
	set_size(rel, relid, &info->size);
	set_toast(rel, relid, info);
	unique_show(rel, relid, info->size.unique_columns);
	classify_quals(root, rel, info);
	/* each leaf of a parent has such blocks of its own */
	info->block_share = info->size.known && info->size.leaves > 1 ? 1 :
		ctid_planned_fraction(rel, get_actual_clauses(info->remote_quals));
	set_rows(root, rel, relid, info);
	width_set(rel, relid, &info->size);
	info->decode_cost = width_decode_cost(rel, relid, &info->size);
}

/* ----------
 * Paths
 * ----------
 */

/* Cost of what happens to the rows that the remote sends. */
static Cost
transfer_cost(const PlanRelInfo *info, double rows)
{
	return rows * (info->options.fdw_tuple_cost + cpu_tuple_cost +
				   info->decode_cost + info->local_cost.per_tuple +
				   info->toast_cost);
}

/*
 * Will Gather get the rows of this scan as they are, as far as can be told now?
 * Then each costs the worker that sends it about what it costs the leader that
 * takes it; core counts the leader's part only.  For narrow rows that is as much
 * as decoding them, and the parallel plan gains nothing (bench/plans).
 */
static bool
goes_to_gather(PlannerInfo *root)
{
	const Query *parse = root->parse;

	return !parse->hasAggs && parse->groupClause == NIL &&
		parse->groupingSets == NIL && parse->distinctClause == NIL &&
		bms_membership(root->all_baserels) == BMS_SINGLETON;
}

/*
 * Cost of reading the relation from end to end, by so many sessions of the
 * remote and participants here.
 */
static Cost
scan_cost(RelOptInfo *rel, const PlanRelInfo *info, double sessions,
		  double participants, Cost *startup)
{
	Cost		disk = rel->pages * info->block_share * seq_page_cost;
	Cost		cpu;

	*startup = info->options.fdw_startup_cost + info->remote_cost.startup +
		info->local_cost.startup;

	/* the remote looks at every row, we at those that it sends */
	cpu = rel->tuples * info->block_share *
		(cpu_tuple_cost + info->remote_cost.per_tuple) / sessions;
	cpu += transfer_cost(info, info->rows_sent) / participants;
	return *startup + disk + cpu;
}

/*
 * What it costs a source to read a large table in ranges instead of from end to
 * end.  Core reads a table that is larger than a quarter of its cache through a few
 * buffers, which stay warm; a Tid Range Scan drives each block through the whole
 * cache.  Measured: 7 to 19 microseconds a block (bench/run --scale 5).
 */
static Cost
chunk_cost(RelOptInfo *rel, const PlanRelInfo *info)
{
	double		blocks = rel->pages * info->block_share;

	return blocks > CACHED_BLOCKS ? blocks * CHUNK_BLOCK_COST : 0;
}

/* Cost of one statement that the remote has planned. */
static Cost
estimated_cost(const PlanRelInfo *info, const RemoteEstimate *estimate,
			   Cost *startup)
{
	*startup = info->options.fdw_startup_cost + estimate->startup_cost +
		info->local_cost.startup;
	return info->options.fdw_startup_cost + info->local_cost.startup +
		estimate->total_cost + transfer_cost(info, estimate->rows);
}

/*
 * Cost of one of many look-ups.  Core counts the startup cost again for each outer
 * row, but the connection is open after the first: a round trip is left, and a
 * statement to be parsed and planned.  A share of fdw_startup_cost stands for
 * these, so that who raises it for a remote that is far away has fewer look-ups.
 */
static Cost
lookup_cost(const PlanRelInfo *info, const RemoteEstimate *estimate,
			Cost *startup)
{
	Cost		spared = info->options.fdw_startup_cost * (1 - LOOKUP_SHARE);
	Cost		total = estimated_cost(info, estimate, startup);

	*startup -= spared;
	return total - spared;
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

/* How many chunks there will be to claim. */
static double
planned_chunks(RelOptInfo *rel, const PlanRelInfo *info)
{
	double		chunk = info->options.chunk_blocks > 0 ?
	(double) info->options.chunk_blocks : PLANNED_CHUNK_BLOCKS;
	double		pages = rel->pages + (info->options.chunk_blocks > 0 ?
									  0 : info->toast_pages);

	return ceil(Max(ceil(pages * info->block_share), 1) / chunk);
}

/* How many workers a chunked scan should have; 0: none. */
static int
planned_workers(RelOptInfo *rel, const PlanRelInfo *info)
{
	double		chunks = planned_chunks(rel, info);
	int			workers = info->options.parallel_workers;

	if (workers < 0)
		workers = compute_parallel_worker(rel,
										  (rel->pages + info->toast_pages) *
										  info->block_share, -1,
										  max_parallel_workers_per_gather);
	workers = Min(workers, max_parallel_workers_per_gather);

	/* More participants than chunks would connect for nothing. */
	if (workers >= chunks)
		workers = (int) chunks - (parallel_leader_participation ? 1 : 0);
	return Max(workers, 0);
}

/*
 * How many connections a process may use where the plan is not parallel.  Where the
 * source is on this machine no line is in between that a second one could help
 * with, and its sessions run on our processors: one statement without bounds is the fastest
 * then, by a quarter and more (bench/run, tables larger than the source's cache).
 */
static int
planned_connections(const PlanRelInfo *info)
{
	if (info->options.connections > 0)
		return info->options.connections;
	return info->size.near ? 1 : DEFAULT_CONNECTIONS;
}

/* Why the relation cannot be read in chunks, as far as is known; NULL: it can. */
static const char *
whole_reason(const PlanRelInfo *info)
{
	const RemoteSize *size = &info->size;

	return size->known ?
		remote_table_kind_reason(size->kind, size->is_heap,
								 size->has_children,
								 size->server_version) : NULL;
}

/*
 * What the leaves of a parent cost beside their blocks.  Each participant locks and
 * plans them all before it begins, and each is at least one chunk.
 */
static void
add_leaf_cost(const PlanRelInfo *info, double divisor, Cost *startup,
			  Cost *total)
{
	Cost		cost = LEAF_STARTUP_FACTOR * info->options.fdw_startup_cost;

	if (!info->size.known || info->size.leaves <= 1)
		return;
	*startup += info->size.leaves * cost;
	*total += info->size.leaves * (cost + cost / divisor);
}

static void
add_chunked_path(PlannerInfo *root, RelOptInfo *rel, Oid relid,
				 PlanRelInfo *info)
{
	ForeignPath *path;
	Cost		startup;
	Cost		total;
	double		divisor;
	int			workers;

	if (rel->lateral_relids != NULL || whole_reason(info) != NULL)
		return;
	workers = planned_workers(rel, info);
	if (workers == 0)
		return;
	if (!rel->consider_parallel && insert_select_is_insert(root))
	{
		/* core has not considered it; what it would ask is asked there */
		info->serial_reason = insert_select_plan_reason(root, rel);
		if (info->serial_reason == NULL &&
			!insert_select_decodes_safely(rel, relid))
			info->serial_reason = "a column cannot be decoded by a worker";
		rel->consider_parallel = info->serial_reason == NULL;
	}
	if (!rel->consider_parallel)
		return;

	divisor = parallel_divisor(workers);
	total = scan_cost(rel, info, divisor, divisor, &startup) +
		chunk_cost(rel, info) / divisor;
	if (goes_to_gather(root))
		total += parallel_tuple_cost * rel->rows / divisor;
	add_leaf_cost(info, divisor, &startup, &total);
	path = compat_create_foreignscan_path(root, rel,
										  clamp_row_est(rel->rows / divisor),
										  startup, total, NIL, NULL,
										  list_make1(makeInteger(planned_connections(info))));
	path->path.parallel_aware = true;
	path->path.parallel_safe = true;
	path->path.parallel_workers = workers;
	add_partial_path(rel, (Path *) path);
}

/*
 * One process, several connections.  The sessions of the remote share its work;
 * ours is that of the whole scan.  Not for a table that is too small for a
 * parallel scan.
 */
static void
add_connections_path(PlannerInfo *root, RelOptInfo *rel, PlanRelInfo *info)
{
	ForeignPath *path;
	Cost		startup;
	Cost		total;
	int			connections = planned_connections(info);

	if (connections <= 1 || rel->lateral_relids != NULL ||
		whole_reason(info) != NULL ||
		planned_chunks(rel, info) < 2 ||
		rel->pages + info->toast_pages < min_parallel_table_scan_size)
		return;
	total = scan_cost(rel, info,
					  1 + CONNECTION_SHARE * (connections - 1), 1, &startup);
	add_leaf_cost(info, 1, &startup, &total);
	path = compat_create_foreignscan_path(root, rel, rel->rows,
										  startup + info->options.fdw_startup_cost,
										  total + info->options.fdw_startup_cost,
										  NIL, NULL,
										  list_make1(makeInteger(connections)));
	path->path.parallel_safe = false;
	add_path(rel, (Path *) path);
}

/* Can the remote evaluate this join clause for a given outer row? */
static bool
is_pushable_join_clause(PlannerInfo *root, RelOptInfo *rel,
						const PlanRelInfo *info, RestrictInfo *rinfo)
{
	return join_clause_is_movable_to(rinfo, rel) &&
		shippable_expr(root, rel, rinfo->clause, info->options.extensions);
}

/* Add the relations that a clause needs from outside, if it may be pushed. */
static List *
add_outer_set(PlannerInfo *root, RelOptInfo *rel, const PlanRelInfo *info,
			  List *sets, RestrictInfo *rinfo)
{
	ParamPathInfo *ppi;
	Relids		outer;

	if (!is_pushable_join_clause(root, rel, info, rinfo))
		return sets;
	outer = bms_union(rinfo->clause_relids, rel->lateral_relids);
	outer = bms_del_member(outer, rel->relid);
	if (bms_is_empty(outer))
		return sets;
	ppi = get_baserel_parampathinfo(root, rel, outer);
	return list_append_unique_ptr(sets, ppi);
}

/* The member of an equivalence class for which clauses are being made. */
typedef struct ClassMember
{
	Expr	   *current;		/* NULL: not found yet */
	List	   *done;			/* those already used */
} ClassMember;

/* Callback: does the member belong to us and was not used before? */
static bool
is_new_class_member(PlannerInfo *root, RelOptInfo *rel,
					EquivalenceClass *ec, EquivalenceMember *em, void *arg)
{
	ClassMember *member = arg;

	if (member->current != NULL)
		return equal(em->em_expr, member->current);
	if (list_member(member->done, em->em_expr))
		return false;
	member->current = em->em_expr;
	return true;
}

/* The sets of outer relations for which a parameterized path makes sense. */
static List *
find_outer_sets(PlannerInfo *root, RelOptInfo *rel, const PlanRelInfo *info)
{
	List	   *sets = NIL;
	ClassMember member = {NULL, NIL};
	ListCell   *lc;

	foreach(lc, rel->joininfo)
		sets = add_outer_set(root, rel, info, sets, lfirst(lc));
	if (!rel->has_eclass_joins)
		return sets;
	for (;;)
	{
		List	   *clauses;

		member.current = NULL;
		clauses = generate_implied_equalities_for_column(root, rel,
														 is_new_class_member,
														 &member,
														 rel->lateral_referencers);
		if (member.current == NULL)
			break;
		foreach(lc, clauses)
			sets = add_outer_set(root, rel, info, sets, lfirst(lc));
		member.done = lappend(member.done, member.current);
	}
	return sets;
}

/*
 * Paths that look up rows for each row of another relation.  Only the remote
 * knows whether that is an index scan: without its estimate there are none, for
 * reading the table once per outer row is the worst of plans.
 */
static void
add_parameterized_paths(PlannerInfo *root, RelOptInfo *rel, Oid relid,
						PlanRelInfo *info)
{
	ListCell   *lc;

	if (!wants_estimate(rel, info))
		return;
	foreach(lc, find_outer_sets(root, rel, info))
	{
		ParamPathInfo *ppi = lfirst(lc);
		RemoteEstimate estimate;
		List	   *quals = list_copy(info->remote_quals);
		ForeignPath *path;
		Cost		startup;
		Cost		total;
		ListCell   *lc2;

		foreach(lc2, ppi->ppi_clauses)
		{
			RestrictInfo *rinfo = lfirst_node(RestrictInfo, lc2);

			if (shippable_expr(root, rel, rinfo->clause,
							   info->options.extensions))
				quals = lappend(quals, rinfo);
		}
		if (!ask_estimate(root, rel, relid, info, quals, &estimate))
			return;
		total = lookup_cost(info, &estimate, &startup);
		/* All paths with these outer relations must agree on the rows. */
		ppi->ppi_rows =
			clamp_row_est(estimate.rows *
						  clauselist_selectivity(root, info->local_quals,
												 rel->relid, JOIN_INNER,
												 NULL));
		path = compat_create_foreignscan_path(root, rel, ppi->ppi_rows,
											  startup, total, NIL,
											  ppi->ppi_req_outer, NIL);
		path->path.parallel_safe = false;
		add_path(rel, (Path *) path);
	}
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
	Cost		total;

	if (info->estimated)
		total = estimated_cost(info, &info->estimate, &startup);
	else
		total = scan_cost(rel, info, 1, 1, &startup);
	path = compat_create_foreignscan_path(root, rel, rel->rows, startup, total,
										  NIL, rel->lateral_relids, NIL);
	path->path.parallel_safe = false;
	add_path(rel, (Path *) path);
	add_connections_path(root, rel, info);
	add_chunked_path(root, rel, relid, info);
	add_parameterized_paths(root, rel, relid, info);
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

static bool
is_constant(Node *node)
{
	return node != NULL && IsA(node, Const) && !((Const *) node)->constisnull;
}

/*
 * How many rows the query's LIMIT wants of this scan at most, for the remote to
 * stop after; -1 if it cannot be told.  Only where the limit applies to the scan
 * directly: nothing may drop, sort or combine rows in between.  And only where it
 * is constant: limit_tuples is an estimate, for which stable functions were
 * evaluated at plan time.
 */
static double
pushable_limit(PlannerInfo *root, RelOptInfo *rel, List *local_exprs)
{
	if (!is_constant(root->parse->limitCount) ||
		(root->parse->limitOffset != NULL &&
		 !is_constant(root->parse->limitOffset)))
		return -1;
	if (root->limit_tuples < 0 || root->limit_tuples > MAX_SENT_LIMIT ||
		local_exprs != NIL ||
		rel->reloptkind != RELOPT_BASEREL ||
		bms_membership(root->all_baserels) != BMS_SINGLETON ||
		root->parse->sortClause != NIL || root->parse->rowMarks != NIL ||
		root->parse->limitOption != LIMIT_OPTION_COUNT ||
		root->hasPseudoConstantQuals)
		return -1;
	return Max(root->limit_tuples, 1);
}

static const char *
text_or_empty(const char *text)
{
	return text ? text : "";
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
	ScanPlan	plan = {0};
	bool		needs_ctid;
	ListCell   *lc;

	foreach(lc, scan_clauses)
	{
		RestrictInfo *rinfo = lfirst_node(RestrictInfo, lc);

		/* Pseudoconstants are evaluated above the scan. */
		if (rinfo->pseudoconstant)
			continue;
		if (list_member_ptr(info->remote_quals, rinfo) ||
			(!list_member_ptr(info->local_quals, rinfo) &&
			 shippable_expr(root, rel, rinfo->clause,
							info->options.extensions)))
			remote_exprs = lappend(remote_exprs, rinfo->clause);
		else
			local_exprs = lappend(local_exprs, rinfo->clause);
	}
	quals = deparse_quals(root, rel, remote_exprs);
	plan.attnums = needed_columns(rel, relid, local_exprs, &needs_ctid);
	plan.qual_attnums = mentioned_columns(rel, remote_exprs, &needs_ctid);
	ctid_extract(rel, remote_exprs, &plan.ctid_operators, &plan.ctid_exprs);
	plan.fragments = quals.fragments;
	plan.needs_ctid = needs_ctid;
	plan.limit = pushable_limit(root, rel, local_exprs);
	plan.connections = path->fdw_private != NIL ?
		intVal(linitial(path->fdw_private)) : 1;
	plan.serial_reason = text_or_empty(info->serial_reason);
	plan.row_reason = text_or_empty(insert_select_row_reason(root, rel, relid));
	plan.pages = info->size.known ? info->size.pages : -1;
	plan.has_leaves = info->size.known &&
		(info->size.has_children ||
		 info->size.kind == RELKIND_PARTITIONED_TABLE);
	plan.is_flat = info->size.known && info->size.flat;
	plan.whole_reason = text_or_empty(whole_reason(info));
	return make_foreignscan(tlist, local_exprs, rel->relid,
							list_concat(quals.params, plan.ctid_exprs),
							plan_pack(&plan), NIL, remote_exprs, outer_plan);
}
