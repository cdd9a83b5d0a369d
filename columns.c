/*-------------------------------------------------------------------------
 *
 * columns.c
 *	  The columns that the remote sends: their text and their formats.
 *
 * Columns match by name, never by position.  The format of each is decided by
 * what the remote catalog says under the scan's lock; before that is known
 * (EXPLAIN without execution) the remote types are assumed to be the local ones.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/sysattr.h"
#include "codec.h"
#include "columns.h"
#include "lib/stringinfo.h"
#include "option.h"
#include "utils/lsyscache.h"

/* The remote column behind a local one; an error if there is none. */
static RemoteColumn *
find_column(Oid relid, Form_pg_attribute attribute, RemoteTable *table)
{
	char	   *name = option_remote_column(relid, attribute->attnum);
	RemoteColumn *column;

	if (table == NULL)
		return codec_assume_remote(attribute, name);
	column = remote_table_column(table, name);
	if (column == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_COLUMN),
				 errmsg("column \"%s\" of remote table %s does not exist",
						name, table->name),
				 errhint("Alter the foreign table, or set the column's option column_name."),
				 errcontext("column \"%s\" of foreign table \"%s\"",
							NameStr(attribute->attname), get_rel_name(relid))));
	return column;
}

/*
 * Write the select list for `attnums` (ctid may be among them) and choose each
 * column's format.  `table` may be NULL: see above.
 */
void
columns_choose(SelectList *list, Oid relid, TupleDesc desc, List *attnums,
			   RemoteTable *table, int server_version)
{
	StringInfoData text;
	StringInfoData text_columns;
	ListCell   *lc;
	int			i = 0;

	initStringInfo(&text);
	initStringInfo(&text_columns);
	list->binary = palloc0(Max(list_length(attnums), 1) * sizeof(bool));
	foreach(lc, attnums)
	{
		AttrNumber	attnum = lfirst_int(lc);
		Form_pg_attribute attribute;
		RemoteColumn *column;
		const char *reason;

		if (i > 0)
			appendStringInfoString(&text, ", ");
		if (attnum == SelfItemPointerAttributeNumber)
		{
			appendStringInfoString(&text, "ctid");
			list->binary[i++] = true;
			continue;
		}
		attribute = TupleDescAttr(desc, attnum - 1);
		column = find_column(relid, attribute, table);
		reason = codec_text_reason(attribute, column, server_version);
		codec_check_money(attribute->atttypid, column);
		list->binary[i++] = reason == NULL;
		codec_append_column(&text, column, reason == NULL);
		if (reason != NULL)
			appendStringInfo(&text_columns, "%s%s (%s)",
							 text_columns.len > 0 ? ", " : "",
							 NameStr(attribute->attname), reason);
	}
	list->text = text.data;
	list->text_columns = text_columns.data;
}

/*
 * Do these columns have the types that the local ones have?  Otherwise an
 * operator's name may mean something else on the remote, or a remote value may
 * only match once it has been converted.
 */
bool
columns_same_types(Oid relid, TupleDesc desc, List *attnums,
				   RemoteTable *table)
{
	ListCell   *lc;

	foreach(lc, attnums)
	{
		AttrNumber	attnum = lfirst_int(lc);
		RemoteColumn *column;

		column = remote_table_column(table,
									 option_remote_column(relid, attnum));
		/* A missing column is for the remote to report. */
		if (column != NULL &&
			!codec_same_type(TupleDescAttr(desc, attnum - 1), column))
			return false;
	}
	return true;
}
