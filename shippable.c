/*-------------------------------------------------------------------------
 *
 * shippable.c
 *	  Which expressions may be evaluated by the remote server.
 *
 * An expression is shippable if the remote server must find for it what the
 * local server would find.  Pushed quals are not checked again here, so one
 * that the remote sees differently loses rows, and nobody notices.  When in
 * doubt the answer is no: an unshippable qual is merely evaluated locally.
 *
 * The rules:
 *
 * - Objects are built in, or belong to an extension that the server's option
 *	 lists; listing it is the user's word that it acts alike on both sides.
 *	 So enums, domains, composites and user functions are never sent: their
 *	 namesakes may order, cast or compute otherwise.
 * - Functions are immutable, which leaves out all that depends on settings or
 *	 on the time.
 * - Nothing is sent whose result depends on a collation, other than "C".  Two
 *	 clusters of the same collation name may still sort differently (another
 *	 C library, ICU or default), and a column's remote collation is not known.
 *	 Immutable does not help here, so functions that take text at all are on
 *	 two lists, and one that is on neither is not sent:
 *	   indifferent: gives the same under every deterministic collation, e.g.
 *	   equality, LIKE, length, substring;
 *	   obedient: follows the collation it is given and nothing else, e.g. the
 *	   comparisons, lower, regular expressions.  Sent under "C" only, and then
 *	   deparse.c spells COLLATE "C" out, so that the proof does not need the
 *	   remote column to be declared alike.
 *	 For equality we do trust that the remote column's collation is
 *	 deterministic if the local one's is.
 * - Constants and parameters have a type whose text means the same on both
 *	 sides: not money (lc_monetary), xml (xmloption) or aclitem (role names).
 *	 Names of objects, regclass and its like, are not sent in any form.
 * - Columns are the relation's own.  Of the system columns only ctid has a
 *	 remote meaning.  Columns of other relations are parameters: the planner
 *	 turns them into such when the clause becomes part of a nested loop.
 *
 * Not covered, since the plan does not know the remote server's encoding or
 * version: the order of "C" follows the bytes, so it differs between
 * encodings that do not keep the order of code points; the characters that
 * SQL_ASCII counts are bytes; and a function newer than the remote server
 * makes the remote raise an error.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/sysattr.h"
#include "access/transam.h"
#include "catalog/dependency.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_operator.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "utils/lsyscache.h"

#include "compat.h"
#include "shippable.h"

typedef struct ShipContext
{
	RelOptInfo *rel;
	List	   *extensions;		/* OIDs */
	bool		in_case;		/* inside the WHENs of CASE x WHEN ... */
} ShipContext;

static bool ship_node(Node *node, ShipContext *cxt);

/*
 * The OID of a built-in function never changes, while the names that
 * fmgroids.h gives do: F_REVERSE became F_REVERSE_TEXT with the next reverse.
 */
