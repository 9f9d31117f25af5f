/*
 * args.c - the arguments of a run, made into a runspec and rows
 *
 * They fit the tool's schema, which is the only checker of what a schema can
 * say; refused here is only what it cannot: names of variables, that a path
 * is absolute, that a command is given at all.
 */
#include "supervisor/tools/args.h"

#include <stdio.h>

#include "common/js.h"
#include "common/utf8.h"
#include "common/xmalloc.h"
#include "supervisor/core/run_asked.h"
#include "supervisor/tools/line_ends.h"

#if RUNSPEC_COMMANDS_MAX > 64
#error "run_args.took_crlf has a bit for each command"
#endif

void
args_identifier(const json_t *args, const char *fallback,
    char out[SANDBOX_IDENTIFIER_MAX + 1])
{
	const char *text =
	    json_string_value(json_object_get(args, "identifier"));

	(void)snprintf(out, SANDBOX_IDENTIFIER_MAX + 1, "%s",
	    text == NULL ? fallback : text);
}

uint32_t
args_ttl(const struct conf *conf, const json_t *options)
{
	json_int_t ttl =
	    json_integer_value(json_object_get(options, "ttl_seconds"));
	int64_t max = conf_int(conf, CONF_MAX_TTL_SECONDS);

	if (ttl <= 0)
		ttl = conf_int(conf, CONF_DEFAULT_TTL_SECONDS);
	return (uint32_t)(ttl > max ? max : ttl);
}

bool
args_kills_leftovers(const json_t *options)
{
	return json_is_true(json_object_get(options, "kill_leftovers"));
}

int
args_run_id(const json_t *args, struct uuid *out, struct err *e)
{
	return uuid_parse(js_text(args, "run_id"), out) == 0 ?
	    0 :
	    err_set(e, ERR_INVAL, "run_id: want the id of a run");
}

/* ---- environment */

/* No value is ever named: it may be a secret.  Nor is what stands behind a
 * "=" in a name, which was meant as one. */
static int
check_variable(const char *key, size_t key_len, size_t value_len,
    const char *where, struct err *e)
{
	size_t whole = key_len + 1 + value_len;
	int shown = (int)strcspn(key, "=");

	if (shown > 40)
		shown = 40;
	if (key_len == 0)
		return err_set(
		    e, ERR_INVAL, "%s: a variable has no name", where);
	if (memchr(key, '=', key_len) != NULL)
		return err_set(e, ERR_INVAL,
		    "%s.%.*s: the variable's name contains \"=\"", where, shown,
		    key);
	if (key_len > ARGS_NAME_MAX)
		return err_set(e, ERR_INVAL,
		    "%s.%.*s: the variable's name has %zu bytes, at most %d",
		    where, shown, key, key_len, ARGS_NAME_MAX);
	if (whole > RUNSPEC_ARG_BYTES_MAX)
		return err_set(e, ERR_INVAL,
		    "%s.%.*s: the variable has %zu bytes with its name, at "
		    "most %d: put the value into a file",
		    where, shown, key, whole, RUNSPEC_ARG_BYTES_MAX);
	return 0;
}

/* Set or replace one K=V. */
static int
env_set(struct runspec_command *c, const char *key, size_t key_len,
    const char *value, const char *where, struct err *e)
{
	char *pair;

	if (check_variable(key, key_len, strlen(value), where, e) != 0)
		return e->code;
	pair = xasprintf("%.*s=%s", (int)key_len, key, value);
	for (uint32_t i = 0; i < c->nenv; i++) {
		if (strncmp(c->env[i], pair, key_len + 1) != 0)
			continue;
		free(c->env[i]);
		c->env[i] = pair;
		return 0;
	}
	if (c->nenv == RUNSPEC_ENV_MAX) {
		free(pair);
		return err_set(e, ERR_INVAL,
		    "%s: a command has more than %d variables, those of "
		    "options.default_env among them",
		    where, RUNSPEC_ENV_MAX);
	}
	c->env = xreallocarray(c->env, c->nenv + 2, sizeof(*c->env));
	c->env[c->nenv++] = pair;
	c->env[c->nenv] = NULL;
	return 0;
}

#define DIGITS_FIRST 15 /* a double keeps as many of any number */
#define DIGITS_MOST 17  /* and needs no more to be told from all others */

/* The shortest digits of the number: 3.1, not 3.1000000000000001. */
static char *
real_text(const json_t *real)
{
	char *text = NULL;

	for (size_t n = DIGITS_FIRST; n <= DIGITS_MOST; n++) {
		free(text);
		text =
		    json_dumps(real, JSON_ENCODE_ANY | JSON_REAL_PRECISION(n));
		if (text == NULL)
			return xstrdup("");
		if (strtod(text, NULL) == json_real_value(real))
			break;
	}
	return text;
}

