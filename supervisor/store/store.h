/*
 * store.h - what must outlive the process: SQLite, run logs, artifact files
 *
 * WAL, synchronous=FULL.  Writes are queued and committed together by one
 * writer thread (group commit: all that wait make one transaction, each in a
 * savepoint of its own so that one failure harms no other); reads run on a
 * reader thread.  The calling thread, the event loop's, never waits for the
 * database.
 *
 * The store keeps the order between rows and files, so that a crash at any
 * moment leaves nothing that is wrong, and no caller can forget it:
 *	- a run's log has its name before its row can be on disk;
 *	- what is in files is on disk before the row that counts it: a log that
 *	  is not in its row, artifacts, and their names (syncer.h);
 *	- a row that says "the log is in here" is on disk before the file goes;
 *	- a row is gone from the disk before its files are;
 *	- a blob's file goes only when no row counts it and no unfinished run
 *	  has committed it.
 * What a crash leaves over (files that no row wants) is removed after
 * store_open, on the writer's thread; but not beside a database that was new
 * while there were files (spool.h, SPOOL_KEEP).
 *
 * Callbacks.  They run on the loop's thread, never inside the call that was
 * given them, each once.  Writes call back in the order of their commits,
 * which is that of submission, but for a run's begin that was given
 * STORE_SOON: that takes its place right before its run's end or move, or
 * when it is due; and for artifacts and ends of runs with files, which take
 * theirs when the disk has the files.  Reads call back in the order in which
 * they were asked; the two orders are apart.  A write's rc 0 means: on disk.
 * A callback may call the store, store_close too; after store_close none is
 * called any more.
 *
 * A full disk fails the writes that hit it (rc ERR_DB or ERR_SYS, a text that
 * says so) and nothing else; the store goes on when there is room again.
 *
 * Times are wall-clock milliseconds, 0: not set.  A text of a row that is
 * NULL counts as "".
 */
#ifndef STORE_STORE_H
#define STORE_STORE_H

#include "common/base.h"
#include "common/err.h"
#include "common/principal.h"
#include "common/room.h"
#include "common/uuid.h"
#include "supervisor/store/rows_gen.h"

struct store;
struct event_base;

#define STORE_TENANT_DEFAULT 1 /* the built-in tenant, named "default" */

/* What a run was asked to do is in its row when it ends, if its spec has no
 * more bytes (row->asked_bytes); of more, the commands' texts may be "" there.
 */
#define STORE_ASKED_KEEP 4096

/* While so much waits to be written, new rows (store_sandbox_put,
 * store_run_begin) are refused with ERR_LIMIT; what ends a run is always
 * taken. */
#define STORE_QUEUE_MAX 20000
#define STORE_QUEUE_BYTES_MAX (256u << 20)

/*
 * The rows, struct store_sandbox, store_run with its store_command and
 * store_artifact, and their clear and copy are generated from schema/rows.txt.
 * Numbers of a row are given out by the caller (store_snapshot says where to
 * begin), so a run can be sent to a worker before its row is on disk.
 */
#define STORE_INLINE_MAX 16384
#define STORE_DIGEST_MAX (1u << 20)

/* What a starting front needs, read before the loop runs. */
struct store_snapshot {
	uint64_t next_sandbox; /* first unused numbers */
	uint64_t next_run;
	struct store_sandbox *sandboxes; /* not removed, not lost */
	size_t nsandboxes;
	struct store_run *runs; /* queued or running, with spec, oldest first */
	size_t nruns;
	struct store_sandbox *ended; /* removed or lost ones of these runs, by
				      * their numbers */
	size_t nended;
};
void store_snapshot_clear(struct store_snapshot *s);

/* store_look - whether store_open would take the database that is there, if
 * any, and whether it has a tenant or a token, by which requests want one;
 * nothing is changed, and a server may have it open */
int store_look(const char *dir, bool *wants_tokens, struct err *e) MUSTCHECK;
/*
 * store_open - open or create dir/mcp-sandboxd.db, migrate, start the threads
 *
 *	artifacts	where blobs are; NULL or "": dir/artifacts
 *
 * Not on the loop's way: called before it runs.  Fails with a clear text when
 * a directory cannot be written or is in use by another server, or the file is
 * locked; is no database or damaged (ERR_DAMAGED); is another program's, or
 * was made by a newer version (ERR_WRONG_STATE).
 */
int store_open(struct event_base *base, const char *dir, const char *artifacts,
    struct store **out, struct err *e) MUSTCHECK;