static const Oid indifferent_functions[] = {
	/* equality and patterns, byte by byte when deterministic */
	67,			/* texteq(text, text) */
	157,		/* textne(text, text) */
	1048,		/* bpchareq(character, character) */
	1053,		/* bpcharne(character, character) */
	62,			/* nameeq(name, name) */
	659,		/* namene(name, name) */
	240,		/* nameeqtext(name, text) */
	245,		/* namenetext(name, text) */
	247,		/* texteqname(text, name) */
	252,		/* textnename(text, name) */
	850,		/* textlike(text, text) */
	851,		/* textnlike(text, text) */
	1631,		/* bpcharlike(character, text) */
	1632,		/* bpcharnlike(character, text) */
	858,		/* namelike(name, text) */
	859,		/* namenlike(name, text) */
	1569,		/* like(text, text) */
	1570,		/* notlike(text, text) */
	1571,		/* like(name, text) */
	1572,		/* notlike(name, text) */
	1637,		/* like_escape(text, text) */
	3696,		/* starts_with(text, text) */
	/* casts among the text types */
	401,		/* text(character) */
	406,		/* text(name) */
	407,		/* name(text) */
	408,		/* bpchar(name) */
	409,		/* name(character) */
	1400,		/* name(character varying) */
	1401,		/* varchar(name) */
	668,		/* bpchar(character, integer, boolean) */
	669,		/* varchar(character varying, integer, boolean) */
	/* characters counted, cut and joined */
	1257,		/* textlen(text) */
	1258,		/* textcat(text, text) */
	1317,		/* length(text) */
	1318,		/* length(character) */
	1367,		/* character_length(character) */
	1369,		/* character_length(text) */
	1372,		/* char_length(character) */
	1381,		/* char_length(text) */
	849,		/* position(text, text) */
	868,		/* strpos(text, text) */
	873,		/* lpad(text, integer, text) */
	874,		/* rpad(text, integer, text) */
	879,		/* lpad(text, integer) */
	880,		/* rpad(text, integer) */
	875,		/* ltrim(text, text) */
	876,		/* rtrim(text, text) */
	881,		/* ltrim(text) */
	882,		/* rtrim(text) */
	884,		/* btrim(text, text) */
	885,		/* btrim(text) */
	877,		/* substr(text, integer, integer) */
	883,		/* substr(text, integer) */
	936,		/* substring(text, integer, integer) */
	937,		/* substring(text, integer) */
	878,		/* translate(text, text, text) */
	1404,		/* overlay(text, text, integer, integer) */
	1405,		/* overlay(text, text, integer) */
	1622,		/* repeat(text, integer) */
	2087,		/* replace(text, text, text) */
	2088,		/* split_part(text, text, integer) */
	3060,		/* left(text, integer) */
	3061,		/* right(text, integer) */
	3062,		/* reverse(text) */
	1946,		/* encode(bytea, text) */
	1947,		/* decode(text, text) */
	/* the text names a field or a flag */
	1218,		/* date_trunc(text, interval) */
	2020,		/* date_trunc(text, timestamp) */
	1172,		/* date_part(text, interval) */
	1273,		/* date_part(text, timetz) */
	1384,		/* date_part(text, date) */
	1385,		/* date_part(text, time) */
	2021,		/* date_part(text, timestamp) */
	6199,		/* extract(text, date) */
	6200,		/* extract(text, time) */
	6201,		/* extract(text, timetz) */
	6202,		/* extract(text, timestamp) */
	6204,		/* extract(text, interval) */
	3841,		/* int4range(integer, integer, text) */
	3845,		/* numrange(numeric, numeric, text) */
	3934,		/* tsrange(timestamp, timestamp, text) */
	3938,		/* tstzrange(timestamptz, timestamptz, text) */
	3942,		/* daterange(date, date, text) */
	3946,		/* int8range(bigint, bigint, text) */
	/* keys of json */
	3214,		/* jsonb_object_field_text(jsonb, text) */
	3478,		/* jsonb_object_field(jsonb, text) */
	3217,		/* jsonb_extract_path(jsonb, text[]) */
	3940,		/* jsonb_extract_path_text(jsonb, text[]) */
	3302,		/* jsonb_delete(jsonb, text) */
	3343,		/* jsonb_delete(jsonb, text[]) */
	3304,		/* jsonb_delete_path(jsonb, text[]) */
	4047,		/* jsonb_exists(jsonb, text) */
	4048,		/* jsonb_exists_any(jsonb, text[]) */
	4049,		/* jsonb_exists_all(jsonb, text[]) */
	3947,		/* json_object_field(json, text) */
	3948,		/* json_object_field_text(json, text) */
	3951,		/* json_extract_path(json, text[]) */
	3953,		/* json_extract_path_text(json, text[]) */
	/* arrays; elements are compared for equality at most */
	744,		/* array_eq(anyarray, anyarray) */
	390,		/* array_ne(anyarray, anyarray) */
	2747,		/* arrayoverlap(anyarray, anyarray) */
	2748,		/* arraycontains(anyarray, anyarray) */
	2749,		/* arraycontained(anyarray, anyarray) */
	3179,		/* cardinality(anyarray) */
	748,		/* array_ndims(anyarray) */
	2091,		/* array_lower(anyarray, integer) */
	2092,		/* array_upper(anyarray, integer) */
	2176,		/* array_length(anyarray, integer) */
	378,		/* array_append(anycompatiblearray, anycompatible) */
	379,		/* array_prepend(anycompatible, anycompatiblearray) */
	383,		/* array_cat(anycompatiblearray, anycompatiblearray) */
	3167		/* array_remove(anycompatiblearray, anycompatible) */
};

