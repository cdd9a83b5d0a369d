/*-------------------------------------------------------------------------
 *
 * size.c
 *	  What the planner asks the remote: sizes, cached for the session, and what
 *	  it thinks of a filter.
 *
 * A freshly imported table that nobody has analyzed must be planned well, so
 * the remote is asked: one query for all foreign tables of the statement on one
 * server, in a transaction of its own or between savepoints, and never in a
 * transaction that is yet to take its snapshot.
 *
 * Planning and EXPLAIN do not fail, and do not wait long, because a remote is
 * away: connecting and answering are given two seconds, a failure is remembered
 * for thirty, and without an answer the last known or default figures serve.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "access/parallel.h"
#include "catalog/pg_class.h"
#include "compat.h"
#include "connection.h"
#include "deparse.h"
#include "miscadmin.h"
#include "option.h"
#include "portability/instr_time.h"
#include "size.h"
#include "utils/hsearch.h"
#include "utils/memutils.h"

/* An answer is used this long, and a missing one not asked for again. */
#define FRESH_MS		60000
#define ABSENT_MS		30000

/* Blocks to look at in a table that was never analyzed. */
#define SAMPLE_BLOCKS	5

/* Nothing slow is in between if the best of so many answers takes this time. */
#define NEAR_SECONDS	0.005
#define NEAR_TRIES		3

/* How long to wait for an answer. */
#define PATIENCE_MS		2000

typedef struct SizeEntry
{
	Oid			relid;			/* hash key: the foreign table */
	RemoteSize	size;			/* last answer; known is false without one */
	TimestampTz valid_until;	/* not asked again before */
} SizeEntry;

static HTAB *sizes = NULL;

static SizeEntry *
size_entry(Oid relid)
{
	SizeEntry  *entry;
	bool		found;

	if (sizes == NULL)
	{
		HASHCTL		ctl = {0};

		ctl.keysize = sizeof(Oid);
		ctl.entrysize = sizeof(SizeEntry);
		sizes = hash_create("tidrange_fdw sizes", 64, &ctl,
							HASH_ELEM | HASH_BLOBS);
	}
	entry = hash_search(sizes, &relid, HASH_ENTER, &found);
	if (!found)
	{
		memset(&entry->size, 0, sizeof(RemoteSize));
		entry->valid_until = 0;
	}
	return entry;
}

/*
 * The foreign tables of the same server in this query whose size must be asked
 * for.  Partitions are among them: they are in the array before sizes are set.
 */
static List *
tables_to_ask(PlannerInfo *root, Oid relid)
{
	Oid			serverid = GetForeignTable(relid)->serverid;
	TimestampTz now = GetCurrentTimestamp();
	List	   *relids = NIL;
	int			i;

	for (i = 1; i < root->simple_rel_array_size; i++)
	{
		RangeTblEntry *rte = root->simple_rte_array[i];

		if (rte == NULL || rte->rtekind != RTE_RELATION ||
			rte->relkind != RELKIND_FOREIGN_TABLE ||
			GetForeignTable(rte->relid)->serverid != serverid)
			continue;
		if (size_entry(rte->relid)->valid_until > now)
			continue;
		relids = list_append_unique_oid(relids, rte->relid);
	}
	return relids;
}

/* The size question for these tables. */
static char *
size_question(List *relids)
{
	StringInfoData sql;
	List	   *names = NIL;
	ListCell   *lc;

	foreach(lc, relids)
		names = lappend(names, deparse_foreign_table(lfirst_oid(lc)));
	initStringInfo(&sql);
	remote_table_size_sql(&sql, names);
	return sql.data;
}

/* The message that asks it; in_snapshot: before the savepoint. */
static char *
wrap_question(const char *question, bool in_snapshot)
{
	return psprintf("%sSET LOCAL statement_timeout = '2s'; "
					"SET LOCAL lock_timeout = '2s'; "
					"SET LOCAL search_path = pg_catalog; "
					"SET LOCAL datestyle = 'ISO'; "
					"SET LOCAL intervalstyle = 'postgres'; "
					"%s; %s",
					in_snapshot ? "" : "START TRANSACTION READ ONLY; ",
					question,
					in_snapshot ? CONNECTION_TO_SAVEPOINT :
					"COMMIT TRANSACTION");
}

