#include "supervisor/front/refusal.h"

#include <event2/buffer.h>

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

struct late_refusals {
	struct event_base *base;
	unsigned int n;
};

struct late {
	struct late_refusals *all;
	struct http_exchange *x;
	enum route_place place;
	struct err why;
	struct timer *timer;
};

static void
late_free(struct late *l)
{
	l->all->n--;
	timer_free(l->timer);
	free(l);
}

static void
late_on_gone(void *arg)
{
	struct late *l = arg;

	http_drop(l->x);
	late_free(l);
}

static void
due_cb(void *arg)
{
	struct late *l = arg;

	send_refusal(l->x, l->place, &l->why);
	late_free(l);
}

struct late_refusals *
late_refusals_new(struct event_base *base)
{
	struct late_refusals *all = xcalloc(1, sizeof(*all));

	all->base = base;
	return all;
}

void
late_refusals_free(struct late_refusals *all)
{
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
	*l =
	    (struct late){all, x, place, *why, timer_new(all->base, due_cb, l)};
	all->n++;
	timer_set_ms(l->timer, REFUSAL_LATE_MS);
	http_hold(x, late_on_gone, l);
}
