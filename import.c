/*-------------------------------------------------------------------------
 *
 * import.c
 *	  IMPORT FOREIGN SCHEMA: writes CREATE FOREIGN TABLE commands from the
 *	  remote catalog.
 *
 * Types are written as format_type does under search_path = pg_catalog, that
 * is, qualified: the same type must exist here.  Nothing that the user did not
 * ask for is brought along: defaults only with import_default, partitions only
 * where LIMIT TO names them (their parent has the rows).
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/heap.h"
#include "commands/defrem.h"
#include "compat.h"
#include "connection.h"
#include "deparse.h"
#include "foreign/fdwapi.h"
#include "import.h"
#include "miscadmin.h"
#include "utils/builtins.h"

typedef struct ImportOptions
{
	bool		collate;		/* import_collate, default true */
	bool		defaults;		/* import_default, default false */
	bool		generated;		/* import_generated, default true */
	bool		not_null;		/* import_not_null, default true */
} ImportOptions;

/* Columns of the query, in its order. */
enum
{
	IMPORT_TABLE,
	IMPORT_COLUMN,
	IMPORT_TYPE,
	IMPORT_NOT_NULL,
	IMPORT_DEFAULT,
	IMPORT_GENERATED,
	IMPORT_COLLATION
};

static void
parse_options(ImportForeignSchemaStmt *stmt, ImportOptions *options)
{
	ListCell   *lc;

	options->collate = true;
	options->defaults = false;
	options->generated = true;
	options->not_null = true;
	foreach(lc, stmt->options)
	{
		DefElem    *def = lfirst(lc);

		if (strcmp(def->defname, "import_collate") == 0)
			options->collate = defGetBoolean(def);
		else if (strcmp(def->defname, "import_default") == 0)
			options->defaults = defGetBoolean(def);
		else if (strcmp(def->defname, "import_generated") == 0)
			options->generated = defGetBoolean(def);
		else if (strcmp(def->defname, "import_not_null") == 0)
			options->not_null = defGetBoolean(def);
		else
			ereport(ERROR,
					(errcode(ERRCODE_FDW_INVALID_OPTION_NAME),
					 errmsg("invalid option \"%s\"", def->defname),
					 errhint("Valid options in this context are: import_collate, import_default, import_generated, import_not_null")));
	}
}

/* AND c.relname [NOT] IN (...), for LIMIT TO and EXCEPT */
static void
append_table_filter(StringInfo sql, ImportForeignSchemaStmt *stmt)
{
	ListCell   *lc;
	bool		first = true;

	if (stmt->list_type == FDW_IMPORT_SCHEMA_ALL)
		return;
	appendStringInfoString(sql, " AND c.relname ");
	if (stmt->list_type == FDW_IMPORT_SCHEMA_EXCEPT)
		appendStringInfoString(sql, "NOT ");
	appendStringInfoString(sql, "IN (");
	foreach(lc, stmt->table_list)
	{
		if (!first)
			appendStringInfoString(sql, ", ");
		first = false;
		deparse_string_literal(sql, ((RangeVar *) lfirst(lc))->relname);
	}
	appendStringInfoChar(sql, ')');
}

/* The question, for a remote of that version. */
static void
append_query(StringInfo sql, ImportForeignSchemaStmt *stmt, int version)
{
	appendStringInfo(sql,
					 "SELECT c.relname, a.attname, "
					 "format_type(a.atttypid, a.atttypmod), a.attnotnull, "
					 "pg_get_expr(d.adbin, d.adrelid), %s, "
					 "CASE WHEN a.attcollation <> 0 AND a.attcollation <> 100 "
					 "THEN quote_ident(cn.nspname) || '.' || quote_ident(co.collname) END "
					 "FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
					 "LEFT JOIN pg_attribute a ON a.attrelid = c.oid "
					 "AND a.attnum > 0 AND NOT a.attisdropped "
					 "LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum "
					 "LEFT JOIN pg_collation co ON co.oid = a.attcollation "
					 "LEFT JOIN pg_namespace cn ON cn.oid = co.collnamespace "
					 "WHERE c.relkind IN ('r', 'v', 'f', 'm', 'p') AND n.nspname = ",
					 version >= 120000 ? "a.attgenerated" : "''");
	deparse_string_literal(sql, stmt->remote_schema);
	if (version >= 100000 && stmt->list_type != FDW_IMPORT_SCHEMA_LIMIT_TO)
		appendStringInfoString(sql, " AND NOT c.relispartition");
	append_table_filter(sql, stmt);
	appendStringInfoString(sql, " ORDER BY c.relname, a.attnum");
}