/* store_open_slow - the same; tell is called again and again, inside, while a
 * database of an earlier version is brought up to date, which may take
 * minutes */
struct store_progress {
	void (*tell)(void *arg);
	void *arg;
};
int store_open_slow(struct event_base *base, const char *dir,
    const char *artifacts, const struct store_progress *p, struct store **out,
    struct err *e) MUSTCHECK;
/*
 * store_on_damaged - what to call, once, when the database cannot be relied on
 * any more: damaged, or removed or replaced below the running server
 *
 * Nothing more is acknowledged then (ERR_DAMAGED).  The text says what to do;
 * starting again does not help.
 */
void store_on_damaged(
    struct store *s, void (*cb)(const struct err *why, void *arg), void *arg);
/* store_close - commits what is queued or held, calls no callback any more,
 * joins; may be called from a callback.  Logs that are still open must not be
 * used afterwards. */
void store_close(struct store *s);
/* store_snapshot - slim, unless it is NULL, is given each run as soon as it is
 * read, and may take away what need not be in memory */
int store_snapshot(struct store *s, void (*slim)(struct store_run *run),
    struct store_snapshot *out, struct err *e) MUSTCHECK;

/*
 * The directory: tenants, the tokens by which they are known, and their
 * quotas.  It is small and kept in memory (supervisor/core/tenants.h), which
 * says every change here.
 */
struct store_directory {              /* read before the loop runs */
	struct store_tenant *tenants; /* those of which something is left */
	size_t ntenants;
	struct store_token *tokens;
	size_t ntokens;
	struct store_grant *grants;
	size_t ngrants;
	uint64_t next_tenant; /* first unused number */
};
void store_directory_clear(struct store_directory *d);
/* store_directory_is_open - nobody has made a tenant or a token yet: requests
 * need none */
bool store_directory_is_open(uint64_t ntokens, uint64_t next_tenant);
int store_directory_read(
    struct store *s, struct store_directory *out, struct err *e) MUSTCHECK;

/* store_instance - whose database it is, "" when nobody said yet; before the
 * loop runs */
#define STORE_INSTANCE_MAX 32
int store_instance(
    struct store *s, char out[STORE_INSTANCE_MAX + 1], struct err *e) MUSTCHECK;

/* rc 0 or a negative ERR_*, why is NULL when rc is 0. */
typedef void (*store_done_cb)(int rc, const struct err *why, void *arg);

/* Writes.  Rows are copied; done may be NULL: a failure is logged then. */
void store_sandbox_put(struct store *s, const struct store_sandbox *row,
    store_done_cb done, void *arg); /* insert or replace */

/* Insert or replace. */
void store_tenant_put(struct store *s, const struct store_tenant *row,
    store_done_cb done, void *arg);
void store_token_put(struct store *s, const struct store_token *row,
    store_done_cb done, void *arg);
void store_grant_put(struct store *s, const struct store_grant *row,
    store_done_cb done, void *arg);
/* Remove; none there is fine. */
void store_grant_drop(struct store *s, struct tenant_id tenant, const char *key,
    store_done_cb done, void *arg);
void store_token_drop(
    struct store *s, const char *id, store_done_cb done, void *arg);
/* store_tenant_erase - nothing of it may be left but its row, its tokens,
 * quotas and secrets: these go, and the row gives its name up and says that it
 * is gone.  ERR_CONFLICT: runs or sandboxes are left */
void store_tenant_erase(struct store *s, struct tenant_id tenant,
    int64_t now_ms, store_done_cb done, void *arg);
/* store_tenant_usage - what its ended runs have in files; rc as in
 * store_run_get */
struct store_usage;
typedef void (*store_usage_cb)(
    int rc, const struct store_usage *usage, const struct err *why, void *arg);
void store_tenant_usage(
    struct store *s, struct tenant_id tenant, store_usage_cb done, void *arg);

/* Secrets, as they are sealed (supervisor/core/secrets.h has them in memory).
 * Use and drop look at the row's tenant and name; used_ms is use's to write. */
struct store_secrets { /* read before the loop runs */
	struct store_secret *rows;
	size_t n;
};
void store_secrets_clear(struct store_secrets *all);
int store_secrets_read(
    struct store *s, struct store_secrets *out, struct err *e) MUSTCHECK;
void store_secret_put(struct store *s, const struct store_secret *row,
    store_done_cb done, void *arg);
