/*
 * fleet.h - the workers: their channels, and which of them has which sandbox
 *
 * The one place that knows channels.  A worker comes with a fresh channel,
 * goes with its end, and comes again; whoever has sandboxes with it is told
 * both times.  Sending is the generated msg_send_...(fleet_chan(...), ...).
 */
#ifndef CORE_FLEET_H
#define CORE_FLEET_H

#include "common/base.h"
#include "common/err.h"
#include "common/msg/msg_gen.h"

#define FLEET_WORKERS_MAX 64

struct event_base;
struct fleet;
struct fleet_worker;
struct ipc_chan;

struct fleet_ops {
	/* Called once the worker has reported its engine's state; nothing is
	 * sent to it before. */
	void (*on_came)(uint32_t worker, void *arg);
	void (*on_went)(uint32_t worker, void *arg);
	/* What workers say.  The argument of its functions is the struct
	 * fleet_worker that said it; on_worker_state, on_engine_is and
	 * on_carrier_is are the
	 * fleet's own. */
	const struct msg_worker_to_front *handlers;
};

/* fleet_new - ops is kept by pointer; nworkers is 1 to FLEET_WORKERS_MAX */
struct fleet *fleet_new(struct event_base *base, uint32_t nworkers,
    const struct fleet_ops *ops, void *arg);
void fleet_free(struct fleet *f);
void *fleet_worker_arg(const struct fleet_worker *w);
uint32_t fleet_worker_index(const struct fleet_worker *w);
int fleet_on_worker_state(
    void *worker, const struct msg_worker_state *m, struct err *e) MUSTCHECK;
int fleet_on_carrier_is(
    void *worker, const struct msg_carrier_is *m, struct err *e) MUSTCHECK;
int fleet_on_engine_is(
    void *worker, const struct msg_engine_is *m, struct err *e) MUSTCHECK;

/* fleet_attach - fd, the fleet's from now on, leads to that worker; an earlier
 * channel to it is closed first */
void fleet_attach(struct fleet *f, uint32_t worker, int fd);
/* fleet_worker_gone - the supervisor says so; throttled: it keeps failing */
void fleet_worker_gone(struct fleet *f, uint32_t worker, bool throttled);

/* fleet_worker_quiet - the supervisor says so: it does not answer, or does
 * again.  New sandboxes go elsewhere meanwhile. */
void fleet_worker_quiet(struct fleet *f, uint32_t worker, bool quiet);

/* fleet_place - the worker for a new sandbox of this number: always the same
 * one, unless it is away and another is not */
uint32_t fleet_place(const struct fleet *f, uint64_t sandbox);
/* fleet_chan - to that worker; NULL while it is away, or has not come yet */
struct ipc_chan *fleet_chan(const struct fleet *f, uint32_t worker);
/* fleet_sweeper_chan - to the worker that lists and removes for the whole
 * backend, whoever has the sandboxes: the first that reaches it, since all
 * workers have the one of SANDBOX_BACKEND.  NULL: none does */
struct ipc_chan *fleet_sweeper_chan(const struct fleet *f);
/* fleet_is_away - a worker said that it has no engine, and none has one */
bool fleet_is_away(const struct fleet *f);
/* fleet_check - can that worker make a sandbox now?  ERR_BACKEND says why not,
 * in words for clients */
int fleet_check(
    const struct fleet *f, uint32_t worker, struct err *e) MUSTCHECK;
/* fleet_has_no_engine - that worker says that its engine is away */
bool fleet_has_no_engine(const struct fleet *f, uint32_t worker);
/* fleet_check_all - every worker has its engine, and that all that it makes
 * sandboxes of; else what is missing */
int fleet_check_all(const struct fleet *f, struct err *e) MUSTCHECK;

/* What a worker's engine says that it is; "" for what it does not say. */
struct fleet_engine {
	char name[MSG_ENGINE_IS_NAME_MAX + 1];
	char version[MSG_ENGINE_IS_VERSION_MAX + 1];
	char api[MSG_ENGINE_IS_API_MAX + 1];
	char runtime[MSG_ENGINE_IS_RUNTIME_MAX + 1];
	char runtimes[MSG_ENGINE_IS_RUNTIMES_MAX + 1];
};
/* fleet_look - how it stands with that worker, for who administers */
struct fleet_look {
	const char *word;   /* "up", "down", "unknown", "away" */
	int64_t since_ms;   /* since when it is that word; 0: it never came */
	const char *detail; /* what it says of its engine */
	/* As it was last said by this worker; NULL: not yet. */
	const struct fleet_engine *engine;
	/* By which carrier the agents of new sandboxes are reached; "": not
	 * known yet.  And why by that one. */
	const char *carrier, *carrier_why;
};
struct fleet_look fleet_look_at(const struct fleet *f, uint32_t worker);
/* fleet_engine - of the first worker that reaches it; NULL: none does */
const struct fleet_engine *fleet_engine(const struct fleet *f);
/* fleet_check_runtime - that worker's engine has it, or does not say what it
 * has; ERR_POLICY with what there is, in words for clients */
int fleet_check_runtime(const struct fleet *f, uint32_t worker,
    const char *runtime, struct err *e) MUSTCHECK;

struct fleet_stats {
	uint64_t total, ready, restarts;
};
struct fleet_stats fleet_stats(const struct fleet *f);

#endif
