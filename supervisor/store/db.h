/*
 * db.h - one connection to the database; the only place that knows sqlite3
 *
 * A connection belongs to one thread at a time.  A statement is used through
 * a struct db_call on the stack:
 *
 *	db_call_init(&c, db, DB_RUN_MOVE);
 *	db_put_uint(&c, run);			parameters in order
 *	...
 *	rc = db_call_run(&c, e);		or step, get..., step
 *
 * What is put must stay until the call has run.  Errors on the way are kept
 * and come out of run or step.  A statement can be in one call at a time.
 */
#ifndef STORE_DB_H
#define STORE_DB_H

#include <stdatomic.h>

#include "common/base.h"
#include "common/err.h"
#include "supervisor/store/sql.h"

#define DB_FILE "mcp-sandboxd.db"
#define DB_HISTORY_FILE "history.db" /* the index of runs, history_index.h */
#define DB_PAGE_BYTES 4096 /* SQLite's default; only estimates hang on it */
#define DB_BUSY_MS 3000    /* how long another program may hold a lock */

struct db;
struct tally;
enum db_role {
	DB_WRITER,
	DB_READER,
	DB_LOOK,           /* changes nothing, not even beside the file */
	DB_HISTORY_WRITER, /* both of DB_HISTORY_FILE */
	DB_HISTORY_READER
};

/*
 * db_open - open dir/mcp-sandboxd.db, or the role's file; a writer creates it
 *
 * Sets everything but the journal mode, so that a file that turns out not to
 * be ours is left as it is; db_use_wal follows when it is.  To DB_LOOK a file
 * that is missing is ERR_NOTFOUND.
 */
int db_open(const char *dir, enum db_role role, struct db **out,
    struct err *e) MUSTCHECK;
void db_close(struct db *db); /* NULL is fine */
int db_use_wal(struct db *db, struct err *e) MUSTCHECK;
const char *db_dir(const struct db *db);
/* db_watch_runs - each row of the table run that is written or removed, then
 * the end of its transaction; after db_use_wal */
struct feed;
void db_watch_runs(struct db *db, struct feed *feed);
/* db_changes - rows changed on this connection, ever */
int64_t db_changes(const struct db *db);
/* db_tally - tally.c's, of the transaction that is under way */
struct tally *db_tally(struct db *db);

/* db_copy - all of from as it reads it now, into the empty database to; told
 * is called now and then with bytes.  ERR_DB */
int db_copy(struct db *from, struct db *to,
    void (*told)(uint64_t done, uint64_t all, void *arg), void *arg,
    struct err *e) MUSTCHECK;

/* db_exec - a statement without parameters; rows are passed over */
int db_exec(struct db *db, enum db_query q, struct err *e) MUSTCHECK;
/* db_exec_with, db_exec_at - one whose only parameter is a number */
int db_exec_with(
    struct db *db, enum db_query q, uint64_t v, struct err *e) MUSTCHECK;
int db_exec_at(
    struct db *db, enum db_query q, int64_t v, struct err *e) MUSTCHECK;
/* db_on_progress - while a statement goes on, cb is called now and then; NULL:
 * nobody any more */
void db_on_progress(struct db *db, void (*cb)(void *arg), void *arg);
/* db_set_deadline - what reads beyond it (clock_mono_ms) fails with ERR_LIMIT;
 * 0: none any more */
void db_set_deadline(struct db *db, uint64_t mono_ms);
/* db_set_cancel - what reads fails with ERR_LIMIT once *canceled is true, which
 * any thread may make it; NULL: nobody cancels any more */
void db_set_cancel(struct db *db, const atomic_bool *canceled);
/* db_exec_text - several statements, for migrations */
int db_exec_text(struct db *db, const char *sql, struct err *e) MUSTCHECK;
/* db_exec_int - a statement's first column of its first row; ERR_NOTFOUND */
int db_exec_int(
    struct db *db, enum db_query q, int64_t *out, struct err *e) MUSTCHECK;
/* db_ask_with - the same of one whose only parameter is a number; no row: 0 */
int db_ask_with(struct db *db, enum db_query q, uint64_t v, uint64_t *out,
    struct err *e) MUSTCHECK;

/*
 * db_is_doomed - an error since db_begin that concerns the transaction, not
 * one statement of it (disk full, input/output, ...): roll it all back
 */
bool db_is_doomed(const struct db *db);
int db_begin(struct db *db, struct err *e) MUSTCHECK; /* to write */
bool db_is_begun(const struct db *db);
void db_rollback(struct db *db); /* as far as there is a transaction */

enum db_wal {
	DB_WAL_REUSE,
	DB_WAL_TRUNCATE
};
/* db_rest - nothing is expected of it for a while: pages at hand are given up
 */
void db_rest(struct db *db);
/* db_checkpoint - copy the WAL into the file, then let it be written from its
 * beginning again, or truncate it; ERR_CONFLICT when a reader is in the way
 * just now */
int db_checkpoint(struct db *db, enum db_wal wal, struct err *e) MUSTCHECK;
uint64_t db_wal_bytes(const struct db *db); /* as of the last commit */
/* db_wal_size - of its file; 0 when there is none */
uint64_t db_wal_size(const struct db *db);

struct db_call {
	struct db *db;
	enum db_query q;
	int rc; /* of sqlite3, the first that was not OK */
	int at; /* next parameter or column */
};
void db_call_init(struct db_call *c, struct db *db, enum db_query q);
void db_put_int(struct db_call *c, int64_t v);
void db_put_uint(struct db_call *c, uint64_t v);    /* 64 bits, kept by sign */
void db_put_text(struct db_call *c, const char *s); /* NULL: "" */
void db_put_blob(struct db_call *c, const void *p, size_t n); /* or NULL */
void db_put_null(struct db_call *c);
int db_call_run(struct db_call *c, struct err *e) MUSTCHECK;
/* db_call_run_one - like run, ERR_NOTFOUND when no row was changed; the text
 * is then the caller's to put */
int db_call_run_one(struct db_call *c, struct err *e) MUSTCHECK;
/* db_call_step - 1: a row, get its columns in order; 0: no more */
int db_call_step(struct db_call *c, struct err *e) MUSTCHECK;
/* db_call_has_row - 1, and the call is over; 0: no row */
int db_call_has_row(struct db_call *c, struct err *e) MUSTCHECK;
void db_call_end(struct db_call *c); /* before step said 0 or an error */
int64_t db_get_int(struct db_call *c);
uint64_t db_get_uint(struct db_call *c);
uint32_t db_get_u32(struct db_call *c);
char *db_get_text(struct db_call *c); /* a copy, never NULL */
/* db_get_word - not a copy: good until the next column; never NULL */
const char *db_get_word(struct db_call *c);
/* db_get_blob - a copy, NULL for SQL's NULL only */
uint8_t *db_get_blob(struct db_call *c, size_t *n);
/* db_get_bytes - a blob of exactly n bytes; zeroes when it is not */
void db_get_bytes(struct db_call *c, void *to, size_t n);

#endif
