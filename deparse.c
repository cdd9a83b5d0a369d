/*-------------------------------------------------------------------------
 *
 * deparse.c
 *	  Writes SQL text for the remote server.
 *
 * The text is for a session that connection.c has pinned: search_path is
 * exactly pg_catalog, so that built-in objects need no schema and all others
 * get one; DateStyle is ISO, IntervalStyle postgres, and TimeZone and
 * client_encoding are ours.  What comes in has been found shippable, so a node
 * of another kind is a bug and raises an error.
 *
 * What must hold:
 *
 * - Every expression is written so that it stands alone: a primary, or in
 *	 parentheses.  No operator's precedence matters, here or on the remote.
 * - A constant carries its type.  As an unknown literal it would take the type
 *	 of the remote column, which may be another than the local one, and then
 *	 mean another value ('2020-01-01 00:00+02' as a timestamp without zone).
 *	 Typmods are not written: the value has been through them already.
 * - What the remote parser adds by itself, the implicit casts, is not written.
 * - Where the proof that an expression is shippable rests on the collation
 *	 "C", the text says COLLATE "C", whatever the remote column's is.
 * - Values are written under the settings of deparse_set_output_settings.
 *
 * A parameter leaves a gap (see DeparsedQuals), since COPY takes no bind
 * parameters; its value is written as a constant would be.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "access/sysattr.h"
#include "access/transam.h"
#include "catalog/pg_namespace.h"
#include "catalog/pg_operator.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_type.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "nodes/nodeFuncs.h"
#include "optimizer/optimizer.h"
#include "parser/parsetree.h"
#include "utils/builtins.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"

#include "compat.h"
#include "deparse.h"
#include "option.h"
#include "shippable.h"

/* A CASE x WHEN that is being written: a CaseTestExpr in it stands for x. */
typedef struct CaseFrame
{
	Node	   *arg;
	struct CaseFrame *outer;
} CaseFrame;

typedef struct DeparseContext
{
	PlannerInfo *root;
	RelOptInfo *rel;
	StringInfo	buf;			/* the fragment being written */
	DeparsedQuals *quals;		/* the pieces finished so far */
	CaseFrame  *case_frame;		/* innermost; NULL outside of any */
} DeparseContext;

static void write_expr(Node *node, DeparseContext *cxt);

/* ---- names and literals ---- */

/*
 * Words that a later server reserves than the one we may be built for.  Bare,
 * such a column name would not fail there, but mean something else.
 */
static const char *const later_keywords[] = {
	"system_user"				/* 16: the authenticated identity */
};

void
deparse_identifier(StringInfo buf, const char *name)
{
	const char *quoted = quote_identifier(name);
	int			i;

	for (i = 0; i < lengthof(later_keywords); i++)
	{
		if (strcmp(quoted, later_keywords[i]) == 0)
		{
			appendStringInfo(buf, "\"%s\"", name);
			return;
		}
	}
	appendStringInfoString(buf, quoted);
}

void
deparse_relation(StringInfo buf, const char *schema_name,
				 const char *table_name)
{
	deparse_identifier(buf, schema_name);
	appendStringInfoChar(buf, '.');
	deparse_identifier(buf, table_name);
}

char *
deparse_foreign_table(Oid relid)
{
	TableOptions options;
	StringInfoData buf;

	option_resolve_table(relid, &options);
	initStringInfo(&buf);
	deparse_relation(&buf, options.schema_name, options.table_name);
	return buf.data;
}

/* A column as the remote server knows it; of the system columns, ctid. */
void
deparse_column(StringInfo buf, Oid relid, AttrNumber attnum)
{
	if (attnum == SelfItemPointerAttributeNumber)
		appendStringInfoString(buf, "ctid");
	else
		deparse_identifier(buf, option_remote_column(relid, attnum));
}

