#include "images/agent/search.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <sys/stat.h>

#include "images/agent/raw.h"

#define KNOWN_DIRS 31
#define LOOKED (1u << KNOWN_DIRS)

/* What one command's side has found out for the next one's, which a kill can
 * interrupt at any place: lacks is cleared first and written last. */
static struct {
	char program[64];
	char search[512];
	uint32_t changes;
	uint64_t since_us;
	_Atomic uint32_t lacks; /* bit i: the directory i of search; LOOKED */
} known;

static bool
is_known(const struct keeper_job *job)
{
	return job->changes != 0 && job->changes == known.changes &&
	    job->begin_us - known.since_us < SEARCH_KNOWN_US &&
	    strcmp(known.program, job->program) == 0 &&
	    strcmp(known.search, job->search) == 0;
}

/* At first only for what: to look around costs more than it gains, unless the
 * same is asked for again soon. */
static void
know(const struct keeper_job *job)
{
	size_t program = strlen(job->program) + 1;
	size_t search = strlen(job->search) + 1;

	atomic_store(&known.lacks, 0);
	known.changes = 0;
	if (program > sizeof(known.program) || search > sizeof(known.search))
		return;
	memcpy(known.program, job->program, program);
	memcpy(known.search, job->search, search);
	known.since_us = job->begin_us;
	known.changes = job->changes;
}

/* Whether nothing is there, and nobody can put anything there: all above are
 * directories of root's alone.  What path holds is changed for a moment. */
static bool
is_lasting(char *path)
{
	char *p = *path == '/' ? path : NULL;
	struct stat st = {0}; /* for analyzers: RAW writes it */

	while (p != NULL) {
		char *end = p == path ? p + 1 : p, kept = *end;
		long rc;

		*end = '\0';
		rc = RAW(
		    SYS_newfstatat, AT_FDCWD, path, &st, AT_SYMLINK_NOFOLLOW);
		*end = kept;
		if (rc != 0)
			return rc == -ENOENT;
		if (!S_ISDIR(st.st_mode) || st.st_uid != 0 ||
		    (st.st_mode & (S_IWGRP | S_IWOTH)) != 0)
			return false;
		p = strchr(p + 1, '/');
	}
	return *path == '/' &&
	    RAW(SYS_newfstatat, AT_FDCWD, path, &st, AT_SYMLINK_NOFOLLOW) ==
	    -ENOENT;
}

/* One directory of n bytes; the errno of exec, and what was tried. */
static long
exec_in(const struct keeper_job *job, const char *dir, size_t n,
    char path[PATH_MAX])
{
	size_t name = strlen(job->program);

	if (n + name + 2 > PATH_MAX)
		return ENAMETOOLONG;
	memcpy(path, dir, n);
	if (n > 0)
		path[n++] = '/';
	memcpy(path + n, job->program, name + 1);
	return -RAW(SYS_execve, path, job->argv, job->env, 0);
}

/* As execvp: a program that may not be run hides behind later ones that may;
 * anything but "not here" ends the search. */
long
search_exec(const struct keeper_job *job)
{
	const char *p = job->search;
	char path[PATH_MAX];
	uint32_t lacks = 0;
	bool looks, denied = false;

	if (*job->program == '\0')
		return ENOENT; /* not the directories themselves */
	*path = '\0';
	looks = is_known(job);
	if (looks)
		lacks = atomic_load(&known.lacks);
	else
		know(job);
	looks = looks && (lacks & LOOKED) == 0;
	for (unsigned int i = 0;; i++) {
		size_t n = strcspn(p, ":");
		uint32_t bit = i < KNOWN_DIRS ? 1u << i : 0;
		long error =
		    (lacks & bit) != 0 ? ENOENT : exec_in(job, p, n, path);

		if (error == EACCES)
			denied = true;
		else if (error != ENOENT && error != ENOTDIR &&
		    error != ENAMETOOLONG)
			return error;
		if (looks && error == ENOENT && is_lasting(path))
			lacks |= bit;
		if (looks)
			atomic_store(&known.lacks, lacks | LOOKED);
		if (p[n] == '\0')
			return denied ? EACCES : ENOENT;
		p += n + 1;
	}
}

/* ---- in PID 1 */

static uint32_t changes = 1;

void
search_note_root(void)
{
	changes = 0;
}

void
search_note_write(void)
{
	if (changes != 0 && ++changes == 0)
		changes = 1;
}

uint32_t
search_changes(void)
{
	return changes;
}
