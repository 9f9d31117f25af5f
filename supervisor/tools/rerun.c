#include "supervisor/tools/rerun.h"

#include "common/buf.h"
#include "common/js.h"
#include "supervisor/core/run_asked.h"
#include "supervisor/core/core.h"
#include "supervisor/core/run.h"
#include "supervisor/core/secrets.h"
#include "supervisor/store/run_texts.h"
#include "supervisor/tools/args.h"
#include "supervisor/tools/home.h"
#include "supervisor/tools/record.h"
#include "supervisor/tools/tools.h"

#define NAMES_MAX 300 /* bytes of names in a refusal */

/* What is recorded, with what was given. */
struct rerun {
	struct core *core;
	const struct tools *tools;
	struct call *by;
	const struct store_run *row;
	json_t *env; /* NULL: none was given */
};

/* A command's variables as recorded, with given values for those not kept;
 * names without either go to missing. */
static json_t *
fill_env(const struct rerun *r, const struct store_command *c, json_t *missing)
{
	json_t *recorded = json_loads(c->env_json, 0, NULL), *value;
	json_t *env = json_object();
	const char *name;

	json_object_foreach (recorded, name, value) {
		json_t *given = json_object_get(r->env, name);

		if (given != NULL)
			json_object_set(env, name, given);
		else if (strcmp(json_string_value(value), ENV_NOT_KEPT) != 0)
			json_object_set(env, name, value);
		else
			json_object_set_new(missing, name, json_true());
	}
	json_decref(recorded);
	return env;
}

static void
put_names(struct buf *b, json_t *names)
{
	size_t left = json_object_size(names);
	const char *name, *before = "";
	json_t *value;

	json_object_foreach (names, name, value) {
		if (buf_printf(b, "%s%s", before, name) != 0)
			break;
		before = ", ";
		left--;
	}
	buf_set_max(b, 0);
	if (left > 0)
		(void)buf_printf(
		    b, "%s%zu more", before[0] != '\0' ? " and " : "", left);
}

static int
refuse_missing(json_t *missing, struct err *e)
{
	struct buf b;

	buf_init(&b, NAMES_MAX);
	put_names(&b, missing);
	(void)err_set(e, ERR_CONFLICT,
	    "values of variables are not recorded; give those of %.*s in the "
	    "body: {\"env\": {\"NAME\": \"value\"}}",
	    (int)buf_len(&b), (const char *)buf_data(&b));
	buf_clear(&b);
	return ERR_CONFLICT;
}

/* The variables of all commands, each name once. */
static json_t *
recorded_names(const struct store_run *row)
{
	json_t *names = json_object();

	for (uint32_t i = 0; i < row->ncommands; i++) {
		json_t *env = json_loads(row->commands[i].env_json, 0, NULL);

		if (env != NULL)
			(void)json_object_update(names, env);
		json_decref(env);
	}
	return names;
}

/* Nothing that is given is left over. */
static int
check_given(const struct rerun *r, struct err *e)
{
	AUTO(auto_json) json_t *names = NULL;
	const char *name;
	json_t *value;

	if (json_object_size(r->env) == 0)
		return 0;
	names = recorded_names(r->row);
	json_object_foreach (r->env, name, value) {
		if (!json_is_string(value))
			return err_set(
			    e, ERR_INVAL, "env.%.40s: want a text", name);
		if (json_object_get(names, name) == NULL)
			return err_set(e, ERR_INVAL,
			    "env.%.40s: no command of the run has a variable "
			    "of this name",
			    name);
	}
	return 0;
}

static int
check_more(json_t *more, json_t **env, struct err *e)
{
	const char *name;
	json_t *value;

	*env = json_object_get(more, "env");
	json_object_foreach (more, name, value)
		if (strcmp(name, "env") != 0)
			return err_set(e, ERR_INVAL,
			    "the body: \"%.40s\" is not known; there is: env",
			    name);
	if (*env != NULL && !json_is_object(*env))
		return err_set(
		    e, ERR_INVAL, "env: want an object of names and values");
	return 0;
}

