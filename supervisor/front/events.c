/*
 * events.c - GET {MCP_PATH}/events?run_id=: a run's events, read from its log
 */
#include "supervisor/front/handlers.h"

#include "common/xmalloc.h"
#include "supervisor/core/follow.h"
#include "supervisor/core/quota_use.h"
#include "supervisor/front/refusal.h"
#include "supervisor/front/run_events.h"
#include "supervisor/front/sse.h"

#define LAST_ID_MAX 128
#define CHUNK_MAX 12288 /* bytes of records asked for at a time */

struct events {
	struct sse sse;
	const struct front *front;
	struct follow *follow;
	struct run_events_at at;
	bool is_bad_id; /* what it was to go on behind is no event of the run */
};

static void
events_free(struct sse *s)
{
	struct events *ev = CONTAINER_OF(s, struct events, sse);

	follow_close(ev->follow);
	free(ev);
}

static void
events_next(struct sse *s, size_t appetite)
{
	struct events *ev = CONTAINER_OF(s, struct events, sse);

	follow_next(ev->follow, appetite < CHUNK_MAX ? appetite : CHUNK_MAX);
}

static const struct sse_ops stream_ops = {
    .next = events_next, .free = events_free};

static void
events_on_next(struct follow *follow, const struct log_records *records,
    const struct err *why, void *arg)
{
	struct evbuffer *out = http_buffer_new();
	struct events *ev = arg;
	const struct run_events_to to = {
	    out, follow_row(follow), ev->front->event_key};
	struct log_at at;

	if (records != NULL) {
		run_events_add(
		    &to, records, http_stream_appetite(ev->sse.x), &at);
		follow_go_back(follow, &at);
		sse_answer(&ev->sse, out);
		return;
	}
	if (why != NULL)
		run_events_add_error(out, why);
	else
		run_events_add_end(out, follow_row(follow), ev->at.stage);
	sse_write(&ev->sse, out);
	sse_end(&ev->sse);
}

/* Whose it is comes first: of another's run nothing is checked. */
static void
events_on_open(struct follow *follow, int rc, const struct err *why, void *arg)
{
	struct events *ev = arg;
	struct err e;

	(void)follow;
	if (rc != 0) {
		e = *why;
		http_error_from(sse_leave(&ev->sse), rc, &e);
	} else if (ev->is_bad_id) {
		(void)err_set(
		    &e, ERR_INVAL, "Last-Event-ID is not an event of this run");
		http_error_from(sse_leave(&ev->sse), e.code, &e);
	} else if (http_method(ev->sse.x) == HTTP_METHOD_HEAD) {
		http_reply(
		    sse_leave(&ev->sse), 200, "text/event-stream", "", 0);
	} else {
		sse_start(&ev->sse, ": ok\n\n");
		sse_pump(&ev->sse);
	}
}

static const struct follow_ops follow_ops = {
    .on_open = events_on_open, .on_next = events_on_next};

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
front_on_events(struct request *r)
{
	const struct log_at behind = {FOLLOW_END, 0};
	const struct front *f = r->front;
	struct quota_use *use =
	    quota_use_of(core_quota_uses(f->core), r->who->tenant);
	const char *last_id;
	struct events *ev;
	struct uuid run;
	struct err why;

	if (parse_query(r->x, &run, &last_id) != 0) {
		http_error(r->x, 400, "bad_request",
		    "run_id must be the id of a run: GET %s/events?run_id=ID",
		    f->mcp_path);
		return;
	}
	if (quota_use_add_stream(use, &why) != 0) {
		refusal_send_late(f->refusals, r->x, ROUTE_TOP, &why);
		return;
	}
	ev = xcalloc(1, sizeof(*ev));
	ev->front = f;
	ev->is_bad_id =
	    run_events_parse_id(last_id, &run, f->event_key, &ev->at) != 0;
	if (ev->is_bad_id)
		ev->at.stage = RUN_EVENTS_OVER;
	sse_open(f->sse, &ev->sse, r->x, &stream_ops, use);
	ev->follow = follow_open(f->core, r->who, &run,
	    ev->at.stage == RUN_EVENTS_LOG ? &ev->at.log : &behind, &follow_ops,
	    ev);
}
