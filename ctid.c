/*-------------------------------------------------------------------------
 *
 * ctid.c
 *	  Quals on ctid, as limits of the blocks to read.
 *
 * A qual like ctid >= '(100,0)' AND ctid < '(200,0)' is evaluated by the remote,
 * and exactly so; here it only cuts the block space before anything is claimed,
 * so that no chunk outside is asked for.  What is not understood cuts nothing.
 *
 * Values come from constants, parameters, InitPlans and outer rows, so the limits
 * are computed anew for every (re)scan: a limit that survived a rescan would lose
 * rows.  All arithmetic is in 64 bits.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/sysattr.h"
#include "catalog/pg_operator.h"
#include "catalog/pg_type.h"
#include "compat.h"
#include "ctid.h"
#include "executor/executor.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "storage/itemptr.h"
#include "utils/array.h"

/* What a qual says of ctid, which is on its left. */
typedef enum CtidOperator
{
	CTID_LESS,
	CTID_LESS_EQUAL,
	CTID_EQUAL,
	CTID_GREATER_EQUAL,
	CTID_GREATER,
	CTID_ANY,					/* equal to one of an array */
	CTID_UNKNOWN
} CtidOperator;

/* pg_operator.h names some of them only. */
#define TID_LESS_OPERATOR			2799
#define TID_GREATER_OPERATOR		2800
#define TID_LESS_EQUAL_OPERATOR		2801
#define TID_GREATER_EQUAL_OPERATOR	2802

static CtidOperator
operator_kind(Oid operator)
{
	switch (operator)
	{
		case TIDEqualOperator:
			return CTID_EQUAL;
		case TID_LESS_OPERATOR:
			return CTID_LESS;
		case TID_LESS_EQUAL_OPERATOR:
			return CTID_LESS_EQUAL;
		case TID_GREATER_OPERATOR:
			return CTID_GREATER;
		case TID_GREATER_EQUAL_OPERATOR:
			return CTID_GREATER_EQUAL;
		default:
			return CTID_UNKNOWN;
	}
}

/* The same comparison with the sides exchanged. */
static CtidOperator
mirror(CtidOperator operator)
{
	switch (operator)
	{
		case CTID_LESS:
			return CTID_GREATER;
		case CTID_LESS_EQUAL:
			return CTID_GREATER_EQUAL;
		case CTID_GREATER:
			return CTID_LESS;
		case CTID_GREATER_EQUAL:
			return CTID_LESS_EQUAL;
		default:
			return operator;
	}
}

static bool
is_ctid(Node *node, Index relid)
{
	Var		   *var = (Var *) node;

	return node != NULL && IsA(node, Var) && var->varno == relid &&
		var->varattno == SelfItemPointerAttributeNumber &&
		var->varlevelsup == 0;
}

/* Does the expression have one value for the whole scan? */
static bool
is_constant_for(Node *node, Index relid)
{
	return !bms_is_member(relid, compat_pull_varnos(node)) &&
		!contain_volatile_functions(node);
}

/* Take one clause apart; CTID_UNKNOWN if it says nothing of use. */
static CtidOperator
take_apart(Expr *clause, Index relid, Expr **value)
{
	if (is_opclause(clause) && list_length(((OpExpr *) clause)->args) == 2)
	{
		OpExpr	   *op = (OpExpr *) clause;
		CtidOperator kind = operator_kind(op->opno);
		Node	   *left = linitial(op->args);
		Node	   *right = lsecond(op->args);

		if (is_ctid(left, relid) && is_constant_for(right, relid))
		{
			*value = (Expr *) right;
			return kind;
		}
		if (is_ctid(right, relid) && is_constant_for(left, relid))
		{
			*value = (Expr *) left;
			return mirror(kind);
		}
	}
	else if (IsA(clause, ScalarArrayOpExpr))
	{
		ScalarArrayOpExpr *op = (ScalarArrayOpExpr *) clause;

		if (op->useOr && operator_kind(op->opno) == CTID_EQUAL &&
			is_ctid(linitial(op->args), relid) &&
			is_constant_for(lsecond(op->args), relid))
		{
			*value = lsecond(op->args);
			return CTID_ANY;
		}
	}
	return CTID_UNKNOWN;
}

