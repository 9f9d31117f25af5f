/*
 * run_events.c - GET {MCP_PATH}/events?run_id=: a run's events, read from its
 * log, and how they look
 */
#include "supervisor/front/run_events.h"

#include <stdio.h>

#include <event2/buffer.h>

#include "common/js.h"
#include "common/runlog_scan.h"
#include "common/utf8.h"
#include "common/xmalloc.h"
#include "supervisor/core/follow.h"
#include "supervisor/core/quota_use.h"
#include "supervisor/front/handlers.h"
#include "supervisor/front/refusal.h"
#include "supervisor/front/sse.h"
#include "supervisor/tools/view.h"

#define LAST_ID_MAX 128
#define CHUNK_MAX 12288 /* bytes of records asked for at a time */
#define OFFSET_DIGITS_MAX 18
#define SKIP_DIGITS_MAX 5
#define PLACE_TEXT_MAX 32
#define ID_TEXT_MAX 56
#define EVENT_BYTES 330 /* about, of an event beside its output */
#define WISH_MAX 4096   /* of what a command is */
#define ID_ARTIFACTS "artifacts"
#define ID_END "end"

/* ---- ids */

static void
format_place(const struct log_at *at, char out[PLACE_TEXT_MAX])
{
	int n = snprintf(
	    out, PLACE_TEXT_MAX, "%llu", (unsigned long long)at->offset);

	if (at->skip > 0)
		(void)snprintf(
		    out + n, PLACE_TEXT_MAX - (size_t)n, ".%u", at->skip);
}

static void
format_id(const struct log_at *at, const struct uuid *run, const uint8_t *key,
    char out[ID_TEXT_MAX])
{
	char place[PLACE_TEXT_MAX], id[UUID_TEXT_LEN + 1];
	char text[PLACE_TEXT_MAX + UUID_TEXT_LEN + 2];
	int n;

	format_place(at, place);
	uuid_format(run, id);
	n = snprintf(text, sizeof(text), "%s %s", id, place);
	(void)snprintf(out, ID_TEXT_MAX, "%s-%016llx", place,
	    (unsigned long long)siphash(key, text, (size_t)n));
}

static int
parse_place(const char *text, struct log_at *at)
{
	size_t digits = strspn(text, "0123456789");
	char *end;

	if (digits == 0 || digits > OFFSET_DIGITS_MAX)
		return ERR_INVAL;
	at->offset = strtoull(text, &end, 10);
	if (*end != '.')
		return 0;
	digits = strspn(end + 1, "0123456789");
	if (digits == 0 || digits > SKIP_DIGITS_MAX)
		return ERR_INVAL;
	at->skip = (uint32_t)strtoul(end + 1, NULL, 10);
	return 0;
}

int
run_events_parse_id(const char *text, const struct uuid *run,
    const uint8_t key[SIPHASH_KEY_BYTES], struct run_events_at *at)
{
	char want[ID_TEXT_MAX];

	*at = (struct run_events_at){.stage = RUN_EVENTS_LOG};
	if (text == NULL || text[0] == '\0')
		return 0;
	if (strcmp(text, ID_ARTIFACTS) == 0) {
		at->stage = RUN_EVENTS_END;
		return 0;
	}
	if (strcmp(text, ID_END) == 0) {
		at->stage = RUN_EVENTS_OVER;
		return 0;
	}
	if (parse_place(text, &at->log) != 0)
		return ERR_INVAL;
	format_id(&at->log, run, key, want);
	return strcmp(text, want) == 0 ? 0 : ERR_INVAL;
}

/* ---- one event */

/* o is taken over; id NULL: none. */
static void
add_event(struct evbuffer *out, const char *id, const char *name, json_t *o)
{
	AUTO(auto_free) char *data = js_dump(o);

	json_decref(o);
	sse_add(out, id, name);
	(void)evbuffer_add(out, data, strlen(data));
	(void)evbuffer_add_printf(out, SSE_END);
}

static json_t *
event_object(const struct store_run *row)
{
	char id[UUID_TEXT_LEN + 1];

	uuid_format(&row->uuid, id);
	return json_pack("{s:s}", "run_id", id);
}

/* ---- from the log */

struct record {
	struct runlog_header h;
	const uint8_t *payload;
	char id[ID_TEXT_MAX]; /* the place behind it */
};

static void
add_started(
    struct evbuffer *out, const struct store_run *row, const struct record *r)
{
	json_t *o = event_object(row);

	json_object_update_new(o,
	    json_pack("{s:s, s:s, s:o}", "identifier", row->identifier,
		"sandbox_container_id", row->container_id, "started_at",
		view_time(r->h.wall_us / 1000)));
	add_event(out, r->id, "run_started", o);
}

static void
add_command_started(
    struct evbuffer *out, const struct store_run *row, const struct record *r)
{
	const struct store_command *c = &row->commands[r->h.command];
	size_t shell = js_bytes_fit(c->shell, strlen(c->shell), WISH_MAX);
	size_t argv = strlen(c->argv_json);
	json_t *o = event_object(row);

