#include "images/agent/bridge_program.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>

#include "common/clock.h"
#include "common/fd.h"
#include "common/slice.h"
#include "images/agent/bridges.h"

#define WAY_BYTES 65536 /* of each way, what a pipe holds */
/* Pieces of one way before the other one is looked at. */
#define WAY_PIECES 8
/* A sandbox's first link may come before its agent listens. */
#define CONNECT_MS 3000
#define CONNECT_AGAIN_MS 10

enum bridge_way_state {
	WAY_OPEN,
	WAY_ENDED
};

/* From one descriptor to another, neither of which blocks. */
struct bridge_way {
	int from;
	int to;
	size_t at; /* bytes[at..end) are not written yet */
	size_t end;
	uint8_t bytes[WAY_BYTES];
};

static bool
way_is_empty(const struct bridge_way *w)
{
	return w->at == w->end;
}

static bool
is_for_later(void)
{
	return errno == EAGAIN || errno == EINTR;
}

/* Reads when all that was read is written: nothing gathers here. */
static enum bridge_way_state
way_move(struct bridge_way *w)
{
	for (int i = 0; i < WAY_PIECES; i++) {
		ssize_t n;

		if (way_is_empty(w)) {
			n = read(w->from, w->bytes, sizeof(w->bytes));
			if (n <= 0)
				return n == -1 && is_for_later() ? WAY_OPEN :
								   WAY_ENDED;
			w->at = 0;
			w->end = (size_t)n;
		}
		n = write(w->to, w->bytes + w->at, w->end - w->at);
		if (n == -1)
			return is_for_later() ? WAY_OPEN : WAY_ENDED;
		w->at += (size_t)n;
	}
	return WAY_OPEN;
}

/* Whether an end was seen.  Where there is something to read that comes
 * first; an end behind bytes that nobody takes counts as one, too. */
static bool
has_ended(const struct pollfd *p)
{
	return (p->revents & (POLLERR | POLLNVAL)) != 0 ||
	    ((p->revents & (POLLHUP | POLLRDHUP)) != 0 &&
		(p->revents & POLLIN) == 0);
}

static void
join(int agent)
{
	static struct bridge_way down, up;
	enum {
		IN,
		OUT,
		AGENT,
		NENDS
	};

	down.from = STDIN_FILENO;
	down.to = up.from = agent;
	up.to = STDOUT_FILENO;
	for (;;) {
		struct pollfd p[NENDS] = {
		    [IN] = {STDIN_FILENO, way_is_empty(&down) ? POLLIN : 0, 0},
		    [OUT] = {STDOUT_FILENO, way_is_empty(&up) ? 0 : POLLOUT, 0},
		    [AGENT] = {agent,
			(short)(POLLRDHUP |
			    (way_is_empty(&down) ? 0 : POLLOUT) |
			    (way_is_empty(&up) ? POLLIN : 0)),
			0}};

		if (poll(p, NENDS, -1) == -1 && errno != EINTR)
			return;
		if (way_move(&down) == WAY_ENDED || way_move(&up) == WAY_ENDED)
			return;
		/* What the worker said last goes first, also when it is gone
		 * and has closed both. */
		if (has_ended(&p[IN]) || has_ended(&p[AGENT]) ||
		    (has_ended(&p[OUT]) && (p[IN].revents & POLLIN) == 0))
			return;
	}
}

/* Waits while the queue of those who come in is full. */
static int
connect_once(void)
{
	AUTO(auto_close) int fd = -1;
	struct sockaddr_un sa;
	socklen_t len = bridges_address(&sa);
	int out;

	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd == -1 || connect(fd, (const struct sockaddr *)&sa, len) == -1)
		return -1;
	out = fd;
	fd = -1;
	return out;
}

static int
connect_to_agent(void)
{
	const struct timespec pause = {0, CONNECT_AGAIN_MS * 1000000};
	const uint64_t until = clock_mono_ms() + CONNECT_MS;
	int fd;

	for (;;) {
		fd = connect_once();
		if (fd != -1 || clock_mono_ms() >= until ||
		    (errno != ECONNREFUSED && errno != EINTR))
			return fd;
		(void)nanosleep(&pause, NULL);
	}
}

static void
make_nonblocking(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	if (flags != -1)
		(void)fcntl(fd, F_SETFL, flags | O_NONBLOCK);
}

int
bridge_program_run(void)
{
	sigset_t all;
	int fd;

	/* The secret of the link passes through here: nobody in the sandbox
	 * may look in. */
	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	/* Of the signals that root of the sandbox sends to all that there is
	 * only SIGKILL and SIGSTOP do harm, and a pipe without a reader is an
	 * error of write. */
	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, NULL);
	slice_shorten(SLICE_OWN);
	fd = connect_to_agent();
	if (fd == -1) {
		(void)dprintf(STDERR_FILENO, "agent bridge: connect: %s\n",
		    strerror(errno));
		return 1;
	}
	make_nonblocking(STDIN_FILENO);
	make_nonblocking(STDOUT_FILENO);
	make_nonblocking(fd);
	join(fd);
	return 0;
}
