/*
 * steady.h - a directory of "/", held open instead of looked up each time
 *
 * To walk a path costs a short command several microseconds at its begin and at
 * its end, for directories that are the same each time.  One directly below the
 * root, where nobody but root can put another in its place, is held: for
 * STEADY_US at most, and while nothing of root's has run in the sandbox
 * (search_changes).  Who enters it is still asked for his rights there.
 */
#ifndef AGENT_STEADY_H
#define AGENT_STEADY_H

#include "common/base.h"

#define STEADY_US 1000000
#define STEADY_PATH_MAX 64

struct steady { /* all 0: none; steady.c writes */
	char path[STEADY_PATH_MAX];
	uint32_t changes; /* 0: none */
	uint64_t since_us;
	int fd; /* O_PATH */
};

/* steady_fd - path's, or -1 when it is not held; makes no system call */
int steady_fd(const struct steady *s, const char *path, uint32_t changes,
    uint64_t now_us);
/* steady_hold - hold path, if that can be, instead of what is held; changes as
 * they were before */
void steady_hold(
    struct steady *s, const char *path, uint32_t changes, uint64_t now_us);

#endif