	json_object_set_new(o, "index", json_integer(r->h.command));
	if (c->shell[0] != '\0')
		json_object_set_new(o, "shell",
		    js_string_bytes(
			c->shell, utf8_complete_len(c->shell, shell), NULL));
	if (c->argv_json[0] != '\0' && argv <= WISH_MAX)
		json_object_set_new(
		    o, "argv", json_loads(c->argv_json, 0, NULL));
	if (shell < strlen(c->shell) || argv > WISH_MAX)
		json_object_set_new(o, "request_truncated", json_true());
	json_object_set_new(o, "cwd", json_string(c->cwd));
	json_object_set_new(o, "started_at", view_time(r->h.wall_us / 1000));
	add_event(out, r->id, "command_started", o);
}

static void
add_output(struct evbuffer *out, const struct store_run *row,
    const struct record *r, const struct buf *text)
{
	json_t *o = event_object(row);
	bool lossy;

	json_object_set_new(o, "index", json_integer(r->h.command));
	json_object_set_new(
	    o, "chunk", js_string_bytes(buf_data(text), buf_len(text), &lossy));
	if (lossy)
		json_object_set_new(o, "chunk_base64",
		    view_base64(buf_data(text), buf_len(text)));
	json_object_set_new(o, "truncated", json_false());
	add_event(out, r->id,
	    r->h.type == RUNLOG_STDOUT ? "command_stdout" : "command_stderr",
	    o);
}

static const char *
status_word(const struct runlog_end *end)
{
	if (end->reason == RUNLOG_TIMEOUT)
		return COMMAND_TIMED_OUT_WORD;
	if (end->reason == RUNLOG_CANCELED)
		return COMMAND_CANCELED_WORD;
	return end->reason == RUNLOG_EXIT && end->exit_code == 0 ?
	    COMMAND_COMPLETED_WORD :
	    COMMAND_FAILED_WORD;
}

static void
add_command_ended(
    struct evbuffer *out, const struct store_run *row, const struct record *r)
{
	json_t *o = event_object(row);
	struct runlog_end end;

	if (runlog_parse_end(r->payload, r->h.length, &end, NULL) != 0) {
		json_decref(o);
		return;
	}
	json_object_update_new(o,
	    json_pack("{s:i, s:i, s:s, s:s, s:I, s:I, s:b, s:b, s:o*, s:o}",
		"index", (int)r->h.command, "exit_code", (int)end.exit_code,
		"status", status_word(&end), "end_reason",
		runlog_reason_word(end.reason), "stdout_bytes",
		(json_int_t)end.stdout_bytes, "stderr_bytes",
		(json_int_t)end.stderr_bytes, "stdout_truncated", 0,
		"stderr_truncated", 0, "memory_kills",
		end.memory_kills > 0 ? json_integer(end.memory_kills) : NULL,
		"ended_at", view_time(r->h.wall_us / 1000)));
	add_event(out, r->id, "command_finished", o);
}

struct telling {
	const struct run_events_to *to;
	const struct log_records *records;
	struct runlog_scan scan;
	size_t room;
	struct log_at at; /* behind what was told or gathered */
	bool is_full;     /* there is no room for more */
	/* Small writes of a chatty program are gathered as long as they are
	 * of one stream. */
	bool is_gathering;
	struct runlog_header first;
	struct buf text;
};

/* Where in the log the record at hand begins, and from which byte of its
 * output on it was given. */
static struct log_at
record_start(const struct telling *t)
{
	const struct log_at *from = &t->records->from;

	if (t->scan.at == 0)
		return *from;
	return (struct log_at){from->offset + from->skip + t->scan.at, 0};
}

/* Behind n bytes of its output as given. */
static struct log_at
record_place(const struct telling *t, uint32_t n)
{
	struct log_at at = record_start(t);
	bool is_last =
	    t->scan.at + RUNLOG_HEADER_BYTES + t->scan.header.length ==
	    t->records->n;

	at.skip += n;
	if (n < t->scan.header.length || (is_last && t->records->skip > 0))
		return at;
	return (struct log_at){at.offset + RUNLOG_HEADER_BYTES + at.skip, 0};
}

static void
set_id(const struct telling *t, struct record *r)
{
	format_id(&t->at, &t->to->row->uuid, t->to->key, r->id);
}

static void
tell_gathered(struct telling *t)
{
	struct record r = {.h = t->first};

	if (!t->is_gathering)
		return;
	set_id(t, &r);
	add_output(t->to->out, t->to->row, &r, &t->text);
	buf_clear(&t->text);
	t->is_gathering = false;
}

static void
take_room(struct telling *t, size_t n)
{
	t->room = t->room > n ? t->room - n : 0;
}

