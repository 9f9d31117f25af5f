#include "worker/link/ways.h"

#include <stdio.h>

#include "common/exit.h"
#include "common/log.h"
#include "common/runtimes.h"
#include "common/xmalloc.h"
#include "worker/later.h"

struct way_wait {
	way_cb cb; /* NULL: left */
	void *arg;
	STAILQ_ENTRY(way_wait) link;
};

void
ways_init(struct ways *w, struct event_base *base, void (*on_wanted)(void *arg),
    void (*on_chosen)(void *arg), void *arg)
{
	*w = (struct ways){.base = base,
	    .on_wanted = on_wanted,
	    .on_chosen = on_chosen,
	    .arg = arg};
	STAILQ_INIT(&w->waits);
}

const struct way *
ways_add(
    struct ways *w, struct carrier *carrier, struct agent_delivery *delivery)
{
	struct way *way = &w->all[w->n];

	if (w->n == WAYS_MAX)
		fatal(EXIT_BUG, "more than %d ways", WAYS_MAX);
	w->n++;
	*way = (struct way){.carrier = carrier, .delivery = delivery};
	return way;
}

/* ---- who waits */

static void
tell_all(struct ways *w, int rc, const struct err *why)
{
	struct way_waits told = STAILQ_HEAD_INITIALIZER(told);
	struct way_wait *one;

	STAILQ_CONCAT(&told, &w->waits); /* callbacks may ask anew */
	while ((one = STAILQ_FIRST(&told)) != NULL) {
		STAILQ_REMOVE_HEAD(&told, link);
		if (one->cb != NULL)
			one->cb(rc, rc == 0 ? w->chosen : NULL, why, one->arg);
		free(one);
	}
}

void
ways_choose(struct ways *w, const struct way *chosen, const char *why)
{
	w->chosen = chosen;
	(void)snprintf(w->why, sizeof(w->why), "%s", why);
	log_info("carrier of new sandboxes: %s (%s)",
	    chosen->carrier->ops->name, w->why);
	if (w->on_chosen != NULL)
		w->on_chosen(w->arg);
	tell_all(w, 0, NULL);
}

void
ways_set_own_kernel(struct ways *w, const struct way *way)
{
	w->own_kernel = way;
}

const struct way *
ways_for(const struct ways *w, const char *runtime)
{
	if (w->own_kernel != NULL && runtimes_brings_kernel(runtime))
		return w->own_kernel;
	return w->chosen;
}

void
ways_fail(struct ways *w, int rc, const struct err *why)
{
	tell_all(w, rc, why);
}

static void
wanted_cb(void *arg)
{
	struct ways *w = arg;

	if (w->chosen != NULL)
		tell_all(w, 0, NULL);
	else if (!STAILQ_EMPTY(&w->waits))
		w->on_wanted(w->arg);
}

struct way_wait *
ways_ask(struct ways *w, way_cb cb, void *arg)
{
	struct way_wait *one = xcalloc(1, sizeof(*one));

	one->cb = cb;
	one->arg = arg;
	STAILQ_INSERT_TAIL(&w->waits, one, link);
	later(w->base, wanted_cb, w);
	return one;
}

void
ways_leave(struct ways *w, struct way_wait *wait)
{
	(void)w;
	wait->cb = NULL;
}

/* ---- of boxes that are there */

const struct way *
ways_of(const struct ways *w, const char *carrier)
{
	if (carrier[0] == '\0')
		return w->n > 0 ? &w->all[0] : NULL;
	for (size_t i = 0; i < w->n; i++)
		if (strcmp(w->all[i].carrier->ops->name, carrier) == 0)
			return &w->all[i];
	return NULL;
}

void
ways_forget(const struct ways *w, const struct uuid *box)
{
	for (size_t i = 0; i < w->n; i++)
		w->all[i].carrier->ops->forget(w->all[i].carrier, box);
}

uint32_t
ways_sweep(const struct ways *w, int64_t before_ms,
    bool (*keep)(const struct uuid *, void *), void *arg)
{
	uint32_t n = 0;

	for (size_t i = 0; i < w->n; i++)
		n += w->all[i].carrier->ops->sweep(
		    w->all[i].carrier, before_ms, keep, arg);
	return n;
}
