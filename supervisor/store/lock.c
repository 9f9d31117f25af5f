#include "supervisor/store/lock.h"

#include <sys/file.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "common/fd.h"
#include "common/xmalloc.h"

static int
lock_is_held(int fd, const char *dir, struct err *e)
{
	char text[24] = "";
	ssize_t n = pread(fd, text, sizeof(text) - 1, 0);
	long pid = n > 0 ? strtol(text, NULL, 10) : 0;

	if (pid <= 0)
		return err_set(e, ERR_CONFLICT,
		    "data directory %s is in use by another mcp-sandboxd", dir);
	return err_set(e, ERR_CONFLICT,
	    "data directory %s is in use by another mcp-sandboxd (pid %ld)",
	    dir, pid);
}

/* A full disk is no reason to fail: the pid is for a message only. */
static void
write_pid(int fd)
{
	char text[24];
	int n = snprintf(text, sizeof(text), "%ld\n", (long)getpid());

	if (ftruncate(fd, 0) == 0)
		(void)!pwrite(fd, text, (size_t)n, 0);
}

int
lock_take(const char *dir, struct err *e)
{
	AUTO(auto_free) char *path = xasprintf("%s/" LOCK_FILE, dir);
	int rc,
	    fd = open(path,
		O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);

	if (fd == -1)
		return err_set(e, ERR_SYS,
		    "data directory %s cannot be written: %s", dir,
		    strerror(errno));
	if (flock(fd, LOCK_EX | LOCK_NB) == -1) {
		rc = errno == EWOULDBLOCK ?
		    lock_is_held(fd, dir, e) :
		    err_set(e, ERR_SYS, "flock %s: %s", path, strerror(errno));
		(void)close(fd);
		return rc;
	}
	write_pid(fd);
	return fd;
}
