/*-------------------------------------------------------------------------
 *
 * remote_table.c
 *	  What the remote server says of a relation: kind, size, columns.
 *
 * Two questions are asked, and their answers must not be confused:
 *
 * - describe: in the scan's transaction, after lock and snapshot.  Its block
 *	 count is what the scan divides, its column types are what the values are
 *	 decoded by.  Every row that the snapshot sees lies below that count.
 * - size: at plan time, in a transaction of its own.  For costing only.
 *
 * A size is never taken from pg_class.relpages (0 or -1 when never analyzed)
 * nor from the local block size.  This file writes SQL and reads results; it
 * does not execute anything.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_class.h"
#include "deparse.h"
#include "remote_table.h"
#include "utils/builtins.h"

/* Chunked reads need Tid Range Scans. */
#define FIRST_VERSION_WITH_TID_RANGE_SCAN	140000

/*
 * (0, 'a.b'::regclass, false), (1, 'c.d'::regclass, true); the last tells whether
 * it is meant without its children.  `with_leaves`: those whose leaves are wanted.
 */
void
remote_table_append_list(StringInfo buf, List *tables, bool with_leaves)
{
	const char *separator = "";
	ListCell   *lc;
	int			i = 0;

	foreach(lc, tables)
	{
		RemoteTable *table = lfirst(lc);
		int			index = i++;

		if (with_leaves && !table->list_leaves)
			continue;
		appendStringInfo(buf, "%s(%d, ", separator, index);
		separator = ", ";
		deparse_string_literal(buf, table->name);
		appendStringInfo(buf, "::regclass, %s)",
						 table->only || table->shallow ? "true" : "false");
	}
}

/*
 * The expressions that describe pg_class row c and pg_am row am; shared by both
 * questions.  The size of a parent is that of all its children, which satisfy the
 * condition: alone it would be 0, or its own blocks only.
 */
static void
append_class_columns(StringInfo buf, const char *children)
{
	appendStringInfo(buf,
					 "c.relkind, "
					 "coalesce(am.amname = 'heap', c.relam = 0 AND c.relkind IN ('r', 'm')), "
					 "EXISTS (SELECT 1 FROM pg_inherits WHERE inhparent = c.oid), "
					 "(WITH RECURSIVE t AS (SELECT c.oid UNION "
					 "SELECT i.inhrelid FROM t JOIN pg_inherits i ON i.inhparent = t.oid WHERE %s) "
					 "SELECT coalesce(sum(pg_relation_size(k.oid)), 0)::bigint "
					 "/ current_setting('block_size')::bigint "
					 "FROM t JOIN pg_class k ON k.oid = t.oid WHERE k.relkind IN ('r', 'm')), "
					 "c.reltuples", children);
}

/* Is a child of pg_class row c a partitioned table too? */
#define HAS_SUBPARENTS \
	"EXISTS (SELECT 1 FROM pg_inherits i JOIN pg_class k ON k.oid = i.inhrelid " \
	"WHERE i.inhparent = c.oid AND k.relkind = 'p')"

/*
 * One row a table; its position in `tables` is among the columns.
 */
void
remote_table_describe_sql(StringInfo buf, List *tables)
{
	appendStringInfoString(buf, "SELECT ");
	append_class_columns(buf, "NOT v.alone");
	appendStringInfoString(buf,
						   ", c.oid, coalesce(pg_relation_filenode(c.oid), 0), "
						   "v.i, " HAS_SUBPARENTS ", "
						   "c.relfilenode IN (0, coalesce(pg_relation_filenode(c.oid), 0)) "
						   "AS unchanged FROM (VALUES ");
	remote_table_append_list(buf, tables, false);
	appendStringInfoString(buf,
						   ") v(i, oid, alone) JOIN pg_class c ON c.oid = v.oid "
						   "LEFT JOIN pg_am am ON am.oid = c.relam ORDER BY v.i");
}

/*
 * One row a column of each table.
 */
