/*-------------------------------------------------------------------------
 *
 * deparse.h
 *	  Writes SQL text for the remote server.
 *
 *-------------------------------------------------------------------------
 */
#ifndef TIDRANGE_DEPARSE_H
#define TIDRANGE_DEPARSE_H

#include "lib/stringinfo.h"
#include "nodes/pathnodes.h"

/*
 * A WHERE clause whose parameters are not known yet.  COPY takes no bind
 * parameters, so the text is kept in pieces and the values are written between
 * them as typed literals when the scan (re)starts:
 *
 *	 fragments[0] params[0] fragments[1] params[1] ... fragments[n]
 *
 * Both are lists of nodes that survive copyObject and nodeToString:
 * fragments are String nodes, params are Expr nodes.
 */
typedef struct DeparsedQuals
{
	List	   *fragments;		/* NIL if there are no quals */
	List	   *params;			/* one shorter than fragments */
} DeparsedQuals;

/* schema.table, quoted where needed, as the remote server knows it. */
extern void deparse_relation(StringInfo buf, const char *schema_name,
							 const char *table_name);

/* The same for a foreign table, by its options; palloc'd. */
extern char *deparse_foreign_table(Oid relid);

/* One name, quoted where a server of any version needs it. */
extern void deparse_identifier(StringInfo buf, const char *name);

/* A column of the foreign table as the remote server knows it, or ctid. */
extern void deparse_column(StringInfo buf, Oid relid, AttrNumber attnum);

/* A string constant, right whatever standard_conforming_strings says. */
extern void deparse_string_literal(StringInfo buf, const char *value);

/*
 * The text of `quals` (bare clauses, all shippable), ANDed, without the word
 * WHERE.  More clauses may be ANDed to it: each operand stands for itself.
 */
extern DeparsedQuals deparse_quals(PlannerInfo *root, RelOptInfo *rel,
								   List *quals);

/* Joins fragments and values: see DeparsedQuals.  Each value is the text of
 * the parameter in the type's output format, NULL for SQL NULL. */
extern void deparse_fill_params(StringInfo buf, List *fragments, List *params,
								const char *const *values);

/* As deparse_fill_params, with $1, $2 ... in place of the values: EXPLAIN. */
extern void deparse_show_params(StringInfo buf, List *fragments, List *params);

/* As deparse_fill_params, with values that the remote's planner cannot see. */
extern void deparse_hide_params(StringInfo buf, List *fragments, List *params);

/*
 * Local settings under which output functions write what the pinned remote
 * session reads back alike (ISO dates, full float digits, pg_catalog path).
 * Returns a GUC nest level for deparse_reset_output_settings.
 */
extern int	deparse_set_output_settings(void);
extern void deparse_reset_output_settings(int nestlevel);

#endif							/* TIDRANGE_DEPARSE_H */
