#include "supervisor/master/ancestry.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "common/xmalloc.h"

/* 0, or ERR_POLICY with who else could change names in it. */
static int
check_one(const char *path, const struct stat *st, uid_t owner, struct err *e)
{
	const bool is_sticky = (st->st_mode & S_ISVTX) != 0;

	if (st->st_uid != 0 && st->st_uid != owner)
		return err_set(e, ERR_POLICY, "%s belongs to uid %u", path,
		    (unsigned int)st->st_uid);
	if (is_sticky)
		return 0;
	if ((st->st_mode & S_IWOTH) != 0)
		return err_set(
		    e, ERR_POLICY, "everybody may write in %s", path);
	if ((st->st_mode & S_IWGRP) != 0 && st->st_gid != 0)
		return err_set(e, ERR_POLICY, "group %u may write in %s",
		    (unsigned int)st->st_gid, path);
	return 0;
}

/* Step by step through descriptors: what was looked at is what is entered. */
static int
enter(int *at, const char *name, const char *path, uid_t owner, struct err *e)
{
	struct stat st;
	int fd =
	    openat(*at, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd == -1)
		return err_set(
		    e, ERR_SYS, "open %s: %s", path, strerror(errno));
	if (*at >= 0)
		(void)close(*at);
	*at = fd;
	if (fstat(fd, &st) == -1)
		return err_set(
		    e, ERR_SYS, "stat %s: %s", path, strerror(errno));
	return check_one(path, &st, owner, e);
}

int
ancestry_check(const char *path, uid_t owner, struct err *e)
{
	AUTO(auto_free) char *way = xstrdup(path);
	AUTO(auto_close) int at = AT_FDCWD;
	int rc = enter(&at, "/", "/", owner, e);

	for (char *name = way; rc == 0 && name != NULL;) {
		char *end;

		name += strspn(name, "/");
		if (*name == '\0')
			break;
		end = strchr(name, '/');
		if (end != NULL)
			*end = '\0';
		rc = enter(&at, name, way, owner, e);
		if (end != NULL)
			*end = '/';
		name = end;
	}
	return rc;
}