/* Run both queries on the control connection, in or out of a snapshot. */
static Connection *
query_remote(ConnectionPool *pool, ImportForeignSchemaStmt *stmt)
{
	WaitLimits	limits = {0};
	RemoteError error;
	Connection *conn = connection_control(pool, &limits, &error);
	bool		in_snapshot = pool->snapshot != NULL;
	StringInfoData sql;

	if (conn == NULL)
		connection_report(ERROR, &error, pool, NULL);
	if (conn->borrower != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_IN_USE),
				 errmsg("connection to the remote server is in use by another query"),
				 errhint("Close open cursors on its foreign tables first.")));

	initStringInfo(&sql);
	appendStringInfoString(&sql, in_snapshot ? "" :
						   "START TRANSACTION READ ONLY; ");
	appendStringInfoString(&sql, "SET LOCAL search_path = pg_catalog; "
						   "SET LOCAL quote_all_identifiers = off; "
						   "SELECT 1 FROM pg_namespace WHERE nspname = ");
	deparse_string_literal(&sql, stmt->remote_schema);
	appendStringInfoString(&sql, "; ");
	append_query(&sql, stmt, connection_server_version(conn));
	appendStringInfoString(&sql, in_snapshot ? "; " CONNECTION_TO_SAVEPOINT :
						   "; COMMIT TRANSACTION");
	conn->in_transaction = true;
	if (!connection_exec(conn, sql.data, &limits, &error))
		connection_report(ERROR, &error, pool, sql.data);
	conn->in_transaction = in_snapshot;
	return conn;
}

/* One column's definition. */
static void
append_column(StringInfo buf, PGresult *result, int row,
			  const ImportOptions *options)
{
	const char *name = PQgetvalue(result, row, IMPORT_COLUMN);
	bool		generated = PQgetvalue(result, row, IMPORT_GENERATED)[0] != '\0';

	const char *local_name = name;

	/* A view may have a column called ctid, a foreign table may not. */
	if (SystemAttributeByName(name) != NULL)
		local_name = psprintf("%s_", name);
	appendStringInfo(buf, "\n  %s %s OPTIONS (column_name ",
					 quote_identifier(local_name),
					 PQgetvalue(result, row, IMPORT_TYPE));
	deparse_string_literal(buf, name);
	appendStringInfoChar(buf, ')');
	if (options->collate && !PQgetisnull(result, row, IMPORT_COLLATION))
		appendStringInfo(buf, " COLLATE %s",
						 PQgetvalue(result, row, IMPORT_COLLATION));
	if (!PQgetisnull(result, row, IMPORT_DEFAULT))
	{
		const char *expr = PQgetvalue(result, row, IMPORT_DEFAULT);

		if (generated && options->generated)
			appendStringInfo(buf, " GENERATED ALWAYS AS (%s) STORED", expr);
		else if (!generated && options->defaults)
			appendStringInfo(buf, " DEFAULT %s", expr);
	}
	if (options->not_null && PQgetvalue(result, row, IMPORT_NOT_NULL)[0] == 't')
		appendStringInfoString(buf, " NOT NULL");
}

/* The command for the table whose columns begin at *row; moves it on. */
static char *
table_command(ImportForeignSchemaStmt *stmt, PGresult *result, int *row,
			  const ImportOptions *options)
{
	const char *table = PQgetvalue(result, *row, IMPORT_TABLE);
	StringInfoData buf;
	bool		first = true;

	initStringInfo(&buf);
	appendStringInfo(&buf, "CREATE FOREIGN TABLE %s (",
					 quote_identifier(table));
	for (; *row < PQntuples(result); (*row)++)
	{
		if (strcmp(PQgetvalue(result, *row, IMPORT_TABLE), table) != 0)
			break;
		/* A table without columns has one row without a name. */
		if (PQgetisnull(result, *row, IMPORT_COLUMN))
			continue;
		if (!first)
			appendStringInfoChar(&buf, ',');
		first = false;
		append_column(&buf, result, *row, options);
	}
	appendStringInfo(&buf, "\n) SERVER %s\nOPTIONS (schema_name ",
					 quote_identifier(stmt->server_name));
	deparse_string_literal(&buf, stmt->remote_schema);
	appendStringInfoString(&buf, ", table_name ");
	deparse_string_literal(&buf, table);
	appendStringInfoString(&buf, ");");
	return buf.data;
}

/*
 * ImportForeignSchema.
 */
List *
import_schema(ImportForeignSchemaStmt *stmt, Oid serverid)
{
	ConnectionPool *pool = connection_pool(GetUserId(), serverid);
	ImportOptions options;
	Connection *conn;
	PGresult   *schemas = NULL;
	PGresult   *columns = NULL;
	List	   *commands = NIL;
	int			row = 0;
	int			i;

	parse_options(stmt, &options);
	conn = query_remote(pool, stmt);
	for (i = 0; i < conn->nresults; i++)
	{
		if (PQresultStatus(conn->results[i]) != PGRES_TUPLES_OK)
			continue;
		if (schemas == NULL)
			schemas = conn->results[i];
		else
			columns = conn->results[i];
	}
	if (schemas == NULL || columns == NULL || PQntuples(schemas) == 0)
		ereport(ERROR,
				(errcode(ERRCODE_FDW_SCHEMA_NOT_FOUND),
				 errmsg("schema \"%s\" is not present on foreign server \"%s\"",
						stmt->remote_schema, stmt->server_name)));

	while (row < PQntuples(columns))
		commands = lappend(commands,
						   table_command(stmt, columns, &row, &options));
	connection_clear_results(conn);
	return commands;
}
