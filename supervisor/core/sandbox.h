/*
 * sandbox.h - sandboxes: who has which identifier, and in what container
 *
 * sandbox.c writes struct sandbox and nobody else does; others read it.  How
 * a sandbox moves is sandbox_step.h's table.  Its runs are in its queue
 * (sched.h); its name is held in names.h from its beginning until it is not
 * wanted any more.
 *
 * A sandbox is freed when it is gone, its last run has left it and its row
 * says so.  Its bus tells READY or FAILED, and at the end GONE; whoever joined
 * it has left the bus when GONE was told.
 */
#ifndef CORE_SANDBOX_H
#define CORE_SANDBOX_H

#include <sys/queue.h>

#include "common/base.h"
#include "common/err.h"
#include "common/hashmap.h"
#include "common/principal.h"
#include "common/xmalloc.h"
#include "supervisor/core/bus.h"
#include "supervisor/core/names.h"
#include "supervisor/core/sandbox_step.h"
#include "supervisor/core/sched.h"
#include "supervisor/core/share.h"
#include "supervisor/store/store.h"

struct conf;
struct event_base;
struct fleet;
struct quota_use;
struct quota_uses;
struct sandboxes;
struct timer;

#define SANDBOX_IDENTIFIER_MAX 36

struct sandbox {
	struct sandboxes *all;
	struct principal *owner; /* whose tenant it is */
	struct store_sandbox row;
	enum sandbox_state state;
	uint32_t worker;   /* that has it, or will */
	unsigned int pins; /* steps and writes under way: not freed */
	struct bus bus;
	struct sched_queue queue;
	struct sched_item turn; /* at the engine */
	struct quota_use *use;  /* its tenant's, which counts it */
	struct name_hold name;
	bool is_settled;          /* the worker knows that it was told of all
				   * old runs */
	bool is_resent;           /* of those that an earlier worker had */
	unsigned int ndoubtful;   /* old runs that wait: see run.is_doubtful */
	struct share_held share;  /* of the host, beside others */
	bool is_remainder;        /* none: files that one of its identifier left
				   * are removed */
	bool is_expired;          /* not wanted because its time was over */
	unsigned int nwrites;     /* of its row, under way */
	bool is_recorded;         /* the database has a row of it */
	bool is_behind;           /* the last write failed: made again */
	int64_t saved_expires_ms; /* what the database has */
	bool is_remove_due;       /* told when its row is written */
	bool is_open, is_held;    /* its gate, but for what is to be written */
	uint32_t left;      /* processes that commands left behind, told last */
	char *isolation;    /* how it is held, as JSON; NULL: not told */
	bool has_old_files; /* of one that was lost; while it comes up */
	struct err why;     /* for the deeds of a step */
	struct timer *retry;
	struct timer *save_again;
	struct hash_entry by_id;
	TAILQ_ENTRY(sandbox) link; /* in order of their numbers */
};

/* ---- the registry */

struct sandboxes_parts {
	struct event_base *base;
	const struct conf *conf;
	struct store *store;
	struct fleet *fleet;
	struct sched *sched;  /* of runs */
	struct sched *engine; /* of what is asked of it */
	struct quota_uses *uses;
	struct bus *bus; /* the core's */
};
struct sandboxes *sandboxes_new(const struct sandboxes_parts *parts);
void sandboxes_free(struct sandboxes *all);
void sandboxes_set_next_id(struct sandboxes *all, uint64_t id);
struct sandbox *sandboxes_find(struct sandboxes *all, uint64_t id);
/* sandbox_find_named - who holds the identifier, or NULL */
struct sandbox *sandbox_find_named(
    struct sandboxes *all, struct tenant_id tenant, const char *identifier);
uint64_t sandboxes_live(const struct sandboxes *all);
/* sandboxes_next - in the order of their numbers; NULL: the first, the last */
struct sandbox *sandboxes_next(
    const struct sandboxes *all, const struct sandbox *sb);
/* sandboxes_reap - those whose time is over and that nobody uses */
void sandboxes_reap(struct sandboxes *all, int64_t wall_ms);
/* sandboxes_share - a tick has passed (share.h): some whose share of the host
 * is another now get it; few at a time, it is an engine's work */
void sandboxes_share(struct sandboxes *all);
/* sandbox_on_worker - all of that worker; SANDBOX_WORKER_CAME or _WENT */
void sandbox_on_worker(
    struct sandboxes *all, uint32_t worker, enum sandbox_happening what);

