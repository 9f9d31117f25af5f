/*
 * internal.h - what the files of service/ share
 *
 * One thread, one loop.  A sandbox is found by its number and, while it can
 * take runs, by (tenant, identifier); a run by its number and its UUID.  Runs
 * stay in memory until their end is on disk and nobody holds them any more.
 */
#ifndef SERVICE_INTERNAL_H
#define SERVICE_INTERNAL_H

#include <sys/queue.h>

#include <event2/event.h>
#include <jansson.h>

#include "common/msg/msg_gen.h"
#include "common/runlog_check.h"
#include "common/runspec.h"
#include "supervisor/service/service.h"
#include "supervisor/store/store.h"

#define PEERS_MAX 64

struct denylist;
struct run;
struct sandbox;
struct language;

#define WAITERS_MAX 64 /* awaiting callers of one run */

/* ---- workers */

struct peer {
	struct service *service;
	uint32_t index;
	struct ipc_chan *chan; /* NULL: no worker now */
	bool engine_up;        /* as it last said */
	bool engine_known;
	bool throttled;
	char detail[256];
};

void peer_attach(struct service *s, uint32_t index, int fd);
void peer_lost(struct service *s, struct peer *p);
struct peer *peer_of_sandbox(struct service *s, uint64_t sandbox);
/* peer_check - can a new sandbox be made there? ERR_BACKEND says why not */
int peer_check(const struct peer *p, struct err *e) MUSTCHECK;

/* ---- sandboxes */

enum sandbox_state {
	SANDBOX_OPENING, /* being created or adopted */
	SANDBOX_READY,
	SANDBOX_REMOVING, /* no longer found by identifier */
	SANDBOX_DEAD      /* gone; freed when its last run is */
};

/* Who waits for an opening or removal to end. */
struct sandbox_waiter {
	STAILQ_ENTRY(sandbox_waiter) link;
	void (*cb)(
	    struct sandbox *sb, int rc, const struct err *why, void *arg);
	void *arg;
};
STAILQ_HEAD(sandbox_waiters, sandbox_waiter);

TAILQ_HEAD(run_list, run);

struct sandbox {
	struct service *service;
	struct store_sandbox row;
	enum sandbox_state state;
	bool told;         /* OPEN or REMOVE went to the present worker */
	bool settled;      /* and so did all runs that any worker had */
	bool held;         /* its lists are being walked: not freed */
	bool asked_create; /* a create was sent at some time: look first */
	bool adopting;     /* the open in flight is an adoption */
	bool was_ready;
	bool reaped;
	int64_t expires_saved_ms; /* what the database has */
	struct sandbox_waiters open_waiters;
	struct sandbox_waiters gone_waiters;
	struct run_list waiting; /* not sent, in order */
	struct run_list active;  /* sent to the worker */
	unsigned int nactive;
	struct run *lock_holder;
	uint64_t retry_ms; /* when to ask again for a failed removal */
	TAILQ_ENTRY(sandbox) link;
};
TAILQ_HEAD(sandbox_list, sandbox);

struct sandbox *sandbox_by_id(struct service *s, uint64_t id);
struct sandbox *sandbox_by_identifier(
    struct service *s, uint64_t tenant, const char *identifier);
struct sandbox_request { /* its texts are copied */
	const char *identifier;
	const char *image;
	const char *origin;
	uint32_t generation;
	uint32_t ttl_s;
};
/* sandbox_create - a new one (the identifier is free); opens at once */
struct sandbox *sandbox_create(struct service *s, const struct principal *p,
    const struct sandbox_request *q);
struct sandbox *sandbox_restore(
    struct service *s, const struct store_sandbox *row);
void sandbox_touch(struct sandbox *sb, uint32_t ttl_s); /* 0: as it is */
/* sandbox_remove - ends its runs as canceled and takes it away */
void sandbox_remove(struct sandbox *sb);
void sandbox_pump(struct sandbox *sb); /* send what may be sent */
/* sandbox_restore_active - a restored run that had begun: not queued again */
void sandbox_restore_active(struct sandbox *sb, struct run *r);
void sandbox_tell(struct sandbox *sb); /* say all to a fresh worker */
void sandbox_wait_open(struct sandbox *sb,
    void (*cb)(struct sandbox *, int, const struct err *, void *), void *arg);
void sandbox_wait_gone(struct sandbox *sb,
    void (*cb)(struct sandbox *, int, const struct err *, void *), void *arg);
void sandbox_on_ready(struct sandbox *sb, const char *container_id);
void sandbox_on_failed(struct sandbox *sb, int code, const char *text);
void sandbox_on_lost(struct sandbox *sb, const char *why);
void sandbox_on_removed(struct sandbox *sb, int code, const char *text);
void sandbox_run_left(struct sandbox *sb, struct run *r);
void sandbox_reap(struct service *s, int64_t wall_ms, uint64_t mono_ms);
void sandbox_free_all(struct service *s);

/* ---- runs */

enum run_phase {
	RUN_WAITING, /* in its sandbox's queue */
	RUN_SENT,    /* a worker has it */
	RUN_ENDING,  /* over; the end is on its way to disk */
	RUN_DONE     /* the end is on disk */
};

struct run_waiter {
	STAILQ_ENTRY(run_waiter) link;
	void (*cb)(struct run *r, int rc, const struct err *why, void *arg);
	void *arg;
	struct event *timer;
	struct run *run;
};
STAILQ_HEAD(run_waiters, run_waiter);

