#include "supervisor/store/backup.h"

#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include <openssl/evp.h>

#include "common/clock.h"
#include "common/embed.h"
#include "common/fd.h"
#include "common/hex.h"
#include "common/uuid.h"
#include "common/xmalloc.h"
#include "supervisor/store/artifact_rows.h"
#include "supervisor/store/db.h"
#include "supervisor/store/migrate.h"
#include "supervisor/store/spool.h"
#include "supervisor/store/store.h"
#include "supervisor/store/store_int.h"

#define PLACE "backup" /* in the server's directory */
#define DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
#define FILE_FLAGS (O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)

/* The log of a run that was under way: it may have ended since. */
struct early {
	struct uuid run;
	int fd; /* -1: it has none */
};

struct backup {
	char *dir, *place;
	int dir_fd, artifacts_fd, place_fd;
	struct db *live;
	struct db *copy;
	struct early *early; /* by uuid */
	size_t nearly;
	uint64_t at_run; /* walking */
	uint64_t at_tenant;
	uint8_t at_sha256[32];
	bool has_logs; /* all of them */
	uint64_t missing, damaged;
	bool misses_blobs;
	backup_damaged_cb on_damaged; /* or NULL */
	void *on_damaged_arg;
};

/* ---- opening */

static int
fail(struct err *e, const char *path, const char *what)
{
	return err_set(e, ERR_SYS, "%s: %s: %s", path, what, strerror(errno));
}

static int
open_at(int dir, const char *name, int flags)
{
	return dir == -1 ? -1 : openat(dir, name, flags);
}

/* What a backup that was killed left there. */
static int
empty_place(struct backup *b, struct err *e)
{
	static const char *const names[] = {
	    DB_FILE, DB_FILE "-journal", DB_FILE "-wal", DB_FILE "-shm"};

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (unlinkat(b->place_fd, names[i], 0) == -1 && errno != ENOENT)
			return fail(e, b->place, names[i]);
	return 0;
}

