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

#include "access/amapi.h"
#include "access/genam.h"
#include "access/parallel.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/partition.h"
#include "catalog/pg_aggregate.h"
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
#include "utils/syscache.h"
#include "utils/typcache.h"

bool		insert_select_enabled = true;

/* ----------
 * Expressions
 * ----------
 */

/* What can be wrong with evaluating something; a set of these. */
typedef enum Hazard
{
	HAZARD_NONE = 0,
	HAZARD_RESTRICTED = 1,		/* not in a worker */
	HAZARD_UNSAFE = 2,			/* not in parallel mode */
	HAZARD_VOLATILE = 4			/* it may see what was just inserted */
} Hazard;

#define HAZARD_PARALLEL	(HAZARD_RESTRICTED | HAZARD_UNSAFE)

/* A look for domains with such checks. */
typedef struct DomainSearch
{
	int			hazard;			/* what is looked for */
	List	   *seen;			/* domains whose checks led here */
} DomainSearch;

static int	type_hazard(Oid type, bool input, List *seen);
static bool search_domains(Node *node, void *search);

/*
 * Volatile functions that have no eyes for tables.  (Sequences are not what an
 * INSERT inserts into.)
 */
static const char *const blind_functions[] = {
	"clock_timestamp", "gen_random_uuid", "nextval", "random", "random_normal",
	"timeofday", "uuidv4", "uuidv7"
};

/* Could what this function returns depend on rows that were just inserted? */
static bool
may_see_rows(Oid function, void *context)
{
	char	   *name;
	int			i;

	if (func_volatile(function) != PROVOLATILE_VOLATILE)
		return false;
	if (function >= FirstNormalObjectId)
		return true;
	name = get_func_name(function);
	for (i = 0; i < lengthof(blind_functions); i++)
	{
		if (strcmp(name, blind_functions[i]) == 0)
			return false;
	}
	return true;
}

/* The same of an aggregate, which calls functions but never counts as volatile. */
static bool
aggregate_may_see_rows(Oid function)
{
	HeapTuple	tuple;
	bool		found = false;
	int			i;

	if (function < FirstNormalObjectId)
		return false;
	tuple = SearchSysCache1(AGGFNOID, ObjectIdGetDatum(function));
	if (HeapTupleIsValid(tuple))
	{
		Form_pg_aggregate agg = (Form_pg_aggregate) GETSTRUCT(tuple);
		Oid			functions[] = {
			agg->aggtransfn, agg->aggfinalfn, agg->aggcombinefn,
			agg->aggserialfn, agg->aggdeserialfn, agg->aggmtransfn,
			agg->aggminvtransfn, agg->aggmfinalfn
		};

		for (i = 0; i < lengthof(functions); i++)
			found |= OidIsValid(functions[i]) && may_see_rows(functions[i], NULL);
		ReleaseSysCache(tuple);
	}
	return found;
}

/*
 * Is there a function in this tree that could see what was just inserted?  Others
 * than volatile ones use the snapshot of the statement, which does not; what they
 * say of themselves is believed.
 */
static bool
search_seeing_function(Node *node, void *context)
{
	if (node == NULL)
		return false;
	if (check_functions_in_node(node, may_see_rows, context))
		return true;
	if (IsA(node, Aggref) && aggregate_may_see_rows(((Aggref *) node)->aggfnoid))
		return true;
	if (IsA(node, WindowFunc) &&
		aggregate_may_see_rows(((WindowFunc *) node)->winfnoid))
		return true;
	if (IsA(node, Query))
		return query_tree_walker((Query *) node, search_seeing_function,
								 context, 0);
	return expression_tree_walker(node, search_seeing_function, context);
}

/* What core's letter means. */
static int
parallel_hazard(char letter)
{
	if (letter == PROPARALLEL_SAFE)
		return HAZARD_NONE;
	return letter == PROPARALLEL_UNSAFE ? HAZARD_UNSAFE : HAZARD_RESTRICTED;
}

