/*-------------------------------------------------------------------------
 *
 * connection.c
 *	  Remote sessions: opened, secured, spoken to, closed.
 *
 * Every wait for a remote server and every remote error goes through here.
 * What must hold:
 *
 * - No call blocks inside libpq.  Sockets are non-blocking, waits are ours: they
 *	 end at a cancel, at a deadline, or when the caller's stop condition says
 *	 that there is nothing left to wait for.
 * - Every PGconn and PGresult hangs from a pool entry from the moment that it
 *	 exists, so that an error anywhere cannot leak it.
 * - No password reaches a message: libpq's own messages name none.
 *
 * Functions return errors (RemoteError) rather than raise them; whether a
 * refused connection matters is for the caller to say.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include "compat.h"
#include "cancel.h"
#include "connection.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "option.h"
#include "portability/instr_time.h"
#include "storage/fd.h"
#include "utils/memutils.h"

/* How often a stop condition is looked at while waiting. */

/* How long a connection attempt may take when the user says nothing. */
#define CONNECT_TIMEOUT_MS		30000

bool		connection_log_sql = false;

/* ----------
 * Errors
 * ----------
 */

/* Deadline that many milliseconds from now. */
TimestampTz
connection_deadline(int milliseconds)
{
	return TimestampTzPlusMilliseconds(GetCurrentTimestamp(), milliseconds);
}

/* A copy without the newlines at its end; NULL stays NULL. */
static char *
copy_message(const char *text)
{
	return text ? pchomp(text) : NULL;
}

/*
 * Describe what `result` (NULL: the connection itself) reports.
 */
void
connection_fill_error(RemoteError *error, const Connection *conn,
					  const PGresult *result)
{
	const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);

	memset(error, 0, sizeof(*error));
	if (state != NULL && strlen(state) == 5)
		error->sqlstate = MAKE_SQLSTATE(state[0], state[1], state[2],
										state[3], state[4]);
	else
		error->sqlstate = ERRCODE_CONNECTION_FAILURE;

	error->message = copy_message(PQresultErrorField(result,
													 PG_DIAG_MESSAGE_PRIMARY));
	error->detail = copy_message(PQresultErrorField(result,
													PG_DIAG_MESSAGE_DETAIL));
	error->hint = copy_message(PQresultErrorField(result,
												  PG_DIAG_MESSAGE_HINT));
	error->context = copy_message(PQresultErrorField(result,
													 PG_DIAG_CONTEXT));
	if (error->message == NULL)
		error->message = copy_message(PQerrorMessage(conn->pg));

	/*
	 * A client takes these codes for the end of its own session; it was the
	 * remote one that ended.
	 */
	if (error->sqlstate == ERRCODE_ADMIN_SHUTDOWN ||
		error->sqlstate == ERRCODE_CRASH_SHUTDOWN ||
		error->sqlstate == ERRCODE_CANNOT_CONNECT_NOW ||
		error->sqlstate == ERRCODE_IDLE_SESSION_TIMEOUT ||
		error->sqlstate == ERRCODE_IDLE_IN_TRANSACTION_SESSION_TIMEOUT)
	{
		error->detail = psprintf("The remote server said: %s", error->message);
		error->message = pstrdup("remote session was terminated");
		error->sqlstate = ERRCODE_CONNECTION_FAILURE;
	}

	/*
	 * A transaction that only reads one snapshot gets this code for one reason:
	 * a standby had to remove what it still sees.  The remote's own hint, if it
	 * ended the session, is to connect again.
	 */
	if (error->sqlstate == ERRCODE_T_R_SERIALIZATION_FAILURE)
	{
		const char *severity = PQresultErrorField(result,
												  PG_DIAG_SEVERITY_NONLOCALIZED);

		if (severity != NULL && strcmp(severity, "FATAL") == 0)
		{
			error->detail = psprintf("The remote server said: %s%s%s",
									 error->message,
									 error->detail ? ": " : "",
									 error->detail ? error->detail : "");
			error->message = pstrdup("remote session was terminated");
		}
		error->hint = pstrdup("Retry the transaction.  If the remote server is a standby, consider hot_standby_feedback or a larger max_standby_streaming_delay there.");
	}
}