/* Bring the connection back to where it was before a question that failed. */
static void
settle(Connection *conn, bool in_snapshot)
{
	WaitLimits	limits = connection_limits(PATIENCE_MS);
	RemoteError error;

	if (in_snapshot)
	{
		connection_recover(conn, &limits);
		return;
	}
	conn->in_transaction = false;
	if (PQstatus(conn->pg) != CONNECTION_OK ||
		PQtransactionStatus(conn->pg) == PQTRANS_ACTIVE ||
		!connection_exec(conn, "ROLLBACK TRANSACTION", &limits, &error))
		connection_close(conn);
}

/*
 * Run the question on the pool's control connection.  NULL if it is busy or the
 * remote does not answer; the connection is in order again then, or gone.
 */
static Connection *
ask(ConnectionPool *pool, const char *question)
{
	WaitLimits	limits = connection_limits(PATIENCE_MS);
	RemoteError error = {0};
	bool		in_snapshot = pool->snapshot != NULL;
	int			tries;

	if (pool->silent_until > GetCurrentTimestamp())
		return NULL;

	/* A session that died while it was idle gets a second try. */
	for (tries = 0; tries < 2; tries++)
	{
		Connection *conn = connection_control(pool, &limits, &error);
		bool		alive;

		if (conn == NULL)
		{
			pool->silent_until = connection_deadline(ABSENT_MS);
			break;
		}
		if (conn->borrower != NULL || conn->dirty ||
			PQtransactionStatus(conn->pg) !=
			(in_snapshot ? PQTRANS_INTRANS : PQTRANS_IDLE))
			return NULL;
		conn->in_transaction = true;
		if (connection_exec(conn, wrap_question(question, in_snapshot),
							&limits, &error))
		{
			conn->in_transaction = in_snapshot;
			return conn;
		}
		/* One wait for a locked table is enough for all its questions. */
		if (error.timed_out || error.sqlstate == ERRCODE_QUERY_CANCELED ||
			error.sqlstate == ERRCODE_LOCK_NOT_AVAILABLE)
			pool->silent_until = connection_deadline(ABSENT_MS);
		alive = PQstatus(conn->pg) == CONNECTION_OK;
		settle(conn, in_snapshot);
		if (alive || in_snapshot)
			break;
	}
	ereport(DEBUG1,
			(errmsg_internal("tidrange_fdw: no answer for planning: %s",
							 error.message ? error.message : "stopped")));
	return NULL;
}

/* The n-th answer among the results of the message, from 0. */
static PGresult *
nth_answer(Connection *conn, int n)
{
	int			i;

	for (i = 0; i < conn->nresults; i++)
	{
		if (PQresultStatus(conn->results[i]) == PGRES_TUPLES_OK && n-- == 0)
			return conn->results[i];
	}
	return NULL;
}

static PGresult *
answer(Connection *conn)
{
	return nth_answer(conn, 0);
}

/* May some blocks be read to learn how many rows they hold? */
static bool
can_be_sampled(const RemoteSize *size)
{
	return size->known && !size->has_children &&
		size->kind != RELKIND_PARTITIONED_TABLE && (size->tuples < 0 || size->tuples_pages <= 0) &&
		size->pages > 0 &&
		remote_table_kind_reason(size->kind, size->is_heap, false,
								 size->server_version) == NULL;
}

