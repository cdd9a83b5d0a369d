/*-------------------------------------------------------------------------
 *
 * insert_check.c
 *	  Which INSERT ... SELECT can be divided among several sessions.
 *
 * Each session executes the whole statement, except that one foreign table, the
 * driver, gives each of them some of its rows.  The union of what they insert is
 * the right result if every row of the result comes from one row of the driver
 * and no other: between the scan of the driver and the top of the plan there may
 * be nothing that looks at several rows at once, and no join that makes rows for
 * which the driver has none.  That is read off the plan, which is what will be
 * executed, and not off the text.
 *
 * What is beside that way is evaluated by every session: it must give the same
 * rows everywhere.  All see the same local snapshot, the same remote one and the
 * same now(); what is left are volatile functions, and LIMIT and its kin, which
 * choose among rows by the order in which they come.
 *
 * The caller makes this check, to refuse early, and each worker again with its own
 * plan.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/table.h"
#include "catalog/namespace.h"
#include "catalog/partition.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "compat.h"
#include "foreign/fdwapi.h"
#include "foreign/foreign.h"
#include "insert.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "parser/parsetree.h"
#include "plan.h"
#include "tcop/tcopprot.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/relcache.h"

/* One look at one plan. */
typedef struct PlanCheck
{
	PlannedStmt *stmt;
	Oid			driver;
	List	   *scans;			/* ForeignScans of this wrapper, all of them */
} PlanCheck;

static void
refuse(const char *detail)
{
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("statement cannot be divided among several workers"),
			 errdetail("%s", detail),
			 errhint("Run it as it is, without tidrange_fdw_parallel_insert.")));
}

/* ----------
 * The target
 * ----------
 */

/* A row may refer to one that another session has not committed yet. */
static void
check_foreign_keys(Relation target, List *family)
{
	ListCell   *lc;

	foreach(lc, RelationGetFKeyList(target))
	{
		ForeignKeyCacheInfo *fkey = lfirst(lc);

		if (list_member_oid(family, fkey->confrelid))
			refuse(psprintf("Table \"%s\" has a foreign key that refers to itself: a row could refer to a row of another worker.",
							RelationGetRelationName(target)));
	}
}

/* Locks all partitions: a worker must not meet a queued ALTER TABLE later on. */
static void
check_target(Oid relid)
{
	Relation	target = table_open(relid, NoLock);
	char		kind = target->rd_rel->relkind;
	List	   *members;
	ListCell   *lc;

	if (kind != RELKIND_RELATION && kind != RELKIND_PARTITIONED_TABLE)
		refuse(psprintf("The target \"%s\" is not a table.",
						RelationGetRelationName(target)));
	if (target->rd_rel->relpersistence == RELPERSISTENCE_TEMP)
		refuse(psprintf("The target \"%s\" is a temporary table, which other sessions cannot see.",
						RelationGetRelationName(target)));
	if (kind == RELKIND_PARTITIONED_TABLE)
		members = find_all_inheritors(relid, RowExclusiveLock, NULL);
	else
		members = list_make1_oid(relid);
	foreach(lc, members)
	{
		if (get_rel_relkind(lfirst_oid(lc)) == RELKIND_FOREIGN_TABLE)
			refuse(psprintf("Partition \"%s\" of the target is a foreign table.",
							get_rel_name(lfirst_oid(lc))));
	}
	if (target->rd_rel->relispartition)
		members = list_concat(members, get_partition_ancestors(relid));
	check_foreign_keys(target, members);
	table_close(target, NoLock);
}

/* ----------
 * The statement
 * ----------
 */

/* The one query that the text is, after rewriting. */
static Query *
parse_statement(const char *sql)
{
	List	   *raw = pg_parse_query(sql);
	List	   *queries;
	Query	   *query;

	if (list_length(raw) != 1)
		ereport(ERROR,
				(errcode(ERRCODE_SYNTAX_ERROR),
				 errmsg("one INSERT statement is expected")));
	if (!IsA(linitial_node(RawStmt, raw)->stmt, InsertStmt))
		refuse("It is not an INSERT.");
	queries = compat_analyze(linitial_node(RawStmt, raw), sql);
	if (list_length(queries) != 1)
		refuse("The target has rules.");
	query = linitial_node(Query, queries);
	if (query->commandType != CMD_INSERT)
		refuse("The target has rules.");
	if (query->hasModifyingCTE)
		refuse("It has a WITH clause that modifies data.");
	if (query->returningList != NIL)
		refuse("It has a RETURNING clause.");
	return query;
}