void store_secret_use(struct store *s, const struct store_secret *row);
void store_secret_drop(struct store *s, const struct store_secret *row,
    store_done_cb done, void *arg);

/* Webhooks (supervisor/core/webhooks.h has them in memory).  Drop looks at the
 * row's uuid. */
struct store_webhooks { /* read before the loop runs */
	struct store_webhook *rows;
	size_t n;
};
void store_webhooks_clear(struct store_webhooks *all);
int store_webhooks_read(
    struct store *s, struct store_webhooks *out, struct err *e) MUSTCHECK;
void store_webhook_put(struct store *s, const struct store_webhook *row,
    store_done_cb done, void *arg);
void store_webhook_drop(struct store *s, const struct store_webhook *row,
    store_done_cb done, void *arg);

/*
 * Tasks of the protocol: each stands for what a run comes to, for the principal
 * whose call began it; nobody else finds it, and nobody after its expires_ms.
 *
 * store_task_put: ERR_LIMIT: that one has max of them already.
 * store_task_cancel: at that time, unless it was before; none there is fine.
 * store_task_get: ERR_NOTFOUND.  store_task_list: newest first; after: behind
 * this one, whose uuid and created_ms count; NULL: from the newest on.  A row
 * and a page are the callback's to read.
 */
struct store_task_place {
	int64_t created_ms;
	struct uuid uuid;
};
struct store_task_page {
	struct store_task *rows;
	size_t n;
	bool has_more;
};
typedef void (*store_task_cb)(
    int rc, const struct store_task *row, const struct err *why, void *arg);
typedef void (*store_task_page_cb)(int rc, const struct store_task_page *page,
    const struct err *why, void *arg);
void store_task_put(struct store *s, const struct store_task *row, uint64_t max,
    store_done_cb done, void *arg);
/* store_task_check - may it have one more?  As store_task_put says */
void store_task_check(struct store *s, const struct principal *who,
    int64_t now_ms, uint64_t max, store_done_cb done, void *arg);
void store_task_cancel(struct store *s, const struct store_task *row,
    int64_t now_ms, store_done_cb done, void *arg);
void store_task_get(struct store *s, const struct principal *who,
    const struct uuid *uuid, int64_t now_ms, store_task_cb done, void *arg);
void store_task_list(struct store *s, const struct principal *who,
    const struct store_task_place *after, int64_t now_ms, size_t limit,
    store_task_page_cb done, void *arg);
/* store_tasks_expire - those that are to be gone by then go, in small steps */
void store_tasks_expire(struct store *s, int64_t now_ms);
/* store_tasks_read - those whose runs have not ended, before the loop runs */
void store_task_page_clear(struct store_task_page *all);
int store_tasks_read(
    struct store *s, struct store_task_page *out, struct err *e) MUSTCHECK;

/*
 * The audit: rows in a chain of hashes (audit_chain.h), numbered from 1 on
 * without gaps, and the chain's two ends in a row of their own.
 */
struct store_audit_mark {
	uint64_t seq;
	uint8_t hash[32];
};
/* store_audit_put - seq and hash are the store's to set.  done NULL: it goes
 * with the next write, or soon, and is tried again when it fails; else at
 * once. */
void store_audit_put(struct store *s, const struct store_audit *row,
    store_done_cb done, void *arg);
/* store_audit_keep - so many rows, some more for a while; from the next put */
#define STORE_AUDIT_KEEP 1000000
void store_audit_keep(struct store *s, uint64_t rows);
/* store_audit_check - the next piece of the chain; after NULL: from its
 * beginning, else found.at of the piece before; known: a hash to look for, or
 * NULL */
#define STORE_AUDIT_PIECE 5000
struct store_audit_check {
	uint64_t rows; /* checked now */
	struct store_audit_mark at;
	bool is_over;
	bool is_bad;
	uint64_t bad_seq; /* the first that is wrong */
	const char *what; /* static text */
	bool has_known;   /* a row of the piece, or base, has the hash known */
	struct store_audit_mark base, head;
};
typedef void (*store_audit_check_cb)(int rc,
    const struct store_audit_check *found, const struct err *why, void *arg);
void store_audit_check(struct store *s, const struct store_audit_mark *after,
    const uint8_t *known, store_audit_check_cb done, void *arg);
/* store_audit_list - newest first; the page is freed after done returns */
struct store_audit_filter {
	uint64_t before; /* 0: from the newest on */
	int64_t since_ms;
	const char *tenant; /* its acts and those about it; NULL: all */
	const char *what;   /* NULL: all */
	size_t limit;
};
struct store_audit_page {
	struct store_audit *rows;
	size_t n;
	uint64_t next; /* what filter.before is next; 0: no more */
};
typedef void (*store_audit_page_cb)(int rc, const struct store_audit_page *page,
    const struct err *why, void *arg);