/*
 * Only a string with a backslash depends on standard_conforming_strings, and
 * E'' frees it from that.  Client encodings in which a backslash can be part
 * of another character do not occur: the connection uses the encoding of the
 * local database, and none of those is such.
 */
void
deparse_string_literal(StringInfo buf, const char *value)
{
	const char *p;

	if (strchr(value, '\\') != NULL)
		appendStringInfoChar(buf, 'E');
	appendStringInfoChar(buf, '\'');
	for (p = value; *p != '\0'; p++)
	{
		if (*p == '\'' || *p == '\\')
			appendStringInfoChar(buf, *p);
		appendStringInfoChar(buf, *p);
	}
	appendStringInfoChar(buf, '\'');
}

/* The name of a type; without typmod, char is bpchar and bit is "bit". */
static char *
type_name(Oid type, int32 typmod)
{
	int			flags = FORMAT_TYPE_TYPEMOD_GIVEN;

	/* not in pg_catalog, or unsure: then the schema does no harm */
	if (type >= FirstGenbkiObjectId)
		flags |= FORMAT_TYPE_FORCE_QUALIFY;
	return format_type_extended(type, typmod, flags);
}

/*
 * A value from its text, NULL for SQL NULL.  Integers and booleans need no
 * cast, and are what people write most.  A negative number gets parentheses,
 * since "- 1" binds less tightly than "::" or "[".
 */
static void
write_value(StringInfo buf, Oid type, const char *text)
{
	if (text != NULL && type == INT4OID)
		appendStringInfo(buf, *text == '-' ? "(%s)" : "%s", text);
	else if (text != NULL && type == BOOLOID)
		appendStringInfoString(buf, *text == 't' ? "true" : "false");
	else
	{
		if (text != NULL)
			deparse_string_literal(buf, text);
		else
			appendStringInfoString(buf, "NULL");
		appendStringInfo(buf, "::%s", type_name(type, -1));
	}
}

/* ---- the gaps ---- */

/* Ends the current fragment with a gap for the value of a parameter. */
static void
leave_gap(Node *param, DeparseContext *cxt)
{
	cxt->quals->fragments = lappend(cxt->quals->fragments,
									makeString(pstrdup(cxt->buf->data)));
	cxt->quals->params = lappend(cxt->quals->params, copyObject(param));
	resetStringInfo(cxt->buf);
}

void
deparse_fill_params(StringInfo buf, List *fragments, List *params,
					const char *const *values)
{
	ListCell   *lc;
	int			i = 0;

	foreach(lc, fragments)
	{
		if (i > 0)
			write_value(buf, exprType((Node *) list_nth(params, i - 1)),
						values[i - 1]);
		appendStringInfoString(buf, strVal(lfirst(lc)));
		i++;
	}
	Assert(fragments == NIL || list_length(params) == i - 1);
}

/* A sub-SELECT is planned for any value; a NULL constant would be folded. */
void
deparse_hide_params(StringInfo buf, List *fragments, List *params)
{
	ListCell   *lc;
	int			i = 0;

	foreach(lc, fragments)
	{
		if (i > 0)
		{
			const char *type = type_name(exprType((Node *) list_nth(params, i - 1)),
										 -1);

			appendStringInfo(buf, "((SELECT NULL::%s)::%s)", type, type);
		}
		appendStringInfoString(buf, strVal(lfirst(lc)));
		i++;
	}
}

/* The same parameter keeps its number wherever it occurs. */
void
deparse_show_params(StringInfo buf, List *fragments, List *params)
{
	List	   *distinct = NIL;
	ListCell   *lc;
	ListCell   *lc2;
	int			i = 0;

	foreach(lc, fragments)
	{
		if (i > 0)
		{
			Node	   *param = (Node *) list_nth(params, i - 1);

			distinct = list_append_unique(distinct, param);
			foreach(lc2, distinct)
			{
				if (equal(lfirst(lc2), param))
					appendStringInfo(buf, "$%d", foreach_current_index(lc2) + 1);
			}
			appendStringInfo(buf, "::%s", type_name(exprType(param), -1));
		}
		appendStringInfoString(buf, strVal(lfirst(lc)));
		i++;
	}
	list_free(distinct);
}

