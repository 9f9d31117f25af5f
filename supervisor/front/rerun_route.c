/*
 * rerun_route.c - POST /api/v1/runs/ID/rerun
 *
 * The run is looked up with its commands' texts, made anew, and shown when its
 * row is on disk.  It goes on when its client does not wait for that.
 */
#include "supervisor/front/rerun_route.h"

#include <stdio.h>

#include "common/call.h"
#include "common/exit.h"
#include "common/js.h"
#include "common/log.h"
#include "common/xmalloc.h"
#include "supervisor/core/lookup.h"
#include "supervisor/core/run.h"
#include "supervisor/core/sandbox.h"
#include "supervisor/front/query.h"
#include "supervisor/front/scope.h"
#include "supervisor/tools/record.h"
#include "supervisor/tools/rerun.h"
#include "supervisor/tools/wait.h"

#define BODY_MAX (2u << 20)

struct rerun_ask {
	struct http_exchange *x; /* outlives its client */
	struct front *front;
	struct call call;
	struct lookup *lookup;
	struct wait wait;
	json_t *more;
};

static void
ask_free(struct rerun_ask *a)
{
	wait_clear(&a->wait);
	lookup_close(a->lookup);
	call_clear(&a->call);
	json_decref(a->more);
	free(a);
}

static void
answer(struct rerun_ask *a)
{
	const struct run *r = a->wait.run;
	char id[UUID_TEXT_LEN + 1], place[UUID_TEXT_LEN + 32];

	uuid_format(&r->row.uuid, id);
	(void)snprintf(place, sizeof(place), "/api/v1/runs/%s", id);
	http_add_header(a->x, "Location", place);
	http_reply_json(a->x, 201, record_view(&r->row, run_waits_for(r)));
	ask_free(a);
}

static void
recorded_cb(struct wait *w, enum wait_outcome outcome,
    const struct log_digest *d, const struct err *why)
{
	struct rerun_ask *a = w->arg;

	(void)d;
	call_release(&a->call);
	if (outcome != WAIT_FAILED) {
		answer(a);
		return;
	}
	http_error_from(a->x, why->code, why);
	ask_free(a);
}

static void
tell(const struct rerun_ask *a, const struct run *r, bool is_new)
{
	char id[UUID_TEXT_LEN + 1];

	uuid_format(&r->row.uuid, id);
	if (is_new)
		scope_tell(a->front, a->x, a->call.who, "sandbox.start",
		    r->row.sandbox_name);
	scope_tell(a->front, a->x, a->call.who, "run.rerun", id);
}

static void
found_cb(
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
		ask_free(a);
		return;
	}
	tell(a, r, is_new);
	wait_start(&a->wait, core_base(core), r, &a->call, WAIT_RECORDED,
	    recorded_cb, a);
	core_turn(core);
}

static void
ask(struct front *f, struct http_exchange *x, struct principal *who,
    json_t *more)
{
	static const struct call_ops ops;
	struct rerun_ask *a = xcalloc(1, sizeof(*a));
	char client[NETADDR_TEXT_MAX];
	struct uuid run;

	if (uuid_parse(http_param(x, "run"), &run) != 0)
		fatal(EXIT_BUG, "a route without its run");
	a->x = x;
	a->front = f;
	a->more = more;
	call_init(&a->call, &ops, who, http_id(x));
	call_set_origin(&a->call, netaddr_format(http_client(x), client));
	call_set_trace(&a->call, http_header(x, HTTP_H_TRACEPARENT), NULL);
	http_hold(x, NULL, NULL);
	a->lookup = lookup_open(f->core, who, &run, 0, found_cb, a);
}

static const struct query_param params[] = {SCOPE_PARAM};
const struct query_table rerun_query = {params, ARRAY_LEN(params)};

void
rerun_on_run(struct front *f, struct http_exchange *x)
{
	struct principal *who;
	struct query q = {0};
	json_t *more;

	if (!query_read(x, params, ARRAY_LEN(params), &q))
		return;
	who = scope_find(f, x, &q.values[0]);
	query_clear(&q);
	if (who == NULL)
		return;
	more = http_body_object(x, BODY_MAX);
	if (more != NULL)
		ask(f, x, who, more);
	principal_unref(who);
}
