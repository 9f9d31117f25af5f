/*
 * seq.h - a sequence: an ordered list of commands with a log; what a run is
 *
 *	SEQ_RUNNING	its current command has a process, or is about to
 *	SEQ_CLEANING	all commands are done; the run's files are removed
 *	SEQ_ENDED	the log is complete and waits to be acknowledged
 *
 * It owns its log and its specification.  Its processes are procs.c's.
 */
#ifndef AGENT_SEQ_H
#define AGENT_SEQ_H

#include "common/base.h"
#include "common/runlog.h"
#include "common/runspec.h"
#include "common/uuid.h"
#include "images/agent/mux.h"
#include "images/agent/outlog.h"
#include "images/agent/procs.h"
#include "images/agent/uplink.h"

enum seq_state {
	SEQ_RUNNING,
	SEQ_CLEANING,
	SEQ_ENDED
};

struct seq {              /* seq.c writes, but for chan */
	struct chan chan; /* seqs.c's */
	enum seq_state state;
	struct uplink *uplink;
	struct procs *procs;
	struct outlog log;
	struct runspec spec;
	uint32_t command;
	struct proc *proc; /* of the command; NULL: none */
	struct proc_spec proc_spec;
	struct proc_origin origin;
	struct outlog_stream out[2]; /* stdout, stderr */

	uint8_t stop;          /* reason of a cancel, or 0 */
	const char *stop_text; /* for the end of what it ended */
	bool failed;
	uint32_t failed_command;
	bool has_dir;
	bool unwanted; /* its log is dropped as it comes */
	uint32_t removed;
	size_t *kept_total; /* in which this log's memory is counted */
	size_t kept_bytes;
};

/* seq_new - takes the spec (and zeroes *spec) */
struct seq *seq_new(const struct uuid *id, struct runspec *spec,
    struct uplink *uplink, struct procs *procs);
void seq_free(struct seq *q); /* without a process */
void seq_start(struct seq *q);
/* seq_on_room - the log was acknowledged further */
void seq_on_room(struct seq *q);
/* seq_count_kept - at its end: count the log's memory in *total from now on,
 * until it is freed; seq_release_if_taken - free it once all of it is
 * acknowledged */
void seq_count_kept(struct seq *q, size_t *total);
void seq_release_if_taken(struct seq *q);
/* seq_unwant - nobody takes its log any more: kill its tree; it still ends */
void seq_unwant(struct seq *q);
/* seq_cancel - kill its tree, start nothing more; the first reason counts.
 * text is a literal */
void seq_cancel(struct seq *q, enum runlog_reason reason, const char *text);
/* seq_clean - in SEQ_CLEANING: a slice of it */
void seq_clean(struct seq *q);

#endif