/* An error that was noticed here, not reported by the remote. */
static void
set_error(RemoteError *error, int sqlstate, const char *message,
		  const char *detail)
{
	memset(error, 0, sizeof(*error));
	error->sqlstate = sqlstate;
	error->message = pstrdup(message);
	error->detail = detail ? pstrdup(detail) : NULL;
}

/*
 * Raise (or log) a remote error.  `pool` may be NULL.
 */
void
connection_report(int elevel, const RemoteError *error, ConnectionPool *pool,
				  const char *sql)
{
	if (sql == NULL)
		sql = error->sql;
	ereport(elevel,
			(errcode(error->sqlstate),
			 error->message && *error->message ?
			 errmsg_internal("%s", error->message) :
			 errmsg("could not obtain message string for remote error"),
			 error->detail ? errdetail_internal("%s", error->detail) : 0,
			 error->hint ? errhint("%s", error->hint) : 0,
			 error->context ? errcontext("%s", error->context) : 0,
			 sql ? errcontext("remote SQL command: %s", sql) : 0));
}

/*
 * What a failed connection attempt says.  libpq gives no SQLSTATE for it, but
 * at verbose error verbosity it writes the code into the message, between the
 * severity (in whatever language) and the text.
 */
static void
fill_connect_error(RemoteError *error, PGconn *pg, const char *server_name)
{
	StringInfoData text;
	const char *line = PQerrorMessage(pg);

	memset(error, 0, sizeof(*error));
	error->sqlstate = ERRCODE_SQLCLIENT_UNABLE_TO_ESTABLISH_SQLCONNECTION;
	initStringInfo(&text);

	while (*line)
	{
		const char *end = strchrnul(line, '\n');
		const char *mark = strstr(line, ":  ");

		if (strncmp(line, "LOCATION:", 9) != 0)
		{
			if (text.len > 0)
				appendStringInfoChar(&text, '\n');
			if (mark && mark + 9 <= end && mark[8] == ':' &&
				strspn(mark + 3, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ") == 5)
			{
				error->sqlstate = MAKE_SQLSTATE(mark[3], mark[4], mark[5],
												mark[6], mark[7]);
				appendBinaryStringInfo(&text, line, mark + 3 - line);
				line = mark + 10;
			}
			appendBinaryStringInfo(&text, line, end - line);
		}
		line = *end ? end + 1 : end;
	}
	error->message = psprintf("could not connect to server \"%s\"",
							  server_name);
	error->detail = text.data;
}

/* ----------
 * Waiting
 * ----------
 */

/* How long the next sleep may be; -1: no limit, 0: the deadline passed. */
static long
sleep_limit(const WaitLimits *limits)
{
	long		timeout = -1;

	if (limits->deadline != 0)
	{
		timeout = TimestampDifferenceMilliseconds(GetCurrentTimestamp(),
												  limits->deadline);
		if (timeout <= 0)
			return 0;
	}
	if (limits->stop != NULL)
		timeout = timeout < 0 ? CONNECTION_STOP_POLL_MS : Min(timeout, CONNECTION_STOP_POLL_MS);
	return timeout;
}

/* Has the caller's condition come true, or the time run out? */
static bool
wait_is_over(const WaitLimits *limits, long timeout, RemoteError *error)
{
	if (limits->stop != NULL && limits->stop(limits->stop_arg))
	{
		memset(error, 0, sizeof(*error));
		error->stopped = true;
		return true;
	}
	if (timeout == 0)
	{
		set_error(error, ERRCODE_CONNECTION_FAILURE,
				  "timeout while waiting for the remote server", NULL);
		error->timed_out = true;
		return true;
	}
	return false;
}

/*
 * Wait until the socket of `conn` is ready for `io` (WL_SOCKET_READABLE,
 * WL_SOCKET_WRITEABLE or both).  False when the wait ended otherwise; `error`
 * says how.
 */
bool
connection_wait(Connection *conn, uint32 io, const WaitLimits *limits,
				RemoteError *error)
{
	instr_time	begin;
	instr_time	end;
	bool		ready = false;

	if (limits->no_wait)
	{
		memset(error, 0, sizeof(*error));
		error->stopped = true;
		return false;
	}
	INSTR_TIME_SET_CURRENT(begin);
	ModifyWaitEvent(conn->events, 0, io, NULL);
	for (;;)
	{
		long		timeout = sleep_limit(limits);
		WaitEvent	event;
		int			nevents;

		if (wait_is_over(limits, timeout, error))
			break;
		nevents = WaitEventSetWait(conn->events, timeout, &event, 1,
								   PG_WAIT_EXTENSION);
		if (nevents == 1 && (event.events & WL_LATCH_SET))
		{
			ResetLatch(MyLatch);
			if (!limits->no_interrupts)
				CHECK_FOR_INTERRUPTS();
		}
		if (nevents == 1 && (event.events & io))
		{
			ready = true;
			break;
		}
	}
	INSTR_TIME_SET_CURRENT(end);
	INSTR_TIME_SUBTRACT(end, begin);
	conn->wait_seconds += INSTR_TIME_GET_DOUBLE(end);
	return ready;
}

/* ----------
 * Commands
 * ----------
 */

/* Free what the last connection_exec returned. */
void
connection_clear_results(Connection *conn)
{
	while (conn->nresults > 0)
		PQclear(conn->results[--conn->nresults]);
}

/* Hand a PGresult to the connection, which owns it from now on. */
static void
keep_result(Connection *conn, PGresult *result)
{
	/* The room was made before the result existed: nothing can fail now. */
	Assert(conn->nresults < conn->maxresults);
	conn->results[conn->nresults++] = result;
}

static void
make_room_for_result(Connection *conn)
{
	if (conn->nresults < conn->maxresults)
		return;
	conn->maxresults *= 2;
	conn->results = repalloc(conn->results,
							 conn->maxresults * sizeof(PGresult *));
}

/*
 * Send one message, which may hold several statements.
 */
bool
connection_send(Connection *conn, const char *sql, const WaitLimits *limits,
				RemoteError *error)
{
	if (connection_log_sql)
		ereport(LOG,
				(errmsg_internal("tidrange_fdw remote SQL (%d): %s",
								 PQbackendPID(conn->pg), sql),
				 errhidestmt(true), errhidecontext(true)));

	conn->round_trips++;
	if (!PQsendQuery(conn->pg, sql))
	{
		connection_fill_error(error, conn, NULL);
		return false;
	}
	for (;;)
	{
		int			pending = PQflush(conn->pg);

		if (pending == 0)
			return true;
		if (pending < 0)
		{
			connection_fill_error(error, conn, NULL);
			return false;
		}
		if (!connection_wait(conn, WL_SOCKET_READABLE | WL_SOCKET_WRITEABLE,
							 limits, error))
			return false;
		if (!connection_consume(conn))
		{
			connection_fill_error(error, conn, NULL);
			return false;
		}
	}
}

/*
 * Take what has come over the socket.  False: the connection is broken.
 *
 * A part of an encrypted record may be left in the library that decrypted it,
 * where it does not make the socket readable: who waited for that would wait for
 * ever.  A read takes 8 kB at least and a record has 16 kB at most, so that
 * three reads leave nothing.
 */
bool
connection_consume(Connection *conn)
{
	int			times = PQsslInUse(conn->pg) || PQgssEncInUse(conn->pg) ? 3 : 1;

	while (times-- > 0)
	{
		if (!PQconsumeInput(conn->pg))
			return false;
	}
	return true;
}

/*
 * The next result of what was sent, NULL at the end, or NULL with error->stopped
 * or error->sqlstate set when the wait ended early.  The caller clears it.
 */
PGresult *
connection_get_result(Connection *conn, const WaitLimits *limits,
					  RemoteError *error)
{
	memset(error, 0, sizeof(*error));
	while (PQisBusy(conn->pg))
	{
		if (!limits->no_wait &&
			!connection_wait(conn, WL_SOCKET_READABLE, limits, error))
			return NULL;
		if (connection_consume(conn))
		{
			if (limits->no_wait && PQisBusy(conn->pg))
			{
				error->stopped = true;
				return NULL;
			}
		}
		else
		{
			/* A broken connection still yields its last result. */
			if (PQisBusy(conn->pg))
			{
				connection_fill_error(error, conn, NULL);
				return NULL;
			}
			break;
		}
	}
	return PQgetResult(conn->pg);
}

/*
 * Send `sql` and collect its results in conn->results, where they stay until
 * the next command.  False on the first error; whatever the remote still had to
 * say has been read then, unless the wait itself failed.
 */
bool
connection_exec(Connection *conn, const char *sql, const WaitLimits *limits,
				RemoteError *error)
{
	bool		failed = false;

	connection_clear_results(conn);
	if (!connection_send(conn, sql, limits, error))
		return false;
	for (;;)
	{
		RemoteError wait_error;
		PGresult   *result;
		ExecStatusType status;

		make_room_for_result(conn);
		result = connection_get_result(conn, limits, &wait_error);
		if (wait_error.stopped || wait_error.sqlstate != 0)
		{
			if (!failed)
				*error = wait_error;
			return false;
		}
		if (result == NULL)
			return !failed;
		keep_result(conn, result);
		status = PQresultStatus(result);
		if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK && !failed)
		{
			failed = true;
			connection_fill_error(error, conn, result);
			error->sql = pstrdup(sql);
			/* A COPY here is a bug; reading on would never end. */
			if (status == PGRES_COPY_OUT || status == PGRES_COPY_IN)
				return false;
		}
	}
}

/* Is the other end on this machine?  A local proxy counts as one. */
bool
connection_is_local(const Connection *conn)
{
	struct sockaddr_storage here = {0};
	struct sockaddr_storage there = {0};
	socklen_t	here_size = sizeof(here);
	socklen_t	there_size = sizeof(there);

	if (getsockname(PQsocket(conn->pg), (struct sockaddr *) &here,
					&here_size) != 0 ||
		getpeername(PQsocket(conn->pg), (struct sockaddr *) &there,
					&there_size) != 0 ||
		here.ss_family != there.ss_family)
		return false;
	if (here.ss_family == AF_INET)
		return memcmp(&((struct sockaddr_in *) &here)->sin_addr,
					  &((struct sockaddr_in *) &there)->sin_addr,
					  sizeof(struct in_addr)) == 0;
	if (here.ss_family == AF_INET6)
		return memcmp(&((struct sockaddr_in6 *) &here)->sin6_addr,
					  &((struct sockaddr_in6 *) &there)->sin6_addr,
					  sizeof(struct in6_addr)) == 0;
	return here.ss_family == AF_UNIX;
}

/* The remote's version number, 150004 for 15.4. */
int
connection_server_version(const Connection *conn)
{
	return PQserverVersion(conn->pg);
}

/* ----------
 * Opening and closing
 * ----------
 */

/* Nobody reads from the connection any more; the stream learns of it. */
void
connection_return(Connection *conn)
{
	if (conn->borrower != NULL)
		*conn->borrower = NULL;
	conn->borrower = NULL;
}

/* Close and forget.  Never blocks, never fails. */
void
connection_close(Connection *conn)
{
	ConnectionPool *pool = conn->pool;

	/* The stream may outlive us: an aborted scan's memory goes last. */
	connection_return(conn);
	connection_clear_results(conn);
	if (conn->events != NULL)
		FreeWaitEventSet(conn->events);
	if (conn->pg != NULL)
	{
		PQfinish(conn->pg);
		ReleaseExternalFD();
	}
	if (pool->control == conn)
		pool->control = NULL;
	dlist_delete(&conn->node);
	list_free(conn->locked);
	pfree(conn->results);
	pfree(conn);
}

/*
 * A user who is not a superuser must not travel on the server's own
 * credentials: a password is asked for and must have been used.  (As
 * postgres_fdw; the password is checked for before connecting, its use after.)
 */
static bool
check_password_rule(ConnectionPool *pool, UserMapping *user,
					const char *const *keywords, const char *const *values,
					PGconn *pg, RemoteError *error)
{
	int			i;

	if (superuser_arg(pool->userid) || !option_password_required(user))
		return true;

	if (pg != NULL)
	{
		if (PQconnectionUsedPassword(pg))
			return true;
		set_error(error, ERRCODE_S_R_E_PROHIBITED_SQL_STATEMENT_ATTEMPTED,
				  "password is required",
				  "Non-superuser cannot connect if the server does not request a password.");
		error->hint = pstrdup("Target server's authentication method must be changed or password_required=false set in the user mapping attributes.");
		return false;
	}

	for (i = 0; keywords[i] != NULL; i++)
	{
		if (strcmp(keywords[i], "password") == 0 && values[i][0] != '\0')
			return true;
	}
	set_error(error, ERRCODE_S_R_E_PROHIBITED_SQL_STATEMENT_ATTEMPTED,
			  "password is required",
			  "Non-superusers must provide a password in the user mapping.");
	return false;
}

/* The parameters of a connection and when to give up on it. */
typedef struct ConnectParams
{
	const char **keywords;
	const char **values;
	int			count;
	int			timeout_ms;		/* 0: none */
} ConnectParams;

/* Add a parameter unless the user gave it. */
static void
add_default(ConnectParams *params, const char *keyword, const char *value)
{
	int			i;

	for (i = 0; i < params->count; i++)
	{
		if (strcmp(params->keywords[i], keyword) == 0)
			return;
	}
	params->keywords[params->count] = keyword;
	params->values[params->count++] = value;
}

/* Where to connect is said by the peer alone: drop what the options say. */
static void
set_peer(ConnectParams *params, const ConnectionPeer *peer)
{
	int			kept = 0;
	int			i;

	for (i = 0; i < params->count; i++)
	{
		if (strcmp(params->keywords[i], "host") == 0 ||
			strcmp(params->keywords[i], "hostaddr") == 0 ||
			strcmp(params->keywords[i], "port") == 0)
			continue;
		params->keywords[kept] = params->keywords[i];
		params->values[kept++] = params->values[i];
	}
	params->count = kept;

	/* host stays beside hostaddr: verify-full and passfile look at it. */
	add_default(params, "host", peer->host);
	if (peer->hostaddr && peer->hostaddr[0] != '\0')
		add_default(params, "hostaddr", peer->hostaddr);
	add_default(params, "port", peer->port);
}

static void
build_params(ConnectParams *params, ForeignServer *server, UserMapping *user,
			 const ConnectionPeer *peer, const char *role)
{
	int			i;

	params->count = option_connection_params(server, user, 12,
											 &params->keywords,
											 &params->values);
	if (peer != NULL)
		set_peer(params, peer);

	params->timeout_ms = CONNECT_TIMEOUT_MS;
	for (i = 0; i < params->count; i++)
	{
		/* as with libpq: zero or less waits for ever */
		if (strcmp(params->keywords[i], "connect_timeout") == 0)
			params->timeout_ms = Max(Min(atoi(params->values[i]), 86400), 0) * 1000;
	}

	add_default(params, "application_name",
				psprintf("tidrange_fdw %d %s", MyProcPid, role));
	/* A peer that vanished must not hold a query, nor us its snapshot. */
	add_default(params, "keepalives_idle", "30");
	add_default(params, "keepalives_interval", "10");
	add_default(params, "keepalives_count", "3");
	add_default(params, "tcp_user_timeout", "60000");
	/* The remote converts to what this database stores. */
	add_default(params, "client_encoding", GetDatabaseEncodingName());
	params->keywords[params->count] = NULL;
	params->values[params->count] = NULL;
}

/* Drive the connection attempt to its end, in the socket's own time. */
static bool
poll_connect(PGconn *pg, const WaitLimits *limits, RemoteError *error)
{
	PostgresPollingStatusType status = PGRES_POLLING_WRITING;

	while (status != PGRES_POLLING_OK)
	{
		int			io = status == PGRES_POLLING_READING ?
		WL_SOCKET_READABLE : WL_SOCKET_WRITEABLE;
		long		timeout = sleep_limit(limits);
		int			events;

		if (wait_is_over(limits, timeout, error))
			return false;
		events = WaitLatchOrSocket(MyLatch,
								   io | WL_LATCH_SET | WL_EXIT_ON_PM_DEATH |
								   (timeout >= 0 ? WL_TIMEOUT : 0),
								   PQsocket(pg), timeout, PG_WAIT_EXTENSION);
		if (events & WL_LATCH_SET)
		{
			ResetLatch(MyLatch);
			CHECK_FOR_INTERRUPTS();
		}
		if (!(events & io))
			continue;
		status = PQconnectPoll(pg);
		if (status == PGRES_POLLING_FAILED)
		{
			memset(error, 0, sizeof(*error));
			return false;
		}
	}
	return true;
}

/* A pool entry for a connection that does not exist yet. */
static Connection *
new_connection(ConnectionPool *pool)
{
	Connection *conn = MemoryContextAllocZero(TopMemoryContext,
											  sizeof(Connection));

	conn->maxresults = 8;
	conn->results = MemoryContextAlloc(TopMemoryContext,
									   conn->maxresults * sizeof(PGresult *));
	conn->pool = pool;
	dlist_push_tail(&pool->connections, &conn->node);
	return conn;
}

/* Connect `conn` as params say; errors are left in `error`. */
static bool
connect_session(Connection *conn, const ConnectParams *params,
				const char *server_name, const WaitLimits *limits,
				RemoteError *error)
{
	WaitLimits	connect_limits = *limits;

	if (params->timeout_ms > 0)
	{
		TimestampTz deadline = connection_deadline(params->timeout_ms);

		if (connect_limits.deadline == 0 || connect_limits.deadline > deadline)
			connect_limits.deadline = deadline;
	}

	if (!AcquireExternalFD())
	{
		set_error(error, ERRCODE_SQLCLIENT_UNABLE_TO_ESTABLISH_SQLCONNECTION,
				  psprintf("could not connect to server \"%s\"", server_name),
				  "There are too many open files on the local server.");
		error->hint = pstrdup("Raise the server's max_files_per_process and/or \"ulimit -n\" limits.");
		return false;
	}
	conn->pg = PQconnectStartParams(params->keywords, params->values, false);
	if (conn->pg == NULL)
	{
		ReleaseExternalFD();
		set_error(error, ERRCODE_OUT_OF_MEMORY, "out of memory", NULL);
		return false;
	}
	if (PQstatus(conn->pg) == CONNECTION_BAD)
	{
		fill_connect_error(error, conn->pg, server_name);
		return false;
	}
	PQsetErrorVerbosity(conn->pg, PQERRORS_VERBOSE);
	if (!poll_connect(conn->pg, &connect_limits, error))
	{
		if (error->timed_out)
		{
			set_error(error,
					  ERRCODE_SQLCLIENT_UNABLE_TO_ESTABLISH_SQLCONNECTION,
					  psprintf("could not connect to server \"%s\"",
							   server_name), "timeout expired");
			error->timed_out = true;
		}
		else if (!error->stopped)
			fill_connect_error(error, conn->pg, server_name);
		return false;
	}
	PQsetErrorVerbosity(conn->pg, PQERRORS_DEFAULT);
	PQsetnonblocking(conn->pg, 1);
	conn->events = compat_create_wait_event_set(3);
	AddWaitEventToSet(conn->events, WL_SOCKET_READABLE, PQsocket(conn->pg),
					  NULL, NULL);
	AddWaitEventToSet(conn->events, WL_LATCH_SET, PGINVALID_SOCKET, MyLatch,
					  NULL);
	AddWaitEventToSet(conn->events, WL_EXIT_ON_PM_DEATH, PGINVALID_SOCKET,
					  NULL, NULL);
	return true;
}

/*
 * Remote notices go to our log, not to the log on the server's standard error
 * that libpq would use.
 */
static void
receive_notice(void *arg, const PGresult *result)
{
	const char *message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);

	if (message)
		ereport(DEBUG1, (errmsg_internal("remote notice: %s", message)));
}

