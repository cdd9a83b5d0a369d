/*-------------------------------------------------------------------------
 *
 * remote_leaves.c
 *	  The relations that hold the rows of a remote table: itself, its
 *	  partitions at any depth, the tables that inherit from it.
 *
 * They are listed in the same round trip that measures the table, under lock
 * and snapshot, so that a leaf which is attached, detached or created later does
 * not change the answer: it is not in the list, or cannot leave.  Where the snapshot
 * is older than the lock, a leaf may have left before: it is in the list then, and
 * was not locked with its parent.
 *
 * Rows that a SELECT on the parent returns need not be those that a SELECT on
 * each leaf returns.  A leaf has row-level security and grants of its own, and so
 * has the parent, which apply where it is named and nowhere else.  Where they
 * would make a difference the leaves are not read by their names
 * (indirect_reason).
 *
 * This file writes SQL and reads results; it does not execute anything.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "catalog/pg_class.h"
#include "remote_table.h"

/* Columns of the answer. */
enum
{
	LEAF_TABLE,
	LEAF_OID,
	LEAF_FILENODE,
	LEAF_KIND,
	LEAF_IS_HEAP,
	LEAF_BLOCKS,
	LEAF_TOAST_BLOCKS,
	LEAF_DENSITY,
	LEAF_IS_LOCKED,
	LEAF_INDIRECT_REASON,
	LEAF_NAME
};

/*
 * One row for each relation with rows of its own, of the tables whose leaves are
 * wanted; for servers of version 14 or later.  What cannot be divided comes first, since it would be
 * too late at the end, then the largest.  A leaf that inherits in several ways is
 * one leaf.  Temporary tables of other sessions are no leaves for anybody else.
 */
void
remote_leaves_sql(StringInfo buf, List *tables)
{
	appendStringInfoString(buf,
						   "SELECT l.i, l.oid, l.filenode, l.relkind, l.is_heap, "
						   "l.bytes / current_setting('block_size')::bigint, "
						   "l.toast_bytes / current_setting('block_size')::bigint, "
						   "l.density, l.is_locked, l.indirect_reason, l.leaf_name FROM ("
						   "SELECT v.i, k.oid, k.relkind, "
						   "coalesce(pg_relation_filenode(k.oid), 0) AS filenode, "
						   "coalesce(am.amname = 'heap', k.relam = 0 AND k.relkind IN ('r', 'm')) AS is_heap, "
						   "CASE WHEN k.relkind IN ('r', 'm') THEN pg_relation_size(k.oid) ELSE 0 END AS bytes, "
						   "coalesce(pg_relation_size(nullif(k.reltoastrelid, 0)), 0) AS toast_bytes, "
						   "CASE WHEN k.reltuples > 0 AND k.relpages > 0 THEN k.reltuples / k.relpages ELSE 0 END AS density, "
						   "locks.relation IS NOT NULL AS is_locked, "
						   "CASE WHEN row_security_active(v.oid::oid) THEN 'row-level security of the parent' "
						   /* its expression there may be another one than in the leaf */
						   "WHEN EXISTS (SELECT 1 FROM pg_attribute a WHERE a.attrelid = v.oid AND a.attgenerated = 'v') "
						   "THEN 'virtual generated column' "
						   "WHEN NOT has_table_privilege(k.oid, 'SELECT') "
						   "OR NOT has_schema_privilege(k.relnamespace, 'USAGE') THEN 'right to read the parent only' "
						   "WHEN row_security_active(k.oid) THEN 'row-level security of a leaf' END AS indirect_reason, "
						   "quote_ident(n.nspname) || '.' || quote_ident(k.relname) AS leaf_name "
						   "FROM (VALUES ");
	remote_table_append_list(buf, tables, true);
	appendStringInfoString(buf,
						   ") v(i, oid, alone) JOIN pg_class c ON c.oid = v.oid, LATERAL ("
						   "WITH RECURSIVE t AS (SELECT v.oid::oid UNION "
						   "SELECT i.inhrelid FROM t JOIN pg_inherits i ON i.inhparent = t.oid "
						   "WHERE NOT v.alone AND NOT i.inhdetachpending) SELECT t.oid FROM t) t "
						   "JOIN pg_class k ON k.oid = t.oid "
						   "JOIN pg_namespace n ON n.oid = k.relnamespace "
						   "LEFT JOIN pg_am am ON am.oid = k.relam "
						   "LEFT JOIN (SELECT DISTINCT l.relation FROM pg_locks l "
						   "WHERE l.pid = pg_backend_pid() AND l.locktype = 'relation' AND l.granted "
						   "AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())) "
						   "locks ON locks.relation = k.oid "
						   "WHERE c.relkind IN ('r', 'm', 'p') AND k.relkind <> 'p' "
						   "AND (k.relpersistence <> 't' OR k.oid = v.oid)) l "
						   "ORDER BY l.i, l.is_heap, l.bytes + l.toast_bytes DESC NULLS LAST, l.oid");
}