/* Rows of SAMPLE_BLOCKS blocks spread over the table, as one expression. */
static void
append_sample(StringInfo sql, Oid relid, double pages)
{
	const char *name = deparse_foreign_table(relid);
	int			i;

	for (i = 0; i < SAMPLE_BLOCKS; i++)
	{
		double		block = floor(pages * i / SAMPLE_BLOCKS);

		appendStringInfo(sql, "%s(SELECT count(*) FROM ONLY %s "
						 "WHERE ctid >= '(%.0f,0)' AND ctid < '(%.0f,0)')",
						 i > 0 ? " + " : "", name, block, block + 1);
	}
}

/*
 * Tables that were never analyzed: look at a few blocks.  If that fails (no
 * right to read, say), the width of the columns must do.
 */
static void
sample_rows(ConnectionPool *pool, List *relids)
{
	StringInfoData sql;
	List	   *sampled = NIL;
	Connection *conn;
	PGresult   *result;
	ListCell   *lc;
	int			row = 0;

	initStringInfo(&sql);
	foreach(lc, relids)
	{
		RemoteSize *size = &size_entry(lfirst_oid(lc))->size;

		if (!can_be_sampled(size))
			continue;
		appendStringInfoString(&sql, sampled == NIL ? "SELECT " :
							   " UNION ALL SELECT ");
		append_sample(&sql, lfirst_oid(lc), size->pages);
		sampled = lappend_oid(sampled, lfirst_oid(lc));
	}
	if (sampled == NIL)
		return;
	conn = ask(pool, sql.data);
	result = conn ? answer(conn) : NULL;
	if (result != NULL && PQntuples(result) == list_length(sampled))
	{
		foreach(lc, sampled)
		{
			RemoteSize *size = &size_entry(lfirst_oid(lc))->size;

			/* As if these blocks had been all that was analyzed. */
			size->tuples = strtod(PQgetvalue(result, row++, 0), NULL);
			size->tuples_pages = SAMPLE_BLOCKS;
		}
	}
	if (conn != NULL)
		connection_clear_results(conn);
}

/* (cost=0.29..8.31 rows=1 width=36), at the end of a plan's first line */
static bool
parse_costs(PGresult *explained, RemoteEstimate *estimate)
{
	const char *costs;

	if (explained == NULL || PQntuples(explained) == 0)
		return false;
	costs = strstr(PQgetvalue(explained, 0, 0), "(cost=");
	return costs != NULL &&
		sscanf(costs, "(cost=%lf..%lf rows=%lf width=%lf",
			   &estimate->startup_cost, &estimate->total_cost,
			   &estimate->rows, &estimate->width) == 4;
}

/* Has the user forbidden to ask for plans of this table? */
static bool
plans_are_refused(Oid relid)
{
	TableOptions options;

	option_resolve_table(relid, &options);
	return options.use_remote_estimate == 0;
}

/*
 * Views and the like: the remote's planner is asked what reading all of it would
 * be, in one message for all of them.
 */
static void
plan_views(ConnectionPool *pool, List *relids)
{
	StringInfoData sql;
	List	   *asked = NIL;
	Connection *conn;
	ListCell   *lc;
	int			i = 0;

	initStringInfo(&sql);
	foreach(lc, relids)
	{
		Oid			relid = lfirst_oid(lc);
		RemoteSize *size = &size_entry(relid)->size;

		if (!size->known || !remote_table_has_no_blocks(size) ||
			plans_are_refused(relid))
			continue;
		appendStringInfo(&sql, "%sEXPLAIN SELECT * FROM %s",
						 asked == NIL ? "" : "; ",
						 deparse_foreign_table(relid));
		asked = lappend_oid(asked, relid);
	}
	if (asked == NIL)
		return;
	conn = ask(pool, sql.data);
	if (conn == NULL)
		return;
	foreach(lc, asked)
	{
		RemoteSize *size = &size_entry(lfirst_oid(lc))->size;
		RemoteEstimate estimate;

		if (!parse_costs(nth_answer(conn, i++), &estimate))
			continue;
		size->planned = true;
		size->tuples = estimate.rows;
		size->width = estimate.width;
		size->startup_cost = estimate.startup_cost;
		size->total_cost = estimate.total_cost;
	}
	connection_clear_results(conn);
}

