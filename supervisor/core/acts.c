#include "supervisor/core/acts.h"

#include <inttypes.h>
#include <stdio.h>

#include "common/clock.h"
#include "common/conf.h"
#include "common/log.h"
#include "common/timer.h"
#include "common/utf8.h"
#include "common/xmalloc.h"
#include "supervisor/core/run.h"
#include "supervisor/core/sandbox.h"

#define ORIGIN_MAX 64
#define WHAT_MAX 32

struct refusals { /* alike */
	char what[WHAT_MAX];
	char origin[ORIGIN_MAX];
	char tenant[PRINCIPAL_TENANT_MAX + 1];
	struct principal who; /* its names; "": nobody */
	const char *subject;  /* static, as is why */
	const char *why;
	uint32_t count; /* that were not told yet */
};

struct refused { /* of strangers, or of tenants */
	struct refusals rows[ACTS_REFUSALS_MAX + 1];
	size_t n;
};

struct acts {
	const struct conf *conf;
	struct store *store;
	struct bus *bus;
	struct bus_member member;
	struct timer *timer; /* set while there are refusals */
	struct refused strangers, tenants;
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

static const char *
or_empty(const char *text)
{
	return text == NULL ? "" : text;
}

static const char *
null_if_empty(const char *text)
{
	return text[0] == '\0' ? NULL : text;
}

static void
fill(struct refusals *r, const struct act *a)
{
	*r = (struct refusals){
	    .subject = or_empty(a->subject), .why = or_empty(a->detail)};
	(void)snprintf(r->what, sizeof(r->what), "%s", a->what);
	(void)snprintf(r->origin, sizeof(r->origin), "%s", or_empty(a->origin));
	(void)snprintf(r->tenant, sizeof(r->tenant), "%s", or_empty(a->tenant));
	if (a->who != NULL)
		r->who = *a->who;
}

static bool
is_alike(const struct refusals *a, const struct refusals *b)
{
	return strcmp(a->origin, b->origin) == 0 &&
	    strcmp(a->tenant, b->tenant) == 0 &&
	    strcmp(a->who.subject, b->who.subject) == 0 &&
	    strcmp(a->subject, b->subject) == 0 &&
	    strcmp(a->why, b->why) == 0 && strcmp(a->what, b->what) == 0;
}

/* *is_new: it was not there before. */
static struct refusals *
find(struct acts *t, const struct act *a, bool *is_new)
{
	struct refused *all = a->tenant == NULL ? &t->strangers : &t->tenants;
	struct refusals like;

	fill(&like, a);
	*is_new = false;
	for (size_t i = 0; i < all->n; i++)
		if (is_alike(&all->rows[i], &like))
			return &all->rows[i];
	if (all->n <= ACTS_REFUSALS_MAX) {
		if (all->n == ACTS_REFUSALS_MAX)
			fill(&like,
			    &(struct act){.what = a->what,
				.origin = "*",
				.tenant = a->tenant == NULL ? NULL : "*",
				.detail = "several"});
		*is_new = all->n < ACTS_REFUSALS_MAX;
		all->rows[all->n++] = like;
	}
	return &all->rows[all->n - 1];
}

static void
count(struct acts *t, struct refusals *r)
{
	if (!timer_is_set(t->timer))
		timer_set_ms(t->timer, ACTS_PERIOD_MS);
	if (r->count < UINT32_MAX)
		r->count++;
}

void
acts_refused(struct acts *t, const struct act *a)
{
	bool is_new;
	struct refusals *r = find(t, a, &is_new);

	count(t, r);
	if (!is_new)
		return;
	r->count = 0;
	log_act(a, 1);
	put(t, a, 1, NULL, NULL);
}

void
acts_count(struct acts *t, const struct act *a)
{
	bool is_new;

	count(t, find(t, a, &is_new));
}

static void
flush(struct acts *t, struct refused *all)
{
	for (size_t i = 0; i < all->n; i++) {
		struct refusals *r = &all->rows[i];
		const struct act a = {.what = r->what,
		    .who = r->who.subject[0] == '\0' ? NULL : &r->who,
		    .origin = null_if_empty(r->origin),
		    .tenant = null_if_empty(r->tenant),
		    .subject = null_if_empty(r->subject),
		    .detail = null_if_empty(r->why)};

		if (r->count == 0)
			continue;
		log_act(&a, r->count);
		put(t, &a, r->count, NULL, NULL);
	}
	all->n = 0;
}

void
acts_flush(struct acts *t)
{
	timer_stop(t->timer);
	flush(t, &t->strangers);
	flush(t, &t->tenants);
}

static void
period_cb(void *arg)
{
	acts_flush(arg);
}

/* ---- what ends by itself, too */

static void
log_run(const struct store_run *row)
{
	char id[UUID_TEXT_LEN + 1], duration[24], tenant[24];
	int64_t from = row->started_ms != 0 ? row->started_ms : row->ended_ms;
	const struct log_field fields[] = {
	    {"run", id},
	    {"sandbox", row->identifier},
	    {"tenant", tenant},
	    {"tool", row->tool},
	    {"state", run_state_word(row->state)},
	    {"end_reason", runlog_reason_word(row->end_reason)},
	    {"duration_ms", duration},
	    {"request", null_if_empty(row->request_id)},
	    {"principal", null_if_empty(row->principal)},
	    {"trace", null_if_empty(row->trace)},
	    {"span", null_if_empty(row->span)},
	    {"parent_span", null_if_empty(row->parent_span)},
	};

	uuid_format(&row->uuid, id);
	(void)snprintf(tenant, sizeof(tenant), "%" PRIu64, row->tenant);
	(void)snprintf(
	    duration, sizeof(duration), "%" PRId64, row->ended_ms - from);
	log_event(LOG_INFO, "run ended", fields, ARRAY_LEN(fields));
}

static void
on_bus(const struct bus_event *ev, void *arg)
{
	const struct sandbox *sb = ev->sandbox;
	struct acts *t = arg;

	if (ev->kind == BUS_RUN_ENDED && conf_bool(t->conf, CONF_LOG_RUNS))
		log_run(&ev->run->row);
	if (ev->kind != BUS_SANDBOX_GONE && ev->kind != BUS_SANDBOX_FAILED)
		return;
	acts_note(t,
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
acts_new(struct event_base *base, const struct conf *conf, struct store *store,
    struct bus *bus)
{
	struct acts *t = xcalloc(1, sizeof(*t));

	t->conf = conf;
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
