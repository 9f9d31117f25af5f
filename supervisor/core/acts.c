#include "supervisor/core/acts.h"

#include <stdio.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/timer.h"
#include "common/utf8.h"
#include "common/xmalloc.h"
#include "supervisor/core/sandbox.h"

#define ORIGIN_MAX 64
#define WHAT_MAX 32

struct refusals { /* alike */
	char what[WHAT_MAX];
	char origin[ORIGIN_MAX];
	const char *why;
	uint32_t count; /* that were not told yet */
};

struct acts {
	struct store *store;
	struct bus *bus;
	struct bus_member member;
	struct timer *timer; /* set while there are refusals */
	struct refusals refusals[ACTS_REFUSALS_MAX + 1];
	size_t nrefusals;
};

/* ---- a row */

static char *
text_of(const char *s)
{
	size_t n = s == NULL ? 0 : strlen(s);

	if (n > ACTS_TEXT_MAX)
		n = utf8_complete_len(s, ACTS_TEXT_MAX);
	return n == 0 ? xstrdup("") : xstrndup(s, n);
}

static void
put(struct acts *t, const struct act *a, uint32_t times, store_done_cb done,
    void *arg)
{
	struct store_audit row = {.at_ms = clock_wall_ms(),
	    .times = times,
	    .what = text_of(a->what),
	    .actor_tenant =
		text_of(a->who == NULL ? NULL : a->who->tenant_name),
	    .actor = text_of(a->who == NULL ? NULL : a->who->subject),
	    .origin = text_of(a->origin),
	    .request_id = text_of(a->request_id),
	    .tenant = text_of(a->tenant),
	    .subject = text_of(a->subject),
	    .detail = text_of(a->detail)};

	if (a->digest != NULL) {
		row.digest = xmemdup(a->digest, 32);
		row.digest_len = 32;
	}
	store_audit_put(t->store, &row, done, arg);
	store_audit_clear(&row);
}

static void
log_act(const struct act *a, uint32_t times)
{
	char text[16];
	const struct log_field fields[] = {
	    {"what", a->what},
	    {"by", a->who == NULL ? NULL : a->who->subject},
	    {"by_tenant", a->who == NULL ? NULL : a->who->tenant_name},
	    {"origin", a->origin},
	    {"request", a->request_id},
	    {"tenant", a->tenant},
	    {"subject", a->subject},
	    {"detail", a->detail},
	    {"times", times == 1 ? NULL : text},
	};

	(void)snprintf(text, sizeof(text), "%u", times);
	log_event(LOG_INFO, "act", fields, ARRAY_LEN(fields));
}

void
acts_tell(struct acts *t, const struct act *a, store_done_cb done, void *arg)
{
	log_act(a, 1);
	put(t, a, 1, done, arg);
}

void
acts_note(struct acts *t, const struct act *a)
{
	put(t, a, 1, NULL, NULL);
}

/* ---- refusals, which somebody outside can make as many of as he likes */

static struct refusals *
find(struct acts *t, const struct act *a, const char *origin)
{
	for (size_t i = 0; i < t->nrefusals; i++) {
		struct refusals *r = &t->refusals[i];

		if (strcmp(r->origin, origin) == 0 &&
		    strcmp(r->why, a->detail) == 0 &&
		    strcmp(r->what, a->what) == 0)
			return r;
	}
	return NULL;
}

static struct refusals *
add(struct acts *t, const struct act *a, const char *origin)
{
	struct refusals *r = &t->refusals[t->nrefusals++];

	*r = (struct refusals){.why = a->detail};
	(void)snprintf(r->what, sizeof(r->what), "%s", a->what);
	(void)snprintf(r->origin, sizeof(r->origin), "%s", origin);
	return r;
}

void
acts_refused(struct acts *t, const struct act *a)
{
	const char *origin = a->origin == NULL ? "" : a->origin;
	struct refusals *r = find(t, a, origin);
	bool is_known = r != NULL;

	if (!is_known && t->nrefusals >= ACTS_REFUSALS_MAX) {
		if (t->nrefusals == ACTS_REFUSALS_MAX)
			(void)add(t,
			    &(struct act){.what = a->what, .detail = "several"},
			    "*");
		r = &t->refusals[ACTS_REFUSALS_MAX];
		is_known = true;
	}
	if (!timer_is_set(t->timer))
		timer_set_ms(t->timer, ACTS_PERIOD_MS);
	if (is_known) {
		if (r->count < UINT32_MAX)
			r->count++;
		return;
	}
	(void)add(t, a, origin);
	log_act(a, 1);
	put(t, a, 1, NULL, NULL);
}

void
acts_flush(struct acts *t)
{
	timer_stop(t->timer);
	for (size_t i = 0; i < t->nrefusals; i++) {
		const struct refusals *r = &t->refusals[i];
		const struct act a = {
		    .what = r->what, .origin = r->origin, .detail = r->why};

		if (r->count == 0)
			continue;
		log_act(&a, r->count);
		put(t, &a, r->count, NULL, NULL);
	}
	t->nrefusals = 0;
}

static void
period_cb(void *arg)
{
	acts_flush(arg);
}

/* ---- what ends by itself, too */

static void
on_bus(const struct bus_event *ev, void *arg)
{
	const struct sandbox *sb = ev->sandbox;

	if (ev->kind != BUS_SANDBOX_GONE && ev->kind != BUS_SANDBOX_FAILED)
		return;
	acts_note(arg,
	    &(struct act){.what = ev->kind == BUS_SANDBOX_GONE ?
		    "sandbox.end" :
		    "sandbox.failed",
		.tenant = sb->owner->tenant_name,
		.subject = sb->row.name,
		.detail =
		    sb->is_expired ? "expired" : sandbox_word(sb->row.state)});
}

/* ---- life */

struct acts *
acts_new(struct event_base *base, struct store *store, struct bus *bus)
{
	struct acts *t = xcalloc(1, sizeof(*t));

	t->store = store;
	t->bus = bus;
	t->timer = timer_new(base, period_cb, t);
	bus_join(bus, &t->member, on_bus, t);
	return t;
}

void
acts_free(struct acts *t)
{
	if (t == NULL)
		return;
	acts_flush(t);
	bus_leave(t->bus, &t->member);
	timer_free(t->timer);
	free(t);
}
