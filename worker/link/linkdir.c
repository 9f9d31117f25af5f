/*
 * All paths are relative to one descriptor of DATA_DIR/links and no symbolic
 * link is followed below it.  The agent's binary is copied when the worker
 * starts, under a name with its digest, unless that copy is there and whole.
 * Each box has a hard link to the copy, so that replacing the installed
 * program changes no box that runs.
 */
#include "worker/link/linkdir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/stat.h>

#include <openssl/crypto.h>
#include <openssl/sha.h>

#include "common/fd.h"
#include "common/frame.h"
#include "common/hex.h"
#include "common/layout.h"
#include "common/log.h"
#include "common/place.h"
#include "common/utf8.h"
#include "common/xmalloc.h"
#include "worker/backend.h"

#ifndef PKGLIBEXECDIR
#define PKGLIBEXECDIR "/usr/local/libexec/mcp-sandboxd"
#endif

#define AGENT_NAME "sandbox-agent"
#define AGENT_BYTES_MAX (32u << 20)
#define COPY_PREFIX ".agent-"
#define KEY_NAME ".key"
#define DIR_MODE 0711
#define AGENT_MODE 0755
#define PATH_BYTES_MAX 4000 /* with what is below it, BACKEND_PATH_MAX */

struct linkdirs {
	int fd; /* DATA_DIR/links */
	char *path;
	char *copy; /* .agent-<digest>; NULL: no agent is put in */
};

/*
 * What the engine is given is a path, which it looks up as root.  So nobody
 * but us may have made what lies there, nor write in it, and it must be what
 * we hold open.  Who else could exchange a directory further up the
 * supervisor has looked at (supervisor/master/ancestry.h).
 */
static int
check_own(int fd, const char *path, struct err *e)
{
	struct stat held, found;

	if (fstat(fd, &held) == -1)
		return err_set(
		    e, ERR_SYS, "stat %s: %s", path, strerror(errno));
	if (held.st_uid != geteuid() ||
	    (held.st_mode & (S_IWGRP | S_IWOTH)) != 0)
		return err_set(e, ERR_POLICY,
		    "%s is of uid %u, mode %03o: not made by this worker, so "
		    "not mounted; remove it",
		    path, (unsigned int)held.st_uid,
		    (unsigned int)(held.st_mode & 0777));
	if (lstat(path, &found) == -1 || found.st_dev != held.st_dev ||
	    found.st_ino != held.st_ino)
		return err_set(e, ERR_POLICY,
		    "%s does not lead to the directory that was made: "
		    "somebody exchanged it, so it is not mounted",
		    path);
	return 0;
}

/* ---- the agent's binary */

int
linkdirs_find_agent(char **out, struct err *e)
{
	AUTO(auto_free) char *here = place_beside("");

	*out = place_find(AGENT_NAME, PKGLIBEXECDIR "/" AGENT_NAME);
	if (*out != NULL)
		return 0;
	return err_set(e, ERR_NOTFOUND,
	    "%s is neither in %s nor in %s: build or install it", AGENT_NAME,
	    here, PKGLIBEXECDIR);
}