static const Oid obedient_functions[] = {
	/* order */
	740,		/* text_lt(text, text) */
	741,		/* text_le(text, text) */
	742,		/* text_gt(text, text) */
	743,		/* text_ge(text, text) */
	1049,		/* bpcharlt(character, character) */
	1050,		/* bpcharle(character, character) */
	1051,		/* bpchargt(character, character) */
	1052,		/* bpcharge(character, character) */
	655,		/* namelt(name, name) */
	656,		/* namele(name, name) */
	657,		/* namegt(name, name) */
	658,		/* namege(name, name) */
	241,		/* namelttext(name, text) */
	242,		/* nameletext(name, text) */
	243,		/* namegetext(name, text) */
	244,		/* namegttext(name, text) */
	248,		/* textltname(text, name) */
	249,		/* textlename(text, name) */
	250,		/* textgename(text, name) */
	251,		/* textgtname(text, name) */
	/* case */
	870,		/* lower(text) */
	871,		/* upper(text) */
	872,		/* initcap(text) */
	1633,		/* texticlike(text, text) */
	1634,		/* texticnlike(text, text) */
	1660,		/* bpchariclike(character, text) */
	1661,		/* bpcharicnlike(character, text) */
	1635,		/* nameiclike(name, text) */
	1636,		/* nameicnlike(name, text) */
	/* regular expressions */
	1254,		/* textregexeq(text, text) */
	1256,		/* textregexne(text, text) */
	1238,		/* texticregexeq(text, text) */
	1239,		/* texticregexne(text, text) */
	1658,		/* bpcharregexeq(character, text) */
	1659,		/* bpcharregexne(character, text) */
	1656,		/* bpcharicregexeq(character, text) */
	1657,		/* bpcharicregexne(character, text) */
	79,			/* nameregexeq(name, text) */
	1252,		/* nameregexne(name, text) */
	1240,		/* nameicregexeq(name, text) */
	1241		/* nameicregexne(name, text) */
};

/* Take no text, and still depend on the database they run in. */
static const Oid local_functions[] = {
	/* order of json strings: the default collation */
	4039,		/* jsonb_lt(jsonb, jsonb) */
	4040,		/* jsonb_gt(jsonb, jsonb) */
	4041,		/* jsonb_le(jsonb, jsonb) */
	4042,		/* jsonb_ge(jsonb, jsonb) */
	4044,		/* jsonb_cmp(jsonb, jsonb) */
	/* order of arrays, of json among others */
	391,		/* array_lt(anyarray, anyarray) */
	392,		/* array_gt(anyarray, anyarray) */
	393,		/* array_le(anyarray, anyarray) */
	396,		/* array_ge(anyarray, anyarray) */
	382,		/* btarraycmp(anyarray, anyarray) */
	/* code points of the database encoding */
	1621,		/* chr(integer) */
	/* OIDs of the local catalog */
	5028		/* satisfies_hash_partition(oid, integer, integer, "any") */
};

static bool
is_among(Oid funcid, const Oid *list, int n)
{
	int			i;

	for (i = 0; i < n; i++)
	{
		if (list[i] == funcid)
			return true;
	}
	return false;
}

#define IS_AMONG(funcid, list)	is_among(funcid, list, lengthof(list))

/*
 * Objects up to the first generated OID were given theirs by hand, and keep
 * it in every version and cluster.
 */
static bool
is_built_in(Oid object)
{
	return object < FirstGenbkiObjectId;
}

bool
shippable_object(Oid object, Oid class_id, List *extensions)
{
	if (is_built_in(object))
		return true;
	if (extensions == NIL)
		return false;			/* spares the search in pg_depend */
	return list_member_oid(extensions, getExtensionOfObject(class_id, object));
}

/* The type of an array's elements, or the type itself. */
static Oid
basic_type(Oid type)
{
	Oid			element = get_element_type(type);

	return OidIsValid(element) ? element : type;
}

/*
 * May values of the type take part in a remote expression at all?  Only the
 * element type is a member of an extension, its array type just hangs on it.
 */
static bool
is_shippable_type(Oid type, ShipContext *cxt)
{
	Oid			basic = basic_type(type);

	switch (basic)
	{
			/* Match strings by the database's locale */
		case JSONPATHOID:

			/*
			 * Come over by name and get a local OID, so each side compares
			 * other numbers.
			 */
		case REGPROCOID:
		case REGPROCEDUREOID:
		case REGOPEROID:
		case REGOPERATOROID:
		case REGCLASSOID:
		case REGTYPEOID:
		case REGCOLLATIONOID:
		case REGCONFIGOID:
		case REGDICTIONARYOID:
		case REGNAMESPACEOID:
		case REGROLEOID:
			return false;
		default:
			/* the columns of a row may differ */
			return shippable_object(basic, TypeRelationId, cxt->extensions) &&
				!type_is_rowtype(basic);
	}
}

