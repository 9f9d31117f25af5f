/*
 * seqs.h - all sequences of this sandbox, by run key: start once per key, find,
 * acknowledge
 *
 * A sequence is what a run is to the agent: an ordered list of commands with a
 * log.  A key in the journal is never started again.  At most SEQS_LIVE_MAX
 * are live, and at most SEQS_KEPT_BYTES of ended ones' logs wait for their
 * acknowledgement; beyond either, a new one is refused.
 *
 * A sequence outlives its channel.  When the link is lost it waits for the
 * next OPEN_SEQUENCE of its key; when the worker closes the channel it is
 * forgotten, once it has ended, but for its key.
 */
#ifndef AGENT_SEQS_H
#define AGENT_SEQS_H

#include "common/base.h"
#include "common/err.h"
#include "common/runlog.h"
#include "images/agent/journal.h"
#include "images/agent/mux.h"
#include "images/agent/procs.h"

#define SEQS_LIVE_MAX 256
#define SEQS_KEPT_BYTES (64u << 20)

struct seqs { /* seqs.c writes */
	struct mux *mux;
	struct procs *procs;
	size_t kept_bytes; /* memory of ended sequences' logs */
	struct journal journal;
};

void seqs_init(struct seqs *s, struct mux *mux, struct procs *procs);
/* seqs_hello - HELLO_RUN for each sequence whose log is kept; how many there
 * are is seqs_kept */
uint32_t seqs_kept(const struct seqs *s);
void seqs_hello(struct seqs *s);
int seqs_on_open(struct seqs *s, const struct frame_open_sequence *m,
    struct err *e) MUSTCHECK;

/* seqs_tick - slices of cleaning; and what has ended is settled */
void seqs_tick(struct seqs *s);
/* seqs_cancel_all - all that live; text is a literal */
void seqs_cancel_all(
    struct seqs *s, enum runlog_reason reason, const char *text);
bool seqs_is_busy(const struct seqs *s); /* a tick has something to do */

#endif