/* ---- expressions ---- */

static void
write_var(Var *var, DeparseContext *cxt)
{
	if (bms_is_member(var->varno, cxt->rel->relids) && var->varlevelsup == 0)
		deparse_column(cxt->buf, planner_rt_fetch(var->varno, cxt->root)->relid,
					   var->varattno);
	else
		leave_gap((Node *) var, cxt);
}

static void
write_const(Const *con, DeparseContext *cxt)
{
	char	   *text = NULL;

	if (!con->constisnull)
	{
		Oid			output;
		bool		is_varlena;

		getTypeOutputInfo(con->consttype, &output, &is_varlena);
		text = OidOutputFunctionCall(output, con->constvalue);
	}
	write_value(cxt->buf, con->consttype, text);
}

/*
 * Expressions separated by commas.  With a collation to spell out, the first
 * that can carry it does, which is enough for the call.
 */
static void
write_list(List *list, bool spell_collation, DeparseContext *cxt)
{
	ListCell   *lc;

	foreach(lc, list)
	{
		Node	   *node = (Node *) lfirst(lc);

		if (foreach_current_index(lc) > 0)
			appendStringInfoString(cxt->buf, ", ");
		write_expr(node, cxt);
		if (spell_collation && type_is_collatable(exprType(node)))
		{
			appendStringInfoString(cxt->buf, " COLLATE \"C\"");
			spell_collation = false;
		}
	}
}

/* One operand.  Clears *spell_collation if the operand carries it. */
static void
write_operand(Node *node, bool *spell_collation, DeparseContext *cxt)
{
	write_list(list_make1(node), *spell_collation, cxt);
	if (type_is_collatable(exprType(node)))
		*spell_collation = false;
}

static void
write_cast(Node *arg, Oid type, int32 typmod, CoercionForm form,
		   DeparseContext *cxt)
{
	write_expr(arg, cxt);
	if (form != COERCE_IMPLICIT_CAST)
		appendStringInfo(cxt->buf, "::%s", type_name(type, typmod));
}

static void
write_relabel(RelabelType *relabel, DeparseContext *cxt)
{
	write_cast((Node *) relabel->arg, relabel->resulttype,
			   relabel->resulttypmod, relabel->relabelformat, cxt);
}

static void
write_array_coercion(ArrayCoerceExpr *coercion, DeparseContext *cxt)
{
	write_cast((Node *) coercion->arg, coercion->resulttype,
			   coercion->resulttypmod, coercion->coerceformat, cxt);
}

static void
write_function_name(Oid funcid, DeparseContext *cxt)
{
	Oid			schema = get_func_namespace(funcid);

	if (schema != PG_CATALOG_NAMESPACE)
	{
		deparse_identifier(cxt->buf, get_namespace_name(schema));
		appendStringInfoChar(cxt->buf, '.');
	}
	deparse_identifier(cxt->buf, get_func_name(funcid));
}

/* Calls by a syntax of their own, such as EXTRACT, have a plain name too. */
static void
write_function(FuncExpr *func, DeparseContext *cxt)
{
	bool		spell = shippable_spells_collation(func->funcid,
												   func->inputcollid);
	List	   *args = func->args;

	if (func->funcformat == COERCE_IMPLICIT_CAST ||
		func->funcformat == COERCE_EXPLICIT_CAST)
	{
		int32		typmod = -1;

		/* a length coercion gets its length from the typmod of the cast */
		(void) exprIsLengthCoercion((Node *) func, &typmod);
		write_cast(linitial(args), func->funcresulttype, typmod,
				   func->funcformat, cxt);
		return;
	}

	write_function_name(func->funcid, cxt);
	appendStringInfoChar(cxt->buf, '(');
	if (func->funcvariadic)
	{
		List	   *fixed = list_truncate(list_copy(args),
										  list_length(args) - 1);

		write_list(fixed, spell, cxt);
		appendStringInfo(cxt->buf, "%sVARIADIC ", fixed != NIL ? ", " : "");
		spell = spell && fixed == NIL;
		args = list_make1(llast(args));
	}
	write_list(args, spell, cxt);
	appendStringInfoChar(cxt->buf, ')');
}