/*
 * Open one more session.  `peer` pins it to another session's server, NULL
 * follows the options; `role` goes into its application_name.  NULL when it
 * failed or the wait was stopped; `error` says why.
 */
Connection *
connection_open(ConnectionPool *pool, const ConnectionPeer *peer,
				const char *role, const WaitLimits *limits, RemoteError *error)
{
	ForeignServer *server = GetForeignServer(pool->serverid);
	UserMapping *user = GetUserMapping(pool->userid, pool->serverid);
	ConnectParams params;
	Connection *conn;

	build_params(&params, server, user, peer, role);
	if (!check_password_rule(pool, user, params.keywords, params.values, NULL,
							 error))
		return NULL;

	conn = new_connection(pool);
	if (!connect_session(conn, &params, server->servername, limits, error) ||
		!check_password_rule(pool, user, NULL, NULL, conn->pg, error))
	{
		connection_close(conn);
		return NULL;
	}
	PQsetNoticeReceiver(conn->pg, receive_notice, NULL);
	ereport(DEBUG2,
			(errmsg_internal("tidrange_fdw: new connection to server \"%s\" (%s)",
							 server->servername, role)));
	return conn;
}

/* ----------
 * Recovering from an abandoned answer
 * ----------
 */

/* Read and drop everything up to the end of the answer. */
bool
connection_drain(Connection *conn, const WaitLimits *limits,
				 RemoteError *error)
{
	for (;;)
	{
		PGresult   *result = connection_get_result(conn, limits, error);
		ExecStatusType status;

		if (result == NULL)
			return !error->stopped && error->sqlstate == 0;
		status = PQresultStatus(result);
		PQclear(result);
		while (status == PGRES_COPY_OUT)
		{
			char	   *row = NULL;
			int			length = PQgetCopyData(conn->pg, &row, 1);

			if (length > 0)
				PQfreemem(row);
			else if (length < 0)
				break;
			else if (!connection_wait(conn, WL_SOCKET_READABLE, limits, error))
				return false;
			else if (!connection_consume(conn))
			{
				connection_fill_error(error, conn, NULL);
				return false;
			}
		}
	}
}

