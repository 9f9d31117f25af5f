#include "common/runspec.h"

#include "common/msg/wire.h"
#include "common/xmalloc.h"

#define RUNSPEC_FLAGS_ALL                                                      \
	(RUNSPEC_CONTINUE_ON_ERROR | RUNSPEC_LOCK | RUNSPEC_KILL_LEFTOVERS)
#define RUNSPEC_COMMAND_FLAGS_ALL                                              \
	(RUNSPEC_ALLOW_FAILURE | RUNSPEC_SHELL | RUNSPEC_DENIED |              \
	    RUNSPEC_MERGE_STDERR | RUNSPEC_NO_SECRET)
#define RUNSPEC_STR_HEAD 4 /* bytes of a string's length */

static void
runspec_free_strings(char **v)
{
	if (v == NULL)
		return;
	for (char **s = v; *s != NULL; s++)
		free(*s);
	free(v);
}

static void
runspec_wipe_strings(char **v)
{
	for (char **s = v; s != NULL && *s != NULL; s++)
		explicit_bzero(*s, strlen(*s));
}

void
runspec_clear(struct runspec *s)
{
	for (uint32_t i = 0; i < s->ncommands; i++) {
		struct runspec_command *c = &s->commands[i];

		runspec_free_strings(c->argv);
		runspec_wipe_strings(c->env);
		runspec_free_strings(c->env);
		free(c->cwd);
		free(c->deny);
	}
	free(s->commands);
	for (uint32_t i = 0; i < s->nfiles; i++) {
		free(s->files[i].name);
		free(s->files[i].data);
	}
	free(s->files);
	memset(s, 0, sizeof(*s));
}

static int
runspec_check_argv(const struct runspec_command *c, uint32_t at, struct err *e)
{
	if (c->argc == 0 || c->argv == NULL)
		return err_set(e, ERR_INVAL, "command %u is empty", at);
	if (c->argc > RUNSPEC_ARGV_MAX)
		return err_set(e, ERR_LIMIT,
		    "command %u has %u arguments, limit %d", at, c->argc,
		    RUNSPEC_ARGV_MAX);
	if ((c->flags & RUNSPEC_SHELL) != 0 && c->argc != 1)
		return err_set(e, ERR_INVAL,
		    "command %u: shell text must stand alone", at);
	for (uint32_t i = 0; i < c->argc; i++) {
		if (c->argv[i] == NULL)
			return err_set(e, ERR_INVAL,
			    "command %u: argument %u is missing", at, i);
		if (strlen(c->argv[i]) > RUNSPEC_ARG_BYTES_MAX)
			return err_set(e, ERR_LIMIT,
			    "command %u: argument %u has over %d bytes", at, i,
			    RUNSPEC_ARG_BYTES_MAX);
	}
	if ((c->flags & RUNSPEC_SHELL) == 0 && c->argv[0][0] == '\0')
		return err_set(e, ERR_INVAL,
		    "command %u: the program's name is empty", at);
	return 0;
}

static int
runspec_check_env(const struct runspec_command *c, uint32_t at, struct err *e)
{
	if (c->nenv > RUNSPEC_ENV_MAX)
		return err_set(e, ERR_LIMIT,
		    "command %u has %u environment variables, limit %d", at,
		    c->nenv, RUNSPEC_ENV_MAX);
	for (uint32_t i = 0; i < c->nenv; i++) {
		const char *v = c->env[i];

		if (v == NULL || v[0] == '=' || strchr(v, '=') == NULL)
			return err_set(e, ERR_INVAL,
			    "command %u: environment variable %u is not"
			    " NAME=value",
			    at, i);
		if (strlen(v) > RUNSPEC_ARG_BYTES_MAX)
			return err_set(e, ERR_LIMIT,
			    "command %u: environment variable %u has over %d"
			    " bytes",
			    at, i, RUNSPEC_ARG_BYTES_MAX);
	}
	return 0;
}