/* What core thinks of this expression. */
static int
expression_hazard(Node *expr)
{
	Query	   *query = makeNode(Query);
	int			hazard;

	/* Core exports the test for queries, and for expressions needs a plan. */
	query->commandType = CMD_SELECT;
	query->targetList = list_make1(makeTargetEntry((Expr *) expr, 1, NULL, false));
	hazard = parallel_hazard(max_parallel_hazard(query));
	if (search_seeing_function(expr, NULL))
		hazard |= HAZARD_VOLATILE;
	return hazard;
}

/* Does an expression make a value of a domain whose checks have this hazard? */
static bool
has_domain(Node *expr, int hazard)
{
	DomainSearch search = {hazard, NIL};

	return search_domains(expr, &search);
}

/* Core takes any conversion to a domain for merely restricted, and for immutable. */
static bool
has_hazard(Node *expr, int hazard)
{
	return expr != NULL && ((expression_hazard(expr) & hazard) != 0 ||
							has_domain(expr, hazard));
}

/* Stored expressions, as text; a list of them or a single one. */
static bool
text_has_hazard(const char *text, int hazard)
{
	return text != NULL && has_hazard(stringToNode(text), hazard);
}

/* What a hazard is called. */
static const char *
hazard_word(int hazard)
{
	return hazard == HAZARD_VOLATILE ? "volatile" : "parallel unsafe";
}

/*
 * The hazards of a domain's checks, and of those below it.  `seen` are the domains
 * whose checks led here: a check may convert to its own domain.
 */
static int
domain_hazard(Oid type, List *seen)
{
	DomainConstraintRef *ref;
	int			hazard = HAZARD_NONE;
	ListCell   *lc;

	if (list_member_oid(seen, type) || !compat_domain_has_constraints(type))
		return hazard;
	seen = lappend_oid(list_copy(seen), type);
	/* It may be kept up to date by the type cache: never on the stack. */
	ref = palloc0(sizeof(DomainConstraintRef));
	InitDomainConstraintRef(type, ref, CurrentMemoryContext, false);
	foreach(lc, ref->constraints)
	{
		DomainConstraintState *constraint = lfirst(lc);
		Node	   *check = (Node *) constraint->check_expr;
		int			which;

		if (check == NULL)
			continue;
		hazard |= expression_hazard(check);
		for (which = HAZARD_UNSAFE; which <= HAZARD_VOLATILE; which <<= 1)
		{
			DomainSearch search = {which, seen};

			if (search_domains(check, &search))
				hazard |= which;
		}
	}
	return hazard;
}

/* As type_hazard, for the columns of a composite type. */
static int
composite_hazard(Oid type, bool input, List *seen)
{
	TupleDesc	desc = lookup_rowtype_tupdesc_copy(type, -1);
	int			hazard = HAZARD_NONE;
	int			i;

	for (i = 0; i < desc->natts; i++)
	{
		if (!TupleDescAttr(desc, i)->attisdropped)
			hazard |= type_hazard(TupleDescAttr(desc, i)->atttypid, input, seen);
	}
	return hazard;
}

/* Of calling this function. */
static int
function_hazard(Oid function)
{
	int			hazard = parallel_hazard(func_parallel(function));

	if (func_volatile(function) == PROVOLATILE_VOLATILE)
		hazard |= HAZARD_VOLATILE;
	return hazard;
}

/* Of the function that reads a type's text. */
static int
input_hazard(Oid type)
{
	Oid			function;
	Oid			ioparam;

	getTypeInputInfo(type, &function, &ioparam);
	return function_hazard(function);
}

/*
 * The hazards of making a value of this type from its parts: of the checks of
 * domains in it, and with `input` of the functions that read its text as well.
 */
static int
type_hazard(Oid type, bool input, List *seen)
{
	Oid			element = get_element_type(type);
	int			hazard;

	check_stack_depth();
	if (OidIsValid(element))
		return type_hazard(element, input, seen);
	hazard = input ? input_hazard(type) : HAZARD_NONE;
	switch (get_typtype(type))
	{
		case TYPTYPE_DOMAIN:
			hazard |= domain_hazard(type, seen);
			return hazard | type_hazard(getBaseType(type), input, seen);
		case TYPTYPE_RANGE:
			return hazard | type_hazard(get_range_subtype(type), input, seen);
#ifdef TYPTYPE_MULTIRANGE
		case TYPTYPE_MULTIRANGE:
			return hazard | type_hazard(get_multirange_range(type), input, seen);
#endif
		case TYPTYPE_COMPOSITE:
			return hazard | composite_hazard(type, input, seen);
		default:
			return hazard;
	}
}

