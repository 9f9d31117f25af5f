/*
 * run_asked.h - what a run was asked to do: its spec, and its commands' texts
 *
 * The database has both from the run's beginning to its end.  What is small is
 * in memory, too; what is large only until it is on disk, and again while it
 * is sent or somebody reads it: what waits costs a client's patience, not the
 * server's memory.  run.c says when.
 *
 * No run, no list of runs, no database: run.c has those.
 */
#ifndef CORE_RUN_ASKED_H
#define CORE_RUN_ASKED_H

#include <sys/queue.h>

#include "common/base.h"
#include "common/err.h"
#include "common/runspec.h"
#include "supervisor/store/store.h"

/* Less than it costs to ask the database again. */
#define RUN_ASKED_KEEP_BYTES STORE_ASKED_KEEP

#define ENV_NOT_KEPT "***" /* in a row, in place of a variable's value */

/* run_asked_fill_texts - shell or argv, cwd and the names of variables, in
 * place of what the row has */
void run_asked_fill_texts(
    struct store_command *row, const struct runspec_command *c);

/* Somebody who reads the texts; part of the reader. */
struct run_reader {
	void (*cb)(int rc, const struct err *why, void *arg);
	void *arg;
	bool is_joined;
	bool is_waiting; /* for the database */
	TAILQ_ENTRY(run_reader) link;
};
TAILQ_HEAD(run_readers, run_reader);

static inline bool
run_asked_is_large(const struct store_run *row)
{
	return row->asked_bytes > RUN_ASKED_KEEP_BYTES;
}
/* run_asked_note - of a row that has its spec: what must be known without it */
void run_asked_note(struct store_run *row);
/* run_asked_is_fit - the row has its spec, and it decodes */
bool run_asked_is_fit(const struct store_run *row);
/* run_asked_slim - and it goes, with the texts, if the row is large */
void run_asked_slim(struct store_run *row);
/* run_asked_drop_spec - it may hold secrets */
void run_asked_drop_spec(struct store_run *row);

/* Where they are; part of a run. */
struct run_asked {
	bool is_away; /* the texts are on disk alone */
	bool is_fetching;
	struct run_readers readers;
};
void run_asked_init(struct run_asked *a);
/* run_asked_restored - with a row that may have been slimmed */
void run_asked_restored(struct run_asked *a, const struct store_run *row);
/* run_asked_let_go - the row is on disk: what is large goes, unless somebody
 * reads it */
void run_asked_let_go(struct run_asked *a, struct store_run *row);
/* run_asked_must_fetch - true: read the row, and give it to run_asked_fetched;
 * false: that is under way already */
bool run_asked_must_fetch(struct run_asked *a) MUSTCHECK;
/* run_asked_fetched - from has all (NULL: why it was not read), the spec is
 * only taken if it is still to be sent; readers are told */
enum run_asked_what {
	RUN_ASKED_TEXTS,
	RUN_ASKED_ALL
};
void run_asked_fetched(struct run_asked *a, struct store_run *row,
    const struct store_run *from, enum run_asked_what what,
    const struct err *why);
/* run_asked_join - true: the texts are there; else cb is called when they are
 * fetched */
bool run_asked_join(struct run_asked *a, struct run_reader *rd,
    void (*cb)(int rc, const struct err *why, void *arg), void *arg) MUSTCHECK;
void run_asked_leave(struct run_asked *a, struct run_reader *rd);

#endif