struct run_file { /* an artifact on its way in */
	STAILQ_ENTRY(run_file) link;
	uint32_t number;
	struct store_artifact row;
};
STAILQ_HEAD(run_files, run_file);

LIST_HEAD(follow_list, follow);

struct run {
	struct service *service;
	struct sandbox *sandbox; /* NULL once it left it */
	struct store_run row;
	enum run_phase phase;
	unsigned int refs;
	struct store_log *log; /* NULL: it could not be opened again */
	int spool_fd;          /* of log, or -1 */
	uint64_t length;       /* of the log, as far as it is known */
	bool lock;
	bool was_active; /* it is in its sandbox's active list */
	bool inserted;   /* the row is on disk */
	bool unrecorded; /* it could not be put there: nor can its end */
	bool in_log_end; /* the log has its RUN_ENDED */
	uint8_t cancel;  /* reason asked for, 0: none */
	int fail_code;   /* ERR_*: ended before it began, for the caller */
	struct runlog_run_end log_end;
	unsigned int nwaiters;
	struct run_waiters waiters;
	struct run_files files;
	struct follow_list follows;
	struct event *retry;   /* the end could not be written: again later */
	TAILQ_ENTRY(run) link; /* in its sandbox */
	TAILQ_ENTRY(run) all_link; /* in the service */
};

struct run *run_by_id(struct service *s, uint64_t id);
struct run *run_by_uuid(
    struct service *s, uint64_t tenant, const struct uuid *uuid);
struct run_request; /* args.h */
/* run_create - row, spool, queue; inserted is called when it is on disk or
 * could not be put there.  ERR_* when it cannot begin at all. */
int run_create(struct sandbox *sb, const struct principal *p,
    struct run_request *q,
    void (*inserted)(struct run *, int, const struct err *, void *), void *arg,
    struct err *e) MUSTCHECK;
struct run *run_restore(
    struct service *s, struct sandbox *sb, const struct store_run *row);
void run_send(struct run *r); /* RUN_START to its sandbox's worker */
void run_cancel(struct run *r, enum runlog_reason reason);
void run_on_bytes(struct run *r, uint64_t length);
int run_on_record(
    struct run *r, const uint8_t *p, size_t n, struct err *e) MUSTCHECK;
void run_on_ended(struct run *r, unsigned int reason, const char *text,
    const char *artifacts_error);
/* run_end_here - an end that no worker reports: the sandbox is lost, never
 * came, or was deleted; what the spool has is taken into account */
void run_end_here(
    struct run *r, unsigned int reason, int fail_code, const char *text);
/* run_await - cb when the end is on disk, or with ERR_LIMIT after timeout_ms
 * (0: no limit); holds a reference meanwhile */
int run_await(struct run *r, uint64_t timeout_ms,
    void (*cb)(struct run *, int, const struct err *, void *), void *arg,
    struct err *e) MUSTCHECK;
struct run *run_ref(struct run *r);
void run_unref(struct run *r);
void run_free_all(struct service *s);

/* run_record.c: what a record of the log means for the row. */
void run_take_record(
    struct run *r, const struct runlog_header *h, const uint8_t *payload);
void run_rescan(struct run *r); /* the whole spool again, after a loss */
void run_finish_row(struct run *r, unsigned int reason, const char *text);

/* ---- artifacts */

void artifact_on_open(
    struct run *r, struct ipc_chan *chan, const struct msg_artifact_open *m);
void artifact_on_done(struct run *r, const struct msg_artifact_done *m);
void artifact_drop_files(struct run *r);

/* ---- the log read back */

/* Where a log is: in memory, or in a file (fd, not owned). */
struct log_source {
	int fd;
	const uint8_t *mem;
	uint64_t length;
};
size_t logview_read(
    const struct log_source *l, uint64_t off, void *p, size_t n);

/* Per command, the first bytes of each stream. */
struct log_head {
	struct buf out[2];
};
#define LOG_SCAN_MAX (64u << 20)
/* logview_collect - heads[ncommands] are initialised here, clear each buffer.
 * merged (may be NULL) gets both streams of all commands as they came. */
void logview_collect(const struct log_source *l, uint32_t ncommands,
    size_t stdout_max, size_t stderr_max, struct log_head *heads,
    struct buf *merged);

json_t *view_run(const struct store_run *row, const struct log_source *l);
struct log_source run_log_source(const struct run *r);
json_t *view_time(int64_t wall_ms); /* null for 0 */

/* ---- followers */

void follow_run_changed(struct run *r);

/* ---- the service */

struct service {
	struct event_base *base;
	struct conf *conf;
	struct store *store;
	struct peer peers[PEERS_MAX];
	uint32_t npeers;
	struct sandbox_list sandboxes;
	struct run_list runs;
	void *sandbox_ids; /* tsearch(3) trees */
	void *sandbox_names;
	void *run_ids;
	void *run_uuids;
	uint64_t nsandboxes;
	uint64_t nruns;
	uint64_t next_sandbox;
	uint64_t next_run;
	uint64_t ended_since_trim;
	struct event *tick;
	uint64_t next_reap_ms;
	uint64_t next_sweep_ms;
	bool draining;
	unsigned int callers; /* tool calls not answered yet */
	void (*on_idle)(void *);
	void *idle_arg;
	struct language *languages;
	size_t nlanguages;
	struct denylist *denylist; /* args.h; NULL: off */
	struct service_stats stats;
};

/* service_caller_done - one tool call was answered */
void service_caller_done(struct service *s);
void service_count_command(
    struct service *s, enum command_status status, int64_t duration_ms);

#endif