static void
write_operator_name(Oid opno, DeparseContext *cxt)
{
	HeapTuple	tuple = SearchSysCache1(OPEROID, ObjectIdGetDatum(opno));
	Form_pg_operator form;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for operator %u", opno);
	form = (Form_pg_operator) GETSTRUCT(tuple);

	if (form->oprnamespace == PG_CATALOG_NAMESPACE)
		appendStringInfoString(cxt->buf, NameStr(form->oprname));
	else
	{
		appendStringInfoString(cxt->buf, "OPERATOR(");
		deparse_identifier(cxt->buf, get_namespace_name(form->oprnamespace));
		appendStringInfo(cxt->buf, ".%s)", NameStr(form->oprname));
	}
	ReleaseSysCache(tuple);
}

static void
write_operator(OpExpr *op, DeparseContext *cxt)
{
	bool		spell = shippable_spells_collation(op->opfuncid,
												   op->inputcollid);

	appendStringInfoChar(cxt->buf, '(');
	if (list_length(op->args) == 2)
	{
		write_operand(linitial(op->args), &spell, cxt);
		appendStringInfoChar(cxt->buf, ' ');
	}
	write_operator_name(op->opno, cxt);
	appendStringInfoChar(cxt->buf, ' ');
	write_operand(llast(op->args), &spell, cxt);
	appendStringInfoChar(cxt->buf, ')');
}

static void
write_distinct(DistinctExpr *op, DeparseContext *cxt)
{
	appendStringInfoChar(cxt->buf, '(');
	write_expr(linitial(op->args), cxt);
	appendStringInfoString(cxt->buf, " IS DISTINCT FROM ");
	write_expr(lsecond(op->args), cxt);
	appendStringInfoChar(cxt->buf, ')');
}

static void
write_array_operator(ScalarArrayOpExpr *op, DeparseContext *cxt)
{
	bool		spell = shippable_spells_collation(op->opfuncid,
												   op->inputcollid);

	appendStringInfoChar(cxt->buf, '(');
	write_operand(linitial(op->args), &spell, cxt);
	appendStringInfoChar(cxt->buf, ' ');
	write_operator_name(op->opno, cxt);
	appendStringInfoString(cxt->buf, op->useOr ? " ANY (" : " ALL (");
	write_operand(lsecond(op->args), &spell, cxt);
	appendStringInfoString(cxt->buf, "))");
}

static void
write_bool(BoolExpr *expr, DeparseContext *cxt)
{
	const char *separator = (expr->boolop == AND_EXPR) ? " AND " : " OR ";
	ListCell   *lc;

	appendStringInfoString(cxt->buf, expr->boolop == NOT_EXPR ? "(NOT " : "(");
	foreach(lc, expr->args)
	{
		if (foreach_current_index(lc) > 0)
			appendStringInfoString(cxt->buf, separator);
		write_expr((Node *) lfirst(lc), cxt);
	}
	appendStringInfoChar(cxt->buf, ')');
}

/* A test written behind its argument. */
static void
write_test(Expr *arg, const char *test, DeparseContext *cxt)
{
	appendStringInfoChar(cxt->buf, '(');
	write_expr((Node *) arg, cxt);
	appendStringInfo(cxt->buf, " %s)", test);
}

static void
write_null_test(NullTest *test, DeparseContext *cxt)
{
	write_test(test->arg,
			   test->nulltesttype == IS_NULL ? "IS NULL" : "IS NOT NULL", cxt);
}

