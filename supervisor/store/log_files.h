/*
 * log_files.h - struct store_log, and what the store's ops do with its file
 *
 * A log is nameless at first (it was made with O_TMPFILE); its name is given
 * on the writer's thread by the op that writes its row, in the same
 * transaction, or before by the syncer (syncer.h), and taken back on the
 * writer's thread when that is lost.  While an op is under way it holds a
 * reference, and these two threads alone look at name, under store.names.
 */
#ifndef STORE_LOG_FILES_H
#define STORE_LOG_FILES_H

#include "supervisor/store/store.h"
#include "supervisor/store/wanted.h"

struct log_coming;

struct store_log {
	struct store *store;
	unsigned int refs;
	int fd;
	uint8_t *held; /* instead of what the file has; NULL: nothing */
	size_t nheld;
	enum log_name {
		LOG_NAMELESS,
		LOG_NAMED,
		LOG_REMOVED /* it had a name: it can have no other */
	} name;
	bool is_shared;           /* not to be used again */
	struct wanted_log wanted; /* has the run's uuid */
	/* Blobs: */
	struct log_coming *coming; /* files begun, neither committed nor not */
	struct hashmap blobs;      /* committed, without a row of this run */
};

/* log_file_name - give it its name, if it has none; NULL is fine */
int log_file_name(struct store_log *l, struct err *e) MUSTCHECK;
/* log_file_remove - the file goes, what is open stays readable; NULL is fine */
void log_file_remove(struct store_log *l);
/* log_file_take - the first *n bytes in memory of their own, fewer when there
 * are no more */
int log_file_take(const struct store_log *l, uint8_t **out, size_t *n,
    struct err *e) MUSTCHECK;
/* log_files_settle - the run's end is on disk: rows count its blobs now */
void log_files_settle(struct store_log *l, const struct store_run *row);

#endif
