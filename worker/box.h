/*
 * box.h - one box: its container, its agent and its tasks, from its making to
 * its end
 *
 * What a box is (its identity: UUID, policy) stands apart from the sandbox
 * that uses it (the front's number).  What concerns several boxes, and which
 * of them a message means, is boxes.h's.
 */
#ifndef WORKER_BOX_H
#define WORKER_BOX_H

#include "common/base.h"
#include "common/hashmap.h"
#include "common/msg/msg_gen.h"
#include "common/uuid.h"
#include "worker/backend.h"
#include "worker/box_bounds.h"
#include "worker/box_index.h"
#include "worker/copy.h"
#include "worker/link/ways.h"
#include "worker/opening.h"
#include "worker/tasks.h"

#define BOX_HELLO_MS 10000
#define BOX_AWAY_MS 30000  /* running without a link: given up */
#define BOX_SILENCES_MAX 2 /* questions that an agent leaves unanswered */

struct box;

/* What a worker gives its boxes; kept by pointer. */
struct box_host {
	struct event_base *base;
	struct ipc_chan **front; /* *front NULL: gone */
	struct backend *backend;
	struct ways *ways;
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

/* What all boxes of a worker have in common; for others to read, for box.c to
 * write. */
struct box_common {
	const struct box_host *host;
	struct tasks_host tasks_host;
	struct box_asks_host asks_host;
	struct box_bounds_line bounds;
	struct box_index index;
	struct hashmap tasks; /* of all boxes, by the front's number */
	struct openings openings;
	unsigned int removals; /* under way */
};

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

/* box_common_init - host is kept by pointer; its backend and ways may be filled
 * in later, before the first box */
void box_common_init(struct box_common *in, const struct box_host *host);
/* box_common_clear - forgets all boxes, takes none away; the backend must be
 * gone */
void box_common_clear(struct box_common *in);

/* box_open - in is kept by pointer; what comes of it is told to the front.  Its
 * sandbox and UUID must be no other box's of in's index. */
void box_open(struct box_common *in, const struct box_start *s);

/* ---- of one box, which is its own owner: after any call but those that only
 * ask, and after any turn of the loop, it may be gone */

/* box_of - the one at that place; NULL for NULL */
struct box *box_of(struct box_place *p);
const struct box_identity *box_identity(const struct box *b);
/* box_is_used_by - that tenant, by the front's number */
bool box_is_used_by(const struct box *b, uint64_t tenant);
/* box_tasks - NULL: it is being taken away */
struct tasks *box_tasks(const struct box *b);
/* box_is_changing - it is being made or taken away */
bool box_is_changing(const struct box *b);

/* box_set_ttl - SANDBOX_TTL; 0: it waits for a server for ever */
void box_set_ttl(struct box *b, uint32_t ttl_s);
/* box_set_shares - SANDBOX_SHARES; nothing where it does not run */
void box_set_shares(struct box *b, const struct msg_sandbox_shares *m);
/* box_remove - its tasks end, it is taken away, REMOVED is told; files: what
 * becomes of those that would outlive it */
void box_remove(struct box *b, enum backend_forget files);
/* box_on_change - what the backend's watch says of it */
void box_on_change(struct box *b, enum backend_change what);
/* box_look - the engine is there: ask now if it waited to be asked */
void box_look(struct box *b);
/* box_pause, box_resume - stop reading from its agent, and go on */
void box_pause(struct box *b);
void box_resume(struct box *b);

/* box_tell_removed - SANDBOX_REMOVED, of any box there ever was; rc and text as
 * removal.h gives them */
void box_tell_removed(
    const struct box_host *host, uint64_t sandbox, int rc, const char *text);

#endif
