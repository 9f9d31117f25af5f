#include "tests/conformance/fixtures.h"

#include "common/exit.h"
#include "common/log.h"
#include "common/timer.h"
#include "common/xmalloc.h"

const unsigned char fixture_png[FIXTURE_PNG_LEN] = {0x89, 0x50, 0x4e, 0x47,
    0x0d, 0x0a, 0x1a, 0x0a, 0x00, 0x00, 0x00, 0x0d, 0x49, 0x48, 0x44, 0x52,
    0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x01, 0x08, 0x02, 0x00, 0x00,
    0x00, 0x90, 0x77, 0x53, 0xde, 0x00, 0x00, 0x00, 0x0c, 0x49, 0x44, 0x41,
    0x54, 0x78, 0xda, 0x63, 0xf8, 0xcf, 0xc0, 0x00, 0x00, 0x03, 0x01, 0x01,
    0x00, 0xf7, 0x03, 0x41, 0x43, 0x00, 0x00, 0x00, 0x00, 0x49, 0x45, 0x4e,
    0x44, 0xae, 0x42, 0x60, 0x82};

json_t *
fixture_json(const char *text)
{
	json_error_t why;
	json_t *o = json_loads(text, JSON_DECODE_ANY, &why);

	if (o == NULL)
		fatal(EXIT_BUG, "%s: %.100s", why.text, text);
	return o;
}

/* ---- tools */

static void
add_tool(struct fixtures *f, const struct fixture_tool *t)
{
	struct err e;
	json_t *definition = json_pack("{s:s, s:s, s:o}", "name", t->name,
	    "description", t->description, "inputSchema",
	    fixture_json(
		t->input != NULL ? t->input : "{\"type\": \"object\"}"));

	if (t->tasks != NULL)
		json_object_set_new(definition, "execution",
		    json_pack("{s:s}", "taskSupport", t->tasks));
	if (mcp_add_tool(f->mcp, definition, t->on_call, f, &e) != 0)
		fatal(EXIT_BUG, "%s", e.msg);
	json_decref(definition);
}

void
fixture_add_tools(
    struct fixtures *f, const struct fixture_tool *tools, size_t n)
{
	for (size_t i = 0; i < n; i++)
		add_tool(f, &tools[i]);
}

static void
answer_text(struct mcp_call *c, const char *text, enum mcp_outcome outcome)
{
	struct mcp_content *content = mcp_content_new();

	mcp_content_text(content, text, strlen(text));
	mcp_call_result(c, content, outcome);
}

void
fixture_say(struct mcp_call *c, const char *text)
{
	answer_text(c, text, MCP_TOOL_DONE);
}

void
fixture_fail(struct mcp_call *c, const char *text)
{
	answer_text(c, text, MCP_TOOL_FAILED);
}

/* ---- calls that wait */

struct wait {
	LIST_ENTRY(wait) link;
	struct fixtures *f;
	struct mcp_call *call;
	struct timer *timer;
	fixture_cb then;
	unsigned int step;
};

static void
wait_free(struct wait *w)
{
	LIST_REMOVE(w, link);
	timer_free(w->timer);
	free(w);
}

static void
wait_cb(void *arg)
{
	struct wait *w = arg;
	const struct wait was = *w;

	call_release(mcp_call_base(w->call));
	wait_free(w);
	was.then(was.f, was.call, was.step);
}

static void
wait_on_cancel(struct call *call, void *arg)
{
	struct wait *w = arg;
	struct mcp_call *c = w->call;

	call_release(call);
	wait_free(w);
	fixture_fail(c, "cancelled");
}

void
fixture_wait(struct fixtures *f, struct mcp_call *c, unsigned int ms,
    fixture_cb then, unsigned int step)
{
	struct wait *w = xcalloc(1, sizeof(*w));

	w->f = f;
	w->call = c;
	w->then = then;
	w->step = step;
	w->timer = timer_new(f->base, wait_cb, w);
	timer_set_ms(w->timer, ms);
	LIST_INSERT_HEAD(&f->waits, w, link);
	call_hold(mcp_call_base(c), wait_on_cancel, w);
}

void
fixture_end_waits(struct fixtures *f)
{
	struct wait *w;

	while ((w = LIST_FIRST(&f->waits)) != NULL)
		wait_on_cancel(mcp_call_base(w->call), w);
}
