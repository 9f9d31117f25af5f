#include "supervisor/core/run_asked.h"

#include "common/js.h"
#include "common/xmalloc.h"
#include "supervisor/core/run_wish.h"
#include "supervisor/core/secrets.h"

/* ---- what the row of a command says of it */

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

void
run_asked_fill_texts(struct store_command *row, const struct runspec_command *c)
{
	AUTO(auto_json) json_t *argv = json_array();
	bool is_shell = (c->flags & RUNSPEC_SHELL) != 0;

	for (uint32_t i = 0; i < c->argc; i++)
		json_array_append_new(argv, json_string(c->argv[i]));
	free(row->argv_json);
	row->argv_json = is_shell ? xstrdup("") : js_dump(argv);
	xset_text(&row->shell, is_shell ? c->argv[0] : "");
	xset_text(&row->cwd, c->cwd);
	free(row->env_json);
	row->env_json = env_names(c);
}

/* ---- the spec, and the texts, of a row */

void
run_asked_note(struct store_run *row)
{
	struct runspec spec;

	row->asked_bytes = (uint32_t)row->spec_len;
	if (runspec_decode(row->spec, row->spec_len, &spec, NULL) != 0)
		return;
	row->wants_lock = (spec.flags & RUNSPEC_LOCK) != 0;
	runspec_clear(&spec);
}

bool
run_asked_is_fit(const struct store_run *row)
{
	struct runspec spec;

	if (row->spec == NULL ||
	    runspec_decode(row->spec, row->spec_len, &spec, NULL) != 0)
		return false;
	runspec_clear(&spec);
	return true;
}

void
run_asked_drop_spec(struct store_run *row)
{
	if (row->spec != NULL)
		explicit_bzero(row->spec, row->spec_len);
	free(row->spec);
	row->spec = NULL;
	row->spec_len = 0;
}

static void
drop_all(struct store_run *row)
{
	run_asked_drop_spec(row);
	for (uint32_t i = 0; i < row->ncommands; i++) {
		struct store_command *c = &row->commands[i];

		xset_text(&c->shell, "");
		xset_text(&c->argv_json, "");
		xset_text(&c->cwd, "");
		xset_text(&c->env_json, "");
	}
}

void
run_asked_slim(struct store_run *row)
{
	run_asked_note(row);
	if (run_asked_is_large(row))
		drop_all(row);
}

/* Rows have the beginning of what is long, and the spec has all of it. */
static void
fill_cut(struct store_run *row, const struct store_run *from)
{
	struct runspec spec;

	if (from->spec == NULL ||
	    runspec_decode(from->spec, from->spec_len, &spec, NULL) != 0)
		return;
	for (uint32_t i = 0; i < row->ncommands && i < spec.ncommands; i++) {
		if (!store_command_is_cut(&row->commands[i]))
			continue;
		run_wish_forget_trace(&spec.commands[i], from->trace);
		run_asked_fill_texts(&row->commands[i], &spec.commands[i]);
	}
	runspec_clear(&spec);
}

static void
take(struct store_run *row, const struct store_run *from,
    enum run_asked_what what)
{
	for (uint32_t i = 0; i < row->ncommands && i < from->ncommands; i++) {
		struct store_command *c = &row->commands[i];
		const struct store_command *f = &from->commands[i];

		xset_text(&c->shell, f->shell);
		xset_text(&c->argv_json, f->argv_json);
		xset_text(&c->cwd, f->cwd);
		xset_text(&c->env_json, f->env_json);
	}
	if (store_run_is_cut(row))
		fill_cut(row, from);
	run_asked_drop_spec(row);
	if (what == RUN_ASKED_TEXTS || from->spec == NULL)
		return;
	row->spec = xmemdup(from->spec, from->spec_len);
	row->spec_len = from->spec_len;
}

/* ---- where it is */

void
run_asked_init(struct run_asked *a)
{
	*a = (struct run_asked){0};
	TAILQ_INIT(&a->readers);
}

void
run_asked_restored(struct run_asked *a, const struct store_run *row)
{
	a->is_away = run_asked_is_large(row);
}

void
run_asked_let_go(struct run_asked *a, struct store_run *row)
{
	if (a->is_away || !TAILQ_EMPTY(&a->readers) || !run_asked_is_large(row))
		return;
	drop_all(row);
	a->is_away = true;
}

bool
run_asked_must_fetch(struct run_asked *a)
{
	bool must = !a->is_fetching;

	a->is_fetching = true;
	return must;
}

static struct run_reader *
first_waiting(const struct run_asked *a)
{
	struct run_reader *rd;

	TAILQ_FOREACH (rd, &a->readers, link)
		if (rd->is_waiting)
			return rd;
	return NULL;
}

void
run_asked_fetched(struct run_asked *a, struct store_run *row,
    const struct store_run *from, enum run_asked_what what,
    const struct err *why)
{
	struct run_reader *rd;

	a->is_fetching = false;
	if (from != NULL) {
		a->is_away = false;
		take(row, from, what);
	}
	/* Each may leave, and take others with it. */
	while ((rd = first_waiting(a)) != NULL) {
		rd->is_waiting = false;
		rd->cb(from != NULL ? 0 : why->code, why, rd->arg);
	}
}

bool
run_asked_join(struct run_asked *a, struct run_reader *rd,
    void (*cb)(int rc, const struct err *why, void *arg), void *arg)
{
	*rd = (struct run_reader){
	    .cb = cb, .arg = arg, .is_joined = true, .is_waiting = a->is_away};
	TAILQ_INSERT_TAIL(&a->readers, rd, link);
	return !rd->is_waiting;
}

void
run_asked_leave(struct run_asked *a, struct run_reader *rd)
{
	if (!rd->is_joined)
		return;
	rd->is_joined = false;
	TAILQ_REMOVE(&a->readers, rd, link);
}
