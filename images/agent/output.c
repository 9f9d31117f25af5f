#include "images/agent/output.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>

#include "common/utf8.h"

enum taken {
	TAKEN_SOME,
	TAKEN_NONE_NOW,
	TAKEN_END
};

int
output_open(struct output *o, int *write_end)
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
	o->fd = fds[0];
	*write_end = fds[1];
	return 0;
}

static void
flush_held(struct output *o)
{
	struct ring *r = &o->log->ring;

	if (o->nheld == 0)
		return;
	ring_put(r, r->end + RUNLOG_HEADER_BYTES, o->held, o->nheld);
	outlog_put_output(o->log, o->type, o->command, o->nheld);
	o->bytes += o->nheld;
	o->nheld = 0;
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

/* n bytes of payload, the held ones first, stand behind the log's end. */
static void
take_payload(struct output *o, size_t n)
{
	struct ring *r = &o->log->ring;
	uint64_t at = r->end + RUNLOG_HEADER_BYTES;
	size_t ntail = n < sizeof(o->held) ? n : sizeof(o->held);
	size_t whole;

	ring_get(r, at + n - ntail, o->held, ntail);
	whole = utf8_complete_len(o->held, ntail);
	o->nheld = ntail - whole;
	memmove(o->held, o->held + whole, o->nheld);
	n -= o->nheld;
	if (n == 0)
		return;
	outlog_put_output(o->log, o->type, o->command, n);
	o->bytes += n;
}

/* A full read says that the program writes a lot. */
static void
enlarge(struct output *o)
{
	o->big = true;
	(void)fcntl(o->fd, F_SETPIPE_SZ, OUTPUT_BIG_PIPE_BYTES);
}

/* At most max bytes from the pipe, as one record. */
static enum taken
take_some(struct output *o, size_t max)
{
	struct ring *r = &o->log->ring;
	uint64_t at = r->end + RUNLOG_HEADER_BYTES;
	size_t room = outlog_output_room(o->log);
	struct iovec iov[2];
	ssize_t n;
	int niov;

	if (room > RUNLOG_PAYLOAD_MAX)
		room = RUNLOG_PAYLOAD_MAX;
	room -= o->nheld;
	if (max < room)
		room = max;
	niov = ring_view(r, at + o->nheld, room, iov);
	n = readv(o->fd, iov, niov);
	if (n == -1)
		return errno == EAGAIN || errno == EINTR ? TAKEN_NONE_NOW :
							   TAKEN_END;
	if (n == 0)
		return TAKEN_END;
	if (o->nheld > 0)
		ring_put(r, at, o->held, o->nheld);
	take_payload(o, o->nheld + (size_t)n);
	if (!o->big && (size_t)n >= RUNLOG_PAYLOAD_MAX / 2)
		enlarge(o);
	o->drain -= (size_t)n < o->drain ? (size_t)n : o->drain;
	return TAKEN_SOME;
}

/* How much to ask for: what is there, so that little output needs little
 * memory; nobody counts for a program that writes a lot. */
static size_t
size_next(const struct output *o)
{
	int n = 0;

	if (o->big || ioctl(o->fd, FIONREAD, &n) == -1 ||
	    n > RUNLOG_PAYLOAD_MAX)
		return RUNLOG_PAYLOAD_MAX;
	return n > 0 ? (size_t)n : 1;
}

static void
output_event_cb(uint32_t events, void *arg)
{
	struct output *o = arg;
	uint64_t before = o->bytes;

	do {
		if ((events & EPOLLIN) != 0 &&
		    outlog_output_room(o->log) < OUTPUT_ROOM_MIN) {
			loop_del(o->loop, &o->token);
			break;
		}
		/* No bytes and nobody who could write: no need to read. */
		switch ((events & EPOLLIN) == 0 ? TAKEN_END :
						  take_some(o, size_next(o))) {
		case TAKEN_SOME:
			break;
		case TAKEN_NONE_NOW:
			uplink_kick(o->uplink, o->log);
			return;
		case TAKEN_END:
			flush_held(o);
			output_close(o);
			uplink_kick(o->uplink, o->log);
			return;
		}
	} while (o->big && o->bytes - before < OUTPUT_TURN_BYTES);
	uplink_kick(o->uplink, o->log);
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
	if (outlog_output_room(o->log) >= OUTPUT_ROOM_RESUME)
		output_watch(o);
}

void
output_drain_begin(struct output *o)
{
	int n = 0;

	loop_del(o->loop, &o->token);
	o->drain = 0;
	if (o->fd != -1 && ioctl(o->fd, FIONREAD, &n) == 0 && n > 0)
		o->drain = (uint64_t)n;
}

bool
output_drain(struct output *o)
{
	while (o->fd != -1 && o->drain > 0) {
		if (outlog_output_room(o->log) < OUTPUT_ROOM_MIN)
			return false;
		if (take_some(o, o->drain) != TAKEN_SOME)
			break;
	}
	flush_held(o);
	output_close(o);
	return true;
}