void
remote_table_columns_sql(StringInfo buf, List *tables)
{
	appendStringInfoString(buf,
						   "SELECT v.i, a.attname, a.atttypid, a.atttypmod, "
						   "current_setting('server_encoding') = 'SQL_ASCII', "
						   "tn.nspname = 'pg_catalog', "
						   "format_type(a.atttypid, a.atttypmod), "
						   /* type modifier -1: bpchar, where NULL says char(1) */
						   "CASE WHEN t.typtype = 'd' THEN (WITH RECURSIVE b AS ("
						   "SELECT t.typbasetype AS base UNION ALL "
						   "SELECT d.typbasetype FROM b JOIN pg_type d ON d.oid = b.base "
						   "WHERE d.typtype = 'd') SELECT format_type(b.base, -1) "
						   "FROM b JOIN pg_type e ON e.oid = b.base WHERE e.typtype <> 'd') END, "
						   "CASE WHEN 'money'::regtype IN (t.oid, t.typelem, t.typbasetype) "
						   "OR t.typbasetype = 'money[]'::regtype "
						   "THEN '" REMOTE_MONEY_SAMPLE "'::numeric::money::text END, "
						   "quote_ident(fn.nspname) || '.' || quote_ident(p.proname) "
						   "AS output_function FROM (VALUES ");
	remote_table_append_list(buf, tables, false);
	appendStringInfoString(buf,
						   ") v(i, oid) JOIN pg_attribute a ON a.attrelid = v.oid "
						   "JOIN pg_type t ON t.oid = a.atttypid "
						   "JOIN pg_namespace tn ON tn.oid = t.typnamespace "
						   "JOIN pg_proc p ON p.oid = t.typoutput "
						   "JOIN pg_namespace fn ON fn.oid = p.pronamespace "
						   "WHERE a.attnum > 0 AND NOT a.attisdropped "
						   "ORDER BY v.i, a.attnum");
}

static Oid
oid_value(PGresult *result, int row, int column)
{
	return (Oid) strtoul(PQgetvalue(result, row, column), NULL, 10);
}

static bool
bool_value(PGresult *result, int row, int column)
{
	return PQgetvalue(result, row, column)[0] == 't';
}

/* Fill one table's columns from the rows that carry its index. */
static void
parse_columns(RemoteTable *table, int index, PGresult *result)
{
	int			ntuples = PQntuples(result);
	int			row;

	table->columns = palloc(sizeof(RemoteColumn) * Max(ntuples, 1));
	table->ncolumns = 0;
	for (row = 0; row < ntuples; row++)
	{
		RemoteColumn *column = &table->columns[table->ncolumns];

		if (atoi(PQgetvalue(result, row, 0)) != index)
			continue;
		column->name = pstrdup(PQgetvalue(result, row, 1));
		column->type = oid_value(result, row, 2);
		column->typmod = atoi(PQgetvalue(result, row, 3));
		column->counts_bytes = bool_value(result, row, 4);
		column->builtin = bool_value(result, row, 5);
		column->type_name = pstrdup(PQgetvalue(result, row, 6));
		column->base_type = NULL;
		if (!PQgetisnull(result, row, 7))
			column->base_type = pstrdup(PQgetvalue(result, row, 7));
		column->money_sample = NULL;
		if (!PQgetisnull(result, row, 8))
			column->money_sample = pstrdup(PQgetvalue(result, row, 8));
		column->output_function = pstrdup(PQgetvalue(result, row, 9));
		table->ncolumns++;
	}
}

/*
 * Take the answers to both questions into `tables` (allocated in the current
 * memory context).  found stays false for a table that was created after the
 * snapshot (no row) or whose file is not the one that the snapshot's catalog
 * names: it was rewritten in between.  `leaves` is NULL for servers that cannot
 * be asked for them.
 */
void
remote_table_parse(List *tables, PGresult *described, PGresult *columns,
				   PGresult *leaves)
{
	int			ntuples = PQntuples(described);
	int			row;

	for (row = 0; row < ntuples; row++)
	{
		int			index = atoi(PQgetvalue(described, row, 7));
		RemoteTable *table = list_nth(tables, index);

		table->kind = PQgetvalue(described, row, 0)[0];
		table->is_heap = bool_value(described, row, 1);
		table->has_children = bool_value(described, row, 2) && !table->only;
		table->nblocks = strtoll(PQgetvalue(described, row, 3), NULL, 10);
		table->oid = oid_value(described, row, 5);
		table->filenode = oid_value(described, row, 6);
		table->has_subparents = bool_value(described, row, 8);
		table->found = bool_value(described, row, 9);
		parse_columns(table, index, columns);
	}
	if (leaves != NULL)
		remote_leaves_parse(tables, leaves);
}

