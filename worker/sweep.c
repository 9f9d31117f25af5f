/*
 *	SWEEP...	what the front knows is collected
 *	SWEEP_END	the backend is asked for all boxes of our instance
 *	its list	what is not known and old enough is looked at closely,
 *			SWEEP_WIDTH at a time: told, then stopped, kept or
 *			removed; then the carriers' leftovers, and files of
 *			boxes that are gone; then SWEPT
 *
 * One at a time: lists that come while one is at work are for a sweep that
 * will be dropped.
 */
#include "worker/sweep.h"

#include "common/msg/msg_gen.h"
#include "common/log.h"
#include "common/xmalloc.h"

/* A box that was not listed. */
struct sweep_item {
	struct sweep *sweep;
	struct backend_handle handle;
	struct box_identity id;
	bool is_gone;
};

struct sweep {
	struct worker *w;
	struct uuid *listed; /* sorted once all are there */
	size_t nlisted;
	size_t cap;
	bool at_work;
	struct sweep_wish wish;
	struct uuid *seen; /* all boxes of ours, sorted */
	struct sweep_item *items;
	size_t nitems;
	size_t next;
	unsigned int busy;
	uint32_t found;
	uint32_t removed;
};

static struct log_limit running_limit;

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
	free(s->seen);
	free(s->items);
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
has_uuid(const struct uuid *all, size_t n, const struct uuid *u)
{
	return n > 0 && bsearch(u, all, n, sizeof(*all), compare_uuids) != NULL;
}

static bool
is_listed(const struct uuid *u, void *arg)
{
	const struct sweep *s = arg;

	return has_uuid(s->listed, s->nlisted, u);
}

/* Its files are not to be swept. */
static bool
is_used(const struct uuid *u, void *arg)
{
	const struct sweep *s = arg;

	return has_uuid(s->seen, s->found, u) || is_listed(u, arg);
}

/* Of a box that is kept, the way to its agent is kept, too. */
static bool
is_kept(const struct uuid *u, void *arg)
{
	const struct sweep *s = arg;

	for (size_t i = 0; i < s->nitems; i++)
		if (!s->items[i].is_gone &&
		    uuid_is_equal(&s->items[i].id.uuid, u))
			return true;
	return is_listed(u, arg);
}

static void
sweep_tell(struct sweep *s)
{
	msg_send_swept(s->w->front,
	    &(struct msg_swept){
		.is_known = true, .found = s->found, .removed = s->removed});
	sweep_reset(s);
}

static void
files_swept_cb(int rc, const struct err *why, void *arg)
{
	if (rc != 0)
		log_debug("sweep: %s", why->msg);
	sweep_tell(arg);
}

static void
sweep_end(struct sweep *s)
{
	struct backend *b = s->w->box_host.backend;
	uint32_t forgotten = 0;

	if (!s->wish.only_look)
		forgotten = ways_sweep(s->w->box_host.ways,
		    s->wish.asof_ms - SWEEP_AGE_MS, is_kept, s);
	if (s->removed > 0 || forgotten > 0)
		log_info("sweep: %u containers of ours, %u removed; %u of the "
			 "carriers' leftovers removed",
		    s->found, s->removed, forgotten);
	if (s->wish.only_look || b->ops->sweep_files == NULL)
		sweep_tell(s);
	else
		b->ops->sweep_files(b,
		    &(struct backend_sweep){.asof_ms = s->wish.asof_ms,
			.is_used = is_used,
			.arg = s},
		    files_swept_cb, s);
}

static void inspected_cb(int rc, const struct backend_container *c,
    const struct err *why, void *arg);

static void
sweep_next(struct sweep *s)
{
	struct backend *b = s->w->box_host.backend;

	while (s->busy < SWEEP_WIDTH && s->next < s->nitems) {
		struct sweep_item *it = &s->items[s->next++];

		s->busy++;
		b->ops->inspect(b, &it->handle, inspected_cb, it);
	}
	if (s->busy == 0)
		sweep_end(s);
}

static void
item_end(struct sweep_item *it)
{
	it->sweep->busy--;
	sweep_next(it->sweep);
}

static void
removed_cb(int rc, const struct err *why, void *arg)
{
	struct sweep_item *it = arg;

	it->is_gone = rc == 0;
	if (rc == 0)
		it->sweep->removed++;
	else
		log_warn("sweep: %s", why->msg);
	item_end(it);
}

static void
stopped_cb(int rc, const struct err *why, void *arg)
{
	struct sweep_item *it = arg;

	if (rc != 0)
		log_warn("sweep: %s", why->msg);
	item_end(it);
}