/* Has one of these types (a list of OIDs) the hazard that is looked for? */
static bool
search_types(List *types, DomainSearch *search)
{
	ListCell   *lc;

	foreach(lc, types)
	{
		if (type_hazard(lfirst_oid(lc), false, search->seen) & search->hazard)
			return true;
	}
	return false;
}

/*
 * Does an expression make a value of a domain whose checks have the hazard?  It
 * may by a cast, or by a function that fills rows (json_populate_record).
 */
static bool
search_domains(Node *node, void *search)
{
	Oid			type = InvalidOid;

	if (node == NULL)
		return false;
	if (IsA(node, CoerceToDomain))
		type = ((CoerceToDomain *) node)->resulttype;
	else if (IsA(node, CoerceViaIO))
		type = ((CoerceViaIO *) node)->resulttype;
	else if (IsA(node, FuncExpr))
		type = ((FuncExpr *) node)->funcresulttype;
	if (OidIsValid(type) && search_types(list_make1_oid(type), search))
		return true;

	if (IsA(node, TableFunc) &&
		search_types(((TableFunc *) node)->coltypes, search))
		return true;
	if (IsA(node, Query))
		return query_tree_walker((Query *) node, search_domains, search,
								 QTW_EXAMINE_RTES_BEFORE);
	if (IsA(node, RangeTblEntry))
	{
		ListCell   *lc;

		/* the walker goes on to what is inside, but not to these nodes */
		foreach(lc, ((RangeTblEntry *) node)->functions)
		{
			RangeTblFunction *function = lfirst(lc);

			if (search_types(function->funccoltypes, search))
				return true;
		}
		return false;
	}
	return expression_tree_walker(node, search_domains, search);
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
		if (text_has_hazard(trigger->tgqual, HAZARD_UNSAFE))
			return psprintf("condition of trigger \"%s\" of \"%s\" is parallel unsafe",
							trigger->tgname,
							RelationGetRelationName(relation));
	}
	return NULL;
}

/* Check constraints, generated columns and domains. */
static const char *
column_reason(Relation relation, int hazard)
{
	TupleDesc	desc = RelationGetDescr(relation);
	TupleConstr *constr = desc->constr;
	int			i;

	for (i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute attribute = TupleDescAttr(desc, i);

		if (!attribute->attisdropped &&
			(type_hazard(attribute->atttypid, false, NIL) & hazard) != 0)
			return psprintf("type of column \"%s\" of \"%s\" has a %s check",
							NameStr(attribute->attname),
							RelationGetRelationName(relation),
							hazard_word(hazard));
	}
	if (constr == NULL)
		return NULL;
	for (i = 0; i < constr->num_check; i++)
	{
		if (text_has_hazard(constr->check[i].ccbin, hazard))
			return psprintf("check constraint \"%s\" of \"%s\" is %s",
							constr->check[i].ccname,
							RelationGetRelationName(relation),
							hazard_word(hazard));
	}
	for (i = 0; i < constr->num_defval; i++)
	{
		Form_pg_attribute attribute =
		TupleDescAttr(desc, constr->defval[i].adnum - 1);

		/* other defaults are in the statement, where it needs them */
		if (attribute->attgenerated != '\0' &&
			text_has_hazard(constr->defval[i].adbin, hazard))
			return psprintf("generated column \"%s\" of \"%s\" is %s",
							NameStr(attribute->attname),
							RelationGetRelationName(relation),
							hazard_word(hazard));
	}
	return NULL;
}

/* Have these functions, as far as there are any, the hazard? */
static bool
functions_have_hazard(const RegProcedure *functions, int count, int hazard)
{
	int			i;

	for (i = 0; i < count; i++)
	{
		if (OidIsValid(functions[i]) &&
			(function_hazard(functions[i]) & hazard) != 0)
			return true;
	}
	return false;
}

