#include "images/agent/env.h"

#include "common/xmalloc.h"
#include "images/agent/base_env.h"
#include "images/agent/owners.h"

static const char *
home_of(enum runspec_user user)
{
	if (base_env_home() != NULL)
		return base_env_home();
	if (user == RUNSPEC_USER_ROOT)
		return "/root";
	/* Another user's home is none. */
	return access("/home/sandbox", owners_are_many() ? F_OK : W_OK) == 0 ?
	    "/home/sandbox" :
	    "/workspace";
}

static const char *
find_shell(void)
{
	static const char *const bash[] = {"/bin/bash", "/usr/bin/bash"};

	for (size_t i = 0; i < ARRAY_LEN(bash); i++)
		if (access(bash[i], X_OK) == 0)
			return bash[i];
	return access("/bin/sh", X_OK) == 0 ? "/bin/sh" : "sh";
}

/* The value of name (with its "=") in env, or NULL; the last one counts. */
static const char *
lookup(char *const *env, const char *name, size_t len)
{
	const char *value = NULL;

	for (; *env != NULL; env++)
		if (strncmp(*env, name, len) == 0)
			value = *env + len;
	return value;
}

static void
add_own(struct env_start *s, const struct proc_spec *spec, const char *name,
    const char *value)
{
	size_t n = strlen(name), nvalue = strlen(value);
	char *p;

	if (lookup(spec->env, name, n) != NULL)
		return;
	p = xmalloc(n + nvalue + 1);
	memcpy(p, name, n);
	memcpy(p + n, value, nvalue);
	p[n + nvalue] = '\0';
	s->own[s->own_count++] = p;
}

/* The call's replace those of the same name. */
static void
add_rest(struct env_start *s, size_t *n, const struct proc_spec *spec)
{
	for (char *const *v = base_env_rest(); *v != NULL; v++)
		if (lookup(spec->env, *v, strcspn(*v, "=") + 1) == NULL)
			s->env[(*n)++] = *v;
}

static void
build_env(struct env_start *s, const struct proc_spec *spec)
{
	const char *name = spec->user == RUNSPEC_USER_ROOT ? "root" : "sandbox";
	const char *path = lookup(spec->env, "PATH=", 5);
	size_t ncall = 0, nrest = 0, n;

	add_own(s, spec, "PATH=", base_env_path());
	add_own(s, spec, "HOME=", home_of(spec->user));
	add_own(s, spec, "USER=", name);
	add_own(s, spec, "LOGNAME=", name);
	add_own(s, spec, "PWD=", spec->cwd);
	s->search = path != NULL ? path : base_env_path();

	while (spec->env[ncall] != NULL)
		ncall++;
	while (base_env_rest()[nrest] != NULL)
		nrest++;
	n = s->own_count;
	s->env = xcalloc(n + nrest + ncall + 1, sizeof(*s->env));
	memcpy(s->env, s->own, n * sizeof(*s->env));
	add_rest(s, &n, spec);
	memcpy(s->env + n, spec->env, ncall * sizeof(*s->env));
}

/* Between single quotes, as a shell takes it. */
static char *
quoted(const char *word)
{
	static const char mark[] = "'\\''";
	char *out = xmalloc(strlen(word) * (sizeof(mark) - 1) + 3), *p = out;

	*p++ = '\'';
	for (; *word != '\0'; word++) {
		size_t n = *word == '\'' ? sizeof(mark) - 1 : 1;

		memcpy(p, *word == '\'' ? mark : word, n);
		p += n;
	}
	*p++ = '\'';
	*p = '\0';
	return out;
}

/* "PATH='path'behind;text", on one line so that the lines of the text have
 * their numbers; NULL: exec would not take it. */
static char *
text_with_path(const char *text, const char *path, const char *behind)
{
	AUTO(auto_free) char *word = quoted(path);
	char *whole = xasprintf("PATH=%s%s;%s", word, behind, text);

	if (strlen(whole) <= RUNSPEC_ARG_BYTES_MAX)
		return whole;
	free(whole);
	return NULL;
}

/*
 * A login shell reads /etc/profile, and Debian's sets PATH anew, so the text
 * sets it once more: to the call's PATH, or to the image's before what profiles
 * made.  NULL: the text is run as it is, since PATH is the usual one, or an
 * assignment of it would make the text too long.
 */
static char *
text_with_said_path(const struct proc_spec *spec)
{
	const char *path = lookup(spec->env, "PATH=", 5);

	if (path != NULL)
		return text_with_path(spec->argv[0], path, "");
	if (strcmp(base_env_path(), BASE_ENV_PATH) == 0)
		return NULL;
	return text_with_path(spec->argv[0], base_env_path(), ":\"$PATH\"");
}

static void
build_shell(struct env_start *s, const struct proc_spec *spec)
{
	s->program = find_shell();
	s->shell_text = text_with_said_path(spec);
	s->shell_argv[0] = strstr(s->program, "bash") != NULL ? "bash" : "sh";
	s->shell_argv[1] = "-lc";
	s->shell_argv[2] = "--"; /* a text that begins with - is no option */
	s->shell_argv[3] =
	    s->shell_text != NULL ? s->shell_text : spec->argv[0];
	s->argv = (char *const *)(uintptr_t)s->shell_argv;
}

void
env_build(struct env_start *s, const struct proc_spec *spec)
{
	memset(s, 0, sizeof(*s));
	build_env(s, spec);
	if ((spec->flags & RUNSPEC_SHELL) != 0) {
		build_shell(s, spec);
		return;
	}
	s->argv = spec->argv;
	s->program = spec->argv[0];
}

void
env_clear(struct env_start *s)
{
	free(s->shell_text);
	for (uint32_t i = 0; i < s->own_count; i++)
		free(s->own[i]);
	free(s->env);
	memset(s, 0, sizeof(*s));
}
