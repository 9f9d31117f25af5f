#include "supervisor/store/spool.h"

#include <sys/stat.h>
#include <sys/statvfs.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "common/fd.h"
#include "common/xmalloc.h"

#define DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
#define FILE_FLAGS (O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK)
#define BUCKET_MAX 3     /* "ab" */
#define BLOB_NAME_MAX 65 /* sha256 in hex */
#define TENANT_MAX 21    /* a number */
#define LOG_NAME_MAX 41  /* uuid.log */
#define SPARES_MAX 16
#define TMP_NAME_MAX 48 /* uuid.number */

struct spool {
	int data_fd;
	int log_fd;
	int artifacts_fd;
	int tmp_fd;
	char *data_dir; /* for messages */
	char *artifacts_dir;
	int spares[SPARES_MAX]; /* empty, nameless logs */
	size_t nspares;
};

enum make {
	MAKE_NOT,
	MAKE_IT
};

/* Directories. */

/* A directory below another, no link followed; -1 with errno. */
static int
open_dir_at(int dir, const char *name, enum make make)
{
	int fd = openat(dir, name, DIR_FLAGS);

	if (fd != -1 || errno != ENOENT || make == MAKE_NOT)
		return fd;
	if (mkdirat(dir, name, 0700) == -1 && errno != EEXIST)
		return -1;
	return openat(dir, name, DIR_FLAGS);
}

static int
fail(const char *what, const char *dir, const char *name, struct err *e)
{
	int code = errno == ENOENT ? ERR_NOTFOUND : ERR_SYS;

	if (errno == ENOSPC || errno == EDQUOT)
		return err_set(e, ERR_SYS,
		    "%s %s: disk is full: free space in %s", what, name, dir);
	return err_set(
	    e, code, "%s %s in %s: %s", what, name, dir, strerror(errno));
}

/* A root directory, which the operator may have made a link. */
static int
open_root(const char *path, struct err *e)
{
	int fd;

	if (fd_mkdir_all(path, 0700, e) != 0)
		return e->code;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd == -1)
		return err_set(
		    e, ERR_SYS, "open %s: %s", path, strerror(errno));
	return fd;
}

static int
open_part(int root, const char *path, const char *name, struct err *e)
{
	int fd = open_dir_at(root, name, MAKE_IT);

	return fd == -1 ? fail("open", path, name, e) : fd;
}

int
spool_open(const char *data_dir, const char *artifacts_dir, struct spool **out,
    struct err *e)
{
	struct spool *s = xcalloc(1, sizeof(*s));
	struct err why = {0};
	int rc = 0;

	s->log_fd = s->artifacts_fd = s->tmp_fd = -1;
	s->data_dir = xstrdup(data_dir);
	if (artifacts_dir == NULL || *artifacts_dir == '\0')
		s->artifacts_dir = xasprintf("%s/artifacts", data_dir);
	else
		s->artifacts_dir = xstrdup(artifacts_dir);
	s->data_fd = open_root(s->data_dir, &why);
	if (s->data_fd >= 0)
		s->artifacts_fd = open_root(s->artifacts_dir, &why);
	if (s->artifacts_fd >= 0)
		s->log_fd = open_part(s->data_fd, s->data_dir, "spool", &why);
	if (s->log_fd >= 0)
		s->tmp_fd =
		    open_part(s->artifacts_fd, s->artifacts_dir, "tmp", &why);
	if (s->tmp_fd < 0) {
		rc = err_set(e, why.code, "%s", why.msg);
		spool_close(s);
		return rc;
	}
	*out = s;
	return 0;
}

void
spool_close(struct spool *s)
{
	if (s == NULL)
		return;
	auto_close(&s->data_fd);
	auto_close(&s->log_fd);
	auto_close(&s->artifacts_fd);
	auto_close(&s->tmp_fd);
	while (s->nspares > 0)
		(void)close(s->spares[--s->nspares]);
	free(s->data_dir);
	free(s->artifacts_dir);
	free(s);
}

int
spool_free_bytes(const struct spool *s, uint64_t *out, struct err *e)
{
	struct statvfs v;

	if (fstatvfs(s->data_fd, &v) == -1)
		return err_set(
		    e, ERR_SYS, "statvfs %s: %s", s->data_dir, strerror(errno));
	*out = (uint64_t)v.f_bavail * v.f_frsize;
	return 0;
}

/* Logs. */

static void
log_name(
    const struct uuid *run, char bucket[BUCKET_MAX], char name[LOG_NAME_MAX])
{
	char text[UUID_TEXT_LEN + 1];

	uuid_format(run, text);
	(void)snprintf(bucket, BUCKET_MAX, "%.2s", text);
	(void)snprintf(name, LOG_NAME_MAX, "%s.log", text);
}

static int
log_open(struct spool *s, const struct uuid *run, int flags, enum make make,
    struct err *e)
{
	char bucket[BUCKET_MAX], name[LOG_NAME_MAX];
	AUTO(auto_close) int dir = -1;
	int fd = -1;

	log_name(run, bucket, name);
	dir = open_dir_at(s->log_fd, bucket, make);
	if (dir != -1)
		fd = openat(dir, name, flags | FILE_FLAGS, 0600);
	return fd == -1 ? fail("run log", s->data_dir, name, e) : fd;
}

int
spool_log_create(struct spool *s, const struct uuid *run, struct err *e)
{
	return log_open(s, run, O_RDWR | O_CREAT | O_APPEND, MAKE_IT, e);
}

int
spool_log_read(struct spool *s, const struct uuid *run, struct err *e)
{
	return log_open(s, run, O_RDONLY, MAKE_NOT, e);
}

