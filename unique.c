/*-------------------------------------------------------------------------
 *
 * unique.c
 *	  Tells the planner which columns are unique on the remote.
 *
 * A foreign table that was never analyzed here has no statistics, and without
 * them a join on its key is estimated as if the key had 200 values: a million
 * rows too many.  The estimator also believes in unique indexes, so it is shown
 * those of the remote, as entries of the relation's index list.
 *
 * They are for estimates alone.  Nobody may conclude from one that there is at
 * most one match, for the figures are up to a minute old and the remote may have
 * dropped the index since: so they are marked as deferrable, which keeps them out
 * of every proof, and as hypothetical, so that nobody opens them.  No path can
 * come of them: index paths are made for local tables only.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "option.h"
#include "unique.h"
#include "utils/lsyscache.h"

/* Is the name a line of the text? */
static bool
has_line(const char *lines, const char *name)
{
	size_t		length = strlen(name);
	const char *line = lines;

	while (line != NULL)
	{
		const char *end = strchr(line, '\n');
		size_t		line_length = end ? (size_t) (end - line) : strlen(line);

		if (line_length == length && memcmp(line, name, length) == 0)
			return true;
		line = end ? end + 1 : NULL;
	}
	return false;
}

static IndexOptInfo *
make_index(RelOptInfo *rel, AttrNumber attnum)
{
	IndexOptInfo *index = makeNode(IndexOptInfo);

	index->rel = rel;
	index->pages = 1;
	index->tuples = rel->tuples;
	index->tree_height = -1;
	index->ncolumns = index->nkeycolumns = 1;
	index->indexkeys = palloc(sizeof(int));
	index->indexkeys[0] = attnum;
	index->unique = true;
	index->immediate = false;
	index->hypothetical = true;
	return index;
}

/*
 * Show the planner the remote's unique columns, given by their remote names, one
 * a line; NULL: none.
 */
void
unique_show(RelOptInfo *rel, Oid relid, const char *columns)
{
	AttrNumber	attnum;

	if (columns == NULL)
		return;
	for (attnum = Max(rel->min_attr, 1); attnum <= rel->max_attr; attnum++)
	{
		/* only where the query has something to do with the column */
		if (bms_is_empty(rel->attr_needed[attnum - rel->min_attr]))
			continue;
		if (has_line(columns, option_remote_column(relid, attnum)))
			rel->indexlist = lappend(rel->indexlist,
									 make_index(rel, attnum));
	}
}
