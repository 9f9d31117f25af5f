/*
 * db.c - SQLite behind the calls of db.h
 *
 * A connection compiles each statement of sql.c at its first use and keeps it.
 * What SQLite returns becomes one of our codes and a text for a person in
 * db_fail, which also notes whether the whole transaction is lost.
 */
#include "supervisor/store/db.h"

#include <sys/stat.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <unistd.h>

#include <sqlite3.h>

#include "common/buf.h"
#include "common/clock.h"
#include "common/xmalloc.h"
#include "supervisor/store/history_feed.h"
#include "supervisor/store/history_words.h"
#include "supervisor/store/tally.h"

#define NAME_BYTES_MAX 16384
#define WAL_FRAME_HEADER 24
#define PROGRESS_STEPS 100000 /* of SQLite's machine: some milliseconds */
#define DEADLINE_STEPS 100    /* some tens of FTS5's pages */
#define COPY_PAGES 1024       /* in one step of db_copy */

struct db {
	sqlite3 *h;
	sqlite3_stmt *st[DB_NQUERY];
	char *dir;
	const char *file;  /* in it */
	struct feed *feed; /* NULL: nobody watches */
	bool doomed;
	uint64_t wal_pages;
	struct tally tally;
	uint64_t deadline_ms;        /* 0: none */
	const atomic_bool *canceled; /* or NULL */
	void (*on_progress)(void *arg);
	void *on_progress_arg;
};

struct tally *
db_tally(struct db *db)
{
	return &db->tally;
}

const char *
db_dir(const struct db *db)
{
	return db->dir;
}

/* Errors. */

static bool
is_out_of_space(struct db *db, int rc)
{
	return (rc & 0xff) == SQLITE_FULL ||
	    ((rc & 0xff) == SQLITE_IOERR &&
		sqlite3_system_errno(db->h) == ENOSPC);
}

/* The text for a person, by the kind of failure. */
static int
db_fail(struct db *db, int rc, struct err *e)
{
	int kind = rc & 0xff;

	if (rc == SQLITE_CONSTRAINT_UNIQUE ||
	    rc == SQLITE_CONSTRAINT_PRIMARYKEY || rc == SQLITE_CONSTRAINT_ROWID)
		return err_set(
		    e, ERR_CONFLICT, "database: %s", sqlite3_errmsg(db->h));
	if (kind == SQLITE_CONSTRAINT || kind == SQLITE_TOOBIG ||
	    kind == SQLITE_MISMATCH)
		return err_set(
		    e, ERR_INVAL, "database: %s", sqlite3_errmsg(db->h));
	if (kind == SQLITE_INTERRUPT)
		return err_set(e, ERR_LIMIT, "database: it takes too long");
	db->doomed = db->doomed || kind != SQLITE_ERROR;
	if (is_out_of_space(db, rc))
		return err_set(e, ERR_DB,
		    "database: disk is full: free space in %s", db->dir);
	if ((kind == SQLITE_NOTADB || kind == SQLITE_CORRUPT) &&
	    strcmp(db->file, DB_HISTORY_FILE) == 0)
		return err_set(e, ERR_DAMAGED, "%s/%s: %s", db->dir, db->file,
		    sqlite3_errmsg(db->h));
	if (kind == SQLITE_NOTADB)
		return err_set(e, ERR_DAMAGED,
		    "%s/%s is no database: move it away, or put a "
		    "backup in its place",
		    db->dir, db->file);
	if (kind == SQLITE_CORRUPT)
		return err_set(e, ERR_DAMAGED,
		    "%s/%s is damaged: stop what uses it, then put a "
		    "backup in its place, or save what can be read (sqlite3 "
		    "%s/%s .recover)",
		    db->dir, db->file, db->dir, db->file);
	if (kind == SQLITE_BUSY)
		return err_set(e, ERR_DB,
		    "%s/%s is locked by another program: end it", db->dir,
		    db->file);
	if (kind == SQLITE_IOERR)
		return err_set(e, ERR_DB,
		    "database: input/output error %d in %s: %s", rc, db->dir,
		    strerror(sqlite3_system_errno(db->h)));
	return err_set(
	    e, ERR_DB, "database in %s: %s", db->dir, sqlite3_errmsg(db->h));
}

bool
db_is_doomed(const struct db *db)
{
	return db->doomed;
}

/* Names. */

/* How a file is opened.  Those behind the first change nothing, not even beside
 * the file. */
