/*
 * record_route.c - one run that is asked about by its id: {MCP_PATH}/runs/ID,
 * and /api/v1/runs/ID and below
 *
 * Each request looks the run up below the tenant it is about (scope.h), so a
 * foreign id is told what an unknown one is.  Output comes as the bytes that
 * the program wrote: what they are and where they stand is said in headers.
 */
#include "supervisor/front/handlers.h"

#include <stdio.h>

#include "common/call.h"
#include "common/hex.h"
#include "common/js.h"
#include "common/xmalloc.h"
#include "supervisor/core/lookup.h"
#include "supervisor/core/run.h"
#include "supervisor/core/sandbox.h"
#include "supervisor/front/scope.h"
#include "supervisor/front/status.h"
#include "supervisor/tools/record.h"
#include "supervisor/tools/rerun.h"
#include "supervisor/tools/view.h"
#include "supervisor/tools/wait.h"

#define RERUN_BODY_MAX (2u << 20)
#define OUTPUT_DEFAULT 65536

struct record_ask {
	struct http_exchange *x;
	struct front *front;
	struct principal *who;
	struct lookup *lookup;
	struct log_request *request;
	struct lookup_found found;
	struct log_range wish; /* of the output */
	uint32_t from;         /* the first artifact */
	void (*answer)(struct record_ask *a);
	bool outlives; /* its client: what it does is done all the same */
};

static void
ask_free(struct record_ask *a)
{
	log_request_cancel(a->request);
	lookup_close(a->lookup);
	principal_unref(a->who);
	free(a);
}

static void
gone_cb(void *arg)
{
	struct record_ask *a = arg;

	http_drop(a->x);
	ask_free(a);
}

static void
refuse(struct record_ask *a, int rc, const struct err *why)
{
	http_error_from(a->x, rc, why);
	ask_free(a);
}

static void
found_cb(
    int rc, const struct lookup_found *found, const struct err *why, void *arg)
{
	struct record_ask *a = arg;

	if (rc != 0) {
		refuse(a, rc, why);
		return;
	}
	a->found = *found;
	a->answer(a);
}

/* The run is looked up, and answer called when it is found; of what is asked,
 * which is copied, the rest is filled here. */
static void
ask(const struct request *r, const struct record_ask *of)
{
	const struct uuid run = scope_run(r->x);
	struct record_ask *a = xmemdup(of, sizeof(*of));

	a->x = r->x;
	a->front = r->front;
	a->who = principal_ref(r->who);
	http_hold(a->x, a->outlives ? NULL : gone_cb, a);
	a->lookup =
	    lookup_open(a->front->core, a->who, &run, a->from, found_cb, a);
}

/* ---- what is recorded */

static void
answer_record(struct record_ask *a)
{
	http_reply_json(
	    a->x, 200, record_view(a->found.row, run_waits_for(a->found.run)));
	ask_free(a);
}

/* A run that has ended is not canceled any more: its status says how it did. */
static void
cancel(const struct record_ask *a)
{
	if (a->found.run == NULL)
		return;
	scope_tell(a->front, a->x, a->who->tenant_name, "run.cancel",
	    http_param(a->x, "run"));
	run_cancel(a->found.run, RUNLOG_CANCELED);
}

static void
answer_cancel(struct record_ask *a)
{
	cancel(a);
	answer_record(a);
}

static const struct query_param whose[] = {SCOPE_PARAM};
const struct query_table record_whose_query = {whose, ARRAY_LEN(whose)};

void
record_on_cancel(struct request *r)
{
	ask(r, &(struct record_ask){.answer = answer_cancel});
}

/* ---- its status, for clients of MCP */

static void
answer_status(struct record_ask *a)
{
	statuses_answer(
	    a->front->statuses, a->x, a->lookup, &a->found, a->from);
	a->lookup = NULL;
	ask_free(a);
}

static void
answer_canceled_status(struct record_ask *a)
{
	cancel(a);
	answer_status(a);
}

/* Of a long list of artifacts: ?artifacts_from=, 0 when it is not asked for. */
static int
parse_artifacts_from(struct http_exchange *x, uint32_t *from)
{
	const char *text = http_query(x, "artifacts_from");

	*from = 0;
	if (text == NULL)
		return 0;
	if (text[0] == '\0' || strlen(text) > 6 ||
	    strspn(text, "0123456789") != strlen(text))
		return -1;
	*from = (uint32_t)strtoul(text, NULL, 10);
	return 0;
}

static void
ask_status(const struct request *r, void (*answer)(struct record_ask *))
{
	struct record_ask of = {.answer = answer, .outlives = true};

	if (parse_artifacts_from(r->x, &of.from) != 0)
		http_error(r->x, 400, "bad_request",
		    "artifacts_from must be a number: the artifacts_next of "
		    "the answer before");
	else
		ask(r, &of);
}

void
front_on_run_cancel(struct request *r)
{
	ask_status(r, answer_canceled_status);
}

/* ---- it is forgotten */

