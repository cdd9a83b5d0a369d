/*-------------------------------------------------------------------------
 *
 * stream.h
 *	  The rows of one chunk, as they arrive.
 *
 *-------------------------------------------------------------------------
 */
#ifndef TIDRANGE_STREAM_H
#define TIDRANGE_STREAM_H

#include "connection.h"
#include "portability/instr_time.h"
#include "storage/buffile.h"

typedef enum StreamPhase
{
	STREAM_CLOSED,				/* nothing asked for, or all of it read */
	STREAM_BEFORE_COPY,			/* sent, no row yet */
	STREAM_COPYING,				/* rows are arriving */
	STREAM_AFTER_COPY,			/* all rows read, the checks are arriving */
	STREAM_PARKED				/* the rest is in a temporary file */
} StreamPhase;

typedef enum StreamStatus
{
	STREAM_ROW,					/* here is a row */
	STREAM_END,					/* all rows were read, and that was checked */
	STREAM_STOPPED				/* the caller's stop condition came true */
} StreamStatus;

/* What to read.  The strings must live as long as the stream reads. */
typedef struct StreamRequest
{
	const char *copy_sql;		/* COPY (SELECT ...) TO STDOUT (FORMAT binary) */
	const char *relation;		/* qualified and quoted name */
	Oid			oid;			/* what the name must mean */
	bool		parkable;		/* the stream is a scan's: see scan.c */
	bool		chunked;		/* copy_sql looks at tidrange.lo and .hi */
	bool		check_files;	/* what it reads was not locked before */
	const char *lower;			/* their values */
	const char *upper;
} StreamRequest;

/* One remote command in progress.  Embedded in its owner. */
typedef struct Stream
{
	StreamPhase phase;
	Connection *conn;			/* NULL when closed or parked */
	StreamRequest request;
	char	   *row;			/* libpq's buffer of the current row */
	char	   *held_row;		/* as row, while the stream is being parked */
	bool		header_seen;
	bool		trailer_seen;
	uint64		rows;			/* read so far */
	int64		tag_rows;		/* n of the tag COPY n; -1: not seen */
	uint64		bytes;			/* of those rows */
	instr_time	sent;			/* when the request went out */
	double		answer_seconds; /* until the first answer; 0: none yet */
	/* when parked */
	BufFile    *file;
	MemoryContext file_context;
	uint64		file_rows;		/* not read from it yet */
	char	   *file_row;		/* buffer of the current row */
	size_t		file_row_size;
} Stream;

extern void stream_open(Stream *stream, Connection *conn,
						const StreamRequest *request,
						const WaitLimits *limits);
extern StreamStatus stream_next(Stream *stream, const WaitLimits *limits,
								char **row, int *length);
extern void stream_park(Stream *stream, MemoryContext context,
						const WaitLimits *limits);
extern void stream_close(Stream *stream);
extern void stream_abandon(Stream *stream);

#endif							/* TIDRANGE_STREAM_H */
