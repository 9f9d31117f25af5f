#include "supervisor/master/datadir.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/fs.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "common/fd.h"
#include "common/layout.h"
#include "common/log.h"
#include "common/place.h"
#include "common/xmalloc.h"

#define PASS_MODE 0711 /* others pass through to what is theirs */
#define OWN_MODE 0700

/* One of the directories, as it should be. */
struct place {
	const char *name;
	mode_t mode; /* at least */
	mode_t most; /* what an operator may let others do */
	const struct privdrop_user *owner; /* of no meaning without root */
};

static const struct privdrop_user root_user = {.name = "root"};

static int
fail(struct err *e, const char *what, const char *path)
{
	return err_errno(e, "DATA_DIR: %s %s", what, path);
}

/* Opened once and then changed by descriptor: in the layout of old the front
 * owned DATA_DIR, and could put a link in a name's place at any time. */
static int
open_dir(int at, const char *name, const char *path, struct err *e)
{
	int fd =
	    openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return fd == -1 ? fail(e, "open", path) : fd;
}

/* The owner the directory should have; 1 when that was another.  Who does not
 * run as root has no choice. */
static int
set_owner(int fd, const struct place *p, const struct stat *st, struct err *e)
{
	if (geteuid() != 0 ||
	    (st->st_uid == p->owner->uid && st->st_gid == p->owner->gid))
		return 0;
	if (fchown(fd, p->owner->uid, p->owner->gid) == -1)
		return err_errno(
		    e, "DATA_DIR: chown %s to %s", p->name, p->owner->name);
	return st->st_uid != p->owner->uid;
}

/* Nobody else writes there.  Without root's rights there is one user, and no
 * other passes through. */
static int
set_mode(int fd, const struct place *p, const struct stat *st, struct err *e)
{
	mode_t mode = (st->st_mode & p->most) | OWN_MODE;

	if (geteuid() == 0)
		mode |= p->mode;
	else if (st->st_uid != geteuid())
		return 0;
	if ((st->st_mode & 07777) == mode)
		return 0;
	if (fchmod(fd, mode) == -1)
		return fail(e, "chmod", p->name);
	return 0;
}

/* The owner first: from then on nobody else changes the mode.  1 when it was
 * another's. */
static int
settle(int fd, const struct place *p, struct err *e)
{
	struct stat st;
	int rc, changed;

	if (fstat(fd, &st) == -1)
		return fail(e, "stat", p->name);
	changed = set_owner(fd, p, &st, e);
	if (changed < 0)
		return changed;
	if (fstat(fd, &st) == -1) /* a change of owner changes the mode */
		return fail(e, "stat", p->name);
	rc = set_mode(fd, p, &st, e);
	return rc < 0 ? rc : changed;
}

/* datadir_close closes and frees. */
static void
take(struct datadir *d, int *fd, char **path)
{
	d->lock_fd = *fd;
	*fd = -1;
	d->path = *path;
	*path = NULL;
}

static int
lock_dir(int fd, const char *path, uint32_t patience_ms, struct err *e)
{
	if (fd_lock(fd, patience_ms) == 0)
		return 0;
	if (errno == EWOULDBLOCK)
		return err_set(e, ERR_CONFLICT,
		    "DATA_DIR %s is in use by another mcp-sandboxd: stop that "
		    "or set DATA_DIR",
		    path);
	return fail(e, "lock", path);
}

/* A directory in DATA_DIR, made if it is missing; its descriptor. */
static int
prepare_part(int data, const char *path, const struct place *p, struct err *e)
{
	int fd, rc;
	bool is_new = mkdirat(data, p->name, p->mode) == 0;

	if (!is_new && errno != EEXIST)
		return err_errno(e, "DATA_DIR: mkdir %s/%s", path, p->name);
	/* Else the database that is made below it could go with its name. */
	if (is_new && fsync(data) == -1)
		return fail(e, "sync", path);
	fd = open_dir(data, p->name, p->name, e);
	if (fd < 0)
		return fd;
	rc = settle(fd, p, e);
	if (rc < 0) {
		(void)close(fd);
		return rc;
	}
	if (rc > 0 && !is_new)
		log_warn("DATA_DIR: %s/%s belongs to %s now; what is in it "
			 "keeps its owner (chown -R mends it)",
		    path, p->name, p->owner->name);
	return fd;
}

