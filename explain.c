/*-------------------------------------------------------------------------
 *
 * explain.c
 *	  EXPLAIN lines of a foreign scan, from its plan and its counters.
 *
 * VERBOSE shows the remote SQL, the block space and its leaves, which columns
 * travel as text, and why chunks are impossible.  ANALYZE shows why a scan was read
 * whole, that what was claimed was finished, and, with TIMING (they differ from run
 * to run), what each participant did.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "columns.h"
#include "deparse.h"
#include "explain.h"
#include "scan.h"
#include "utils/rel.h"

/* What is sent to the remote, with $lo and $hi for a chunk's bounds. */
static void
explain_remote_sql(TidrangeScan *scan, ExplainState *es)
{
	const char *select_list = scan->remote.select_list;
	const char *name = scan->remote.name;
	const char *text = scan->remote.text_columns;
	bool		chunked = scan->prepared ? scan->remote.chunked :
	scan->state->ss.ps.plan->parallel_aware || scan->plan.connections > 1;
	bool		by_leaf = scan->prepared ? scan->remote.by_leaf :
	chunked && scan->plan.has_leaves;
	bool		only = chunked || scan->options.only;
	const char *bounds = chunked ? "ctid >= $lo AND ctid < $hi" : NULL;
	StringInfoData sql;

	if (!scan->prepared)
	{
		SelectList	list;

		name = deparse_foreign_table(scan->relid);
		columns_choose(&list, scan->relid,
					   RelationGetDescr(scan->state->ss.ss_currentRelation),
					   scan->plan.attnums, NULL, COMPAT_LOCAL_VERSION);
		select_list = list.text;
		text = list.text_columns;
	}
	if (by_leaf)
		name = "$leaf";
	if (scan->prepared && scan->remote.tableoids[0] != '\0')
	{
		only = false;
		bounds = "tableoid = ANY ($leaves) AND ctid >= $lo AND ctid < $hi";
	}
	initStringInfo(&sql);
	scan_append_select(&sql, select_list, name, only, bounds, &scan->plan,
					   NULL);
	ExplainPropertyText("Remote SQL", sql.data, es);
	if (text[0] != '\0')
		ExplainPropertyText("Text Columns", text, es);
}

/* The number of blocks: measured, or as far as is known. */
static void
explain_blocks(TidrangeScan *scan, ExplainState *es)
{
	if (scan->prepared && scan->remote.nblocks > 0)
		ExplainPropertyInteger("Remote Blocks", NULL, scan->remote.nblocks, es);
	else if ((!scan->prepared || scan->remote.nblocks < 0) &&
			 scan->plan.pages >= 0)
		ExplainPropertyInteger("Remote Blocks", NULL,
							   (int64) scan->plan.pages, es);
	if (scan->prepared && scan->remote.by_leaf)
	{
		ExplainPropertyInteger("Remote Leaves", NULL,
							   scan->remote.nleaves, es);
		if (scan->remote.nexcluded > 0)
			ExplainPropertyInteger("Leaves Excluded", NULL,
								   scan->remote.nexcluded, es);
	}
	if (!scan->state->ss.ps.plan->parallel_aware && scan->plan.connections > 1)
		ExplainPropertyInteger("Connections", NULL, scan->plan.connections, es);
	if ((scan->state->ss.ps.plan->parallel_aware || scan->plan.connections > 1) &&
		scan->options.chunk_blocks > 0)
		ExplainPropertyInteger("Chunk Blocks", NULL,
							   scan->options.chunk_blocks, es);
}

/* One participant's work. */
static void
explain_participant(const char *name, const ScanCounters *counters,
					ExplainState *es)
{
	if (es->format == EXPLAIN_FORMAT_TEXT)
	{
		appendStringInfoSpaces(es->str, es->indent * 2);
		appendStringInfo(es->str,
						 "%s: chunks=" UINT64_FORMAT " blocks=" UINT64_FORMAT
						 " rows=" UINT64_FORMAT " bytes=" UINT64_FORMAT
						 " round trips=" UINT64_FORMAT " connections=%u wait=%.3f ms%s\n",
						 name, counters->chunks, counters->blocks,
						 counters->rows, counters->bytes,
						 counters->round_trips, counters->streams,
						 counters->wait_seconds * 1000,
						 counters->bowed_out > 0 ? " (refused by the remote)" : "");
		return;
	}
	ExplainOpenGroup("Participant", NULL, true, es);
	ExplainPropertyText("Name", name, es);
	ExplainPropertyUInteger("Chunks", NULL, counters->chunks, es);
	ExplainPropertyUInteger("Blocks", NULL, counters->blocks, es);
	ExplainPropertyUInteger("Rows", NULL, counters->rows, es);
	ExplainPropertyUInteger("Bytes", NULL, counters->bytes, es);
	ExplainPropertyUInteger("Round Trips", NULL, counters->round_trips, es);
	ExplainPropertyUInteger("Connections", NULL, counters->streams, es);
	ExplainPropertyFloat("Wait", "ms", counters->wait_seconds * 1000, 3, es);
	ExplainPropertyBool("Refused", counters->bowed_out > 0, es);
	ExplainCloseGroup("Participant", NULL, true, es);
}

/* Everybody who had a part in it. */
static void
explain_participants(TidrangeScan *scan, ExplainState *es)
{
	int			i;

	ExplainOpenGroup("Participants", "Participants", false, es);
	if (scan->totals == NULL)
		explain_participant("Leader", &scan->counters, es);
	for (i = 0; i < scan->ntotals; i++)
	{
		char		name[32] = "Leader";

		if (scan->totals[i].joined == 0 && scan->totals[i].bowed_out == 0)
			continue;
		if (i > 0)
			snprintf(name, sizeof(name), "Worker %d", i - 1);
		explain_participant(name, &scan->totals[i], es);
	}
	ExplainCloseGroup("Participants", "Participants", false, es);
}

/*
 * ExplainForeignScan.
 */
void
explain_scan(ForeignScanState *node, ExplainState *es)
{
	TidrangeScan *scan = node->fdw_state;

	if (es->verbose)
	{
		explain_remote_sql(scan, es);
		explain_blocks(scan, es);
		if (!scan->prepared && scan->plan.whole_reason[0] != '\0')
			ExplainPropertyText("Read Whole", scan->plan.whole_reason, es);
	}
	if (es->verbose && scan->plan.serial_reason[0] != '\0')
		ExplainPropertyText("Insert Not Parallel", scan->plan.serial_reason, es);
	if (es->verbose && scan->batch_reason != NULL)
		ExplainPropertyText("Insert", scan->batch_reason[0] == '\0' ?
							"in batches" :
							psprintf("row by row: %s", scan->batch_reason), es);
	if (!es->analyze || !scan->prepared)
		return;
	if (scan->remote.whole_reason != NULL)
		ExplainPropertyText("Read Whole", scan->remote.whole_reason, es);
	if (scan->remote.chunked && scan->remote.tableoids[0] != '\0')
		ExplainPropertyText("Read Through Parent",
							scan->remote.parent_reason, es);
	if (scan->remote.filter_locally)
		ExplainPropertyText("Filtered Locally",
							"column types differ from the remote ones", es);
	if (scan->totals != NULL && scan->remote.chunked)
	{
		ExplainPropertyUInteger("Blocks Claimed", NULL, scan->claimed, es);
		ExplainPropertyUInteger("Blocks Finished", NULL, scan->finished, es);
	}
	if (es->timing)
		explain_participants(scan, es);
}
