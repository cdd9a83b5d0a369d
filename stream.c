/*-------------------------------------------------------------------------
 *
 * stream.c
 *	  Runs the query of one chunk and yields raw rows, without ever blocking
 *	  inside libpq.
 *
 * A stream borrows a connection, sends one message and gives the connection
 * back when the whole answer has been read.  The message is, for a chunk,
 *
 *	 SELECT set_config('tidrange.lo', ...), set_config('tidrange.hi', ...);
 *	 COPY (SELECT ... WHERE ctid >= current_setting('tidrange.lo')::tid ...)
 *	   TO STDOUT (FORMAT binary);
 *	 SELECT 'schema.table'::regclass::oid
 *
 * The bounds go through settings so that the COPY text is the same for all
 * chunks and pg_stat_statements of the source does not fill up.  The last
 * statement tells whether the name still meant the table that was measured:
 * renaming a schema needs no lock on its tables.
 *
 * On the control connection a ROLLBACK TO the standing savepoint follows:
 * settings go back, and a cancelled COPY does not take the transaction's lock
 * and snapshot with it.
 *
 * A stream has ended only if the binary trailer was seen and as many rows
 * arrived as the command tag says.  Memory: libpq's buffer and one row.
 *
 * Where the connection is needed for something else, the rest of the rows is
 * read into a temporary file (parked) and the stream goes on from there.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include "compat.h"
#include "deparse.h"
#include "miscadmin.h"
#include "port/pg_bswap.h"
#include "snapshot.h"
#include "stream.h"

/* How long it may take to read the rest of an answer that is not wanted. */
#define QUICK_DRAIN_MS	10

/* Signature, flags and extension length of COPY BINARY. */
static const char copy_signature[] = "PGCOPY\n\377\r\n";	/* and its final zero */

#define COPY_HEADER_SIZE		19

/* Raise a remote error, saying what was being read. */
static void
raise_error(const Stream *stream, const RemoteError *error)
{
	const StreamRequest *request = &stream->request;

	ereport(ERROR,
			(errcode(error->sqlstate),
			 errmsg_internal("%s", error->message && *error->message ?
							 error->message : "remote command failed"),
			 error->detail ? errdetail_internal("%s", error->detail) : 0,
			 error->hint ? errhint("%s", error->hint) : 0,
			 error->context ? errcontext("%s", error->context) : 0,
			 request->chunked ?
			 errcontext("remote blocks from %s to %s",
						request->lower, request->upper) : 0,
			 errcontext("remote SQL command: %s", request->copy_sql)));
}

/* The remote sent something that a PostgreSQL server does not send. */
static void
raise_protocol_error(const Stream *stream, const char *what)
{
	ereport(ERROR,
			(errcode(ERRCODE_PROTOCOL_VIOLATION),
			 errmsg("unexpected data from the remote server: %s", what),
			 errcontext("remote SQL command: %s", stream->request.copy_sql)));
}

/* ----------
 * Opening
 * ----------
 */

static void
append_message(StringInfo buf, const Connection *conn,
			   const StreamRequest *request)
{
	if (request->chunked && !conn->chunk_settings)
		appendStringInfoString(buf, SNAPSHOT_CHUNK_SETTINGS);
	if (!request->chunked && conn->chunk_settings)
		appendStringInfoString(buf, SNAPSHOT_RESET_CHUNK_SETTINGS);
	if (request->chunked)
		appendStringInfo(buf,
						 "SELECT set_config('tidrange.lo', '%s', true), "
						 "set_config('tidrange.hi', '%s', true); ",
						 request->lower, request->upper);
	appendStringInfo(buf, "%s; SELECT ", request->copy_sql);
	deparse_string_literal(buf, request->relation);
	appendStringInfoString(buf, "::regclass::oid");
	if (request->check_files)
		appendStringInfoString(buf, "; " SNAPSHOT_REWRITTEN_QUERY);
	/* The locks of what was read stay, if they are new. */
	if (conn->is_control)
		appendStringInfoString(buf, request->check_files ?
							   "; " CONNECTION_MOVE_SAVEPOINT :
							   "; " CONNECTION_TO_SAVEPOINT);
}

/*
 * Ask for the rows.  `conn` must be free, with snapshot and lock; it belongs to
 * the stream until stream_next says STREAM_END or the stream is closed.
 */
