#include "supervisor/mcp/prompts.h"

#include "common/js.h"
#include "common/xmalloc.h"

struct prompts {
	size_t n;
	struct prompt *all[PROMPTS_MAX];
};

struct prompts *
prompts_new(void)
{
	return xcalloc(1, sizeof(struct prompts));
}

void
prompts_free(struct prompts *p)
{
	if (p == NULL)
		return;
	for (size_t i = 0; i < p->n; i++) {
		json_decref(p->all[i]->definition);
		free(p->all[i]);
	}
	free(p);
}

size_t
prompts_count(const struct prompts *p)
{
	return p->n;
}

const struct prompt *
prompts_at(const struct prompts *p, size_t i)
{
	return p->all[i];
}

const struct prompt *
prompts_find(const struct prompts *p, const char *name)
{
	for (size_t i = 0; i < p->n; i++)
		if (strcmp(p->all[i]->name, name) == 0)
			return p->all[i];
	return NULL;
}

static int
check_arguments(const json_t *definition, const char *name, struct err *e)
{
	const json_t *arguments = json_object_get(definition, "arguments");
	const json_t *a;
	size_t i;

	if (arguments != NULL && !json_is_array(arguments))
		return err_set(
		    e, ERR_INVAL, "prompt %s: arguments is not an array", name);
	json_array_foreach (arguments, i, a) {
		const json_t *required = json_object_get(a, "required");

		if (*js_text(a, "name") == '\0')
			return err_set(e, ERR_INVAL,
			    "prompt %s: argument %zu has no name", name, i);
		if (required != NULL && !json_is_boolean(required))
			return err_set(e, ERR_INVAL,
			    "prompt %s: required of argument %s is not a "
			    "boolean",
			    name, js_text(a, "name"));
	}
	return 0;
}

int
prompts_add(struct prompts *p, json_t *definition, mcp_prompt_cb on_get,
    void *arg, struct err *e)
{
	const char *name = js_text(definition, "name");
	struct prompt *one;

	if (p->n == PROMPTS_MAX)
		return err_set(
		    e, ERR_LIMIT, "more than %d prompts", PROMPTS_MAX);
	if (*name == '\0' || strlen(name) > PROMPT_NAME_MAX)
		return err_set(e, ERR_INVAL,
		    "a prompt's name must have 1 to %d bytes", PROMPT_NAME_MAX);
	if (prompts_find(p, name) != NULL)
		return err_set(e, ERR_INVAL, "prompt %s is there twice", name);
	if (check_arguments(definition, name, e) != 0)
		return e->code;
	one = xcalloc(1, sizeof(*one));
	one->definition = json_incref(definition);
	one->name = name;
	one->on_get = on_get;
	one->arg = arg;
	p->all[p->n++] = one;
	return 0;
}

bool
prompt_has(const struct prompt *p, const char *argument)
{
	const json_t *a;
	size_t i;

	json_array_foreach (json_object_get(p->definition, "arguments"), i, a)
		if (strcmp(js_text(a, "name"), argument) == 0)
			return true;
	return false;
}

int
prompt_check(const struct prompt *p, const json_t *arguments, struct err *e)
{
	const char *name;
	json_t *v;
	const json_t *a;
	size_t i;

	json_object_foreach ((json_t *)(uintptr_t)arguments, name, v)
		if (js_plain(v) == NULL)
			return err_set(e, ERR_INVAL,
			    "argument %.80s must be a string%s", name,
			    json_is_string(v) ? " without NUL characters" : "");
	json_array_foreach (json_object_get(p->definition, "arguments"), i, a) {
		name = js_text(a, "name");
		if (json_is_true(json_object_get(a, "required")) &&
		    json_object_get(arguments, name) == NULL)
			return err_set(e, ERR_INVAL,
			    "argument %.80s is missing; prompt %s needs it",
			    name, p->name);
	}
	return 0;
}
