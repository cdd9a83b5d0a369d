/*-------------------------------------------------------------------------
 *
 * cancel.c
 *	  Asks a remote session to stop what it runs, within a deadline.
 *
 * libpq before 17 can only cancel by a blocking connect, which on a dead
 * network outlasts every patience.  There the address is tried first with a
 * socket of our own, non-blocking and under the deadline; only where that
 * answers does PQcancel run.  From 17 on the cancel itself is non-blocking.
 *
 * Nothing here raises an error or looks at interrupts: transaction callbacks
 * call it.
 *
 *-------------------------------------------------------------------------
 */
#include "postgres.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "compat.h"
#include "cancel.h"
#include "miscadmin.h"
#include "storage/latch.h"

/* Milliseconds until the deadline, at least 0. */
static long
cancel_time_left(TimestampTz deadline)
{
	return TimestampDifferenceMilliseconds(GetCurrentTimestamp(), deadline);
}

/* Wait for the socket; false when the deadline passed. */
static bool
cancel_wait(pgsocket sock, int io, TimestampTz deadline)
{
	for (;;)
	{
		long		left = cancel_time_left(deadline);
		int			events;

		if (left <= 0)
			return false;
		/* The latch stays out of it: whoever set it is served afterwards. */
		events = WaitLatchOrSocket(NULL, io | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
								   sock, left, PG_WAIT_EXTENSION);
		if (events & io)
			return true;
	}
}

#ifdef LIBPQ_HAS_ASYNC_CANCEL

/*
 * Ask the server to stop the running command of `pg`.  True if the request was
 * delivered before the deadline; not that there was anything to stop.
 */
bool
cancel_send(PGconn *pg, TimestampTz deadline)
{
	PGcancelConn *cancel = PQcancelCreate(pg);
	bool		delivered = false;

	if (cancel == NULL)
		return false;
	if (PQcancelStart(cancel))
	{
		for (;;)
		{
			PostgresPollingStatusType status = PQcancelPoll(cancel);

			if (status == PGRES_POLLING_OK)
				delivered = true;
			if (status == PGRES_POLLING_OK || status == PGRES_POLLING_FAILED)
				break;
			if (!cancel_wait(PQcancelSocket(cancel),
							 status == PGRES_POLLING_READING ?
							 WL_SOCKET_READABLE : WL_SOCKET_WRITEABLE,
							 deadline))
				break;
		}
	}
	PQcancelFinish(cancel);
	return delivered;
}

#else

/* Whether the server of `pg` still takes connections. */
static bool
cancel_server_answers(PGconn *pg, TimestampTz deadline)
{
	struct sockaddr_storage address;
	socklen_t	length = sizeof(address);
	pgsocket	sock;
	bool		answers = false;

	if (getpeername(PQsocket(pg), (struct sockaddr *) &address, &length) != 0)
		return false;
	sock = socket(address.ss_family, SOCK_STREAM, 0);
	if (sock == PGINVALID_SOCKET)
		return false;
	if (fcntl(sock, F_SETFL, O_NONBLOCK) == 0)
	{
		if (connect(sock, (struct sockaddr *) &address, length) == 0)
			answers = true;
		else if (errno == EINPROGRESS &&
				 cancel_wait(sock, WL_SOCKET_WRITEABLE, deadline))
		{
			int			failure = 0;
			socklen_t	size = sizeof(failure);

			answers = getsockopt(sock, SOL_SOCKET, SO_ERROR,
								 &failure, &size) == 0 && failure == 0;
		}
	}
	close(sock);
	return answers;
}

/*
 * Ask the server to stop the running command of `pg`.  True if the request was
 * delivered before the deadline; not that there was anything to stop.
 */
bool
cancel_send(PGconn *pg, TimestampTz deadline)
{
	PGcancel   *cancel;
	char		message[256];
	bool		delivered;

	if (!cancel_server_answers(pg, deadline))
		return false;
	cancel = PQgetCancel(pg);
	if (cancel == NULL)
		return false;
	delivered = PQcancel(cancel, message, sizeof(message)) != 0;
	PQfreeCancel(cancel);
	return delivered;
}

#endif