void
spool_log_remove(struct spool *s, const struct uuid *run)
{
	char bucket[BUCKET_MAX], name[LOG_NAME_MAX];
	AUTO(auto_close) int dir = -1;

	log_name(run, bucket, name);
	dir = open_dir_at(s->log_fd, bucket, MAKE_NOT);
	if (dir != -1)
		(void)unlinkat(dir, name, 0);
}

int
spool_log_fresh(struct spool *s, struct err *e)
{
	int fd;

	if (s->nspares > 0)
		return s->spares[--s->nspares];
	fd = openat(
	    s->log_fd, ".", O_TMPFILE | O_RDWR | O_APPEND | O_CLOEXEC, 0600);
	if (fd == -1 && (errno == EOPNOTSUPP || errno == EISDIR))
		return err_set(e, ERR_WRONG_STATE,
		    "%s: no nameless files there", s->data_dir);
	return fd == -1 ? fail("run log", s->data_dir, "(new)", e) : fd;
}

int
spool_log_name(struct spool *s, int fd, const struct uuid *run, struct err *e)
{
	char bucket[BUCKET_MAX], name[LOG_NAME_MAX], self[40];
	AUTO(auto_close) int dir = -1;

	log_name(run, bucket, name);
	(void)snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	dir = open_dir_at(s->log_fd, bucket, MAKE_IT);
	if (dir == -1 ||
	    linkat(AT_FDCWD, self, dir, name, AT_SYMLINK_FOLLOW) == -1)
		return fail("run log", s->data_dir, name, e);
	return 0;
}

void
spool_log_reuse(struct spool *s, int fd)
{
	if (s->nspares < SPARES_MAX && ftruncate(fd, 0) == 0)
		s->spares[s->nspares++] = fd;
	else
		(void)close(fd);
}

/* Blobs. */

static void
tmp_name(const struct uuid *run, uint32_t file, char name[TMP_NAME_MAX])
{
	char text[UUID_TEXT_LEN + 1];

	uuid_format(run, text);
	(void)snprintf(name, TMP_NAME_MAX, "%s.%u", text, file);
}

static void
blob_name(const uint8_t sha256[32], char name[BLOB_NAME_MAX])
{
	for (size_t i = 0; i < 32; i++)
		(void)snprintf(name + 2 * i, 3, "%02x", sha256[i]);
}

/* The directory of a blob; -1 with errno. */
static int
blob_dir(struct spool *s, uint64_t tenant, const char *name, enum make make)
{
	char number[TENANT_MAX], bucket[BUCKET_MAX];
	AUTO(auto_close) int dir = -1;

	(void)snprintf(
	    number, sizeof(number), "%llu", (unsigned long long)tenant);
	(void)snprintf(bucket, sizeof(bucket), "%.2s", name);
	dir = open_dir_at(s->artifacts_fd, number, make);
	return dir == -1 ? -1 : open_dir_at(dir, bucket, make);
}

int
spool_blob_begin(
    struct spool *s, const struct uuid *run, uint32_t file, struct err *e)
{
	char name[TMP_NAME_MAX];
	int fd;

	tmp_name(run, file, name);
	/* One of an earlier attempt may still be open in a worker: not the
	 * same file again, whose bytes that one could change. */
	(void)unlinkat(s->tmp_fd, name, 0);
	fd = openat(
	    s->tmp_fd, name, O_RDWR | O_CREAT | O_EXCL | FILE_FLAGS, 0600);
	return fd == -1 ? fail("artifact", s->artifacts_dir, name, e) : fd;
}

int
spool_blob_commit(struct spool *s, const struct uuid *run, uint32_t file,
    uint64_t tenant, const uint8_t sha256[32], struct err *e)
{
	char from[TMP_NAME_MAX], to[BLOB_NAME_MAX];
	AUTO(auto_close) int dir = -1;

	tmp_name(run, file, from);
	blob_name(sha256, to);
	dir = blob_dir(s, tenant, to, MAKE_IT);
	/* Over one that is there: it has the same bytes, or was damaged. */
	if (dir == -1 || renameat(s->tmp_fd, from, dir, to) == -1)
		return fail("artifact", s->artifacts_dir, to, e);
	return 0;
}

void
spool_blob_abort(struct spool *s, const struct uuid *run, uint32_t file)
{
	char name[TMP_NAME_MAX];

	tmp_name(run, file, name);
	(void)unlinkat(s->tmp_fd, name, 0);
}

int
spool_blob_read(
    struct spool *s, uint64_t tenant, const uint8_t sha256[32], struct err *e)
{
	char name[BLOB_NAME_MAX];
	AUTO(auto_close) int dir = -1;
	int fd = -1;

	blob_name(sha256, name);
	dir = blob_dir(s, tenant, name, MAKE_NOT);
	if (dir != -1)
		fd = openat(dir, name, O_RDONLY | FILE_FLAGS);
	return fd == -1 ? fail("artifact", s->artifacts_dir, name, e) : fd;
}

void
spool_blob_remove(struct spool *s, uint64_t tenant, const uint8_t sha256[32])
{
	char name[BLOB_NAME_MAX];
	AUTO(auto_close) int dir = -1;

	blob_name(sha256, name);
	dir = blob_dir(s, tenant, name, MAKE_NOT);
	if (dir != -1)
		(void)unlinkat(dir, name, 0);
}

void
spool_sweep_tmp(struct spool *s)
{
	int fd = openat(s->tmp_fd, ".", DIR_FLAGS);
	const struct dirent *entry;
	DIR *dir;

	if (fd == -1)
		return;
	dir = fdopendir(fd);
	if (dir == NULL) {
		(void)close(fd);
		return;
	}
	while ((entry = readdir(dir)) != NULL)
		if (entry->d_name[0] != '.')
			(void)unlinkat(s->tmp_fd, entry->d_name, 0);
	(void)closedir(dir);
}