/*
 * Find what the clauses (ANDed) say of the relation's ctid: operators, as
 * integers, and the expressions on their right.
 */
void
ctid_extract(RelOptInfo *rel, List *clauses, List **operators, List **exprs)
{
	ListCell   *lc;

	*operators = NIL;
	*exprs = NIL;
	foreach(lc, clauses)
	{
		Expr	   *value = NULL;
		CtidOperator kind = take_apart(lfirst(lc), rel->relid, &value);

		if (kind == CTID_UNKNOWN)
			continue;
		*operators = lappend_int(*operators, kind);
		*exprs = lappend(*exprs, copyObject(value));
	}
}

/* Cut the range to blocks [first, beyond). */
static void
cut(CtidRange *range, uint64 first, uint64 beyond)
{
	range->first = Max(range->first, first);
	range->beyond = Min(range->beyond, beyond);
}

/* From the smallest to the largest tid of the array. */
static void
cut_to_array(CtidRange *range, Datum value)
{
	ArrayType  *array = DatumGetArrayTypeP(value);
	Datum	   *elements;
	bool	   *nulls;
	int			n;
	int			i;
	uint64		first = PG_UINT64_MAX;
	uint64		beyond = 0;

	deconstruct_array(array, TIDOID, sizeof(ItemPointerData), false,
					  TYPALIGN_SHORT, &elements, &nulls, &n);
	for (i = 0; i < n; i++)
	{
		uint64		block;

		if (nulls[i])
			continue;
		block = ItemPointerGetBlockNumberNoCheck((ItemPointer) DatumGetPointer(elements[i]));
		first = Min(first, block);
		beyond = Max(beyond, block + 1);
	}
	cut(range, first, beyond);
}

/* Cut the range by one qual with this value. */
static void
cut_to_value(CtidRange *range, CtidOperator operator, Datum value, bool isnull)
{
	ItemPointer tid = (ItemPointer) DatumGetPointer(value);
	uint64		block;

	if (isnull)
	{
		cut(range, 0, 0);
		return;
	}
	if (operator == CTID_ANY)
	{
		cut_to_array(range, value);
		return;
	}
	block = ItemPointerGetBlockNumberNoCheck(tid);
	switch (operator)
	{
		case CTID_LESS:
			/* no row has offset 0 */
			cut(range, 0, ItemPointerGetOffsetNumberNoCheck(tid) == 0 ?
				block : block + 1);
			break;
		case CTID_LESS_EQUAL:
			cut(range, 0, block + 1);
			break;
		case CTID_EQUAL:
			cut(range, block, block + 1);
			break;
		default:
			cut(range, block, PG_UINT64_MAX);
	}
}

/*
 * The share of the relation's blocks that the quals leave, as far as the planner
 * knows: from constants.
 */
double
ctid_planned_fraction(RelOptInfo *rel, List *clauses)
{
	CtidRange	range = {0, Max(rel->pages, 1)};
	double		all = range.beyond;
	List	   *operators;
	List	   *exprs;
	ListCell   *lc_operator;
	ListCell   *lc_expr;

	ctid_extract(rel, clauses, &operators, &exprs);
	forboth(lc_operator, operators, lc_expr, exprs)
	{
		Const	   *value = lfirst(lc_expr);

		if (IsA(value, Const))
			cut_to_value(&range, lfirst_int(lc_operator), value->constvalue,
						 value->constisnull);
	}
	return range.first < range.beyond ? (range.beyond - range.first) / all : 0;
}

/*
 * The blocks that can hold rows for the present values.  Nothing can: beyond is
 * not larger than first.
 */
CtidRange
ctid_range(List *operators, List *states, ExprContext *econtext)
{
	CtidRange	range = {0, PG_UINT64_MAX};
	ListCell   *lc_operator;
	ListCell   *lc_state;

	forboth(lc_operator, operators, lc_state, states)
	{
		bool		isnull;
		Datum		value = ExecEvalExpr((ExprState *) lfirst(lc_state),
										 econtext, &isnull);

		cut_to_value(&range, lfirst_int(lc_operator), value, isnull);
	}
	return range;
}
