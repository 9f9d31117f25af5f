/*
 * files.h - the channels that look at the sandbox's files, served in turn
 *
 * A read, a write and a walk (file_read.c, file_write.c, walk.c) are jobs.
 * Those that send are served in turn, a slice each, between the processes'
 * events, and only while the link's queue is short.  All of them end with
 * their channel; the marks of copied files (taken.h) stay.
 */
#ifndef AGENT_FILES_H
#define AGENT_FILES_H

#include <sys/queue.h>

#include "common/base.h"
#include "common/err.h"
#include "images/agent/mux.h"
#include "images/agent/taken.h"

#define FILES_MAX 64

/* Result of a slice that has more to do; others are errnos to close with. */
#define FILES_GOES_ON (-1)

struct file_job;

struct file_job_ops {
	/* It has something to send, and the credit for it. */
	bool (*can_go_on)(const struct file_job *j);
	int (*slice)(struct file_job *j);
	void (*free)(struct file_job *j); /* it is on no list any more */
};

struct files { /* files.c writes */
	struct mux *mux;
	uint32_t count;
	TAILQ_HEAD(, file_job) jobs; /* next to be served first */
	struct taken taken;
	struct taken unstored; /* copied, but not for good yet */
};

/* What each kind's struct begins with. */
struct file_job {
	struct chan chan;
	struct files *files;
	const struct file_job_ops *ops;
	TAILQ_ENTRY(file_job) by_turn;
};

void files_init(struct files *f, struct mux *mux);
/* files_claim - 1: the number is claimed and there is room for a job; 0: not
 * now, the worker was told; ERR_PROTO */
int files_claim(struct files *f, uint32_t chan, struct err *e) MUSTCHECK;
/* files_add - a job whose number is claimed; chan_ops->on_gone is
 * files_on_gone */
void files_add(struct files *f, struct file_job *j, uint32_t chan,
    const struct chan_ops *chan_ops, const struct file_job_ops *ops);
void files_on_gone(struct chan *c, enum chan_gone how);
/* files_end - CLOSE with an errno, and free */
void files_end(struct file_job *j, int error);
struct file_job *files_job_of(struct chan *c);

int files_on_taken(
    struct files *f, const struct frame_taken *m, struct err *e) MUSTCHECK;
int files_on_stored(struct files *f, const struct frame_taken_stored *m,
    struct err *e) MUSTCHECK;
/* files_work - one slice of each that may go on; true when there is more to
 * do at once */
bool files_work(struct files *f);

/* The kinds, each when it is opened. */
int file_read_on_open(
    struct files *f, const struct frame_open_read *m, struct err *e) MUSTCHECK;
int file_write_on_open(
    struct files *f, const struct frame_open_write *m, struct err *e) MUSTCHECK;
int walk_on_open(
    struct files *f, const struct frame_open_walk *m, struct err *e) MUSTCHECK;

/* files_path - a path of bytes as a string to free; NULL with errno for one
 * with a NUL inside */
char *files_path(const struct span *path);

#endif
