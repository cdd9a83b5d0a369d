/*-------------------------------------------------------------------------
 *
 * insert_batch.h
 *	  INSERT ... SELECT that writes its rows in batches, as COPY does.
 *
 *-------------------------------------------------------------------------
 */
#ifndef TIDRANGE_INSERT_BATCH_H
#define TIDRANGE_INSERT_BATCH_H

/* GUC tidrange_fdw.batch_insert */
extern bool insert_batch_enabled;

extern void insert_batch_init(void);

#endif							/* TIDRANGE_INSERT_BATCH_H */
