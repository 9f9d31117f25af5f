/*
 * run_row.h - a run's row, and what its log says in it and its commands' rows
 *
 * Functions over a row alone: no run, no list, no channel.
 */
#ifndef CORE_RUN_ROW_H
#define CORE_RUN_ROW_H

#include "common/base.h"
#include "common/runlog.h"
#include "supervisor/core/log_digest.h"
#include "supervisor/core/run_wish.h"
#include "supervisor/store/store.h"

struct conf;

/* run_row_begin - of a new run; *w gives up its rows */
void run_row_begin(struct store_run *row, struct run_wish *w, uint64_t id,
    const struct store_sandbox *sandbox, const struct conf *conf);

/* What the log says of the whole run; has_end: its last record has come. */
struct run_log_end {
	bool has_end;
	struct runlog_run_end end;
};

/* run_row_parse - the header of a whole record; ERR_PROTO: it is none */
int run_row_parse(const struct span *record, struct runlog_header *h,
    struct err *e) MUSTCHECK;
/* run_row_take - one record of the log.  Returns true when it ended a command
 * that had not ended before (h->command says which). */
bool run_row_take(struct store_run *row, struct run_log_end *log,
    const struct runlog_header *h, const uint8_t *payload);

/* run_row_take_digest - all records of it at once, after a loss; each command
 * that had not ended before is told to each.  The output of one that was cut
 * off is counted from what came. */
void run_row_take_digest(struct store_run *row, struct run_log_end *log,
    const struct log_digest *d, void (*each)(uint32_t command, void *arg),
    void *arg);

/* run_row_keep_digest - of a long log, so that nobody has to walk it again
 * (log_digest.h) */
void run_row_keep_digest(struct store_run *row, const struct log_digest *d);

/* How a run ended, as it will be in its row once that is on disk. */
struct run_ending {
	enum run_state state;
	enum runlog_reason reason;
	char *error;           /* "" : none */
	char *artifacts_error; /* "" : none */
	int64_t ended_ms;
};

/*
 * run_row_end - decide it; *out is the caller's to clear
 *
 *	reason	why nothing more comes; the log says more if it is whole
 *	text	for people, or "": made from reason and log
 * Commands that were still running end with their run, in the row; each is
 * told to each (with its index).  What they came to is the row's, then.
 */
void run_row_end(struct store_run *row, const struct run_log_end *log,
    enum runlog_reason reason, const char *text,
    void (*each)(uint32_t command, void *arg), void *arg,
    struct run_ending *out);
void run_ending_clear(struct run_ending *end);
/* run_row_ended - the row as it will be; what it points to stays with the two
 * that it is made of */
struct store_run run_row_ended(
    const struct store_run *row, const struct run_ending *end);
/* run_row_close - the ending becomes the row's, and is cleared */
void run_row_close(struct store_run *row, struct run_ending *end);

#endif