/* x outlives its client. */
static void
deleted_cb(int rc, const struct err *why, void *arg)
{
	struct http_exchange *x = arg;
	const struct uuid run = scope_run(x);
	char id[UUID_TEXT_LEN + 1];

	uuid_format(&run, id);
	if (rc != 0)
		http_error_from(x, rc, why);
	else
		http_reply_json(x, 200,
		    json_pack("{s:s, s:b}", "run_id", id, "deleted", 1));
}

static void
delete_run(const struct request *r)
{
	struct uuid run = scope_run(r->x);
	char id[UUID_TEXT_LEN + 1];
	struct err e;

	uuid_format(&run, id);
	http_hold(r->x, NULL, NULL);
	/* Before it is known whether there is one: an attempt is an act. */
	scope_tell(r->front, r->x, r->who->tenant_name, "run.delete", id);
	if (core_delete_run(
		r->front->core, r->who, &run, deleted_cb, r->x, &e) != 0)
		deleted_cb(e.code, &e, r->x);
}

void
record_on_run(struct request *r)
{
	if (http_method(r->x) == HTTP_METHOD_DELETE)
		delete_run(r);
	else
		ask(r, &(struct record_ask){.answer = answer_record});
}

void
front_on_run(struct request *r)
{
	if (http_method(r->x) == HTTP_METHOD_DELETE)
		delete_run(r);
	else
		ask_status(r, answer_status);
}

/* ---- its output */

static void
add_number(struct http_exchange *x, const char *name, uint64_t n)
{
	char text[24];

	(void)snprintf(text, sizeof(text), "%llu", (unsigned long long)n);
	http_add_header(x, name, text);
}

/* Of a run that goes on more may come behind what there is. */
static void
range_cb(int rc, const struct log_range *r, const struct err *why, void *arg)
{
	struct record_ask *a = arg;
	struct http_exchange *x = a->x;
	size_t n;
	uint64_t next;

	a->request = NULL;
	if (rc != 0) {
		refuse(a, rc, why);
		return;
	}
	n = buf_len(&r->bytes);
	next = n == 0 && r->offset > r->total ? r->total : r->offset + n;
	add_number(x, "X-Output-Offset", next - n);
	add_number(x, "X-Output-Next", next);
	add_number(x, "X-Output-Total", r->total);
	add_number(x, "X-Output-Missing",
	    r->claimed > r->total ? r->claimed - r->total : 0);
	http_add_header(x, "X-Output-Complete",
	    a->found.run == NULL && next >= r->total ? "true" : "false");
	http_add_header(x, "Cache-Control", "no-store");
	http_add_header(
	    x, "Content-Security-Policy", "sandbox; default-src 'none'");
	http_reply(x, 200, "application/octet-stream",
	    n == 0 ? (const uint8_t *)"" : buf_data(&r->bytes), n);
	ask_free(a);
}

static void
answer_output(struct record_ask *a)
{
	const struct lookup_found *f = &a->found;
	struct err e;

	if (lookup_check_output(f, &e) != 0) {
		refuse(a, e.code, &e);
		return;
	}
	if (a->wish.command != LOG_RANGE_ALL &&
	    a->wish.command >= f->row->ncommands) {
		(void)err_set(&e, ERR_INVAL,
		    "command: the run has %u, counted from 0",
		    f->row->ncommands);
		refuse(a, e.code, &e);
		return;
	}
	log_view_range(f->view, &a->wish,
	    f->run != NULL ? f->run->length : UINT64_MAX, range_cb, a,
	    &a->request);
}

enum {
	OUTPUT_TENANT,
	OUTPUT_COMMAND,
	OUTPUT_STREAM,
	OUTPUT_OFFSET,
	OUTPUT_LIMIT
};
static const char *const streams[] = {"stdout", "stderr", "both", NULL};
static const struct query_param output_params[] = {
    [OUTPUT_TENANT] = SCOPE_PARAM,
    [OUTPUT_COMMAND] = {"command", QUERY_NUMBER,
	.max = RUNSPEC_COMMANDS_MAX - 1},
    [OUTPUT_STREAM] = {"stream", QUERY_WORD, .words = streams},
    [OUTPUT_OFFSET] = {"offset", QUERY_NUMBER, .max = INT64_MAX},
    [OUTPUT_LIMIT] = {"limit", QUERY_NUMBER, .min = 1,
	.max = LOG_RANGE_BYTES_MAX},
};
const struct query_table record_output_query = {
    output_params, ARRAY_LEN(output_params)};

void
record_on_output(struct request *r)
{
	static const enum log_range_stream stream_of[] = {
	    LOG_RANGE_STDOUT, LOG_RANGE_STDERR, LOG_RANGE_BOTH};
	const struct query_value *v = r->query.values;

	ask(r,
	    &(struct record_ask){.answer = answer_output,
		.wish = {.command = (uint32_t)query_number(
			     &v[OUTPUT_COMMAND], LOG_RANGE_ALL),
		    .streams = v[OUTPUT_STREAM].is_given ?
			stream_of[v[OUTPUT_STREAM].word] :
			LOG_RANGE_BOTH,
		    .offset = v[OUTPUT_OFFSET].number,
		    .max = (size_t)query_number(
			&v[OUTPUT_LIMIT], OUTPUT_DEFAULT)}});
}