/* ---- the way to it */

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
		return err_errno(e, "open %s", path);
	if (*at >= 0)
		(void)close(*at);
	*at = fd;
	if (fstat(fd, &st) == -1)
		return err_errno(e, "stat %s", path);
	return check_one(path, &st, owner, e);
}

/*
 * Who could exchange what a path (absolute, without links) leads to: ERR_POLICY
 * names the first directory that somebody else could change, and whose it is;
 * ERR_SYS when one cannot be looked at.
 *
 * Each directory on the way, the last one included, must belong to root or to
 * owner, and nobody else may write there.  A directory where everybody may
 * make names is fine if it is root's and sticky, such as /tmp: what exists in
 * it is renamed by its owner alone.  Group 0 counts as root.
 */
static int
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

/* Where two users make the difference, a way that somebody else could change
 * is refused; where all are one, that is said (users.c). */
static int
check_ancestry(const char *path, const struct users *u, struct err *e)
{
	struct err why;
	int rc = ancestry_check(path, geteuid(), &why);

	if (rc == 0)
		return 0;
	if (rc == ERR_POLICY && users_are_apart(u))
		return err_set(e, rc,
		    "DATA_DIR %s: %s: that user could choose what sandboxes "
		    "have mounted.  Set DATA_DIR to a directory below those "
		    "of root alone, such as /var/lib/mcp-sandboxd",
		    path, why.msg);
	if (rc == ERR_POLICY)
		log_warn("DATA_DIR %s: %s: that user could choose what "
			 "sandboxes have mounted",
		    path, why.msg);
	else
		log_warn("DATA_DIR: %s", why.msg);
	return 0;
}

/* ---- the layout of old */

/* The database's log before the database: a server of the old layout that is
 * started in between finds neither or makes both anew, which is refused here
 * at the next start. */
