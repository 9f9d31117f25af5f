#include "supervisor/front/span_text.h"

#include <inttypes.h>
#include <stdio.h>

#include "common/js.h"
#include "common/trace.h"
#include "common/xmalloc.h"

#define TEXT_MAX 200 /* bytes of a text from outside, before it is JSON */
#define NUMBER_MAX 32
#define NANO_DIGITS "000000" /* behind milliseconds */

/* Of OpenTelemetry's trace.proto. */
enum {
	KIND_INTERNAL = 1,
	KIND_SERVER = 2,
	STATUS_ERROR = 2
};

const char span_text_tail[] = "]}]}]}";

/* ---- attributes */

static void
add(json_t *list, const char *key, json_t *value)
{
	json_array_append_new(
	    list, json_pack("{s:s, s:o}", "key", key, "value", value));
}

static json_t *
text_of(const char *text)
{
	return js_string_bytes(text, strnlen(text, TEXT_MAX), NULL);
}

static void
add_text(json_t *list, const char *key, const char *text)
{
	if (text != NULL && text[0] != '\0')
		add(list, key,
		    json_pack("{s:o}", "stringValue", text_of(text)));
}

static void
add_number(json_t *list, const char *key, int64_t n)
{
	char text[NUMBER_MAX];

	(void)snprintf(text, sizeof(text), "%" PRId64, n);
	add(list, key, json_pack("{s:s}", "intValue", text));
}

/* ---- times */

struct stretch {
	int64_t from_ms, to_ms;
};

/* The clock of a run may be set while it goes, and those of its commands come
 * from inside the sandbox. */
static struct stretch
within(const struct stretch *of, int64_t from_ms, int64_t to_ms)
{
	struct stretch s = {from_ms, to_ms};

	if (s.from_ms < of->from_ms)
		s.from_ms = of->from_ms;
	if (s.from_ms > of->to_ms)
		s.from_ms = of->to_ms;
	if (s.to_ms > of->to_ms)
		s.to_ms = of->to_ms;
	if (s.to_ms < s.from_ms)
		s.to_ms = s.from_ms;
	return s;
}

static json_t *
nanos(int64_t ms)
{
	char text[NUMBER_MAX];

	(void)snprintf(text, sizeof(text), "%" PRId64 NANO_DIGITS, ms);
	return json_string(text);
}

/* ---- spans */

struct sink {
	void (*take)(const char *text, void *arg);
	void *arg;
};

struct body {
	struct trace trace;
	const char *name;
	int kind;
	struct stretch when;
	json_t *attributes; /* given away */
	json_t *events;     /* the same; NULL: none */
	const char *failed; /* why; NULL: it did not */
};

static void
give(const struct sink *to, const struct body *b)
{
	json_t *o = json_pack("{s:s, s:s, s:s*, s:s, s:i, s:o, s:o, s:o, s:o*}",
	    "traceId", b->trace.id, "spanId", b->trace.span, "parentSpanId",
	    b->trace.parent[0] == '\0' ? NULL : b->trace.parent, "name",
	    b->name, "kind", b->kind, "startTimeUnixNano",
	    nanos(b->when.from_ms), "endTimeUnixNano", nanos(b->when.to_ms),
	    "attributes", b->attributes, "events", b->events);
	AUTO(auto_free) char *text = NULL;

	if (b->failed != NULL)
		json_object_set_new(o, "status",
		    json_pack("{s:i, s:o}", "code", STATUS_ERROR, "message",
			text_of(b->failed)));
	text = js_dump(o);
	json_decref(o);
	to->take(text, to->arg);
}

static json_t *
run_events(const struct store_run *row, const struct stretch *when)
{
	json_t *list = json_array();
	const struct {
		const char *name;
		int64_t at_ms;
	} all[] = {{"sent", row->sent_ms}, {"started", row->started_ms}};

	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		if (all[i].at_ms != 0)
			json_array_append_new(list,
			    json_pack("{s:o, s:s}", "timeUnixNano",
				nanos(within(when, all[i].at_ms, 0).from_ms),
				"name", all[i].name));
	return list;
}

