/*
 * store.h - the database: SQLite behind a writer and a reader thread
 *
 * WAL, synchronous=FULL.  Writes are queued and committed together by one
 * writer thread (group commit: all that wait make one transaction, each in a
 * savepoint of its own so that one failure harms no other); reads run on a
 * reader thread.  The calling thread, the event loop's, never waits: each
 * call copies what it needs and returns, and its callback runs later on the
 * loop's thread, in the order of submission per thread.  A write's callback
 * with rc 0 means: on disk.
 *
 * A full disk fails the writes that hit it (rc ERR_DB, a text that says so)
 * and nothing else; the store goes on when there is room again.
 *
 * Only service/ uses this header.  Times are wall-clock milliseconds, 0: not
 * set.  Strings in rows are never NULL ("" when absent) unless said.
 */
#ifndef STORE_STORE_H
#define STORE_STORE_H

#include "common/base.h"
#include "common/err.h"
#include "common/uuid.h"
#include "supervisor/store/rows_gen.h"

struct store;
struct event_base;

#define STORE_TENANT_DEFAULT 1 /* the built-in tenant, named "default" */

/* While so much waits to be written, new rows (store_sandbox_put,
 * store_run_insert, store_event) are refused with ERR_LIMIT; what ends a run
 * is always taken. */
#define STORE_QUEUE_MAX 20000
#define STORE_QUEUE_BYTES_MAX (256u << 20)

/*
 * The rows, struct store_sandbox, store_run with its store_command and
 * store_artifact, and their clear and copy are generated from schema/rows.txt.
 * Numbers of a row are given out by the caller (store_snapshot says where to
 * begin), so a run can be sent to a worker before its row is on disk.
 */
#define STORE_INLINE_MAX 16384

/* What a starting front needs, read before the loop runs. */
struct store_snapshot {
	uint64_t next_sandbox; /* first unused numbers */
	uint64_t next_run;
	uint64_t next_event;
	struct store_sandbox *sandboxes; /* not removed, not lost */
	size_t nsandboxes;
	struct store_run *runs; /* queued or running, with spec, oldest first */
	size_t nruns;
};
void store_snapshot_clear(struct store_snapshot *s);

/*
 * store_open - open or create dir/mcp-sandboxd.db, migrate, start the threads
 *
 * Not on the loop's way: called before it runs.  Fails with a clear text when
 * the directory cannot be written, the file is no database, is locked, or was
 * made by a newer version.
 */
int store_open(struct event_base *base, const char *dir, struct store **out,
    struct err *e) MUSTCHECK;
/* store_close - commits what is queued, calls no callback any more, joins;
 * may be called from a callback */
void store_close(struct store *s);
int store_snapshot(
    struct store *s, struct store_snapshot *out, struct err *e) MUSTCHECK;

/* rc 0 or a negative ERR_*, why is NULL when rc is 0. */
typedef void (*store_done_cb)(int rc, const struct err *why, void *arg);

/* Writes.  Rows are copied; done may be NULL. */
void store_sandbox_put(struct store *s, const struct store_sandbox *row,
    store_done_cb done, void *arg); /* insert or replace */
/* STORE_SOON: nobody waits for this one alone; it goes with the next write, or
 * after 30 ms.  A run that ends before is written once, as it ended, and its
 * spec never. */
enum store_when {
	STORE_NOW,
	STORE_SOON
};
void store_run_insert(struct store *s, const struct store_run *row,
    enum store_when when, store_done_cb done, void *arg); /* with commands */
/* store_run_move - a queued run to another sandbox */
void store_run_move(struct store *s, uint64_t run, uint64_t sandbox,
    const char *sandbox_name, store_done_cb done, void *arg);
/* store_run_end - the last word: state, commands, artifacts (blobs' reference
 * counts with them), log or spool length; the spec is wiped */
void store_run_end(struct store *s, const struct store_run *row,
    store_done_cb done, void *arg);
/* store_event - a row of the tenant's event table; data_json may be "" */
void store_event(struct store *s, uint64_t tenant, const char *kind,
    const char *subject, const char *data_json, int64_t at_ms);

/* Blobs that lost their last reference and runs whose spool can go, for the
 * caller to unlink in this very callback; called on the loop's thread.  A blob
 * that a store_run_end under way refers to again is not among them; one that a
 * run has committed to the spool but not yet given to store_run_end is for the
 * caller to spare. */
typedef void (*store_trim_cb)(int rc, const struct uuid *runs, size_t nruns,
    const uint8_t (*blobs)[32], size_t nblobs, uint64_t tenant, void *arg);
/* store_trim - forget ended runs of a tenant beyond the newest keep, oldest
 * first, at most 500 a call (fewer when they left many artifacts; call again
 * as long as nruns is not 0).  With them go sandboxes that ended before the
 * oldest run that is left, and events beyond the newest STORE_EVENTS_KEEP. */
#define STORE_EVENTS_KEEP 100000
void store_trim(struct store *s, uint64_t tenant, uint64_t keep,
    store_trim_cb done, void *arg);

/* Reads.  The row is the callback's to read, freed after it returns; NULL
 * with rc ERR_NOTFOUND when there is none for this tenant. */
typedef void (*store_run_cb)(
    int rc, const struct store_run *row, const struct err *why, void *arg);
void store_run_get(struct store *s, uint64_t tenant, const struct uuid *uuid,
    store_run_cb done, void *arg);
typedef void (*store_artifact_cb)(
    int rc, const struct store_artifact *row, const struct err *why, void *arg);
/* run NULL: "latest", the newest run of the identifier that left this path */
void store_artifact_get(struct store *s, uint64_t tenant,
    const char *identifier, const struct uuid *run, const char *path,
    store_artifact_cb done, void *arg);

struct store_counts {
	uint64_t runs_completed, runs_failed, runs_canceled;
	uint64_t commands_completed, commands_failed, commands_timed_out;
};
/* store_counts - totals over the whole database, for the metrics after a
 * restart; before the loop runs */
int store_counts(
    struct store *s, struct store_counts *out, struct err *e) MUSTCHECK;

struct store_stats { /* since start, for /metrics */
	uint64_t writes, commits, failures;
	uint64_t queue;         /* waiting now */
	uint64_t last_error_ms; /* wall clock, 0: none */
};
void store_stats(const struct store *s, struct store_stats *out);

#endif
