#include "supervisor/master/relocate.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "common/layout.h"

/* The database's log before the database: a server of the old layout that is
 * started in between finds neither or makes both anew, which is refused here
 * at the next start. */
static const char *const names[] = {"artifacts", "spool", "session.key",
    "session.key.new", "mcp-sandboxd.db-shm", "mcp-sandboxd.db-wal",
    "mcp-sandboxd.db-journal", "mcp-sandboxd.db"};

static bool
is_same_file(const struct stat *st, int fd)
{
	struct stat other;

	return fd >= 0 && fstat(fd, &other) == 0 &&
	    st->st_dev == other.st_dev && st->st_ino == other.st_ino;
}

/* 1 when it is there to be moved. */
static int
look(int data, int front, int keep, const char *path, const char *name,
    struct err *e)
{
	struct stat here, root, there;

	if (fstatat(data, name, &here, AT_SYMLINK_NOFOLLOW) == -1) {
		if (errno == ENOENT)
			return 0;
		return err_set(e, ERR_SYS, "DATA_DIR: stat %s/%s: %s", path,
		    name, strerror(errno));
	}
	if (is_same_file(&here, keep))
		return 0;
	if (fstatat(front, name, &there, AT_SYMLINK_NOFOLLOW) == 0)
		return err_set(e, ERR_POLICY,
		    "DATA_DIR: %s is in %s and in %s/" LAYOUT_FRONT
		    ": an older mcp-sandboxd was started here after this one; "
		    "move the one that you do not want elsewhere",
		    name, path, path);
	if (fstat(data, &root) == 0 && root.st_dev != here.st_dev)
		return err_set(e, ERR_POLICY,
		    "DATA_DIR: %s/%s is a mount of its own: mount it at "
		    "%s/" LAYOUT_FRONT "/%s, where it is looked for now",
		    path, name, path, name);
	return 1;
}

static int
move(int data, int front, const char *path, const char *name, struct err *e)
{
	if (syscall(SYS_renameat2, data, name, front, name, RENAME_NOREPLACE) ==
	    0)
		return 0;
	/* A file system that cannot promise it; look has seen no such name,
	 * and nobody but us may make one now. */
	if (errno == EINVAL && renameat(data, name, front, name) == 0)
		return 0;
	return err_set(e, ERR_POLICY,
	    "DATA_DIR: move %s/%s into " LAYOUT_FRONT
	    ": %s; move it yourself and start again",
	    path, name, strerror(errno));
}

int
relocate_data(int data, int front, int keep, const char *path, struct err *e)
{
	bool found[ARRAY_LEN(names)];
	int n = 0;

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		int rc = look(data, front, keep, path, names[i], e);

		if (rc < 0)
			return rc;
		found[i] = rc > 0;
	}
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		if (!found[i])
			continue;
		if (move(data, front, path, names[i], e) != 0)
			return ERR_POLICY;
		n++;
	}
	if (n > 0 && (fsync(front) == -1 || fsync(data) == -1))
		return err_set(e, ERR_SYS, "DATA_DIR: fsync %s: %s", path,
		    strerror(errno));
	return n;
}