static void
write_boolean_test(BooleanTest *test, DeparseContext *cxt)
{
	const char *name = NULL;

	switch (test->booltesttype)
	{
		case IS_TRUE:
			name = "IS TRUE";
			break;
		case IS_NOT_TRUE:
			name = "IS NOT TRUE";
			break;
		case IS_FALSE:
			name = "IS FALSE";
			break;
		case IS_NOT_FALSE:
			name = "IS NOT FALSE";
			break;
		case IS_UNKNOWN:
			name = "IS UNKNOWN";
			break;
		case IS_NOT_UNKNOWN:
			name = "IS NOT UNKNOWN";
			break;
	}
	if (name == NULL)
		elog(ERROR, "unrecognized boolean test: %d", (int) test->booltesttype);
	write_test(test->arg, name, cxt);
}

/*
 * CASE x WHEN v is held as CASE WHEN x = v, with a CaseTestExpr in the place
 * of x.  It is written in that form, x repeated: what is sent is immutable,
 * and the planner may have changed the comparison so that no v is left.
 */
static void
write_case(CaseExpr *expr, DeparseContext *cxt)
{
	CaseFrame	frame = {(Node *) expr->arg, cxt->case_frame};
	ListCell   *lc;

	appendStringInfoString(cxt->buf, "CASE");
	foreach(lc, expr->args)
	{
		CaseWhen   *when = lfirst_node(CaseWhen, lc);

		appendStringInfoString(cxt->buf, " WHEN ");
		if (expr->arg != NULL)
			cxt->case_frame = &frame;
		write_expr((Node *) when->expr, cxt);
		cxt->case_frame = frame.outer;
		appendStringInfoString(cxt->buf, " THEN ");
		write_expr((Node *) when->result, cxt);
	}
	appendStringInfoString(cxt->buf, " ELSE ");
	write_expr((Node *) expr->defresult, cxt);
	appendStringInfoString(cxt->buf, " END");
}

/* x stands outside its own CASE, so it is written in the frame around that. */
static void
write_case_test(DeparseContext *cxt)
{
	CaseFrame  *frame = cxt->case_frame;

	if (frame == NULL)
		elog(ERROR, "CASE value outside of CASE");
	cxt->case_frame = frame->outer;
	write_expr(frame->arg, cxt);
	cxt->case_frame = frame;
}

/* Array subscripts and slices; the bounds of a slice may be missing. */
static void
write_subscript(SubscriptingRef *ref, DeparseContext *cxt)
{
	ListCell   *upper;
	ListCell   *lower = list_head(ref->reflowerindexpr);

	appendStringInfoChar(cxt->buf, '(');
	write_expr((Node *) ref->refexpr, cxt);
	appendStringInfoChar(cxt->buf, ')');
	foreach(upper, ref->refupperindexpr)
	{
		appendStringInfoChar(cxt->buf, '[');
		if (lower != NULL)
		{
			if (lfirst(lower) != NULL)
				write_expr(lfirst(lower), cxt);
			appendStringInfoChar(cxt->buf, ':');
			lower = lnext(ref->reflowerindexpr, lower);
		}
		if (lfirst(upper) != NULL)
			write_expr(lfirst(upper), cxt);
		appendStringInfoChar(cxt->buf, ']');
	}
}

/* A name, a parenthesis, the elements; an empty array needs its type. */
static void
write_array(ArrayExpr *array, DeparseContext *cxt)
{
	appendStringInfoString(cxt->buf, "ARRAY[");
	write_list(array->elements, false, cxt);
	appendStringInfoChar(cxt->buf, ']');
	if (array->elements == NIL)
		appendStringInfo(cxt->buf, "::%s", type_name(array->array_typeid, -1));
}

