/*
 * ways.h - the ways to the agents of boxes: each a carrier with its delivery
 *
 * A box keeps the way that it was made with, which its label says.  New boxes
 * go the way that is chosen, by the setting CARRIER or by a trial (trial.h);
 * who needs it before it is waits here.
 */
#ifndef WORKER_LINK_WAYS_H
#define WORKER_LINK_WAYS_H

#include <sys/queue.h>

#include "common/base.h"
#include "common/err.h"
#include "worker/link/carrier.h"
#include "worker/link/delivery.h"

#define WAYS_MAX 2
#define WAYS_WHY_MAX 300

struct event_base;

struct way {
	struct carrier *carrier;
	struct agent_delivery *delivery;
};

/* rc 0: way is chosen; else no way could be found out now, and why says it. */
typedef void (*way_cb)(
    int rc, const struct way *way, const struct err *why, void *arg);
struct way_wait; /* somebody who waits for it */
STAILQ_HEAD(way_waits, way_wait);

/* For others to read, for ways.c to write. */
struct ways {
	struct event_base *base;
	struct way all[WAYS_MAX]; /* the first: of boxes that name none */
	size_t n;
	const struct way *chosen; /* NULL: not yet */
	/* Of boxes with a kernel of their own, whatever was found out for
	 * others; NULL: as those. */
	const struct way *own_kernel;
	char why[WAYS_WHY_MAX + 1]; /* it is, for a person */
	struct way_waits waits;
	void (*on_wanted)(void *arg); /* somebody waits: find it out */
	void (*on_chosen)(void *arg);
	void *arg;
};

/* ways_init - on_wanted calls ways_choose or ways_fail, now or later; on_chosen
 * may be NULL */
void ways_init(struct ways *w, struct event_base *base,
    void (*on_wanted)(void *arg), void (*on_chosen)(void *arg), void *arg);
/* ways_add - both are kept by pointer */
const struct way *ways_add(
    struct ways *w, struct carrier *carrier, struct agent_delivery *delivery);
/* ways_choose - for all boxes from now on, and for those who wait; why is
 * copied */
void ways_choose(struct ways *w, const struct way *chosen, const char *why);
/* ways_set_own_kernel - for boxes whose runtime says that it brings a kernel
 * (common/runtimes.h), which no socket of this host is in */
void ways_set_own_kernel(struct ways *w, const struct way *way);
/* ways_for - of a new box with that runtime; NULL: not known yet */
const struct way *ways_for(const struct ways *w, const char *runtime);
/* ways_fail - those who wait are told so; the next one asks again */
void ways_fail(struct ways *w, int rc, const struct err *why);

/* ways_ask - cb comes once, not inside this call */
struct way_wait *ways_ask(struct ways *w, way_cb cb, void *arg);
/* ways_leave - cb will not be called */
void ways_leave(struct ways *w, struct way_wait *wait);

/* ways_of - of a box whose label names that carrier; NULL: there is none */
const struct way *ways_of(const struct ways *w, const char *carrier);
/* ways_forget - nothing is left on this host of that box */
void ways_forget(const struct ways *w, const struct uuid *box);
/* ways_sweep - as carrier_ops says, of all carriers */
uint32_t ways_sweep(const struct ways *w, int64_t before_ms,
    bool (*keep)(const struct uuid *box, void *arg), void *arg);

#endif
