#include "supervisor/front/front.h"

#include <string.h>

#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/event_struct.h>

#include "common/log.h"
#include "common/xmalloc.h"

/*
 * GET {MCP_PATH}/events?run_id=: a run's events, pulled from its log at the
 * pace of the reader.  The next event is made only when fewer than
 * HTTP_STREAM_HIGH bytes wait for the client.
 */

#define LAST_ID_MAX 128

struct sse {
	struct front *front;
	struct http_exchange *x;
	struct follow *follow;
	struct event kick; /* pump soon, and the heartbeat */
	bool started;
	LIST_ENTRY(sse) link;
};

static void
sse_free(struct sse *s)
{
	(void)event_del(&s->kick);
	follow_close(s->follow);
	LIST_REMOVE(s, link);
	free(s);
}

static void
sse_on_gone(void *arg)
{
	struct sse *s = arg;
	struct http_exchange *x = s->x;

	http_drop(x);
	sse_free(s);
}

static void
sse_end(struct sse *s)
{
	struct http_exchange *x = s->x;

	sse_free(s);
	http_stream_end(x);
}

/* ---- writing */

static void
add_event(struct evbuffer *out, const struct follow_event *ev)
{
	(void)evbuffer_add(out, "id: ", 4);
	(void)evbuffer_add(out, ev->id, strlen(ev->id));
	(void)evbuffer_add(out, "\nevent: ", 8);
	(void)evbuffer_add(out, ev->name, strlen(ev->name));
	(void)evbuffer_add(out, "\ndata: ", 7);
	(void)evbuffer_add(out, ev->data, ev->data_len);
	(void)evbuffer_add(out, "\n\n", 2);
}

static enum follow_result
sse_fill(struct sse *s, struct evbuffer *out)
{
	size_t pending = http_stream_pending(s->x);
	struct follow_event ev;
	enum follow_result res = FOLLOW_EVENT;

	while (res == FOLLOW_EVENT &&
	    pending + evbuffer_get_length(out) < HTTP_STREAM_HIGH) {
		res = follow_next(s->follow, &ev);
		if (res == FOLLOW_EVENT)
			add_event(out, &ev);
	}
	return res;
}

static void
sse_pump(struct sse *s)
{
	static const char broken[] =
	    "event: error\ndata: {\"error\":\"the log of this run cannot be "
	    "read further\"}\n\n";
	struct evbuffer *out = evbuffer_new();
	enum follow_result res;

	if (out == NULL)
		fatal(71, "out of memory");
	res = sse_fill(s, out);
	if (res == FOLLOW_ERROR)
		(void)evbuffer_add(out, broken, sizeof(broken) - 1);
	if (evbuffer_get_length(out) > 0)
		http_stream_write(s->x, out);
	evbuffer_free(out);
	if (res == FOLLOW_END || res == FOLLOW_ERROR)
		sse_end(s);
}

static void
sse_heartbeat(struct sse *s)
{
	struct evbuffer *out;

	/* Bytes that wait prove as much, and a beat must not pile up. */
	if (!s->started || http_stream_pending(s->x) > 0)
		return;
	out = evbuffer_new();
	if (out == NULL)
		fatal(71, "out of memory");
	(void)evbuffer_add(out, ": \n\n", 4);
	http_stream_write(s->x, out);
	evbuffer_free(out);
}

static void
sse_beat_soon(struct sse *s)
{
	uint32_t ms = s->front->heartbeat_ms;
	const struct timeval tv = {ms / 1000, ms % 1000 * 1000};

	(void)event_add(&s->kick, &tv);
}

static void
sse_kick_cb(evutil_socket_t fd, short what, void *arg)
{
	struct sse *s = arg;

	(void)fd;
	sse_beat_soon(s);
	if ((what & EV_READ) == 0)
		sse_heartbeat(s);
	else if (s->started)
		sse_pump(s); /* may end it */
}

static void
sse_on_writable(void *arg)
{
	sse_pump(arg);
}

/* ---- the run */

static void
sse_on_wake(struct follow *follow, void *arg)
{
	struct sse *s = arg;

	(void)follow;
	/* Once per turn is enough, however often there is more. */
	event_active(&s->kick, EV_READ, 1);
}

static void
sse_on_ready(struct follow *follow, int rc, const struct err *why, void *arg)
{
	static const char ok[] = ": ok\n\n";
	struct sse *s = arg;
	struct http_exchange *x = s->x;
	struct evbuffer *out;

	s->follow = follow;
	if (rc != 0) {
		sse_free(s);
		http_error_from(x, rc, why);
		return;
	}
	if (http_method(x) == HTTP_METHOD_HEAD) {
		sse_free(s);
		http_reply(x, 200, "text/event-stream", "", 0);
		return;
	}
	s->started = true;
	http_stream_start(x, sse_on_writable);
	out = evbuffer_new();
	if (out == NULL)
		fatal(71, "out of memory");
	(void)evbuffer_add(out, ok, sizeof(ok) - 1);
	http_stream_write(x, out);
	evbuffer_free(out);
	event_active(&s->kick, EV_READ, 1);
}

static const struct follow_ops sse_follow_ops = {
    .ready = sse_on_ready,
    .wake = sse_on_wake,
};

/* The run and where to go on, from the query; the header wins. */
static int
parse_query(struct http_exchange *x, struct uuid *run, const char **last_id)
{
	const char *text = http_query(x, "run_id");

	*last_id = http_header(x, HTTP_H_LAST_EVENT_ID);
	if (*last_id == NULL)
		*last_id = http_query(x, "last_event_id");
	if (*last_id == NULL)
		*last_id = "";
	return text != NULL && uuid_parse(text, run) == 0 &&
		strlen(*last_id) <= LAST_ID_MAX ?
	    0 :
	    -1;
}

void
front_on_events(struct front *f, struct http_exchange *x)
{
	const char *last_id;
	struct uuid run;
	struct sse *s;

	if (parse_query(x, &run, &last_id) != 0) {
		http_error(x, 400, "bad_request",
		    "run_id must be the id of a run: GET %s/events?run_id=ID",
		    f->mcp_path);
		return;
	}
	s = xcalloc(1, sizeof(*s));
	s->front = f;
	s->x = x;
	(void)event_assign(&s->kick, f->base, -1, 0, sse_kick_cb, s);
	LIST_INSERT_HEAD(&f->sses, s, link);
	http_hold(x, sse_on_gone, s);
	s->follow = follow_open(f->service, check_principal(f->check), &run,
	    last_id, &sse_follow_ops, s);
}

void
front_sse_drain(struct front *f)
{
	struct sse *s, *next;

	for (s = LIST_FIRST(&f->sses); s != NULL; s = next) {
		next = LIST_NEXT(s, link);
		if (s->started)
			sse_end(s);
	}
}
