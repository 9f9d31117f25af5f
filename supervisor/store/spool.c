/*
 * spool.c - names below the store's two directories
 *
 * Each root is opened once; everything else is opened relative to it, one
 * directory after the other and without following a link, so that whoever can
 * put a link there leads nobody out.  Buckets (two digits) keep directories
 * short; they are made when they are needed and never removed.
 */
#include "supervisor/store/spool.h"

#include <sys/random.h>
#include <sys/stat.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "common/fd.h"
#include "common/hex.h"
#include "common/log.h"
#include "common/xmalloc.h"

#define DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
#define FILE_FLAGS (O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK)
#define BLOB_NAME_MAX HEX_BYTES(32)
#define TENANT_MAX 21 /* a number */
#define SPARES_MAX 64
#define SPARES_MANY 32  /* then one is emptied when it is wanted */
#define TMP_NAME_MAX 59 /* uuid.number.opening */

struct spool {
	int data_fd;
	int log_fd;
	int artifacts_fd;
	int tmp_fd;
	bool is_apart;
	uint32_t opening; /* tells our files in tmp from older ones */
	char *data_dir;   /* for messages */
	char *artifacts_dir;
	int spares[SPARES_MAX]; /* nameless logs: */
	size_t nspares;
	size_t nempty; /* the first of them */
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

/* A file system that cannot sync directories has no need to. */
static int
sync_dir(int fd)
{
	return fsync(fd) == 0 || errno == EINVAL ? 0 : -1;
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

/* A directory that we remove files from: nobody else may meanwhile. */
static int
open_part(int root, const char *path, const char *name, struct err *e)
{
	int fd;

	if (mkdirat(root, name, 0700) == -1 && errno != EEXIST)
		return err_set(e, ERR_SYS, "directory %s cannot be written: %s",
		    path, strerror(errno));
	fd = open_dir_at(root, name, MAKE_NOT);
	if (fd == -1)
		return fail("open", path, name, e);
	if (fd_lock(fd, FD_LOCK_PATIENCE_MS) == 0)
		return fd;
	if (errno == EWOULDBLOCK)
		(void)err_set(e, ERR_CONFLICT,
		    "directory %s is in use by another mcp-sandboxd", path);
	else
		(void)fail("lock", path, name, e);
	(void)close(fd);
	return e->code;
}

int
spool_open(const char *data_dir, const char *artifacts_dir, struct spool **out,
    struct err *e)
{
	struct spool *s = xcalloc(1, sizeof(*s));
	struct stat of_data, of_artifacts;
	struct err why = {0};
	int rc = 0;

	s->data_fd = s->log_fd = s->artifacts_fd = s->tmp_fd = -1;
	if (getrandom(&s->opening, sizeof(s->opening), 0) != sizeof(s->opening))
		s->opening = (uint32_t)getpid();
	s->data_dir = xstrdup(data_dir);
	if (artifacts_dir == NULL || *artifacts_dir == '\0')
		s->artifacts_dir = xasprintf("%s/artifacts", data_dir);
	else
		s->artifacts_dir = xstrdup(artifacts_dir);
	s->data_fd = open_root(s->data_dir, &why);
	if (s->data_fd >= 0)
		s->log_fd = open_part(s->data_fd, s->data_dir, "spool", &why);
	if (s->log_fd >= 0)
		s->artifacts_fd = open_root(s->artifacts_dir, &why);
	if (s->artifacts_fd >= 0)
		s->tmp_fd =
		    open_part(s->artifacts_fd, s->artifacts_dir, "tmp", &why);
	/* What is below them is synced as it comes (syncer.h). */
	if (s->tmp_fd >= 0 &&
	    (sync_dir(s->data_fd) == -1 || sync_dir(s->artifacts_fd) == -1))
		rc = err_set(&why, ERR_SYS, "sync %s and %s: %s", s->data_dir,
		    s->artifacts_dir, strerror(errno));
	if (s->tmp_fd < 0 || rc != 0) {
		rc = err_set(e, why.code, "%s", why.msg);
		spool_close(s);
		return rc;
	}
	s->is_apart = fstat(s->data_fd, &of_data) == 0 &&
	    fstat(s->artifacts_fd, &of_artifacts) == 0 &&
	    of_data.st_dev != of_artifacts.st_dev;
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

bool
spool_is_apart(const struct spool *s)
{
	return s->is_apart;
}

int
spool_data_fd(const struct spool *s)
{
	return s->data_fd;
}

int
spool_artifacts_fd(const struct spool *s)
{
	return s->artifacts_fd;
}

/* Logs. */

/* The bucket is made of random digits: the last ones, where the first ones are
 * the time. */
void
spool_log_place(const struct uuid *run, char bucket[SPOOL_BUCKET_BYTES],
    char name[SPOOL_LOG_BYTES])
{
	char text[UUID_TEXT_LEN + 1];

	uuid_format(run, text);
	(void)snprintf(bucket, SPOOL_BUCKET_BYTES, "%.2s",
	    text + (uuid_is_timed(run) ? UUID_TEXT_LEN - 2 : 0));
	(void)snprintf(name, SPOOL_LOG_BYTES, "%s.log", text);
}

/* The directory of a run's log, and its name there; -1 with errno. */
static int
log_dir(struct spool *s, const struct uuid *run, enum make make,
    char name[SPOOL_LOG_BYTES])
{
	char bucket[SPOOL_BUCKET_BYTES];

	spool_log_place(run, bucket, name);
	return open_dir_at(s->log_fd, bucket, make);
}

static int
log_open(struct spool *s, const struct uuid *run, int flags, enum make make,
    struct err *e)
{
	char name[SPOOL_LOG_BYTES];
	AUTO(auto_close) int dir = log_dir(s, run, make, name);
	int fd = -1;

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
	char name[SPOOL_LOG_BYTES];
	AUTO(auto_close) int dir = log_dir(s, run, MAKE_NOT, name);

	if (dir != -1)
		(void)unlinkat(dir, name, 0);
}

void
spool_tidy(struct spool *s)
{
	while (s->nempty < s->nspares) {
		int *fd = &s->spares[s->nempty];

		if (ftruncate(*fd, 0) == 0) {
			s->nempty++;
			continue;
		}
		(void)close(*fd);
		*fd = s->spares[--s->nspares];
	}
}

int
spool_log_fresh(struct spool *s, struct err *e)
{
	int fd;

	if (s->nempty == 0 && s->nspares >= SPARES_MANY)
		spool_tidy(s);
	if (s->nempty > 0) {
		fd = s->spares[--s->nempty];
		s->spares[s->nempty] = s->spares[--s->nspares];
		return fd;
	}
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
	char name[SPOOL_LOG_BYTES], self[40];
	AUTO(auto_close) int dir = log_dir(s, run, MAKE_IT, name);

	(void)snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	if (dir == -1 ||
	    linkat(AT_FDCWD, self, dir, name, AT_SYMLINK_FOLLOW) == -1)
		return fail("run log", s->data_dir, name, e);
	return 0;
}

void
spool_log_reuse(struct spool *s, int fd)
{
	struct stat st;

	if (s->nspares == SPARES_MAX) {
		(void)close(fd);
		return;
	}
	s->spares[s->nspares++] = fd;
	/* Nothing was written to it: a short log comes with its end. */
	if (fstat(fd, &st) == 0 && st.st_size == 0) {
		s->spares[s->nspares - 1] = s->spares[s->nempty];
		s->spares[s->nempty++] = fd;
	}
}

bool
spool_is_tidy(const struct spool *s)
{
	return s->nempty == s->nspares;
}

/* Blobs. */

static void
tmp_name(const struct spool *s, const struct uuid *run, uint32_t file,
    char name[TMP_NAME_MAX])
{
	char text[UUID_TEXT_LEN + 1];

	uuid_format(run, text);
	(void)snprintf(
	    name, TMP_NAME_MAX, "%s.%u.%08x", text, file, s->opening);
}

/* The directory of a tenant's blobs; -1 with errno. */
static int
tenant_dir(struct spool *s, uint64_t tenant, enum make make)
{
	char number[TENANT_MAX];

	(void)snprintf(
	    number, sizeof(number), "%llu", (unsigned long long)tenant);
	return open_dir_at(s->artifacts_fd, number, make);
}

/* The directory of a blob, and its name there; -1 with errno. */
static int
blob_dir(struct spool *s, uint64_t tenant, const uint8_t sha256[32],
    enum make make, char name[BLOB_NAME_MAX])
{
	char bucket[SPOOL_BUCKET_BYTES];
	AUTO(auto_close) int dir = tenant_dir(s, tenant, make);

	hex_encode(sha256, 32, name);
	(void)snprintf(bucket, sizeof(bucket), "%.2s", name);
	return dir == -1 ? -1 : open_dir_at(dir, bucket, make);
}

int
spool_blob_begin(
    struct spool *s, const struct uuid *run, uint32_t file, struct err *e)
{
	char name[TMP_NAME_MAX];
	int fd;

	tmp_name(s, run, file, name);
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
	AUTO(auto_close) int dir = blob_dir(s, tenant, sha256, MAKE_IT, to);

	tmp_name(s, run, file, from);
	/* Over one that is there: it has the same bytes, or was damaged. */
	if (dir == -1 || renameat(s->tmp_fd, from, dir, to) == -1)
		return fail("artifact", s->artifacts_dir, to, e);
	return 0;
}

void
spool_blob_abort(struct spool *s, const struct uuid *run, uint32_t file)
{
	char name[TMP_NAME_MAX];

	tmp_name(s, run, file, name);
	(void)unlinkat(s->tmp_fd, name, 0);
}

int
spool_blob_read(
    struct spool *s, uint64_t tenant, const uint8_t sha256[32], struct err *e)
{
	char name[BLOB_NAME_MAX];
	AUTO(auto_close) int dir = blob_dir(s, tenant, sha256, MAKE_NOT, name);
	int fd = -1;

	if (dir != -1)
		fd = openat(dir, name, O_RDONLY | FILE_FLAGS);
	return fd == -1 ? fail("artifact", s->artifacts_dir, name, e) : fd;
}

void
spool_blob_remove(struct spool *s, uint64_t tenant, const uint8_t sha256[32])
{
	char name[BLOB_NAME_MAX];
	AUTO(auto_close) int dir = blob_dir(s, tenant, sha256, MAKE_NOT, name);

	if (dir != -1)
		(void)unlinkat(dir, name, 0);
}

/* Onto the disk. */

static int
sync_failed(const char *what, const char *dir, const char *name, struct err *e)
{
	return err_set(e, ERR_LOST, "%s %s in %s: sync: %s", what, name, dir,
	    strerror(errno));
}

uint8_t
spool_log_bucket(const struct uuid *run)
{
	return run->b[uuid_is_timed(run) ? sizeof(run->b) - 1 : 0];
}

int
spool_log_sync(struct spool *s, int fd, const struct uuid *run,
    enum spool_depth depth, struct err *e)
{
	char name[SPOOL_LOG_BYTES];
	AUTO(auto_close) int dir = log_dir(s, run, MAKE_NOT, name);

	if (dir == -1)
		return fail("run log", s->data_dir, name, e);
	if (fdatasync(fd) == -1 || sync_dir(dir) == -1 ||
	    (depth == SPOOL_TO_ROOT && sync_dir(s->log_fd) == -1))
		return sync_failed("run log", s->data_dir, name, e);
	return 0;
}

int
spool_blob_sync(struct spool *s, uint64_t tenant, const uint8_t sha256[32],
    enum spool_depth depth, struct err *e)
{
	char name[BLOB_NAME_MAX];
	AUTO(auto_close) int fd = spool_blob_read(s, tenant, sha256, e);
	AUTO(auto_close) int of = -1;
	AUTO(auto_close) int dir = -1;

	if (fd < 0) {
		fd = -1;
		return e->code;
	}
	of = tenant_dir(s, tenant, MAKE_NOT);
	dir = blob_dir(s, tenant, sha256, MAKE_NOT, name);
	if (dir == -1)
		return fail("artifact", s->artifacts_dir, name, e);
	if (fdatasync(fd) == -1 || sync_dir(dir) == -1 ||
	    (depth == SPOOL_TO_ROOT &&
		(sync_dir(of) == -1 || sync_dir(s->artifacts_fd) == -1)))
		return sync_failed("artifact", s->artifacts_dir, name, e);
	return 0;
}

void
spool_blob_write_out(struct spool *s, uint64_t tenant, const uint8_t sha256[32])
{
	AUTO(auto_close) int fd = spool_blob_read(s, tenant, sha256, NULL);

	if (fd < 0)
		fd = -1;
	else
		(void)sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE);
}

int
spool_sync_all(struct spool *s)
{
	if (syncfs(s->artifacts_fd) == -1)
		return -1;
	return s->is_apart ? syncfs(s->data_fd) : 0;
}

/* Looking through what is there. */

static void
auto_closedir(DIR **list)
{
	if (*list != NULL)
		(void)closedir(*list);
}

static DIR *
open_list_at(int dir, const char *name)
{
	int fd = openat(dir, name, DIR_FLAGS);
	DIR *list = fd == -1 ? NULL : fdopendir(fd);

	if (list == NULL && fd != -1)
		(void)close(fd);
	return list;
}

static bool
is_bucket(const char *name)
{
	return hex_value(name[0]) >= 0 && hex_value(name[1]) >= 0 &&
	    name[2] == '\0';
}

struct places {
	struct spool_place *p;
	size_t n, room;
};

/* The buckets in one directory. */
static void
add_buckets(struct places *all, int dir, const char *name, uint64_t tenant)
{
	AUTO(auto_closedir) DIR *list = open_list_at(dir, name);
	const struct dirent *entry;

	while (list != NULL && (entry = readdir(list)) != NULL) {
		if (!is_bucket(entry->d_name))
			continue;
		if (all->n == all->room) {
			all->room = all->room == 0 ? 256 : all->room * 2;
			all->p =
			    xreallocarray(all->p, all->room, sizeof(*all->p));
		}
		all->p[all->n].tenant = tenant;
		memcpy(
		    all->p[all->n].bucket, entry->d_name, SPOOL_BUCKET_BYTES);
		all->n++;
	}
}

/* The buckets of all tenants. */
static void
add_blob_buckets(struct places *all, struct spool *s)
{
	AUTO(auto_closedir) DIR *list = open_list_at(s->artifacts_fd, ".");
	const struct dirent *entry;

	while (list != NULL && (entry = readdir(list)) != NULL) {
		char *end;
		unsigned long long tenant = strtoull(entry->d_name, &end, 10);

		if (tenant > 0 && *end == '\0')
			add_buckets(
			    all, s->artifacts_fd, entry->d_name, tenant);
	}
}

static bool
is_kept(int root)
{
	return faccessat(root, SPOOL_KEEP, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

size_t
spool_walk_places(struct spool *s, struct spool_place **out)
{
	struct places all = {0};

	if (!is_kept(s->log_fd))
		add_buckets(&all, s->log_fd, ".", 0);
	if (!is_kept(s->artifacts_fd))
		add_blob_buckets(&all, s);
	*out = all.p;
	return all.n;
}

static int
keep(int root, const char *dir, const char *below, struct err *e)
{
	int fd =
	    openat(root, SPOOL_KEEP, O_WRONLY | O_CREAT | FILE_FLAGS, 0600);

	if (fd == -1)
		return fail("make", dir, SPOOL_KEEP, e);
	(void)close(fd);
	/* Before the new database is there, beside which all would go. */
	if (sync_dir(root) == -1)
		return fail("sync", dir, SPOOL_KEEP, e);
	log_warn("%s%s has files that the new database knows nothing of: they "
		 "stay until " SPOOL_KEEP " there is removed",
	    dir, below);
	return 0;
}

int
spool_keep_all(struct spool *s, struct err *e)
{
	struct places logs = {0}, blobs = {0};
	int rc = 0;

	add_buckets(&logs, s->log_fd, ".", 0);
	add_blob_buckets(&blobs, s);
	if (logs.n > 0)
		rc = keep(s->log_fd, s->data_dir, "/spool", e);
	if (rc == 0 && blobs.n > 0)
		rc = keep(s->artifacts_fd, s->artifacts_dir, "", e);
	free(logs.p);
	free(blobs.p);
	return rc;
}

/* Whether the name is that of a log, or of a blob. */
static bool
parse_name(const char *name, struct spool_entry *entry)
{
	size_t n = strlen(name);
	char text[UUID_TEXT_LEN + 1];

	if (entry->tenant == 0) {
		if (n != SPOOL_LOG_BYTES - 1 ||
		    strcmp(name + UUID_TEXT_LEN, ".log") != 0)
			return false;
		memcpy(text, name, UUID_TEXT_LEN);
		text[UUID_TEXT_LEN] = '\0';
		return uuid_parse(text, &entry->run) == 0;
	}
	if (n != BLOB_NAME_MAX - 1)
		return false;
	for (size_t i = 0; i < 32; i++) {
		int high = hex_value(name[2 * i]);
		int low = hex_value(name[2 * i + 1]);

		if (high < 0 || low < 0)
			return false;
		entry->sha256[i] = (uint8_t)(high << 4 | low);
	}
	return true;
}

void
spool_walk(struct spool *s, const struct spool_place *place,
    void (*on_entry)(const struct spool_entry *entry, void *arg), void *arg)
{
	char path[TENANT_MAX + SPOOL_BUCKET_BYTES];
	struct spool_entry found = {.tenant = place->tenant};
	const struct dirent *entry;
	AUTO(auto_closedir) DIR *list = NULL;

	if (place->tenant == 0)
		(void)snprintf(path, sizeof(path), "%s", place->bucket);
	else
		(void)snprintf(path, sizeof(path), "%llu/%s",
		    (unsigned long long)place->tenant, place->bucket);
	list = open_list_at(
	    place->tenant == 0 ? s->log_fd : s->artifacts_fd, path);
	while (list != NULL && (entry = readdir(list)) != NULL)
		if (parse_name(entry->d_name, &found))
			on_entry(&found, arg);
}

void
spool_sweep_tmp(struct spool *s)
{
	AUTO(auto_closedir) DIR *list = open_list_at(s->tmp_fd, ".");
	const struct dirent *entry;
	char ours[16];

	(void)snprintf(ours, sizeof(ours), ".%08x", s->opening);
	while (list != NULL && (entry = readdir(list)) != NULL) {
		const char *end = strrchr(entry->d_name, '.');

		if (entry->d_name[0] != '.' &&
		    (end == NULL || strcmp(end, ours) != 0))
			(void)unlinkat(s->tmp_fd, entry->d_name, 0);
	}
}
