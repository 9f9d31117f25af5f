/*
 * sched.h - what waits for its turn, and why
 *
 * Each sandbox has a queue.  A run that waits is in it, in order; one whose
 * turn has come is among the queue's running ones until it leaves.  A queue's
 * head may go when its gate is open, fewer than limit of its runs are going,
 * and, if it asked for the sandbox's lock, no other has it.  Runs without the
 * lock may pass those that wait for it.
 *
 * A tenant's queues are in its lane.  Lanes that may start something share the
 * places there are by their weights: each has a clock, which a start moves on
 * by 1/weight, and the lane whose clock is behind the others' is next.  One
 * that had nothing to start does not save up: its clock is set to the time of
 * those that went on, so what comes late and alone starts before a backlog.
 * In a lane, queues take turns, one run each.
 *
 * Starting happens in sched_turn, never inside the call that made it possible:
 * no depth of queue is a depth of stack.
 */
#ifndef CORE_SCHED_H
#define CORE_SCHED_H

#include <sys/queue.h>

#include "common/base.h"

struct sched;
struct sched_lane;
struct sched_queue;

#define SCHED_WEIGHT_MAX 1000

enum sched_gate { /* of a queue: set by the sandbox */
	SCHED_GATE_SHUT,
	SCHED_GATE_OPEN
};

/* Why the head of a queue waits. */
enum sched_wait {
	SCHED_NOTHING_WAITS,
	SCHED_WAITS_FOR_TURN,    /* it may go */
	SCHED_WAITS_FOR_SANDBOX, /* the gate is shut */
	SCHED_WAITS_FOR_RUNS,    /* as many as may run at a time do */
	SCHED_WAITS_FOR_LOCK,
	SCHED_WAITS_FOR_DAY,   /* its lane is shut */
	SCHED_WAITS_FOR_QUOTA, /* as many as its lane may run at a time do */
	SCHED_WAITS_FOR_PLACE  /* as many as all together may */
};

enum sched_where {
	SCHED_NOWHERE,
	SCHED_IN_QUEUE,
	SCHED_IS_RUNNING
};

struct sched_item { /* part of a run */
	struct sched_queue *queue;
	enum sched_where where;
	bool wants_lock;
	uint64_t number; /* its place among all that ever waited */
	TAILQ_ENTRY(sched_item) link;
};
TAILQ_HEAD(sched_items, sched_item);

TAILQ_HEAD(sched_queues, sched_queue);

struct sched_lane { /* part of what is known of a tenant */
	struct sched *sched;
	struct sched_queues ready; /* that may start something */
	unsigned int nrunning;     /* in all of its queues */
	unsigned int nwaiting;
	unsigned int limit; /* of nrunning; 0: none */
	unsigned int weight;
	enum sched_gate gate; /* shut: nothing starts */
	uint64_t clock;
	bool is_ready; /* it may start something */
	TAILQ_ENTRY(sched_lane) link;
};

struct sched_queue { /* part of a sandbox */
	struct sched_lane *lane;
	struct sched_items waiting; /* without the lock */
	struct sched_items locked;  /* that want it */
	struct sched_items running;
	unsigned int nrunning;
	unsigned int nwaiting; /* in waiting and in locked */
	unsigned int limit;
	enum sched_gate gate;
	struct sched_item *lock_holder;
	bool is_ready; /* in the round of those that may start something */
	TAILQ_ENTRY(sched_queue) link;
};

/* sched_new - start is called, from sched_turn, for each item whose turn has
 * come; it is among the running ones then */
struct sched *sched_new(void (*start)(struct sched_item *item));
void sched_free(struct sched *s);

/* sched_set_places - so many may run at a time, of all lanes; 0: no limit */
void sched_set_places(struct sched *s, unsigned int places);

/* sched_lane_init - without a limit, of weight 1 */
void sched_lane_init(struct sched *s, struct sched_lane *lane);
void sched_lane_clear(struct sched_lane *lane); /* its queues must be */
/* sched_lane_set - limit 0: none; weight 1 to SCHED_WEIGHT_MAX.  What may start
 * by it does so in sched_turn; nothing that runs is ended. */
void sched_lane_set(
    struct sched_lane *lane, unsigned int limit, unsigned int weight);

/* sched_lane_gate - the same */
void sched_lane_gate(struct sched_lane *lane, enum sched_gate gate);

void sched_queue_init(
    struct sched_lane *lane, struct sched_queue *q, unsigned int limit);
void sched_queue_clear(struct sched_queue *q); /* it must be empty */
void sched_queue_gate(struct sched_queue *q, enum sched_gate gate);
/* sched_queue_count - that wait or run */
unsigned int sched_queue_count(const struct sched_queue *q);
bool sched_queue_is_empty(const struct sched_queue *q); /* none runs either */
enum sched_wait sched_queue_waits(const struct sched_queue *q);
/* sched_item_waits - the same for an item; nothing, if it is not in a queue */
enum sched_wait sched_item_waits(const struct sched_item *item);
/* sched_queue_first - a running one, else one that waits, else NULL */
struct sched_item *sched_queue_first(const struct sched_queue *q);

/* sched_add - the last of the queue; nothing is started before sched_turn */
void sched_add(struct sched_queue *q, struct sched_item *item, bool wants_lock);
/* sched_add_running - it began in an earlier life of the server.  The lock is
 * taken if it is free. */
void sched_add_running(
    struct sched_queue *q, struct sched_item *item, bool wants_lock);
/* sched_leave - wherever it is, it goes; nowhere: nothing happens */
void sched_leave(struct sched_item *item);
/* sched_move_waiting - all that waits in from, behind what waits in to; each
 * is called with every item moved */
void sched_move_waiting(struct sched_queue *from, struct sched_queue *to,
    void (*each)(struct sched_item *item, void *arg), void *arg);
/* sched_turn - start what may start; inside start it does nothing more than
 * remember to go on */
void sched_turn(struct sched *s);

#endif