void
stream_open(Stream *stream, Connection *conn, const StreamRequest *request,
			const WaitLimits *limits)
{
	StringInfoData sql;
	RemoteError error;
	bool		sent;

	Assert(stream->phase == STREAM_CLOSED);
	Assert(conn->borrower == NULL);

	initStringInfo(&sql);
	append_message(&sql, conn, request);

	stream->request = *request;
	stream->conn = conn;
	stream->phase = STREAM_BEFORE_COPY;
	stream->header_seen = false;
	stream->trailer_seen = false;
	stream->rows = 0;
	stream->tag_rows = -1;
	stream->bytes = 0;
	stream->answer_seconds = 0;
	conn->borrower = &stream->conn;
	conn->parkable = request->parkable;
	if (!conn->is_control)
		conn->chunk_settings = request->chunked;
	INSTR_TIME_SET_CURRENT(stream->sent);
	connection_clear_results(conn);
	sent = connection_send(conn, sql.data, limits, &error);
	pfree(sql.data);
	if (!sent && !error.stopped)
		raise_error(stream, &error);
	/* A stopped send leaves the stream to be closed by its owner. */
}

/* ----------
 * Reading
 * ----------
 */

/* Give the connection back: the whole answer was read. */
static void
release_connection(Stream *stream)
{
	connection_return(stream->conn);
	stream->phase = STREAM_CLOSED;
}

/* Everything arrived, and the remote agrees. */
static void
finish(Stream *stream)
{
	if (!stream->trailer_seen)
		raise_protocol_error(stream, "COPY ended without its trailer");
	if (stream->tag_rows < 0 || stream->rows != (uint64) stream->tag_rows)
		ereport(ERROR,
				(errcode(ERRCODE_PROTOCOL_VIOLATION),
				 errmsg("remote server sent " UINT64_FORMAT " rows and reported " INT64_FORMAT,
						stream->rows, stream->tag_rows),
				 errcontext("remote SQL command: %s",
							stream->request.copy_sql)));
	release_connection(stream);
}

/* The name must have meant the measured table to the end. */
static void
check_relation(Stream *stream, PGresult *result)
{
	Oid			oid = InvalidOid;

	if (PQntuples(result) == 1 && PQnfields(result) == 1)
		oid = (Oid) strtoul(PQgetvalue(result, 0, 0), NULL, 10);
	if (oid == stream->request.oid)
		return;
	PQclear(result);
	ereport(ERROR,
			(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
			 errmsg("remote table %s was replaced by another one during the scan",
					stream->request.relation),
			 errhint("Retry the transaction.")));
}

/* What the statement has locked must have the files that the snapshot knows. */
static void
check_files(Stream *stream, PGresult *result)
{
	if (strcmp(PQgetvalue(result, 0, 0), "0") == 0)
		return;
	PQclear(result);
	ereport(ERROR,
			(errcode(ERRCODE_T_R_SERIALIZATION_FAILURE),
			 errmsg("partitions of remote table %s were rewritten after the snapshot was taken",
					stream->request.relation),
			 errhint("Retry the transaction.")));
}

/*
 * Take the next result that is not a row.  Frees it on every way out.
 */
static void
take_result(Stream *stream, PGresult *result)
{
	ExecStatusType status = PQresultStatus(result);
	RemoteError error;

	switch (status)
	{
		case PGRES_COPY_OUT:
			if (stream->phase != STREAM_BEFORE_COPY)
				break;
			stream->phase = STREAM_COPYING;
			PQclear(result);
			return;
		case PGRES_COMMAND_OK:
			if (stream->phase == STREAM_AFTER_COPY && stream->tag_rows < 0)
				stream->tag_rows = strtoll(PQcmdTuples(result), NULL, 10);
			PQclear(result);
			return;
		case PGRES_TUPLES_OK:
			if (stream->phase == STREAM_AFTER_COPY &&
				strcmp(PQfname(result, 0), "rewritten") == 0)
				check_files(stream, result);
			else if (stream->phase == STREAM_AFTER_COPY)
				check_relation(stream, result);
			PQclear(result);
			return;
		default:
			connection_fill_error(&error, stream->conn, result);
			PQclear(result);
			raise_error(stream, &error);
	}
	PQclear(result);
	raise_protocol_error(stream, "a second COPY");
}

/*
 * Wait for results and take one.  False when the wait was stopped.
 */
static bool
advance(Stream *stream, const WaitLimits *limits)
{
	RemoteError error;
	PGresult   *result = connection_get_result(stream->conn, limits, &error);

	if (error.stopped)
		return false;
	if (error.sqlstate != 0)
		raise_error(stream, &error);
	if (stream->answer_seconds == 0)
	{
		instr_time	now;

		INSTR_TIME_SET_CURRENT(now);
		INSTR_TIME_SUBTRACT(now, stream->sent);
		stream->answer_seconds = INSTR_TIME_GET_DOUBLE(now);
	}
	if (result != NULL)
		take_result(stream, result);
	else if (stream->phase == STREAM_AFTER_COPY)
		finish(stream);
	else
		raise_protocol_error(stream, "no COPY");
	return true;
}

