/*
 * quota_use.h - what each tenant has of its quotas, and whether it may have
 * more
 *
 * Counts are changed where states are: a sandbox counts from sandbox_enter
 * until it is gone, a run by the lane that its sandbox's queue is in.  Limits
 * are the tenants' own of this moment (tenants_quota): a changed quota holds
 * for the next request, and what is over a lowered one stays.
 */
#ifndef CORE_QUOTA_USE_H
#define CORE_QUOTA_USE_H

#include <sys/queue.h>

#include "common/base.h"
#include "common/err.h"
#include "common/hashmap.h"
#include "common/principal.h"
#include "common/quota.h"
#include "supervisor/core/sched.h"

struct conf;
struct quota_uses;
struct tenant;
struct store;
struct store_run;
struct store_sandbox;
struct tenants;

/* quota_use.c writes it and nobody else does, but for what sched.c does in the
 * lane. */
struct quota_use {
	struct quota_uses *all;
	struct tenant_id tenant;
	struct sched_lane lane;   /* its runs */
	struct sched_lane engine; /* what it asks of the engine */
	struct sched_queue asked; /* of the engine, in order */
	unsigned int begun;       /* turns of a backlog, until it has a rest */
	unsigned int rest;        /* ticks that are left of one */
	uint64_t sandboxes;
	uint64_t nano_cpus;    /* of them */
	uint64_t memory_bytes; /* of them */
	uint64_t streams;
	unsigned int busy;        /* sandboxes, between the last two recounts */
	unsigned int busy_so_far; /* since the last one */
	/* Its own among the tenants that have busy sandboxes, from 0 on, for as
	 * long as it has some; of more than 64 tenants some share one. */
	unsigned int place;
	bool has_place;
	uint64_t worked_ms; /* when it had the engine or a command at work */
	uint64_t ended;     /* runs, then */
	uint64_t day_ms;    /* of runs that ended, today (UTC) */
	uint64_t going_ms;  /* of those that go: as of the last recount */
	uint64_t refusals;  /* that are not in the database yet */
	uint64_t refused[QUOTA_COUNT]; /* since the start, as what follows */
	uint64_t requests;
	uint64_t runs_completed, runs_failed, runs_canceled;
	uint64_t output_bytes;
	uint64_t tokens_ms; /* of requests: thousandths */
	uint64_t filled_ms; /* when; 0: never */
	struct hash_entry by_tenant;
	TAILQ_ENTRY(quota_use) link;
};

/* All are kept by pointer. */
struct quota_uses *quota_uses_new(const struct conf *conf,
    const struct tenants *tenants, struct store *store, struct sched *sched,
    struct sched *engine);
void quota_uses_free(struct quota_uses *all); /* NULL is fine */
/* quota_uses_on_refused - cb is told of each refusal */
void quota_uses_on_refused(struct quota_uses *all,
    void (*cb)(struct tenant_id tenant, enum quota_key key, void *arg),
    void *arg);
/* quota_uses_tick - what a changed quota, or a new day, permits begins in the
 * next sched_turn; who has rested from the engine is served at once */
void quota_uses_tick(struct quota_uses *all);
/* quota_uses_sandboxes - of all tenants */
uint64_t quota_uses_sandboxes(const struct quota_uses *all);
/* quota_use_of - never NULL; it stays until quota_uses_free */
struct quota_use *quota_use_of(struct quota_uses *all, struct tenant_id tenant);

/* quota_use_ask_engine - item waits for its tenant's turn at the engine.
 * Beside other tenants, a tenant has few of them going at a time: what was
 * begun is not interrupted for the next. */
void quota_use_ask_engine(struct quota_use *u, struct sched_item *item);
/* quota_use_begin_engine - item's turn has come.  A tenant that has a backlog
 * while others are at work rests between its turns, after the first few of it,
 * some ticks after each so many as it may have at a time: what the engine does
 * for it takes processors from their runs (decision 64). */
void quota_use_begin_engine(const struct sched_item *item);
/*
 * The day: what runs took of it that ended is in the database, and is read
 * once; what those take that go is counted with each tick: quota_uses_recount,
 * then quota_use_add_going for each, and quota_use_drop_going when one leaves
 * its sandbox.  quota_use_end_run: its end is on disk.
 */
int quota_uses_restore(
    struct quota_uses *all, int64_t wall_ms, struct err *e) MUSTCHECK;
void quota_uses_recount(struct quota_uses *all, int64_t wall_ms);
void quota_use_add_going(struct quota_use *u, const struct store_run *row);
void quota_use_drop_going(struct quota_use *u, const struct store_run *row);
void quota_use_end_run(struct quota_use *u, const struct store_run *row);

/* quota_use_divide - total by n, rounded up to a power of two so that few
 * engine calls follow from one more of them, but no less than least */
uint64_t quota_use_divide(uint64_t total, uint64_t n, uint64_t least);
/* quota_use_cpu_shares - of each of its sandboxes: its weight, divided by their
 * number */
uint32_t quota_use_cpu_shares(const struct quota_use *u);

/* quota_use_add_busy - one of its sandboxes is */
void quota_use_add_busy(struct quota_use *u);
/* quota_use_processors - of this host */
unsigned int quota_use_processors(const struct quota_use *u);
/* quota_use_is_crowded - other tenants are at work, or were some seconds ago.
 * Never on a server that is open. */
bool quota_use_is_crowded(const struct quota_use *u);

/* quota_use_limit_sandbox - the limits of a new one: the configured ones, cut
 * to what the tenant's may have */
void quota_use_limit_sandbox(
    const struct quota_use *u, struct store_sandbox *row);
/* quota_use_add_sandbox, quota_use_drop_sandbox - of this row, whose limits
 * must be the same both times */
void quota_use_add_sandbox(
    struct quota_use *u, const struct store_sandbox *row);
void quota_use_drop_sandbox(
    struct quota_use *u, const struct store_sandbox *row);

/*
 * Refusals: ERR_QUOTA, with err.refusal.  Each is counted.
 *
 * quota_use_admit_sandbox - one more with the limits of a new one?  sandboxes,
 * cpu_cores, memory_mb, disk_mb
 */
int quota_use_admit_sandbox(struct quota_use *u, struct err *e) MUSTCHECK;
/* quota_use_admit_replacement - one more in place of one that goes?  With
 * those that go, there are twice as many as sandboxes says */
int quota_use_admit_replacement(struct quota_use *u, struct err *e) MUSTCHECK;
/* quota_use_history - what is kept of ended runs: at most max */
struct store_keep quota_use_history(
    struct quota_uses *all, struct tenant_id tenant, uint64_t max);
/* quota_use_admit_run - runs_queued, run_seconds_per_day */
int quota_use_admit_run(struct quota_use *u, struct err *e) MUSTCHECK;
/* quota_use_admit_request - 0: it counts; requests_per_second */
int quota_use_admit_request(
    struct quota_use *u, uint64_t now_ms, struct err *e) MUSTCHECK;
/* quota_use_add_stream - 0: quota_use_drop_stream follows once; streams */
int quota_use_add_stream(struct quota_use *u, struct err *e) MUSTCHECK;
void quota_use_drop_stream(struct quota_use *u);

/* quota_use_tenant - whose it is; NULL: gone */
const struct tenant *quota_use_tenant(const struct quota_use *u);

#endif
