/*-------------------------------------------------------------------------
 *
 * width.c
 *	  How wide rows are, and what it costs to decode them.
 *
 * Without statistics here, core gives each type a fixed width: a text column of a
 * thousand bytes counts as 32.  The remote knows better: its statistics have the
 * width of a row, or its blocks and rows tell it.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <math.h>

#include "access/table.h"
#include "codec.h"
#include "optimizer/cost.h"
#include "optimizer/optimizer.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "width.h"

/*
 * The share of a column of varying width in the remote's bytes: in what its
 * statistics say of a row, or else in its blocks.
 */
static double
varlena_width(RelOptInfo *rel, Oid relid, const RemoteSize *size)
{
	Relation	relation = table_open(relid, NoLock);
	TupleDesc	desc = RelationGetDescr(relation);
	double		fixed = 0;
	int			n = 0;
	int			i;

	for (i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute attribute = TupleDescAttr(desc, i);

		if (attribute->attisdropped)
			continue;
		if (attribute->attlen < 0)
			n++;
		else
			fixed += attribute->attlen;
	}
	table_close(relation, NoLock);
	if (size->width > 0)
		return Max(size->width - fixed, n) / Max(n, 1);
	return (double) rel->pages * BLCKSZ / Max(rel->tuples, 1) / Max(n, 1);
}

/*
 * What core takes for the width of a row, without statistics here, knows nothing
 * of the data: text has 32 bytes.  The remote's statistics do.
 */
void
width_set(RelOptInfo *rel, Oid relid, const RemoteSize *size)
{
	int32		guess;
	ListCell   *lc;

	if (size->width <= 0)
		return;
	guess = (int32) rint(varlena_width(rel, relid, size));
	foreach(lc, rel->reltarget->exprs)
	{
		Var		   *var = lfirst(lc);

		int32	   *width;

		if (!IsA(var, Var) || var->varno != rel->relid || var->varattno <= 0 ||
			get_typlen(var->vartype) >= 0 ||
			get_attavgwidth(relid, var->varattno) > 0)
			continue;
		/* the joins above add these up anew */
		width = &rel->attr_widths[var->varattno - rel->min_attr];
		rel->reltarget->width += guess - *width;
		*width = guess;
	}
}

/*
 * Cost of decoding a row beyond what fdw_tuple_cost stands for: columns that go
 * through a function, at 8 bytes for an operator's cost (bench/decode).
 */
Cost
width_decode_cost(RelOptInfo *rel, Oid relid, const RemoteSize *size)
{
	double		guess = varlena_width(rel, relid, size);
	Cost		cost = 0;
	ListCell   *lc;

	foreach(lc, rel->reltarget->exprs)
	{
		Var		   *var = lfirst(lc);
		double		width;

		if (!IsA(var, Var) || var->varno != rel->relid || var->varattno <= 0 ||
			!codec_is_costly_type(var->vartype))
			continue;
		width = get_attavgwidth(relid, var->varattno);
		if (width <= 0)
			width = get_typlen(var->vartype) < 0 ? guess :
				get_typavgwidth(var->vartype, var->vartypmod);
		cost += cpu_operator_cost * (1 + width / 8.0);
	}
	return cost;
}
