/* sandbox_tools.c - the tools delete_sandbox and restart_sandbox */
#include "supervisor/tools/tool.h"

#include "common/js.h"
#include "common/xmalloc.h"
#include "supervisor/mcp/offer.h"
#include "supervisor/tools/args.h"
#include "supervisor/tools/home.h"
#include "supervisor/tools/view.h"

struct sandbox_call {
	struct tool_call t;
	char identifier[SANDBOX_IDENTIFIER_MAX + 1];
	struct gone gone;          /* the old one */
	struct bus_member opening; /* the new one, of restart_sandbox */
	struct sandbox *fresh;     /* while it is joined, or READY */
	bool is_up;
};

/* ---- delete_sandbox */

static void
delete_done(struct sandbox_call *c)
{
	tool_result(&c->t,
	    json_pack("{s:s, s:b, s:s}", "tool", "delete_sandbox", "deleted", 1,
		"identifier", c->identifier));
}

static void
deleted_cb(struct gone *g, const struct err *why)
{
	struct sandbox_call *c = g->arg;
	struct err e;

	if (why == NULL) {
		delete_done(c);
		return;
	}
	home_explain_gone(why, &e);
	tool_fail(&c->t, &e);
}

/* ---- whoever sits before the client is asked when runs would end */

#define CONFIRM "confirm"

static json_t *
confirm_question(const struct sandbox *sb)
{
	size_t n = sched_queue_count(&sb->queue);
	AUTO(auto_free)
	char *text = xasprintf("Delete the sandbox %s? %zu run%s in it, and "
			       "all of its files, would be lost.",
	    sb->row.identifier, n, n == 1 ? "" : "s");
	json_t *schema = json_pack("{s:s, s:{s:{s:s, s:s}}, s:[s]}", "type",
	    "object", "properties", "delete", "type", "boolean", "title",
	    "Delete it", "required", "delete");

	return json_pack("{s:{s:s, s:{s:s, s:o}}}", CONFIRM, "method",
	    "elicitation/create", "params", "message", text, "requestedSchema",
	    schema);
}

static bool
is_confirmed(const json_t *answers)
{
	const json_t *answer = json_object_get(answers, CONFIRM);
	const json_t *content = json_object_get(answer, "content");

	return strcmp(js_text(answer, "action"), "accept") == 0 &&
	    json_is_true(json_object_get(content, "delete"));
}

/* False: t is gone, for it was asked, or refused. */
static bool
may_delete(struct tool_call *t, const struct sandbox *sb)
{
	const json_t *answers = mcp_call_answers(t->mcp);
	struct err e;

	if (sched_queue_count(&sb->queue) == 0 ||
	    !conf_bool(core_conf(t->core), CONF_CONFIRM_DELETE) ||
	    !mcp_call_can(t->mcp, MCP_CAN_ELICIT) || is_confirmed(answers))
		return true;
	if (json_object_get(answers, CONFIRM) == NULL) {
		tool_ask(t, confirm_question(sb));
		return false;
	}
	(void)err_set(&e, ERR_POLICY,
	    "the user was asked and did not agree: runs go on in the sandbox "
	    "%s, and it stays",
	    sb->row.identifier);
	tool_fail(t, &e);
	return false;
}

static void
delete_on_start(struct tool_call *t)
{
	struct sandbox_call *c = (struct sandbox_call *)t;
	struct sandbox *sb = home_find(t, "", c->identifier);

	struct sandbox *left = sb != NULL ?
	    NULL :
	    sandbox_remainder(
		core_sandboxes(t->core), t->call->who, c->identifier);

	if (left != NULL) {
		tool_waits(t);
		gone_watch(&c->gone, left, deleted_cb, c);
	} else if (sb == NULL) {
		delete_done(c);
	} else if (may_delete(t, sb)) {
		tool_tell(t, "sandbox.delete", sb->row.name, NULL);
		tool_waits(t);
		gone_start(&c->gone, sb, deleted_cb, c);
	}
}

