#include "supervisor/master/datadir.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "common/fd.h"
#include "common/log.h"

#define DIR_MODE 0711

/* Opened once and then changed by descriptor: the front owns DATA_DIR and
 * could put a link in a name's place between two looks at it. */
static int
open_dir(int at, const char *name, const char *path, struct err *e)
{
	int fd =
	    openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd == -1)
		return err_set(
		    e, ERR_SYS, "DATA_DIR: open %s: %s", path, strerror(errno));
	return fd;
}

/* The owner the directory should have; 1 when that was another. */
static int
set_owner(int fd, const char *path, enum users_mode mode,
    const struct privdrop_user *user, struct err *e)
{
	struct stat st;

	if (fstat(fd, &st) == -1)
		return err_set(
		    e, ERR_SYS, "DATA_DIR: stat %s: %s", path, strerror(errno));
	if (mode != USERS_CHANGE || st.st_uid == user->uid)
		return 0;
	if (fchown(fd, user->uid, user->gid) == -1)
		return err_set(e, ERR_SYS, "DATA_DIR: chown %s to %s: %s", path,
		    user->name, strerror(errno));
	return 1;
}

/* x for who passes through, needed where front and worker are two users. */
static int
set_mode(int fd, const char *path, const struct users *u, struct err *e)
{
	struct stat st;

	if (u->front_mode != USERS_CHANGE && u->worker_mode != USERS_CHANGE)
		return 0;
	if (fstat(fd, &st) == -1)
		return err_set(
		    e, ERR_SYS, "DATA_DIR: stat %s: %s", path, strerror(errno));
	if ((st.st_mode & DIR_MODE) == DIR_MODE)
		return 0;
	if (fchmod(fd, (st.st_mode & 07777) | DIR_MODE) == -1)
		return err_set(e, ERR_SYS, "DATA_DIR: chmod %s: %s", path,
		    strerror(errno));
	return 0;
}

static int
lock_dir(int fd, const char *path, struct err *e)
{
	if (flock(fd, LOCK_EX | LOCK_NB) == 0)
		return 0;
	if (errno == EWOULDBLOCK)
		return err_set(e, ERR_CONFLICT,
		    "DATA_DIR %s is in use by another mcp-sandboxd: stop that "
		    "or set DATA_DIR",
		    path);
	return err_set(
	    e, ERR_SYS, "DATA_DIR: lock %s: %s", path, strerror(errno));
}

static int
prepare_links(
    int dir_fd, const char *path, const struct users *u, struct err *e)
{
	AUTO(auto_close) int fd = -1;
	int rc;

	if (mkdirat(dir_fd, "links", DIR_MODE) == -1 && errno != EEXIST)
		return err_set(e, ERR_SYS, "DATA_DIR: mkdir %s/links: %s", path,
		    strerror(errno));
	fd = open_dir(dir_fd, "links", "links", e);
	if (fd < 0)
		return fd;
	rc = set_mode(fd, "links", u, e);
	if (rc == 0)
		rc = set_owner(fd, "links", u->worker_mode, &u->worker, e);
	return rc < 0 ? rc : 0;
}

static int
prepare(
    const char *path, const struct users *u, struct datadir *d, struct err *e)
{
	AUTO(auto_close) int fd = -1;
	AUTO(auto_free) char *absolute = NULL;
	const bool is_new = access(path, F_OK) == -1;
	int rc;

	if (fd_mkdir_all(path, DIR_MODE, e) != 0)
		return err_wrap(e, "DATA_DIR");
	absolute = realpath(path, NULL);
	if (absolute == NULL)
		return err_set(
		    e, ERR_SYS, "DATA_DIR: %s: %s", path, strerror(errno));
	fd = open_dir(AT_FDCWD, absolute, absolute, e);
	if (fd < 0)
		return fd;
	rc = lock_dir(fd, absolute, e);
	if (rc == 0)
		rc = prepare_links(fd, absolute, u, e);
	if (rc == 0)
		rc = set_mode(fd, absolute, u, e);
	if (rc == 0)
		rc = set_owner(fd, absolute, u->front_mode, &u->front, e);
	if (rc < 0)
		return rc;
	if (rc > 0 && !is_new)
		log_warn("DATA_DIR %s belongs to %s now; files of an earlier "
			 "start inside it keep their owner (chown -R mends it)",
		    absolute, u->front.name);
	d->lock_fd = fd; /* datadir_close closes and frees */
	fd = -1;
	d->path = absolute;
	absolute = NULL;
	return 0;
}

/* The modes are those that are meant, whatever the caller's umask. */
int
datadir_open(
    const char *path, const struct users *u, struct datadir *d, struct err *e)
{
	mode_t before = umask(022);
	int rc = prepare(path, u, d, e);

	(void)umask(before);
	return rc;
}

void
datadir_close(struct datadir *d)
{
	if (d->lock_fd >= 0)
		(void)close(d->lock_fd);
	d->lock_fd = -1;
	free(d->path);
	d->path = NULL;
}

void
datadir_instance(const char *path, char out[DATADIR_INSTANCE_MAX])
{
	uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a, 64 bits */

	for (const char *p = path; *p != '\0'; p++) {
		hash ^= (uint8_t)*p;
		hash *= 0x100000001b3u;
	}
	(void)snprintf(out, DATADIR_INSTANCE_MAX, "d%016" PRIx64, hash);
}