static char *
value_text(const json_t *value)
{
	if (json_is_string(value))
		return xstrdup(json_string_value(value));
	return json_is_real(value) ? real_text(value) : js_dump(value);
}

/* {"PORT": 8080}: numbers and booleans are taken as their JSON text. */
static int
env_from_object(
    struct runspec_command *c, json_t *env, const char *where, struct err *e)
{
	const char *key;
	json_t *value;

	json_object_foreach (env, key, value) {
		AUTO(auto_free) char *text = value_text(value);

		if (env_set(c, key, strlen(key), text, where, e) != 0)
			return e->code;
	}
	return 0;
}

static int
env_from_array(
    struct runspec_command *c, json_t *env, const char *where, struct err *e)
{
	size_t i;
	json_t *value;

	json_array_foreach (env, i, value) {
		const char *text = json_string_value(value), *eq;

		while (text != NULL && (*text == ' ' || *text == '\t'))
			text++;
		eq = text == NULL ? NULL : strchr(text, '=');
		if (eq == NULL || eq == text)
			return err_set(e, ERR_INVAL,
			    "%s[%zu]: want \"NAME=value\"", where, i);
		if (env_set(c, text, (size_t)(eq - text), eq + 1, where, e) !=
		    0)
			return e->code;
	}
	return 0;
}

static int
env_from(
    struct runspec_command *c, json_t *env, const char *where, struct err *e)
{
	if (env == NULL || json_is_null(env))
		return 0;
	if (json_is_array(env))
		return env_from_array(c, env, where, e);
	return env_from_object(c, env, where, e);
}

/* ---- one command */

static bool
is_blank(const char *s)
{
	return s[strspn(s, " \t\r\n")] == '\0';
}

static void
argv_push(struct runspec_command *c, char *arg)
{
	c->argv = xreallocarray(c->argv, c->argc + 2, sizeof(*c->argv));
	c->argv[c->argc++] = arg;
	c->argv[c->argc] = NULL;
}

static char *
joined(const json_t *argv)
{
	struct buf b = {0};
	char *text;

	for (size_t i = 0; i < json_array_size(argv); i++)
		(void)buf_printf(&b, i == 0 ? "%s" : " %s",
		    json_string_value(json_array_get(argv, i)));
	text = xstrndup((const char *)buf_data(&b), buf_len(&b));
	buf_clear(&b);
	return text;
}

/* The compatible tool's rule: exactly one of the two; given both, the words of
 * argv, joined by blanks, are the shell text.  A text of nothing but blanks is
 * none; any other is run whole, since a blank at its end may be escaped. */
static int
command_words(
    struct runspec_command *c, const json_t *in, size_t index, struct err *e)
{
	const char *shell = json_string_value(json_object_get(in, "shell"));
	const json_t *argv = json_object_get(in, "argv");
	size_t n = json_array_size(argv);

	if (shell != NULL && !is_blank(shell)) {
		c->flags |= RUNSPEC_SHELL;
		argv_push(c, n > 0 ? joined(argv) : xstrdup(shell));
		return 0;
	}
	if (n == 0)
		return err_set(e, ERR_INVAL,
		    "command %zu must set exactly one of shell or argv", index);
	for (size_t i = 0; i < n; i++)
		argv_push(
		    c, xstrdup(json_string_value(json_array_get(argv, i))));
	if (c->argv[0][0] == '\0')
		return err_set(e, ERR_INVAL,
		    "commands[%zu].argv[0]: the program's name is empty",
		    index);
	return 0;
}

/* True: something was changed. */
static bool
take_line_ends(struct runspec_command *c)
{
	char *text = c->argv[0];
	size_t n = strlen(text), left;

	if ((c->flags & RUNSPEC_SHELL) == 0)
		return false;
	left = line_ends_take(text, n);
	text[left] = '\0';
	return left < n;
}

/* What exec takes as one argument, before anything is begun. */
static int
command_lengths(const struct runspec_command *c, const json_t *in, size_t index,
    struct err *e)
{
	bool is_shell = (c->flags & RUNSPEC_SHELL) != 0;
	bool is_joined =
	    is_shell && json_array_size(json_object_get(in, "argv")) > 0;

	for (uint32_t i = 0; i < c->argc; i++) {
		size_t n = strlen(c->argv[i]);

		if (n <= RUNSPEC_ARG_BYTES_MAX)
			continue;
		if (is_shell)
			return err_set(e, ERR_INVAL,
			    "commands[%zu].%s: %zu bytes, at most %d: "
			    "execute_code takes a program of %u (language "
			    "bash), or read what is long from a file",
			    index, is_joined ? "argv" : "shell", n,
			    RUNSPEC_ARG_BYTES_MAX, CODE_MAX);
		return err_set(e, ERR_INVAL,
		    "commands[%zu].argv[%u]: %zu bytes, at most %d: "
		    "execute_code takes a program of %u, or read what is long "
		    "from a file",
		    index, i, n, RUNSPEC_ARG_BYTES_MAX, CODE_MAX);
	}
	return 0;
}

