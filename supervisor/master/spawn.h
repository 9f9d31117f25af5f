/*
 * spawn.h - fork and exec of one child, clean of everything ours
 *
 * The child has its channel on descriptor 3, /dev/null on 0, our stderr on 1
 * and 2, and nothing else; default signals, its own session (a Ctrl-C in our
 * terminal is ours alone), umask 077, an environment of TZ,
 * XDG_RUNTIME_DIR and MCP_SANDBOXD_* (no token), its own user, no capabilities
 * and none to be had, no new privileges, no core files; and it is killed when
 * we die.
 */
#ifndef MASTER_SPAWN_H
#define MASTER_SPAWN_H

#include <sys/types.h>

#include "common/base.h"
#include "common/err.h"
#include "common/privdrop.h"

struct spawn {
	const char *path;                 /* of the program */
	const char *name;                 /* for log lines: "worker/1" */
	const char *arg;                  /* its one argument, NULL: none */
	const struct privdrop_user *user; /* NULL: as we are */
};

/* spawn_find - a program of ours: beside our own executable (a build tree),
 * else in the directory for programs.  ERR_NOTFOUND names both places;
 * ERR_POLICY: everybody may write it;
 * *path is the caller's to free. */
int spawn_find(const char *program, char **path, struct err *e) MUSTCHECK;
/* spawn_copy - of a descriptor, to be sent; -1: it is said in the log, by this
 * name */
int spawn_copy(int fd, const char *what) MUSTCHECK;
/* spawn_raise_limits - open files of children: up to the hard limit, or past it
 * where we may; never to the millions that some container engines set, for the
 * tables' sake.  Before we give up the right to. */
void spawn_raise_limits(void);
/* spawn_ask - *answer, of size bytes (at most PIPE_BUF), as work leaves it in a
 * process of its own; -1: there is no answer */
int spawn_ask(void (*work)(const void *arg, void *answer), const void *arg,
    void *answer, size_t size) MUSTCHECK;
/* spawn_child - channel stays the caller's.  *pid is set on success; what
 * fails in the child is logged there and is an exit status 71 or 77. */
int spawn_child(
    const struct spawn *s, int channel, pid_t *pid, struct err *e) MUSTCHECK;

#endif