static void
tell_found(const struct sweep_item *it, const struct backend_container *c)
{
	const struct backend_report *r = c->report;

	msg_send_sweep_found(it->sweep->w->front,
	    &(struct msg_sweep_found){.uuid = it->id.uuid,
		.name = r->name,
		.container_id = backend_handle_text(&c->handle),
		.tenant = it->id.tenant,
		.identifier = r->identifier,
		.generation = r->generation,
		.image = r->image,
		.created_ms = c->created_ms,
		.running = c->running});
}

static bool
is_over(const struct sweep *s, const struct backend_container *c)
{
	int64_t since = c->report->finished_ms;

	if (s->wish.keep_ms == 0)
		return true;
	if (c->running)
		return false;
	/* One that never ran has nothing that could be missed. */
	if (since == 0)
		return true;
	return since != INT64_MAX && s->wish.asof_ms - since >= s->wish.keep_ms;
}

static void
item_settle(struct sweep_item *it, const struct backend_container *c)
{
	struct sweep *s = it->sweep;
	struct backend *b = s->w->box_host.backend;

	tell_found(it, c);
	if (!s->wish.only_look && is_over(s, c)) {
		b->ops->remove(b, &it->handle, removed_cb, it);
	} else if (!s->wish.only_look && c->running &&
	    !backend_can(b, BACKEND_CAN_STOP)) {
		log_warn_limited(&running_limit,
		    "sweep: %s is a sandbox of this server that its database "
		    "does not know: it is left running",
		    c->report->name);
		item_end(it);
	} else if (!s->wish.only_look && c->running) {
		log_warn("sweep: %s is a sandbox of this server that its "
			 "database does not know: it is stopped, and removed "
			 "in %lld s",
		    c->report->name, (long long)(s->wish.keep_ms / 1000));
		b->ops->stop(b, &it->handle, stopped_cb, it);
	} else {
		item_end(it);
	}
}

static void
inspected_cb(
    int rc, const struct backend_container *c, const struct err *why, void *arg)
{
	struct sweep_item *it = arg;

	it->is_gone = rc == ERR_NOTFOUND;
	if (rc == 0 && backend_is_box(c, &it->id) && !c->removing) {
		item_settle(it, c);
		return;
	}
	if (rc != 0)
		log_debug("sweep: %s", why->msg);
	item_end(it);
}

static void
trial_removed_cb(int rc, const struct err *why, void *arg)
{
	(void)arg;
	if (rc != 0)
		log_debug("sweep: a trial of the carrier: %s", why->msg);
}

/* A worker was killed in the middle of it. */
static void
remove_trial(const struct sweep *s, const struct backend_container *c)
{
	struct backend *b = s->w->box_host.backend;

	if (!s->wish.only_look &&
	    c->created_ms < s->wish.asof_ms - SWEEP_AGE_MS)
		b->ops->remove(b, &c->handle, trial_removed_cb, NULL);
}

static void
listed_cb(int rc, const struct backend_container *list, size_t n,
    const struct err *why, void *arg)
{
	struct sweep *s = arg;

	if (rc != 0) {
		log_debug("sweep: %s", why->msg);
		msg_send_swept(
		    s->w->front, &(struct msg_swept){.is_known = false});
		sweep_reset(s);
		return;
	}
	s->items = xcalloc(n + 1, sizeof(*s->items));
	s->seen = xcalloc(n + 1, sizeof(*s->seen));
	for (size_t i = 0; i < n; i++) {
		const struct backend_container *c = &list[i];

		if (c->is_trial)
			remove_trial(s, c);
		if (!c->is_ours)
			continue;
		s->seen[s->found++] = c->identity.uuid;
		if (is_listed(&c->identity.uuid, s))
			continue;
		if (s->wish.only_look ||
		    c->created_ms < s->wish.asof_ms - SWEEP_AGE_MS)
			s->items[s->nitems++] = (struct sweep_item){
			    .sweep = s, .handle = c->handle, .id = c->identity};
	}
	qsort(s->seen, s->found, sizeof(*s->seen), compare_uuids);
	sweep_next(s);
}

void
sweep_run(struct worker *w, const struct sweep_wish *wish)
{
	struct sweep *s = sweep_of(w);
	struct backend *b = w->box_host.backend;

	if (s->at_work)
		return;
	s->at_work = true;
	s->wish = *wish;
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
	free(w->sweep->seen);
	free(w->sweep->items);
	free(w->sweep);
	w->sweep = NULL;
}
