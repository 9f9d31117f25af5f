/*
 * registry.c - tools: taken in, found by name, listed per revision
 *
 * A definition is checked once, when it is taken in: a broken one keeps the
 * server from starting.  The list is text, made when a revision first asks.
 */
#include "supervisor/mcp/registry.h"

#include "common/js.h"
#include "common/xmalloc.h"

/* Members of a tool by the revision that brought them.  The order is the
 * order on the wire. */
static const struct member {
	const char *name;
	unsigned int needs; /* enum era_feature; 0: always */
} members[] = {{"name", 0}, {"title", ERA_TITLE}, {"description", 0},
    {"icons", ERA_ICONS}, {"inputSchema", 0},
    {"outputSchema", ERA_OUTPUT_SCHEMA}, {"annotations", ERA_ANNOTATIONS},
    {"execution", ERA_EXECUTION}, {"_meta", ERA_TOOL_META}};

struct registry {
	size_t n;
	struct registry_tool tools[REGISTRY_TOOLS_MAX];
	char *list[ERA_REVISIONS]; /* made when first asked for */
};

struct registry *
registry_new(void)
{
	return xcalloc(1, sizeof(struct registry));
}

static void
forget_lists(struct registry *r)
{
	for (size_t i = 0; i < ERA_REVISIONS; i++) {
		free(r->list[i]);
		r->list[i] = NULL;
	}
}

void
registry_free(struct registry *r)
{
	if (r == NULL)
		return;
	forget_lists(r);
	for (size_t i = 0; i < r->n; i++) {
		schema_free(r->tools[i].input);
		mirror_set_free(r->tools[i].mirrors);
		json_decref(r->tools[i].definition);
	}
	free(r);
}

/* NULL: it has none. */
static const char *
name_of(const json_t *definition)
{
	return json_string_value(json_object_get(definition, "name"));
}

/* r->n: there is none of this name. */
static size_t
index_of(const struct registry *r, const char *name)
{
	size_t i = 0;

	while (i < r->n && strcmp(r->tools[i].name, name) != 0)
		i++;
	return i;
}

const struct registry_tool *
registry_find(const struct registry *r, const char *name)
{
	size_t i = index_of(r, name);

	return i < r->n ? &r->tools[i] : NULL;
}

static int
check_name(const struct registry *r, const json_t *definition, struct err *e)
{
	static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				       "abcdefghijklmnopqrstuvwxyz"
				       "0123456789_.-";
	const char *name = name_of(definition);

	if (name == NULL)
		return err_set(e, ERR_INVAL, "tool without a name");
	if (*name == '\0' || strlen(name) > REGISTRY_NAME_MAX ||
	    strspn(name, alphabet) != strlen(name))
		return err_set(e, ERR_INVAL,
		    "tool name %.80s: want 1 to %d characters of A-Z a-z 0-9 "
		    "_ . -",
		    name, REGISTRY_NAME_MAX);
	if (registry_find(r, name) != NULL)
		return err_set(e, ERR_CONFLICT, "tool %s is there twice", name);
	return 0;
}

/* A schema of a tool has an object at its root (MCP 2025-11-25, tools). */
static int
check_root(const json_t *definition, const char *member, struct err *e)
{
	if (strcmp(js_text(json_object_get(definition, member), "type"),
		"object") != 0)
		return err_set(e, ERR_INVAL,
		    "tool %s: %s must have type \"object\"",
		    name_of(definition), member);
	return 0;
}

static int
check_definition(json_t *definition, struct err *e)
{
	const char *name = name_of(definition);
	const json_t *v;

	if (!json_is_string(json_object_get(definition, "description")))
		return err_set(
		    e, ERR_INVAL, "tool %s: description is missing", name);
	v = json_object_get(definition, "title");
	if (v != NULL && !json_is_string(v))
		return err_set(
		    e, ERR_INVAL, "tool %s: title is not a string", name);
	v = json_object_get(definition, "annotations");
	if (v != NULL && !json_is_object(v))
		return err_set(e, ERR_INVAL,
		    "tool %s: annotations is not an object", name);
	if (json_object_get(definition, "outputSchema") != NULL &&
	    check_root(definition, "outputSchema", e) != 0)
		return e->code;
	return check_root(definition, "inputSchema", e);
}

/* Without a word of it there are none (MCP 2025-11-25, tasks). */
static int
read_tasks(const json_t *definition, enum registry_tasks *out, struct err *e)
{
	static const char *const words[] = {
	    [REGISTRY_TASKS_FORBIDDEN] = "forbidden",
	    [REGISTRY_TASKS_OPTIONAL] = "optional",
	    [REGISTRY_TASKS_REQUIRED] = "required",
	};
	const json_t *v = json_object_get(
	    json_object_get(definition, "execution"), "taskSupport");

	*out = REGISTRY_TASKS_FORBIDDEN;
	if (v == NULL)
		return 0;
	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (json_is_string(v) &&
		    strcmp(json_string_value(v), words[i]) == 0) {
			*out = (enum registry_tasks)i;
			return 0;
		}
	return err_set(e, ERR_INVAL,
	    "tool %s: execution.taskSupport must be forbidden, optional or "
	    "required",
	    name_of(definition));
}

/* ---- what is accepted and not listed */