static void
give_run(const struct sink *to, const struct store_run *row, const char *tenant,
    const struct body *frame)
{
	struct body b = *frame;
	char id[UUID_TEXT_LEN + 1];

	uuid_format(&row->uuid, id);
	b.name = row->tool;
	b.kind = KIND_SERVER;
	b.attributes = json_array();
	add_text(b.attributes, "sandboxd.run_id", id);
	add_text(b.attributes, "sandboxd.tenant", tenant);
	add_text(b.attributes, "sandboxd.identifier", row->identifier);
	add_text(b.attributes, "sandboxd.sandbox", row->sandbox_name);
	add_text(b.attributes, "sandboxd.language", row->language);
	add_text(b.attributes, "sandboxd.request_id", row->request_id);
	add_text(b.attributes, "sandboxd.state", run_state_word(row->state));
	add_text(b.attributes, "sandboxd.end_reason",
	    runlog_reason_word(row->end_reason));
	add_number(b.attributes, "sandboxd.exit_code", row->exit_code);
	add_number(
	    b.attributes, "sandboxd.stdout_bytes", (int64_t)row->stdout_bytes);
	add_number(
	    b.attributes, "sandboxd.stderr_bytes", (int64_t)row->stderr_bytes);
	add_number(b.attributes, "sandboxd.cpu_us", (int64_t)row->cpu_us);
	add_number(b.attributes, "sandboxd.memory_peak_bytes",
	    (int64_t)row->memory_peak_bytes);
	b.events = run_events(row, &b.when);
	if (row->state == RUN_STATE_FAILED)
		b.failed = row->error != NULL && row->error[0] != '\0' ?
		    row->error :
		    runlog_reason_word(row->end_reason);
	give(to, &b);
}

static void
give_command(const struct sink *to, const struct store_command *c,
    const struct body *run)
{
	struct body b = {.name = "command", .kind = KIND_INTERNAL};
	char parent[TRACE_PARENT_LEN + 1];

	trace_parent(&run->trace, parent);
	if (c->started_ms == 0 || trace_continue(&b.trace, parent) != 0)
		return;
	b.when = within(&run->when, c->started_ms,
	    c->ended_ms == 0 ? run->when.to_ms : c->ended_ms);
	b.attributes = json_array();
	add_number(b.attributes, "sandboxd.command", c->index);
	add_text(
	    b.attributes, "sandboxd.status", command_status_word(c->status));
	add_number(b.attributes, "sandboxd.exit_code", c->exit_code);
	add_number(
	    b.attributes, "sandboxd.stdout_bytes", (int64_t)c->stdout_bytes);
	add_number(
	    b.attributes, "sandboxd.stderr_bytes", (int64_t)c->stderr_bytes);
	add_number(b.attributes, "sandboxd.cpu_us", (int64_t)c->cpu_us);
	if (c->status == COMMAND_FAILED || c->status == COMMAND_TIMED_OUT)
		b.failed = runlog_reason_word(c->end_reason);
	give(to, &b);
}

/* Ids of a row are as they came through trace.h, or "". */
static bool
take_ids(struct trace *t, const struct store_run *row)
{
	if (strlen(row->trace) != TRACE_ID_LEN ||
	    strlen(row->span) != TRACE_SPAN_LEN ||
	    strlen(row->parent_span) > TRACE_SPAN_LEN)
		return false;
	*t = (struct trace){.is_sampled = true};
	memcpy(t->id, row->trace, TRACE_ID_LEN);
	memcpy(t->span, row->span, TRACE_SPAN_LEN);
	memcpy(t->parent, row->parent_span, strlen(row->parent_span));
	return true;
}

void
span_text_each(const struct store_run *row, const char *tenant,
    void (*take)(const char *text, void *arg), void *arg)
{
	const struct stretch whole = {row->created_ms, INT64_MAX};
	const struct sink to = {take, arg};
	struct body frame = {.name = ""};

	if (!take_ids(&frame.trace, row))
		return;
	frame.when = within(&whole, row->created_ms, row->ended_ms);
	give_run(&to, row, tenant, &frame);
	for (size_t i = 0; i < row->ncommands; i++)
		give_command(&to, &row->commands[i], &frame);
}

char *
span_text_head(const char *version, const char *instance)
{
	json_t *resource = json_array();
	AUTO(auto_free) char *attributes = NULL;
	char *text;

	add_text(resource, "service.name", "mcp-sandboxd");
	add_text(resource, "service.version", version);
	add_text(resource, "service.instance.id", instance);
	attributes = js_dump(resource);
	json_decref(resource);
	text =
	    xasprintf("{\"resourceSpans\":[{\"resource\":{\"attributes\":%s},"
		      "\"scopeSpans\":[{\"scope\":{\"name\":\"mcp-sandboxd\","
		      "\"version\":\"%s\"},\"spans\":[",
		attributes, version);
	return text;
}
