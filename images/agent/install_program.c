#include "images/agent/install_program.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/sendfile.h>
#include <sys/stat.h>

#include "common/base.h"

#define NAME "agent"
#define DRAFT ".agent-draft"
#define COPY_BYTES (1u << 20)

static int
fail(const char *what, const char *dir, const char *name)
{
	(void)dprintf(STDERR_FILENO, "agent install: %s %s/%s: %s\n", what, dir,
	    name, strerror(errno));
	return 1;
}

/* 0, or -1 with errno.  from is at its beginning. */
static int
copy_all(int from, int to)
{
	ssize_t n;

	do
		n = sendfile(to, from, NULL, COPY_BYTES);
	while (n > 0 || (n == -1 && errno == EINTR));
	return n == 0 ? 0 : -1;
}

static int
install_in(int dir, const char *name)
{
	AUTO(auto_close) int self = -1;
	AUTO(auto_close) int draft = -1;

	self = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	if (self == -1)
		return fail("open", "/proc/self", "exe");
	draft = openat(dir, DRAFT,
	    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0200);
	if (draft == -1)
		return fail("make", name, DRAFT);
	if (copy_all(self, draft) == -1 || fchmod(draft, 0111) == -1)
		return fail("write", name, DRAFT);
	if (renameat(dir, DRAFT, dir, NAME) == -1)
		return fail("rename to", name, NAME);
	return 0;
}

int
install_program_run(const char *dir)
{
	AUTO(auto_close) int fd = -1;
	int status;

	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd == -1)
		return fail("open", dir, ".");
	/* What an install that was killed left. */
	(void)unlinkat(fd, DRAFT, 0);
	status = install_in(fd, dir);
	if (status != 0)
		(void)unlinkat(fd, DRAFT, 0);
	return status;
}
