/*
 * tasks.h - the tasks of one box, and what its agent is asked beside them
 *
 * Each is known by the run's UUID to the agent and by the run's number to the
 * front; one that the front has not heard the end of, or has not forgotten, is
 * here.  The box says when its agent comes and goes.
 */
#ifndef WORKER_TASKS_H
#define WORKER_TASKS_H

#include "common/base.h"
#include "common/err.h"
#include "common/hashmap.h"
#include "worker/copy.h"
#include "worker/link/peer.h"
#include "worker/task.h"

/*
 * box_asks - questions from the front to the agent of the box
 *
 * Each ASK is a channel to the agent and gets one ANSWER (schema/ipc.txt):
 * what the agent sent, which the front decodes and checks, or why there is
 * nothing.
 */
#define BOX_ASKS_MAX 16         /* open at once */
#define BOX_ASKS_WORKER_MAX 256 /* each may hold ASK_ANSWER_MAX bytes */

struct box_asks;

struct box_asks_host {
	struct ipc_chan **front;
	uint32_t open; /* box_asks.c counts: of all boxes */
};

/* box_asks_new - host is kept by pointer */
struct box_asks *box_asks_new(struct box_asks_host *host, uint64_t sandbox);
/* box_asks_free - answers what is open: the sandbox is gone */
void box_asks_free(struct box_asks *as);
/* box_asks_attach - the agent is there, and speaks that version of the link;
 * before box_asks_detach, or the free, its channels are gone */
void box_asks_attach(struct box_asks *as, struct peer *p, uint32_t version);
void box_asks_detach(struct box_asks *as);
/* box_asks_start - ERR_PROTO: there is no such kind */
int box_asks_start(
    struct box_asks *as, const struct msg_ask *m, struct err *e) MUSTCHECK;
/* box_asks_cancel - nothing when it was answered already */
void box_asks_cancel(struct box_asks *as, uint64_t number);

/* ---- tasks */

#define TASKS_MAX 4096 /* of a box: told of, not forgotten yet */

struct tasks;
struct tasks_item; /* a task and its place here */

struct tasks_host {
	struct ipc_chan **front;
	const struct task_host *task;
	const struct copy_limits *limits;
	struct box_asks_host *asks;
	struct hashmap *by_number; /* the tasks of all boxes */
	/* NULL, or why no command may be root.  Asked when an agent is there:
	 * what it has begun goes on. */
	const char *(*root_refusal)(void *arg);
	void *arg;
};

enum tasks_past {
	TASKS_NONE_BEGUN, /* the box is new: nothing can have, before an
			   * agent comes */
	TASKS_MAY_HAVE_BEGUN
};

/* tasks_new - host is kept by pointer; sandbox is the front's number of the
 * box.  on_overdue: a task was ended because the agent did not end it in time
 */
struct tasks *tasks_new(const struct tasks_host *host, uint64_t sandbox,
    enum tasks_past past, void (*on_overdue)(void *arg), void *arg);
/* tasks_free - the front is told nothing: tasks_end first */
void tasks_free(struct tasks *ts);
/* tasks_end - all of them, now */
void tasks_end(struct tasks *ts, enum runlog_reason reason, const char *text);

/* tasks_attach - the agent is there; *h must stay until tasks_detach */
void tasks_attach(struct tasks *ts, struct peer *p, const struct peer_hello *h);
void tasks_detach(struct tasks *ts);
/* tasks_settled - the front has told of all runs: what else the agent has is
 * nobody's */
void tasks_settled(struct tasks *ts);

/* tasks_start - takes *s.  ERR_PROTO when the front's message cannot be */
int tasks_start(
    struct tasks *ts, struct task_start *s, struct err *e) MUSTCHECK;
/* tasks_find_run - what is known of this box's run; NULL: it has none such */
const struct task_start *tasks_find_run(
    const struct tasks *ts, const struct uuid *run);
/* tasks_refuse - takes *s and tells the front that the run is over */
void tasks_refuse(struct ipc_chan *front, struct task_start *s,
    enum runlog_reason reason, const char *text);
/* tasks_find - by the run's number; NULL: none */
struct tasks_item *tasks_find(const struct hashmap *by_number, uint64_t number);
const struct task_start *tasks_item_start(const struct tasks_item *it);
void tasks_item_cancel(struct tasks_item *it, enum runlog_reason reason);
void tasks_item_forget(struct tasks_item *it);
/* tasks_item_fd - for the copy of that task's artifacts; takes fd */
void tasks_item_fd(
    struct tasks_item *it, uint32_t file, int fd, const char *refusal);

/* tasks_asks - what the front asks the box's agent */
struct box_asks *tasks_asks(struct tasks *ts);

/* tasks_on_turn - no more for now: tell the front, acknowledge */
void tasks_on_turn(struct tasks *ts);
/* tasks_on_drain - there is room on the link again */
void tasks_on_drain(struct tasks *ts);

#endif
