/*-------------------------------------------------------------------------
 *
 * insert_select.c
 *	  Whether INSERT ... SELECT may read in parallel, and its first steps.
 *
 * Core makes no parallel plan for an INSERT, but nothing below the planner's
 * first test looks at the command: a partial path of ours gets a Gather, the
 * leader inserts, and the workers only read.  What the leader does meanwhile it
 * does in parallel mode, in which no command may start, no row may be updated or
 * deleted, no sequence may advance and no transaction ID may be assigned.  So the
 * plan is made only where it can be proved that none of this will happen, the
 * transaction gets its ID before the mode begins, and the proof is repeated then:
 * nothing invalidates a cached plan when a partition deep down gets a trigger.
 *
 * The proof covers the target and all its partitions: their triggers, defaults,
 * generated columns, constraints, index expressions, partition keys and domains.
 * Both times the partitions are locked as the insert would lock them, so that
 * what was seen stays true until the transaction ends.
 *
 * A reason against it is a text for EXPLAIN; the statement runs all the same,
 * read by one process.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/parallel.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/partition.h"
#include "catalog/pg_am.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_trigger.h"
#include "catalog/pg_type.h"
#include "commands/trigger.h"
#include "compat.h"
#include "insert_select.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/clauses.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "optimizer/restrictinfo.h"
#include "parser/parsetree.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/partcache.h"
#include "utils/rel.h"
#include "utils/typcache.h"

bool		insert_select_enabled = true;

/* ----------
 * Expressions
 * ----------
 */

/* What core thinks of running this expression while a query is parallel. */
static char
expression_hazard(Node *expr)
{
	Query	   *query = makeNode(Query);

	/* Core exports the test for queries, and for expressions needs a plan. */
	query->commandType = CMD_SELECT;
	query->targetList = list_make1(makeTargetEntry((Expr *) expr, 1, NULL, false));
	return max_parallel_hazard(query);
}

static bool
is_unsafe(Node *expr)
{
	return expr != NULL && expression_hazard(expr) == PROPARALLEL_UNSAFE;
}

/* Stored expressions, as text; a list of them or a single one. */
static bool
is_unsafe_text(const char *text)
{
	return text != NULL && is_unsafe(stringToNode(text));
}

/* The worst hazard of a domain's checks, and of those below it. */
static char
domain_hazard(Oid type)
{
	DomainConstraintRef *ref;
	char		worst = PROPARALLEL_SAFE;
	ListCell   *lc;

	if (!compat_domain_has_constraints(type))
		return worst;
	/* It may be kept up to date by the type cache: never on the stack. */
	ref = palloc0(sizeof(DomainConstraintRef));
	InitDomainConstraintRef(type, ref, CurrentMemoryContext, false);
	foreach(lc, ref->constraints)
	{
		DomainConstraintState *constraint = lfirst(lc);
		char		hazard;

		if (constraint->check_expr == NULL)
			continue;
		hazard = expression_hazard((Node *) constraint->check_expr);
		if (hazard == PROPARALLEL_UNSAFE || worst == PROPARALLEL_SAFE)
			worst = hazard;
	}
	return worst;
}

/* As domain_hazard, for types that are made of other types as well. */
static char
type_hazard(Oid type)
{
	Oid			element = get_element_type(type);
	char		kind = get_typtype(type);
	char		worst = PROPARALLEL_SAFE;
	TupleDesc	desc;
	int			i;

	check_stack_depth();
	if (OidIsValid(element))
		return type_hazard(element);
	if (kind == TYPTYPE_DOMAIN)
	{
		worst = domain_hazard(type);
		if (worst != PROPARALLEL_SAFE)
			return worst;
		return type_hazard(getBaseType(type));
	}
	if (kind == TYPTYPE_RANGE)
		return type_hazard(get_range_subtype(type));
#ifdef TYPTYPE_MULTIRANGE
	if (kind == TYPTYPE_MULTIRANGE)
		return type_hazard(get_multirange_range(type));
#endif
	if (kind != TYPTYPE_COMPOSITE)
		return worst;
	desc = lookup_rowtype_tupdesc_copy(type, -1);
	for (i = 0; i < desc->natts && worst != PROPARALLEL_UNSAFE; i++)
	{
		char		hazard = PROPARALLEL_SAFE;

		if (!TupleDescAttr(desc, i)->attisdropped)
			hazard = type_hazard(TupleDescAttr(desc, i)->atttypid);
		if (hazard != PROPARALLEL_SAFE)
			worst = hazard;
	}
	return worst;
}

