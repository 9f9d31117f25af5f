/*
 * run.h - one run: from its agent's log into its spool, and to its end
 *
 * The spool is the truth about how far the log has come: what was written is
 * acknowledged, what is not is sent again after any loss.  Every byte is
 * checked before it is written (runlog.h), since the log comes from inside the
 * sandbox.  A full disk only makes the run wait: the agent's credit runs out
 * and its program blocks.
 *
 * A run ends in one of two ways: its log comes to its end and on_complete is
 * called (copy artifacts if run_has_artifacts, then run_finish), or
 * run_end says otherwise.  Either tells the front once.  It stays until
 * run_free (the front has committed the end and forgot it).
 */
#ifndef WORKER_RUN_H
#define WORKER_RUN_H

#include <sys/queue.h>

#include "common/base.h"
#include "common/buf.h"
#include "common/err.h"
#include "common/runlog_check.h"
#include "common/uuid.h"
#include "worker/link/peer.h"

/* How much of a log is taken beyond its limit, so that its end comes. */
#define RUN_MARGIN_BYTES (2u << 20)
#define RUN_UNACKED_MAX 16384 /* of an ended log */
#define RUN_DISK_RETRY_MS 250

struct event;
struct event_base;
struct ipc_chan;
struct run;

/* What all runs of a worker share. */
struct run_host {
	struct event_base *base;
	struct ipc_chan **front; /* *front NULL: gone */
	/* The spool's disk is full, or takes bytes again. */
	void (*on_disk)(bool full, const char *text, void *arg);
	void (*on_over)(void *arg); /* RUN_ENDED was told */
	void *arg;
};

/* What RUN_START says.  Descriptors and spec become the run's. */
struct run_start {
	uint64_t id;
	struct uuid uuid;
	uint64_t spool_limit;
	int spool;
	uint8_t *spec;
	size_t nspec;
	uint32_t ncommands;
};

enum run_stage {
	RUN_WAITING,  /* for the agent */
	RUN_ASKED,    /* RUN_START is on this stream */
	RUN_GOING,    /* the agent has it */
	RUN_COMPLETE, /* the log is whole; perhaps artifacts are copied */
	RUN_OVER      /* RUN_ENDED was told */
};

struct run {
	const struct run_host *host;
	void (*on_complete)(struct run *r, void *arg);
	void *arg;
	struct peer *peer; /* NULL: away */
	enum run_stage state;
	struct run_start s;
	uint64_t length; /* of the spool */
	uint64_t acked;  /* what the agent was told of it */
	uint64_t told;   /* and the front */
	struct runlog_check check;
	struct buf records; /* u16 length + bytes each, to be told */
	struct buf pending; /* the disk was full for these */
	struct event *retry;
	struct runlog_run_end log_end;
	uint8_t cancel; /* reason asked for, 0: none */
	bool known;     /* the agent had it at some time */
	bool limited;   /* over its spool's limit */
	bool copying;   /* the sandbox's: is in its queue for artifacts */
	TAILQ_ENTRY(run) link;
	TAILQ_ENTRY(run) copy_link;
};
TAILQ_HEAD(run_list, run);

/* run_new - takes *s (also on failure).  ERR_PROTO when the spool is none */
int run_new(const struct run_host *host, struct run_start *s,
    void (*on_complete)(struct run *, void *), void *arg, struct run **out,
    struct err *e) MUSTCHECK;
void run_free(struct run *r);

/* run_begin - reads what the spool has and tells the front of it */
void run_begin(struct run *r);
/* run_attach - the agent is there; known: what it said of this run in its
 * hello, NULL: nothing.  run_send: there is room again */
void run_attach(struct run *r, struct peer *p, const struct peer_run *known);
void run_send(struct run *r);
void run_detach(struct run *r);

int run_on_known(struct run *r, bool fresh, struct err *e) MUSTCHECK;
void run_on_refused(struct run *r, const char *why);
void run_on_log(struct run *r, uint64_t offset, const uint8_t *p, size_t n);
/* run_flush - at the end of a turn: tell the front, acknowledge, complete */
void run_flush(struct run *r);

void run_cancel(struct run *r, enum runlog_reason reason);
bool run_has_artifacts(const struct run *r);
void run_finish(struct run *r, uint32_t files, const char *artifacts_error);
/* run_end - now, with what the spool has.  A log that is whole still says
 * itself how it ended; its artifacts are then what text is about. */
void run_end(struct run *r, enum runlog_reason reason, const char *text);

#endif
