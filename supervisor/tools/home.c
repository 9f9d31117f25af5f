#include "supervisor/tools/home.h"

#include "common/conf.h"
#include "supervisor/core/core.h"
#include "supervisor/tools/args.h"
#include "supervisor/tools/tool.h"

struct sandbox *
home_find(const struct tool_call *t, const char *fallback,
    char identifier[SANDBOX_IDENTIFIER_MAX + 1])
{
	args_identifier(t->arguments, fallback, identifier);
	return sandbox_find_named(
	    core_sandboxes(t->core), t->call->who->tenant, identifier);
}

int
home_open(struct core *core, struct principal *who, const char *identifier,
    uint32_t ttl_s, struct sandbox **out, struct err *e)
{
	return sandbox_open(core_sandboxes(core),
	    &(struct sandbox_wish){.who = who,
		.identifier = identifier,
		.image = conf_str(core_conf(core), CONF_SANDBOX_IMAGE),
		.origin = "run",
		.ttl_s = ttl_s},
	    out, e);
}

int
home_find_or_open(struct core *core, struct principal *who,
    const char *identifier, uint32_t ttl_s, struct sandbox **out, bool *is_new,
    struct err *e)
{
	*out =
	    sandbox_find_named(core_sandboxes(core), who->tenant, identifier);
	*is_new = *out == NULL;
	if (core_admit_run(core, who, *out, e) != 0)
		return e->code;
	if (*out == NULL)
		return home_open(core, who, identifier,
		    ttl_s != 0 ? ttl_s : args_ttl(core_conf(core), NULL), out,
		    e);
	sandbox_touch(*out, ttl_s);
	return 0;
}

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
home_explain_gone(const struct err *why, struct err *e)
{
	(void)err_set(e, why->code,
	    "the sandbox is being deleted but still there: %s; the server "
	    "keeps trying",
	    why->msg);
}