enum db_access {
	DB_ACCESS_OWN,
	DB_ACCESS_FILE,   /* no WAL: "immutable" has SQLite make no files */
	DB_ACCESS_SHARED, /* a server runs or was killed: its WAL is read, by
			     "readonly_shm" without a write to its locks */
	/* A WAL without its -shm, which was not copied: nobody has it open.
	 * Without locks SQLite keeps the WAL-index in memory, if its locking
	 * mode is EXCLUSIVE before the first read. */
	DB_ACCESS_COPY
};

static const char *const queries[] = {[DB_ACCESS_FILE] = "?immutable=1",
    [DB_ACCESS_SHARED] = "?readonly_shm=1",
    [DB_ACCESS_COPY] = "?vfs=unix-none"};

static enum db_access
access_to_look(const char *path)
{
	AUTO(auto_free) char *wal = xasprintf("%s-wal", path);
	AUTO(auto_free) char *shm = xasprintf("%s-shm", path);
	struct stat st;

	if (stat(wal, &st) == -1 || st.st_size == 0)
		return DB_ACCESS_FILE;
	return access(shm, F_OK) == 0 ? DB_ACCESS_SHARED : DB_ACCESS_COPY;
}

static char *
name_of(const char *path, enum db_access how)
{
	struct buf b;
	char *name;

	if (how == DB_ACCESS_OWN)
		return xstrdup(path);
	buf_init(&b, NAME_BYTES_MAX);
	(void)buf_printf(&b, "file:");
	for (const char *p = path; *p != '\0'; p++)
		(void)buf_printf(&b,
		    strchr("%?#", *p) != NULL ? "%%%02x" : "%c",
		    (unsigned char)*p);
	(void)buf_printf(&b, "%s", queries[how]);
	name = xstrndup((const char *)buf_data(&b), buf_len(&b));
	buf_clear(&b);
	return name;
}

/* Opening and closing. */

/*
 * SQLite would make the file readable for all, and the specs in it hold
 * environment values.  Its WAL takes the mode of the file.
 */
