/*-------------------------------------------------------------------------
 *
 * analyze.c
 *	  ANALYZE of a foreign table, by a sample that the remote takes.
 *
 * As core does for a local table, a number of blocks is chosen at random, as many
 * as rows are wanted, and rows at random from these: the remote runs
 *
 *	 SELECT ... FROM t TABLESAMPLE SYSTEM (p) WHERE random() < f
 *
 * with f from a first question, how many rows some of the blocks hold.  Where
 * there are no blocks to choose (a view), rows are chosen from all of them.  So no
 * more rows are sent than the statistics need, whatever the table's size.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "analyze.h"
#include "catalog/pg_class.h"
#include "codec.h"
#include "columns.h"
#include "compat.h"
#include "commands/vacuum.h"
#include "connection.h"
#include "miscadmin.h"
#include "option.h"
#include "snapshot.h"
#include "stream.h"
#include "utils/rel.h"
#include "utils/sampling.h"

/* Blocks read to learn how many rows a block holds. */
#define DENSITY_BLOCKS		400

/* Take this transaction's snapshot with the table in it. */
static RemoteTable *
open_table(ConnectionPool *pool, Oid relid)
{
	WaitLimits	limits = {0};
	RemoteError error;
	SnapshotWish wish = {relid, false, true};
	RemoteTable *table = snapshot_find_table(pool, &wish);

	if (table != NULL)
		return table;
	if (connection_control(pool, &limits, &error) == NULL)
		connection_report(ERROR, &error, pool, NULL);
	if (pool->snapshot != NULL)
		return snapshot_add_table(pool->control, &wish);
	snapshot_take(pool, &wish, NIL);
	return snapshot_find_table(pool, &wish);
}

static ConnectionPool *
relation_pool(Relation relation)
{
	return connection_pool(relation->rd_rel->relowner,
						   GetForeignTable(RelationGetRelid(relation))->serverid);
}

/* Can TABLESAMPLE choose blocks of it?  It chooses in each leaf of a parent. */
static bool
has_blocks(const RemoteTable *table)
{
	if (remote_leaves_is_parent(table))
		return table->nleaves > 0 && table->all_heaps;
	return table->is_heap &&
		(table->kind == RELKIND_RELATION || table->kind == RELKIND_MATVIEW);
}

/* count(*) of the relation, or of a sample of its blocks. */
static double
count_rows(ConnectionPool *pool, const char *from)
{
	WaitLimits	limits = {0};
	RemoteError error;
	char	   *sql = psprintf("SELECT count(*) FROM %s", from);
	double		rows;

	if (!connection_exec(pool->control, sql, &limits, &error))
		connection_report(ERROR, &error, pool, sql);
	rows = strtod(PQgetvalue(pool->control->results[0], 0, 0), NULL);
	connection_clear_results(pool->control);
	return rows;
}

/* The table, or so many of its blocks chosen at random. */
static char *
sample_clause(const RemoteTable *table, double blocks)
{
	double		percent = 100.0 * blocks / Max(table->nblocks, 1);
	const char *only = table->only ? "ONLY " : "";

	if (!has_blocks(table) || percent >= 100.0)
		return psprintf("%s%s", only, table->name);
	return psprintf("%s%s TABLESAMPLE SYSTEM (%.8f)", only, table->name,
					percent);
}

/* About how many rows the table has. */
static double
estimate_rows(ConnectionPool *pool, const RemoteTable *table)
{
	double		fraction = 1;
	double		rows;

	if (has_blocks(table) && table->nblocks > DENSITY_BLOCKS)
		fraction = (double) DENSITY_BLOCKS / table->nblocks;
	rows = count_rows(pool, sample_clause(table, DENSITY_BLOCKS)) / fraction;
	return rows;
}

/* All columns that the foreign table has. */
static List *
all_columns(TupleDesc desc)
{
	List	   *attnums = NIL;
	int			i;

	for (i = 0; i < desc->natts; i++)
	{
		if (!TupleDescAttr(desc, i)->attisdropped)
			attnums = lappend_int(attnums, i + 1);
	}
	return attnums;
}

/* A decoder for these columns. */
static Codec *
make_codec(TupleDesc desc, List *attnums, const SelectList *list)
{
	AttrNumber *numbers = palloc(Max(list_length(attnums), 1) *
								 sizeof(AttrNumber));
	ListCell   *lc;
	int			i = 0;

	foreach(lc, attnums)
		numbers[i++] = lfirst_int(lc);
	return codec_create(desc, numbers, list->binary, i);
}

/* A row of the sample, and which one it was in the order of reading. */
typedef struct SampleRow
{
	double		number;
	HeapTuple	tuple;
} SampleRow;

static int
compare_sample_rows(const void *a, const void *b)
{
	double		left = ((const SampleRow *) a)->number;
	double		right = ((const SampleRow *) b)->number;

	return left < right ? -1 : left > right;
}

