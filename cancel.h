/*-------------------------------------------------------------------------
 *
 * cancel.h
 *	  Asks a remote session to stop what it runs, within a deadline.
 *
 *-------------------------------------------------------------------------
 */
#ifndef TIDRANGE_CANCEL_H
#define TIDRANGE_CANCEL_H

#include "libpq-fe.h"
#include "utils/timestamp.h"

extern bool cancel_send(PGconn *pg, TimestampTz deadline);

#endif							/* TIDRANGE_CANCEL_H */