/*
 * Skip the COPY header at the start of the first message.
 */
static char *
skip_header(Stream *stream, char *data, int *length)
{
	uint32		flags;
	uint32		extension;

	if (*length < COPY_HEADER_SIZE ||
		memcmp(data, copy_signature, sizeof(copy_signature)) != 0)
		raise_protocol_error(stream, "not a binary COPY");
	memcpy(&flags, data + 11, 4);
	memcpy(&extension, data + 15, 4);
	extension = pg_ntoh32(extension);
	if (pg_ntoh32(flags) != 0 || extension > *length - COPY_HEADER_SIZE)
		raise_protocol_error(stream, "COPY header with unknown flags");
	stream->header_seen = true;
	*length -= COPY_HEADER_SIZE + extension;
	return data + COPY_HEADER_SIZE + extension;
}

/* The remote has nothing in our buffer: read what came, wait if nothing did. */
static bool
receive(Stream *stream, const WaitLimits *limits)
{
	Connection *conn = stream->conn;
	RemoteError error;

	if (!connection_wait(conn, WL_SOCKET_READABLE, limits, &error))
	{
		if (error.stopped)
			return false;
		raise_error(stream, &error);
	}
	if (!connection_consume(conn))
	{
		connection_fill_error(&error, conn, NULL);
		raise_error(stream, &error);
	}
	return true;
}

/*
 * The next message of a COPY in progress.  STREAM_END: the data is complete.
 */
static StreamStatus
next_copy_row(Stream *stream, const WaitLimits *limits,
			  char **row, int *length)
{
	PGconn	   *pg = stream->conn->pg;
	bool		polled = false;

	for (;;)
	{
		char	   *data;
		int			n = PQgetCopyData(pg, &stream->row, 1);

		if (likely(n > 0))
		{
			data = stream->row;
			if (unlikely(!stream->header_seen))
				data = skip_header(stream, data, &n);
			if (n == 2 && (unsigned char) data[0] == 0xff &&
				(unsigned char) data[1] == 0xff)
			{
				PQfreemem(stream->row);
				stream->row = NULL;
				stream->trailer_seen = true;
				continue;
			}
			if (unlikely(stream->trailer_seen))
				raise_protocol_error(stream, "rows after the trailer");
			stream->rows++;
			stream->bytes += n;
			*row = data;
			*length = n;
			return STREAM_ROW;
		}

		stream->row = NULL;
		if (n == 0)
		{
			/*
			 * Look at the socket before asking the kernel to wake us: while
			 * the remote is ahead that saves a system call a buffer.
			 */
			if (!polled)
			{
				polled = true;
				if (!connection_consume(stream->conn))
				{
					RemoteError error;

					connection_fill_error(&error, stream->conn, NULL);
					raise_error(stream, &error);
				}
				continue;
			}
			if (!receive(stream, limits))
				return STREAM_STOPPED;
			continue;
		}
		if (n == -1)
		{
			stream->phase = STREAM_AFTER_COPY;
			return STREAM_END;
		}
		else
		{
			RemoteError error;

			connection_fill_error(&error, stream->conn, NULL);
			raise_error(stream, &error);
		}
	}
}

/* The next row from the temporary file. */
static StreamStatus
next_parked_row(Stream *stream, char **row, int *length)
{
	if (stream->file_rows == 0)
	{
		BufFileClose(stream->file);
		stream->file = NULL;
		stream->phase = STREAM_CLOSED;
		return STREAM_END;
	}
	compat_buffile_read(stream->file, length, sizeof(*length));
	if (stream->file_row_size < (size_t) *length + 1)
	{
		if (stream->file_row)
			pfree(stream->file_row);
		stream->file_row = NULL;
		stream->file_row_size = (size_t) *length + 1;
		stream->file_row = MemoryContextAllocHuge(stream->file_context,
												  stream->file_row_size);
	}
	compat_buffile_read(stream->file, stream->file_row, *length);
	stream->file_row[*length] = '\0';
	stream->file_rows--;
	*row = stream->file_row;
	return STREAM_ROW;
}

/*
 * The next row: its bytes as COPY BINARY sends them, without the header, in a
 * buffer that may be written to, with a zero byte after its end.  It is valid
 * until the next call on the stream.
 */
