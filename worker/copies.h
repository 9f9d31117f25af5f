/*
 * copies.h - the artifacts of a box's tasks, copied one task at a time
 *
 * Between two tasks the front commits what it got: until it has, the agent
 * would list the same files again for the next.  So a copy that found some is
 * kept until copies_drop, which is the front's word that it is done with the
 * task, or for COPIES_COMMIT_MS.
 *
 * An agent that is late with one copy (copy_clock.h) ends those that wait as
 * well.
 */
#ifndef WORKER_COPIES_H
#define WORKER_COPIES_H

#include <sys/queue.h>

#include "common/base.h"
#include "common/err.h"
#include "worker/copy.h"
#include "worker/link/peer.h"

#define COPIES_COMMIT_MS 5000

struct copies;

/* What waits, embedded in its task; to be filled in before copies_add. */
struct copy_job {
	uint64_t task; /* the front's number */
	/* Once, perhaps inside copies_add; the job stays known until
	 * copies_drop. */
	void (*done)(struct copy_job *job, const char *error);
	bool waits; /* copies.c's, as the next */
	TAILQ_ENTRY(copy_job) link;
};

struct copies *copies_new(struct event_base *base, struct ipc_chan **front,
    const struct copy_limits *limits);
/* copies_free - done is called for the one under way, not for those that
 * wait */
void copies_free(struct copies *cs);

void copies_add(struct copies *cs, struct copy_job *job);
/* copies_drop - of any task: nothing of it is copied any more */
void copies_drop(struct copies *cs, struct copy_job *job);
/* copies_stop - the one under way ends with why noted */
void copies_stop(struct copies *cs, const char *why);

void copies_attach(struct copies *cs, struct peer *p);
void copies_detach(struct copies *cs);

/* From the front: fd is the copies' from now on, -1 with refusal. */
void copies_on_fd(struct copies *cs, const struct copy_job *job, uint32_t file,
    int fd, const char *refusal);

#endif
