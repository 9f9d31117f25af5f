/*
 * methods_completion.c - completion/complete
 *
 * What is completed is known before the function is asked: a prompt that is
 * registered, or a template that is listed.
 */
#include "supervisor/mcp/provider.h"

#include "common/js.h"
#include "common/xmalloc.h"
#include "supervisor/mcp/mcp_call.h"
#include "supervisor/mcp/prompts.h"

#define SINCE_FIRST 20241105
#define SINCE_CAPABILITY 20250326
#define SINCE_CONTEXT 20250618
#define VALUES_MAX 100 /* MCP 2025-11-25, completion */

static bool
is_template(const struct mcp *m, const char *uri)
{
	const json_t *one;
	size_t i;

	json_array_foreach (m->templates, i, one)
		if (strcmp(js_text(one, "uriTemplate"), uri) == 0)
			return true;
	return false;
}

static int
check_prompt(
    const struct mcp *m, const struct mcp_completion *what, struct err *e)
{
	const struct prompt *prompt = prompts_find(m->prompts, what->prompt);

	if (prompt == NULL)
		return err_set(e, ERR_INVAL,
		    "Unknown prompt: %.80s; prompts/list names them",
		    what->prompt);
	if (!prompt_has(prompt, what->argument))
		return err_set(e, ERR_INVAL,
		    "prompt %s has no argument %.80s; prompts/list names them",
		    prompt->name, what->argument);
	return 0;
}

static int
read_ref(const struct mcp *m, const json_t *ref, struct mcp_completion *out,
    struct err *e)
{
	const char *type = js_text(ref, "type");

	if (strcmp(type, "ref/prompt") == 0)
		out->prompt = js_plain(json_object_get(ref, "name"));
	else if (strcmp(type, "ref/resource") == 0)
		out->uri = js_plain(json_object_get(ref, "uri"));
	if (out->prompt == NULL && out->uri == NULL)
		return err_set(e, ERR_INVAL,
		    "params.ref must be {\"type\": \"ref/prompt\", \"name\"} "
		    "or {\"type\": \"ref/resource\", \"uri\"}");
	if (out->prompt != NULL)
		return check_prompt(m, out, e);
	if (!is_template(m, out->uri))
		return err_set(e, ERR_INVAL,
		    "Unknown resource template: %.200s; "
		    "resources/templates/list names them",
		    out->uri);
	return 0;
}

/* The other arguments: texts all. */
static int
read_context(const json_t *context, struct mcp_completion *out, struct err *e)
{
	json_t *arguments = json_object_get(context, "arguments");
	const char *name;
	json_t *v;

	if (arguments == NULL)
		return 0;
	if (!json_is_object(arguments))
		return err_set(e, ERR_INVAL,
		    "params.context.arguments must be an object of strings");
	json_object_foreach (arguments, name, v)
		if (js_plain(v) == NULL)
			return err_set(e, ERR_INVAL,
			    "params.context.arguments.%.80s must be a string "
			    "without NUL characters",
			    name);
	out->context = arguments;
	return 0;
}

static int
read_params(
    const struct mcp_context *c, struct mcp_completion *out, struct err *e)
{
	const json_t *params = c->message->params;
	const json_t *argument = json_object_get(params, "argument");

	*out = (struct mcp_completion){
	    .argument = js_plain(json_object_get(argument, "name")),
	    .value = js_plain(json_object_get(argument, "value"))};
	if (out->argument == NULL || out->value == NULL)
		return err_set(e, ERR_INVAL,
		    "params.argument must be {\"name\", \"value\"} of strings "
		    "without NUL characters");
	if (c->rev->number >= SINCE_CONTEXT &&
	    read_context(json_object_get(params, "context"), out, e) != 0)
		return e->code;
	return read_ref(c->m, json_object_get(params, "ref"), out, e);
}

/* Not more values than a client may expect. */
static json_t *
shape_values(const struct era_revision *rev, json_t *result)
{
	json_t *completion = json_object_get(result, "completion");
	const json_t *values = json_object_get(completion, "values");
	json_t *out, *few;

	(void)rev;
	if (json_array_size(values) <= VALUES_MAX)
		return json_incref(result);
	few = json_array();
	for (size_t i = 0; i < VALUES_MAX; i++)
		json_array_append(few, json_array_get(values, i));
	completion = json_copy(completion);
	json_object_set_new(completion, "values", few);
	json_object_set_new(completion, "hasMore", json_true());
	out = json_copy(result);
	json_object_set_new(out, "completion", completion);
	return out;
}

struct completion_work {
	const struct mcp *m;
	struct mcp_completion what;
};

static void
run_completion(struct mcp_call *call, void *arg)
{
	const struct completion_work *w = arg;

	mcp_call_set_shape(call, shape_values);
	w->m->on_complete(call, &w->what, w->m->complete_arg);
}

static void
on_complete(struct mcp_request *r, const struct mcp_context *c)
{
	struct completion_work work = {.m = c->m};
	struct err e;

	if (read_params(c, &work.what, &e) != 0)
		request_error(r, MCP_INVALID_PARAMS, e.msg, NULL);
	else
		mcp_call_start(r, c, run_completion, &work);
}

static bool
is_offered(const struct mcp *m)
{
	return m->on_complete != NULL;
}

static void
announce(
    const struct mcp *m, const struct era_revision *rev, json_t *capabilities)
{
	(void)m;
	if (rev->number >= SINCE_CAPABILITY)
		json_object_set_new(capabilities, "completions", json_object());
}

static const struct mcp_method methods[] = {
    {"completion/complete", SINCE_FIRST, 0, on_complete},
};

const struct mcp_provider methods_completion = {
    .is_offered = is_offered,
    .announce = announce,
    .methods = methods,
    .nmethods = ARRAY_LEN(methods),
};