/* May values of the type travel as text? */
static bool
is_portable_type(Oid type)
{
	switch (basic_type(type))
	{
		case CASHOID:			/* lc_monetary */
		case XMLOID:			/* xmloption */
		case ACLITEMOID:		/* names of roles */
			return false;
		default:
			return get_typtype(basic_type(type)) != TYPTYPE_PSEUDO;
	}
}

static bool
is_own_column(Var *var, ShipContext *cxt)
{
	return var->varlevelsup == 0 &&
		bms_is_member(var->varno, cxt->rel->relids);
}

static bool
ship_var(Var *var, ShipContext *cxt)
{
	if (is_own_column(var, cxt))
		return var->varattno > 0 ||
			var->varattno == SelfItemPointerAttributeNumber;

	/* another relation's: a parameter in the end */
	return var->varlevelsup == 0 && is_portable_type(var->vartype);
}

static bool
ship_param(Param *param)
{
	return (param->paramkind == PARAM_EXTERN ||
			param->paramkind == PARAM_EXEC) &&
		is_portable_type(param->paramtype);
}

static bool
is_c_collation(Oid collation)
{
	return collation == C_COLLATION_OID || collation == POSIX_COLLATION_OID;
}

bool
shippable_spells_collation(Oid funcid, Oid collation)
{
	return is_c_collation(collation) && !IS_AMONG(funcid, indifferent_functions);
}

static bool
has_collatable(List *args)
{
	ListCell   *lc;

	foreach(lc, args)
	{
		if (type_is_collatable(exprType((Node *) lfirst(lc))))
			return true;
	}
	return false;
}

/* The proof about collations that this file opens with, for one call. */
static bool
ship_collation(Oid funcid, Oid collation, List *args)
{
	bool		indifferent = IS_AMONG(funcid, indifferent_functions);

	if (!OidIsValid(collation))
		return indifferent || !has_collatable(args);
	if (!is_built_in(funcid))
		return collation == DEFAULT_COLLATION_OID || is_c_collation(collation);
	if (indifferent)
		return get_collation_isdeterministic(collation);
	return is_c_collation(collation) && IS_AMONG(funcid, obedient_functions);
}

/* A call of a function, by its name or by an operator's. */
static bool
ship_call(Oid funcid, Oid collation, List *args, ShipContext *cxt)
{
	return !IS_AMONG(funcid, local_functions) &&
		ship_collation(funcid, collation, args) &&
		ship_node((Node *) args, cxt);
}

static bool
ship_function(FuncExpr *func, ShipContext *cxt)
{
	return shippable_object(func->funcid, ProcedureRelationId,
							cxt->extensions) &&
		ship_call(func->funcid, func->inputcollid, func->args, cxt);
}

static bool
ship_operator(OpExpr *op, ShipContext *cxt)
{
	set_opfuncid(op);
	return shippable_object(op->opno, OperatorRelationId, cxt->extensions) &&
		ship_call(op->opfuncid, op->inputcollid, op->args, cxt);
}

/*
 * IS DISTINCT FROM and NULLIF: the remote parser looks up "=" by itself, and
 * finds nothing outside pg_catalog.
 */
static bool
ship_implied_equality(OpExpr *op, ShipContext *cxt)
{
	return is_built_in(op->opno) &&
		strcmp(get_opname(op->opno), "=") == 0 &&
		ship_operator(op, cxt);
}

static bool
ship_array_operator(ScalarArrayOpExpr *op, ShipContext *cxt)
{
	set_sa_opfuncid(op);
	return shippable_object(op->opno, OperatorRelationId, cxt->extensions) &&
		ship_call(op->opfuncid, op->inputcollid, op->args, cxt);
}

/* Only elements that keep their bytes: varchar[] as text[] and the like. */
static bool
ship_array_coercion(ArrayCoerceExpr *coercion, ShipContext *cxt)
{
	return IsA(coercion->elemexpr, RelabelType) &&
		IsA(((RelabelType *) coercion->elemexpr)->arg, CaseTestExpr) &&
		ship_node((Node *) coercion->arg, cxt);
}