static int
create_file(const char *path, struct err *e)
{
	int fd = open(
	    path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
	struct stat st;

	if (fd == -1)
		return err_set(e, ERR_DB, "%s cannot be opened to write: %s",
		    path, strerror(errno));
	if (fstat(fd, &st) == -1 || !S_ISREG(st.st_mode)) {
		(void)close(fd);
		return err_set(e, ERR_DB, "%s is no regular file", path);
	}
	(void)close(fd);
	return 0;
}

static bool
is_history(enum db_role role)
{
	return role == DB_HISTORY_WRITER || role == DB_HISTORY_READER;
}

static bool
is_writer(enum db_role role)
{
	return role == DB_WRITER || role == DB_HISTORY_WRITER;
}

/* For DB_ACCESS_COPY: the end of the connection must not copy the WAL into the
 * file and remove it. */
static int
keep_wal(struct db *db, struct err *e)
{
	int rc =
	    sqlite3_db_config(db->h, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);

	return rc == SQLITE_OK ? db_exec(db, DB_SET_EXCLUSIVE, e) :
				 db_fail(db, rc, e);
}

static int
configure(struct db *db, enum db_role role, struct err *e)
{
	/* In memory: else a savepoint's journal could carry a spec into a
	 * temporary file. */
	static const char settings[] =
	    "PRAGMA foreign_keys = ON; PRAGMA mmap_size = 0;"
	    "PRAGMA temp_store = MEMORY; PRAGMA secure_delete = ON";

	if (is_history(role) && history_words_install(db->h) != SQLITE_OK)
		return err_set(
		    e, ERR_DB, "this SQLite has no FTS5: install one that has");
	/* NORMAL: after a power loss the index is made anew. */
	if (db_exec_text(db,
		is_history(role) ? "PRAGMA synchronous = NORMAL" :
				   "PRAGMA synchronous = FULL",
		e) != 0 ||
	    db_exec_text(db, settings, e) != 0)
		return e->code;
	/* Only the writer's thread checkpoints, at a time of its choice. */
	(void)sqlite3_wal_autocheckpoint(db->h, 0);
	return is_writer(role) ? 0 : db_exec(db, DB_SET_QUERY_ONLY, e);
}

int
db_open(const char *dir, enum db_role role, struct db **out, struct err *e)
{
	const char *file = is_history(role) ? DB_HISTORY_FILE : DB_FILE;
	AUTO(auto_free) char *path = xasprintf("%s/%s", dir, file);
	enum db_access how =
	    role == DB_LOOK ? access_to_look(path) : DB_ACCESS_OWN;
	AUTO(auto_free) char *name = name_of(path, how);
	struct err why = {0};
	struct db *db;
	int rc;

	if (is_writer(role) && create_file(path, e) != 0)
		return ERR_DB;
	if (role == DB_LOOK && access(path, F_OK) == -1 && errno == ENOENT)
		return err_set(e, ERR_NOTFOUND, "%s is not there", path);
	db = xcalloc(1, sizeof(*db));
	db->dir = xstrdup(dir);
	db->file = file;
	rc = sqlite3_open_v2(name, &db->h,
	    SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE |
		(role == DB_LOOK ? SQLITE_OPEN_READONLY | SQLITE_OPEN_URI :
				   SQLITE_OPEN_READWRITE),
	    NULL);
	if (rc != SQLITE_OK) {
		rc = err_set(e, ERR_DB, "%s cannot be opened: %s", path,
		    sqlite3_errstr(rc));
		db_close(db);
		return rc;
	}
	(void)sqlite3_busy_timeout(db->h, DB_BUSY_MS);
	rc = how == DB_ACCESS_COPY ? keep_wal(db, &why) : 0;
	if (rc == 0)
		rc = configure(db, role, &why);
	if (rc != 0) {
		db_close(db);
		return err_set(e, rc, "%s", why.msg);
	}
	*out = db;
	return 0;
}

void
db_close(struct db *db)
{
	if (db == NULL)
		return;
	for (size_t i = 0; i < ARRAY_LEN(db->st); i++)
		(void)sqlite3_finalize(db->st[i]);
	(void)sqlite3_close(db->h);
	free(db->dir);
	free(db);
}

static int
wal_hook_cb(void *arg, sqlite3 *h, const char *name, int pages)
{
	struct db *db = arg;

	(void)h;
	(void)name;
	db->wal_pages = pages > 0 ? (uint64_t)pages : 0;
	if (db->feed != NULL)
		feed_committed(db->feed);
	return SQLITE_OK;
}

static void
update_hook_cb(void *arg, int what, const char *database, const char *table,
    sqlite3_int64 row)
{
	(void)what;
	(void)database;
	if (strcmp(table, "run") == 0)
		feed_touched(arg, row);
}

static void
rollback_hook_cb(void *arg)
{
	feed_undone(arg);
}

void
db_watch_runs(struct db *db, struct feed *feed)
{
	db->feed = feed;
	(void)sqlite3_update_hook(db->h, update_hook_cb, feed);
	(void)sqlite3_rollback_hook(db->h, rollback_hook_cb, feed);
}

int64_t
db_changes(const struct db *db)
{
	return sqlite3_total_changes64(db->h);
}

int
db_use_wal(struct db *db, struct err *e)
{
	AUTO(auto_free) char *mode = NULL;
	struct db_call c;
	int rc;

	db_call_init(&c, db, DB_SET_WAL);
	rc = db_call_step(&c, e);
	if (rc < 0)
		return rc;
	if (rc == 1) {
		mode = db_get_text(&c);
		db_call_end(&c);
	}
	if (mode == NULL || strcmp(mode, "wal") != 0)
		return err_set(e, ERR_DB,
		    "%s: the file system cannot share memory between "
		    "processes: use a local one",
		    db->dir);
	(void)sqlite3_wal_hook(db->h, wal_hook_cb, db);
	return 0;
}

void
db_rest(struct db *db)
{
	(void)sqlite3_db_release_memory(db->h);
}

int
db_checkpoint(struct db *db, enum db_wal wal, struct err *e)
{
	int rc;

	/* A reader in the way is tried again later, not waited for. */
	(void)sqlite3_busy_timeout(db->h, 50);
	rc = sqlite3_wal_checkpoint_v2(db->h, NULL,
	    wal == DB_WAL_TRUNCATE ? SQLITE_CHECKPOINT_TRUNCATE :
				     SQLITE_CHECKPOINT_RESTART,
	    NULL, NULL);
	(void)sqlite3_busy_timeout(db->h, DB_BUSY_MS);
	if ((rc & 0xff) == SQLITE_BUSY)
		return err_set(e, ERR_CONFLICT, "a reader is in the way");
	if (rc != SQLITE_OK)
		return db_fail(db, rc, e);
	db->wal_pages = 0;
	return 0;
}

uint64_t
db_wal_bytes(const struct db *db)
{
	return db->wal_pages * (DB_PAGE_BYTES + WAL_FRAME_HEADER);
}

uint64_t
db_wal_size(const struct db *db)
{
	AUTO(auto_free)
	char *path = xasprintf("%s/%s-wal", db->dir, db->file);
	struct stat st;

	return stat(path, &st) == 0 ? (uint64_t)st.st_size : 0;
}

/* Statements. */

void
db_call_init(struct db_call *c, struct db *db, enum db_query q)
{
	*c = (struct db_call){.db = db, .q = q, .at = 1};
	if (db->st[q] == NULL)
		c->rc = sqlite3_prepare_v3(db->h, db_sql[q], -1,
		    SQLITE_PREPARE_PERSISTENT, &db->st[q], NULL);
}

void
db_put_int(struct db_call *c, int64_t v)
{
	if (c->rc == SQLITE_OK)
		c->rc = sqlite3_bind_int64(c->db->st[c->q], c->at++, v);
}

void
db_put_uint(struct db_call *c, uint64_t v)
{
	db_put_int(c, (int64_t)v);
}

void
db_put_text(struct db_call *c, const char *s)
{
	if (c->rc == SQLITE_OK)
		c->rc = sqlite3_bind_text(c->db->st[c->q], c->at++,
		    s == NULL ? "" : s, -1, SQLITE_STATIC);
}

void
db_put_blob(struct db_call *c, const void *p, size_t n)
{
	if (c->rc == SQLITE_OK)
		c->rc = sqlite3_bind_blob64(
		    c->db->st[c->q], c->at++, p, n, SQLITE_STATIC);
}

void
db_put_null(struct db_call *c)
{
	if (c->rc == SQLITE_OK)
		c->rc = sqlite3_bind_null(c->db->st[c->q], c->at++);
}

void
db_call_end(struct db_call *c)
{
	sqlite3_stmt *st = c->db->st[c->q];

	if (st == NULL) /* unlike reset, clear_bindings does not take it */
		return;
	(void)sqlite3_reset(st);
	(void)sqlite3_clear_bindings(st);
}

int
db_call_step(struct db_call *c, struct err *e)
{
	int rc = c->rc;

	if (rc == SQLITE_OK)
		rc = sqlite3_step(c->db->st[c->q]);
	if (rc == SQLITE_ROW) {
		c->at = 0;
		return 1;
	}
	rc = rc == SQLITE_DONE ? 0 : db_fail(c->db, rc, e);
	db_call_end(c); /* after db_fail: reset clears the message */
	return rc;
}

int
db_call_run(struct db_call *c, struct err *e)
{
	int rc;

	while ((rc = db_call_step(c, e)) == 1)
		;
	return rc;
}

int
db_call_run_one(struct db_call *c, struct err *e)
{
	int rc = db_call_run(c, e);

	if (rc == 0 && sqlite3_changes64(c->db->h) == 0)
		rc = err_set(e, ERR_NOTFOUND, "not found");
	return rc;
}

int
db_call_has_row(struct db_call *c, struct err *e)
{
	int rc = db_call_step(c, e);

	if (rc == 1)
		db_call_end(c);
	return rc;
}

int64_t
db_get_int(struct db_call *c)
{
	return sqlite3_column_int64(c->db->st[c->q], c->at++);
}

uint64_t
db_get_uint(struct db_call *c)
{
	return (uint64_t)db_get_int(c);
}

uint32_t
db_get_u32(struct db_call *c)
{
	return (uint32_t)db_get_int(c);
}

char *
db_get_text(struct db_call *c)
{
	sqlite3_stmt *st = c->db->st[c->q];
	const unsigned char *s = sqlite3_column_text(st, c->at);
	int n = sqlite3_column_bytes(st, c->at);

	c->at++;
	return s == NULL ? xstrdup("") : xstrndup((const char *)s, (size_t)n);
}

const char *
db_get_word(struct db_call *c)
{
	const unsigned char *s = sqlite3_column_text(c->db->st[c->q], c->at++);

	return s == NULL ? "" : (const char *)s;
}

uint8_t *
db_get_blob(struct db_call *c, size_t *n)
{
	sqlite3_stmt *st = c->db->st[c->q];
	int type = sqlite3_column_type(st, c->at);
	const void *p = sqlite3_column_blob(st, c->at);

	*n = (size_t)sqlite3_column_bytes(st, c->at);
	c->at++;
	if (type == SQLITE_NULL)
		return NULL;
	return xmemdup(p == NULL ? "" : p, *n);
}

void
db_get_bytes(struct db_call *c, void *to, size_t n)
{
	sqlite3_stmt *st = c->db->st[c->q];
	const void *p = sqlite3_column_blob(st, c->at);

	if (p != NULL && (size_t)sqlite3_column_bytes(st, c->at) == n)
		memcpy(to, p, n);
	else
		memset(to, 0, n);
	c->at++;
}

/* Whole statements. */

int
db_exec(struct db *db, enum db_query q, struct err *e)
{
	struct db_call c;

	db_call_init(&c, db, q);
	return db_call_run(&c, e);
}

int
db_exec_with(struct db *db, enum db_query q, uint64_t v, struct err *e)
{
	return db_exec_at(db, q, (int64_t)v, e);
}

int
db_exec_at(struct db *db, enum db_query q, int64_t v, struct err *e)
{
	struct db_call c;

	db_call_init(&c, db, q);
	db_put_int(&c, v);
	return db_call_run(&c, e);
}

int
db_ask_with(
    struct db *db, enum db_query q, uint64_t v, uint64_t *out, struct err *e)
{
	struct db_call c;
	int rc;

	*out = 0;
	db_call_init(&c, db, q);
	db_put_uint(&c, v);
	rc = db_call_step(&c, e);
	if (rc == 1) {
		*out = db_get_uint(&c); /* NULL is 0 */
		db_call_end(&c);
	}
	return rc < 0 ? rc : 0;
}

int
db_exec_int(struct db *db, enum db_query q, int64_t *out, struct err *e)
{
	struct db_call c;
	int rc;

	db_call_init(&c, db, q);
	rc = db_call_step(&c, e);
	if (rc < 0)
		return rc;
	if (rc == 0)
		return err_set(e, ERR_NOTFOUND, "database: no row");
	*out = db_get_int(&c);
	db_call_end(&c);
	return 0;
}

int
db_exec_text(struct db *db, const char *sql, struct err *e)
{
	int rc = sqlite3_exec(db->h, sql, NULL, NULL, NULL);

	return rc == SQLITE_OK ? 0 : db_fail(db, rc, e);
}

/* Other than 0: the statement ends. */
static int
progress_cb(void *arg)
{
	const struct db *db = arg;

	if (db->on_progress != NULL)
		db->on_progress(db->on_progress_arg);
	return (db->canceled != NULL && atomic_load(db->canceled)) ||
	    (db->deadline_ms != 0 && clock_mono_ms() >= db->deadline_ms);
}

/* FTS5 looks through its pages inside of one step, but reads each by a small
 * statement, and these count. */
static void
set_handler(struct db *db)
{
	int steps = db->on_progress != NULL ? PROGRESS_STEPS : 0;

	if (db->deadline_ms != 0 || db->canceled != NULL)
		steps = DEADLINE_STEPS;
	sqlite3_progress_handler(db->h, steps, progress_cb, db);
}

void
db_on_progress(struct db *db, void (*cb)(void *arg), void *arg)
{
	db->on_progress = cb;
	db->on_progress_arg = arg;
	set_handler(db);
}

void
db_set_deadline(struct db *db, uint64_t mono_ms)
{
	db->deadline_ms = mono_ms;
	set_handler(db);
}

void
db_set_cancel(struct db *db, const atomic_bool *canceled)
{
	db->canceled = canceled;
	set_handler(db);
}

int
db_begin(struct db *db, struct err *e)
{
	db->doomed = false;
	return db_exec(db, DB_BEGIN, e);
}

bool
db_is_begun(const struct db *db)
{
	return sqlite3_get_autocommit(db->h) == 0;
}

void
db_rollback(struct db *db)
{
	struct err ignored;

	/* SQLite may have rolled back by itself. */
	if (db_is_begun(db) && db_exec(db, DB_ROLLBACK, &ignored) != 0)
		db->doomed = true;
}

/* In a transaction that reads: the pages stay those of its beginning, and
 * nobody's write has it begin again. */
int
db_copy(struct db *from, struct db *to,
    void (*told)(uint64_t done, uint64_t all, void *arg), void *arg,
    struct err *e)
{
	sqlite3_backup *b = sqlite3_backup_init(to->h, "main", from->h, "main");
	int rc = SQLITE_OK;

	if (b == NULL)
		return db_fail(to, sqlite3_extended_errcode(to->h), e);
	while (rc == SQLITE_OK) {
		uint64_t all;

		rc = sqlite3_backup_step(b, COPY_PAGES);
		all = (uint64_t)sqlite3_backup_pagecount(b);
		told((all - (uint64_t)sqlite3_backup_remaining(b)) *
			DB_PAGE_BYTES,
		    all * DB_PAGE_BYTES, arg);
	}
	rc = sqlite3_backup_finish(b);
	return rc == SQLITE_OK ? 0 : db_fail(to, rc, e);
}
