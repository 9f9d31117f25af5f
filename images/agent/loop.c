#include "images/agent/loop.h"

#include <errno.h>
#include <sys/epoll.h>
#include <time.h>

#include "common/exit.h"
#include "common/log.h"

#define LOOP_EVENTS_PER_TURN 64
#define LOOP_NONE UINT32_MAX

static uint64_t
token_make(uint32_t index, uint32_t generation)
{
	return ((uint64_t)generation << 32) | index;
}

static struct loop_watch *
loop_find(struct loop *l, loop_token token)
{
	uint32_t index = (uint32_t)token;
	struct loop_watch *w;

	if (index >= LOOP_WATCHES_MAX)
		return NULL;
	w = &l->watches[index];
	if (w->fd == -1 || w->generation != (uint32_t)(token >> 32))
		return NULL;
	return w;
}

int
loop_init(struct loop *l, struct err *e)
{
	l->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (l->epoll == -1)
		return err_set(
		    e, ERR_SYS, "epoll_create1: %s", strerror(errno));
	for (uint32_t i = 0; i < LOOP_WATCHES_MAX; i++) {
		l->watches[i].fd = -1;
		l->watches[i].generation = 1; /* so that no token is 0 */
		l->watches[i].next_free =
		    i + 1 < LOOP_WATCHES_MAX ? i + 1 : LOOP_NONE;
	}
	l->first_free = 0;
	l->rests = false;
	return 0;
}

loop_token
loop_add(struct loop *l, int fd, uint32_t events, loop_cb cb, void *arg)
{
	struct epoll_event ev = {.events = events};
	struct loop_watch *w;
	uint32_t index = l->first_free;

	if (index == LOOP_NONE)
		return 0;
	w = &l->watches[index];
	ev.data.u64 = token_make(index, w->generation);
	if (epoll_ctl(l->epoll, EPOLL_CTL_ADD, fd, &ev) == -1)
		return 0;
	l->first_free = w->next_free;
	w->fd = fd;
	w->cb = cb;
	w->arg = arg;
	return ev.data.u64;
}

void
loop_mod(struct loop *l, loop_token token, uint32_t events)
{
	struct epoll_event ev = {.events = events, .data.u64 = token};
	const struct loop_watch *w = loop_find(l, token);

	if (w != NULL && epoll_ctl(l->epoll, EPOLL_CTL_MOD, w->fd, &ev) == -1)
		fatal(EXIT_BUG, "epoll_ctl: %s", strerror(errno));
}

/* Its events, of which there may be some, are dropped. */
static void
watch_free(struct loop *l, struct loop_watch *w)
{
	w->fd = -1;
	if (++w->generation == 0)
		w->generation = 1;
	w->next_free = l->first_free;
	l->first_free = (uint32_t)(w - l->watches);
}

void
loop_del(struct loop *l, loop_token *token)
{
	struct loop_watch *w = loop_find(l, *token);

	*token = 0;
	if (w == NULL)
		return;
	(void)epoll_ctl(l->epoll, EPOLL_CTL_DEL, w->fd, NULL);
	watch_free(l, w);
}

void
loop_rest(struct loop *l)
{
	l->rests = true;
}

void
loop_turn(struct loop *l, int timeout_ms)
{
	static const struct timespec rest = {.tv_nsec = LOOP_REST_US * 1000};
	struct epoll_event ev[LOOP_EVENTS_PER_TURN];
	int n;

	if (l->rests && timeout_ms != 0)
		(void)nanosleep(&rest, NULL);
	l->rests = false;
	n = epoll_wait(l->epoll, ev, LOOP_EVENTS_PER_TURN, timeout_ms);
	if (n == -1 && errno != EINTR)
		fatal(EXIT_BUG, "epoll_wait: %s", strerror(errno));
	for (int i = 0; i < n; i++) {
		const struct loop_watch *w = loop_find(l, ev[i].data.u64);

		if (w != NULL)
			w->cb(ev[i].events, w->arg);
	}
}