static int
runspec_check_command(
    const struct runspec_command *c, uint32_t at, struct err *e)
{
	if (runspec_check_argv(c, at, e) != 0 ||
	    runspec_check_env(c, at, e) != 0)
		return e != NULL ? e->code : ERR_INVAL;
	if (c->cwd == NULL || c->cwd[0] != '/')
		return err_set(e, ERR_INVAL,
		    "command %u: the working directory must be absolute", at);
	if (strlen(c->cwd) > RUNSPEC_CWD_MAX)
		return err_set(e, ERR_LIMIT,
		    "command %u: the working directory has over %d bytes", at,
		    RUNSPEC_CWD_MAX);
	if (c->timeout_ms == 0 || c->timeout_ms > RUNSPEC_TIMEOUT_MAX_MS)
		return err_set(e, ERR_LIMIT,
		    "command %u: timeout of %u ms, want 1 to %u", at,
		    c->timeout_ms, RUNSPEC_TIMEOUT_MAX_MS);
	if ((c->flags & ~(uint32_t)RUNSPEC_COMMAND_FLAGS_ALL) != 0)
		return err_set(e, ERR_INVAL, "command %u: unknown flags %#x",
		    at, c->flags);
	if (c->deny != NULL && strlen(c->deny) > RUNSPEC_ARG_BYTES_MAX)
		return err_set(e, ERR_LIMIT,
		    "command %u: the deny text has over %d bytes", at,
		    RUNSPEC_ARG_BYTES_MAX);
	return 0;
}

static int
runspec_check_file(const struct runspec *s, uint32_t at, struct err *e)
{
	const struct runspec_file *f = &s->files[at];

	if (f->name == NULL || f->name[0] == '\0' ||
	    strcmp(f->name, ".") == 0 || strcmp(f->name, "..") == 0 ||
	    strchr(f->name, '/') != NULL)
		return err_set(e, ERR_INVAL,
		    "file %u: the name is empty, . or .., or has a slash", at);
	if (strlen(f->name) > RUNSPEC_FILE_NAME_MAX)
		return err_set(e, ERR_LIMIT,
		    "file %u: the name has over %d bytes", at,
		    RUNSPEC_FILE_NAME_MAX);
	if (f->mode > 0777)
		return err_set(e, ERR_INVAL, "file %u: mode %o, want 0 to 777",
		    at, f->mode);
	if (f->len > RUNSPEC_BYTES_MAX)
		return err_set(e, ERR_LIMIT, "file %u has over %u bytes", at,
		    RUNSPEC_BYTES_MAX);
	for (uint32_t i = 0; i < at; i++)
		if (strcmp(s->files[i].name, f->name) == 0)
			return err_set(e, ERR_INVAL,
			    "files %u and %u have the same name", i, at);
	return 0;
}

static int
runspec_check_counts(uint32_t ncommands, uint32_t nfiles, struct err *e)
{
	if (ncommands == 0)
		return err_set(e, ERR_INVAL, "a run needs a command");
	if (ncommands > RUNSPEC_COMMANDS_MAX)
		return err_set(e, ERR_LIMIT, "%u commands, limit %d", ncommands,
		    RUNSPEC_COMMANDS_MAX);
	if (nfiles > RUNSPEC_FILES_MAX)
		return err_set(e, ERR_LIMIT, "%u files, limit %d", nfiles,
		    RUNSPEC_FILES_MAX);
	return 0;
}

/* One set of rules for both directions. */
static int
runspec_check(const struct runspec *s, struct err *e)
{
	int rc = runspec_check_counts(s->ncommands, s->nfiles, e);

	if (rc != 0)
		return rc;
	if (s->user != RUNSPEC_USER_SANDBOX && s->user != RUNSPEC_USER_ROOT)
		return err_set(e, ERR_INVAL, "unknown user %d", (int)s->user);
	if ((s->flags & ~(uint32_t)RUNSPEC_FLAGS_ALL) != 0)
		return err_set(e, ERR_INVAL, "unknown flags %#x", s->flags);
	for (uint32_t i = 0; rc == 0 && i < s->ncommands; i++)
		rc = runspec_check_command(&s->commands[i], i, e);
	for (uint32_t i = 0; rc == 0 && i < s->nfiles; i++)
		rc = runspec_check_file(s, i, e);
	return rc;
}

