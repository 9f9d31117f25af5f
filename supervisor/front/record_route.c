/*
 * record_route.c - one run that is asked about by its id
 *
 * Each request looks the run up below the tenant it is about (scope.h), so a
 * foreign id is told what an unknown one is.  Output comes as the bytes that
 * the program wrote: what they are and where they stand is said in headers.
 */
#include "supervisor/front/record_route.h"

#include <stdio.h>

#include "common/exit.h"
#include "common/hex.h"
#include "common/js.h"
#include "common/log.h"
#include "common/xmalloc.h"
#include "supervisor/core/lookup.h"
#include "supervisor/core/run.h"
#include "supervisor/front/query.h"
#include "supervisor/front/scope.h"
#include "supervisor/tools/record.h"
#include "supervisor/tools/view.h"

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

static struct uuid
run_of(const struct http_exchange *x)
{
	struct uuid run;

	if (uuid_parse(http_param(x, "run"), &run) != 0)
		fatal(EXIT_BUG, "a route without its run");
	return run;
}

/* The run is looked up, and answer called when it is found; of what is asked,
 * which is copied, the rest is filled here. */
static void
ask(struct front *f, struct http_exchange *x, const struct query_value *tenant,
    const struct record_ask *of)
{
	const struct uuid run = run_of(x);
	struct principal *who = scope_find(f, x, tenant);
	struct record_ask *a;

	if (who == NULL)
		return; /* and x is gone */
	a = xmemdup(of, sizeof(*of));
	a->x = x;
	a->front = f;
	a->who = who;
	http_hold(x, gone_cb, a);
	a->lookup = lookup_open(f->core, who, &run, a->from, found_cb, a);
}

/* ---- what is recorded */

static void
answer_record(struct record_ask *a)
{
	http_reply_json(
	    a->x, 200, record_view(a->found.row, run_waits_for(a->found.run)));
	ask_free(a);
}

/* A run that has ended is not canceled any more: its record says how it did. */
static void
answer_cancel(struct record_ask *a)
{
	if (a->found.run != NULL) {
		scope_tell(a->front, a->x, a->who, "run.cancel",
		    http_param(a->x, "run"));
		run_cancel(a->found.run, RUNLOG_CANCELED);
	}
	answer_record(a);
}

static const struct query_param whose[] = {SCOPE_PARAM};
const struct query_table record_whose_query = {whose, ARRAY_LEN(whose)};

static void
ask_whose(struct front *f, struct http_exchange *x,
    void (*answer)(struct record_ask *))
{
	struct query q = {0};

	if (!query_read(x, whose, ARRAY_LEN(whose), &q))
		return;
	ask(f, x, &q.values[0], &(struct record_ask){.answer = answer});
	query_clear(&q);
}

void
record_on_cancel(struct front *f, struct http_exchange *x)
{
	ask_whose(f, x, answer_cancel);
}

/* ---- it is forgotten */

struct record_delete {
	struct http_exchange *x; /* outlives its client */
	char run[UUID_TEXT_LEN + 1];
};

static void
deleted_cb(int rc, const struct err *why, void *arg)
{
	struct record_delete *d = arg;

	if (rc != 0)
		http_error_from(d->x, rc, why);
	else
		http_reply_json(d->x, 200,
		    json_pack("{s:s, s:b}", "run_id", d->run, "deleted", 1));
	free(d);
}

static void
delete_run(struct front *f, struct http_exchange *x, struct principal *who)
{
	struct record_delete *d = xcalloc(1, sizeof(*d));
	struct uuid run = run_of(x);
	struct err e;

	uuid_format(&run, d->run);
	d->x = x;
	http_hold(x, NULL, NULL);
	/* Before it is known whether there is one: an attempt is an act. */
	scope_tell(f, x, who, "run.delete", d->run);
	if (core_delete_run(f->core, who, &run, deleted_cb, d, &e) != 0)
		deleted_cb(e.code, &e, d);
	principal_unref(who);
}

static void
ask_delete(struct front *f, struct http_exchange *x)
{
	struct principal *who;
	struct query q = {0};

	if (!query_read(x, whose, ARRAY_LEN(whose), &q))
		return;
	who = scope_find(f, x, &q.values[0]);
	query_clear(&q);
	if (who != NULL)
		delete_run(f, x, who);
}

void
record_on_run(struct front *f, struct http_exchange *x)
{
	if (http_method(x) == HTTP_METHOD_DELETE)
		ask_delete(f, x);
	else
		ask_whose(f, x, answer_record);
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
    [OUTPUT_COMMAND] = {.name = "command",
	.kind = QUERY_NUMBER,
	.max = RUNSPEC_COMMANDS_MAX - 1},
    [OUTPUT_STREAM] = {.name = "stream", .kind = QUERY_WORD, .words = streams},
    [OUTPUT_OFFSET] = {.name = "offset",
	.kind = QUERY_NUMBER,
	.max = INT64_MAX},
    [OUTPUT_LIMIT] = {.name = "limit",
	.kind = QUERY_NUMBER,
	.min = 1,
	.max = LOG_RANGE_BYTES_MAX},
};
const struct query_table record_output_query = {
    output_params, ARRAY_LEN(output_params)};

void
record_on_output(struct front *f, struct http_exchange *x)
{
	static const enum log_range_stream stream_of[] = {
	    LOG_RANGE_STDOUT, LOG_RANGE_STDERR, LOG_RANGE_BOTH};
	struct record_ask of = {.answer = answer_output};
	const struct query_value *v;
	struct query q = {0};

	if (!query_read(x, output_params, ARRAY_LEN(output_params), &q))
		return;
	v = q.values;
	of.wish.command = v[OUTPUT_COMMAND].is_given ?
	    (uint32_t)v[OUTPUT_COMMAND].number :
	    LOG_RANGE_ALL;
	of.wish.streams = v[OUTPUT_STREAM].is_given ?
	    stream_of[v[OUTPUT_STREAM].word] :
	    LOG_RANGE_BOTH;
	of.wish.offset = v[OUTPUT_OFFSET].number;
	of.wish.max = v[OUTPUT_LIMIT].is_given ?
	    (size_t)v[OUTPUT_LIMIT].number :
	    OUTPUT_DEFAULT;
	ask(f, x, &v[OUTPUT_TENANT], &of);
	query_clear(&q);
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
    SCOPE_PARAM, {.name = "cursor", .kind = QUERY_NUMBER, .max = UINT32_MAX}};
const struct query_table record_artifacts_query = {
    artifact_params, ARRAY_LEN(artifact_params)};

void
record_on_artifacts(struct front *f, struct http_exchange *x)
{
	struct record_ask of = {.answer = answer_artifacts};
	struct query q = {0};

	if (!query_read(x, artifact_params, ARRAY_LEN(artifact_params), &q))
		return;
	of.from = (uint32_t)q.values[1].number;
	ask(f, x, &q.values[0], &of);
	query_clear(&q);
}