/* The functions of an index's operator classes and of its exclusion operators. */
static bool
operators_have_hazard(Relation index, int hazard)
{
	Oid		   *operators;
	Oid		   *functions;
	uint16	   *strategies;

	if (functions_have_hazard(index->rd_support,
							  IndexRelationGetNumberOfKeyAttributes(index) *
							  index->rd_indam->amsupport, hazard))
		return true;
	if (!index->rd_index->indisexclusion)
		return false;
	RelationGetExclusionInfo(index, &operators, &functions, &strategies);
	return functions_have_hazard(functions,
								 IndexRelationGetNumberOfKeyAttributes(index),
								 hazard);
}

/* Expressions, predicates and operators of indexes. */
static const char *
index_reason(Relation relation, int hazard)
{
	List	   *indexes = RelationGetIndexList(relation);
	const char *reason = NULL;
	ListCell   *lc;

	foreach(lc, indexes)
	{
		Relation	index = index_open(lfirst_oid(lc), AccessShareLock);

		if (has_hazard((Node *) RelationGetIndexExpressions(index), hazard) ||
			has_hazard((Node *) RelationGetIndexPredicate(index), hazard) ||
			operators_have_hazard(index, hazard))
			reason = psprintf("index \"%s\" is %s",
							  RelationGetRelationName(index),
							  hazard_word(hazard));
		index_close(index, AccessShareLock);
		if (reason != NULL)
			break;
	}
	list_free(indexes);
	return reason;
}

/* How rows find their partition. */
static const char *
partition_reason(Relation relation, int hazard)
{
	PartitionKey key;
	bool		found;
	int			i;

	if (relation->rd_rel->relkind != RELKIND_PARTITIONED_TABLE)
		return NULL;
	key = RelationGetPartitionKey(relation);
	found = has_hazard((Node *) get_partition_exprs(key), hazard);
	for (i = 0; i < get_partition_natts(key); i++)
		found |= functions_have_hazard(&key->partsupfunc[i].fn_oid, 1, hazard);
	if (found)
		return psprintf("partition key of \"%s\" is %s",
						RelationGetRelationName(relation),
						hazard_word(hazard));
	return NULL;
}

/* What is evaluated for each row of this relation, and has the hazard. */
static const char *
stored_reason(Relation relation, int hazard)
{
	const char *reason = column_reason(relation, hazard);

	if (reason == NULL)
		reason = index_reason(relation, hazard);
	if (reason == NULL)
		reason = partition_reason(relation, hazard);
	return reason;
}

/*
 * Why what is evaluated for each row of this relation could see the rows before;
 * NULL: it cannot.
 */
const char *
insert_select_volatile_reason(Relation relation)
{
	return stored_reason(relation, HAZARD_VOLATILE);
}

