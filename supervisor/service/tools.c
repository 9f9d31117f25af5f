#include "supervisor/service/internal.h"

#include <stdio.h>

#include "common/log.h"
#include "common/xmalloc.h"
#include "supervisor/service/args.h"
#include "supervisor/service/tools.h"

/* ---- one call */

struct tool_call *
tool_call_new(struct service *s, const struct principal *p, json_t *args,
    service_json_cb done, void *arg)
{
	struct tool_call *c = xcalloc(1, sizeof(*c));

	c->service = s;
	c->principal = *p;
	c->args = json_incref(args);
	c->done = done;
	c->arg = arg;
	s->callers++;
	return c;
}

static void
tool_call_free(struct tool_call *c)
{
	struct service *s = c->service;

	json_decref(c->args);
	free(c);
	service_caller_done(s);
}

void
tool_call_result(struct tool_call *c, json_t *result)
{
	c->done(0, result, NULL, c->arg);
	json_decref(result);
	tool_call_free(c);
}

void
tool_call_fail(struct tool_call *c, const struct err *why)
{
	c->done(why->code, NULL, why, c->arg);
	tool_call_free(c);
}

int
tool_check_admission(struct service *s, struct err *e)
{
	if (s->draining)
		return err_set(e, ERR_WRONG_STATE,
		    "the server is shutting down: try again later");
	if (s->nruns >= (uint64_t)conf_int(s->conf, CONF_MAX_ACTIVE_RUNS))
		return err_set(e, ERR_LIMIT,
		    "limit reached: %llu runs are queued or running "
		    "(MAX_ACTIVE_RUNS): wait for some to end",
		    (unsigned long long)s->nruns);
	return 0;
}

struct sandbox *
tool_new_sandbox(struct service *s, const struct principal *p,
    const struct sandbox_request *q, struct err *e)
{
	if (s->draining) {
		(void)err_set(e, ERR_WRONG_STATE,
		    "the server is shutting down: try again later");
		return NULL;
	}
	if (s->nsandboxes >= (uint64_t)conf_int(s->conf, CONF_MAX_SANDBOXES)) {
		(void)err_set(e, ERR_LIMIT,
		    "limit reached: %llu sandboxes exist (MAX_SANDBOXES): "
		    "delete one with delete_sandbox",
		    (unsigned long long)s->nsandboxes);
		return NULL;
	}
	if (peer_check(peer_of_sandbox(s, s->next_sandbox), e) != 0)
		return NULL;
	return sandbox_create(s, p, q);
}

/* ---- run_sandbox */

static json_t *
run_result(struct tool_call *c, const struct run *r)
{
	const char *path = conf_str(c->service->conf, CONF_MCP_PATH);
	char id[UUID_TEXT_LEN + 1];
	json_t *o = json_object();

	uuid_format(&r->row.uuid, id);
	json_object_set_new(o, "tool", json_string("run_sandbox"));
	json_object_set_new(o, "run_id", json_string(id));
	json_object_set_new(
	    o, "events_url", json_sprintf("%s/events?run_id=%s", path, id));
	json_object_set_new(
	    o, "status_url", json_sprintf("%s/runs/%s", path, id));
	json_object_set_new(o, "identifier", json_string(r->row.identifier));
	json_object_set_new(
	    o, "sandbox_name", json_string(r->row.sandbox_name));
	return o;
}

static void
run_ended_cb(struct run *r, int rc, const struct err *why, void *arg)
{
	struct tool_call *c = arg;
	struct log_source l = run_log_source(r);
	struct err e;
	json_t *o;

	if (rc != 0 && rc != ERR_LIMIT) {
		if (why == NULL)
			(void)err_set(&e, rc, "the server is shutting down");
		tool_call_fail(c, why == NULL ? &e : why);
		return;
	}
	if (rc == 0 &&
	    (r->fail_code == ERR_BACKEND || r->fail_code == ERR_POLICY)) {
		(void)err_set(&e, r->fail_code, "%s", r->row.error);
		tool_call_fail(c, &e);
		return;
	}
	o = run_result(c, r);
	json_object_set_new(
	    o, "final", rc == 0 ? view_run(&r->row, &l) : json_null());
	tool_call_result(c, o);
}