static void
write_call(const char *name, List *args, DeparseContext *cxt)
{
	appendStringInfo(cxt->buf, "%s(", name);
	write_list(args, false, cxt);
	appendStringInfoChar(cxt->buf, ')');
}

/* The kinds here are those of shippable.c. */
static void
write_expr(Node *node, DeparseContext *cxt)
{
	check_stack_depth();
	switch (nodeTag(node))
	{
		case T_Var:
			write_var((Var *) node, cxt);
			break;
		case T_Const:
			write_const((Const *) node, cxt);
			break;
		case T_Param:
			leave_gap(node, cxt);
			break;
		case T_FuncExpr:
			write_function((FuncExpr *) node, cxt);
			break;
		case T_OpExpr:
			write_operator((OpExpr *) node, cxt);
			break;
		case T_DistinctExpr:
			write_distinct((DistinctExpr *) node, cxt);
			break;
		case T_NullIfExpr:
			write_call("NULLIF", ((NullIfExpr *) node)->args, cxt);
			break;
		case T_ScalarArrayOpExpr:
			write_array_operator((ScalarArrayOpExpr *) node, cxt);
			break;
		case T_RelabelType:
			write_relabel((RelabelType *) node, cxt);
			break;
		case T_ArrayCoerceExpr:
			write_array_coercion((ArrayCoerceExpr *) node, cxt);
			break;
		case T_SubscriptingRef:
			write_subscript((SubscriptingRef *) node, cxt);
			break;
		case T_BoolExpr:
			write_bool((BoolExpr *) node, cxt);
			break;
		case T_NullTest:
			write_null_test((NullTest *) node, cxt);
			break;
		case T_BooleanTest:
			write_boolean_test((BooleanTest *) node, cxt);
			break;
		case T_CaseExpr:
			write_case((CaseExpr *) node, cxt);
			break;
		case T_CaseTestExpr:
			write_case_test(cxt);
			break;
		case T_CoalesceExpr:
			write_call("COALESCE", ((CoalesceExpr *) node)->args, cxt);
			break;
		case T_ArrayExpr:
			write_array((ArrayExpr *) node, cxt);
			break;
		default:
			elog(ERROR, "unsupported expression type for deparse: %d",
				 (int) nodeTag(node));
	}
}

DeparsedQuals
deparse_quals(PlannerInfo *root, RelOptInfo *rel, List *quals)
{
	DeparsedQuals result = {NIL, NIL};
	DeparseContext cxt;
	StringInfoData buf;
	ListCell   *lc;
	int			nestlevel;

	if (quals == NIL)
		return result;

	initStringInfo(&buf);
	cxt.root = root;
	cxt.rel = rel;
	cxt.buf = &buf;
	cxt.quals = &result;
	cxt.case_frame = NULL;

	nestlevel = deparse_set_output_settings();
	foreach(lc, quals)
	{
		if (foreach_current_index(lc) > 0)
			appendStringInfoString(&buf, " AND ");
		write_expr((Node *) lfirst(lc), &cxt);
	}
	deparse_reset_output_settings(nestlevel);

	result.fragments = lappend(result.fragments, makeString(buf.data));
	return result;
}

/* ---- settings ---- */

/*
 * SAVE undoes the setting at the end of the nest level, by error too, and is
 * allowed in parallel workers.
 */
static void
set_setting(const char *name, const char *value)
{
	(void) set_config_option(name, value, PGC_USERSET, PGC_S_SESSION,
							 GUC_ACTION_SAVE, true, 0, false);
}

int
deparse_set_output_settings(void)
{
	int			nestlevel = NewGUCNestLevel();

	set_setting("datestyle", "ISO");
	set_setting("intervalstyle", "postgres");
	set_setting("extra_float_digits", "3");
	set_setting("search_path", "pg_catalog");
	return nestlevel;
}

void
deparse_reset_output_settings(int nestlevel)
{
	AtEOXact_GUC(true, nestlevel);
}