/* Keep an answer for the session. */
static void
remember(Oid relid, RemoteSize *size)
{
	RemoteSize *kept = &size_entry(relid)->size;

	if (kept->unique_columns != NULL)
		pfree(kept->unique_columns);
	*kept = *size;
	if (size->unique_columns != NULL)
		kept->unique_columns = MemoryContextStrdup(TopMemoryContext,
												   size->unique_columns);
}

/*
 * Is the source on this machine?  A proxy or tunnel that is here may lead anywhere:
 * how fast it answers tells.
 */
static bool
is_near(ConnectionPool *pool, Connection *conn)
{
	WaitLimits	limits = connection_limits(PATIENCE_MS);
	RemoteError error;
	int			i;

	if (!connection_is_local(conn))
		return false;
	for (i = 0; i < NEAR_TRIES; i++)
	{
		instr_time	sent;
		instr_time	answered;

		INSTR_TIME_SET_CURRENT(sent);
		if (!connection_exec(conn, "SELECT 1", &limits, &error))
		{
			settle(conn, pool->snapshot != NULL);
			return false;
		}
		connection_clear_results(conn);
		INSTR_TIME_SET_CURRENT(answered);
		INSTR_TIME_SUBTRACT(answered, sent);
		if (INSTR_TIME_GET_DOUBLE(answered) < NEAR_SECONDS)
			return true;
	}
	return false;
}

/* Ask for these tables and remember the answers, or that there was none. */
static void
refresh(ConnectionPool *pool, List *relids)
{
	Connection *conn = ask(pool, size_question(relids));
	PGresult   *result = conn ? answer(conn) : NULL;
	TimestampTz valid_until;
	bool		near;
	ListCell   *lc;
	int			row;

	valid_until = connection_deadline(result ? FRESH_MS : ABSENT_MS);
	foreach(lc, relids)
		size_entry(lfirst_oid(lc))->valid_until = valid_until;
	if (result == NULL)
		return;
	for (row = 0; row < PQntuples(result); row++)
	{
		RemoteSize	size = {0};
		int			index = remote_table_parse_size(result, row, &size);

		size.server_version = connection_server_version(conn);
		remember(list_nth_oid(relids, index), &size);
	}
	connection_clear_results(conn);
	near = is_near(pool, conn);
	foreach(lc, relids)
		size_entry(lfirst_oid(lc))->size.near = near;
	sample_rows(pool, relids);
	plan_views(pool, relids);
}

/* The sessions of the user who reads the table. */
static ConnectionPool *
rel_pool(RelOptInfo *rel, Oid relid)
{
	Oid			userid = OidIsValid(rel->userid) ? rel->userid : GetUserId();

	return connection_pool(userid, GetForeignTable(relid)->serverid);
}

/*
 * What is known of the remote table's size.
 */
void
size_lookup(PlannerInfo *root, RelOptInfo *rel, Oid relid, RemoteSize *size)
{
	SizeEntry  *entry = size_entry(relid);

	/* A worker that plans something has no business opening sessions. */
	if (entry->valid_until <= GetCurrentTimestamp() && !IsParallelWorker())
		refresh(rel_pool(rel, relid), tables_to_ask(root, relid));
	*size = size_entry(relid)->size;
}

/*
 * What the remote's planner expects of `select_sql`.  False if it does not
 * answer.
 */
bool
size_estimate(RelOptInfo *rel, Oid relid, const char *select_sql,
			  RemoteEstimate *estimate)
{
	Connection *conn;
	bool		found = false;

	/* A remote that did not tell the size is not asked again so soon. */
	if (IsParallelWorker() || !size_entry(relid)->size.known)
		return false;
	conn = ask(rel_pool(rel, relid), psprintf("EXPLAIN %s", select_sql));
	if (conn != NULL)
	{
		found = parse_costs(answer(conn), estimate);
		connection_clear_results(conn);
	}
	return found;
}
