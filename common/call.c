#include "common/call.h"

#include "common/utf8.h"

void
call_init(struct call *c, const struct call_ops *up, struct principal *who,
    const char *request_id)
{
	size_t n = strnlen(request_id, CALL_REQUEST_ID_MAX);

	*c = (struct call){.up = up, .who = principal_ref(who)};
	memcpy(c->request_id, request_id, n);
}

void
call_set_origin(struct call *c, const char *origin)
{
	size_t n = origin == NULL ? 0 : strnlen(origin, sizeof(c->origin) - 1);

	if (n > 0)
		memcpy(c->origin, origin, n);
	c->origin[n] = '\0';
}

void
call_set_server_url(struct call *c, const char *url)
{
	size_t n = url == NULL ? 0 : strlen(url);

	if (n > CALL_SERVER_URL_MAX)
		n = 0;
	if (n > 0)
		memcpy(c->server_url, url, n);
	c->server_url[n] = '\0';
}

void
call_set_client(struct call *c, const char *client)
{
	utf8_copy(c->client, sizeof(c->client), client == NULL ? "" : client);
	if (!utf8_is_valid(c->client, strlen(c->client)))
		c->client[0] = '\0';
	c->client[utf8_mask_controls(c->client, strlen(c->client))] = '\0';
}

void
call_set_trace(struct call *c, const char *first, const char *second)
{
	struct trace t;

	if (trace_continue(&t, first) == 0 || trace_continue(&t, second) == 0)
		trace_parent(&t, c->traceparent);
	else
		trace_begin(&t);
	memcpy(c->trace, t.id, sizeof(t.id));
	memcpy(c->span, t.span, sizeof(t.span));
	memcpy(c->parent_span, t.parent, sizeof(t.parent));
}

void
call_clear(struct call *c)
{
	principal_unref(c->who);
	*c = (struct call){0};
}

void
call_hold(struct call *c, call_cancel_cb on_cancel, void *arg)
{
	if (c->canceled) {
		on_cancel(c, arg);
		return;
	}
	c->on_cancel = on_cancel;
	c->holder = arg;
}

void
call_release(struct call *c)
{
	c->on_cancel = NULL;
	c->holder = NULL;
}

void
call_cancel(struct call *c)
{
	call_cancel_cb cb = c->on_cancel;
	void *holder = c->holder;

	if (c->canceled)
		return;
	c->canceled = true;
	call_release(c);
	if (cb != NULL)
		cb(c, holder); /* may end the call */
}

bool
call_wants_progress(const struct call *c)
{
	return !c->canceled && c->up->progress != NULL;
}

void
call_progress(struct call *c, const struct call_progress *p)
{
	if (call_wants_progress(c))
		c->up->progress(c, p);
}
