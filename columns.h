/*-------------------------------------------------------------------------
 *
 * columns.h
 *	  The columns that the remote sends: their text and their formats.
 *
 *-------------------------------------------------------------------------
 */
#ifndef TIDRANGE_COLUMNS_H
#define TIDRANGE_COLUMNS_H

#include "access/tupdesc.h"
#include "remote_table.h"

/* A select list and how each of its columns travels. */
typedef struct SelectList
{
	char	   *text;
	bool	   *binary;			/* one a column */
	char	   *text_columns;	/* which travel as text, and why; "": none */
} SelectList;

extern void columns_choose(SelectList *list, Oid relid, TupleDesc desc,
						   List *attnums, RemoteTable *table,
						   int server_version);
extern bool columns_same_types(Oid relid, TupleDesc desc, List *attnums,
							   RemoteTable *table);

#endif							/* TIDRANGE_COLUMNS_H */