/* Go back to the standing savepoint, or just to rest where there is none. */
static bool
return_to_savepoint(Connection *conn, const WaitLimits *limits)
{
	RemoteError error;
	int			tries;

	if (!conn->has_savepoint)
		return PQstatus(conn->pg) == CONNECTION_OK;

	/* A cancel that came late may hit the first try. */
	for (tries = 0; tries < 2; tries++)
	{
		if (connection_exec(conn, CONNECTION_TO_SAVEPOINT, limits, &error))
			return true;
		if (error.sqlstate != ERRCODE_QUERY_CANCELED)
			break;
	}
	return false;
}

/*
 * Make a connection usable whose command failed or was given up in mid-answer:
 * cancel it, read its end, go back to before it.  Lock and snapshot survive.
 * If that is not possible within the limits the connection is closed, and false
 * is returned.
 */
bool
connection_recover(Connection *conn, const WaitLimits *limits)
{
	RemoteError error;
	bool		good = true;

	Assert(limits->deadline != 0);
	connection_clear_results(conn);
	if (PQtransactionStatus(conn->pg) == PQTRANS_ACTIVE)
	{
		cancel_send(conn->pg, limits->deadline);
		good = connection_drain(conn, limits, &error);
	}
	conn->dirty = false;
	if (good && return_to_savepoint(conn, limits))
		return true;
	if (conn->is_control)
		connection_lose_control(conn->pool);
	else
		connection_close(conn);
	return false;
}

/* Remember that the connection holds the lock of a remote relation. */
void
connection_note_lock(Connection *conn, Oid oid)
{
	MemoryContext oldcontext = MemoryContextSwitchTo(TopMemoryContext);

	conn->locked = list_append_unique_oid(conn->locked, oid);
	MemoryContextSwitchTo(oldcontext);
}