/* Every relation that the plan mentions. */
static void
check_relations(PlannedStmt *stmt, Oid target)
{
	Oid			serverid = InvalidOid;
	Index		rti = 0;
	ListCell   *lc;

	foreach(lc, stmt->rtable)
	{
		RangeTblEntry *rte = lfirst_node(RangeTblEntry, lc);

		rti++;
		if (rte->rtekind != RTE_RELATION ||
			rte->relkind == RELKIND_COMPOSITE_TYPE ||
			list_member_int(compat_result_relations(stmt), rti))
			continue;
		if (rte->relid == target && rte->relkind != RELKIND_VIEW)
			refuse(psprintf("It reads its target \"%s\".",
							get_rel_name(target)));
		if (get_rel_persistence(rte->relid) == RELPERSISTENCE_TEMP)
			refuse(psprintf("\"%s\" is temporary: other sessions cannot see it.",
							get_rel_name(rte->relid)));
		if (rte->relkind != RELKIND_FOREIGN_TABLE)
			continue;
		if (!plan_is_ours(rte->relid))
			refuse(psprintf("Foreign table \"%s\" is of another wrapper: each worker could see other rows of it.",
							get_rel_name(rte->relid)));
		if (OidIsValid(serverid) &&
			serverid != GetForeignTable(rte->relid)->serverid)
			refuse(psprintf("Foreign table \"%s\" is on another server: each worker could see other rows of it.",
							get_rel_name(rte->relid)));
		serverid = GetForeignTable(rte->relid)->serverid;
	}
}

/* ----------
 * The plan
 * ----------
 */

/* The plans that give rows to this one. */
static List *
children(Plan *plan)
{
	List	   *list = NIL;

	if (plan->lefttree)
		list = lappend(list, plan->lefttree);
	if (plan->righttree)
		list = lappend(list, plan->righttree);
	switch (nodeTag(plan))
	{
		case T_Append:
			list = list_concat(list, ((Append *) plan)->appendplans);
			break;
		case T_MergeAppend:
			list = list_concat(list, ((MergeAppend *) plan)->mergeplans);
			break;
		case T_SubqueryScan:
			list = lappend(list, ((SubqueryScan *) plan)->subplan);
			break;
		case T_CustomScan:
			list = list_concat(list, ((CustomScan *) plan)->custom_plans);
			break;
		default:
			break;
	}
	return list;
}

static Oid
scanned_relation(const PlanCheck *check, Plan *plan)
{
	return rt_fetch(((Scan *) plan)->scanrelid, check->stmt->rtable)->relid;
}

static void
collect_scans(PlanCheck *check, Plan *plan)
{
	ListCell   *lc;

	if (plan == NULL)
		return;
	if (IsA(plan, ForeignScan) && ((Scan *) plan)->scanrelid > 0)
		check->scans = lappend(check->scans, plan);
	foreach(lc, children(plan))
		collect_scans(check, lfirst(lc));
}

static bool
is_driver(const PlanCheck *check, Plan *plan)
{
	return IsA(plan, ForeignScan) && ((Scan *) plan)->scanrelid > 0 &&
		scanned_relation(check, plan) == check->driver;
}

static bool
has_driver(const PlanCheck *check, Plan *plan)
{
	ListCell   *lc;

	if (is_driver(check, plan))
		return true;
	foreach(lc, children(plan))
	{
		if (has_driver(check, lfirst(lc)))
			return true;
	}
	return false;
}

