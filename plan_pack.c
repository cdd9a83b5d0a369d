/*-------------------------------------------------------------------------
 *
 * plan_pack.c
 *	  What the planner tells the executor, as the list that a plan can hold.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "compat.h"
#include "plan.h"

/* Positions in ForeignScan.fdw_private. */
enum ScanPlanItem
{
	PLAN_FRAGMENTS,				/* list of String */
	PLAN_ATTNUMS,				/* list of integers */
	PLAN_QUAL_ATTNUMS,			/* list of integers */
	PLAN_NEEDS_CTID,			/* Boolean */
	PLAN_PAGES,					/* Float */
	PLAN_CTID_OPERATORS,		/* list of integers */
	PLAN_LIMIT,					/* Float */
	PLAN_CONNECTIONS,			/* Integer */
	PLAN_SERIAL_REASON,			/* String, empty: none */
	PLAN_ROW_REASON,			/* String, empty: none */
	PLAN_HAS_LEAVES,			/* Boolean */
	PLAN_IS_FLAT,				/* Boolean */
	PLAN_WHOLE_REASON			/* String, empty: none */
};

/* Without a decimal point it would come back to a worker as an Integer. */
static Node *
make_decimal(double value)
{
	return (Node *) makeFloat(psprintf("%.1f", value));
}

/*
 * The list for ForeignScan.fdw_private.  The expressions of `plan` are not in it: fdw_exprs
 * has the parameters, and the values of ctid quals behind them.
 */
List *
plan_pack(const ScanPlan *plan)
{
	List	   *private = list_make4(plan->fragments, plan->attnums,
									 plan->qual_attnums,
									 makeBoolean(plan->needs_ctid));

	private = lappend(private, make_decimal(plan->pages));
	private = lappend(private, plan->ctid_operators);
	private = lappend(private, make_decimal(plan->limit));
	private = lappend(private, makeInteger(plan->connections));
	private = lappend(private, makeString(pstrdup(plan->serial_reason)));
	private = lappend(private, makeString(pstrdup(plan->row_reason)));
	private = lappend(private, makeBoolean(plan->has_leaves));
	private = lappend(private, makeBoolean(plan->is_flat));
	private = lappend(private, makeString(pstrdup(plan->whole_reason)));
	return private;
}

/*
 * What plan_pack packed.
 */
void
plan_unpack(const ForeignScan *scan, ScanPlan *plan)
{
	List	   *private = scan->fdw_private;
	int			nparams;

	plan->fragments = (List *) list_nth(private, PLAN_FRAGMENTS);
	plan->attnums = (List *) list_nth(private, PLAN_ATTNUMS);
	plan->qual_attnums = (List *) list_nth(private, PLAN_QUAL_ATTNUMS);
	plan->needs_ctid = boolVal(list_nth(private, PLAN_NEEDS_CTID));
	plan->pages = floatVal(list_nth(private, PLAN_PAGES));
	plan->limit = floatVal(list_nth(private, PLAN_LIMIT));
	plan->connections = intVal(list_nth(private, PLAN_CONNECTIONS));
	plan->serial_reason = strVal(list_nth(private, PLAN_SERIAL_REASON));
	plan->row_reason = strVal(list_nth(private, PLAN_ROW_REASON));
	plan->has_leaves = boolVal(list_nth(private, PLAN_HAS_LEAVES));
	plan->is_flat = boolVal(list_nth(private, PLAN_IS_FLAT));
	plan->whole_reason = strVal(list_nth(private, PLAN_WHOLE_REASON));
	plan->ctid_operators = (List *) list_nth(private, PLAN_CTID_OPERATORS);
	nparams = list_length(scan->fdw_exprs) -
		list_length(plan->ctid_operators);
	plan->params = list_truncate(list_copy(scan->fdw_exprs), nparams);
	plan->ctid_exprs = list_copy_tail(scan->fdw_exprs, nparams);
}
