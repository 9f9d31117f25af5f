/*
 *	SWEEP...	what the front knows is collected
 *	SWEEP_END	the backend is asked for all boxes of our instance
 *	its list	what is old enough and not known is removed, SWEEP_WIDTH
 *			at a time; then the carrier's leftovers; then SWEPT
 *
 * One at a time: lists that come while one is at work are for a sweep that
 * will be dropped.
 */
#include "worker/sweep.h"

#include "common/msg/msg_gen.h"
#include "common/log.h"
#include "common/xmalloc.h"

struct sweep {
	struct worker *w;
	struct uuid *listed; /* sorted once all are there */
	size_t nlisted;
	size_t cap;
	bool at_work;
	int64_t before_ms;
	struct backend_handle *unlisted; /* to be removed */
	size_t nunlisted;
	size_t next;
	unsigned int busy;
	uint32_t found;
	uint32_t removed;
};

static struct sweep *
sweep_of(struct worker *w)
{
	if (w->sweep == NULL) {
		w->sweep = xcalloc(1, sizeof(*w->sweep));
		w->sweep->w = w;
	}
	return w->sweep;
}

static void
sweep_reset(struct sweep *s)
{
	free(s->listed);
	free(s->unlisted);
	*s = (struct sweep){.w = s->w};
}

int
sweep_list(
    struct worker *w, const uint8_t *uuids, uint32_t count, struct err *e)
{
	struct sweep *s = sweep_of(w);

	if (s->at_work)
		return 0; /* of a sweep that will be dropped */
	if (count > SWEEP_LISTED_MAX - s->nlisted)
		return err_set(e, ERR_PROTO, "sweep of more than %d sandboxes",
		    SWEEP_LISTED_MAX);
	if (s->nlisted + count > s->cap) {
		s->cap = (s->nlisted + count) * 2;
		s->listed =
		    xreallocarray(s->listed, s->cap, sizeof(*s->listed));
	}
	if (count > 0)
		memcpy(s->listed + s->nlisted, uuids,
		    (size_t)count * sizeof(*s->listed));
	s->nlisted += count;
	return 0;
}

static int
compare_uuids(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct uuid));
}

static bool
is_listed(const struct uuid *u, void *arg)
{
	const struct sweep *s = arg;

	return s->nlisted > 0 &&
	    bsearch(u, s->listed, s->nlisted, sizeof(*s->listed),
		compare_uuids) != NULL;
}

static void
sweep_end(struct sweep *s)
{
	struct carrier *c = s->w->box_host.carrier;
	uint32_t forgotten = c->ops->sweep(c, s->before_ms, is_listed, s);

	if (s->removed > 0 || forgotten > 0)
		log_info("sweep: %u containers of ours, %u removed; %u of the "
			 "carrier's leftovers removed",
		    s->found, s->removed, forgotten);
	msg_send_swept(s->w->front,
	    &(struct msg_swept){.found = s->found, .removed = s->removed});
	sweep_reset(s);
}

static void removed_cb(int rc, const struct err *why, void *arg);

static void
sweep_next(struct sweep *s)
{
	struct backend *b = s->w->box_host.backend;

	while (s->busy < SWEEP_WIDTH && s->next < s->nunlisted) {
		s->busy++;
		b->ops->remove(b, &s->unlisted[s->next++], removed_cb, s);
	}
	if (s->busy == 0)
		sweep_end(s);
}

static void
removed_cb(int rc, const struct err *why, void *arg)
{
	struct sweep *s = arg;

	s->busy--;
	if (rc == 0)
		s->removed++;
	else
		log_warn("sweep: %s", why->msg);
	sweep_next(s);
}

static void
listed_cb(int rc, const struct backend_container *list, size_t n,
    const struct err *why, void *arg)
{
	struct sweep *s = arg;

	if (rc != 0) {
		/* No SWEPT with numbers that are not known: the front's next
		 * sweep finds out. */
		log_debug("sweep: %s", why->msg);
		msg_send_swept(s->w->front, &(struct msg_swept){0});
		sweep_reset(s);
		return;
	}
	s->unlisted = xcalloc(n + 1, sizeof(*s->unlisted));
	for (size_t i = 0; i < n; i++) {
		const struct backend_container *c = &list[i];

		if (!c->is_ours)
			continue;
		s->found++;
		if (c->created_ms < s->before_ms &&
		    !is_listed(&c->identity.uuid, s))
			s->unlisted[s->nunlisted++] = c->handle;
	}
	sweep_next(s);
}

void
sweep_run(struct worker *w, int64_t asof_ms)
{
	struct sweep *s = sweep_of(w);
	struct backend *b = w->box_host.backend;

	if (s->at_work)
		return;
	s->at_work = true;
	s->before_ms = asof_ms - SWEEP_AGE_MS;
	if (s->nlisted > 0)
		qsort(s->listed, s->nlisted, sizeof(*s->listed), compare_uuids);
	b->ops->list(b, listed_cb, s);
}

void
sweep_free(struct worker *w)
{
	if (w->sweep == NULL)
		return;
	free(w->sweep->listed);
	free(w->sweep->unlisted);
	free(w->sweep);
	w->sweep = NULL;
}
