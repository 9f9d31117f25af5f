/*
 * core.h - the product's rules: who may run what where, and what became of it
 *
 * Everything is asynchronous on one loop.  The core knows no JSON, no HTTP, no
 * MCP and no tool; those who do (tools/, front/) call in here and join buses.
 *
 *	tenants    who may call, and what each may have
 *	secrets    what tenants keep for their commands     seal
 *	names      who holds an identifier          (sandbox.c asks it)
 *	sandbox    containers, step by step         sandbox_step
 *	run        programs in them, step by step   run_step, run_row
 *	sched      what waits for its turn
 *	quota_use  what each tenant has, and whether it may have more
 *	fleet      the workers
 *	census     what the engine has and the database has not
 *	artifacts  files on their way in
 *	logs       output, read off the loop        log_digest, threads
 *	asks       questions to the agents in sandboxes
 *	disk       room for all that
 *	lookup     a run by its id; follow: its log, at a reader's pace
 *	acts       who did what, for the audit
 *	bus        who wants to know                counters, and those above
 *	event_feed who follows what is told: of tenants  event_news: of the
 *server
 *
 * core.c puts them together: it hands on what workers say, lets the scheduler
 * have its turn, and does what the clock asks for.
 */
#ifndef CORE_CORE_H
#define CORE_CORE_H

#include "common/base.h"
#include "common/err.h"
#include "common/principal.h"
#include "supervisor/core/bus.h"
#include "supervisor/core/counters.h"
#include "supervisor/core/fleet.h"

struct acts;
struct asks;
struct conf;
struct core;
struct quota_uses;
struct event_base;
struct event_feeds;
struct logs;
struct runs;
struct sandbox;
struct sandboxes;
struct secrets;
struct webhooks;
struct store;
struct tenants;

struct core_parts { /* all kept by pointer */
	struct event_base *base;
	const struct conf *conf;
	struct store *store;
	const char *instance;      /* id of what is ours on the engine */
	struct webhooks *webhooks; /* NULL: nobody has any */
	/* What the database has and what the engine has do not belong
	 * together (census.h): the process should end. */
	void (*refuse)(const char *why, void *arg);
	void *refuse_arg;
};
int core_new(
    const struct core_parts *parts, struct core **out, struct err *e) MUSTCHECK;
void core_free(struct core *c);
/* core_recover - load what the database has; before the first worker comes */
int core_recover(struct core *c, struct err *e) MUSTCHECK;
/* core_is_settled - clients may come: the database is the instance's, or there
 * is no engine that could say otherwise */
bool core_is_settled(const struct core *c);
/* core_drain - admit nothing new from now on */
void core_drain(struct core *c);

/* Workers: a channel to that one, the core's from now on; or its loss. */
void core_attach_worker(struct core *c, uint32_t worker, int fd);
void core_worker_gone(struct core *c, uint32_t worker, bool throttled);

/* Its parts, for those who work with them. */
struct event_base *core_base(const struct core *c);
const struct conf *core_conf(const struct core *c);
struct store *core_store(const struct core *c);
struct bus *core_bus(struct core *c);
struct event_feeds *core_event_feeds(const struct core *c);
struct logs *core_logs(const struct core *c);
struct runs *core_runs(const struct core *c);
struct acts *core_acts(const struct core *c);
struct tenants *core_tenants(const struct core *c);
struct sandboxes *core_sandboxes(const struct core *c);
struct secrets *core_secrets(const struct core *c);
struct quota_uses *core_quota_uses(const struct core *c);
struct asks *core_asks(const struct core *c);

/* core_admit_sandbox - may who have one more, or (old not NULL) a new one in
 * place of old?  ERR_WRONG_STATE: the server is shutting down; ERR_DISK_FULL;
 * ERR_QUOTA; ERR_LIMIT: the rest is for others */
int core_admit_sandbox(const struct core *c, struct principal *who,
    const struct sandbox *old, struct err *e) MUSTCHECK;
/* core_admit_run - one more run, in sb (NULL: in one that is to be made)?
 * The same, and ERR_LIMIT: MAX_ACTIVE_RUNS, MAX_SANDBOX_RUNS,
 * MAX_QUEUED_BYTES */
int core_admit_run(const struct core *c, struct principal *who,
    const struct sandbox *sb, struct err *e) MUSTCHECK;
/* core_delete_run - an ended run is forgotten with all its files; done is as
 * store_run_delete's.  ERR_CONFLICT at once, and done is not called: it has not
 * ended */
int core_delete_run(struct core *c, const struct principal *who,
    const struct uuid *run, store_done_cb done, void *arg,
    struct err *e) MUSTCHECK;
/* core_turn - start what may start: after a run was made */
void core_turn(struct core *c);
/* core_check - 0 when calls can be served now; else what is missing */
int core_check(const struct core *c, struct err *e) MUSTCHECK;

struct core_stats {
	uint64_t active_sandboxes, active_runs;
	uint64_t workers_ready, workers_total, worker_restarts;
	uint64_t containers; /* census_containers */
	struct store_usage usage;
};
/* core_spool_bytes - of the logs of runs that go */
uint64_t core_spool_bytes(const struct core *c);
struct core_stats core_stats(const struct core *c);
struct fleet *core_fleet(const struct core *c);
const struct counters *core_counters(const struct core *c);

#endif