/* ---- its artifacts */

static json_t *
view_file(const struct store_artifact *a)
{
	char digest[HEX_BYTES(sizeof(a->sha256))];

	hex_encode(a->sha256, sizeof(a->sha256), digest);
	return json_pack("{s:s, s:I, s:s, s:o, s:o*}", "path", a->path, "size",
	    (json_int_t)a->size, "sha256", digest, "modified_at",
	    view_time(a->mtime_ns / 1000000), "lost",
	    a->lost_ms != 0 ? json_true() : NULL);
}

static void
answer_artifacts(struct record_ask *a)
{
	const struct store_run *row = a->found.row;
	uint32_t next = row->artifacts_from + row->nartifacts;
	bool has_ended = a->found.run == NULL;
	json_t *list = json_array();

	for (uint32_t i = 0; has_ended && i < row->nartifacts; i++)
		json_array_append_new(list, view_file(&row->artifacts[i]));
	http_reply_json(a->x, 200,
	    json_pack("{s:o, s:o, s:o}", "artifacts", list, "next_cursor",
		has_ended && next < row->artifacts_total ?
		    json_sprintf("%u", next) :
		    json_null(),
		"total",
		has_ended ? json_integer(row->artifacts_total) : json_null()));
	ask_free(a);
}

static const struct query_param artifact_params[] = {
    SCOPE_PARAM, {"cursor", QUERY_NUMBER, .max = UINT32_MAX}};
const struct query_table record_artifacts_query = {
    artifact_params, ARRAY_LEN(artifact_params)};

void
record_on_artifacts(struct request *r)
{
	ask(r,
	    &(struct record_ask){.answer = answer_artifacts,
		.from = (uint32_t)r->query.values[1].number});
}

/* ---- once more: looked up with its commands' texts, made anew, and shown when
 * its row is on disk */

struct rerun_ask {
	struct http_exchange *x; /* outlives its client */
	struct front *front;
	struct call call;
	struct lookup *lookup;
	struct wait wait;
	json_t *more;
};

static void
rerun_free(struct rerun_ask *a)
{
	wait_clear(&a->wait);
	lookup_close(a->lookup);
	call_clear(&a->call);
	json_decref(a->more);
	free(a);
}

static void
answer_rerun(struct rerun_ask *a)
{
	const struct run *r = a->wait.run;
	char id[UUID_TEXT_LEN + 1], place[UUID_TEXT_LEN + 32];

	uuid_format(&r->row.uuid, id);
	(void)snprintf(place, sizeof(place), "/api/v1/runs/%s", id);
	http_add_header(a->x, "Location", place);
	http_reply_json(a->x, 201, record_view(&r->row, run_waits_for(r)));
	rerun_free(a);
}

static void
recorded_cb(struct wait *w, enum wait_outcome outcome,
    const struct log_digest *d, const struct err *why)
{
	struct rerun_ask *a = w->arg;

	(void)d;
	call_release(&a->call);
	if (outcome != WAIT_FAILED) {
		answer_rerun(a);
		return;
	}
	http_error_from(a->x, why->code, why);
	rerun_free(a);
}

static void
tell(const struct rerun_ask *a, const struct run *r, bool is_new)
{
	const char *tenant = a->call.who->tenant_name;
	char id[UUID_TEXT_LEN + 1];

	uuid_format(&r->row.uuid, id);
	if (is_new)
		scope_tell(a->front, a->x, tenant, "sandbox.start",
		    r->row.sandbox_name);
	scope_tell(a->front, a->x, tenant, "run.rerun", id);
}

static void
rerun_found_cb(
    int rc, const struct lookup_found *found, const struct err *why, void *arg)
{
	struct rerun_ask *a = arg;
	struct core *core = a->front->core;
	struct run *r;
	struct err e;
	bool is_new;

	if (rc == 0) {
		const struct rerun_wish wish = {
		    core, a->front->tools, &a->call, found->row, a->more};

		rc = rerun_begin(&wish, &r, &is_new, &e);
		why = &e;
	}
	if (rc != 0) {
		http_error_from(a->x, rc, why);
		rerun_free(a);
		return;
	}
	tell(a, r, is_new);
	wait_start(&a->wait, core_base(core), r, &a->call, WAIT_RECORDED,
	    recorded_cb, a);
	core_turn(core);
}

void
record_on_rerun(struct request *r)
{
	static const struct call_ops ops;
	const struct uuid run = scope_run(r->x);
	json_t *more = http_body_object(r->x, RERUN_BODY_MAX);
	char client[NETADDR_TEXT_MAX];
	struct rerun_ask *a;

	if (more == NULL)
		return;
	a = xcalloc(1, sizeof(*a));
	a->x = r->x;
	a->front = r->front;
	a->more = more;
	call_init(&a->call, &ops, r->who, http_id(a->x));
	call_set_origin(&a->call, netaddr_format(http_client(a->x), client));
	call_set_trace(&a->call, http_header(a->x, HTTP_H_TRACEPARENT), NULL);
	http_hold(a->x, NULL, NULL);
	a->lookup =
	    lookup_open(a->front->core, r->who, &run, 0, rerun_found_cb, a);
}