static size_t
runspec_strings_size(char *const *v, uint32_t n)
{
	size_t size = 4;

	for (uint32_t i = 0; i < n; i++)
		size += RUNSPEC_STR_HEAD + strlen(v[i]);
	return size;
}

size_t
runspec_command_size(const struct runspec_command *c)
{
	size_t size = runspec_strings_size(c->argv, c->argc) +
	    runspec_strings_size(c->env, c->nenv);

	size += RUNSPEC_STR_HEAD + strlen(c->cwd) + 4 + 4;
	size += RUNSPEC_STR_HEAD;
	return size + (c->deny != NULL ? strlen(c->deny) : 0);
}

static size_t
runspec_size(const struct runspec *s)
{
	size_t size = 4 + 1 + 4 + 4 + 4;

	for (uint32_t i = 0; i < s->ncommands; i++)
		size += runspec_command_size(&s->commands[i]);
	for (uint32_t i = 0; i < s->nfiles; i++)
		size += RUNSPEC_STR_HEAD + strlen(s->files[i].name) + 4 +
		    RUNSPEC_STR_HEAD + s->files[i].len;
	return size;
}

static void
runspec_put_strings(struct buf *b, char *const *v, uint32_t n)
{
	wire_put_u32(b, n);
	for (uint32_t i = 0; i < n; i++)
		wire_put_str(b, v[i]);
}

static int
runspec_measure(const struct runspec *s, size_t room, struct err *e)
{
	struct err own;
	size_t size;

	if (runspec_check(s, &own) != 0)
		return err_set(e, own.code, "%s", own.msg);
	size = runspec_size(s);
	if (size > RUNSPEC_BYTES_MAX || size > room)
		return err_set(e, ERR_LIMIT,
		    "commands, environment and files have %zu bytes, limit %u",
		    size, RUNSPEC_BYTES_MAX);
	return 0;
}

int
runspec_fits(const struct runspec *s, struct err *e)
{
	return runspec_measure(s, RUNSPEC_BYTES_MAX, e);
}

int
runspec_encode(const struct runspec *s, struct buf *b, struct err *e)
{
	int rc = runspec_measure(s, buf_room(b), e);

	if (rc != 0)
		return rc;
	wire_put_u32(b, RUNSPEC_VERSION);
	wire_put_u8(b, (uint8_t)s->user);
	wire_put_u32(b, s->flags);
	wire_put_u32(b, s->ncommands);
	for (uint32_t i = 0; i < s->ncommands; i++) {
		const struct runspec_command *c = &s->commands[i];

		runspec_put_strings(b, c->argv, c->argc);
		runspec_put_strings(b, c->env, c->nenv);
		wire_put_str(b, c->cwd);
		wire_put_u32(b, c->timeout_ms);
		wire_put_u32(b, c->flags);
		wire_put_str(b, c->deny);
	}
	wire_put_u32(b, s->nfiles);
	for (uint32_t i = 0; i < s->nfiles; i++) {
		wire_put_str(b, s->files[i].name);
		wire_put_u32(b, s->files[i].mode);
		wire_put_bytes(b, s->files[i].data, s->files[i].len);
	}
	return 0;
}

/*
 * A count and as many strings.  The array is taken only when the message
 * still has a length field for each, so a forged count costs nothing.
 */
static int
runspec_get_strings(
    struct wire_in *in, uint32_t max, char ***out, uint32_t *n, struct err *e)
{
	uint32_t count = wire_get_u32(in);

