/*
 * progress.h - a run's output as progress of the call that waits for it
 *
 * At most ten times a second the client is told how many bytes were printed
 * since the start, and the last of them as text: all that is new, or, of a
 * program that prints faster than that, the end of it.  So what it costs
 * does not depend on how much is printed.
 *
 * When there was nothing to tell for PROGRESS_SILENCE_MS, it is told that the
 * call goes on: clients give up a call of which they hear nothing (decision
 * 104).  The first time that is PROGRESS_FIRST_MS: what it is told in has an
 * id, by which clients before MCP 2025-11-25, too, come back for the answer of
 * a server that was killed.  The number grows by one with such a note, so it
 * may be a little more than the bytes: it has to grow with each notification.
 */
#ifndef TOOLS_PROGRESS_H
#define TOOLS_PROGRESS_H

#include "common/base.h"
#include "common/buf.h"
#include "common/call.h"
#include "supervisor/core/log_digest.h"
#include "supervisor/core/sched.h"
#include "supervisor/store/store.h"

#define PROGRESS_EVERY_MS 100
#define PROGRESS_FIRST_MS 1000
#define PROGRESS_SILENCE_MS 15000
#define PROGRESS_TEXT_MAX                                                      \
	(16u << 10) /* as JSON, beside words that say what is left out */

struct event_base;
struct progress;
struct run;

/* progress_new - run and call outlive it; run NULL: the call waits for
 * something else, and only that it goes on is told */
struct progress *progress_new(
    struct event_base *base, struct run *run, struct call *call);
void progress_free(struct progress *p); /* NULL too */

/*
 * progress_text_add - what a terminal would show (screen.h) of what the streams
 * of d have beyond told, which is moved on: all of it or, of what is long, its
 * end, with the number of bytes that were left out; nothing when nothing is new
 *
 *	told	for each command, bytes of stdout and stderr
 *
 * Returns how many bytes were printed since the run began.
 */
uint64_t progress_text_add(
    struct buf *out, const struct log_digest *d, uint64_t (*told)[2]);

/* What a note of a call that goes on says. */
struct progress_quiet {
	const struct store_run *row; /* NULL: no run */
	enum sched_wait waits;       /* why it is queued */
	uint64_t waited_ms;          /* by the call */
	uint64_t silent_ms;          /* nothing was printed so long, at least */
};
/* progress_note_add - "running for 30 s, nothing printed for 12 s" */
void progress_note_add(struct buf *out, const struct progress_quiet *q);

#endif