/* Does an expression convert to a domain whose checks are unsafe? */
static bool
has_unsafe_domain(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (IsA(node, CoerceToDomain) &&
		domain_hazard(((CoerceToDomain *) node)->resulttype) == PROPARALLEL_UNSAFE)
		return true;
	if (IsA(node, CoerceViaIO) &&
		type_hazard(((CoerceViaIO *) node)->resulttype) == PROPARALLEL_UNSAFE)
		return true;
	if (IsA(node, Query))
		return query_tree_walker((Query *) node, has_unsafe_domain, context, 0);
	return expression_tree_walker(node, has_unsafe_domain, context);
}

/* ----------
 * The target
 * ----------
 */

/* A trigger that would run, or be judged, while workers are at work. */
static const char *
trigger_reason(Relation relation)
{
	TriggerDesc *triggers = relation->trigdesc;
	int			i;

	if (triggers == NULL)
		return NULL;
	for (i = 0; i < triggers->numtriggers; i++)
	{
		Trigger    *trigger = &triggers->triggers[i];

		/* tgenabled may be turned by session_replication_role at any time */
		if (trigger->tgenabled == TRIGGER_DISABLED ||
			!TRIGGER_FOR_INSERT(trigger->tgtype))
			continue;
		if (TRIGGER_FOR_BEFORE(trigger->tgtype) ||
			TRIGGER_FOR_INSTEAD(trigger->tgtype))
			return psprintf("trigger \"%s\" of \"%s\" fires before rows are inserted",
							trigger->tgname,
							RelationGetRelationName(relation));
		if (is_unsafe_text(trigger->tgqual))
			return psprintf("condition of trigger \"%s\" of \"%s\" is parallel unsafe",
							trigger->tgname,
							RelationGetRelationName(relation));
	}
	return NULL;
}

/* Check constraints, generated columns and domains. */
static const char *
column_reason(Relation relation)
{
	TupleDesc	desc = RelationGetDescr(relation);
	TupleConstr *constr = desc->constr;
	int			i;

	for (i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute attribute = TupleDescAttr(desc, i);

		if (!attribute->attisdropped &&
			type_hazard(attribute->atttypid) == PROPARALLEL_UNSAFE)
			return psprintf("type of column \"%s\" of \"%s\" has a parallel unsafe check",
							NameStr(attribute->attname),
							RelationGetRelationName(relation));
	}
	if (constr == NULL)
		return NULL;
	for (i = 0; i < constr->num_check; i++)
	{
		if (is_unsafe_text(constr->check[i].ccbin))
			return psprintf("check constraint \"%s\" of \"%s\" is parallel unsafe",
							constr->check[i].ccname,
							RelationGetRelationName(relation));
	}
	for (i = 0; i < constr->num_defval; i++)
	{
		Form_pg_attribute attribute =
		TupleDescAttr(desc, constr->defval[i].adnum - 1);

		/* other defaults are in the statement, where it needs them */
		if (attribute->attgenerated != '\0' &&
			is_unsafe_text(constr->defval[i].adbin))
			return psprintf("generated column \"%s\" of \"%s\" is parallel unsafe",
							NameStr(attribute->attname),
							RelationGetRelationName(relation));
	}
	return NULL;
}

/* Expressions and predicates of indexes. */
static const char *
index_reason(Relation relation)
{
	List	   *indexes = RelationGetIndexList(relation);
	const char *reason = NULL;
	ListCell   *lc;

	foreach(lc, indexes)
	{
		Relation	index = index_open(lfirst_oid(lc), AccessShareLock);

		if (is_unsafe((Node *) RelationGetIndexExpressions(index)) ||
			is_unsafe((Node *) RelationGetIndexPredicate(index)))
			reason = psprintf("index \"%s\" is parallel unsafe",
							  RelationGetRelationName(index));
		index_close(index, AccessShareLock);
		if (reason != NULL)
			break;
	}
	list_free(indexes);
	return reason;
}