StreamStatus
stream_next(Stream *stream, const WaitLimits *limits, char **row, int *length)
{
	if (stream->row != NULL)
	{
		PQfreemem(stream->row);
		stream->row = NULL;
	}
	for (;;)
	{
		StreamStatus status;

		if (unlikely(stream->conn == NULL) && stream->phase < STREAM_PARKED &&
			stream->phase > STREAM_CLOSED)
			ereport(ERROR,
					(errcode(ERRCODE_CONNECTION_FAILURE),
					 errmsg("connection to the remote server was lost"),
					 errhint("Retry the transaction."),
					 errcontext("remote SQL command: %s",
								stream->request.copy_sql)));

		switch (stream->phase)
		{
			case STREAM_COPYING:
				status = next_copy_row(stream, limits, row, length);
				if (status != STREAM_END)
					return status;
				break;
			case STREAM_BEFORE_COPY:
			case STREAM_AFTER_COPY:
				if (!advance(stream, limits))
					return STREAM_STOPPED;
				break;
			case STREAM_PARKED:
				return next_parked_row(stream, row, length);
			case STREAM_CLOSED:
				return STREAM_END;
		}
	}
}

/* ----------
 * Parking, closing
 * ----------
 */

/*
 * Read the rest into a temporary file, so that the connection is free.  The row
 * that was returned last stays valid.  The file is not bound to a resource owner
 * (the scan may outlive the one in charge now); closing or abandoning the
 * stream removes it.
 */
void
stream_park(Stream *stream, MemoryContext context, const WaitLimits *limits)
{
	char	   *current = stream->row;
	MemoryContext oldcontext = MemoryContextSwitchTo(context);
	uint64		file_rows = 0;
	char	   *row;
	int			length;

	Assert(stream->conn != NULL && stream->file == NULL);
	ereport(DEBUG1,
			(errmsg_internal("tidrange_fdw: parking a stream, its connection is needed")));
	stream->row = NULL;
	stream->held_row = current;
	stream->file = BufFileCreateTemp(true);
	stream->file_context = context;
	stream->file_row = NULL;
	stream->file_row_size = 0;
	while (stream_next(stream, limits, &row, &length) == STREAM_ROW)
	{
		BufFileWrite(stream->file, &length, sizeof(length));
		BufFileWrite(stream->file, row, length);
		file_rows++;
		CHECK_FOR_INTERRUPTS();
	}
	if (BufFileSeek(stream->file, 0, 0L, SEEK_SET) != 0)
		ereport(ERROR,
				(errcode_for_file_access(),
				 errmsg("could not rewind temporary file")));
	stream->file_rows = file_rows;
	stream->held_row = NULL;
	stream->row = current;
	stream->phase = STREAM_PARKED;
	MemoryContextSwitchTo(oldcontext);
}

/* What closing and abandoning have in common: no I/O, no error. */
static void
forget_rows(Stream *stream)
{
	if (stream->row != NULL)
		PQfreemem(stream->row);
	stream->row = NULL;
	if (stream->held_row != NULL)
		PQfreemem(stream->held_row);
	stream->held_row = NULL;
	if (stream->file != NULL)
		BufFileClose(stream->file);
	stream->file = NULL;
	stream->phase = STREAM_CLOSED;
}

/*
 * Stop, wherever the stream is.  A look-up that needed its first row only has
 * little left to say: that is read.  Otherwise the control connection is brought
 * back to rest by a cancel; any other connection is closed, since a cancel could
 * block and there is nothing to save.
 */
void
stream_close(Stream *stream)
{
	Connection *conn = stream->conn;
	WaitLimits	limits = connection_limits(QUICK_DRAIN_MS);
	RemoteError error;

	forget_rows(stream);
	if (conn == NULL)
		return;
	connection_return(conn);
	conn->dirty = true;
	if (connection_drain(conn, &limits, &error) &&
		PQtransactionStatus(conn->pg) == PQTRANS_INTRANS)
	{
		conn->dirty = false;
		return;
	}
	if (!conn->is_control)
	{
		connection_close(conn);
		return;
	}
	limits = connection_limits(CONNECTION_RECOVER_MS);
	connection_recover(conn, &limits);
}

/*
 * As stream_close, for callbacks that may neither wait nor fail: the control
 * connection is only marked, whoever needs it next brings it to rest.
 */
void
stream_abandon(Stream *stream)
{
	Connection *conn = stream->conn;

	forget_rows(stream);
	if (conn == NULL)
		return;
	connection_return(conn);
	if (conn->is_control)
		conn->dirty = true;
	else
		connection_close(conn);
}
