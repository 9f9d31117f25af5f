#include "supervisor/front/run_events.h"

#include <stdio.h>

#include <event2/buffer.h>

#include "common/js.h"
#include "common/log.h"
#include "common/runlog.h"
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

/* o is taken over. */
static void
add_event(struct evbuffer *out, const char *id, const char *name, json_t *o)
{
	AUTO(auto_free) char *data = js_dump(o);

	json_decref(o);
	add_text(out, "id: ");
	add_text(out, id);
	add_text(out, "\nevent: ");
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

/* Small writes of a chatty program, taken together as long as they are of the
 * same stream; returns the bytes of all those records. */
static size_t
merge_output(const uint8_t *p, size_t n, const struct runlog_header *first,
    struct buf *text)
{
	struct runlog_header h;
	size_t at = 0;

	while (n - at >= RUNLOG_HEADER_BYTES &&
	    runlog_parse_header(p + at, &h, NULL) == 0 &&
	    h.type == first->type && h.command == first->command &&
	    n - at - RUNLOG_HEADER_BYTES >= h.length) {
		if (at > 0 && buf_len(text) + h.length > MERGE_BYTES)
			break;
		if (buf_append(text, p + at + RUNLOG_HEADER_BYTES, h.length) !=
		    0)
			break;
		at += RUNLOG_HEADER_BYTES + h.length;
	}
	return at;
}

static void
set_id(struct record *r, uint64_t offset)
{
	(void)snprintf(
	    r->id, sizeof(r->id), "%llu", (unsigned long long)offset);
}

/* The event at the beginning of p; returns the bytes of its records. */
static size_t
add_next(struct evbuffer *out, const struct store_run *row, const uint8_t *p,
    size_t n, uint64_t offset)
{
	struct buf text = {0};
	struct record r;
	size_t used;

	if (n < RUNLOG_HEADER_BYTES ||
	    runlog_parse_header(p, &r.h, NULL) != 0 ||
	    r.h.length > n - RUNLOG_HEADER_BYTES ||
	    r.h.command >= row->ncommands)
		return n; /* not the walker's records: our bug, not theirs */
	used = RUNLOG_HEADER_BYTES + r.h.length;
	r.payload = p + RUNLOG_HEADER_BYTES;
	if (runlog_is_output(r.h.type))
		used = merge_output(p, n, &r.h, &text);
	set_id(&r, offset + used);
	if (runlog_is_output(r.h.type))
		add_output(out, row, &r, &text);
	else if (r.h.type == RUNLOG_RUN_STARTED)
		add_started(out, row, &r);
	else if (r.h.type == RUNLOG_COMMAND_STARTED)
		add_command_started(out, row, &r);
	else if (r.h.type == RUNLOG_COMMAND_ENDED)
		add_command_ended(out, row, &r);
	/* RUN_ENDED is told by the last event. */
	buf_clear(&text);
	return used;
}

void
run_events_add(struct evbuffer *out, const struct store_run *row,
    const struct log_records *records)
{
	uint64_t base = records->next - records->n;

	for (size_t at = 0; at < records->n;)
		at += add_next(
		    out, row, records->p + at, records->n - at, base + at);
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
