/*
 * task_rules.h - tasks of the protocol: how long, how many, and how one stands
 *
 * A task stands for what a run comes to, for the principal whose call began it
 * (store.h).  It has no state of its own but that it was cancelled: that is
 * final, whatever its run still comes to.
 */
#ifndef CORE_TASK_RULES_H
#define CORE_TASK_RULES_H

#include "common/base.h"
#include "supervisor/store/store.h"

struct run;

#define TASK_MINUTE_MS INT64_C(60000)
#define TASK_TTL_MS (24 * 60 * TASK_MINUTE_MS) /* of who does not say */
#define TASK_TTL_LEAST_MS (15 * TASK_MINUTE_MS)
#define TASK_TTL_MOST_MS (7 * 24 * 60 * TASK_MINUTE_MS)
#define TASK_POLL_MS 2000 /* how often it is good to ask */
#define TASKS_PER_PRINCIPAL 1000

/* task_ttl_ms - what a wish comes to; below 0: there is none */
int64_t task_ttl_ms(int64_t wish_ms);

enum task_standing {
	TASK_WORKS,
	TASK_IS_DONE,    /* its run ended, however that was */
	TASK_HAS_FAILED, /* the run never began, or is no longer known */
	TASK_IS_CANCELED
};
#define TASK_MESSAGE_MAX 160
struct task_status {
	enum task_standing standing;
	int64_t updated_ms;
	char message[TASK_MESSAGE_MAX]; /* for people; "": none */
};

/* task_is_stale - the row was read before its run ended, and run, which is
 * that of the registry or NULL, has ended: it is to be read again */
bool task_is_stale(const struct store_task *row, const struct run *run);
/* task_stands - run: as above; the row is not stale */
void task_stands(const struct store_task *row, const struct run *run,
    int64_t now_ms, struct task_status *out);

#endif