/* May rows of the relation be in other relations? */
bool
remote_leaves_is_parent(const RemoteTable *table)
{
	return table->kind == RELKIND_PARTITIONED_TABLE || table->has_children;
}

/* Fill one leaf from a row of the answer. */
static void
parse_leaf(RemoteLeaf *leaf, PGresult *result, int row)
{
	char		kind = PQgetvalue(result, row, LEAF_KIND)[0];

	leaf->name = pstrdup(PQgetvalue(result, row, LEAF_NAME));
	leaf->oid = (Oid) strtoul(PQgetvalue(result, row, LEAF_OID), NULL, 10);
	leaf->filenode = (Oid) strtoul(PQgetvalue(result, row, LEAF_FILENODE),
								   NULL, 10);
	leaf->whole = PQgetvalue(result, row, LEAF_IS_HEAP)[0] != 't';
	leaf->only = true;
	leaf->lock_only = true;
	leaf->lockable = kind != RELKIND_FOREIGN_TABLE;
	leaf->nblocks = strtoll(PQgetvalue(result, row, LEAF_BLOCKS), NULL, 10);
	leaf->toast_blocks = strtoll(PQgetvalue(result, row, LEAF_TOAST_BLOCKS),
								 NULL, 10);
	leaf->density = strtod(PQgetvalue(result, row, LEAF_DENSITY), NULL);
}

/*
 * Take the leaves of one table, whose kind is known.  Heaps without a block are
 * left out: they were measured under the snapshot, so that nothing in them is
 * visible to it.
 */
static void
parse_leaves(RemoteTable *table, int index, PGresult *result)
{
	int			ntuples = PQntuples(result);
	int			row;

	table->leaves = palloc0(sizeof(RemoteLeaf) * Max(ntuples, 1));
	table->nleaves = 0;
	table->all_heaps = true;
	table->indirect_reason = NULL;
	table->has_lost_leaf = false;
	table->has_gone_leaf = false;
	for (row = 0; row < ntuples; row++)
	{
		RemoteLeaf *leaf = &table->leaves[table->nleaves];

		if (atoi(PQgetvalue(result, row, LEAF_TABLE)) != index)
			continue;
		if (PQgetisnull(result, row, LEAF_BLOCKS))
		{
			/* dropped since: the snapshot's catalog still has it */
			table->has_gone_leaf = true;
			continue;
		}
		parse_leaf(leaf, result, row);
		if (table->nleaves == 0)
			table->nblocks = 0;
		table->nblocks += leaf->nblocks;
		if (leaf->whole)
			table->all_heaps = false;
		if (table->indirect_reason == NULL &&
			!PQgetisnull(result, row, LEAF_INDIRECT_REASON))
			table->indirect_reason =
				pstrdup(PQgetvalue(result, row, LEAF_INDIRECT_REASON));
		if (remote_leaves_is_parent(table) && !leaf->whole && leaf->nblocks == 0)
			continue;
		if (PQgetvalue(result, row, LEAF_IS_LOCKED)[0] != 't')
			table->has_lost_leaf = true;
		table->nleaves++;
	}
}

/*
 * Take the answer into `tables`, whose other properties are known, in the current
 * memory context.
 */
void
remote_leaves_parse(List *tables, PGresult *result)
{
	ListCell   *lc;
	int			index = 0;

	foreach(lc, tables)
	{
		RemoteTable *table = lfirst(lc);

		if (table->list_leaves)
			parse_leaves(table, index, result);
		index++;
	}
}

/* Are the leaves read one by one, by their names? */
bool
remote_leaves_direct(const RemoteTable *table)
{
	return remote_leaves_is_parent(table) && table->indirect_reason == NULL;
}

/*
 * Is a leaf missing that the relation had when the snapshot was taken?  One that
 * has only left its parent can be read by its own name.
 */
bool
remote_leaves_lost(const RemoteTable *table, bool by_leaf)
{
	if (!remote_leaves_is_parent(table))
		return false;
	return table->has_gone_leaf ||
		(!by_leaf && !table->lock_refused && table->has_lost_leaf);
}

/* Is the relation read through its name, which stands for its leaves too? */
bool
remote_leaves_through_parent(const RemoteTable *table)
{
	return remote_leaves_is_parent(table) && table->indirect_reason != NULL;
}

/*
 * Why a relation that is a parent cannot be read in ranges of blocks; NULL if
 * it can, or is none.  A range of blocks of the parent is that of each leaf,
 * which must have blocks then.
 */
const char *
remote_leaves_whole_reason(const RemoteTable *table)
{
	if (!remote_leaves_is_parent(table) || !table->list_leaves)
		return NULL;
	if (table->nleaves == 0)
		return "remote relation has no blocks";
	if (table->indirect_reason != NULL && !table->all_heaps)
		return psprintf("%s, and a leaf that is not a heap",
						table->indirect_reason);
	return NULL;
}
