/*
 * two_ways.h - two ways to agents, who wants to know which one is taken, and
 * who is told
 */
#ifndef TESTS_WORKER_TWO_WAYS_H
#define TESTS_WORKER_TWO_WAYS_H

#include "tests/unit/test.h"
#include "tests/unit/worker/fixture.h"
#include "worker/link/ways.h"

struct two_ways {
	struct event_base *base;
	struct carrier carriers[2];
	struct agent_delivery delivery;
	struct ways ways;
	const struct way *first, *other;
	void (*on_wanted)(void); /* NULL: it is counted alone */

	unsigned int wanted, chosen, told;
	int rc; /* of who was told last, and by which way */
	const struct way *way;
};
static struct two_ways two;

static inline void
two_ways_wanted_cb(void *arg)
{
	(void)arg;
	two.wanted++;
	if (two.on_wanted != NULL)
		two.on_wanted();
}

static inline void
two_ways_chosen_cb(void *arg)
{
	(void)arg;
	two.chosen++;
}

static inline void
two_ways_told_cb(
    int rc, const struct way *way, const struct err *why, void *arg)
{
	(void)why;
	(void)arg;
	two.told++;
	two.rc = rc;
	two.way = way;
}

/* two_ways_ask - somebody who is told */
static inline struct way_wait *
two_ways_ask(void)
{
	return ways_ask(&two.ways, two_ways_told_cb, NULL);
}

/* two_ways_init - with the carriers and the delivery of these */
static inline void
two_ways_init(const struct carrier_ops *first, const struct carrier_ops *other,
    const struct agent_delivery_ops *delivery)
{
	memset(&two, 0, sizeof(two));
	two.base = event_base_new();
	two.carriers[0].ops = first;
	two.carriers[1].ops = other;
	two.delivery.ops = delivery;
	ways_init(
	    &two.ways, two.base, two_ways_wanted_cb, two_ways_chosen_cb, NULL);
	two.first = ways_add(&two.ways, &two.carriers[0], &two.delivery);
	two.other = ways_add(&two.ways, &two.carriers[1], &two.delivery);
}

static inline void
two_ways_clear(void)
{
	fixture_settle(two.base);
	event_base_free(two.base);
}

#endif