	if (count > max)
		return err_set(
		    e, ERR_LIMIT, "%u strings, limit %u", count, max);
	if (count > in->left / RUNSPEC_STR_HEAD)
		return err_set(e, ERR_PROTO, "a list is cut off");
	*out = xcalloc((size_t)count + 1, sizeof(**out));
	*n = count;
	for (uint32_t i = 0; i < count; i++) {
		(*out)[i] = wire_get_str(in, RUNSPEC_ARG_BYTES_MAX);
		if ((*out)[i] == NULL)
			return err_set(e, ERR_PROTO, "%s", in->bad);
	}
	return 0;
}

static int
runspec_get_command(
    struct wire_in *in, struct runspec_command *c, struct err *e)
{
	int rc;

	rc = runspec_get_strings(in, RUNSPEC_ARGV_MAX, &c->argv, &c->argc, e);
	if (rc != 0)
		return rc;
	rc = runspec_get_strings(in, RUNSPEC_ENV_MAX, &c->env, &c->nenv, e);
	if (rc != 0)
		return rc;
	c->cwd = wire_get_str(in, RUNSPEC_CWD_MAX);
	c->timeout_ms = wire_get_u32(in);
	c->flags = wire_get_u32(in);
	c->deny = wire_get_str(in, RUNSPEC_ARG_BYTES_MAX);
	if (in->bad != NULL)
		return err_set(e, ERR_PROTO, "%s", in->bad);
	return 0;
}

static int
runspec_get_file(struct wire_in *in, struct runspec_file *f, struct err *e)
{
	const uint8_t *p;
	size_t n;

	f->name = wire_get_str(in, RUNSPEC_FILE_NAME_MAX);
	f->mode = wire_get_u32(in);
	p = wire_get_bytes(in, RUNSPEC_BYTES_MAX, &n);
	if (p == NULL)
		return err_set(e, ERR_PROTO, "%s", in->bad);
	f->data = xmemdup(p, n);
	f->len = n;
	return 0;
}

static int
runspec_get_all(struct wire_in *in, struct runspec *s, struct err *e)
{
	uint32_t ncommands, nfiles;
	int rc;

	s->user = (enum runspec_user)wire_get_u8(in);
	s->flags = wire_get_u32(in);
	ncommands = wire_get_u32(in);
	rc = runspec_check_counts(ncommands, 0, e);
	if (rc != 0)
		return rc;
	s->commands = xcalloc(ncommands, sizeof(*s->commands));
	while (s->ncommands < ncommands) {
		rc = runspec_get_command(in, &s->commands[s->ncommands++], e);
		if (rc != 0)
			return err_wrap(e, "command %u", s->ncommands - 1);
	}
	nfiles = wire_get_u32(in);
	rc = runspec_check_counts(ncommands, nfiles, e);
	if (rc != 0)
		return rc;
	if (nfiles != 0)
		s->files = xcalloc(nfiles, sizeof(*s->files));
	while (s->nfiles < nfiles) {
		rc = runspec_get_file(in, &s->files[s->nfiles++], e);
		if (rc != 0)
			return err_wrap(e, "file %u", s->nfiles - 1);
	}
	rc = wire_get_end(in, e);
	return rc != 0 ? rc : runspec_check(s, e);
}

int
runspec_decode(const void *p, size_t n, struct runspec *s, struct err *e)
{
	struct runspec got = {0};
	struct wire_in in;
	uint32_t version;
	struct err own;

	if (n > RUNSPEC_BYTES_MAX)
		return err_set(e, ERR_LIMIT, "run of %zu bytes, limit %u", n,
		    RUNSPEC_BYTES_MAX);
	wire_in_init(&in, p, n);
	version = wire_get_u32(&in);
	if (version != RUNSPEC_VERSION)
		return err_set(
		    e, ERR_PROTO, "run specification version %u", version);
	if (runspec_get_all(&in, &got, &own) != 0) {
		runspec_clear(&got);
		return err_set(e, own.code, "%s", own.msg);
	}
	*s = got;
	return 0;
}
