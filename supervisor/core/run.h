/*
 * run.h - runs: from a wish to an end on disk
 *
 * run.c writes struct run and nobody else does; others read it.  How a run
 * moves is run_step.h's table.  A run is in the list of its phase, and while
 * it waits or goes it is also in its sandbox's queue (sched.h); it leaves both
 * the sandbox and the queue when it is over, before its end is on disk.
 *
 * A run lives as long as somebody holds a reference; the registry holds one
 * until the end is on disk.  Whoever keeps a pointer to a run holds one.
 *
 * What happens to a run is told on its own bus, then on the core's (bus.h).
 */
#ifndef CORE_RUN_H
#define CORE_RUN_H

#include <sys/queue.h>

#include "common/base.h"
#include "common/err.h"
#include "common/hashmap.h"
#include "common/msg/msg_gen.h"
#include "common/uuid.h"
#include "supervisor/core/artifacts.h"
#include "supervisor/core/bus.h"
#include "supervisor/core/logs.h"
#include "supervisor/core/run_asked.h"
#include "supervisor/core/run_row.h"
#include "supervisor/core/run_step.h"
#include "supervisor/core/run_wish.h"
#include "supervisor/core/sched.h"
#include "supervisor/store/store.h"

struct conf;
struct event_base;
struct fleet;
struct runs;
struct secrets;
struct timer;

enum run_recorded {
	RUN_NOT_RECORDED, /* on its way */
	RUN_IS_RECORDED,
	RUN_WAS_REFUSED /* its caller was told so; its end is not stored */
};

struct run {
	struct runs *runs;
	struct sandbox *sandbox; /* NULL once it left it; read only */
	uint32_t worker;         /* that has, or had it */
	struct store_run row;    /* as far as it is known, or on disk */
	enum run_phase phase;
	unsigned int refs;
	struct bus bus;
	uint64_t made_us;     /* monotonic; 0: by an earlier front */
	int64_t sent_wall_us; /* its turn came; 0: not yet, or then */
	uint64_t changes;     /* of its row, since it is in memory */
	struct sched_item turn;
	struct run_asked asked;
	bool is_due;        /* its turn has come, and its spec is on its way */
	bool is_reread;     /* its spec comes from disk: it may be damaged */
	bool is_unfit;      /* it was, and the run is about to end */
	bool is_told;       /* RUN_START went to its worker, since that came */
	bool has_old_files; /* its sandbox came up for it with such files */
	bool is_doubtful;   /* waits, but an earlier server may have sent it */
	enum run_recorded recorded;
	struct store_log *log;
	uint64_t length;       /* of the log, as far as it is known */
	struct log_view *view; /* NULL: nobody has looked yet */
	enum run_merge merge;
	struct run_log_end log_end;
	struct artifacts artifacts;
	enum runlog_reason cancel; /* asked for, 0: not */
	enum runlog_reason why;    /* it is over, and the words for it */
	char *why_text;
	bool is_lost;  /* the log alone says what it had done */
	int fail_code; /* ERR_*: it ended before it began; for its caller */
	struct run_ending ending;
	/* When it should be over, whatever its agent says: the sum of its
	 * commands' limits and RUN_GRACE_MS (decision 16); 0: not yet. */
	uint64_t deadline_ms;
	bool is_for_files;   /* the deadline: its programs are over */
	unsigned int nreads; /* of its log that failed */
	struct timer *retry;
	struct hash_entry by_id;
	struct hash_entry by_uuid;
	TAILQ_ENTRY(run) link; /* in the list of its phase */
};

/* ---- the registry */

struct runs_parts {
	struct event_base *base;
	const struct conf *conf;
	struct store *store;
	struct logs *logs;
	struct fleet *fleet;
	struct secrets *secrets; /* NULL: no run refers to any */
	struct bus *bus;         /* the core's */
};
struct runs *runs_new(const struct runs_parts *parts);
/* runs_free - all of them, whoever holds them: at the end of the process, or
 * of a test, when nothing calls back any more */
void runs_free(struct runs *rs);
void runs_set_next_id(struct runs *rs, uint64_t id);
struct run *runs_find(struct runs *rs, uint64_t id);
struct run *runs_find_uuid(
    struct runs *rs, struct tenant_id tenant, const struct uuid *uuid);
/* runs_overdue - one that should be over by its limits, and whose sandbox is
 * there to say so but does not; or NULL */