/* ---- one sandbox */

struct sandbox_wish { /* its texts are copied */
	struct principal *who;
	const char *identifier;
	const char *image;
	const char *origin; /* the tool, for the row */
	uint32_t ttl_s;
};

/*
 * sandbox_open - a new one holds the identifier, which must be free
 *
 * ERR_LIMIT: MAX_SANDBOXES exist; ERR_BACKEND: its worker or the engine is
 * away.  BUS_SANDBOX_READY or BUS_SANDBOX_FAILED follows, never inside.
 */
int sandbox_open(struct sandboxes *all, const struct sandbox_wish *w,
    struct sandbox **out, struct err *e) MUSTCHECK;
/* sandbox_replace - *old loses its identifier to a new generation of the same
 * image, at once; each goes its own way from there.  ERR_LIMIT: twice
 * MAX_SANDBOXES exist or are being removed; ERR_BACKEND: as above.  Then *old
 * is as it was. */
int sandbox_replace(struct sandbox *old, uint32_t ttl_s, struct sandbox **out,
    struct err *e) MUSTCHECK;
/* sandbox_remainder - files that a sandbox of that identifier left when it was
 * lost are removed, and the next one is made behind that; nobody has the
 * identifier.  NULL: no files outlive a sandbox here.  BUS_SANDBOX_GONE
 * follows, or BUS_SANDBOX_REMOVE_FAILED before it, never inside. */
struct sandbox *sandbox_remainder(
    struct sandboxes *all, struct principal *owner, const char *identifier);
/* sandbox_restore - one of the database's; owner is its tenant */
void sandbox_restore(struct sandboxes *all, struct principal *owner,
    const struct store_sandbox *row);

/* sandbox_adopt - one that runs and that the database did not know: from now
 * on it does.  Of the row is taken what tells it from others; its identifier
 * must be free. */
void sandbox_adopt(struct sandboxes *all, struct principal *owner,
    const struct store_sandbox *row);

/* sandbox_touch - it was used; ttl_s 0: as it is */
void sandbox_touch(struct sandbox *sb, uint32_t ttl_s);
/* sandbox_remove - its runs end as canceled; BUS_SANDBOX_GONE follows, or
 * BUS_SANDBOX_REMOVE_FAILED before it.  May be told inside. */
void sandbox_remove(struct sandbox *sb);

/* sandbox_on_turn - it is its turn at the engine */
void sandbox_on_turn(struct sandbox *sb);

/* ---- from the worker, and of its runs */

void sandbox_on_up(struct sandbox *sb, const char *container_id);
void sandbox_on_failed(struct sandbox *sb, int code, const char *text);
void sandbox_on_lost(struct sandbox *sb, const char *why);
/* sandbox_on_hung - its agent does not do its work: it is removed, its runs
 * end as lost, and what was never sent goes to a fresh one */
void sandbox_on_hung(struct sandbox *sb);
/* code 0: nothing is left of it */
void sandbox_on_removed(struct sandbox *sb, int code, const char *text);
/* sandbox_on_isolation - before it is up: how its engine holds it, as JSON */
static inline void
sandbox_on_isolation(struct sandbox *sb, const char *text)
{
	free(sb->isolation);
	sb->isolation = xstrdup(text);
}
/* sandbox_on_old_files - before it is up: whether a new one has the files of
 * one of its identifier that was lost */
static inline void
sandbox_on_old_files(struct sandbox *sb, bool has)
{
	sb->has_old_files = has &&
	    (sb->state == SANDBOX_CREATING || sb->state == SANDBOX_LOOKING);
}
/* sandbox_on_left - so many processes that its commands left behind live */
static inline void
sandbox_on_left(struct sandbox *sb, uint32_t count)
{
	sb->left = count;
}
/* sandbox_add_doubtful - a restored run waits in its queue */
void sandbox_add_doubtful(struct sandbox *sb);
/* sandbox_drop_doubtful - and was sent, or is over */
void sandbox_drop_doubtful(struct sandbox *sb);
/* sandbox_on_run_told - its worker was, later than its turn came */
void sandbox_on_run_told(struct sandbox *sb);
/* sandbox_on_run_left - may free sb */
void sandbox_on_run_left(struct sandbox *sb);

#endif
