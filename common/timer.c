#include "common/timer.h"

#include <event2/event.h>
#include <event2/event_struct.h>

#include "common/exit.h"
#include "common/log.h"
#include "common/xmalloc.h"

struct timer {
	struct event ev;
	void (*fn)(void *);
	void *arg;
};

/* Last line: the callback may have freed the timer, of which libevent looks
 * at nothing more (a timer is no persistent event). */
static void
timer_cb(evutil_socket_t fd, short what, void *arg)
{
	struct timer *t = arg;

	(void)fd;
	(void)what;
	t->fn(t->arg);
}

struct timer *
timer_new(struct event_base *base, void (*fn)(void *), void *arg)
{
	struct timer *t = xcalloc(1, sizeof(*t));

	t->fn = fn;
	t->arg = arg;
	if (evtimer_assign(&t->ev, base, timer_cb, t) != 0)
		fatal(EXIT_BUG, "timer: libevent refuses it");
	return t;
}

void
timer_free(struct timer *t)
{
	if (t == NULL)
		return;
	(void)evtimer_del(&t->ev);
	free(t);
}

struct timeval
timer_timeval(uint64_t ms)
{
	return (struct timeval){.tv_sec = (time_t)(ms / 1000),
	    .tv_usec = (suseconds_t)(ms % 1000) * 1000};
}

void
timer_set_ms(struct timer *t, uint64_t ms)
{
	struct timeval tv = timer_timeval(ms);

	if (evtimer_add(&t->ev, &tv) != 0)
		fatal(EXIT_MEMORY, "timer: no memory");
}

void
timer_stop(struct timer *t)
{
	(void)evtimer_del(&t->ev);
}

bool
timer_is_set(const struct timer *t)
{
	return evtimer_pending(&t->ev, NULL) != 0;
}