/* The first is told however little room there is. */
static void
begin_record(struct telling *t)
{
	const struct runlog_header *h = &t->scan.header;
	bool is_new = !t->is_gathering || h->type != t->first.type ||
	    h->command != t->first.command;

	if (is_new && t->scan.at > 0 && t->room < EVENT_BYTES) {
		t->is_full = true;
		return;
	}
	if (is_new) {
		tell_gathered(t);
		take_room(t, EVENT_BYTES);
	}
	if (!runlog_is_output(h->type))
		return;
	if (!t->is_gathering)
		t->first = *h;
	t->is_gathering = true;
	t->at = record_place(t, 0);
}

static void
tell_record(struct telling *t, const struct runlog_piece *payload)
{
	struct record r = {.h = t->scan.header, .payload = payload->p};

	t->at = record_place(t, t->scan.header.length);
	set_id(t, &r);
	if (r.h.type == RUNLOG_RUN_STARTED)
		add_started(t->to->out, t->to->row, &r);
	else if (r.h.type == RUNLOG_COMMAND_STARTED)
		add_command_started(t->to->out, t->to->row, &r);
	else if (r.h.type == RUNLOG_COMMAND_ENDED)
		add_command_ended(t->to->out, t->to->row, &r);
	/* RUN_ENDED is told by the last event. */
}

/* All of its output at once: the source is memory. */
static void
gather(struct telling *t, const struct runlog_piece *piece)
{
	size_t n = js_bytes_fit(piece->p, piece->n, t->room);

	if (n < piece->n) {
		t->is_full = true;
		n = utf8_complete_len(piece->p, n);
		if (n == 0 && buf_len(&t->text) == 0) /* always some */
			n = piece->n < 4 ? piece->n :
					   utf8_complete_len(piece->p, 4);
	}
	(void)!buf_append(&t->text, piece->p, n);
	take_room(t, js_bytes_cost(piece->p, n));
	t->at = record_place(t, (uint32_t)n);
}

static void
tell_step(struct telling *t, int step, const struct runlog_piece *piece)
{
	if (step == RUNLOG_HEADER)
		begin_record(t);
	else if (step == RUNLOG_RECORD)
		tell_record(t, piece);
	else
		gather(t, piece);
}

void
run_events_add(const struct run_events_to *to,
    const struct log_records *records, size_t room, struct log_at *at)
{
	const struct runlog_source source = {.fd = -1, .mem = records->p};
	struct telling t = {
	    .to = to, .records = records, .room = room, .at = records->from};
	struct runlog_piece piece;
	struct runlog_walk walk;
	int step;

	runlog_scan_init(&t.scan, 0);
	runlog_walk_init(&walk, &t.scan, &source, records->n, NULL, 0);
	while (!t.is_full &&
	    (step = runlog_walk_next(&walk, &piece, NULL)) > RUNLOG_MORE &&
	    t.scan.header.command < to->row->ncommands) /* the reader's word */
		tell_step(&t, step, &piece);
	tell_gathered(&t);
	*at = t.at;
}

/* ---- behind it */

static void
add_artifacts(struct evbuffer *out, const struct store_run *row)
{
	json_t *o = event_object(row);

	json_object_set_new(o, "count", json_integer(row->artifacts_total));
	add_event(out, ID_ARTIFACTS, "artifacts_extracted", o);
}

static void
add_final(struct evbuffer *out, const struct store_run *row)
{
	bool good = row->state == RUN_STATE_COMPLETED;
	json_t *o = event_object(row);

	json_object_update_new(o,
	    json_pack("{s:o, s:s, s:s}", "ended_at", view_time(row->ended_ms),
		"state", run_state_word(row->state), "end_reason",
		runlog_reason_word(row->end_reason)));
	if (!good)
		json_object_set_new(o, "error",
		    js_string_bytes(row->error, strlen(row->error), NULL));
	add_event(out, ID_END, good ? "run_finished" : "run_failed", o);
}

void
run_events_add_end(struct evbuffer *out, const struct store_run *row,
    enum run_events_stage from)
{
	if (from <= RUN_EVENTS_ARTIFACTS)
		add_artifacts(out, row);
	if (from <= RUN_EVENTS_END)
		add_final(out, row);
}

void
run_events_add_error(struct evbuffer *out, const struct err *why)
{
	add_event(out, NULL, "stream_error",
	    json_pack("{s:s, s:o}", "code",
		why->code == ERR_LIMIT ? "busy" : "log_unreadable", "message",
		js_string_bytes(why->msg, strlen(why->msg), NULL)));
}

/* ---- a stream */

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

static const struct sse_ops sse_ops = {
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
	sse_open(f->sse, &ev->sse, r->x, &sse_ops, use);
	ev->follow = follow_open(f->core, r->who, &run,
	    ev->at.stage == RUN_EVENTS_LOG ? &ev->at.log : &behind, &follow_ops,
	    ev);
}
