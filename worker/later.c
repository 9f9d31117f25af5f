#include "worker/later.h"

#include <event2/event.h>

#include "common/exit.h"
#include "common/log.h"
#include "common/timer.h"
#include "common/xmalloc.h"

struct later {
	void (*fn)(void *);
	void *arg;
};

static void
later_cb(evutil_socket_t fd, short what, void *arg)
{
	struct later l = *(struct later *)arg;

	(void)fd;
	(void)what;
	free(arg);
	l.fn(l.arg);
}

void
later_ms(struct event_base *base, uint32_t ms, void (*fn)(void *), void *arg)
{
	struct timeval tv = timer_timeval(ms);
	struct later *l = xcalloc(1, sizeof(*l));

	l->fn = fn;
	l->arg = arg;
	if (event_base_once(base, -1, EV_TIMEOUT, later_cb, l, &tv) != 0)
		fatal(EXIT_MEMORY, "no memory for a timer");
}

void
later(struct event_base *base, void (*fn)(void *), void *arg)
{
	later_ms(base, 0, fn, arg);
}

static void
event_free_cb(void *arg)
{
	event_free(arg);
}

void
later_event_free(struct event_base *base, struct event *ev)
{
	if (ev == NULL)
		return;
	(void)event_del(ev);
	later(base, event_free_cb, ev);
}
