/* forked.h - functions in a process of their own: what they write to stderr and
 * how they exit, seen from outside. */
#ifndef TESTS_UNIT_COMMON_FORKED_H
#define TESTS_UNIT_COMMON_FORKED_H

#include <errno.h>
#include <stdio.h>
#include <sys/wait.h>

#include "common/base.h"

/* In such a process: a failed need ends it with 1. */
#define NEED(what)                                                             \
	do {                                                                   \
		if (!(what)) {                                                 \
			(void)fprintf(stderr, "line %d: %s (errno %d)\n",      \
			    __LINE__, #what, errno);                           \
			_exit(1);                                              \
		}                                                              \
	} while (0)

/* The wait status of fn in a process of its own; 0: it came back. */
static inline int
forked_status(void (*fn)(void))
{
	int status = -1;
	pid_t pid = fork();

	if (pid == 0) {
		fn();
		_exit(0);
	}
	if (pid == -1 || waitpid(pid, &status, 0) != pid)
		abort();
	return status;
}

struct forked {
	int status; /* exit status, -1 for a signal */
	char text[8192];
	size_t len;
};

static inline void
forked_run(struct forked *f, void (*fn)(void))
{
	int fds[2], ws;
	pid_t pid;

	memset(f, 0, sizeof(*f));
	if (pipe(fds) != 0 || (pid = fork()) < 0)
		abort();
	if (pid == 0) {
		(void)dup2(fds[1], STDERR_FILENO);
		(void)close(fds[0]);
		(void)close(fds[1]);
		fn();
		_exit(0);
	}
	(void)close(fds[1]);
	for (;;) {
		ssize_t n = read(
		    fds[0], f->text + f->len, sizeof(f->text) - 1 - f->len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		f->len += (size_t)n;
	}
	(void)close(fds[0]);
	while (waitpid(pid, &ws, 0) < 0)
		if (errno != EINTR)
			abort();
	f->status = WIFEXITED(ws) ? WEXITSTATUS(ws) : -1;
}

#endif