static json_t *
command_args(
    const struct rerun *r, const struct store_command *c, json_t *missing)
{
	json_t *o = json_pack("{s:s, s:I, s:b}", "cwd", c->cwd, "timeout_ms",
	    (json_int_t)c->timeout_ms, "allow_failure", c->allow_failure);

	if (c->shell[0] != '\0')
		json_object_set_new(o, "shell", json_string(c->shell));
	else
		json_object_set_new(
		    o, "argv", json_loads(c->argv_json, 0, NULL));
	if (c->env_json[0] != '\0')
		json_object_set_new(o, "env", fill_env(r, c, missing));
	return o;
}

static int
commands_wish(const struct rerun *r, struct run_wish *w, struct err *e)
{
	AUTO(auto_json) json_t *missing = json_object();
	AUTO(auto_json) json_t *args = NULL;
	json_t *commands = json_array(), *options;
	struct run_args a;

	if (store_run_is_cut(r->row))
		return err_set(e, ERR_CONFLICT,
		    "the run's commands are not recorded whole (of one that "
		    "has ended at most %u KiB each): run them with run_sandbox",
		    COMMAND_TEXTS_MAX >> 10);
	for (uint32_t i = 0; i < r->row->ncommands; i++)
		json_array_append_new(
		    commands, command_args(r, &r->row->commands[i], missing));
	options = record_options(r->row->options);
	json_object_set_new(options, "await_completion", json_false());
	args = json_pack("{s:s, s:o, s:o}", "identifier", r->row->identifier,
	    "commands", commands, "options", options);
	if (json_object_size(missing) > 0)
		return refuse_missing(missing, e);
	if (args_run_from(
		core_conf(r->core), tools_denylist(r->tools), args, &a, e) != 0)
		return e->code;
	*w = a.wish;
	return 0;
}

static int
language_wish(const struct rerun *r, struct run_wish *w, struct err *e)
{
	const struct language *l =
	    languages_find(tools_languages(r->tools), r->row->language);
	const char *text =
	    r->row->ncommands > 0 ? r->row->commands[0].shell : "";
	const struct span code = {(const uint8_t *)text, strlen(text)};

	if (l == NULL)
		return err_set(e, ERR_CONFLICT,
		    "the run's language is not recorded, or not one of this "
		    "server's: run its code with execute_code");
	/* A character that did not fit is left out whole. */
	if (code.n == 0 || code.n > CODE_KEPT_MAX - 4)
		return err_set(e, ERR_CONFLICT,
		    "the run's code is not recorded whole (HISTORY_CODE; at "
		    "most %d bytes): run it with execute_code",
		    CODE_KEPT_MAX - 4);
	args_code_wish(core_conf(r->core), l, &code, w);
	w->when = STORE_NOW;
	if ((r->row->options & RUN_KILLS_LEFTOVERS) != 0)
		w->spec.flags |= RUNSPEC_KILL_LEFTOVERS;
	return 0;
}

static int
wish_of(const struct rerun *r, struct run_wish *w, struct err *e)
{
	if ((r->row->options & RUN_OPTIONS_ARE_KNOWN) == 0)
		return err_set(e, ERR_CONFLICT,
		    "how this run was run is not recorded: it is of an earlier "
		    "version");
	if (check_given(r, e) != 0)
		return e->code;
	return strcmp(r->row->tool, "execute_code") == 0 ?
	    language_wish(r, w, e) :
	    commands_wish(r, w, e);
}

int
rerun_begin(const struct rerun_wish *wish, struct run **out, bool *is_new,
    struct err *e)
{
	struct rerun r = {wish->core, wish->tools, wish->by, wish->row, NULL};
	struct principal *who = wish->by->who;
	struct sandbox *sb;
	struct run_wish w;
	int rc = 0;

	if (check_more(wish->more, &r.env, e) != 0 || wish_of(&r, &w, e) != 0)
		return e->code;
	w.by = wish->by;
	w.rerun_of = wish->row->uuid;
	if (secrets_check(core_secrets(r.core), who, &w.spec, e) != 0 ||
	    home_find_or_open(
		r.core, who, r.row->identifier, 0, &sb, is_new, e) != 0 ||
	    run_create(core_runs(r.core), sb, &w, out, e) != 0)
		rc = e->code;
	run_wish_clear(&w);
	return rc;
}