static int
command_cwd(struct runspec_command *c, const json_t *in, const char *fallback,
    size_t index, struct err *e)
{
	const char *cwd = json_string_value(json_object_get(in, "cwd"));

	if (cwd == NULL || cwd[0] == '\0')
		cwd = fallback;
	if (cwd[0] != '/')
		return err_set(e, ERR_INVAL,
		    "commands[%zu].cwd must be absolute, got \"%.80s\"", index,
		    cwd);
	if (strlen(cwd) > RUNSPEC_CWD_MAX)
		return err_set(
		    e, ERR_INVAL, "commands[%zu].cwd is too long", index);
	c->cwd = xstrdup(cwd);
	return 0;
}

static uint32_t
command_timeout(const struct conf *conf, const json_t *in)
{
	json_int_t ms = json_integer_value(json_object_get(in, "timeout_ms"));

	return ms > 0 ?
	    (uint32_t)ms :
	    (uint32_t)conf_int(conf, CONF_DEFAULT_COMMAND_TIMEOUT_MS);
}

static int
command_from(const struct conf *conf, struct runspec_command *c,
    const json_t *in, const json_t *options, size_t index, struct err *e)
{
	const char *cwd =
	    json_string_value(json_object_get(options, "default_cwd"));
	char where[40];

	(void)snprintf(where, sizeof(where), "commands[%zu].env", index);
	if (cwd == NULL || cwd[0] == '\0')
		cwd = "/workspace";
	if (command_words(c, in, index, e) != 0 ||
	    command_cwd(c, in, cwd, index, e) != 0 ||
	    env_from(c, json_object_get(options, "default_env"),
		"options.default_env", e) != 0 ||
	    env_from(c, json_object_get(in, "env"), where, e) != 0)
		return ERR_INVAL;
	if (json_is_true(json_object_get(in, "allow_failure")))
		c->flags |= RUNSPEC_ALLOW_FAILURE;
	c->timeout_ms = command_timeout(conf, in);
	return 0;
}

static void
command_row(
    struct store_command *row, uint32_t index, const struct runspec_command *c)
{
	row->index = index;
	run_asked_fill_texts(row, c);
	row->error = xstrdup("");
	row->exit_code = -1;
	row->timeout_ms = c->timeout_ms;
	row->allow_failure = (c->flags & RUNSPEC_ALLOW_FAILURE) != 0;
}

static int
options_from(const struct conf *conf, const json_t *options, struct run_args *a,
    struct err *e)
{
	const char *user =
	    json_string_value(json_object_get(options, "as_user"));
	const char *cwd =
	    json_string_value(json_object_get(options, "default_cwd"));
	const json_t *await = json_object_get(options, "await_completion");
	json_int_t ms =
	    json_integer_value(json_object_get(options, "await_timeout_ms"));

	if (cwd != NULL && cwd[0] != '\0' && cwd[0] != '/')
		return err_set(e, ERR_INVAL,
		    "options.default_cwd: cwd must be absolute, got \"%.80s\"",
		    cwd);
	if (user != NULL && strcmp(user, "root") == 0)
		a->wish.spec.user = RUNSPEC_USER_ROOT;
	if (json_is_true(json_object_get(options, "continue_on_error")))
		a->wish.spec.flags |= RUNSPEC_CONTINUE_ON_ERROR;
	if (args_kills_leftovers(options))
		a->wish.spec.flags |= RUNSPEC_KILL_LEFTOVERS;
	a->wish.lock = json_is_true(json_object_get(options, "lock_sandbox"));
	if (a->wish.lock)
		a->wish.spec.flags |= RUNSPEC_LOCK;
	a->await = await == NULL ?
	    conf_bool(conf, CONF_DEFAULT_AWAIT_COMPLETION) :
	    json_is_true(await);
	a->wish.when = a->await ? STORE_SOON : STORE_NOW;
	a->await_timeout_ms = ms > 0 ?
	    (uint64_t)ms :
	    (uint64_t)conf_int(conf, CONF_DEFAULT_AWAIT_TIMEOUT_MS);
	a->ttl_s = args_ttl(conf, options);
	return 0;
}

static int
commands_from(const struct conf *conf, const json_t *args, struct run_args *a,
    struct err *e)
{
	struct run_wish *w = &a->wish;
	const json_t *commands = json_object_get(args, "commands");
	const json_t *options = json_object_get(args, "options");
	size_t n = json_array_size(commands), size = 0;

