/*
 * run_texts.h - what rows keep of the texts of a run's commands
 *
 * A run's spec, which has them whole, goes with the run's end; the rows stay.
 * So they have the beginnings of what is long: of a command up to
 * COMMAND_TEXTS_MAX bytes, of a run up to RUN_TEXTS_MAX, short commands before
 * long ones.  A command that is cut has no cwd (store_command_is_cut).
 */
#ifndef STORE_RUN_TEXTS_H
#define STORE_RUN_TEXTS_H

#include "supervisor/store/store.h"

struct db;

/* Room for what is kept of code (16 KiB), and its command beside it. */
#define COMMAND_TEXTS_MAX (20u << 10)
/* 1 KiB for each of RUNSPEC_COMMANDS_MAX commands. */
#define RUN_TEXTS_MAX (64u << 10)

static inline size_t
text_bytes(const char *text)
{
	return text == NULL ? 0 : strlen(text);
}

/* run_texts_cut - r's, in place; again, it does nothing */
void run_texts_cut(struct store_run *r);
/* run_texts_bytes - of the rows that are in the database */
int run_texts_bytes(
    struct db *db, uint64_t run, uint64_t *bytes, struct err *e) MUSTCHECK;
/* run_texts_sum - of r's commands, as they are here */
uint64_t run_texts_sum(const struct store_run *r);

#endif