void store_audit_list(struct store *s, const struct store_audit_filter *f,
    store_audit_page_cb done, void *arg);

void store_instance_put(
    struct store *s, const char *id, store_done_cb done, void *arg);

/*
 * A run's log file, from before its row until somebody was told its end.
 *
 * It has no name at first: one that is over at once needs none, and is gone
 * with its last descriptor.  The store names it when its row is about to be
 * written.  Counted: store_log_open gives one reference, store_log_ref
 * another, each is given up by store_log_close.  Who reads the file holds one
 * meanwhile: after the last the same file may become another run's log.
 * Blobs that come in for the run hang on it, too.
 */
struct store_log;
/* store_log_open - an empty one for a new run */
int store_log_open(struct store *s, const struct uuid *run,
    struct store_log **out, struct err *e) MUSTCHECK;
/* store_log_reopen - that of an unfinished run of the snapshot, as it was
 * left; empty when there is none */
int store_log_reopen(struct store *s, const struct uuid *run,
    struct store_log **out, struct err *e) MUSTCHECK;
struct store_log *store_log_ref(struct store_log *l);
void store_log_close(struct store_log *l); /* NULL is fine */
/* store_log_share - somebody who was sent its descriptor may write to it even
 * after its last store_log_close: the file will be no other run's */
void store_log_share(struct store_log *l);
/* store_log_length - of what is there now */
uint64_t store_log_length(const struct store_log *l);
/* store_log_fd - to append and read; borrowed: dup it to send it away */
int store_log_fd(const struct store_log *l);
/* store_log_hold - all that the log says, n bytes that are in no file; before
 * store_run_end, and once.  is_read: somebody reads the file already, and is
 * to find them there, if the disk takes them.  n 0: nothing happens.
 * store_log_held gives them, borrowed, or NULL. */
void store_log_hold(
    struct store_log *l, const uint8_t *p, size_t n, bool is_read);
const uint8_t *store_log_held(const struct store_log *l, size_t *n);
/* store_log_read - a descriptor of an ended run's log that is not in its row;
 * ERR_NOTFOUND */
int store_log_read(
    struct store *s, const struct uuid *run, struct err *e) MUSTCHECK;

/*
 * store_run_begin - the row of a new run, with its commands and its log's name
 *
 * STORE_SOON: whoever waits, waits for the end.  The row is held for up to 100
 * ms; when the run ends before, it is written once, as it ended, its spec
 * never, and its log needs no name.  Otherwise done has rc 0 when it is on
 * disk.  With another rc nothing is: the run must not be acknowledged, and no
 * end be given; ERR_SYS when its log could not be named.
 * log may be NULL (there is none); row->log is not looked at.
 */
enum store_when {
	STORE_NOW,
	STORE_SOON
};
void store_run_begin(struct store *s, const struct store_run *row,
    struct store_log *log, enum store_when when, store_done_cb done, void *arg);
/* store_command_is_cut - of a row that was read: its texts were so long that
 * only their beginning was kept (run_texts.h); store_run_is_cut - one of its
 * commands is */
static inline bool
store_command_is_cut(const struct store_command *k)
{
	return k->cwd[0] == '\0';
}
static inline bool
store_run_is_cut(const struct store_run *r)
{
	for (uint32_t i = 0; i < r->ncommands; i++)
		if (store_command_is_cut(&r->commands[i]))
			return true;
	return false;
}
/* store_run_hurry - somebody is to hear of this run: if its begin is held, it
 * goes now */
void store_run_hurry(struct store *s, uint64_t run);
/* store_run_move - a queued run to another sandbox */
void store_run_move(struct store *s, uint64_t run, uint64_t sandbox,
    const char *sandbox_name, store_done_cb done, void *arg);
/*
 * store_artifacts_put - some artifacts of an unfinished run (row->id, tenant
 * and artifacts; log, on which their blobs hang), with their blobs' reference
 * counts
 *
 * Nobody sees them before the run's end is on disk.  The same path again takes
 * the place of what was there: a collection may begin anew.  ERR_NOTFOUND,
 * ERR_WRONG_STATE: there is no such run, or it has ended.
 * store_putting_cancel - before done was called: it will not be.
 */
