/* ends.h - a front, an agent's link and its peer, and nothing between them but
 * what the test puts there. */
#ifndef TESTS_WORKER_ENDS_H
#define TESTS_WORKER_ENDS_H

#include "tests/unit/worker/fixture.h"

struct ends {
	struct event_base *base;
	struct front front;
	struct fake_link link;
	struct peer *peer;
	void (*on_hello)(const struct peer_hello *h); /* NULL: nothing */
	void (*on_down)(void);
};
static struct ends ends;

static inline int
ends_hello_cb(const struct peer_hello *h, void *arg, struct err *e)
{
	(void)arg;
	(void)e;
	if (ends.on_hello != NULL)
		ends.on_hello(h);
	return 0;
}

static inline void
ends_down_cb(const struct err *why, void *arg)
{
	(void)why;
	(void)arg;
	ends.on_down();
}

/* ends_open - no agent has greeted yet */
static inline void
ends_open(void (*on_hello)(const struct peer_hello *h), void (*on_down)(void))
{
	static const struct peer_ops ops = {
	    .on_hello = ends_hello_cb, .on_down = ends_down_cb};

	ends = (struct ends){
	    .base = event_base_new(), .on_hello = on_hello, .on_down = on_down};
	front_init(&ends.front, ends.base);
	fake_link_init(&ends.link, ends.base);
	ends.peer = peer_new(ends.link.l, &ops, NULL);
}

static inline void
ends_greet(void)
{
	fake_link_greet(&ends.link);
	(void)fake_link_sent(&ends.link, FRAME_WELCOME);
}

/* ends_close - what is on the peer is freed */
static inline void
ends_close(void)
{
	peer_free(ends.peer);
	fake_link_clear(&ends.link);
	front_clear(&ends.front);
	fixture_settle(ends.base);
	event_base_free(ends.base);
}

#endif
