/*
 * task.h - a run in a box: from its agent's log into its spool, to its end
 *
 *	WAITING		for the agent, or for room on its link
 *	ASKED		a channel was opened on this stream
 *	GOING		the agent has it
 *	COMPLETE	its log is whole; perhaps artifacts are copied
 *	OVER		RUN_ENDED was told
 *
 * A lost link takes ASKED and GOING back to WAITING.  What the front calls a
 * run is a task here, as long as this worker has to do with it.
 *
 * The spool is the truth about how far the log has come: what was written is
 * acknowledged, what is not is sent again after any loss.  A short log that
 * comes whole in one turn is not written: the front gets it with RUN_ENDED, and
 * the agent keeps it until the run is forgotten.  Every byte is checked before
 * it is written or told (runlog.h), since the log comes from inside the
 * sandbox.  When the disk's reserve is touched (room_watch.h), a run whose log
 * is not short is stopped, as one over its limit is; when the disk takes
 * nothing at all, it waits (the agent's credit runs out and its program
 * blocks), but not for long: front and clients are to hear of it.
 *
 * An agent is trusted to end its runs in time, and watched: limit_ms and the
 * host's grace after it was asked, or the grace after a cancel, the task is
 * ended here.
 *
 * It ends in one of two ways: its log comes to its end and on_complete is
 * called (copy artifacts if task_has_artifacts, then task_finish), or task_end
 * says otherwise.  Either tells the front once.  It stays until task_free (the
 * front has committed the end and forgot it).
 */
#ifndef WORKER_TASK_H
#define WORKER_TASK_H

#include "common/base.h"
#include "common/buf.h"
#include "common/err.h"
#include "common/frame.h"
#include "common/log.h"
#include "common/runlog_scan.h"
#include "common/msg/msg_gen.h"
#include "common/uuid.h"
#include "worker/link/peer.h"

/* How much of a log is taken beyond its limit, so that its end comes. */
#define TASK_MARGIN_BYTES (2u << 20)
#define TASK_UNACKED_MAX 16384
#define TASK_ACK_BYTES (FRAME_WINDOW_BYTES / 2) /* of a log that is fast */
/* That bytes have come is told no sooner after the last time. */
#define TASK_TELL_MS 10
#define TASK_DISK_RETRY_MS 250
#define TASK_OVERDUE_AGAIN_MS 1000
#define TASK_ZEROS_MAX (64u << 20) /* at a spool's end, that are cut off */
#define TASK_DISK_TRIES 3
/* Logs so short go on below the disk's reserve, and below half of it. */
#define TASK_LOW_BYTES (64u << 10)
#define TASK_OUT_BYTES (4u << 10)

struct event_base;
struct ipc_chan;
struct room_watch;
struct task;
struct timer;

/* What all tasks of a worker share. */
struct task_host {
	struct event_base *base;
	struct ipc_chan **front; /* *front NULL: gone */
	struct room_watch *room; /* of the spools' disk; or NULL */
	/* The spool's disk is full, or takes bytes again. */
	void (*on_disk)(bool full, const char *text, void *arg);
	void (*on_over)(void *arg); /* RUN_ENDED was told */
	void *arg;
	uint32_t grace_ms; /* beyond a run's limits */
};

/* What one task tells its owner. */
struct task_ops {
	void (*on_complete)(struct task *t, void *arg); /* its log is whole */
	/* The agent did not end it in time: it was ended here. */
	void (*on_overdue)(struct task *t, void *arg);
};

/* What RUN_START says.  Descriptors and spec become the run's. */
struct task_start {
	uint64_t tenant; /* whose it is, by the front's number */
	uint64_t id;
	struct uuid uuid;
	uint64_t spool_limit;
	char request[MSG_RUN_START_REQUEST_MAX + 1]; /* for log lines */
	int spool;
	uint8_t *spec;
	size_t nspec;
	uint32_t ncommands;
	bool is_root;      /* its commands are root of their sandbox */
	uint64_t limit_ms; /* of all its commands together */
};

/* task_tell - a log line about it; error may be NULL */
void task_tell(enum log_level level, const char *message,
    const struct task_start *s, const char *error);
/* task_start_clear - closes and frees what is still in it */
void task_start_clear(struct task_start *s);

enum task_state {
	TASK_WAITING,  /* for the agent */
	TASK_ASKED,    /* a channel was opened on this stream */
	TASK_GOING,    /* the agent has it */
	TASK_COMPLETE, /* the log is whole; perhaps artifacts are copied */
	TASK_OVER      /* RUN_ENDED was told */
};

/* For others to read, for task.c to write. */
struct task {
	const struct task_host *host;
	const struct task_ops *ops;
	void *arg;
	struct peer *peer;      /* NULL: no stream to the agent */
	struct peer_chan *chan; /* from ASKED on, while there is a stream */
	enum task_state state;
	struct task_start s;
	uint64_t length;  /* of the spool */
	uint64_t acked;   /* length last acknowledged to the agent */
	uint64_t told;    /* length last reported to the front */
	uint64_t told_ms; /* time of that report */
	uint64_t turn;    /* length at the end of the last turn */
	struct runlog_check check;
	struct buf records; /* for the front: u16 length and bytes each */
	struct buf pending; /* bytes that the full disk did not take */
	struct buf held; /* the log so far, of a run that began in this turn */
	struct timer *tell;    /* set while length is not reported */
	struct timer *retry;   /* set while bytes are pending */
	struct timer *overdue; /* set from ASKED to COMPLETE */
	bool overdue_once; /* the deadline passed while the agent was read */
	bool overdue_away; /* that time came while the agent was away */
	struct runlog_run_end log_end;
	uint8_t cancel;  /* reason of a cancel, 0: none */
	bool known;      /* the agent had the run at some time */
	uint8_t stopped; /* reason of a stop by the spool's or disk's limit */
	uint64_t most;   /* log length allowed after a stop */
	uint8_t tries;   /* writes of the pending bytes so far */
};

/* task_new - takes *s (also on failure); ops are kept by pointer.  ERR_PROTO
 * when the spool is none */
int task_new(const struct task_host *host, struct task_start *s,
    const struct task_ops *ops, void *arg, struct task **out,
    struct err *e) MUSTCHECK;
void task_free(struct task *t);

/* task_begin - reads what the spool has and tells the front of it */
void task_begin(struct task *t);
/* task_attach - the agent is there; known: what it said of this run in its
 * hello, NULL: nothing.  task_send: there is room again */
void task_attach(struct task *t, struct peer *p, const struct peer_run *known);
void task_send(struct task *t);
void task_detach(struct task *t);

/* task_flush - at the end of a turn: tell the front, acknowledge, complete */
void task_flush(struct task *t);

/* task_forget - the front has committed the end, or wants it no more: nor does
 * the agent need to keep it */
void task_forget(struct task *t);
void task_cancel(struct task *t, enum runlog_reason reason);
bool task_has_artifacts(const struct task *t);
void task_finish(struct task *t, const char *artifacts_error);
/* task_end - now, with what the spool has.  A log that is whole still says
 * itself how it ended; its artifacts are then what text is about. */
void task_end(struct task *t, enum runlog_reason reason, const char *text);

#endif