struct store_putting;
struct store_putting *store_artifacts_put(struct store *s,
    const struct store_run *row, struct store_log *log, store_done_cb done,
    void *arg);
void store_putting_cancel(struct store_putting *p);
/*
 * store_run_end - the last word: state, commands, the log, artifacts that were
 * not put before (row->artifacts_put: some may have been); the spec is wiped
 *
 * A log of at most STORE_INLINE_MAX bytes (row->spool_bytes) goes into the row
 * and its file away; a longer one stays where it is.  row->log is not looked
 * at: the store reads it.  With another rc than 0 nothing has changed; unless
 * the begin failed too (its done was called right before), try again.
 */
void store_run_end(struct store *s, const struct store_run *row,
    struct store_log *log, store_done_cb done, void *arg);

/*
 * Artifacts on their way in.  store_blob_begin gives a file to write to; then
 * store_blob_commit puts it under its digest, where the same bytes may be
 * already, or store_blob_abort removes it, as the log's last store_log_close
 * does with those that are left.  A committed blob stays at least until its
 * artifact's row is on disk, or the log is closed without one.
 *	file	tells the files of one run apart
 */
int store_blob_begin(
    struct store_log *l, uint32_t file, struct err *e) MUSTCHECK;
int store_blob_commit(struct store_log *l, uint32_t file,
    struct tenant_id tenant, const uint8_t sha256[32], struct err *e) MUSTCHECK;
void store_blob_abort(struct store_log *l, uint32_t file);
/* store_blob_read - a descriptor, or ERR_NOTFOUND; on any thread */
int store_blob_read(struct store *s, struct tenant_id tenant,
    const uint8_t sha256[32], struct err *e) MUSTCHECK;

/* store_trim - forget ended runs of a tenant beyond what is to be kept, oldest
 * first, with their logs, blobs nobody refers to any more, and sandboxes that
 * ended before the oldest run that is left.  Goes in small steps, between
 * which other writes are served; done when there is no more to do.
 *	keep.bytes	of rows (store_usage.row_bytes); for these alone the
 *			newest of the runs does not go, however large it is */
struct store_keep {
	uint64_t runs, bytes; /* UINT64_MAX: any */
};
#define STORE_KEEP_NONE ((struct store_keep){0, UINT64_MAX})
void store_trim(struct store *s, struct tenant_id tenant,
    struct store_keep keep, store_done_cb done, void *arg);

/* store_expire - forget ended runs of a tenant that ended before a time, and
 * have those that ended before another give up their files (as store_evict
 * does); 0: none.  Goes in small steps, as store_trim does. */
struct store_expiry {
	struct tenant_id tenant;
	int64_t runs_before_ms;
	int64_t files_before_ms;
};
struct store_expired {
	uint64_t runs;         /* forgotten */
	uint64_t files_of;     /* runs that gave up theirs, and are there */
	uint64_t files, bytes; /* of both */
};
typedef void (*store_expired_cb)(
    int rc, const struct store_expired *what, const struct err *why, void *arg);
void store_expire(struct store *s, const struct store_expiry *wish,
    store_expired_cb done, void *arg);

/* store_run_delete - forget an ended run, its log and artifacts.  ERR_NOTFOUND:
 * this tenant has none of that id; ERR_CONFLICT: it has not ended */
void store_run_delete(struct store *s, struct tenant_id tenant,
    const struct uuid *run, store_done_cb done, void *arg);

/*
 * store_evict - ended runs give up their logs in files and their artifacts,
 * until no tenant is over its quota (that of the wish, and the tenant's own
 * spool_mb and artifact_mb), all together are not over theirs, and as
 * much as is wished for was freed, or there is no more
 *
 * The oldest run of the tenant that is over, or has most, which has something
 * of what is wanted; but first those that were cut because the disk was full.
 *  Their rows stay: evicted_ms is set, what
 * is in the row stays, too, artifacts are listed and cannot be had any more.
 *
 * Then, where rows have more than they may, or files were not enough for the
 * disk that the database is on, whole runs are forgotten, the oldest of the
 * tenant whose rows have most.  The newest of each tenant stays.
 */
