#include "supervisor/stdio/outlet.h"

#include <errno.h>
#include <fcntl.h>

#include <event2/event.h>

#include "common/buf.h"
#include "common/exit.h"
#include "common/log.h"
#include "common/xmalloc.h"

struct outlet {
	int fd;
	int flags; /* of fd, as they were */
	const struct outlet_ops *ops;
	void *arg;
	struct event *writable;
	struct buf waits;
	uint64_t taken; /* bytes */
	bool was_full;
	bool is_gone;
};

static void
wait_writable(struct outlet *o)
{
	if (event_add(o->writable, NULL) == -1)
		fatal(EXIT_MEMORY, "no event");
}

static void
lose(struct outlet *o)
{
	if (errno != EPIPE && errno != ECONNRESET)
		log_error("stdout: %s", strerror(errno));
	o->is_gone = true;
	buf_clear(&o->waits);
	o->ops->on_gone(o->arg);
}

static void
writable_cb(evutil_socket_t fd, short what, void *arg)
{
	struct outlet *o = arg;
	ssize_t n = write(fd, buf_data(&o->waits), buf_len(&o->waits));

	(void)what;
	if (n == -1 && errno != EAGAIN && errno != EINTR) {
		lose(o);
		return;
	}
	if (n > 0) {
		buf_consume(&o->waits, (size_t)n);
		o->taken += (uint64_t)n;
	}
	if (buf_len(&o->waits) > 0)
		wait_writable(o);
	else
		buf_shrink(&o->waits);
	if (outlet_is_empty(o) || (o->was_full && !outlet_is_full(o))) {
		o->was_full = false;
		o->ops->on_room(o->arg);
	}
}

struct outlet *
outlet_new(
    struct event_base *base, int fd, const struct outlet_ops *ops, void *arg)
{
	struct outlet *o = xcalloc(1, sizeof(*o));

	o->fd = fd;
	o->ops = ops;
	o->arg = arg;
	buf_init(&o->waits, 0);
	o->flags = fcntl(fd, F_GETFL);
	if (o->flags != -1)
		(void)fcntl(fd, F_SETFL, o->flags | O_NONBLOCK);
	o->writable = event_new(base, fd, EV_WRITE, writable_cb, o);
	if (o->writable == NULL)
		fatal(EXIT_MEMORY, "no event");
	return o;
}

void
outlet_free(struct outlet *o)
{
	if (o == NULL)
		return;
	event_free(o->writable);
	if (o->flags != -1) /* others may have the same file */
		(void)fcntl(o->fd, F_SETFL, o->flags);
	buf_clear(&o->waits);
	free(o);
}

void
outlet_put(struct outlet *o, const char *message, size_t n)
{
	uint8_t *to;

	if (o->is_gone)
		return;
	to = buf_reserve(&o->waits, n + 1);
	if (to == NULL)
		fatal(EXIT_MEMORY, "no room for a message");
	for (size_t i = 0; i < n; i++)
		to[i] = (uint8_t)(message[i] == '\n' || message[i] == '\r' ?
			' ' :
			message[i]);
	to[n] = '\n';
	buf_commit(&o->waits, n + 1);
	o->was_full = o->was_full || outlet_is_full(o);
	wait_writable(o);
}

bool
outlet_is_full(const struct outlet *o)
{
	return buf_len(&o->waits) >= OUTLET_HIGH;
}

bool
outlet_is_empty(const struct outlet *o)
{
	return buf_len(&o->waits) == 0;
}

uint64_t
outlet_taken(const struct outlet *o)
{
	return o->taken;
}