/*
 * Why a relation of this kind cannot be read in ranges of blocks; NULL if it
 * can.  A parent can, as far as this goes: its leaves decide.
 */
const char *
remote_table_kind_reason(char kind, bool is_heap, bool has_children,
						 int server_version)
{
	if (server_version < FIRST_VERSION_WITH_TID_RANGE_SCAN)
		return "remote server is older than 14";
	switch (kind)
	{
		case RELKIND_RELATION:
		case RELKIND_MATVIEW:
			break;
		case RELKIND_VIEW:
			return "remote relation is a view";
		case RELKIND_FOREIGN_TABLE:
			return "remote relation is a foreign table";
		case RELKIND_PARTITIONED_TABLE:
			return NULL;
		case RELKIND_SEQUENCE:
			return "remote relation is a sequence";
		default:
			return "remote relation is not a table";
	}
	if (!is_heap && !has_children)
		return "remote table is not stored as a heap";
	return NULL;
}

/*
 * Why `table` must be read by one statement; NULL if it can be read in chunks.
 */
const char *
remote_table_whole_reason(const RemoteTable *table, int server_version)
{
	const char *reason = remote_table_kind_reason(table->kind, table->is_heap,
												  table->has_children,
												  server_version);

	if (reason == NULL && table->lock_refused &&
		table->kind != RELKIND_MATVIEW)
		reason = "remote user may not read the whole remote table";
	if (reason == NULL)
		reason = remote_leaves_whole_reason(table);
	return reason;
}

/*
 * Is the table locked, and are its leaves listed, as they must be to be read?  Partitions of a table that is
 * locked without them cannot leave it, which needs its lock; those of a partition
 * could, and so could inheriting tables.  A statement that reads by the table's name
 * locks what it reads, and is checked afterwards (shallow).
 */
bool
remote_table_serves(const RemoteTable *table, bool shallow, bool list_leaves)
{
	if (!table->found)
		return false;
	if (!remote_leaves_is_parent(table))
		return true;
	if (list_leaves && !table->list_leaves)
		return false;
	if (!table->shallow)
		return true;
	return shallow && table->kind == RELKIND_PARTITIONED_TABLE &&
		!table->has_subparents;
}

/* The column of that name, NULL if there is none. */
RemoteColumn *
remote_table_column(RemoteTable *table, const char *name)
{
	int			i;

	for (i = 0; i < table->ncolumns; i++)
	{
		if (strcmp(table->columns[i].name, name) == 0)
			return &table->columns[i];
	}
	return NULL;
}

/* Is this a relation of which only the remote's planner knows the size? */
bool
remote_table_has_no_blocks(const RemoteSize *size)
{
	return size->kind == RELKIND_VIEW || size->kind == RELKIND_FOREIGN_TABLE;
}

/*
 * The plan-time question, for any number of qualified names at once.  A name
 * that means nothing on the remote gives no row: planning does not fail.
 */