static const char *const moved[] = {"artifacts", "spool", "session.key",
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
		return err_errno(e, "DATA_DIR: stat %s/%s", path, name);
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

/*
 * A DATA_DIR of the layout before common/layout.h, where the front's things lay
 * in DATA_DIR itself, which was the front's
 *
 * They are renamed into its front directory, one by one; a start that was
 * broken off goes on at the next.  links/ stays where it is: sandboxes that run
 * have it mounted.  keep is the directory of artifacts that the operator has
 * set, -1 for none: what it is stays.  Nothing is moved unless all can be:
 * ERR_POLICY when a thing is in both places, or is a mount of its own.  Returns
 * how many were moved.
 */
static int
relocate_data(int data, int front, int keep, const char *path, struct err *e)
{
	bool found[ARRAY_LEN(moved)];
	int n = 0;

	for (size_t i = 0; i < ARRAY_LEN(moved); i++) {
		int rc = look(data, front, keep, path, moved[i], e);

		if (rc < 0)
			return rc;
		found[i] = rc > 0;
	}
	for (size_t i = 0; i < ARRAY_LEN(moved); i++) {
		if (!found[i])
			continue;
		if (move(data, front, path, moved[i], e) != 0)
			return ERR_POLICY;
		n++;
	}
	if (n > 0 && (fsync(front) == -1 || fsync(data) == -1))
		return err_errno(e, "DATA_DIR: fsync %s", path);
	return n;
}

/* ---- its parts */

/* Both real paths; a directory is within itself. */
static bool
is_within(const char *path, const char *top)
{
	size_t n = strcmp(top, "/") == 0 ? 0 : strlen(top);

	return strncmp(path, top, n) == 0 &&
	    (path[n] == '/' || path[n] == '\0');
}

/* Which name ARTIFACTS_DIR has in DATA_DIR, "" for none: elsewhere the front
 * makes it, here only we may.  What is wrong with it there, the front says. */
static int
name_artifacts(
    const char *path, const char *artifacts, char **name, struct err *e)
{
	AUTO(auto_free) char *real = NULL;
	AUTO(auto_free) char *links = xasprintf("%s/" LAYOUT_LINKS, path);
	const char *last;
	size_t above;
	struct err why;

	*name = xstrdup("");
	real = artifacts[0] == '\0' ? NULL :
				      place_resolve(artifacts, &above, &why);
	if (real == NULL)
		return 0;
	if (is_within(path, real) || is_within(real, links))
		return err_set(e, ERR_INVAL,
		    "ARTIFACTS_DIR %s: that is not the front's to write; leave "
		    "it empty for DATA_DIR/" LAYOUT_FRONT "/artifacts",
		    artifacts);
	last = strrchr(real, '/');
	if (is_within(real, path) && (size_t)(last - real) == strlen(path)) {
		free(*name);
		*name = xstrdup(last + 1);
	}
	return 0;
}

/* Its descriptor, or -1 when it is not in DATA_DIR itself. */
static int
prepare_artifacts(int data, const char *path, const char *artifacts,
    const struct users *u, int *out, struct err *e)
{
	AUTO(auto_free) char *name = NULL;
	int rc;

	*out = -1;
	rc = name_artifacts(path, artifacts, &name, e);
	if (rc != 0 || name[0] == '\0' || strcmp(name, LAYOUT_FRONT) == 0)
		return rc;
	*out = prepare_part(data, path,
	    &(struct place){name, OWN_MODE, 0755, &u->of[MSG_ROLE_FRONT]}, e);
	return *out < 0 ? *out : 0;
}

/* What is in it, once DATA_DIR itself is ours. */
static int
prepare_parts(int data, const char *path, const char *artifacts,
    const struct users *u, struct err *e)
{
	AUTO(auto_close) int links = -1;
	AUTO(auto_close) int front = -1;
	AUTO(auto_close) int kept = -1;
	int rc;

	links = prepare_part(data, path,
	    &(struct place){
		LAYOUT_LINKS, PASS_MODE, 0755, &u->of[MSG_ROLE_WORKER]},
	    e);
	if (links < 0)
		return links;
	front = prepare_part(data, path,
	    &(struct place){
		LAYOUT_FRONT, OWN_MODE, OWN_MODE, &u->of[MSG_ROLE_FRONT]},
	    e);
	if (front < 0)
		return front;
	rc = prepare_artifacts(data, path, artifacts, u, &kept, e);
	if (rc != 0)
		return rc;
	rc = relocate_data(data, front, kept, path, e);
	if (rc > 0)
		log_info("DATA_DIR %s had the layout of an earlier version: "
			 "%d files and directories are in %s/" LAYOUT_FRONT
			 " now",
		    path, rc, path);
	return rc < 0 ? rc : 0;
}

static int
check_place(const char *path, struct err *e)
{
	enum place_state state;
	struct err why;

	if (place_check(path, &state, &why) == 0)
		return 0;
	return err_set(e, ERR_INVAL,
	    "DATA_DIR %.120s: %.200s: make it and give it to that user, or set "
	    "DATA_DIR",
	    path, why.msg);
}

static int
prepare(const char *path, const char *artifacts, const struct users *u,
    struct datadir *d, struct err *e)
{
	AUTO(auto_close) int fd = -1;
	AUTO(auto_free) char *absolute = NULL;
	int rc;

	if (check_place(path, e) != 0)
		return e->code;
	if (fd_mkdir_all(path, PASS_MODE, e) != 0)
		return err_wrap(e, "DATA_DIR");
	absolute = realpath(path, NULL);
	if (absolute == NULL)
		return err_errno(e, "DATA_DIR: %s", path);
	fd = open_dir(AT_FDCWD, absolute, absolute, e);
	if (fd < 0)
		return fd;
	rc = lock_dir(fd, absolute, FD_LOCK_PATIENCE_MS, e);
	if (rc == 0)
		rc = settle(fd,
		    &(struct place){absolute, PASS_MODE, 0755, &root_user}, e);
	if (rc >= 0)
		rc = check_ancestry(absolute, u, e);
	if (rc == 0)
		rc = prepare_parts(fd, absolute, artifacts, u, e);
	if (rc < 0)
		return rc;
	take(d, &fd, &absolute);
	return 0;
}

/* The modes are those that are meant, whatever the caller's umask. */
int
datadir_open(const char *path, const char *artifacts, const struct users *u,
    struct datadir *d, struct err *e)
{
	mode_t before = umask(022);
	int rc = prepare(path, artifacts, u, d, e);

	(void)umask(before);
	return rc;
}

int
datadir_lock(const char *path, struct datadir *d, struct err *e)
{
	AUTO(auto_close) int fd = -1;
	AUTO(auto_free) char *absolute = realpath(path, NULL);

	if (absolute == NULL)
		return err_set(
		    e, ERR_NOTFOUND, "DATA_DIR: %s: %s", path, strerror(errno));
	fd = open_dir(AT_FDCWD, absolute, absolute, e);
	if (fd < 0)
		return fd;
	if (lock_dir(fd, absolute, FD_LOCK_PATIENCE_MS, e) != 0)
		return e->code;
	take(d, &fd, &absolute);
	return 0;
}

/* What we make in it, and what the front makes in its own part. */
static bool
is_artifacts_ours(const char *path, const char *artifacts, const char *name)
{
	AUTO(auto_free) char *front = xasprintf("%s/" LAYOUT_FRONT, path);
	AUTO(auto_free) char *real = NULL;
	size_t above;
	struct err why;

	if (name[0] != '\0' || artifacts[0] == '\0')
		return true;
	real = place_resolve(artifacts, &above, &why);
	return real != NULL && is_within(real, front);
}

/* Whoever could exchange what will be ours when we have made it so. */
static int
look_above(
    const char *path, size_t exists, const struct users *u, struct err *e)
{
	AUTO(auto_free) char *way = xstrdup(path);
	char *last;

	if (way[exists] != '\0' || geteuid() != 0) {
		way[exists] = '\0';
		return check_ancestry(way, u, e);
	}
	last = strrchr(way, '/');
	last[last == way] = '\0';
	return check_ancestry(way, u, e);
}

int
datadir_look(const char *path, const char *artifacts, const struct users *u,
    struct datadir *d, struct err *e)
{
	AUTO(auto_free) char *absolute = NULL;
	AUTO(auto_free) char *name = NULL;
	size_t above = 0;
	bool is_there;
	int rc = check_place(path, e);

	if (rc == 0) {
		absolute = place_resolve(path, &above, e);
		rc = absolute == NULL ? e->code : 0;
	}
	if (rc == 0)
		rc = look_above(absolute, above, u, e);
	if (rc == 0)
		rc = name_artifacts(absolute, artifacts, &name, e);
	if (rc != 0 || absolute == NULL)
		return rc;
	is_there = absolute[above] == '\0';
	d->has_artifacts = is_artifacts_ours(absolute, artifacts, name);
	d->path = absolute; /* datadir_close frees */
	absolute = NULL;
	if (!is_there)
		return 0;
	d->lock_fd = open_dir(AT_FDCWD, d->path, d->path, e);
	if (d->lock_fd < 0)
		return d->lock_fd;
	rc = lock_dir(d->lock_fd, d->path, 0, e);
	(void)flock(d->lock_fd, LOCK_UN);
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