static bool
is_volatile(Plan *plan)
{
	if (contain_volatile_functions((Node *) plan->targetlist) ||
		contain_volatile_functions((Node *) plan->qual))
		return true;
	switch (nodeTag(plan))
	{
		case T_NestLoop:
		case T_MergeJoin:
		case T_HashJoin:
			return contain_volatile_functions((Node *) ((Join *) plan)->joinqual);
		case T_Result:
			return contain_volatile_functions(((Result *) plan)->resconstantqual);
		case T_FunctionScan:
			return contain_volatile_functions((Node *) ((FunctionScan *) plan)->functions);
		case T_TableFuncScan:
			return contain_volatile_functions((Node *) ((TableFuncScan *) plan)->tablefunc);
		case T_ValuesScan:
			return contain_volatile_functions((Node *) ((ValuesScan *) plan)->values_lists);
		default:
			return false;
	}
}

/* Why this part, which every worker evaluates, could differ between them. */
static const char *
side_reason(Plan *plan)
{
	ListCell   *lc;

	if (is_volatile(plan))
		return "A part that every worker evaluates has a volatile function.";
	switch (nodeTag(plan))
	{
		case T_Limit:
			return "A part that every worker evaluates has a LIMIT or OFFSET.";
		case T_WindowAgg:
			return "A part that every worker evaluates has a window function.";
		case T_SampleScan:
			return "A part that every worker evaluates has a TABLESAMPLE.";
		case T_LockRows:
			return "It locks rows.";
		case T_Unique:
			return "A part that every worker evaluates has a DISTINCT.";
		default:
			break;
	}
	foreach(lc, children(plan))
	{
		const char *reason = side_reason(lfirst(lc));

		if (reason != NULL)
			return reason;
	}
	return NULL;
}

/* What a node does to rows of the driver that forbids to divide them. */
static const char *
gathering_reason(Plan *plan)
{
	switch (nodeTag(plan))
	{
		case T_Agg:
		case T_Group:
			return "An aggregate, GROUP BY or DISTINCT needs all rows.";
		case T_Unique:
			return "DISTINCT needs all rows.";
		case T_WindowAgg:
			return "A window function needs all rows.";
		case T_Limit:
			return "LIMIT or OFFSET counts all rows.";
		case T_SetOp:
			return "INTERSECT or EXCEPT needs all rows.";
		case T_RecursiveUnion:
			return "A recursive query needs all rows.";
		case T_LockRows:
			return "It locks rows.";
		case T_Append:
		case T_MergeAppend:
			return "Every worker would insert the rows of the other branches of a UNION ALL or of the other partitions.";
		default:
			return "Its plan is of a kind that is not known to be divisible.";
	}
}

static const char *outer_join_message =
"An outer join, EXISTS or IN asks whether any row of the foreign table matches, which needs all rows.";

/* May rows of this input of a join be divided? */
static const char *
join_reason(Plan *plan, bool is_outer)
{
	JoinType	type = ((Join *) plan)->jointype;

	if (type == JOIN_INNER)
		return NULL;
	if (type == JOIN_FULL)
		return outer_join_message;
	if (is_outer)
		return type == JOIN_LEFT || type == JOIN_SEMI || type == JOIN_ANTI ?
			NULL : outer_join_message;
	return type == JOIN_RIGHT || compat_is_right_side_join(type) ?
		NULL : outer_join_message;
}

static const char *path_reason(PlanCheck *check, Plan *plan);

static const char *
join_path_reason(PlanCheck *check, Plan *plan)
{
	bool		is_outer = has_driver(check, plan->lefttree);
	Plan	   *way = is_outer ? plan->lefttree : plan->righttree;
	Plan	   *side = is_outer ? plan->righttree : plan->lefttree;
	const char *reason = join_reason(plan, is_outer);

	if (reason == NULL && !is_outer && IsA(plan, NestLoop) &&
		(!IsA(way, Material) || ((NestLoop *) plan)->nestParams != NIL))
		reason = "Its plan reads the foreign table once for each row of another relation.";
	if (reason == NULL)
		reason = side_reason(side);
	if (reason == NULL)
		reason = path_reason(check, way);
	return reason;
}

