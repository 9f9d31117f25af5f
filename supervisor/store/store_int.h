/* store_int.h - what the files of the store share about a struct store. */
#ifndef STORE_STORE_INT_H
#define STORE_STORE_INT_H

#include <pthread.h>

#include "common/xmalloc.h"
#include "supervisor/store/op.h"
#include "supervisor/store/store.h"

struct db;
struct db_call;
struct done;
struct history;
struct identity;
struct losses;
struct reader;
struct spool;
struct syncer;
struct timer;
struct wanted;
struct writer;

struct store {
	char *dir;
	struct spool *spool;
	struct wanted *wanted;
	struct identity *identity;
	struct timer *look; /* at what happens to the files */
	struct timer *tidy; /* logs that can be used again; NULL at the end */
	void (*on_damaged)(const struct err *why, void *arg);
	void *on_damaged_arg;
	struct done *done;
	struct writer *writer; /* NULL: not yet, or no more */
	struct losses *losses; /* looked for at the start; or NULL */
	struct syncer *syncer; /* before it; NULL as well */
	pthread_mutex_t names; /* of logs, log_files.h */
	struct reader *reader;
	struct history *history;
	uint64_t audit_keep;
	size_t audit_behind;  /* rows on their way */
	bool audit_is_marked; /* in the log, since the start */
	size_t events_behind; /* the same, of events that are noted */
	void (*on_events)(uint64_t tenant, void *arg);
	void *on_events_arg;
};

/* The first member of each write's op. */
struct write_op {
	struct op op;
	store_done_cb done; /* may be NULL: a failure is logged */
	void *arg;
};
void store_write_deliver(struct op *op);
/* store_write_init - delivered so, and run may be called again */
void store_write_init(struct write_op *w, op_run_cb *run, size_t bytes,
    store_done_cb done, void *arg);

/* store_read_submit - to the reader's thread (reader.h) */
void store_read_submit(struct store *s, struct op *op, op_run_cb *run,
    void (*deliver)(struct op *op), void (*release)(struct op *op));

/* store_read_now - before the loop runs: read is called with a connection of
 * its own, and reads as of one moment */
int store_read_now(struct store *s,
    int (*read)(struct db *db, void *out, struct err *e), void *out,
    struct err *e) MUSTCHECK;

/* store_usage_get - columns in the order of the struct */
void store_usage_get(struct db_call *c, struct store_usage *u);

/* store_tidy_soon - what was used is made fit to be used again, when the loop
 * has done what somebody waits for */
void store_tidy_soon(struct store *s);

/* store_refuse - if the queue is full, let done have ERR_LIMIT and return
 * true; asked before anything is copied */
bool store_refuse(struct store *s, store_done_cb done, void *arg);

/* id_is_good - can be a row's number */
static inline bool
id_is_good(uint64_t id)
{
	return id > 0 && id <= INT64_MAX;
}

static inline bool
run_is_unfinished(enum run_state state)
{
	return state == RUN_STATE_QUEUED || state == RUN_STATE_RUNNING;
}

/* array_grow - room for one more behind n; doubled at the powers of two */
static inline void *
array_grow(void *p, size_t n, size_t size)
{
	if (n == 0)
		return xreallocarray(p, 1, size);
	return (n & (n - 1)) == 0 ? xreallocarray(p, n * 2, size) : p;
}

/* runs_hurry - the rows of a sandbox's runs that are held are written now */
void runs_hurry(struct store *s, uint64_t sandbox);

/* The history's life with its store: history.h is for those who ask. */
struct feed;
/* history_new - dir and the done queue must outlive it */
struct history *history_new(const char *dir, struct done *done);
/* history_feed - for who writes; good until history_free */
struct feed *history_feed(struct history *h);
/* history_start - when the database is open */
int history_start(
    struct history *h, struct spool *spool, struct err *e) MUSTCHECK;
/* history_stop - before the database closes; history_free - after.  NULL is
 * fine. */
void history_stop(struct history *h);
void history_free(struct history *h);

#endif