/* Or one that ended meanwhile took it away. */
static bool
is_named(const struct backup *b)
{
	struct stat st, named;

	return fstat(b->place_fd, &st) == 0 &&
	    fstatat(b->dir_fd, PLACE, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
	    st.st_dev == named.st_dev && st.st_ino == named.st_ino;
}

static int
open_place(struct backup *b, struct err *e)
{
	if (mkdirat(b->dir_fd, PLACE, 0700) == -1 && errno != EEXIST)
		return fail(e, b->place, "mkdir");
	b->place_fd = open_at(b->dir_fd, PLACE, DIR_FLAGS);
	if (b->place_fd == -1)
		return fail(e, b->place, "open");
	if (flock(b->place_fd, LOCK_EX | LOCK_NB) == -1 || !is_named(b)) {
		(void)close(b->place_fd);
		b->place_fd = -1; /* nothing there is ours to take away */
		return err_set(e, ERR_CONFLICT,
		    "another backup of %s is under way: wait for it", b->dir);
	}
	return empty_place(b, e);
}

static int
open_dirs(struct backup *b, const char *artifacts, struct err *e)
{
	b->dir_fd = open(b->dir, DIR_FLAGS);
	if (b->dir_fd == -1)
		return err_set(e, errno == ENOENT ? ERR_NOTFOUND : ERR_SYS,
		    "%s: %s", b->dir, strerror(errno));
	b->artifacts_fd = artifacts[0] != '\0' ?
	    open(artifacts, O_RDONLY | O_DIRECTORY | O_CLOEXEC) :
	    open_at(b->dir_fd, "artifacts", DIR_FLAGS);
	if (b->artifacts_fd == -1 && (artifacts[0] != '\0' || errno != ENOENT))
		return fail(
		    e, artifacts[0] != '\0' ? artifacts : "artifacts", "open");
	return 0;
}

static int
check_version(struct db *db, struct err *e)
{
	int64_t version, known = 0;

	while (embed_sql[known].name != NULL)
		known++;
	if (migrate_check(db, embed_sql, e) != 0 ||
	    db_exec_int(db, DB_GET_VERSION, &version, e) != 0)
		return e->code;
	return version == known ?
	    0 :
	    err_set(e, ERR_WRONG_STATE,
		"the database has schema %lld and this program knows %lld: "
		"use the sandboxctl of the server that made it",
		(long long)version, (long long)known);
}

/* ---- one moment */

static int
open_log(const struct backup *b, const struct uuid *run)
{
	char bucket[SPOOL_BUCKET_BYTES], name[SPOOL_LOG_BYTES];
	AUTO(auto_close) int spool = open_at(b->dir_fd, "spool", DIR_FLAGS);
	AUTO(auto_close) int dir = -1;

	spool_log_place(run, bucket, name);
	dir = open_at(spool, bucket, DIR_FLAGS);
	return open_at(dir, name, FILE_FLAGS);
}

static int
compare_early(const void *a, const void *b)
{
	return memcmp(((const struct early *)a)->run.b,
	    ((const struct early *)b)->run.b,
	    sizeof(((struct early *)0)->run.b));
}

static int
open_early(struct backup *b, struct err *e)
{
	struct db_call c;
	int rc;

	db_call_init(&c, b->live, DB_BACKUP_UNFINISHED);
	while ((rc = db_call_step(&c, e)) == 1) {
		struct early *at;

		b->early = array_grow(b->early, b->nearly, sizeof(*b->early));
		at = &b->early[b->nearly++];
		db_get_bytes(&c, at->run.b, sizeof(at->run.b));
		at->fd = open_log(b, &at->run);
		if (at->fd == -1 && errno != ENOENT) {
			db_call_end(&c);
			return fail(e, b->dir, "open the log of a run");
		}
	}
	if (b->nearly > 1)
		qsort(b->early, b->nearly, sizeof(*b->early), compare_early);
	return rc;
}

/* While nobody writes, so that what is unfinished has its log under its name;
 * files are given up behind the commit that says so. */
static int
take_moment(struct backup *b, struct err *e)
{
	struct db *hold = NULL;
	int rc = db_open(b->dir, DB_WRITER, &hold, e);

	if (rc != 0)
		return rc;
	rc = db_begin(hold, e);
	if (rc == 0)
		rc = db_exec(b->live, DB_BEGIN_READ, e);
	if (rc == 0)
		rc = open_early(b, e);
	db_rollback(hold);
	db_close(hold);
	return rc;
}

static struct backup *
new_backup(const char *dir)
{
	struct backup *b = xcalloc(1, sizeof(*b));

	b->dir = xstrdup(dir);
	b->place = xasprintf("%s/" PLACE, dir);
	b->dir_fd = b->artifacts_fd = b->place_fd = -1;
	return b;
}

int
backup_open(
    const char *dir, const char *artifacts, struct backup **out, struct err *e)
{
	struct backup *b = new_backup(dir);
	int rc;

	rc = open_dirs(b, artifacts, e);
	if (rc == 0 && faccessat(b->dir_fd, DB_FILE, R_OK | W_OK, 0) == -1)
		rc = err_set(e, errno == ENOENT ? ERR_NOTFOUND : ERR_SYS,
		    "%s/" DB_FILE ": %s", dir, strerror(errno));
	if (rc == 0)
		rc = open_place(b, e);
	if (rc == 0)
		rc = db_open(dir, DB_READER, &b->live, e);
	if (rc == 0)
		rc = check_version(b->live, e);
	if (rc == 0)
		rc = take_moment(b, e);
	if (rc != 0) {
		backup_close(b);
		return rc;
	}
	*out = b;
	return 0;
}

void
backup_close(struct backup *b)
{
	struct err ignored;

	if (b == NULL)
		return;
	db_close(b->live);
	db_close(b->copy);
	for (size_t i = 0; i < b->nearly; i++)
		auto_close(&b->early[i].fd);
	free(b->early);
	if (b->place_fd != -1 && empty_place(b, &ignored) == 0)
		(void)unlinkat(b->dir_fd, PLACE, AT_REMOVEDIR);
	auto_close(&b->place_fd);
	auto_close(&b->artifacts_fd);
	auto_close(&b->dir_fd);
	free(b->place);
	free(b->dir);
	free(b);
}

void
backup_sweep(const char *dir)
{
	struct backup *b = new_backup(dir);
	struct err ignored;

	if (open_dirs(b, "", &ignored) == 0)
		(void)!open_place(b, &ignored);
	backup_close(b);
}

/* ---- the copy */

/*
 * Each sandbox of an unfinished run gets a second row, which is lost, and the
 * run is said to be in that: so it ends as any run whose sandbox was lost
 * (core/run_fate.h), and the sandbox itself can be taken over.
 */
static const char lose_unfinished[] =
    "CREATE TEMP TABLE unfinished AS SELECT id, sandbox FROM run"
    " WHERE state = 'queued' OR state = 'running';"
    "CREATE TEMP TABLE lost AS SELECT * FROM sandbox"
    " WHERE id IN (SELECT sandbox FROM unfinished);"
    "CREATE TEMP TABLE offset AS SELECT"
    " (SELECT coalesce(max(id), 0) FROM sandbox) AS n;"
    "UPDATE temp.lost SET id = id + (SELECT n FROM offset),"
    " uuid = randomblob(16), state = 'lost',"
    " ended_ms = CAST(strftime('%s', 'now') AS INTEGER) * 1000;"
    "INSERT INTO main.sandbox SELECT * FROM temp.lost;"
    "UPDATE main.usage SET sandboxes = sandboxes -"
    " (SELECT count(*) FROM temp.lost WHERE lost.tenant = usage.tenant"
    "  AND lost.created_ms / 86400000 = usage.day);"
    "UPDATE main.run SET sandbox = sandbox + (SELECT n FROM offset)"
    " WHERE id IN (SELECT id FROM unfinished);"
    "DELETE FROM main.spec;"
    "DROP TABLE temp.unfinished;"
    "DROP TABLE temp.lost;"
    "DROP TABLE temp.offset;";

static uint64_t
size_of(const struct backup *b, const char *name)
{
	struct stat st;

	return fstatat(b->dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 ?
	    (uint64_t)st.st_size :
	    0;
}

/* The copy is on the server's own disk: what it takes there is missing to runs,
 * which end when the server's reserve is touched. */
static int
check_room(const struct backup *b, uint64_t reserve, struct err *e)
{
	uint64_t want = size_of(b, DB_FILE) + size_of(b, DB_FILE "-wal");
	struct statvfs st;
	uint64_t is;

	if (fstatvfs(b->place_fd, &st) == -1)
		return fail(e, b->place, "statvfs");
	is = (uint64_t)st.f_bavail * st.f_frsize;
	if (is >= want && is - want >= reserve)
		return 0;
	return err_set(e, ERR_DISK_FULL,
	    "%llu MiB are free for %s: the copy of the database takes %llu "
	    "there for as long as the backup is made, and %llu stay in reserve "
	    "(DISK_RESERVE_MB): free space there, or stop the server meanwhile",
	    (unsigned long long)(is >> 20), b->place,
	    (unsigned long long)(want >> 20),
	    (unsigned long long)(reserve >> 20));
}

int
backup_copy(struct backup *b, uint64_t reserve, backup_told told, void *arg,
    struct err *e)
{
	if (check_room(b, reserve, e) != 0 ||
	    db_open(b->place, DB_WRITER, &b->copy, e) != 0 ||
	    db_copy(b->live, b->copy, told, arg, e) != 0 ||
	    /* From now on it says what is there meanwhile. */
	    db_exec(b->live, DB_COMMIT, e) != 0 ||
	    db_exec_text(b->copy, "PRAGMA journal_mode = DELETE", e) != 0 ||
	    db_begin(b->copy, e) != 0 ||
	    db_exec_text(b->copy, lose_unfinished, e) != 0)
		return e->code;
	return db_exec(b->copy, DB_COMMIT, e);
}

/* ---- its files */

void
backup_on_damaged(struct backup *b, backup_damaged_cb cb, void *arg)
{
	b->on_damaged = cb;
	b->on_damaged_arg = arg;
}

uint64_t
backup_damaged(const struct backup *b)
{
	return b->damaged;
}

static void
tell_damaged(struct backup *b, const struct backup_file *f, const char *why)
{
	b->damaged++;
	if (b->on_damaged != NULL)
		b->on_damaged(f->name, why, b->on_damaged_arg);
}

static int
take_size(struct backup_file *f, uint64_t most, struct err *e)
{
	struct stat st;

	if (fstat(f->fd, &st) == -1 || !S_ISREG(st.st_mode)) {
		(void)close(f->fd);
		f->fd = -1;
		return err_set(e, ERR_DAMAGED, "%s is no file", f->name);
	}
	f->size = (uint64_t)st.st_size < most ? (uint64_t)st.st_size : most;
	return 0;
}

static int
run_marks(struct backup *b, enum db_query q, uint64_t run, struct err *e)
{
	struct db_call c;

	db_call_init(&c, b->copy, q);
	db_put_uint(&c, run);
	db_put_int(&c, clock_wall_ms());
	return db_call_run(&c, e);
}

struct log_row {
	uint64_t id, bytes;
	struct uuid run;
	bool is_unfinished;
};

/* 1: the next one. */
static int
next_log_row(struct backup *b, struct log_row *r, struct err *e)
{
	struct db_call c;
	int rc;

	db_call_init(&c, b->copy, DB_BACKUP_LOGS);
	db_put_uint(&c, b->at_run);
	rc = db_call_step(&c, e);
	if (rc != 1)
		return rc;
	r->id = db_get_uint(&c);
	db_get_bytes(&c, r->run.b, sizeof(r->run.b));
	r->bytes = db_get_uint(&c);
	r->is_unfinished = db_get_int(&c) != 0;
	db_call_end(&c);
	b->at_run = r->id;
	return 1;
}

static int
take_log(struct backup *b, const struct log_row *r)
{
	struct early key = {.run = r->run}, *found;
	int fd;

	if (!r->is_unfinished)
		return open_log(b, &r->run);
	found = b->nearly == 0 ? NULL :
				 bsearch(&key, b->early, b->nearly,
				     sizeof(*b->early), compare_early);
	if (found == NULL) {
		errno = ENOENT;
		return -1;
	}
	fd = found->fd;
	found->fd = -1;
	errno = ENOENT;
	return fd;
}

/* Of an ended run, and not there: its run gave it up since, or it is lost. */
static int
miss_log(struct backup *b, const struct backup_file *f, const struct log_row *r,
    struct err *e)
{
	struct db_call c;
	int wanted; /* the server's database says that there is such a file */

	db_call_init(&c, b->live, DB_LOG_WANTED);
	db_put_blob(&c, r->run.b, sizeof(r->run.b));
	wanted = db_call_has_row(&c, e);
	if (wanted < 0)
		return wanted;
	if (wanted == 1) {
		tell_damaged(b, f, "it is not there");
		return run_marks(b, DB_LOG_LOSE, r->id, e);
	}
	b->missing++;
	return run_marks(b, DB_EVICT_MARK, r->id, e);
}

/* 1: it is to be taken; 0: it is too short. */
static int
check_log(struct backup *b, struct backup_file *f, const struct log_row *r,
    struct err *e)
{
	if (take_size(f, r->is_unfinished ? UINT64_MAX : r->bytes, e) != 0)
		return e->code;
	if (r->is_unfinished || f->size == r->bytes)
		return 1;
	(void)close(f->fd);
	tell_damaged(b, f, "it is shorter than its run says");
	return run_marks(b, DB_LOG_LOSE, r->id, e);
}

static int
next_log(struct backup *b, struct backup_file *f, struct err *e)
{
	char bucket[SPOOL_BUCKET_BYTES], name[SPOOL_LOG_BYTES];
	struct log_row r;
	int rc;

	while ((rc = next_log_row(b, &r, e)) == 1) {
		spool_log_place(&r.run, bucket, name);
		(void)snprintf(
		    f->name, sizeof(f->name), "spool/%s/%s", bucket, name);
		f->fd = take_log(b, &r);
		if (f->fd != -1) {
			rc = check_log(b, f, &r, e);
			if (rc != 0)
				return rc;
			continue;
		}
		if (errno != ENOENT)
			return fail(e, f->name, "open");
		if (r.is_unfinished || r.bytes == 0)
			continue; /* nothing was printed yet */
		if (miss_log(b, f, &r, e) != 0)
			return e->code;
	}
	return rc;
}

static int
open_blob(const struct backup *b, const char *tenant, const char *digest)
{
	char bucket[SPOOL_BUCKET_BYTES];
	AUTO(auto_close) int of = open_at(b->artifacts_fd, tenant, DIR_FLAGS);
	AUTO(auto_close) int dir = -1;

	(void)snprintf(bucket, sizeof(bucket), "%.2s", digest);
	dir = open_at(of, bucket, DIR_FLAGS);
	return open_at(dir, digest, FILE_FLAGS);
}

static int
damage_blob(struct backup *b, const struct backup_file *f, const char *why,
    struct err *e)
{
	tell_damaged(b, f, why);
	return artifact_rows_lose(b->copy, b->at_tenant, b->at_sha256, e);
}

static int
give_up_blob(struct backup *b, struct err *e)
{
	struct db_call c;

	b->missing++;
	b->misses_blobs = true;
	db_call_init(&c, b->copy, DB_BACKUP_NO_BLOB);
	db_put_uint(&c, b->at_tenant);
	db_put_blob(&c, b->at_sha256, sizeof(b->at_sha256));
	db_put_int(&c, clock_wall_ms());
	return db_call_run(&c, e);
}

/* It is not there: its runs gave it up since, or it is lost. */
static int
miss_blob(struct backup *b, const struct backup_file *f, struct err *e)
{
	struct db_call c;
	int wanted; /* the server's database says that there is such a file */

	db_call_init(&c, b->live, DB_BLOB_WANTED);
	db_put_uint(&c, b->at_tenant);
	db_put_blob(&c, b->at_sha256, sizeof(b->at_sha256));
	wanted = db_call_has_row(&c, e);
	if (wanted < 0)
		return wanted;
	return wanted == 1 ? damage_blob(b, f, "it is not there", e) :
			     give_up_blob(b, e);
}

/* Whether its bytes are those of its name. */
static int
digest_blob(const struct backup_file *f, uint8_t out[32], struct err *e)
{
	static uint8_t piece[65536];
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	uint8_t digest[EVP_MAX_MD_SIZE];
	int rc = 0;

	if (ctx == NULL || EVP_DigestInit_ex(ctx, EVP_sha256(), NULL) != 1)
		abort();
	for (uint64_t at = 0; rc == 0;) {
		ssize_t n = fd_pread_all(f->fd, piece, sizeof(piece), at, e);

		if (n < 0)
			rc = err_wrap(e, "%s", f->name);
		if (n <= 0)
			break;
		if (EVP_DigestUpdate(ctx, piece, (size_t)n) != 1)
			abort();
		at += (uint64_t)n;
	}
	if (EVP_DigestFinal_ex(ctx, digest, NULL) != 1)
		abort();
	EVP_MD_CTX_free(ctx);
	memcpy(out, digest, 32);
	return rc;
}

/* 1: it is to be taken; 0: it is left out. */
static int
check_blob(
    struct backup *b, struct backup_file *f, uint64_t size, struct err *e)
{
	uint8_t sha256[32] = {0};
	const char *why = NULL;

	if (take_size(f, UINT64_MAX, e) != 0)
		return e->code;
	if (f->size != size)
		why = "it has not the length that its runs say";
	else if (digest_blob(f, sha256, e) != 0)
		return e->code;
	else if (memcmp(sha256, b->at_sha256, sizeof(sha256)) != 0)
		why = "its bytes are not those that its name says";
	if (why == NULL)
		return 1;
	(void)close(f->fd);
	return damage_blob(b, f, why, e);
}

/* 1: at_tenant and at_sha256 are the next one. */
static int
next_blob_row(struct backup *b, uint64_t *size, struct err *e)
{
	struct db_call c;
	int rc;

	db_call_init(&c, b->copy, DB_BACKUP_BLOBS);
	db_put_uint(&c, b->at_tenant);
	db_put_blob(&c, b->at_sha256, sizeof(b->at_sha256));
	rc = db_call_step(&c, e);
	if (rc != 1)
		return rc;
	b->at_tenant = db_get_uint(&c);
	db_get_bytes(&c, b->at_sha256, sizeof(b->at_sha256));
	*size = db_get_uint(&c);
	db_call_end(&c);
	return 1;
}

static int
next_blob(struct backup *b, struct backup_file *f, struct err *e)
{
	char tenant[24], digest[HEX_BYTES(32)];
	uint64_t size;
	int rc;

	while ((rc = next_blob_row(b, &size, e)) == 1) {
		if (b->artifacts_fd == -1)
			return err_set(e, ERR_NOTFOUND,
			    "%s/artifacts is not there, and the database has "
			    "artifacts: set ARTIFACTS_DIR to where they are",
			    b->dir);
		(void)snprintf(tenant, sizeof(tenant), "%llu",
		    (unsigned long long)b->at_tenant);
		hex_encode(b->at_sha256, sizeof(b->at_sha256), digest);
		(void)snprintf(f->name, sizeof(f->name), "artifacts/%s/%.2s/%s",
		    tenant, digest, digest);
		f->fd = open_blob(b, tenant, digest);
		if (f->fd == -1 && errno != ENOENT)
			return fail(e, f->name, "open");
		rc = f->fd != -1 ? check_blob(b, f, size, e) :
				   miss_blob(b, f, e);
		if (rc != 0)
			return rc;
	}
	return rc;
}

int
backup_next(struct backup *b, struct backup_file *f, struct err *e)
{
	int rc;

	if (!b->has_logs) {
		rc = next_log(b, f, e);
		if (rc != 0)
			return rc;
		b->has_logs = true;
	}
	return next_blob(b, f, e);
}

/* ---- the end */

static int
check_integrity(struct db *db, struct err *e)
{
	AUTO(auto_free) char *text = NULL;
	struct db_call c;
	int rc;

	db_call_init(&c, db, DB_BACKUP_INTEGRITY);
	rc = db_call_step(&c, e);
	if (rc != 1)
		return rc < 0 ?
		    rc :
		    err_set(e, ERR_DAMAGED, "integrity_check says nothing");
	text = db_get_text(&c);
	db_call_end(&c);
	return strcmp(text, "ok") == 0 ?
	    0 :
	    err_set(e, ERR_DAMAGED, "%s/" DB_FILE " is damaged: %.200s",
		db_dir(db), text);
}

/* As they are counted: by the artifacts of runs that did not give up theirs. */
static const char count_blobs[] =
    "UPDATE blob SET refs = 0;"
    "UPDATE blob SET refs = n.c FROM"
    " (SELECT a.tenant AS tenant, a.sha256 AS sha256, count(*) AS c"
    "  FROM artifact a LEFT JOIN kept k ON k.run = a.run"
    "  WHERE coalesce(k.evicted_ms, 0) = 0 GROUP BY 1, 2) AS n"
    " WHERE n.tenant = blob.tenant AND n.sha256 = blob.sha256;"
    "DELETE FROM blob WHERE refs = 0;";

int
backup_finish(struct backup *b, struct backup_file *f, struct err *e)
{
	if (b->misses_blobs && db_exec_text(b->copy, count_blobs, e) != 0)
		return e->code;
	if (check_integrity(b->copy, e) != 0)
		return e->code;
	db_close(b->copy);
	b->copy = NULL;
	(void)snprintf(f->name, sizeof(f->name), DB_FILE);
	f->fd = open_at(b->place_fd, DB_FILE, FILE_FLAGS);
	if (f->fd == -1)
		return fail(e, b->place, "open the copy");
	return take_size(f, UINT64_MAX, e);
}

uint64_t
backup_missing(const struct backup *b)
{
	return b->missing;
}

/* ---- unpacked again */

static int
read_instance(struct db *db, char *instance, size_t size, struct err *e)
{
	struct db_call c;
	int rc;

	instance[0] = '\0';
	db_call_init(&c, db, DB_INSTANCE_GET);
	rc = db_call_step(&c, e);
	if (rc != 1)
		return rc;
	(void)snprintf(instance, size, "%s", db_get_word(&c));
	db_call_end(&c);
	return 0;
}

int
backup_lose_unpacked(
    const char *dir, const struct backup_blob *blobs, size_t n, struct err *e)
{
	struct db *db;
	int rc = db_open(dir, DB_WRITER, &db, e);

	if (rc != 0)
		return rc;
	rc = migrate_check(db, embed_sql, e);
	if (rc == 0)
		rc = migrate_run(db, embed_sql, NULL, e);
	if (rc == 0)
		rc = db_begin(db, e);
	for (size_t i = 0; i < n && rc == 0; i++)
		rc =
		    artifact_rows_lose(db, blobs[i].tenant, blobs[i].sha256, e);
	if (rc == 0)
		rc = db_exec(db, DB_COMMIT, e);
	db_close(db);
	return rc;
}

int
backup_check_unpacked(
    const char *dir, char *instance, size_t size, struct err *e)
{
	struct db *db;
	int rc = db_open(dir, DB_LOOK, &db, e);

	if (rc != 0)
		return rc;
	rc = migrate_check(db, embed_sql, e);
	if (rc == 0)
		rc = check_integrity(db, e);
	if (rc == 0)
		rc = read_instance(db, instance, size, e);
	db_close(db);
	return rc;
}