	w->spec.commands = xcalloc(n, sizeof(*w->spec.commands));
	w->commands = xcalloc(n, sizeof(*w->commands));
	/* Stop at the bound: each command has a copy of default_env. */
	for (size_t i = 0; i < n && size <= RUNSPEC_BYTES_MAX; i++) {
		struct runspec_command *c = &w->spec.commands[i];
		const json_t *in = json_array_get(commands, i);

		w->spec.ncommands++;
		if (command_from(conf, c, in, options, i, e) != 0)
			return ERR_INVAL;
		command_row(&w->commands[i], (uint32_t)i, c);
		/* The row has what was said, the rest is for what is run. */
		if (take_line_ends(c) && i < RUNSPEC_COMMANDS_MAX)
			a->took_crlf |= UINT64_C(1) << i;
		if (command_lengths(c, in, i, e) != 0)
			return ERR_INVAL;
		size += runspec_command_size(c);
	}
	return runspec_fits(&w->spec, e);
}

int
args_run_from(const struct conf *conf, const struct denylist *deny,
    const json_t *args, struct run_args *out, struct err *e)
{
	struct run_args a = {.wish = {.tool = "run_sandbox"}};

	args_identifier(args, "", a.identifier);
	uuid_timed(&a.wish.uuid);
	if (options_from(conf, json_object_get(args, "options"), &a, e) != 0 ||
	    commands_from(conf, args, &a, e) != 0 ||
	    denylist_mark(deny, &a.wish.spec, e) != 0) {
		run_wish_clear(&a.wish);
		return ERR_INVAL;
	}
	*out = a;
	return 0;
}

/* ---- code: a file of it, and the words of its language */

/* {file} and {dir} of a language's words. */
static char *
fill_word(const char *word, const char *dir, const char *file)
{
	if (strcmp(word, "{file}") == 0)
		return xasprintf("%s/%s", dir, file);
	if (strncmp(word, "{dir}", 5) == 0)
		return xasprintf("%s%s", dir, word + 5);
	return xstrdup(word);
}

static void
fill_command(struct run_wish *w, const json_t *words, const char *dir,
    const char *file, uint32_t timeout_ms)
{
	struct runspec_command *c = &w->spec.commands[w->spec.ncommands];
	const json_t *word;
	size_t i;

	json_array_foreach (words, i, word)
		argv_push(c, fill_word(json_string_value(word), dir, file));
	c->cwd = xstrdup("/workspace");
	c->timeout_ms = timeout_ms;
	c->deny = xstrdup("");
	command_row(&w->commands[w->spec.ncommands], w->spec.ncommands, c);
	w->spec.ncommands++;
}

static void
fill_file(struct runspec *s, const struct language *l, const struct span *code)
{
	s->files = xcalloc(1, sizeof(*s->files));
	s->nfiles = 1;
	s->files[0].name = xstrdup(l->file);
	s->files[0].len = code->n;
	s->files[0].data = xmemdup(code->p, code->n);
	if (l->takes_crlf)
		s->files[0].len =
		    line_ends_take((char *)s->files[0].data, code->n);
	s->files[0].mode = 0600;
}

/* The history has what was said, as the text of the first command. */
static void
keep_code(struct run_wish *w, const struct span *code)
{
	const char *text = (const char *)code->p;
	size_t n = code->n < CODE_KEPT_MAX ? code->n : CODE_KEPT_MAX;

	n = utf8_complete_len(text, n);
	free(w->commands[0].shell);
	w->commands[0].shell = xstrndup(text, n);
}

void
args_code_wish(const struct conf *conf, const struct language *l,
    const struct span *code, struct run_wish *w)
{
	uint32_t timeout_ms =
	    (uint32_t)conf_int(conf, CONF_DEFAULT_COMMAND_TIMEOUT_MS);
	AUTO(auto_free) char *dir = NULL;
	char id[UUID_TEXT_LEN + 1];

	*w = (struct run_wish){.tool = "execute_code",
	    .language = l->name,
	    .merge = RUN_MERGED,
	    .when = STORE_SOON};
	uuid_timed(&w->uuid);
	uuid_format(&w->uuid, id);
	dir = xasprintf("%s%s", RUNSPEC_DIR_PREFIX, id);
	fill_file(&w->spec, l, code);
	w->spec.commands = xcalloc(2, sizeof(*w->spec.commands));
	w->commands = xcalloc(2, sizeof(*w->commands));
	if (json_array_size(l->compile) > 0)
		fill_command(w, l->compile, dir, l->file, timeout_ms);
	fill_command(w, l->run, dir, l->file, timeout_ms);
	if (conf_bool(conf, CONF_HISTORY_CODE))
		keep_code(w, code);
}
