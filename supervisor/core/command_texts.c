#include "supervisor/core/command_texts.h"

#include "common/js.h"
#include "common/xmalloc.h"
#include "supervisor/core/secrets.h"

/* The names of the variables; their values may be secrets and stay out, but
 * for those that say which secret they are. */
static char *
env_names(const struct runspec_command *c)
{
	AUTO(auto_json) json_t *o = json_object();

	if (c->nenv == 0)
		return xstrdup("");
	for (uint32_t i = 0; i < c->nenv; i++) {
		AUTO(auto_free)
		char *key = xstrndup(c->env[i], strcspn(c->env[i], "="));
		const char *value = strchr(c->env[i], '=') + 1;

		json_object_set_new(o, key,
		    json_string(
			secrets_is_reference(value) ? value : ENV_NOT_KEPT));
	}
	return js_dump(o);
}

static void
set_owned(char **to, char *text)
{
	free(*to);
	*to = text;
}

void
command_texts_fill(struct store_command *row, const struct runspec_command *c)
{
	AUTO(auto_json) json_t *argv = json_array();

	if (c->flags & RUNSPEC_SHELL) {
		set_owned(&row->shell, xstrdup(c->argv[0]));
		set_owned(&row->argv_json, xstrdup(""));
	} else {
		for (uint32_t i = 0; i < c->argc; i++)
			json_array_append_new(argv, json_string(c->argv[i]));
		set_owned(&row->shell, xstrdup(""));
		set_owned(&row->argv_json, js_dump(argv));
	}
	set_owned(&row->cwd, xstrdup(c->cwd));
	set_owned(&row->env_json, env_names(c));
}
