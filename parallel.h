/*-------------------------------------------------------------------------
 *
 * parallel.h
 *	  What the participants of a parallel scan share.
 *
 *-------------------------------------------------------------------------
 */
#ifndef TIDRANGE_PARALLEL_H
#define TIDRANGE_PARALLEL_H

#include "access/parallel.h"
#include "nodes/execnodes.h"

extern Size parallel_estimate(ForeignScanState *node, ParallelContext *pcxt);
extern void parallel_initialize(ForeignScanState *node, ParallelContext *pcxt,
								void *coordinate);
extern void parallel_reinitialize(ForeignScanState *node,
								  ParallelContext *pcxt, void *coordinate);
extern void parallel_initialize_worker(ForeignScanState *node, shm_toc *toc,
									   void *coordinate);
extern void parallel_shutdown(ForeignScanState *node);

#endif							/* TIDRANGE_PARALLEL_H */
