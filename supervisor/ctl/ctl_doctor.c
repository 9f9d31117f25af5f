#include "supervisor/ctl/ctl_call.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

#include "common/xmalloc.h"

#define PROGRAM "mcp-sandboxd"

/* Beside us, or where "make install" puts it; else as the shell finds it. */
static void
run(char **argv)
{
	static const char *const places[] = {"", "../sbin/"};
	char own[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", own, sizeof(own) - 1);

	while (n > 0 && own[n - 1] != '/')
		n--;
	for (size_t i = 0; i < ARRAY_LEN(places) && n > 0; i++) {
		AUTO(auto_free)
		char *path =
		    xasprintf("%.*s%s" PROGRAM, (int)n, own, places[i]);

		(void)execv(path, argv);
	}
	(void)execvp(PROGRAM, argv);
}

int
ctl_doctor_run(const struct ctl_call *c, struct err *e)
{
	char **argv = xcalloc((size_t)c->n + 5, sizeof(*argv));
	int n = 0, why;

	argv[n++] = xstrdup(PROGRAM);
	argv[n++] = xstrdup("doctor");
	if (c->o->json)
		argv[n++] = xstrdup("--json");
	if (c->o->has_data_dir)
		argv[n++] = xasprintf("DATA_DIR=%s", c->o->data_dir);
	for (int i = 0; i < c->n; i++)
		argv[n++] = xstrdup(c->words[i]);
	run(argv);
	why = errno;
	while (n > 0)
		free(argv[--n]);
	free(argv);
	return err_set(e, ERR_SYS, PROGRAM ": %s", strerror(why));
}