/* How rows find their partition. */
static const char *
partition_reason(Relation relation)
{
	PartitionKey key;

	if (relation->rd_rel->relkind != RELKIND_PARTITIONED_TABLE)
		return NULL;
	key = RelationGetPartitionKey(relation);
	if (is_unsafe((Node *) get_partition_exprs(key)))
		return psprintf("partition key of \"%s\" is parallel unsafe",
						RelationGetRelationName(relation));
	return NULL;
}

/* Why rows may not be inserted into this one relation in parallel mode. */
static const char *
relation_reason(Relation relation)
{
	char		kind = relation->rd_rel->relkind;
	const char *reason;

	if (kind == RELKIND_FOREIGN_TABLE)
		return psprintf("\"%s\" is a foreign table",
						RelationGetRelationName(relation));
	if (kind == RELKIND_VIEW)
		return psprintf("\"%s\" is a view",
						RelationGetRelationName(relation));
	if (kind != RELKIND_PARTITIONED_TABLE &&
		(kind != RELKIND_RELATION ||
		 relation->rd_rel->relam != HEAP_TABLE_AM_OID))
		return psprintf("\"%s\" is not a heap table",
						RelationGetRelationName(relation));
	if (relation->rd_rules != NULL)
		return psprintf("\"%s\" has rules",
						RelationGetRelationName(relation));
	reason = trigger_reason(relation);
	if (reason == NULL)
		reason = column_reason(relation);
	if (reason == NULL)
		reason = index_reason(relation);
	if (reason == NULL)
		reason = partition_reason(relation);
	return reason;
}

/*
 * The target and its partitions.  They are locked as the insert locks those that
 * get rows: a trigger cannot be made until the transaction is over.
 */
static const char *
target_reason(Oid relid)
{
	List	   *relids;
	const char *reason = NULL;
	ListCell   *lc;

	if (get_rel_relkind(relid) != RELKIND_PARTITIONED_TABLE)
		relids = list_make1_oid(relid);
	else
		relids = find_all_inheritors(relid, RowExclusiveLock, NULL);
	foreach(lc, relids)
	{
		Relation	relation = table_open(lfirst_oid(lc), NoLock);

		reason = relation_reason(relation);
		table_close(relation, NoLock);
		if (reason != NULL)
			break;
	}
	list_free(relids);
	return reason;
}

/* ----------
 * The statement
 * ----------
 */

/* The statement that this query level is a part of. */
static PlannerInfo *
topmost(PlannerInfo *root)
{
	while (root->parent_root != NULL)
		root = root->parent_root;
	return root;
}

/* Is this level part of an INSERT? */
bool
insert_select_is_insert(PlannerInfo *root)
{
	return topmost(root)->parse->commandType == CMD_INSERT;
}

/*
 * Does the statement have an expression that must not run in parallel mode, not
 * even in the leader?  Sublinks have become plans by now, which say only whether
 * workers may run them: what they were made of is looked at instead.
 */
static const char *
expression_reason(PlannerInfo *root)
{
	List	   *parses = list_make1(root->parse);
	ListCell   *lc;

	foreach(lc, root->glob->subroots)
		parses = lappend(parses, ((PlannerInfo *) lfirst(lc))->parse);
	foreach(lc, parses)
	{
		if (max_parallel_hazard(lfirst(lc)) == PROPARALLEL_UNSAFE)
			return "the statement or a default of the target has a parallel unsafe expression";
		if (has_unsafe_domain(lfirst(lc), NULL))
			return "a domain in the statement has a parallel unsafe check";
	}
	if (is_unsafe((Node *) root->append_rel_list))
		return "the statement has a parallel unsafe expression";
	return NULL;
}