static int
write_agent(const struct linkdirs *l, int dir, const char *name,
    const char *agent, size_t n, struct err *e)
{
	AUTO(auto_close)
	int fd = openat(dir, name,
	    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

	if (fd == -1)
		return err_set(e, ERR_SYS, "create %s/%s: %s", l->path, name,
		    strerror(errno));
	if (fd_write_all(fd, agent, n, e) != 0)
		return err_wrap(e, "%s/%s", l->path, name);
	if (fchmod(fd, AGENT_MODE) == -1)
		return err_set(e, ERR_SYS, "chmod %s/%s: %s", l->path, name,
		    strerror(errno));
	return 0;
}

/* Whether the copy of an earlier start is whole. */
static bool
is_same(const struct linkdirs *l, const char *agent, size_t agent_len)
{
	AUTO(auto_free) char *path = xasprintf("%s/%s", l->path, l->copy);
	AUTO(auto_free) char *have = NULL;
	struct stat st;
	size_t n;

	return lstat(path, &st) == 0 && S_ISREG(st.st_mode) &&
	    st.st_uid == geteuid() && (st.st_mode & 07777) == AGENT_MODE &&
	    fd_read_file(path, AGENT_BYTES_MAX, &have, &n, NULL) == 0 &&
	    n == agent_len && memcmp(have, agent, n) == 0;
}

static int
copy_agent(struct linkdirs *l, const char *agent, size_t n, struct err *e)
{
	AUTO(auto_free) char *tmp = NULL;
	uint8_t digest[SHA256_DIGEST_LENGTH];
	char hex[HEX_BYTES(SHA256_DIGEST_LENGTH)];

	(void)SHA256((const uint8_t *)agent, n, digest);
	hex_encode(digest, sizeof(digest), hex);
	l->copy = xasprintf("%s%.16s", COPY_PREFIX, hex);
	if (is_same(l, agent, n))
		return 0;
	tmp = xasprintf("%s.%ld", l->copy, (long)getpid());
	(void)unlinkat(l->fd, tmp, 0);
	if (write_agent(l, l->fd, tmp, agent, n, e) != 0)
		return ERR_SYS;
	if (renameat(l->fd, tmp, l->fd, l->copy) == -1)
		return err_set(e, ERR_SYS, "rename %s/%s: %s", l->path, tmp,
		    strerror(errno));
	return 0;
}

/* ---- life */

int
linkdirs_check(const char *data_dir, struct err *e)
{
	if (strchr(data_dir, ':') == NULL &&
	    strlen(data_dir) <= PATH_BYTES_MAX &&
	    utf8_is_valid(data_dir, strlen(data_dir)))
		return 0;
	return err_set(e, ERR_INVAL,
	    "DATA_DIR %s: a path with a colon, not in UTF-8, or of more than "
	    "%d bytes cannot be bound into a sandbox",
	    data_dir, PATH_BYTES_MAX);
}

static int
open_links(struct linkdirs *l, const char *data_dir, struct err *e)
{
	AUTO(auto_free) char *inside = xasprintf("%s/" LAYOUT_LINKS, data_dir);
	AUTO(auto_free) char *real = NULL;
	struct err why;

	/* A directory that is shut does not open by itself. */
	if (place_check_way(inside, &why) != 0)
		return err_set(e, ERR_INVAL,
		    "DATA_DIR %.120s: %.200s: let the workers' user pass there "
		    "(chmod o+x), or set DATA_DIR",
		    data_dir, why.msg);
	real = realpath(data_dir, NULL);
	if (real == NULL)
		return err_set(
		    e, ERR_SYS, "DATA_DIR %s: %s", data_dir, strerror(errno));
	if (linkdirs_check(real, e) != 0)
		return e->code;
	l->path = xasprintf("%s/" LAYOUT_LINKS, real);
	if (mkdir(l->path, DIR_MODE) == -1 && errno != EEXIST)
		return err_set(
		    e, ERR_SYS, "mkdir %s: %s", l->path, strerror(errno));
	l->fd = open(l->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (l->fd == -1)
		return err_set(
		    e, ERR_SYS, "open %s: %s", l->path, strerror(errno));
	if (fchmod(l->fd, DIR_MODE) == -1 && errno != EPERM)
		return err_set(
		    e, ERR_SYS, "chmod %s: %s", l->path, strerror(errno));
	/* A wrong owner does not mend itself. */
	if (check_own(l->fd, l->path, e) != 0)
		return err_set(e, ERR_INVAL, "DATA_DIR: %s", e->msg);
	return 0;
}

int
linkdirs_open(const char *data_dir, struct linkdirs **out, struct err *e)
{
	struct linkdirs *l = xcalloc(1, sizeof(*l));
	int rc;

	l->fd = -1;
	rc = open_links(l, data_dir, e);
	if (rc != 0) {
		linkdirs_close(l);
		return rc;
	}
	*out = l;
	return 0;
}

int
linkdirs_take_agent(struct linkdirs *l, const char *agent, struct err *e)
{
	AUTO(auto_free) char *text = NULL;
	size_t n;
	int rc = fd_read_file(agent, AGENT_BYTES_MAX, &text, &n, e);

	return rc != 0 ? rc : copy_agent(l, text, n, e);
}

/* ---- the key */

/* 0, ERR_NOTFOUND, or another code. */
static int
key_read(
    const struct linkdirs *l, uint8_t out[LINKDIRS_KEY_BYTES], struct err *e)
{
	AUTO(auto_close)
	int fd = openat(l->fd, KEY_NAME, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (fd == -1)
		return err_set(e, errno == ENOENT ? ERR_NOTFOUND : ERR_SYS,
		    "open %s/" KEY_NAME ": %s", l->path, strerror(errno));
	if (fstat(fd, &st) == -1 || st.st_uid != geteuid() ||
	    (st.st_mode & 077) != 0)
		return err_set(e, ERR_POLICY,
		    "%s/" KEY_NAME " is another user's, or others may read it: "
		    "remove it, and the sandboxes that are reached by it are "
		    "lost",
		    l->path);
	if (read(fd, out, LINKDIRS_KEY_BYTES) != LINKDIRS_KEY_BYTES)
		return err_set(e, ERR_SYS,
		    "%s/" KEY_NAME " is not %d bytes: remove it, and the "
		    "sandboxes that are reached by it are lost",
		    l->path, LINKDIRS_KEY_BYTES);
	return 0;
}

/* Under its own name only when it is whole, and then for good. */
static int
key_make(const struct linkdirs *l, struct err *e)
{
	uint8_t key[LINKDIRS_KEY_BYTES];
	char name[64];
	int fd, rc;

	if (getrandom(key, sizeof(key), 0) != sizeof(key))
		return err_set(e, ERR_SYS, "getrandom: %s", strerror(errno));
	(void)snprintf(name, sizeof(name), KEY_NAME "-%ld", (long)getpid());
	(void)unlinkat(l->fd, name, 0);
	fd = openat(l->fd, name,
	    O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd == -1)
		return err_set(e, ERR_SYS, "create %s/%s: %s", l->path, name,
		    strerror(errno));
	rc = fd_write_all(fd, (const char *)key, sizeof(key), e);
	if (rc == 0 && fsync(fd) == -1)
		rc = err_set(e, ERR_SYS, "fsync: %s", strerror(errno));
	(void)close(fd);
	if (rc == 0 && linkat(l->fd, name, l->fd, KEY_NAME, 0) == -1 &&
	    errno != EEXIST)
		rc = err_set(e, ERR_SYS, "link %s/" KEY_NAME ": %s", l->path,
		    strerror(errno));
	(void)unlinkat(l->fd, name, 0);
	OPENSSL_cleanse(key, sizeof(key));
	return rc;
}

int
linkdirs_key(
    const struct linkdirs *l, uint8_t out[LINKDIRS_KEY_BYTES], struct err *e)
{
	int rc = key_read(l, out, e);

	if (rc != ERR_NOTFOUND)
		return rc;
	rc = key_make(l, e);
	return rc != 0 ? rc : key_read(l, out, e);
}

void
linkdirs_close(struct linkdirs *l)
{
	if (l == NULL)
		return;
	if (l->fd >= 0)
		(void)close(l->fd);
	free(l->path);
	free(l->copy);
	free(l);
}

/* ---- one sandbox's */

/* Where hard links cannot be had (too many, or another owner's file). */
static int
copy_into(struct linkdirs *l, int dir, struct err *e)
{
	AUTO(auto_free) char *path = xasprintf("%s/%s", l->path, l->copy);
	AUTO(auto_free) char *text = NULL;
	size_t n;
	int rc = fd_read_file(path, AGENT_BYTES_MAX, &text, &n, e);

	return rc != 0 ? rc : write_agent(l, dir, "agent", text, n, e);
}

static int
put_agent(struct linkdirs *l, int dir, struct err *e)
{
	if (l->copy == NULL || linkat(l->fd, l->copy, dir, "agent", 0) == 0 ||
	    errno == EEXIST)
		return 0;
	if (errno == EMLINK || errno == EPERM || errno == EOPNOTSUPP)
		return copy_into(l, dir, e);
	return err_set(
	    e, ERR_SYS, "link %s/%s: %s", l->path, l->copy, strerror(errno));
}

int
linkdirs_make(
    struct linkdirs *l, const struct uuid *sandbox, char **path, struct err *e)
{
	AUTO(auto_close) int fd = -1;
	AUTO(auto_free) char *made = NULL;
	char name[UUID_TEXT_LEN + 1];
	int out, rc;

	uuid_format(sandbox, name);
	if (mkdirat(l->fd, name, DIR_MODE) == -1 && errno != EEXIST)
		return err_set(e, ERR_SYS, "mkdir %s/%s: %s", l->path, name,
		    strerror(errno));
	fd = openat(
	    l->fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd == -1)
		return err_set(e, ERR_SYS, "open %s/%s: %s", l->path, name,
		    strerror(errno));
	/* Whatever the umask; a stranger's is found below. */
	if (fchmod(fd, DIR_MODE) == -1 && errno != EPERM)
		return err_set(e, ERR_SYS, "chmod %s/%s: %s", l->path, name,
		    strerror(errno));
	made = xasprintf("%s/%s", l->path, name);
	rc = check_own(fd, made, e);
	if (rc == 0)
		rc = put_agent(l, fd, e);
	if (rc != 0)
		return rc;
	*path = made;
	made = NULL;
	out = fd;
	fd = -1;
	return out;
}

int
linkdirs_mount(struct linkdirs *l, const struct uuid *sandbox,
    struct backend_wishes *out, struct err *e)
{
	AUTO(auto_free) char *path = NULL;
	struct backend_mount *m = &out->mounts[0];
	int fd = linkdirs_make(l, sandbox, &path, e);

	if (fd < 0)
		return fd;
	(void)close(fd);
	m->target = FRAME_DIR_IN_SANDBOX;
	(void)snprintf(m->source, sizeof(m->source), "%s", path);
	out->nmounts = 1;
	return 0;
}

static void
remove_dir(struct linkdirs *l, const char *name)
{
	AUTO(auto_close)
	int fd = openat(
	    l->fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd == -1)
		return;
	(void)unlinkat(fd, "sock", 0);
	(void)unlinkat(fd, "agent", 0);
	if (unlinkat(l->fd, name, AT_REMOVEDIR) == -1 && errno != ENOENT)
		log_warn("rmdir %s/%s: %s", l->path, name, strerror(errno));
}

void
linkdirs_remove(struct linkdirs *l, const struct uuid *sandbox)
{
	char name[UUID_TEXT_LEN + 1];

	uuid_format(sandbox, name);
	remove_dir(l, name);
}

/* ---- sweep */

static bool
is_older(const struct linkdirs *l, const char *name, int64_t before_ms,
    struct stat *st)
{
	if (fstatat(l->fd, name, st, AT_SYMLINK_NOFOLLOW) == -1)
		return false;
	return (int64_t)st->st_mtim.tv_sec * 1000 +
	    st->st_mtim.tv_nsec / 1000000 <
	    before_ms;
}

/* A copy of another version of the agent that no sandbox has any more. */
static bool
is_old_copy(const struct linkdirs *l, const char *name, const struct stat *st)
{
	return l->copy != NULL && st->st_nlink == 1 &&
	    strncmp(name, COPY_PREFIX, strlen(COPY_PREFIX)) == 0 &&
	    strcmp(name, l->copy) != 0;
}

uint32_t
linkdirs_sweep(struct linkdirs *l, int64_t before_ms,
    bool (*keep)(const struct uuid *, void *), void *arg)
{
	int fd = openat(l->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd == -1 ? NULL : fdopendir(fd);
	const struct dirent *entry;
	uint32_t n = 0;

	if (d == NULL) {
		if (fd != -1)
			(void)close(fd);
		return 0;
	}
	while ((entry = readdir(d)) != NULL) {
		struct uuid u;
		struct stat st;

		if (!is_older(l, entry->d_name, before_ms, &st))
			continue;
		if (is_old_copy(l, entry->d_name, &st)) {
			(void)unlinkat(l->fd, entry->d_name, 0);
		} else if (uuid_parse(entry->d_name, &u) == 0 &&
		    !keep(&u, arg)) {
			remove_dir(l, entry->d_name);
			n++;
		}
	}
	(void)closedir(d);
	return n;
}