/*
 * Read the rows of the stream into `rows`, at most `target` of them, each equally
 * likely; returns how many were read.
 */
static double
read_sample(Stream *stream, Codec *codec, TupleDesc desc,
			HeapTuple *rows, int target)
{
	Datum	   *values = palloc0(Max(desc->natts, 1) * sizeof(Datum));
	bool	   *nulls = palloc(Max(desc->natts, 1) * sizeof(bool));
	SampleRow  *sample = palloc(target * sizeof(SampleRow));
	ReservoirStateData reservoir;
	ItemPointerData tid;
	WaitLimits	limits = {0};
	double		seen = 0;
	char	   *row;
	int			length;
	int			i;

	reservoir_init_selection_state(&reservoir, target);
	memset(nulls, true, desc->natts * sizeof(bool));
	while (stream_next(stream, &limits, &row, &length) == STREAM_ROW)
	{
		int			position = (int) seen;

		CHECK_FOR_INTERRUPTS();
		seen += 1;
		if (seen > target)
		{
			/* Each of the rows so far stays with the same probability. */
			double		random = COMPAT_SAMPLER_RANDOM(reservoir.randstate);

			if (random * seen >= target)
				continue;
			position = (int) (random * seen);
			heap_freetuple(sample[position].tuple);
		}
		codec_decode(codec, row, length, values, nulls, &tid);
		sample[position].number = seen;
		sample[position].tuple = heap_form_tuple(desc, values, nulls);
	}

	/* In the order of the table: the statistics tell how well it is sorted. */
	target = (int) Min(seen, target);
	qsort(sample, target, sizeof(SampleRow), compare_sample_rows);
	for (i = 0; i < target; i++)
		rows[i] = sample[i].tuple;
	return seen;
}

/* Run the statement of `request` and sample its rows. */
static double
run_sample(ConnectionPool *pool, const StreamRequest *request, Codec *codec,
		   TupleDesc desc, HeapTuple *rows, int target)
{
	WaitLimits	limits = {0};
	Stream		stream = {0};
	volatile double seen = 0;

	PG_TRY();
	{
		stream_open(&stream, pool->control, request, &limits);
		seen = read_sample(&stream, codec, desc, rows, target);
	}
	PG_CATCH();
	{
		/* The connection must not remember a stream that is gone. */
		stream_abandon(&stream);
		PG_RE_THROW();
	}
	PG_END_TRY();
	return seen;
}

/*
 * AcquireSampleRowsFunc.
 */
static int
acquire_sample_rows(Relation relation, int elevel, HeapTuple *rows,
					int targrows, double *totalrows, double *totaldeadrows)
{
	TupleDesc	desc = RelationGetDescr(relation);
	Oid			relid = RelationGetRelid(relation);
	ConnectionPool *pool = relation_pool(relation);
	RemoteTable *table = open_table(pool, relid);
	List	   *attnums = all_columns(desc);
	double		total = estimate_rows(pool, table);
	double		blocks = Min((double) targrows, (double) table->nblocks);
	double		block_fraction = 1;
	double		row_fraction;
	double		read;
	SelectList	list;
	StreamRequest request = {0};

	if (has_blocks(table) && table->nblocks > 0)
		block_fraction = blocks / table->nblocks;
	row_fraction = Min(1.0, targrows / Max(total * block_fraction, 1));

	columns_choose(&list, relid, desc, attnums, table,
				   pool->snapshot->ticket.server_version);
	request.copy_sql = psprintf("COPY (SELECT %s FROM %s WHERE random() < %.10f) TO STDOUT (FORMAT binary)",
								list.text, sample_clause(table, blocks),
								row_fraction);
	request.relation = table->name;
	request.oid = table->oid;
	read = run_sample(pool, &request, make_codec(desc, attnums, &list), desc,
					  rows, targrows);

	/* What was counted from end to end needs no estimate. */
	if (has_blocks(table) && table->nblocks > DENSITY_BLOCKS)
		*totalrows = read / row_fraction / block_fraction;
	else
		*totalrows = total;
	*totaldeadrows = 0;
	ereport(elevel,
			(errmsg("\"%s\": remote table has %.0f pages, %.0f rows of an estimated %.0f were sampled",
					RelationGetRelationName(relation), (double) table->nblocks,
					Min(read, targrows), *totalrows)));
	return (int) Min(read, targrows);
}

/*
 * AnalyzeForeignTable.
 */
bool
analyze_table(Relation relation, AcquireSampleRowsFunc *func,
			  BlockNumber *totalpages)
{
	RemoteTable *table = open_table(relation_pool(relation),
									RelationGetRelid(relation));

	*func = acquire_sample_rows;
	*totalpages = (BlockNumber) Max(table->nblocks, 1);
	return true;
}
