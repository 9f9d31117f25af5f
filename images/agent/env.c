#include "images/agent/env.h"

#include "common/xmalloc.h"

static char *own_path;

void
env_init(void)
{
	const char *path = getenv("PATH");

	free(own_path);
	own_path =
	    xstrdup(path != NULL && *path != '\0' ? path : ENV_DEFAULT_PATH);
}

static const char *
home_of(enum runspec_user user)
{
	static bool there; /* it is not looked for again: the image has it */

	if (user == RUNSPEC_USER_ROOT)
		return "/root";
	there = there || access("/home/sandbox", F_OK) == 0;
	return there ? "/home/sandbox" : "/workspace";
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
add_base(struct env_start *s, const struct proc_spec *spec, const char *name,
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
	s->base[s->nbase++] = p;
}

static void
build_env(struct env_start *s, const struct proc_spec *spec)
{
	const char *name = spec->user == RUNSPEC_USER_ROOT ? "root" : "sandbox";
	const char *path = lookup(spec->env, "PATH=", 5);
	size_t n = 0;

	add_base(s, spec, "PATH=", own_path);
	add_base(s, spec, "HOME=", home_of(spec->user));
	add_base(s, spec, "USER=", name);
	add_base(s, spec, "LOGNAME=", name);
	add_base(s, spec, "LANG=", "C.UTF-8");
	add_base(s, spec, "PWD=", spec->cwd);
	s->search = path != NULL ? path : own_path;

	while (spec->env[n] != NULL)
		n++;
	s->env = xcalloc(s->nbase + n + 1, sizeof(*s->env));
	memcpy(s->env, s->base, s->nbase * sizeof(*s->env));
	memcpy(s->env + s->nbase, spec->env, n * sizeof(*s->env));
}

void
env_build(struct env_start *s, const struct proc_spec *spec)
{
	memset(s, 0, sizeof(*s));
	build_env(s, spec);
	if ((spec->flags & RUNSPEC_SHELL) == 0) {
		s->argv = spec->argv;
		s->program = spec->argv[0];
		return;
	}
	s->program = find_shell();
	s->shell_argv[0] =
	    xstrdup(strstr(s->program, "bash") != NULL ? "bash" : "sh");
	s->shell_argv[1] = xstrdup("-lc");
	/* A text that begins with - or + is no option. */
	s->shell_argv[2] = xstrdup("--");
	s->shell_argv[3] = spec->argv[0];
	s->argv = s->shell_argv;
}

void
env_clear(struct env_start *s)
{
	for (size_t i = 0; i < ENV_SHELL_WORDS; i++)
		free(s->shell_argv[i]);
	for (uint32_t i = 0; i < s->nbase; i++)
		free(s->base[i]);
	free(s->env);
	memset(s, 0, sizeof(*s));
}
