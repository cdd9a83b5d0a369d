/*
 * drain.c: the floor for any reader of another cluster.
 *
 * Runs COPY (query) TO STDOUT (FORMAT binary) through libpq, looks at nothing
 * but where a row ends, and throws the rows away.  What this costs, in wall and
 * CPU time, a foreign-data wrapper pays as well, before it has made a single
 * tuple; so its CPU time is the measure of the wrapper's.
 *
 *	drain CONNINFO QUERY
 *
 * prints one line: rows N bytes N wall SECONDS cpu SECONDS.  Bytes are those of
 * the COPY data, without the protocol around them.  CPU time is that of the
 * whole process, user and system.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include <libpq-fe.h>

/* "PGCOPY\n\377\r\n\0", flags, and the length of an empty extension */
#define COPY_HEADER_SIZE 19

typedef struct Totals
{
	long long	rows;
	long long	bytes;
} Totals;

static void
fail(PGconn *conn, const char *what)
{
	fprintf(stderr, "drain: %s: %s", what, PQerrorMessage(conn));
	PQfinish(conn);
	exit(1);
}

static double
wall_seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double) now.tv_sec + (double) now.tv_nsec / 1e9;
}

static double
cpu_seconds(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return (double) (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
		(double) (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static void
start_copy(PGconn *conn, const char *query)
{
	size_t		size = strlen(query) + 64;
	char	   *command = malloc(size);
	PGresult   *res;

	if (command == NULL)
	{
		fputs("drain: out of memory\n", stderr);
		exit(1);
	}
	snprintf(command, size, "COPY (%s) TO STDOUT (FORMAT binary)", query);
	res = PQexec(conn, command);
	if (PQresultStatus(res) != PGRES_COPY_OUT)
		fail(conn, "COPY");
	PQclear(res);
	free(command);
}

/*
 * Does this message end with a row?  The server sends one message a row.  Its
 * header comes in front of the first row, or alone if there is none; the
 * trailer, a column count of -1, comes alone.
 */
static bool
message_has_row(const char *data, int len, bool first)
{
	if (first)
		return len > COPY_HEADER_SIZE + 2;
	return !(len == 2 && data[0] == '\377' && data[1] == '\377');
}

static Totals
drain(PGconn *conn)
{
	Totals		totals = {0, 0};
	bool		first = true;
	char	   *data;
	int			len;

	while ((len = PQgetCopyData(conn, &data, 0)) > 0)
	{
		if (message_has_row(data, len, first))
			totals.rows++;
		totals.bytes += len;
		first = false;
		PQfreemem(data);
	}
	if (len != -1)
		fail(conn, "reading the COPY stream");
	return totals;
}

/* An error of the remote query may come after its last row. */
static void
finish_copy(PGconn *conn)
{
	PGresult   *res;

	while ((res = PQgetResult(conn)) != NULL)
	{
		if (PQresultStatus(res) != PGRES_COMMAND_OK)
			fail(conn, "COPY");
		PQclear(res);
	}
}

int
main(int argc, char **argv)
{
	double		start = wall_seconds();
	PGconn	   *conn;
	Totals		totals;

	if (argc != 3)
	{
		fputs("usage: drain CONNINFO QUERY\n", stderr);
		return 2;
	}
	conn = PQconnectdb(argv[1]);
	if (PQstatus(conn) != CONNECTION_OK)
		fail(conn, "connecting");
	start_copy(conn, argv[2]);
	totals = drain(conn);
	finish_copy(conn);
	PQfinish(conn);

	printf("rows %lld bytes %lld wall %.3f cpu %.3f\n",
		   totals.rows, totals.bytes, wall_seconds() - start, cpu_seconds());
	return 0;
}
