/*-------------------------------------------------------------------------
 *
 * explain.h
 *	  EXPLAIN of a foreign scan.
 *
 *-------------------------------------------------------------------------
 */
#ifndef TIDRANGE_EXPLAIN_H
#define TIDRANGE_EXPLAIN_H

#include "commands/explain.h"
#include "compat.h"
#include "nodes/execnodes.h"

extern void explain_scan(ForeignScanState *node, ExplainState *es);

#endif							/* TIDRANGE_EXPLAIN_H */
