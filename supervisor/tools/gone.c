#include "supervisor/tools/gone.h"

#include "supervisor/core/sandbox.h"

static void
on_bus(const struct bus_event *ev, void *arg)
{
	struct gone *g = arg;

	if (ev->kind != BUS_SANDBOX_GONE &&
	    ev->kind != BUS_SANDBOX_REMOVE_FAILED)
		return;
	gone_clear(g);
	g->cb(g, ev->kind == BUS_SANDBOX_GONE ? NULL : ev->why);
}

void
gone_watch(struct gone *g, struct sandbox *sb, gone_cb cb, void *arg)
{
	*g = (struct gone){.sandbox = sb, .cb = cb, .arg = arg};
	bus_join(&sb->bus, &g->member, on_bus, g);
}

void
gone_start(struct gone *g, struct sandbox *sb, gone_cb cb, void *arg)
{
	gone_watch(g, sb, cb, arg);
	sandbox_remove(sb);
}

void
gone_clear(struct gone *g)
{
	if (g->sandbox != NULL)
		bus_leave(&g->sandbox->bus, &g->member);
	g->sandbox = NULL;
}

void
gone_explain(const struct err *why, struct err *e)
{
	(void)err_set(e, why->code,
	    "the sandbox is being deleted but still there: %s; the server "
	    "keeps trying",
	    why->msg);
}