static void
run_inserted_cb(struct run *r, int rc, const struct err *why, void *arg)
{
	struct tool_call *c = arg;
	struct err e;

	if (rc != 0) {
		tool_call_fail(c, why);
		return;
	}
	if (!c->await) {
		tool_call_result(c, run_result(c, r));
		return;
	}
	if (run_await(r, c->await_timeout_ms, run_ended_cb, c, &e) != 0)
		tool_call_fail(c, &e);
}

/* The sandbox of this identifier, made when there is none. */
static struct sandbox *
ensure_sandbox(struct tool_call *c, const struct run_request *q, struct err *e)
{
	struct service *s = c->service;
	struct sandbox *sb =
	    sandbox_by_identifier(s, c->principal.tenant, q->identifier);

	if (sb != NULL) {
		sandbox_touch(sb, q->ttl_s);
		return sb;
	}
	return tool_new_sandbox(s, &c->principal,
	    &(struct sandbox_request){.identifier = q->identifier,
		.image = conf_str(s->conf, CONF_SANDBOX_IMAGE),
		.origin = "run",
		.generation = 1,
		.ttl_s = q->ttl_s},
	    e);
}

void
service_run_sandbox(struct service *s, const struct principal *p, json_t *args,
    service_json_cb done, void *arg)
{
	struct tool_call *c = tool_call_new(s, p, args, done, arg);
	struct run_request q;
	struct sandbox *sb;
	struct err e;

	if (tool_check_admission(s, &e) != 0 ||
	    args_run_request(s->conf, s->denylist, args, &q, &e) != 0) {
		tool_call_fail(c, &e);
		return;
	}
	c->await = q.await;
	c->await_timeout_ms = q.await_timeout_ms;
	sb = ensure_sandbox(c, &q, &e);
	if (sb == NULL || run_create(sb, p, &q, run_inserted_cb, c, &e) != 0)
		tool_call_fail(c, &e);
	run_request_clear(&q);
}

/* ---- delete_sandbox */

static json_t *
deleted_result(const char *identifier)
{
	return json_pack("{s:s, s:b, s:s}", "tool", "delete_sandbox", "deleted",
	    1, "identifier", identifier);
}

static void
deleted_cb(struct sandbox *sb, int rc, const struct err *why, void *arg)
{
	struct tool_call *c = arg;
	struct err e;

	if (rc == 0) {
		tool_call_result(c, deleted_result(sb->row.identifier));
		return;
	}
	(void)err_set(&e, rc,
	    "the sandbox is being deleted but still there: "
	    "%s; the server keeps trying",
	    why == NULL ? "the server is shutting down" : why->msg);
	tool_call_fail(c, &e);
}

void
service_delete_sandbox(struct service *s, const struct principal *p,
    json_t *args, service_json_cb done, void *arg)
{
	struct tool_call *c = tool_call_new(s, p, args, done, arg);
	char identifier[ARGS_IDENTIFIER_MAX + 1];
	struct sandbox *sb;
	struct err e;

	if (args_identifier(args, NULL, identifier, &e) != 0) {
		tool_call_fail(c, &e);
		return;
	}
	sb = sandbox_by_identifier(s, p->tenant, identifier);
	if (sb == NULL) {
		tool_call_result(c, deleted_result(identifier));
		return;
	}
	sandbox_wait_gone(sb, deleted_cb, c);
	sandbox_remove(sb);
}

/* ---- restart_sandbox */

static void
restart_open_cb(struct sandbox *sb, int rc, const struct err *why, void *arg)
{
	struct tool_call *c = arg;
	const struct store_sandbox *row = &sb->row;
	struct err e;
	json_t *o;

	if (rc != 0) {
		if (why == NULL)
			(void)err_set(&e, rc, "the server is shutting down");
		tool_call_fail(c, why == NULL ? &e : why);
		return;
	}
	o = json_pack("{s:s, s:s, s:s, s:o, s:o, s:s}", "identifier",
	    row->identifier, "container_id", row->container_id, "name",
	    row->name, "created_at", view_time(row->created_ms), "expires_at",
	    view_time(row->expires_ms), "image", row->image);
	tool_call_result(c,
	    json_pack("{s:s, s:o}", "tool", "restart_sandbox", "sandbox", o));
}