static void
sandbox_call_on_clear(struct tool_call *t)
{
	struct sandbox_call *c = (struct sandbox_call *)t;

	gone_clear(&c->gone);
	if (c->fresh != NULL)
		bus_leave(&c->fresh->bus, &c->opening);
}

static void
delete_summary(const json_t *o, struct buf *line)
{
	(void)buf_printf(line, "deleted %.40s", js_text(o, "identifier"));
}

const struct tool tool_delete_sandbox = {
    .name = "delete_sandbox",
    .failed = "delete_failed",
    .size = sizeof(struct sandbox_call),
    .start = delete_on_start,
    .clear = sandbox_call_on_clear,
    .summary = delete_summary,
};

/* ---- restart_sandbox: the new one takes the name at once, and the answer
 * comes when it is up and nothing of the old one is left */

static void
restart_done(struct sandbox_call *c)
{
	const struct store_sandbox *row = &c->fresh->row;
	json_t *o = json_pack("{s:s, s:s, s:s, s:o, s:o, s:s}", "identifier",
	    row->identifier, "container_id", row->container_id, "name",
	    row->name, "created_at", view_time(row->created_ms), "expires_at",
	    view_time(row->expires_ms), "image", row->image);

	tool_result(&c->t,
	    json_pack("{s:s, s:o}", "tool", "restart_sandbox", "sandbox", o));
}

static void
opening_cb(const struct bus_event *ev, void *arg)
{
	struct sandbox_call *c = arg;

	if (ev->kind == BUS_SANDBOX_FAILED) {
		tool_fail(&c->t, ev->why);
		return;
	}
	if (ev->kind != BUS_SANDBOX_READY)
		return;
	c->is_up = true;
	if (c->gone.sandbox == NULL)
		restart_done(c);
}

static void
replaced_cb(struct gone *g, const struct err *why)
{
	struct sandbox_call *c = g->arg;
	struct err e;

	if (why != NULL) {
		(void)err_set(&e, why->code,
		    "the new sandbox takes calls, but the old one is still "
		    "there: %s; the server keeps trying",
		    why->msg);
		tool_fail(&c->t, &e);
	} else if (c->is_up) {
		restart_done(c);
	}
}

static int
restart(struct sandbox_call *c, struct sandbox *old, struct err *e)
{
	struct core *core = c->t.core;
	struct principal *who = c->t.call->who;
	uint32_t ttl_s = args_ttl(
	    core_conf(core), json_object_get(c->t.arguments, "options"));

	if (core_admit_sandbox(core, who, old, e) != 0)
		return e->code;
	if (old == NULL)
		(void)sandbox_remainder(
		    core_sandboxes(core), who, c->identifier);
	if (old == NULL)
		return home_open(core, who, c->identifier, ttl_s, &c->fresh, e);
	gone_watch(&c->gone, old, replaced_cb, c);
	return sandbox_replace(old, ttl_s, &c->fresh, e);
}

static void
restart_on_start(struct tool_call *t)
{
	struct sandbox_call *c = (struct sandbox_call *)t;
	struct sandbox *old = home_find(t, "", c->identifier);
	struct err e;

	if (restart(c, old, &e) != 0) {
		tool_fail(t, &e);
		return;
	}
	tool_tell_sandbox(t, c->fresh);
	bus_join(&c->fresh->bus, &c->opening, opening_cb, c);
	tool_waits(t);
}

static void
restart_summary(const json_t *o, struct buf *line)
{
	const json_t *sandbox = json_object_get(o, "sandbox");

	(void)buf_printf(line,
	    "restarted %.40s: it is empty now, in container %.100s",
	    js_text(sandbox, "identifier"), js_text(sandbox, "name"));
}

const struct tool tool_restart_sandbox = {
    .name = "restart_sandbox",
    .failed = "restart_failed",
    .size = sizeof(struct sandbox_call),
    .start = restart_on_start,
    .clear = sandbox_call_on_clear,
    .summary = restart_summary,
};
