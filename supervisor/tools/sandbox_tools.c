/* sandbox_tools.c - the tools delete_sandbox and restart_sandbox */
#include "supervisor/tools/tool.h"

#include "common/js.h"
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

static void
delete_on_start(struct tool_call *t)
{
	struct sandbox_call *c = (struct sandbox_call *)t;
	struct sandbox *sb = home_find(t, "", c->identifier);

	if (sb == NULL)
		delete_done(c);
	else {
		tool_tell(t, "sandbox.delete", sb->row.name, NULL);
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
}

static void
restart_summary(const json_t *o, struct buf *line)
{
	const json_t *sandbox = json_object_get(o, "sandbox");

	(void)buf_printf(line, "%.40s is now %.100s",
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