static void
restart_create(struct tool_call *c, const char *identifier, const char *image,
    uint32_t generation)
{
	struct service *s = c->service;
	const struct sandbox_request q = {.identifier = identifier,
	    .image = image,
	    .origin = "run",
	    .generation = generation,
	    .ttl_s = args_ttl(s->conf, json_object_get(c->args, "options"))};
	struct sandbox *sb;
	struct err e;

	sb = tool_new_sandbox(s, &c->principal, &q, &e);
	if (sb == NULL)
		tool_call_fail(c, &e);
	else
		sandbox_wait_open(sb, restart_open_cb, c);
}

static void
restart_gone_cb(struct sandbox *sb, int rc, const struct err *why, void *arg)
{
	if (rc != 0) {
		restart_open_cb(sb, rc, why, arg);
		return;
	}
	restart_create(
	    arg, sb->row.identifier, sb->row.image, sb->row.generation + 1);
}

void
service_restart_sandbox(struct service *s, const struct principal *p,
    json_t *args, service_json_cb done, void *arg)
{
	struct tool_call *c = tool_call_new(s, p, args, done, arg);
	char identifier[ARGS_IDENTIFIER_MAX + 1];
	struct sandbox *sb;
	struct err e;

	if (args_identifier(args, NULL, identifier, &e) != 0) {
		tool_call_fail(c, &e);
		return;
	}
	sb = sandbox_by_identifier(s, p->tenant, identifier);
	if (sb == NULL) {
		restart_create(
		    c, identifier, conf_str(s->conf, CONF_SANDBOX_IMAGE), 1);
		return;
	}
	sandbox_wait_gone(sb, restart_gone_cb, c);
	sandbox_remove(sb);
}

/* ---- status */

struct view_arg {
	struct service *service;
	service_json_cb done;
	void *arg;
};

static void
view_row_cb(
    int rc, const struct store_run *row, const struct err *why, void *arg)
{
	struct view_arg *v = arg;
	struct log_source l = {.fd = -1};
	json_t *o;

	if (rc != 0) {
		v->done(rc, NULL, why, v->arg);
		free(v);
		return;
	}
	if (row->log != NULL) {
		l.mem = row->log;
		l.length = row->log_len;
	} else {
		l.fd = store_log_read(v->service->store, &row->uuid, NULL);
		l.length = l.fd < 0 ? 0 : row->spool_bytes;
	}
	o = view_run(row, &l);
	v->done(0, o, NULL, v->arg);
	json_decref(o);
	if (l.fd >= 0)
		(void)close(l.fd);
	free(v);
}

/* Over, but not on disk: a crash could still forget it, and its artifacts are
 * not found yet, so it is not told. */
static void
hide_end(json_t *view)
{
	json_object_set_new(view, "state", json_string(RUN_STATE_RUNNING_WORD));
	json_object_set_new(view, "ended_at", json_null());
	json_object_set_new(view, "artifacts", json_array());
	(void)json_object_del(view, "end_reason");
	(void)json_object_del(view, "artifacts_error");
	(void)json_object_del(view, "error");
}

void
service_run_view(struct service *s, const struct principal *p,
    const struct uuid *run, service_json_cb done, void *arg)
{
	struct run *r = run_by_uuid(s, p->tenant, run);
	struct log_source l;
	struct view_arg *v;
	json_t *o;

	if (r != NULL) {
		l = run_log_source(r);
		o = view_run(&r->row, &l);
		if (r->phase == RUN_ENDING)
			hide_end(o);
		done(0, o, NULL, arg);
		json_decref(o);
		return;
	}
	v = xcalloc(1, sizeof(*v));
	v->service = s;
	v->done = done;
	v->arg = arg;
	store_run_get(s->store, p->tenant, run, view_row_cb, v);
}
