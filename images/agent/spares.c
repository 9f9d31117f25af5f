#include "images/agent/spares.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>

#include "images/agent/command.h"

static struct spare spares[SPARES_MAX];
static unsigned int nspares;

int
spares_make(struct spare *out)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) == -1)
		return errno;
	/* The reading end alone: the program's own must block. */
	if (fcntl(fds[0], F_SETFL, O_NONBLOCK) == -1) {
		int error = errno;

		(void)close(fds[0]);
		(void)close(fds[1]);
		return error;
	}
	*out = (struct spare){.fd = fds[0], .write_end = fds[1]};
	return 0;
}

/* Nothing can come of it before a command has it. */
static void
early_cb(uint32_t events, void *arg)
{
	(void)events;
	(void)arg;
}

static bool
make_ready(struct loop *loop, struct spare *s)
{
	if (spares_make(s) != 0)
		return false;
	/* so that /dev/stdout can be opened by name */
	if (fchown(s->fd, COMMAND_UID, COMMAND_UID) == 0)
		s->token = loop_add(loop, s->fd, EPOLLIN, early_cb, NULL);
	if (s->token != 0)
		return true;
	(void)close(s->fd);
	(void)close(s->write_end);
	return false;
}

void
spares_fill(struct loop *loop)
{
	while (nspares < SPARES_MAX && make_ready(loop, &spares[nspares]))
		nspares++;
}

bool
spares_take(struct loop *loop, loop_cb cb, void *arg, struct spare *out)
{
	if (nspares == 0)
		return false;
	*out = spares[--nspares];
	loop_rebind(loop, out->token, cb, arg);
	return true;
}