/* Is this condition of a trigger evaluated at its row, or might it not matter? */
bool
insert_select_is_volatile_text(const char *text)
{
	Node	   *expr = text != NULL ? stringToNode(text) : NULL;

	return expr != NULL && (contain_volatile_functions(expr) ||
							has_domain(expr, HAZARD_VOLATILE));
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
	return reason != NULL ? reason : stored_reason(relation, HAZARD_UNSAFE);
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

/* What is wrong with the expressions of one query level; NULL: nothing. */
typedef const char *(*LevelTest) (PlannerInfo *root);

/* Why one query level may not be planned below a parallel INSERT. */
static const char *
level_hazard(PlannerInfo *root)
{
	if (max_parallel_hazard(root->parse) == PROPARALLEL_UNSAFE)
		return "the statement or a default of the target has a parallel unsafe expression";
	if (has_domain((Node *) root->parse, HAZARD_UNSAFE))
		return "a domain in the statement has a parallel unsafe check";
	/* the columns of the members of UNION ALL, which have left the query */
	if (has_hazard((Node *) root->append_rel_list, HAZARD_UNSAFE))
		return "the statement has a parallel unsafe expression";
	return NULL;
}

/* Whether what one query level evaluates could look at rows just inserted. */
static const char *
level_volatility(PlannerInfo *root)
{
	if (search_seeing_function((Node *) root->parse, NULL) ||
		search_seeing_function((Node *) root->append_rel_list, NULL))
		return "the statement or a default of the target has a volatile expression";
	if (has_domain((Node *) root->parse, HAZARD_VOLATILE) ||
		has_domain((Node *) root->append_rel_list, HAZARD_VOLATILE))
		return "a domain in the statement has a volatile check";
	return NULL;
}

/* A query level, and its subqueries. */
static const char *
level_reason(PlannerInfo *root, LevelTest test)
{
	const char *reason = test(root);
	int			i;

	/* subqueries that have been planned; the others are whole in our query */
	for (i = 1; i < root->simple_rel_array_size && reason == NULL; i++)
	{
		RelOptInfo *rel = root->simple_rel_array[i];

		if (rel != NULL && rel->subroot != NULL)
			reason = level_reason(rel->subroot, test);
	}
	return reason;
}

/*
 * Put all expressions of the statement to the test.  Sublinks have become plans by
 * now, which say only whether workers may run them: what they were made of is
 * looked at instead.  `root` is the level that is being planned.
 */
static const char *
expression_reason(PlannerInfo *root, LevelTest test)
{
	List	   *subroots = root->glob->subroots;
	const char *reason = NULL;
	ListCell   *lc;

	for (; root != NULL && reason == NULL; root = root->parent_root)
		reason = level_reason(root, test);
	foreach(lc, subroots)
	{
		if (reason == NULL)
			reason = level_reason(lfirst(lc), test);
	}
	return reason;
}

/* Why this INSERT may not be parallel. */
static const char *
statement_reason(PlannerInfo *root)
{
	const Query *parse = topmost(root)->parse;
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

		if (compat_is_target_view(rte))
			return "the target is a view";
	}
	reason = expression_reason(root, level_hazard);
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
	return statement_reason(root);
}

/*
 * When the leader's scan begins, before parallel mode does: check again, and take
 * the transaction's ID.  A reason means that the plan must not run in parallel;
 * Gather then passes the rows of the leader's own scan through.
 */
const char *
insert_select_begin(ForeignScanState *node)
{
	PlannedStmt *stmt = node->ss.ps.state->es_plannedstmt;
	const char *reason = NULL;
	ListCell   *lc;

	if (stmt->commandType != CMD_INSERT || !node->ss.ps.plan->parallel_aware ||
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
	/* The plan may be a cached one, that another time can be parallel again. */
	stmt->parallelModeNeeded = reason == NULL;
	if (reason != NULL)
		return reason;
	(void) GetCurrentTransactionId();
	(void) GetCurrentCommandId(true);
	return NULL;
}

/* The hazards of decoding the columns of this foreign table that are used. */
static int
decode_hazard(RelOptInfo *rel, Oid relid)
{
	Bitmapset  *used = NULL;
	int			member = -1;
	int			hazard = HAZARD_NONE;

	pull_varattnos((Node *) rel->reltarget->exprs, rel->relid, &used);
	pull_varattnos((Node *) get_actual_clauses(rel->baserestrictinfo),
				   rel->relid, &used);
	while ((member = bms_next_member(used, member)) >= 0)
	{
		AttrNumber	attnum = member + FirstLowInvalidHeapAttributeNumber;

		if (attnum == InvalidAttrNumber)
			hazard |= type_hazard(get_rel_type_id(relid), true, NIL);
		else if (attnum > 0)
			hazard |= type_hazard(get_atttype(relid, attnum), true, NIL);
	}
	return hazard;
}

/*
 * May workers decode the columns of this foreign table?  A domain's checks and
 * the input functions of types run there.
 */
bool
insert_select_decodes_safely(RelOptInfo *rel, Oid relid)
{
	return (decode_hazard(rel, relid) & HAZARD_PARALLEL) == 0;
}

/*
 * At plan time: why this INSERT has to write a row before it asks for the next one.
 * NULL if what it evaluates cannot tell, or if it is none; what depends on the
 * target is tested when it starts (insert_batch.c).
 */
const char *
insert_select_row_reason(PlannerInfo *root, RelOptInfo *rel, Oid relid)
{
	if (!insert_select_is_insert(root))
		return NULL;
	if (decode_hazard(rel, relid) & HAZARD_VOLATILE)
		return "a column's type has a volatile check or input function";
	return expression_reason(root, level_volatility);
}