enum schema_use {
	SCHEMA_LISTED,
	SCHEMA_CHECKED
};

#define UNLISTED "x-unlisted"

static bool
has_unlisted(json_t *node)
{
	const char *key;
	json_t *part;
	size_t i;

	json_array_foreach (node, i, part)
		if (has_unlisted(part))
			return true;
	json_object_foreach (node, key, part)
		if (strcmp(key, UNLISTED) == 0 || has_unlisted(part))
			return true;
	return false;
}

/* In place: its unlisted members are gone, or stand in for those there. */
static void
resolve_unlisted(json_t *node, enum schema_use use)
{
	AUTO(auto_json)
	json_t *more = json_incref(json_object_get(node, UNLISTED));
	const char *key;
	json_t *part;
	size_t i;

	if (more != NULL)
		json_object_del(node, UNLISTED);
	if (more != NULL && use == SCHEMA_CHECKED)
		json_object_update(node, more);
	json_array_foreach (node, i, part)
		resolve_unlisted(part, use);
	json_object_foreach (node, key, part)
		resolve_unlisted(part, use);
}

/* The caller's: the definition itself where nothing is unlisted. */
static json_t *
definition_for(json_t *definition, enum schema_use use)
{
	json_t *out;

	if (!has_unlisted(json_object_get(definition, "inputSchema")))
		return json_incref(definition);
	out = json_copy(definition);
	json_object_set_new(out, "inputSchema",
	    json_deep_copy(json_object_get(definition, "inputSchema")));
	resolve_unlisted(json_object_get(out, "inputSchema"), use);
	return out;
}

/* t keeps what it has when the definition is not usable. */
static int
take_definition(struct registry *r, struct registry_tool *t, json_t *definition,
    struct err *e)
{
	AUTO(auto_json) json_t *checked = NULL;
	struct mirror_set *mirrors = NULL;
	struct schema *input = NULL;
	enum registry_tasks tasks;

	if (check_definition(definition, e) != 0 ||
	    read_tasks(definition, &tasks, e) != 0)
		return e->code;
	checked = definition_for(definition, SCHEMA_CHECKED);
	if (schema_new(json_object_get(checked, "inputSchema"), &input, e) != 0)
		return err_wrap(e, "tool %s: inputSchema", name_of(definition));
	if (mirror_set_new(schema_root(input), &mirrors, e) != 0) {
		schema_free(input);
		return err_wrap(e, "tool %s: inputSchema", name_of(definition));
	}
	schema_free(t->input);
	mirror_set_free(t->mirrors);
	json_decref(t->definition);
	t->definition = definition_for(definition, SCHEMA_LISTED);
	t->name = name_of(t->definition);
	t->tasks = tasks;
	t->input = input;
	t->mirrors = mirrors;
	forget_lists(r);
	return 0;
}

int
registry_add(struct registry *r, json_t *definition, mcp_tool_cb on_call,
    void *arg, struct err *e)
{
	struct registry_tool *t = &r->tools[r->n];
	struct err why;

	if (r->n == REGISTRY_TOOLS_MAX)
		return err_set(
		    e, ERR_LIMIT, "more than %d tools", REGISTRY_TOOLS_MAX);
	if (check_name(r, definition, &why) != 0 ||
	    take_definition(r, t, definition, &why) != 0)
		return err_set(e, ERR_INVAL, "%s", why.msg);
	t->on_call = on_call;
	t->arg = arg;
	r->n++;
	return 0;
}

int
registry_change(struct registry *r, json_t *definition, struct err *e)
{
	const char *name = name_of(definition);
	size_t i = name == NULL ? r->n : index_of(r, name);

	if (i == r->n)
		return err_set(e, ERR_NOTFOUND, "there is no tool %.80s",
		    name == NULL ? "without a name" : name);
	return take_definition(r, &r->tools[i], definition, e);
}

int
registry_set_resume(struct registry *r, const char *name,
    mcp_resume_cb on_resume, struct err *e)
{
	size_t i = index_of(r, name);

	if (i == r->n)
		return err_set(e, ERR_NOTFOUND, "there is no tool %.80s", name);
	r->tools[i].on_resume = on_resume;
	return 0;
}

static json_t *
tool_for(const struct registry_tool *t, const struct era_revision *rev)
{
	json_t *out = json_object();

	for (size_t i = 0; i < ARRAY_LEN(members); i++) {
		json_t *v = json_object_get(t->definition, members[i].name);

		if (v != NULL &&
		    (members[i].needs & rev->has) == members[i].needs)
			json_object_set(out, members[i].name, v);
	}
	if (t->mirrors != NULL && !era_has(rev, ERA_STATELESS))
		json_object_set_new(out, "inputSchema",
		    mirror_strip(json_object_get(out, "inputSchema")));
	return out;
}

const char *
registry_list(struct registry *r, const struct era_revision *rev)
{
	char **text = &r->list[rev - era_table];
	AUTO(auto_json) json_t *result = NULL;
	json_t *tools;

	if (*text != NULL)
		return *text;
	result = json_object();
	tools = json_array();
	for (size_t i = 0; i < r->n; i++)
		json_array_append_new(tools, tool_for(&r->tools[i], rev));
	json_object_set_new(result, "tools", tools);
	*text = js_dump(result);
	return *text;
}
