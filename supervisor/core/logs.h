/*
 * logs.h - the logs of runs, read by threads of their own
 *
 * The loop never reads a log file: it asks, and is called back on its own
 * thread, later, never inside the call that asked.  A log that is in memory
 * (it was short, the database has it) is looked at on the loop.
 *
 * A struct log_view is one log that somebody looks at.  It keeps the digest
 * (log_digest.h) from one question to the next, so the second costs what has
 * come since the first.  The heads of all views together take at most
 * LOGS_HELD_MAX bytes of memory: those that were not asked about for longest
 * are read again when they are.  An idle view costs little more than its
 * descriptor.
 *
 * Requests of one view are answered in order for digests, and in any order
 * besides.  A long log is walked in slices, so that it does not keep the
 * others waiting.
 */
#ifndef CORE_LOGS_H
#define CORE_LOGS_H

#include "common/base.h"
#include "common/err.h"
#include "supervisor/core/log_digest.h"
#include "supervisor/core/log_read.h"

#define LOGS_HELD_MAX (16u << 20)
/* Under way; more are refused.  More than there may be active runs, whose logs
 * are all read when their sandboxes are lost at once, and connections. */
#define LOGS_REQUESTS_MAX 250000

struct event_base;
struct threads;
struct logs;
struct log_view;
struct log_request;
struct store_log;

int logs_new(struct event_base *base, unsigned int threads, struct logs **out,
    struct err *e) MUSTCHECK;
/* logs_free - views that are open and requests under way go with it, without
 * a callback; may be called inside one */
void logs_free(struct logs *l);
/* logs_threads - which other work may be given to as well */
struct threads *logs_threads(const struct logs *l);

/*
 * log_view_open - of a file; fd is the view's from now on
 * log_view_open_run - of a run that goes on; the view takes a reference to its
 *	log and no descriptor, so that it is there when there are none left
 * log_view_open_memory - of n bytes, copied
 *
 * caps are those of the run: its digest is made for them.
 */
struct log_view *log_view_open(
    struct logs *l, int fd, uint32_t ncommands, const struct log_caps *caps);
struct log_view *log_view_open_run(struct logs *l, struct store_log *log,
    uint32_t ncommands, const struct log_caps *caps);
struct log_view *log_view_open_memory(struct logs *l, const uint8_t *p,
    size_t n, uint32_t ncommands, const struct log_caps *caps);
/* log_view_restore - begin with a digest that was encoded at the run's end;
 * before the first log_view_digest.  ERR_PROTO: it is none, and the log will
 * be walked as if there were none. */
int log_view_restore(struct log_view *v, const uint8_t *digest, size_t n,
    struct err *e) MUSTCHECK;
/* log_view_close - at any time, NULL too: no callback of its requests is
 * called any more */
void log_view_close(struct log_view *v);

/*
 * Answers.  rc 0, or negative with why set and the result NULL: ERR_SYS (the
 * log cannot be read), ERR_LIMIT (too many requests), ERR_PROTO (a read: there
 * is no record at from).  What they are given is theirs to look at until they
 * return.  They may do everything: ask again, cancel, close the view.
 */
typedef void (*log_digest_cb)(
    int rc, const struct log_digest *d, const struct err *why, void *arg);

/*
 * What is made of a digest where it was made: of a file's on a reading thread,
 * so that the loop is not kept; of memory's on the loop.  make is called at
 * most once, before the answer of rc 0; done, on the loop, when the answer has
 * been given or nobody wants it any more.  Whoever asks embeds it in what make
 * needs, and nothing that make looks at may be the loop's.
 */
struct log_maker {
	void (*make)(struct log_maker *m, const struct log_digest *d);
	void (*done)(struct log_maker *m);
};

typedef void (*log_read_cb)(int rc, const struct log_records *records,
    const struct err *why, void *arg);

/* *out, when out is not NULL, is for log_request_cancel until the callback
 * was called or the view is closed; then it is gone. */

/* log_view_digest - of the log up to upto (a digest that has come further is
 * fine), UINT64_MAX: as long as the file is now */
void log_view_digest(struct log_view *v, uint64_t upto, log_digest_cb cb,
    void *arg, struct log_request **out);
/* log_view_make - the same, with something made of it; m is done in the end,
 * whatever becomes of the request */
void log_view_make(struct log_view *v, uint64_t upto, struct log_maker *m,
    log_digest_cb cb, void *arg, struct log_request **out);
/*
 * log_view_read - records from a place on, at most max bytes but for a header:
 * output is cut, between characters, rather than left for the next time.
 * Nothing of a record that is not whole below upto.  ERR_PROTO also when the
 * record has no such place.
 */
void log_view_read(struct log_view *v, const struct log_at *from, uint64_t upto,
    size_t max, log_read_cb cb, void *arg, struct log_request **out);
/* log_view_range - bytes of output by their place (log_range.h); of *wish what
 * is wanted is looked at, below upto */
typedef void (*log_range_cb)(
    int rc, const struct log_range *r, const struct err *why, void *arg);
void log_view_range(struct log_view *v, const struct log_range *wish,
    uint64_t upto, log_range_cb cb, void *arg, struct log_request **out);
void log_request_cancel(struct log_request *r); /* NULL too */

#endif
