/*
 * methods_resources.c - resources/list, templates/list and read
 *
 * Which resources there are only the offer knows; the templates are listed
 * here.  Subscriptions are methods_watch.c's and subscriptions.c's.
 */
#include "supervisor/mcp/provider.h"

#include "common/js.h"
#include "supervisor/mcp/list_page.h"
#include "supervisor/mcp/mcp_call.h"
#include "supervisor/mcp/shape.h"

#define SINCE_FIRST 20241105

static void
bad_params(struct mcp_request *r, const char *message)
{
	request_error(r, MCP_INVALID_PARAMS, message, NULL);
}

/* What ops are asked with. */
struct resource_work {
	const struct mcp *m;
	const char *text; /* a cursor, or an address */
};

/* ---- lists */

static json_t *
shape_resources(const struct era_revision *rev, json_t *result)
{
	return shape_member(rev, result, "resources");
}

static void
run_list(struct mcp_call *call, void *arg)
{
	const struct resource_work *w = arg;

	mcp_call_set_shape(call, shape_resources);
	w->m->resource_ops->list(call, w->text, w->m->resource_arg);
}

static void
on_list(struct mcp_request *r, const struct mcp_context *c)
{
	struct resource_work work = {.m = c->m};
	struct err e;

	if (list_cursor(c->message->params, &work.text, &e) != 0)
		bad_params(r, e.msg);
	else
		mcp_call_start(r, c, run_list, &work);
}

static void
on_templates(struct mcp_request *r, const struct mcp_context *c)
{
	const json_t *all = c->m->templates;
	AUTO(auto_json) json_t *result = NULL;
	AUTO(auto_free) char *text = NULL;
	struct list_page page;
	struct err e;

	if (list_page_find(
		c->message->params, json_array_size(all), &page, &e) != 0) {
		bad_params(r, e.msg);
		return;
	}
	result = json_pack("{s:o}", "resourceTemplates",
	    shape_items(c->rev, all, page.from, page.to));
	list_page_end(&page, json_array_size(all), result);
	text = js_dump(result);
	request_result(r, NULL, text);
}

/* ---- one resource */

/* params.uri; NULL: it is none, and r is refused */
static const char *
uri_of(struct mcp_request *r, const struct mcp_context *c)
{
	const char *uri = js_plain(json_object_get(c->message->params, "uri"));

	if (uri == NULL || *uri == '\0') {
		bad_params(r, "params.uri must be the address of a resource");
		return NULL;
	}
	return uri;
}

static json_t *
shape_contents(const struct era_revision *rev, json_t *result)
{
	return shape_member(rev, result, "contents");
}

static void
repeat_read(struct mcp_call *call, const void *thing, json_t *uri)
{
	const struct mcp *m = thing;

	mcp_call_set_shape(call, shape_contents);
	m->resource_ops->read(call, json_string_value(uri), m->resource_arg);
}

static const struct call_repeat read_repeat = {
    .method = "resources/read", .run = repeat_read};

static void
run_read(struct mcp_call *call, void *arg)
{
	const struct resource_work *w = arg;
	AUTO(auto_json) json_t *uri = json_string(w->text);

	if (mcp_call_set_repeat(call, &read_repeat, w->m, w->text, uri))
		repeat_read(call, w->m, uri);
}

static void
on_read(struct mcp_request *r, const struct mcp_context *c)
{
	struct resource_work work = {.m = c->m, .text = uri_of(r, c)};

	if (work.text != NULL)
		mcp_call_start(r, c, run_read, &work);
}

/* ---- the provider */

static bool
is_offered(const struct mcp *m)
{
	return m->resource_ops != NULL;
}

static void
announce(
    const struct mcp *m, const struct era_revision *rev, json_t *capabilities)
{
	(void)m;
	(void)rev;
	json_object_set_new(capabilities, "resources", json_object());
}

static const struct mcp_method methods[] = {
    {"resources/list", SINCE_FIRST, 0, on_list},
    {"resources/templates/list", SINCE_FIRST, 0, on_templates},
    {"resources/read", SINCE_FIRST, 0, on_read},
};

const struct mcp_provider methods_resources = {
    .is_offered = is_offered,
    .announce = announce,
    .methods = methods,
    .nmethods = ARRAY_LEN(methods),
};
