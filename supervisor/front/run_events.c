#include "supervisor/front/run_events.h"

#include <stdio.h>

#include <event2/buffer.h>

#include "common/js.h"
#include "common/log.h"
#include "common/runlog_scan.h"
#include "supervisor/tools/view.h"

#define MERGE_BYTES 49152 /* records of one stream told as one event */
#define OFFSET_DIGITS_MAX 18
#define ID_ARTIFACTS "artifacts"
#define ID_END "end"

int
run_events_parse_id(const char *text, struct run_events_at *at)
{
	*at = (struct run_events_at){RUN_EVENTS_LOG, 0};
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
	if (strspn(text, "0123456789") != strlen(text) ||
	    strlen(text) > OFFSET_DIGITS_MAX)
		return ERR_INVAL;
	at->offset = strtoull(text, NULL, 10);
	return 0;
}

/* ---- one event */

static void
add_text(struct evbuffer *out, const char *text)
{
	(void)evbuffer_add(out, text, strlen(text));
}

/* o is taken over; id NULL: none. */
static void
add_event(struct evbuffer *out, const char *id, const char *name, json_t *o)
{
	AUTO(auto_free) char *data = js_dump(o);

	json_decref(o);
	if (id != NULL) {
		add_text(out, "id: ");
		add_text(out, id);
		add_text(out, "\n");
	}
	add_text(out, "event: ");
	add_text(out, name);
	add_text(out, "\ndata: ");
	add_text(out, data);
	add_text(out, "\n\n");
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
	char id[24]; /* the offset behind it */
};

static void
add_started(
    struct evbuffer *out, const struct store_run *row, const struct record *r)
{
	json_t *o = event_object(row);

	json_object_set_new(o, "identifier", json_string(row->identifier));
	json_object_set_new(
	    o, "sandbox_container_id", json_string(row->container_id));
	json_object_set_new(o, "started_at", view_time(r->h.wall_us / 1000));
	add_event(out, r->id, "run_started", o);
}

static void
add_command_started(
    struct evbuffer *out, const struct store_run *row, const struct record *r)
{
	const struct store_command *c = &row->commands[r->h.command];
	json_t *o = event_object(row);

	json_object_set_new(o, "index", json_integer(r->h.command));
	if (c->shell[0] != '\0')
		json_object_set_new(o, "shell", json_string(c->shell));
	if (c->argv_json[0] != '\0')
		json_object_set_new(
		    o, "argv", json_loads(c->argv_json, 0, NULL));
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
		    js_base64(buf_data(text), buf_len(text)));
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
	json_object_set_new(o, "index", json_integer(r->h.command));
	json_object_set_new(o, "exit_code", json_integer(end.exit_code));
	json_object_set_new(o, "status", json_string(status_word(&end)));
	json_object_set_new(
	    o, "end_reason", json_string(runlog_reason_word(end.reason)));
	json_object_set_new(
	    o, "stdout_bytes", json_integer((json_int_t)end.stdout_bytes));
	json_object_set_new(
	    o, "stderr_bytes", json_integer((json_int_t)end.stderr_bytes));
	json_object_set_new(o, "stdout_truncated", json_false());
	json_object_set_new(o, "stderr_truncated", json_false());
	json_object_set_new(o, "ended_at", view_time(r->h.wall_us / 1000));
	add_event(out, r->id, "command_finished", o);
}

struct telling {
	struct evbuffer *out;
	const struct store_run *row;
	uint64_t base; /* the offset of the first record */
	/* Small writes of a chatty program are gathered as long as they are
	 * of one stream. */
	bool is_gathering;
	struct runlog_header first;
	struct buf text;
	uint64_t end; /* of the last of them */
};

static void
set_id(struct record *r, uint64_t offset)
{
	(void)snprintf(
	    r->id, sizeof(r->id), "%llu", (unsigned long long)offset);
}

static void
tell_gathered(struct telling *t)
{
	struct record r = {.h = t->first};

	if (!t->is_gathering)
		return;
	set_id(&r, t->base + t->end);
	add_output(t->out, t->row, &r, &t->text);
	buf_clear(&t->text);
	t->is_gathering = false;
}

static void
begin_record(struct telling *t, const struct runlog_scan *scan)
{
	const struct runlog_header *h = &scan->header;

	if (h->type != t->first.type || h->command != t->first.command ||
	    buf_len(&t->text) + h->length > MERGE_BYTES)
		tell_gathered(t);
	if (!runlog_is_output(h->type))
		return;
	if (!t->is_gathering)
		t->first = *h;
	t->is_gathering = true;
	t->end = scan->offset + h->length;
}

static void
tell_record(struct telling *t, const struct runlog_scan *scan,
    const struct runlog_piece *payload)
{
	struct record r = {.h = scan->header, .payload = payload->p};

	set_id(&r, t->base + scan->offset);
	if (r.h.type == RUNLOG_RUN_STARTED)
		add_started(t->out, t->row, &r);
	else if (r.h.type == RUNLOG_COMMAND_STARTED)
		add_command_started(t->out, t->row, &r);
	else if (r.h.type == RUNLOG_COMMAND_ENDED)
		add_command_ended(t->out, t->row, &r);
	/* RUN_ENDED is told by the last event. */
}

void
run_events_add(struct evbuffer *out, const struct store_run *row,
    const struct log_records *records)
{
	const struct runlog_source source = {.fd = -1, .mem = records->p};
	struct telling t = {
	    .out = out, .row = row, .base = records->next - records->n};
	struct runlog_piece piece;
	struct runlog_scan scan;
	struct runlog_walk walk;
	int step;

	runlog_scan_init(&scan, 0);
	runlog_walk_init(&walk, &scan, &source, records->n, NULL, 0);
	while ((step = runlog_walk_next(&walk, &piece, NULL)) > RUNLOG_MORE) {
		if (scan.header.command >= row->ncommands)
			break; /* the reader gives none */
		if (step == RUNLOG_HEADER)
			begin_record(&t, &scan);
		else if (step == RUNLOG_RECORD)
			tell_record(&t, &scan, &piece);
		else
			(void)!buf_append(&t.text, piece.p, piece.n);
	}
	tell_gathered(&t);
}

/* ---- behind it */

static void
add_artifacts(struct evbuffer *out, const struct store_run *row)
{
	json_t *o = event_object(row);

	json_object_set_new(o, "count", json_integer(row->nartifacts));
	add_event(out, ID_ARTIFACTS, "artifacts_extracted", o);
}

static void
add_final(struct evbuffer *out, const struct store_run *row)
{
	bool good = row->state == RUN_STATE_COMPLETED;
	json_t *o = event_object(row);

	json_object_set_new(o, "ended_at", view_time(row->ended_ms));
	json_object_set_new(
	    o, "state", json_string(run_state_word(row->state)));
	json_object_set_new(
	    o, "end_reason", json_string(runlog_reason_word(row->end_reason)));
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