/* Why the rows of the driver cannot be divided on their way up to this node. */
static const char *
path_reason(PlanCheck *check, Plan *plan)
{
	if (is_driver(check, plan))
		return NULL;
	switch (nodeTag(plan))
	{
		case T_Result:
		case T_ProjectSet:
		case T_Sort:
		case T_IncrementalSort:
		case T_Material:
		case T_Hash:
			return path_reason(check, plan->lefttree);
		case T_SubqueryScan:
			return path_reason(check, ((SubqueryScan *) plan)->subplan);
		case T_NestLoop:
		case T_MergeJoin:
		case T_HashJoin:
			return join_path_reason(check, plan);
		case T_Append:
		case T_MergeAppend:
			if (list_length(children(plan)) == 1)
				return path_reason(check, linitial(children(plan)));
			return gathering_reason(plan);
		default:
			return gathering_reason(plan);
	}
}

/* Why the statement cannot be divided by the rows of check->driver. */
static const char *
driver_reason(PlanCheck *check, Plan *top)
{
	int			times = 0;
	const char *reason;
	ListCell   *lc;

	foreach(lc, check->scans)
	{
		if (is_driver(check, lfirst(lc)))
			times++;
	}
	if (times != 1)
		return psprintf("Foreign table \"%s\" is read more than once.",
						get_rel_name(check->driver));
	if (!has_driver(check, top))
		return psprintf("Foreign table \"%s\" is read by a sub-select or a WITH query.",
						get_rel_name(check->driver));
	reason = path_reason(check, top);
	foreach(lc, check->stmt->subplans)
	{
		if (reason == NULL && lfirst(lc) != NULL)
			reason = side_reason(lfirst(lc));
	}
	return reason;
}

/* The estimated size of what a scan reads. */
static double
scan_pages(ForeignScan *scan)
{
	ScanPlan	plan;

	plan_unpack(scan, &plan);
	return plan.pages;
}

static int
compare_pages(const ListCell *a, const ListCell *b)
{
	double		left = scan_pages(lfirst(a));
	double		right = scan_pages(lfirst(b));

	return left > right ? -1 : left < right ? 1 : 0;
}

/* Choose the largest foreign table that may be the driver. */
static void
choose_driver(PlannedStmt *stmt, Oid *driver, double *pages)
{
	PlanCheck	check = {stmt, InvalidOid, NIL};
	Plan	   *top = compat_modify_table_plan((ModifyTable *) stmt->planTree);
	const char *first_reason = NULL;
	ListCell   *lc;

	collect_scans(&check, top);
	foreach(lc, stmt->subplans)
		collect_scans(&check, lfirst(lc));
	if (check.scans == NIL)
		refuse("It reads no foreign table of tidrange_fdw.");
	list_sort(check.scans, compare_pages);
	foreach(lc, check.scans)
	{
		const char *reason;

		check.driver = scanned_relation(&check, lfirst(lc));
		reason = driver_reason(&check, top);
		if (reason == NULL)
		{
			*driver = check.driver;
			*pages = scan_pages(lfirst(lc));
			return;
		}
		if (first_reason == NULL)
			first_reason = reason;
	}
	refuse(first_reason);
}

/*
 * Parse, check and plan the statement.  Raises an error that says why it cannot be
 * divided.  *driver is the foreign table whose rows are, of about *pages blocks
 * (-1: unknown).  Needs an active snapshot; locks what the statement locks.
 */
PlannedStmt *
insert_plan(const char *sql, Oid *driver, double *pages)
{
	Query	   *query = parse_statement(sql);
	Oid			target = rt_fetch(query->resultRelation, query->rtable)->relid;
	PlannedStmt *stmt;
	int			level;

	check_target(target);

	/* the parts are the parallelism: one plan for one process (insert_select.c) */
	level = NewGUCNestLevel();
	(void) set_config_option("max_parallel_workers_per_gather", "0",
							 PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE, true,
							 0, false);
	stmt = compat_plan(query, sql);
	AtEOXact_GUC(true, level);
	check_relations(stmt, target);
	choose_driver(stmt, driver, pages);
	return stmt;
}
