#include "supervisor/front/front.h"

#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/event_struct.h>

#include "common/exit.h"
#include "common/log.h"
#include "common/timer.h"
#include "common/xmalloc.h"
#include "supervisor/core/follow.h"
#include "supervisor/core/quota_use.h"
#include "supervisor/front/refusal.h"
#include "supervisor/front/run_events.h"

/*
 * GET {MCP_PATH}/events?run_id=: a run's events, read from its log at the pace
 * of the reader.  The next records are asked for only when fewer than
 * HTTP_STREAM_HIGH bytes wait for the client, and as many as make up the
 * difference: what waits for a client is bounded however fast the run prints.
 */

#define LAST_ID_MAX 128
#define CHUNK_MAX 12288 /* bytes of records asked for at a time */

struct events {
	struct front *front;
	struct http_exchange *x;
	struct follow *follow;
	struct quota_use *use; /* its tenant's, which counts it */
	struct event beat;
	struct run_events_at at;
	bool started;
	bool asked;     /* records are on their way */
	bool is_bad_id; /* what it was to go on behind is no event of the run */
	LIST_ENTRY(events) link;
};

static void
events_free(struct events *s)
{
	(void)event_del(&s->beat);
	follow_close(s->follow);
	LIST_REMOVE(s, link);
	quota_use_drop_stream(s->use);
	free(s);
}

static void
events_on_gone(void *arg)
{
	struct events *s = arg;
	struct http_exchange *x = s->x;

	http_drop(x);
	events_free(s);
}

static void
events_end(struct events *s)
{
	struct http_exchange *x = s->x;

	events_free(s);
	http_stream_end(x);
}

/* ---- writing */

static void
write_text(struct events *s, const char *text)
{
	struct evbuffer *out = http_buffer_new();

	(void)evbuffer_add(out, text, strlen(text));
	http_stream_write(s->x, out);
	evbuffer_free(out);
}

static void
events_pump(struct events *s)
{
	size_t appetite;

	if (s->asked)
		return;
	appetite = http_stream_appetite(s->x);
	if (appetite == 0)
		return;
	s->asked = true;
	follow_next(s->follow, appetite < CHUNK_MAX ? appetite : CHUNK_MAX);
}

static void
events_on_next(struct follow *follow, const struct log_records *records,
    const struct err *why, void *arg)
{
	struct evbuffer *out = http_buffer_new();
	struct events *s = arg;
	const struct run_events_to to = {
	    out, follow_row(follow), s->front->event_key};
	struct log_at at;

	s->asked = false;
	if (records != NULL) {
		run_events_add(&to, records, http_stream_appetite(s->x), &at);
		follow_go_back(follow, &at);
	}
	if (records == NULL && why != NULL)
		run_events_add_error(out, why);
	else if (records == NULL)
		run_events_add_end(out, follow_row(follow), s->at.stage);
	if (evbuffer_get_length(out) > 0)
		http_stream_write(s->x, out);
	evbuffer_free(out);
	if (records == NULL)
		events_end(s);
	else
		events_pump(s);
}

static void
events_on_writable(void *arg)
{
	events_pump(arg);
}

static void
events_beat_later(struct events *s)
{
	const struct timeval tv = timer_timeval(s->front->heartbeat_ms);

	(void)event_add(&s->beat, &tv);
}

static void
events_beat_cb(evutil_socket_t fd, short what, void *arg)
{
	struct events *s = arg;

	(void)fd;
	(void)what;
	events_beat_later(s);
	/* Bytes that wait prove as much, and a beat must not pile up. */
	if (http_stream_pending(s->x) == 0)
		write_text(s, ": \n\n");
}

/* ---- the run */

static void
events_on_open(struct follow *follow, int rc, const struct err *why, void *arg)
{
	struct events *s = arg;
	struct http_exchange *x = s->x;
	struct err e;

	(void)follow;
	/* Whose it is comes first: of another's run nothing is checked. */
	if (rc == 0 && s->is_bad_id)
		rc = ERR_INVAL;
	if (rc != 0) {
		if (rc == ERR_INVAL)
			(void)err_set(&e, rc,
			    "Last-Event-ID is not an event of this run");
		else
			e = *why;
		events_free(s);
		http_error_from(x, rc, &e);
		return;
	}
	if (http_method(x) == HTTP_METHOD_HEAD) {
		events_free(s);
		http_reply(x, 200, "text/event-stream", "", 0);
		return;
	}
	s->started = true;
	http_stream_start(x, events_on_writable);
	write_text(s, ": ok\n\n");
	events_beat_later(s);
	events_pump(s);
}

static const struct follow_ops events_follow_ops = {
    .on_open = events_on_open,
    .on_next = events_on_next,
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
	const struct log_at behind = {FOLLOW_END, 0};
	struct quota_use *use =
	    quota_use_of(core_quota_uses(f->core), http_principal(x)->tenant);
	struct err why;
	const char *last_id;
	struct run_events_at at;
	struct uuid run;
	struct events *s;
	bool is_bad_id;

	if (parse_query(x, &run, &last_id) != 0) {
		http_error(x, 400, "bad_request",
		    "run_id must be the id of a run: GET %s/events?run_id=ID",
		    f->mcp_path);
		return;
	}
	is_bad_id = run_events_parse_id(last_id, &run, f->event_key, &at) != 0;
	if (is_bad_id)
		at.stage = RUN_EVENTS_OVER;
	if (quota_use_add_stream(use, &why) != 0) {
		refusal_send_late(f->refusals, x, ROUTE_TOP, &why);
		return;
	}
	s = xcalloc(1, sizeof(*s));
	s->front = f;
	s->use = use;
	s->x = x;
	s->is_bad_id = is_bad_id;
	s->at = at;
	(void)event_assign(&s->beat, f->base, -1, 0, events_beat_cb, s);
	LIST_INSERT_HEAD(&f->events, s, link);
	http_hold(x, events_on_gone, s);
	s->follow = follow_open(f->core, http_principal(x), &run,
	    at.stage == RUN_EVENTS_LOG ? &at.log : &behind, &events_follow_ops,
	    s);
}

void
front_events_drain(struct front *f)
{
	struct events *s, *next;

	for (s = LIST_FIRST(&f->events); s != NULL; s = next) {
		next = LIST_NEXT(s, link);
		if (s->started)
			events_end(s);
	}
}
