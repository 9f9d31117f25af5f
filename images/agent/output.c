#include "images/agent/output.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>

#include "images/agent/owners.h"

enum output_took {
	TAKEN_SOME,
	TAKEN_NONE_NOW,
	TAKEN_END
};

void
output_init(struct output *o, struct loop *loop, unsigned int stream,
    const struct output_ops *ops, void *arg)
{
	memset(o, 0, sizeof(*o));
	o->fd = -1;
	o->loop = loop;
	o->stream = stream;
	o->ops = ops;
	o->arg = arg;
}

int
output_open(struct output *o, enum runspec_user user, int *write_end)
{
	int fds[2];

	if (pipe2(fds, O_CLOEXEC) == -1)
		return errno;
	o->fd = fds[0];
	*write_end = fds[1];
	o->big = false;
	o->deep = false;
	/* so that /dev/stdout can be opened by name */
	if (user == RUNSPEC_USER_SANDBOX && owners_give(o->fd, user) == -1) {
		/* then by its number alone */
	}
	/* Not the write end: the program must block. */
	return fcntl(o->fd, F_SETFL, O_NONBLOCK) == -1 ? errno : 0;
}

void
output_close(struct output *o)
{
	if (o->fd == -1)
		return;
	loop_del(o->loop, &o->token);
	(void)close(o->fd);
	o->fd = -1;
}

static size_t
output_room(const struct output *o)
{
	return o->ops->room(o->arg, o->stream);
}

/* A full read says that the program writes a lot. */
static void
enlarge(struct output *o)
{
	o->big = true;
	o->deep = fcntl(o->fd, F_SETPIPE_SZ, OUTPUT_BIG_PIPE_BYTES) != -1;
}

/* At most max bytes from the pipe, and no more than were read. */
static enum output_took
take_some(struct output *o, uint64_t max, uint64_t *total)
{
	size_t room = output_room(o);
	struct iovec iov[2];
	ssize_t n;
	int niov;

	if (room > OUTPUT_READ_BYTES)
		room = OUTPUT_READ_BYTES;
	if (max < room)
		room = (size_t)max;
	niov = o->ops->space(o->arg, o->stream, room, iov);
	n = readv(o->fd, iov, niov);
	if (n == -1)
		return errno == EAGAIN || errno == EINTR ? TAKEN_NONE_NOW :
							   TAKEN_END;
	if (n == 0)
		return TAKEN_END;
	o->ops->taken(o->arg, o->stream, (size_t)n);
	if (!o->big && (size_t)n >= OUTPUT_READ_BYTES / 2)
		enlarge(o);
	*total += (size_t)n;
	return TAKEN_SOME;
}

/* How many bytes to ask for: what is there, so that little output needs little
 * memory; always the most for a program that writes a lot. */
static size_t
size_next(const struct output *o)
{
	int n = 0;

	if (o->big || ioctl(o->fd, FIONREAD, &n) == -1 ||
	    n > (int)OUTPUT_READ_BYTES)
		return OUTPUT_READ_BYTES;
	return n > 0 ? (size_t)n : 1;
}

/* All was read that was there. */
static void
rest_if_little(const struct output *o, uint64_t total)
{
	if (o->deep && total >= OUTPUT_GULP_MIN && total < OUTPUT_GULP_BYTES)
		loop_rest(o->loop);
}

static void
output_event_cb(uint32_t events, void *arg)
{
	struct output *o = arg;
	uint64_t total = 0;

	do {
		if ((events & EPOLLIN) != 0 &&
		    output_room(o) < OUTPUT_ROOM_MIN) {
			loop_del(o->loop, &o->token);
			return;
		}
		/* No bytes and nobody who could write: no need to read. */
		switch ((events & EPOLLIN) == 0 ?
			TAKEN_END :
			take_some(o, size_next(o), &total)) {
		case TAKEN_SOME:
			break;
		case TAKEN_NONE_NOW:
			rest_if_little(o, total);
			return;
		case TAKEN_END:
			output_close(o);
			return;
		}
	} while (o->big && total < OUTPUT_TURN_BYTES);
}

void
output_watch(struct output *o)
{
	if (o->fd == -1 || o->token != 0)
		return;
	o->token = loop_add(o->loop, o->fd, EPOLLIN, output_event_cb, o);
}

void
output_resume(struct output *o)
{
	if (output_room(o) >= OUTPUT_ROOM_RESUME)
		output_watch(o);
}

void
output_drain_begin(struct output *o, enum output_then then)
{
	int n = 0;

	o->kept = then == OUTPUT_KEEP;
	o->drain = 0;
	if (o->fd != -1 && ioctl(o->fd, FIONREAD, &n) == 0 && n > 0)
		o->drain = (uint64_t)n;
	/* Without bytes to drain, output_drain closes it at once. */
	if (o->drain > 0 || o->kept)
		loop_del(o->loop, &o->token);
}

bool
output_drain(struct output *o)
{
	while (o->fd != -1 && o->drain > 0) {
		enum output_took took;
		uint64_t n = 0;

		if (output_room(o) < OUTPUT_ROOM_MIN)
			return false;
		took = take_some(o, o->drain, &n);
		if (took == TAKEN_END)
			output_close(o);
		if (took != TAKEN_SOME)
			break;
		o->drain -= n < o->drain ? n : o->drain;
	}
	o->drain = 0;
	if (!o->kept)
		output_close(o);
	return true;
}

void
output_move(struct output *from, struct output *to)
{
	to->fd = from->fd;
	to->big = from->big;
	to->deep = from->deep;
	from->fd = -1;
	output_watch(to);
}
