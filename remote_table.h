/*-------------------------------------------------------------------------
 *
 * remote_table.h
 *	  What the remote server says of a relation.
 *
 *-------------------------------------------------------------------------
 */
#ifndef TIDRANGE_REMOTE_TABLE_H
#define TIDRANGE_REMOTE_TABLE_H

#include "lib/stringinfo.h"
#include "libpq-fe.h"
#include "nodes/pg_list.h"

/* A column of a remote relation, and how the remote writes its values. */
typedef struct RemoteColumn
{
	char	   *name;
	Oid			type;			/* OID on the remote */
	int32		typmod;
	bool		counts_bytes;	/* lengths are in bytes: SQL_ASCII */
	bool		builtin;		/* type lives in the remote's pg_catalog */
	char	   *type_name;		/* as format_type writes it */
	char	   *base_type;		/* of a domain; NULL: it is none */
	char	   *output_function;	/* qualified and quoted */
	char	   *money_sample;	/* of a type made of money: how the remote
								 * writes REMOTE_MONEY_SAMPLE; else NULL */
} RemoteColumn;

/* An amount that shows how a locale writes money. */
#define REMOTE_MONEY_SAMPLE	"-1234567.89"

/* A relation with rows of its own: a table, a partition, an inheriting table. */
typedef struct RemoteLeaf
{
	char	   *name;			/* qualified and quoted, for SQL */
	Oid			oid;			/* on the remote */
	Oid			filenode;
	bool		whole;			/* cannot be read in ranges of blocks */
	bool		only;			/* its name must not stand for its children */
	bool		lockable;		/* LOCK TABLE is possible on it */
	bool		lock_only;		/* without its children */
	int64		nblocks;
	int64		toast_blocks;	/* of its TOAST table */
	double		density;		/* rows of a block; 0: not known */
} RemoteLeaf;

/*
 * A remote relation as measured under the snapshot.  Lives as long as the
 * transaction's snapshot.
 */
typedef struct RemoteTable
{
	Oid			relid;			/* the local foreign table */
	char	   *name;			/* qualified and quoted, for SQL */
	bool		only;			/* without its children, whatever follows */
	bool		shallow;		/* its children are not locked */
	bool		list_leaves;	/* they are asked for, which takes time */
	bool		lock_refused;	/* LOCK TABLE is not possible on it */
	bool		found;			/* the rest is valid */
	Oid			oid;			/* on the remote */
	char		kind;			/* pg_class.relkind */
	bool		is_heap;
	bool		has_children;	/* partitions or inheriting tables */
	bool		has_subparents; /* and some of these have some */
	Oid			filenode;
	int64		nblocks;		/* of all leaves */
	int			ncolumns;
	RemoteColumn *columns;
	/* if list_leaves */
	int			nleaves;		/* itself, or those that are not empty */
	RemoteLeaf *leaves;			/* in the order in which to read them */
	bool		all_heaps;		/* the leaves are */
	bool		has_lost_leaf;	/* one was not locked with the table */
	bool		has_gone_leaf;	/* one does not exist any more */
	char	   *indirect_reason;	/* why leaves must not be read by name */
} RemoteTable;

/* What is known for planning: an estimate, perhaps minutes old. */
typedef struct RemoteSize
{
	bool		known;			/* false: the remote did not answer */
	char		kind;
	bool		is_heap;
	bool		has_children;
	double		pages;			/* with children */
	double		toast_pages;
	double		tuples;			/* when last analyzed; -1: never */
	double		tuples_pages;	/* pages when last analyzed */
	double		own_pages;		/* without children */
	double		own_toast_pages;
	double		own_tuples;
	double		own_tuples_pages;
	double		leaves;			/* relations that have rows of their own */
	bool		flat;			/* partitioned, and no partition is */
	double		width;			/* of a row's columns together; 0: unknown */
	char	   *unique_columns; /* one name a line; NULL: none */
	bool		planned;		/* what has no blocks: the remote's planner ... */
	double		startup_cost;	/* ... expects this */
	double		total_cost;
	int			server_version;
	bool		near;			/* on this machine, and quick to answer */
} RemoteSize;

extern void remote_table_describe_sql(StringInfo buf, List *tables);
extern void remote_table_columns_sql(StringInfo buf, List *tables);
extern void remote_table_append_list(StringInfo buf, List *tables,
									 bool with_leaves);
extern void remote_table_parse(List *tables, PGresult *described,
							   PGresult *columns, PGresult *leaves);
extern const char *remote_table_whole_reason(const RemoteTable *table,
											 int server_version);
extern RemoteColumn *remote_table_column(RemoteTable *table,
										 const char *name);
extern const char *remote_table_kind_reason(char kind, bool is_heap,
											bool has_children,
											int server_version);
extern bool remote_table_has_no_blocks(const RemoteSize *size);
extern void remote_table_size_sql(StringInfo buf, List *names);
extern int	remote_table_parse_size(PGresult *result, int row,
									RemoteSize *size);
extern void remote_table_only_size(RemoteSize *size);
extern bool remote_table_serves(const RemoteTable *table, bool shallow,
								bool list_leaves);

/* remote_leaves.c */
extern void remote_leaves_sql(StringInfo buf, List *tables);
extern void remote_leaves_parse(List *tables, PGresult *result);
extern bool remote_leaves_is_parent(const RemoteTable *table);
extern bool remote_leaves_direct(const RemoteTable *table);
extern bool remote_leaves_lost(const RemoteTable *table, bool by_leaf);
extern bool remote_leaves_through_parent(const RemoteTable *table);
extern const char *remote_leaves_whole_reason(const RemoteTable *table);

#endif							/* TIDRANGE_REMOTE_TABLE_H */