void
remote_table_size_sql(StringInfo buf, List *names)
{
	ListCell   *lc;
	int			i = 0;

	appendStringInfoString(buf, "SELECT ");
	append_class_columns(buf, "true");
	appendStringInfoString(buf, ", v.i, c.relpages, tree.tuples, tree.pages, "
						   "tree.toast_bytes / current_setting('block_size')::bigint, "
						   "tree.own_bytes / current_setting('block_size')::bigint, "
						   "tree.own_toast_bytes / current_setting('block_size')::bigint, "
						   "tree.leaves, c.relkind = 'p' AND NOT " HAS_SUBPARENTS ", "
						   "(SELECT sum(s.avg_width) FROM pg_stats s "
						   "WHERE s.schemaname = n.nspname AND s.tablename = c.relname "
						   "AND s.inherited = (c.relkind = 'p')), "
	/* of a parent of the old kind, children are not part of the index */
						   "(SELECT string_agg(a.attname, E'\\n') FROM pg_index x "
						   "JOIN pg_attribute a ON a.attrelid = x.indrelid AND a.attnum = x.indkey[0] "
						   "WHERE x.indrelid = c.oid AND x.indisunique AND x.indisvalid "
						   "AND x.indnatts = 1 AND x.indkey[0] > 0 AND x.indpred IS NULL "
						   "AND (c.relkind <> 'r' OR NOT EXISTS (SELECT 1 FROM pg_inherits WHERE inhparent = c.oid))) "
						   "FROM (VALUES ");
	foreach(lc, names)
	{
		appendStringInfo(buf, "%s(%d, ", i > 0 ? ", " : "", i);
		deparse_string_literal(buf, (char *) lfirst(lc));
		appendStringInfoChar(buf, ')');
		i++;
	}
	appendStringInfoString(buf,
						   ") v(i, name) JOIN pg_class c ON c.oid = to_regclass(v.name) "
						   "JOIN pg_namespace n ON n.oid = c.relnamespace "
						   "LEFT JOIN pg_am am ON am.oid = c.relam, LATERAL ("
						   "WITH RECURSIVE t AS (SELECT c.oid UNION "
						   "SELECT i.inhrelid FROM t JOIN pg_inherits i ON i.inhparent = t.oid) "
						   "SELECT sum(greatest(k.reltuples, 0)) AS tuples, "
						   "sum(greatest(k.relpages, 0)) AS pages, "
						   "coalesce(sum(pg_relation_size(nullif(k.reltoastrelid, 0))), 0) AS toast_bytes, "
						   "coalesce(sum(pg_relation_size(k.oid)) FILTER (WHERE k.oid = c.oid), 0) AS own_bytes, "
						   "coalesce(sum(pg_relation_size(nullif(k.reltoastrelid, 0))) "
						   "FILTER (WHERE k.oid = c.oid), 0) AS own_toast_bytes "
						   ", count(*) AS leaves FROM t JOIN pg_class k ON k.oid = t.oid "
						   "WHERE k.relkind IN ('r', 'm')) tree");
}

/* Read one row of the answer to it; returns the position of its name. */
int
remote_table_parse_size(PGresult *result, int row, RemoteSize *size)
{
	size->known = true;
	size->kind = PQgetvalue(result, row, 0)[0];
	size->is_heap = bool_value(result, row, 1);
	size->has_children = bool_value(result, row, 2);
	size->pages = strtod(PQgetvalue(result, row, 3), NULL);
	size->tuples = strtod(PQgetvalue(result, row, 4), NULL);
	size->tuples_pages = strtod(PQgetvalue(result, row, 6), NULL);
	size->own_tuples = size->tuples;
	size->own_tuples_pages = size->tuples_pages;
	size->toast_pages = strtod(PQgetvalue(result, row, 9), NULL);
	size->own_pages = strtod(PQgetvalue(result, row, 10), NULL);
	size->own_toast_pages = strtod(PQgetvalue(result, row, 11), NULL);
	size->leaves = strtod(PQgetvalue(result, row, 12), NULL);
	size->flat = bool_value(result, row, 13);

	/* A parent's own figures say nothing of its children's rows. */
	if (size->has_children)
	{
		size->tuples = strtod(PQgetvalue(result, row, 7), NULL);
		size->tuples_pages = strtod(PQgetvalue(result, row, 8), NULL);
	}
	size->width = strtod(PQgetvalue(result, row, 14), NULL);
	if (!PQgetisnull(result, row, 15))
		size->unique_columns = pstrdup(PQgetvalue(result, row, 15));
	return atoi(PQgetvalue(result, row, 5));
}

/* The size of the relation without its children. */
void
remote_table_only_size(RemoteSize *size)
{
	size->has_children = false;
	size->flat = false;
	size->leaves = 1;
	size->pages = size->own_pages;
	size->toast_pages = size->own_toast_pages;
	size->tuples = size->own_tuples;
	size->tuples_pages = size->own_tuples_pages;
}