static bool
ship_subscript(SubscriptingRef *ref, ShipContext *cxt)
{
	return ref->refassgnexpr == NULL &&
		ship_node((Node *) ref->refexpr, cxt) &&
		ship_node((Node *) ref->refupperindexpr, cxt) &&
		ship_node((Node *) ref->reflowerindexpr, cxt);
}

static bool
ship_case(CaseExpr *expr, ShipContext *cxt)
{
	bool		saved = cxt->in_case;
	bool		ok;
	ListCell   *lc;

	if (!ship_node((Node *) expr->arg, cxt))
		return false;

	ok = ship_node((Node *) expr->defresult, cxt);
	foreach(lc, expr->args)
	{
		CaseWhen   *when = lfirst_node(CaseWhen, lc);

		cxt->in_case = (expr->arg != NULL);
		ok = ok && ship_node((Node *) when->expr, cxt);
		cxt->in_case = saved;
		ok = ok && ship_node((Node *) when->result, cxt);
	}
	return ok;
}

/*
 * Whether a column is null is the same whatever its type, so this works for
 * types that are themselves not sent; except rows, whose columns are looked
 * at.
 */
static bool
ship_null_test(NullTest *test, ShipContext *cxt)
{
	if (test->argisrow || type_is_rowtype(exprType((Node *) test->arg)))
		return false;
	if (IsA(test->arg, Var) && is_own_column((Var *) test->arg, cxt))
		return ship_var((Var *) test->arg, cxt);
	return ship_node((Node *) test->arg, cxt);
}

static bool
ship_list(List *list, ShipContext *cxt)
{
	ListCell   *lc;

	foreach(lc, list)
	{
		if (!ship_node((Node *) lfirst(lc), cxt))
			return false;
	}
	return true;
}

/* The rule of each kind of node; a kind that is not here is not sent. */
static bool
ship_by_kind(Node *node, ShipContext *cxt)
{
	switch (nodeTag(node))
	{
		case T_Var:
			return ship_var((Var *) node, cxt);
		case T_Const:
			return is_portable_type(((Const *) node)->consttype);
		case T_Param:
			return ship_param((Param *) node);
		case T_FuncExpr:
			return ship_function((FuncExpr *) node, cxt);
		case T_OpExpr:
			return ship_operator((OpExpr *) node, cxt);
		case T_DistinctExpr:
		case T_NullIfExpr:
			return ship_implied_equality((OpExpr *) node, cxt);
		case T_ScalarArrayOpExpr:
			return ship_array_operator((ScalarArrayOpExpr *) node, cxt);
		case T_RelabelType:
			return ship_node((Node *) ((RelabelType *) node)->arg, cxt);
		case T_ArrayCoerceExpr:
			return ship_array_coercion((ArrayCoerceExpr *) node, cxt);
		case T_SubscriptingRef:
			return ship_subscript((SubscriptingRef *) node, cxt);
		case T_BoolExpr:
			return ship_list(((BoolExpr *) node)->args, cxt);
		case T_NullTest:
			return ship_null_test((NullTest *) node, cxt);
		case T_BooleanTest:
			return ship_node((Node *) ((BooleanTest *) node)->arg, cxt);
		case T_CaseExpr:
			return ship_case((CaseExpr *) node, cxt);
		case T_CaseTestExpr:
			return cxt->in_case;
		case T_CoalesceExpr:
			return ship_list(((CoalesceExpr *) node)->args, cxt);
		case T_ArrayExpr:
			return ship_list(((ArrayExpr *) node)->elements, cxt);
		default:
			return false;
	}
}

/* All but the test for mutable functions, which is done once for the whole. */
static bool
ship_node(Node *node, ShipContext *cxt)
{
	if (node == NULL)
		return true;
	check_stack_depth();
	if (IsA(node, List))
		return ship_list((List *) node, cxt);
	return is_shippable_type(exprType(node), cxt) && ship_by_kind(node, cxt);
}

bool
shippable_expr(PlannerInfo *root, RelOptInfo *rel, Expr *expr,
			   List *extensions)
{
	ShipContext cxt;

	cxt.rel = rel;
	cxt.extensions = extensions;
	cxt.in_case = false;

	return ship_node((Node *) expr, &cxt) &&
		!contain_mutable_functions((Node *) expr);
}
