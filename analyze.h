/*-------------------------------------------------------------------------
 *
 * analyze.h
 *	  ANALYZE of a foreign table.
 *
 *-------------------------------------------------------------------------
 */
#ifndef TIDRANGE_ANALYZE_H
#define TIDRANGE_ANALYZE_H

#include "foreign/fdwapi.h"

extern bool analyze_table(Relation relation, AcquireSampleRowsFunc *func,
						  BlockNumber *totalpages);

#endif							/* TIDRANGE_ANALYZE_H */
