#include "images/agent/resolve.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define RESOLVE_DIR                                                            \
	(O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)

/* The next component of *path into name; its length, 0 at the end. */
static size_t
next_component(const char **path, char name[NAME_MAX + 1])
{
	size_t n;

	*path += strspn(*path, "/");
	n = strcspn(*path, "/");
	if (n > NAME_MAX)
		return SIZE_MAX;
	memcpy(name, *path, n);
	name[n] = '\0';
	*path += n;
	return n;
}

static bool
is_last(const char *rest)
{
	return rest[strspn(rest, "/")] == '\0';
}

int
resolve_by_steps(int root, const char *path, int flags)
{
	char name[NAME_MAX + 1];
	int dir = root, fd = -1;
	size_t n;

	if (*path == '/' || *path == '\0') {
		errno = *path == '/' ? EXDEV : ENOENT;
		return -1;
	}
	while ((n = next_component(&path, name)) > 0) {
		if (n == SIZE_MAX || strcmp(name, "..") == 0) {
			errno = n == SIZE_MAX ? ENAMETOOLONG : EXDEV;
			fd = -1;
		} else {
			fd = openat(dir, name,
			    is_last(path) ? flags | O_NOFOLLOW | O_CLOEXEC :
					    RESOLVE_DIR);
		}
		if (dir != root) {
			int error = errno;

			(void)close(dir);
			errno = error;
		}
		if (fd == -1) {
			/* what O_DIRECTORY says of a link in between */
			if (errno == ENOTDIR && !is_last(path))
				errno = ELOOP;
			return -1;
		}
		dir = fd;
	}
	return fd;
}

static int
by_openat2(int dir, const char *path, int flags, uint64_t rules)
{
	struct open_how how = {0};

	how.flags = (unsigned int)(flags | O_NOFOLLOW | O_CLOEXEC);
	how.resolve = rules;
	return (int)syscall(SYS_openat2, dir, path, &how, sizeof(how));
}

/* ENOSYS from the kernel, EPERM from a filter that does not know it. */
static bool
has_no_openat2(int fd)
{
	return fd == -1 && (errno == ENOSYS || errno == EPERM);
}

int
resolve_at(int root, const char *path, int flags)
{
	int fd = by_openat2(
	    root, path, flags, RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);

	if (has_no_openat2(fd))
		return resolve_by_steps(root, path, flags);
	return fd;
}

int
resolve_root(const char *path)
{
	int top, fd;

	if (*path != '/') {
		errno = EINVAL;
		return -1;
	}
	fd = by_openat2(AT_FDCWD, path, RESOLVE_DIR, RESOLVE_NO_SYMLINKS);
	if (!has_no_openat2(fd))
		return fd;
	top = open("/", RESOLVE_DIR);
	if (top == -1 || is_last(path))
		return top;
	fd = resolve_by_steps(top, path + strspn(path, "/"), RESOLVE_DIR);
	(void)close(top);
	return fd;
}

int
resolve_regular(int root, const char *path)
{
	/* O_PATH opens nothing: a FIFO's writer or a device notices nothing */
	AUTO(auto_close) int fd = resolve_at(root, path, O_PATH);
	char self[64];
	struct stat st;

	if (fd == -1 || fstat(fd, &st) == -1)
		return -1;
	if (!S_ISREG(st.st_mode)) {
		errno = S_ISLNK(st.st_mode) ? ELOOP :
		    S_ISDIR(st.st_mode)     ? EISDIR :
					      EINVAL;
		return -1;
	}
	(void)snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	return open(self, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
}
