/*
 * slowlink.c: a slow network between two clusters of one machine.
 *
 * Listens on a unix socket, passes each connection on to another one, and holds
 * what travels back: every byte arrives DELAY_MS later than it was sent, in
 * each direction, and a connection carries at most MBIT/s each way (0 is no
 * limit).  Connections do not share that limit, so that it is the limit of a
 * flow, as a long line or a provider imposes it, not of the line.
 *
 *	slowlink LISTEN_PATH TARGET_PATH DELAY_MS MBIT
 *
 * runs until it is ended.  Each connection is a process of its own.  What has
 * been taken and not yet delivered is bounded (WINDOW_SIZE, or what the limit
 * allows in a fifth of a second), as a TCP window does it, and large enough that the
 * delay alone limits no stream below 400 MB/s.  What TCP does beyond this, slow
 * start and the answer to losses, is not there.
 *
 * Unix sockets, because only the owner of their directory reaches them: the
 * clusters behind it trust everybody who does.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define WINDOW_SIZE (8 * 1024 * 1024)
#define MIN_WINDOW_SIZE (64 * 1024)
#define PIECE_SIZE (64 * 1024)
#define PIECE_SIZE_LIMITED (8 * 1024)
#define MAX_PIECES 65536

/* Bytes that were taken together, and when they are to be delivered. */
typedef struct Piece
{
	uint64_t	due;
	size_t		size;
} Piece;

/* One direction of a connection: rings of bytes, and of the pieces they are. */
typedef struct Lane
{
	int			from;
	int			to;
	char	   *bytes;
	uint64_t	taken;			/* bytes so far; those beyond delivered are held */
	uint64_t	delivered;
	Piece	   *pieces;
	uint64_t	first;
	uint64_t	beyond;
	uint64_t	free_at;		/* when the limit allows the next byte */
	bool		ended;			/* the sender has said all */
	bool		closed;			/* and the receiver knows */
} Lane;

static uint64_t delay_ns;
static double bytes_per_ns;		/* 0: no limit */
static size_t window_size = WINDOW_SIZE;
static size_t piece_size = PIECE_SIZE;

static void
fail(const char *what)
{
	fprintf(stderr, "slowlink: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* To be ended is the regular end; the shell need not report it. */
static void
end(int signal_number)
{
	_exit(0);
}

static uint64_t
now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t) now.tv_sec * 1000000000 + (uint64_t) now.tv_nsec;
}

static struct sockaddr_un
address_of(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};

	if (strlen(path) >= sizeof(address.sun_path))
	{
		errno = ENAMETOOLONG;
		fail(path);
	}
	strcpy(address.sun_path, path);
	return address;
}

static void
lane_init(Lane *lane, int from, int to)
{
	memset(lane, 0, sizeof(*lane));
	lane->from = from;
	lane->to = to;
	lane->bytes = malloc(WINDOW_SIZE);
	lane->pieces = malloc(MAX_PIECES * sizeof(Piece));
	if (lane->bytes == NULL || lane->pieces == NULL)
		fail("memory");
}

static bool
lane_may_take(const Lane *lane)
{
	return !lane->ended &&
		lane->taken - lane->delivered < window_size &&
		lane->beyond - lane->first < MAX_PIECES;
}

/* Take what the sender has, and note when it will be there. */
static void
lane_take(Lane *lane)
{
	size_t		at = lane->taken % WINDOW_SIZE;
	size_t		size = window_size - (lane->taken - lane->delivered);
	ssize_t		got;
	uint64_t	now;
	Piece	   *piece;

	if (size > piece_size)
		size = piece_size;
	if (size > WINDOW_SIZE - at)
		size = WINDOW_SIZE - at;
	got = read(lane->from, lane->bytes + at, size);
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (got <= 0)
	{
		lane->ended = true;
		return;
	}
	now = now_ns();
	if (lane->free_at < now)
		lane->free_at = now;
	if (bytes_per_ns > 0)
		lane->free_at += (uint64_t) ((double) got / bytes_per_ns);
	piece = &lane->pieces[lane->beyond++ % MAX_PIECES];
	piece->due = lane->free_at + delay_ns;
	piece->size = (size_t) got;
	lane->taken += (uint64_t) got;
}

static bool
lane_has_due(const Lane *lane, uint64_t now)
{
	return lane->first < lane->beyond &&
		lane->pieces[lane->first % MAX_PIECES].due <= now;
}

