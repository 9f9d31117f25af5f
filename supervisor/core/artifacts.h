/*
 * artifacts.h - the files that a run left, on their way in
 *
 * The worker offers a file (its name, its size), gets a descriptor to copy it
 * into, and says when it is whole; then it is one of the run's rows.  Names
 * come from inside the sandbox and are checked here.  The store owns the
 * files: what is begun is committed or aborted.
 *
 * At most a batch of rows is in memory: a full one goes to the database while
 * the run still goes on (rows that nobody sees before its end), and until it
 * is there an offer is not answered, so the worker waits.  The rest goes with
 * the run's end.  What a lost worker had copied stays; the next one begins
 * anew, and the same path again takes the place of what was there (decision
 * 0046).
 */
#ifndef CORE_ARTIFACTS_H
#define CORE_ARTIFACTS_H

#include <sys/queue.h>

#include "common/base.h"
#include "common/err.h"
#include "supervisor/store/store.h"

struct event_base;
struct timer;

#define ARTIFACTS_AT_A_TIME 4 /* of one run, on their way in */
#define ARTIFACTS_PATH_MAX 1024
#define ARTIFACTS_BATCH 128 /* rows, or so many bytes of names: it is full */
#define ARTIFACTS_BATCH_BYTES (16u << 10)
/* Rows and names of one run in memory at the worst; those on their way to the
 * database are here twice.  A list that is shown is a page of the store's. */
#define ARTIFACTS_HELD_MAX (64u << 10)

struct artifact_file;
STAILQ_HEAD(artifact_files, artifact_file);

/* What a worker says of a file before it comes. */
struct artifact_offer {
	uint32_t number;
	uint64_t size;
	uint32_t mode;
	int64_t mtime_ns;
	const uint8_t *path; /* no NUL behind it */
	size_t path_len;
};
/* fd is the callback's; negative with why, for the worker to report. */
typedef void (*artifacts_answer_cb)(
    void *arg, uint32_t number, int fd, const struct err *why);
typedef void (*artifacts_listed_cb)(void *arg);

struct artifacts { /* part of a run */
	struct store *store;
	struct event_base *base;
	const struct store_run *run;
	struct store_log *log; /* the run's, on which blobs hang */
	struct artifact_files files;
	unsigned int nfiles;
	size_t held_bytes;           /* of files and rows, names and all */
	struct store_artifact *rows; /* whole ones that are here */
	uint32_t nrows;
	size_t names_bytes;         /* of rows */
	bool is_put;                /* some are on disk, or may be */
	bool is_over;               /* the run's end takes the others along */
	uint32_t nputting;          /* of rows, the first: on their way there */
	struct store_putting *put;  /* NULL: none are */
	struct artifact_wait *wait; /* the offer that is not answered; NULL */
	struct timer *again;        /* when the database failed */
	struct store_getting *get;  /* the list of what is on disk */
	artifacts_listed_cb listed;
	void *listed_arg;
	uint32_t total; /* listed: of which rows are the first */
	uint64_t bytes; /* likewise, of them all */
	char *error;    /* the last that failed, NULL: none */
};

/* artifacts_init - what is given outlives *a */
void artifacts_init(struct artifacts *a, struct store *store,
    struct event_base *base, const struct store_run *run,
    struct store_log *log);
/* artifacts_clear - what is not whole is aborted */
void artifacts_clear(struct artifacts *a);
/* artifacts_restored - an earlier server may have put some */
void artifacts_restored(struct artifacts *a);
/* artifacts_begin_anew - another worker does: what is not whole will not be */
void artifacts_begin_anew(struct artifacts *a);

/* artifacts_offer - answer is called once, now or when a batch is on disk;
 * never when the worker goes before */
void artifacts_offer(struct artifacts *a, const struct artifact_offer *offer,
    artifacts_answer_cb answer, void *arg);
/* artifacts_done - the copy is whole and has that digest; artifacts_failed -
 * there will be none.  Nothing happens for a file that never began. */
void artifacts_done(struct artifacts *a, uint32_t number, uint64_t size,
    const uint8_t sha256[32]);
void artifacts_failed(struct artifacts *a, uint32_t number);
/* artifacts_fail - they are not whole, and that is why (copied) */
void artifacts_fail(struct artifacts *a, const char *why);
bool artifacts_has_error(const struct artifacts *a);

/* For the end of the run: what is taken is the caller's. */
char *artifacts_take_error(struct artifacts *a); /* NULL: none */
/* artifacts_lend - to the row that says the end; still *a's.  Nothing more
 * comes. */
void artifacts_lend(struct artifacts *a, struct store_run *row);
/* artifacts_list - the end is on disk: find out what all are; listed is
 * called once, perhaps now */
void artifacts_list(struct artifacts *a, artifacts_listed_cb listed, void *arg);
/* artifacts_take - the first page of the list, and how many there are */
void artifacts_take(struct artifacts *a, struct store_run *row);

#endif
