/*
 * box.h - one box: its container, its agent, its tasks
 *
 * What a box is (its identity: UUID, policy) stands apart from the sandbox
 * that uses it (the front's number).  It is found by the sandbox's number, by
 * its UUID, and by the backend's handle; boxes.h is about all of them.
 *
 * The front hears of it exactly once: READY or FAILED or LOST, after READY
 * perhaps LOST, after a SANDBOX_REMOVE always REMOVED.  An engine that is away
 * loses nothing: a box whose agent is there goes on, and none is given up
 * before the engine has said that it is gone.
 *
 * A box is its own owner: after any call here but those that only ask, and
 * after any turn of the loop, it may be gone.
 */
#ifndef WORKER_BOX_H
#define WORKER_BOX_H

#include "common/msg/msg_gen.h"
#include "common/base.h"
#include "common/hashmap.h"
#include "common/uuid.h"
#include "worker/backend.h"
#include "worker/box_bounds.h"
#include "worker/copy.h"
#include "worker/link/carrier.h"
#include "worker/link/delivery.h"
#include "worker/opening.h"
#include "worker/task.h"
#include "worker/tasks.h"

#define BOX_HELLO_MS 10000
#define BOX_AWAY_MS 30000  /* running without a link: given up */
#define BOX_SILENCES_MAX 2 /* questions that an agent leaves unanswered */

struct box;

/* What boxes share; kept by pointer. */
struct box_host {
	struct event_base *base;
	struct ipc_chan **front; /* *front NULL: gone */
	struct backend *backend;
	struct carrier *carrier;
	struct agent_delivery *delivery;
	const struct policy *policy;
	const struct ceilings *ceilings; /* NULL: none */
	const struct task_host *task;
	const struct copy_limits *limits;
	unsigned int openings_max; /* at a time; more are refused */
	uint64_t output_bytes_s;   /* read from each agent; 0: any */
	uint32_t ping_ms;          /* between two questions to an agent */
	uint32_t grace_s;          /* beyond its TTL a box waits for a server */
	void (*on_ready)(void *arg); /* READY was told */
	void (*on_full)(void *arg);  /* the front's channel is: read no more */
	void *arg;
};

/* All of a worker; box.c's to write. */
struct box_all {
	const struct box_host *host;
	struct tasks_host tasks_host;
	struct box_asks_host asks_host;
	struct box_bounds_line bounds;
	struct hashmap by_sandbox;
	struct hashmap by_uuid;
	struct hashmap by_handle;
	struct openings openings;
	unsigned int removals; /* of boxes, under way */
};
/* box_all_clear - the tables; the boxes are dropped */
void box_all_clear(struct box_all *all);
/* box_by_x - NULL: none.  By its handle a box is found while it runs. */
struct box *box_by_sandbox(const struct box_all *all, uint64_t sandbox);
struct box *box_by_uuid(const struct box_all *all, const struct uuid *uuid);
struct box *box_by_handle(
    const struct box_all *all, const struct backend_handle *h);
/* box_each, box_any - of those that are found by their sandbox; fn may end
 * that box, no other */
void box_each(struct box_all *all, void (*fn)(struct box *b));
bool box_any(const struct box_all *all, bool (*is)(const struct box *b));

/* What SANDBOX_OPEN says; strings are borrowed. */
struct box_start {
	uint64_t sandbox; /* the front's number of who uses it */
	uint64_t tenant;  /* and of whose it is */
	const char *tenant_name;
	enum msg_open_mode mode;
	struct uuid uuid;
	const char *name;         /* of the container */
	const char *container_id; /* to adopt; "": by name */
	struct policy_template template;
	struct policy_claim claim;
	uint32_t ttl_s; /* 0: it waits for a server for ever */
};
/* box_open - sandbox and UUID must be new; everything else is told to the
 * front */
void box_open(struct box_all *all, const struct box_start *s);
/* box_remove - its tasks end, it is taken away, REMOVED is told */
void box_remove(struct box *b);
/* box_set_ttl - from now on */
void box_set_ttl(struct box *b, uint32_t ttl_s);
/* box_set_shares - of the processors, and how fast its agent is read, if it
 * runs */
void box_set_shares(struct box *b, const struct msg_sandbox_shares *m);
/* box_drop - forgotten, and left as it is; the backend must be gone */
void box_drop(struct box *b);

void box_on_change(struct box *b, enum backend_change what);
/* box_look - if it waits to be looked at: now */
void box_look(struct box *b);
/* box_pause, box_resume - stop reading from its agent, and go on */
void box_pause(struct box *b);
void box_resume(struct box *b);

bool box_is_of(const struct box *b, uint64_t tenant);
uint64_t box_sandbox(const struct box *b);
const char *box_tenant_name(const struct box *b);
/* box_tasks - NULL: none any more, it is being taken away */
struct tasks *box_tasks(struct box *b);
/* box_is_changing - it is being made or taken away */
bool box_is_changing(const struct box *b);

#endif
