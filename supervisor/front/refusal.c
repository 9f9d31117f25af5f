#include "supervisor/front/refusal.h"

#include <sys/queue.h>

#include <event2/buffer.h>

#include "common/clock.h"
#include "common/js.h"
#include "common/timer.h"
#include "common/xmalloc.h"
#include "supervisor/mcp/mcp.h"

static void
send_refusal(
    struct http_exchange *x, enum route_place place, const struct err *why)
{
	json_t *o, *of;

	if (place != ROUTE_MCP) {
		http_error_from(x, why->code, why);
		return;
	}
	of = json_pack("{s:s, s:s}", "code", err_name(why->code), "request_id",
	    http_id(x));
	http_add_refusal(x, &why->refusal, of);
	o = json_pack("{s:s, s:n, s:{s:i, s:s, s:o}}", "jsonrpc", "2.0", "id",
	    "error", "code", MCP_SERVER_ERROR, "message", why->msg, "data", of);
	http_reply_json(x, 429, o);
}

/* ---- late */

struct late {
	struct late_refusals *all;
	struct http_exchange *x;
	enum route_place place;
	struct err why;
	uint64_t due_ms;
	TAILQ_ENTRY(late) link;
};

struct late_refusals {
	TAILQ_HEAD(, late) waiting; /* as they came: all wait as long */
	unsigned int n;
	struct timer *timer; /* for the first */
};

static void
late_free(struct late *l)
{
	TAILQ_REMOVE(&l->all->waiting, l, link);
	l->all->n--;
	free(l);
}

static void
late_on_gone(void *arg)
{
	struct late *l = arg;
	struct http_exchange *x = l->x;

	http_drop(x);
	late_free(l);
}

static void
due_cb(void *arg)
{
	struct late_refusals *all = arg;
	uint64_t now = clock_mono_ms();
	struct late *l;

	while ((l = TAILQ_FIRST(&all->waiting)) != NULL && l->due_ms <= now) {
		struct http_exchange *x = l->x;
		enum route_place place = l->place;
		struct err why = l->why;

		late_free(l);
		send_refusal(x, place, &why);
	}
	if (l != NULL)
		timer_set_ms(all->timer, l->due_ms - now);
}

struct late_refusals *
late_refusals_new(struct event_base *base)
{
	struct late_refusals *all = xcalloc(1, sizeof(*all));

	TAILQ_INIT(&all->waiting);
	all->timer = timer_new(base, due_cb, all);
	return all;
}

void
late_refusals_free(struct late_refusals *all)
{
	timer_free(all->timer);
	free(all);
}

void
refusal_send_late(struct late_refusals *all, struct http_exchange *x,
    enum route_place place, const struct err *why)
{
	struct evbuffer *body;
	struct late *l;

	if (all->n >= REFUSAL_LATE_MAX) {
		send_refusal(x, place, why);
		return;
	}
	body = http_take_body(x); /* nobody reads it */
	if (body != NULL)
		evbuffer_free(body);
	l = xcalloc(1, sizeof(*l));
	l->all = all;
	l->x = x;
	l->place = place;
	l->why = *why;
	l->due_ms = clock_mono_ms() + REFUSAL_LATE_MS;
	TAILQ_INSERT_TAIL(&all->waiting, l, link);
	if (all->n++ == 0)
		timer_set_ms(all->timer, REFUSAL_LATE_MS);
	http_hold(x, late_on_gone, l);
}