struct run *runs_overdue(struct runs *rs, uint64_t now_ms);
/* runs_asked_bytes - what those that are not over were asked to do */
uint64_t runs_asked_bytes(const struct runs *rs);
/* runs_active - those whose end is not on disk */
uint64_t runs_active(const struct runs *rs);

/* ---- one run */

/*
 * run_create - a row, a log, a place in the sandbox's queue
 *
 * *w gives up its rows.  The run is the registry's; take a reference to keep
 * it.  BUS_RUN_RECORDED or BUS_RUN_REFUSED follows, never inside this call.
 * ERR_INVAL (what cannot be encoded), ERR_SYS, ERR_DB (no log): there is no
 * run then.  The caller calls sched_turn.
 */
int run_create(struct runs *rs, struct sandbox *sb, struct run_wish *w,
    struct run **out, struct err *e) MUSTCHECK;
struct run_fate { /* how one ends without its sandbox: see run_sandbox_gone */
	enum runlog_reason reason;
	int code;
	const char *text; /* a constant */
};
/* run_restore - one that was unfinished when the server started; sb NULL: its
 * sandbox is no more, and it ends as fate says.  *out is the registry's. */
int run_restore(struct runs *rs, struct sandbox *sb,
    const struct run_fate *fate, const struct store_run *row, struct run **out,
    struct err *e) MUSTCHECK;

struct run *run_ref(struct run *r);
void run_unref(struct run *r);

static inline struct tenant_id
run_tenant(const struct run *r)
{
	return (struct tenant_id){r->row.tenant};
}

/* run_cancel - its program's whole tree is killed; it ends as reason */
void run_cancel(struct run *r, enum runlog_reason reason);
/* run_record - its row goes to disk now, if it was to wait for the end */
void run_record(struct run *r);
/* run_waits_for - what, if it waits; NULL (it has ended): nothing */
static inline enum sched_wait
run_waits_for(const struct run *r)
{
	return r == NULL ? SCHED_NOTHING_WAITS : sched_item_waits(&r->turn);
}
/* run_never_began - something of ours kept it from beginning: that is no end
 * of the program's, and row.error says what it was, once it is over */
static inline bool
run_never_began(const struct run *r)
{
	return r->fail_code == ERR_BACKEND || r->fail_code == ERR_POLICY ||
	    r->fail_code == ERR_QUOTA;
}
/* run_read - somebody is to see its commands' texts, which may be on disk
 * alone: true: they are in memory; false: when cb is called, with rc 0.  They
 * stay until run_read_end, which may be called at any time, also of a reader
 * that never joined. */
bool run_read(struct run *r, struct run_reader *rd,
    void (*cb)(int rc, const struct err *why, void *arg), void *arg) MUSTCHECK;
void run_read_end(struct run *r, struct run_reader *rd);
/* run_chan - to its worker; NULL while that is away */
struct ipc_chan *run_chan(const struct run *r);
/* run_view - its log for readers: made when first asked for, the run's */
struct log_view *run_view(struct run *r);

/* ---- from the scheduler, the sandbox, and the worker */

void run_start(struct run *r); /* its turn has come */
void run_resend(struct run *r);
/* run_sandbox_gone - it ends as reason, unless its log says otherwise; one
 * that is lost when it should long be over ends as timeout.  It has left the
 * queue when this returns.  code and text: see struct run */
void run_sandbox_gone(
    struct run *r, enum runlog_reason reason, int code, const char *text);
/* run_set_deadline - its sandbox is up, and the run was sent: its time counts;
 * again, after a worker was away: it gets the grace once more */
void run_set_deadline(struct run *r);
/* run_move - it waits for another sandbox from now on */
void run_move(struct run *r, struct sandbox *to);
/* run_set_container - its sandbox runs in this one */
void run_set_container(struct run *r, const char *container_id);
/* run_set_old_files - its sandbox has just come up, with the files of one that
 * was lost: its caller is to know */
static inline void
run_set_old_files(struct run *r)
{
	r->has_old_files = true;
}

void run_on_bytes(struct run *r, uint64_t length);
int run_on_record(
    struct run *r, const struct span *record, struct err *e) MUSTCHECK;
int run_on_ended(
    struct run *r, const struct msg_run_ended *m, struct err *e) MUSTCHECK;
/* What the worker says of the files that it left. */
void run_on_artifact_open(struct run *r, const struct msg_artifact_open *m);
void run_on_artifact_done(struct run *r, const struct msg_artifact_done *m);
void run_on_artifact_failed(struct run *r, const struct msg_artifact_failed *m);

#endif
