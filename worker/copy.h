/*
 * copy.h - what a run left below /artifacts, copied to the front's files
 *
 * A walk of what changed, then file by file: ARTIFACT_OPEN to the front, its
 * descriptor back, a read from the agent, ARTIFACT_DONE with the
 * digest.  Limits count bytes that came, not sizes that were told.  What is
 * over a limit or cannot be copied is left out and noted; the rest goes on.
 * When the link is lost in between it begins anew without the files it has.
 * It ends with what it has when the agent is late (copy_clock.h), and after
 * COPY_TIME_MS in any case.
 */
#ifndef WORKER_COPY_H
#define WORKER_COPY_H

#include <sys/queue.h>

#include "common/base.h"
#include "common/err.h"
#include "worker/link/peer.h"

#define COPY_WALK_MAX 5000 /* entries looked at, or as many as are copied */
#define COPY_ROOT "/artifacts"
#define COPY_PATH_MAX 1024
#define COPY_TIME_MS 120000
#define COPY_ERROR_MAX 1200

struct copy;
struct copy_clock;
struct event_base;
struct ipc_chan;
struct room_watch;

struct copy_limits {
	uint64_t total_bytes; /* 0: none */
	uint64_t file_bytes;
	uint32_t files;
	uint32_t late_ms; /* an agent may let be waited for (copy_clock.h) */
	struct room_watch *room; /* of the front's files; or NULL */
};

struct copy_host {
	struct event_base *base;
	struct ipc_chan **front;
	const struct copy_limits *limits;
	uint32_t time_ms; /* COPY_TIME_MS; tests have less time */
	struct copy_clock *clock;
	/* All that can be copied was. */
	void (*on_end)(struct copy *c, void *arg);
	void *arg;
};

/* copy_new - of run number run; does nothing before copy_attach.
 * host is kept by pointer. */
struct copy *copy_new(const struct copy_host *host, uint64_t run);
void copy_free(struct copy *c);
void copy_attach(struct copy *c, struct peer *p);
void copy_detach(struct copy *c);

uint32_t copy_files(const struct copy *c);    /* copied */
const char *copy_error(const struct copy *c); /* "": none */

/* copy_taken - the front has them for good: the agent is told that they need
 * not be walked again.  Nothing while there is no link. */
void copy_taken(struct copy *c);

/* From the front: fd is the artifact's from now on, -1 with refusal. */
void copy_on_fd(struct copy *c, uint32_t number, int fd, const char *refusal);

/* copy_is_path - relative, no empty, "." or ".." part, no NUL */
bool copy_is_path(const uint8_t *p, size_t n);

/*
 * copies - the artifacts of a box's tasks, copied one task at a time
 *
 * Between two tasks the front commits what it got: until it has, the agent
 * would list the same files again for the next.  So a copy that found some is
 * kept until copies_drop, which is the front's word that it is done with the
 * task, or for COPIES_COMMIT_MS.
 *
 * An agent that is late with one copy (copy_clock.h) ends those that wait as
 * well.
 */
#define COPIES_COMMIT_MS 5000

struct copies;

/* What waits, embedded in its task; to be filled in before copies_add. */
struct copy_job {
	uint64_t task; /* the front's number */
	/* Once, perhaps inside copies_add; the job stays known until
	 * copies_drop. */
	void (*done)(struct copy_job *job, const char *error);
	bool waits; /* copy.c's, as the next */
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
