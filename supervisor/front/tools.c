#include "supervisor/front/front.h"

#include <ctype.h>
#include <stdio.h>

#include "common/js.h"
#include "common/log.h"
#include "common/xmalloc.h"
#include "supervisor/front/tool_text.h"

/* The registry's tools, each bound to a function of the service. */

#define DEFINITION_MAX 65536
#define DEFINITION_DEPTH 32

typedef void (*tool_function)(struct service *s, const struct principal *p,
    json_t *args, service_json_cb done, void *arg);

static const struct tool_binding {
	const char *name;
	tool_function on_call;
} bindings[] = {
    {"run_sandbox", service_run_sandbox},
    {"delete_sandbox", service_delete_sandbox},
    {"restart_sandbox", service_restart_sandbox},
    {"initialize_sandbox", service_initialize_sandbox},
    {"execute_code", service_execute_code},
    {"stop_sandbox", service_stop_sandbox},
};

struct tool_bound {
	struct front *front;
	const struct tool_binding *binding;
};

/* ---- a call */

struct tool_call_state {
	struct mcp_call *call;
	const char *tool;
};

/* What the client or an operator can mend is a result that the model reads;
 * the rest is ours, and an error of the protocol. */
static void
end_with_error(struct tool_call_state *t, int rc, const struct err *why)
{
	AUTO(auto_free) char *text = xasprintf("%s: %s", t->tool, why->msg);
	struct mcp_content *content;

	switch (rc) {
	case ERR_BACKEND:
	case ERR_INVAL:
	case ERR_LIMIT:
	case ERR_POLICY:
	case ERR_WRONG_STATE:
	case ERR_NOTFOUND:
	case ERR_CONFLICT:
	case ERR_LOST:
	case ERR_DB:  /* such as a full disk: an operator mends it, and the */
	case ERR_SYS: /* model can try again */
		break;
	default:
		log_error("tool %s", text);
		mcp_call_error(t->call, MCP_INTERNAL_ERROR, text, NULL);
		return;
	}
	/* No structured content: clients hold it against the tool's output
	 * schema even then. */
	content = mcp_content_new();
	mcp_content_text(content, text, strlen(text));
	mcp_call_result(t->call, content, MCP_TOOL_FAILED);
}

static void
tool_done_cb(int rc, json_t *result, const struct err *why, void *arg)
{
	struct tool_call_state *t = arg;
	struct mcp_content *content;
	AUTO(auto_free) char *text = NULL;

	if (rc != 0) {
		end_with_error(t, rc, why);
	} else {
		text = tool_text(t->tool, result);
		/* A program that failed is no failed call: MCP's isError is
		 * for what keeps a tool from doing its work. */
		content = mcp_content_new();
		mcp_content_text(content, text, strlen(text));
		mcp_content_structured(content, json_incref(result));
		mcp_call_result(t->call, content, MCP_TOOL_DONE);
	}
	free(t);
}

static void
tool_on_call(struct mcp_call *call, json_t *arguments, void *arg)
{
	const struct tool_bound *b = arg;
	struct tool_call_state *t = xcalloc(1, sizeof(*t));
	const char *identifier;

	t->call = call;
	t->tool = b->binding->name;
	if (conf_bool(b->front->conf, CONF_LOG_TOOLCALLS)) {
		identifier =
		    json_string_value(json_object_get(arguments, "identifier"));
		log_info("tool %s sandbox %.36s", t->tool,
		    identifier != NULL ? identifier :
					 SERVICE_IDENTIFIER_DEFAULT);
	}
	b->binding->on_call(b->front->service, mcp_call_base(call)->who,
	    arguments, tool_done_cb, t);
}

/* ---- definitions */

static const char *
description_extra(const struct conf *conf, const char *tool, const char *what)
{
	char key[80];

	(void)snprintf(key, sizeof(key), "TOOL_DESC_%s_%s", tool, what);
	for (char *p = key; *p != '\0'; p++)
		*p = (char)toupper((unsigned char)*p);
	return conf_extra(conf, key);
}

static void
set_description(const struct conf *conf, const char *tool, json_t *definition)
{
	const char *text =
	    json_string_value(json_object_get(definition, "description"));
	const char *override, *append;
	AUTO(auto_free) char *both = NULL;

	if (!conf_bool(conf, CONF_TOOL_DESC_OVERRIDES_ENABLED))
		return;
	override = description_extra(conf, tool, "OVERRIDE");
	append = description_extra(conf, tool, "APPEND");
	if (override == NULL && append == NULL)
		return;
	both = xasprintf("%s%s%s",
	    override != NULL ? override :
		text != NULL ? text :
			       "",
	    append != NULL ? " " : "", append != NULL ? append : "");
	json_object_set_new(definition, "description",
	    js_string_bytes(both, strlen(both), NULL));
}

static const struct embed_file *
find_definition(const struct embed_file *files, const char *name)
{
	char file[64];

	(void)snprintf(file, sizeof(file), "%s.json", name);
	for (; files->name != NULL; files++)
		if (strcmp(files->name, file) == 0)
			return files;
	return NULL;
}

static int
add_tool(struct front *f, struct tool_bound *b, const struct embed_file *file,
    struct err *e)
{
	AUTO(auto_json) json_t *definition = NULL;
	const char *name;

	if (js_parse(file->data, file->len, DEFINITION_MAX, DEFINITION_DEPTH,
		&definition, e) != 0)
		return err_wrap(e, "%s", file->name);
	name = json_string_value(json_object_get(definition, "name"));
	if (name == NULL || strcmp(name, b->binding->name) != 0)
		return err_set(e, ERR_INVAL, "%s: its name must be %s",
		    file->name, b->binding->name);
	set_description(f->conf, name, definition);
	return mcp_add_tool(f->mcp, definition, tool_on_call, b, e);
}

int
front_add_tools(struct front *f, const struct embed_file *files, struct err *e)
{
	const struct embed_file *file;
	size_t nfiles = 0;

	while (files[nfiles].name != NULL)
		nfiles++;
	if (nfiles != ARRAY_LEN(bindings))
		return err_set(e, ERR_INVAL,
		    "%zu tool definitions for %zu functions", nfiles,
		    ARRAY_LEN(bindings));
	f->tools = xcalloc(ARRAY_LEN(bindings), sizeof(*f->tools));
	for (size_t i = 0; i < ARRAY_LEN(bindings); i++) {
		f->tools[i] = (struct tool_bound){f, &bindings[i]};
		file = find_definition(files, bindings[i].name);
		if (file == NULL)
			return err_set(e, ERR_INVAL,
			    "tool %s has no definition", bindings[i].name);
		if (add_tool(f, &f->tools[i], file, e) != 0)
			return e->code;
	}
	return 0;
}