/* Deliver what is due.  False: the receiver is gone. */
static bool
lane_deliver(Lane *lane)
{
	while (lane_has_due(lane, now_ns()))
	{
		Piece	   *piece = &lane->pieces[lane->first % MAX_PIECES];
		ssize_t		sent = send(lane->to, lane->bytes + lane->delivered % WINDOW_SIZE,
								piece->size, MSG_NOSIGNAL);

		if (sent < 0)
			return errno == EAGAIN || errno == EINTR;
		lane->delivered += (uint64_t) sent;
		piece->size -= (size_t) sent;
		if (piece->size > 0)
			return true;
		lane->first++;
	}
	if (lane->ended && lane->first == lane->beyond && !lane->closed)
	{
		shutdown(lane->to, SHUT_WR);
		lane->closed = true;
	}
	return true;
}

/*
 * Sleep until a socket of the connection is ready or something is due.  A lane
 * with something overdue waits for its receiver instead of the clock.
 */
static void
wait_for_work(Lane *lanes)
{
	struct pollfd fds[4];
	struct timespec timeout;
	uint64_t	now = now_ns();
	uint64_t	next = UINT64_MAX;
	int			count = 0;
	int			i;

	for (i = 0; i < 2; i++)
	{
		Lane	   *lane = &lanes[i];

		if (lane_may_take(lane))
			fds[count++] = (struct pollfd) {lane->from, POLLIN, 0};
		if (lane_has_due(lane, now))
			fds[count++] = (struct pollfd) {lane->to, POLLOUT, 0};
		else if (lane->first < lane->beyond &&
				 lane->pieces[lane->first % MAX_PIECES].due < next)
			next = lane->pieces[lane->first % MAX_PIECES].due;
	}
	if (next != UINT64_MAX)
	{
		timeout.tv_sec = (time_t) ((next - now) / 1000000000);
		timeout.tv_nsec = (long) ((next - now) % 1000000000);
	}
	if (ppoll(fds, (nfds_t) count, next == UINT64_MAX ? NULL : &timeout, NULL) < 0 && errno != EINTR)
		fail("ppoll");
}

static void
carry(int client, int server)
{
	Lane		lanes[2];
	int			i;

	fcntl(client, F_SETFL, O_NONBLOCK);
	fcntl(server, F_SETFL, O_NONBLOCK);
	lane_init(&lanes[0], client, server);
	lane_init(&lanes[1], server, client);
	while (!lanes[0].closed || !lanes[1].closed)
	{
		for (i = 0; i < 2; i++)
		{
			if (lane_may_take(&lanes[i]))
				lane_take(&lanes[i]);
			if (!lane_deliver(&lanes[i]))
				return;
		}
		if (!lanes[0].closed || !lanes[1].closed)
			wait_for_work(lanes);
	}
}

static int
listen_at(const char *path)
{
	struct sockaddr_un address = address_of(path);
	int			fd = socket(AF_UNIX, SOCK_STREAM, 0);

	unlink(path);
	if (fd < 0 || bind(fd, (struct sockaddr *) &address, sizeof(address)) < 0 || listen(fd, 64) < 0)
		fail(path);
	return fd;
}

static int
connect_to(const char *path)
{
	struct sockaddr_un address = address_of(path);
	int			fd = socket(AF_UNIX, SOCK_STREAM, 0);

	if (fd < 0 || connect(fd, (struct sockaddr *) &address, sizeof(address)) < 0)
		fail(path);
	return fd;
}

static void
read_limits(const char *delay, const char *mbit)
{
	double		window;

	delay_ns = (uint64_t) (atof(delay) * 1e6);
	bytes_per_ns = atof(mbit) * 1e6 / 8 / 1e9;
	if (bytes_per_ns <= 0)
		return;
	window = bytes_per_ns * (2e8 + 2.0 * (double) delay_ns);
	if (window < MIN_WINDOW_SIZE)
		window_size = MIN_WINDOW_SIZE;
	else if (window < WINDOW_SIZE)
		window_size = (size_t) window;
	piece_size = PIECE_SIZE_LIMITED;
}

int
main(int argc, char **argv)
{
	int			listener;

	if (argc != 5)
	{
		fputs("usage: slowlink LISTEN_PATH TARGET_PATH DELAY_MS MBIT\n", stderr);
		return 2;
	}
	read_limits(argv[3], argv[4]);
	signal(SIGTERM, end);
	signal(SIGCHLD, SIG_IGN);	/* nobody waits for the connections' processes */
	listener = listen_at(argv[1]);
	for (;;)
	{
		int			client = accept(listener, NULL, NULL);

		if (client < 0)
		{
			if (errno == EINTR || errno == ECONNABORTED)
				continue;
			fail("accept");
		}
		switch (fork())
		{
			case -1:
				fail("fork");
				break;
			case 0:
				prctl(PR_SET_PDEATHSIG, SIGTERM);
				/* The default rounds a sleep up by 50 microseconds. */
				prctl(PR_SET_TIMERSLACK, 1000);
				close(listener);
				carry(client, connect_to(argv[2]));
				_exit(0);
			default:
				close(client);
		}
	}
}