struct store_quota { /* 0: no bound */
	uint64_t bytes, files;
};
struct store_evict_wish {
	struct store_quota tenant, all;
	struct store_quota free; /* of whatever it is */
	/* Of logs, of artifacts, when each has a disk of its own. */
	struct store_quota free_logs, free_blobs;
	uint64_t rows;       /* bytes of all rows; 0: no bound */
	uint64_t free_rows;  /* bytes of the database's disk, files counted */
	uint64_t least_rows; /* of all: for free_rows they have to have more */
};
struct store_usage {
	/* beside the database: logs of ended runs, blobs of all */
	uint64_t log_files, log_bytes;
	uint64_t blob_files, blob_bytes;
	uint64_t evicted; /* runs, ever */
	/* in it: ended runs, and what their rows take */
	uint64_t runs, row_bytes;
};
struct store_evicted {
	uint64_t runs, files, bytes;
	struct store_quota blobs; /* of these */
	uint64_t forgotten;       /* runs with their rows */
	uint64_t row_bytes;       /* of these */
	struct store_usage usage; /* afterwards */
};
typedef void (*store_evicted_cb)(
    int rc, const struct store_evicted *what, const struct err *why, void *arg);
void store_evict(struct store *s, const struct store_evict_wish *wish,
    store_evicted_cb done, void *arg);

/* Reads.  The row is the callback's to read, freed after it returns; NULL
 * with rc ERR_NOTFOUND when there is none for this tenant. */
typedef void (*store_run_cb)(
    int rc, const struct store_run *row, const struct err *why, void *arg);
/* store_run_get - its artifacts, which it has when it has ended, are a page of
 * the list that is ordered by path: from artifacts_from on, at most so many.
 * store_getting_cancel - before done was called: it will not be */
#define STORE_ARTIFACTS_PAGE 1000
#define STORE_ARTIFACTS_PAGE_BYTES (128u << 10) /* of names, and one more */
struct store_getting;
struct store_getting *store_run_get(struct store *s, struct tenant_id tenant,
    const struct uuid *uuid, uint32_t artifacts_from, store_run_cb done,
    void *arg);
void store_getting_cancel(struct store_getting *g);
/* store_sandbox_ended - is there a row of it that says so? */
typedef void (*store_ended_cb)(bool has_ended, void *arg);
void store_sandbox_ended(
    struct store *s, const struct uuid *uuid, store_ended_cb done, void *arg);
typedef void (*store_artifact_cb)(
    int rc, const struct store_artifact *row, const struct err *why, void *arg);
/* run NULL: "latest", the newest run of the identifier that left this path */
void store_artifact_get(struct store *s, struct tenant_id tenant,
    const char *identifier, const struct uuid *run, const char *path,
    store_artifact_cb done, void *arg);

/* The sandboxes of a tenant, those that ended too, newest first. */
#define STORE_LIST_SCAN_MAX 10000 /* rows looked at for a page */
struct store_sandbox_list {
	struct store_sandbox *rows;
	size_t n;
	bool has_more;
	struct uuid next; /* with has_more: what filter.after is next */
};
struct store_sandbox_filter {
	const char *identifier;     /* NULL: of all */
	uint32_t states;            /* 1 << enum sandbox_word, OR-ed; 0: all */
	int64_t since_ms, until_ms; /* created then or later, before; 0: any */
	const struct uuid *after;   /* NULL: from the newest on */
	size_t limit;
};
/* list and what it points to are freed after done returns; ERR_INVAL: there is
 * no sandbox that after names.  done comes once, later, unless the store is
 * closed first. */
typedef void (*store_sandbox_list_cb)(int rc,
    const struct store_sandbox_list *list, const struct err *why, void *arg);
void store_sandbox_list(struct store *s, struct tenant_id tenant,
    const struct store_sandbox_filter *f, store_sandbox_list_cb done,
    void *arg);

struct store_counts {
	uint64_t runs_completed, runs_failed, runs_canceled;
	uint64_t commands_completed, commands_failed, commands_timed_out;
};
/* store_counts - totals over the whole database, for the metrics after a
 * restart; before the loop runs */
int store_counts(
    struct store *s, struct store_counts *out, struct err *e) MUSTCHECK;

/* store_room - on the disks of the two directories, now; as much as there can
 * be of what cannot be found out */
struct store_room {
	struct room data, artifacts;
	bool is_apart; /* they are two disks */
	/* of data's bytes, what the database may take when the WAL is copied
	 * into it: no room for anything else */
	uint64_t owed_bytes;
};
void store_room(const struct store *s, struct store_room *out);

struct store_stats { /* since start, for /metrics */
	uint64_t writes, commits, failures;
	uint64_t queue;         /* waiting now */
	uint64_t last_error_ms; /* wall clock, 0: none */
};
void store_stats(const struct store *s, struct store_stats *out);

#endif