/* Why this INSERT may not be parallel. */
static const char *
statement_reason(PlannerInfo *root)
{
	const Query *parse = root->parse;
	RangeTblEntry *target = rt_fetch(parse->resultRelation, parse->rtable);
	const char *reason;
	ListCell   *lc;

	if (parse->hasModifyingCTE)
		return "the statement has a data-modifying CTE";
	if (parse->onConflict != NULL &&
		parse->onConflict->action != ONCONFLICT_NOTHING)
		return "ON CONFLICT DO UPDATE";
	if (parse->withCheckOptions != NIL)
		return "the target has a check option or row-level security";
	foreach(lc, parse->rtable)
	{
		RangeTblEntry *rte = lfirst_node(RangeTblEntry, lc);

		/* what is left of a view that was the target */
		if (rte->rtekind == RTE_RELATION && rte->relkind == RELKIND_VIEW)
			return "the target is a view";
	}
	reason = expression_reason(root);
	if (reason == NULL)
		reason = target_reason(target->relid);
	return reason;
}

/*
 * At plan time: why the scan of `rel` cannot be parallel below this INSERT.
 * NULL if it can.
 */
const char *
insert_select_plan_reason(PlannerInfo *root, RelOptInfo *rel)
{
	if (!insert_select_enabled)
		return "tidrange_fdw.parallel_insert is off";
	if (max_parallel_workers_per_gather <= 0)
		return "max_parallel_workers_per_gather is 0";
	if (IsParallelWorker() || IsInParallelMode())
		return "a parallel query is running";

	/* In an INSERT core has not asked whether this level's parts are safe. */
	if (rel->reloptkind != RELOPT_BASEREL || rel->lateral_relids != NULL)
		return "the scan is not a base relation of its own";
	if (!is_parallel_safe(root, (Node *) rel->baserestrictinfo) ||
		!is_parallel_safe(root, (Node *) rel->reltarget->exprs))
		return "a filter or an output column cannot be evaluated by a worker";
	return statement_reason(topmost(root));
}

/*
 * When the leader's scan begins, before parallel mode does: check again, and take
 * the transaction's ID.  A reason means that the plan must not run in parallel;
 * Gather then passes the rows of the leader's own scan through.
 */
const char *
insert_select_begin(EState *estate)
{
	PlannedStmt *stmt = estate->es_plannedstmt;
	const char *reason = NULL;
	ListCell   *lc;

	if (stmt->commandType != CMD_INSERT || !stmt->parallelModeNeeded ||
		IsParallelWorker())
		return NULL;
	if (!insert_select_enabled)
		reason = "tidrange_fdw.parallel_insert is off";
	else if (IsInParallelMode())
		reason = "a parallel query is running";
	foreach(lc, compat_result_relations(stmt))
	{
		RangeTblEntry *rte = rt_fetch(lfirst_int(lc), stmt->rtable);

		if (reason != NULL)
			break;
		reason = target_reason(rte->relid);
	}
	if (reason != NULL)
	{
		stmt->parallelModeNeeded = false;
		return reason;
	}
	(void) GetCurrentTransactionId();
	(void) GetCurrentCommandId(true);
	return NULL;
}

/*
 * May workers decode the columns of this foreign table?  A domain's checks and
 * the input functions of types run there.
 */
bool
insert_select_decodes_safely(RelOptInfo *rel, Oid relid)
{
	Bitmapset  *used = NULL;
	int			member = -1;

	pull_varattnos((Node *) rel->reltarget->exprs, rel->relid, &used);
	pull_varattnos((Node *) get_actual_clauses(rel->baserestrictinfo),
				   rel->relid, &used);
	while ((member = bms_next_member(used, member)) >= 0)
	{
		AttrNumber	attnum = member + FirstLowInvalidHeapAttributeNumber;
		Oid			type;
		Oid			function;
		Oid			ioparam;

		if (attnum == InvalidAttrNumber)
			type = get_rel_type_id(relid);
		else if (attnum > 0)
			type = get_atttype(relid, attnum);
		else
			continue;
		if (type_hazard(type) != PROPARALLEL_SAFE)
			return false;
		getTypeInputInfo(type, &function, &ioparam);
		if (func_parallel(function) != PROPARALLEL_SAFE)
			return false;
	}
	return true;
}
