#include "supervisor/core/core.h"

#include <stdlib.h>

#include "common/clock.h"
#include "common/conf.h"
#include "common/log.h"
#include "common/metric.h"
#include "common/timer.h"
#include "common/xmalloc.h"
#include "supervisor/core/acts.h"
#include "supervisor/core/asks.h"
#include "supervisor/core/census.h"
#include "supervisor/core/disk.h"
#include "supervisor/core/event_feed.h"
#include "supervisor/core/event_news.h"
#include "supervisor/core/fleet.h"
#include "supervisor/core/logs.h"
#include "supervisor/core/quota_use.h"
#include "supervisor/core/retention.h"
#include "supervisor/core/run.h"
#include "supervisor/core/run_row.h"
#include "supervisor/core/sandbox.h"
#include "supervisor/core/sched.h"
#include "supervisor/core/secrets.h"
#include "supervisor/core/tenants.h"

#define TICK_MS 200
#define LOG_THREADS 2
#define ENGINE_PLACES 8 /* that a worker asks the engine for at a time */
/* Of MAX_ACTIVE_RUNS and MAX_SANDBOXES a tenant that is not the host's own gets
 * no more than so many times what is still free: however many it asks for,
 * there is room for the next tenant. */
#define ADMISSION_SHARE 4

struct core {
	struct core_parts parts;
	struct bus bus;
	struct bus_member member;
	struct counters counters;
	struct acts *acts;
	struct tenants *tenants;
	struct secrets *secrets;
	struct retention retention;
	struct disk *disk;
	struct event_feeds *feeds;
	struct event_news *news;
	struct fleet *fleet;
	struct sched *sched;
	struct sched *engine;
	struct quota_uses *uses;
	struct logs *logs;
	struct runs *runs;
	struct sandboxes *sandboxes;
	struct asks *asks;
	struct census *census;
	struct timer *tick;
	uint64_t next_reap_ms;
	bool is_trimming;
	bool is_draining;
};

/* ---- parts */

struct event_base *
core_base(const struct core *c)
{
	return c->parts.base;
}

const struct conf *
core_conf(const struct core *c)
{
	return c->parts.conf;
}

struct store *
core_store(const struct core *c)
{
	return c->parts.store;
}

struct bus *
core_bus(struct core *c)
{
	return &c->bus;
}

struct event_feeds *
core_event_feeds(const struct core *c)
{
	return c->feeds;
}

struct logs *
core_logs(const struct core *c)
{
	return c->logs;
}

struct runs *
core_runs(const struct core *c)
{
	return c->runs;
}

struct acts *
core_acts(const struct core *c)
{
	return c->acts;
}

struct secrets *
core_secrets(const struct core *c)
{
	return c->secrets;
}

struct tenants *
core_tenants(const struct core *c)
{
	return c->tenants;
}

struct quota_uses *
core_quota_uses(const struct core *c)
{
	return c->uses;
}

struct sandboxes *
core_sandboxes(const struct core *c)
{
	return c->sandboxes;
}

struct asks *
core_asks(const struct core *c)
{
	return c->asks;
}

const struct counters *
core_counters(const struct core *c)
{
	return &c->counters;
}

/* ---- what workers say */

static struct core *
core_of(void *worker)
{
	return fleet_worker_arg(worker);
}

static int
on_worker_state(void *worker, const struct msg_worker_state *m, struct err *e)
{
	struct core *c = core_of(worker);
	int rc = fleet_on_worker_state(worker, m, e);

	event_news_engine(c->news, fleet_worker_index(worker),
	    m->engine_up ? NULL : m->detail);
	if (m->engine_up)
		census_on_engine(c->census);
	return rc;
}

static struct sandbox *
sandbox_of(void *worker, uint64_t id)
{
	return sandboxes_find(core_of(worker)->sandboxes, id);
}

static struct run *
run_of(void *worker, uint64_t id)
{
	return runs_find(core_of(worker)->runs, id);
}

static int
on_sandbox_ready(void *worker, const struct msg_sandbox_ready *m, struct err *e)
{
	struct sandbox *sb = sandbox_of(worker, m->id);

	(void)e;
	if (sb != NULL) {
		sandbox_on_isolation(sb, m->isolation);
		sandbox_on_old_files(sb, m->has_old_files);
		sandbox_on_up(sb, m->container_id);
	}
	core_turn(core_of(worker));
	return 0;
}

static int
on_sandbox_failed(
    void *worker, const struct msg_sandbox_failed *m, struct err *e)
{
	struct sandbox *sb = sandbox_of(worker, m->id);

	(void)e;
	if (sb != NULL)
		sandbox_on_failed(sb, m->code, m->text);
	core_turn(core_of(worker));
	return 0;
}

static int
on_sandbox_lost(void *worker, const struct msg_sandbox_lost *m, struct err *e)
{
	struct sandbox *sb = sandbox_of(worker, m->id);

	(void)e;
	if (sb != NULL)
		sandbox_on_lost(sb, m->why);
	core_turn(core_of(worker));
	return 0;
}

static int
on_sandbox_removed(
    void *worker, const struct msg_sandbox_removed *m, struct err *e)
{
	struct sandbox *sb = sandbox_of(worker, m->id);

	(void)e;
	if (sb != NULL)
		sandbox_on_removed(sb, m->code, m->text);
	return 0;
}

static int
on_run_bytes(void *worker, const struct msg_run_bytes *m, struct err *e)
{
	struct run *r = run_of(worker, m->id);

	(void)e;
	if (r != NULL)
		run_on_bytes(r, m->length);
	return 0;
}

/* What a command left in sb, a moment before the agent says it of its own
 * accord. */
static void
count_left(struct sandbox *sb, const struct span *record)
{
	struct runlog_header h;
	struct runlog_left left;
	struct err e;

	if (sb != NULL && run_row_parse(record, &h, &e) == 0 &&
	    h.type == RUNLOG_LEFT &&
	    runlog_parse_left(
		record->p + RUNLOG_HEADER_BYTES, h.length, &left, &e) == 0 &&
	    !left.killed)
		sandbox_on_left(sb, sb->left + left.count);
}

static int
on_run_record(void *worker, const struct msg_run_record *m, struct err *e)
{
	struct run *r = run_of(worker, m->id);
	int64_t before;

	if (r == NULL)
		return 0;
	before = r->row.started_ms;
	count_left(r->sandbox, &m->record);
	if (run_on_record(r, &m->record, e) != 0)
		return e->code;
	event_news_started(core_of(worker)->news, &r->row, before);
	return 0;
}

static int
on_run_ended(void *worker, const struct msg_run_ended *m, struct err *e)
{
	struct run *r = run_of(worker, m->id);

	if (r != NULL && run_on_ended(r, m, e) != 0)
		return e->code;
	core_turn(core_of(worker));
	return 0;
}

static int
on_artifact_open(void *worker, const struct msg_artifact_open *m, struct err *e)
{
	struct run *r = run_of(worker, m->id);

	(void)e;
	if (r != NULL)
		run_on_artifact_open(r, m);
	return 0;
}

static int
on_artifact_done(void *worker, const struct msg_artifact_done *m, struct err *e)
{
	struct run *r = run_of(worker, m->id);

	(void)e;
	if (r != NULL)
		run_on_artifact_done(r, m);
	return 0;
}

static int
on_artifact_failed(
    void *worker, const struct msg_artifact_failed *m, struct err *e)
{
	struct run *r = run_of(worker, m->id);

	(void)e;
	if (r != NULL)
		run_on_artifact_failed(r, m);
	return 0;
}

static int
on_answer(void *worker, const struct msg_answer *m, struct err *e)
{
	(void)e;
	asks_on_answer(core_of(worker)->asks, m);
	return 0;
}

static int
on_sandbox_left(void *worker, const struct msg_sandbox_left *m, struct err *e)
{
	struct sandbox *sb = sandbox_of(worker, m->id);

	(void)e;
	if (sb != NULL)
		sandbox_on_left(sb, m->count);
	return 0;
}

static int
on_sweep_found(void *worker, const struct msg_sweep_found *m, struct err *e)
{
	(void)e;
	census_on_found(core_of(worker)->census, m);
	return 0;
}

static int
on_swept(void *worker, const struct msg_swept *m, struct err *e)
{
	(void)e;
	(void)census_on_swept(core_of(worker)->census, m);
	return 0;
}

static int
on_worker_figures(
    void *worker, const struct msg_worker_figures *m, struct err *e)
{
	(void)worker;
	return metric_news_take(m->additions.p, m->additions.n, e);
}

static const struct msg_worker_to_front handlers = {
    .on_worker_figures = on_worker_figures,
    .on_worker_state = on_worker_state,
    .on_engine_is = fleet_on_engine_is,
    .on_carrier_is = fleet_on_carrier_is,
    .on_sandbox_ready = on_sandbox_ready,
    .on_sandbox_failed = on_sandbox_failed,
    .on_sandbox_lost = on_sandbox_lost,
    .on_sandbox_removed = on_sandbox_removed,
    .on_run_bytes = on_run_bytes,
    .on_run_record = on_run_record,
    .on_run_ended = on_run_ended,
    .on_artifact_open = on_artifact_open,
    .on_artifact_done = on_artifact_done,
    .on_artifact_failed = on_artifact_failed,
    .on_answer = on_answer,
    .on_sandbox_left = on_sandbox_left,
    .on_sweep_found = on_sweep_found,
    .on_swept = on_swept,
};

static void
on_worker_came(uint32_t worker, void *arg)
{
	struct core *c = arg;

	event_news_worker(c->news, worker, EVENT_WORKER_READY);
	sandbox_on_worker(c->sandboxes, worker, SANDBOX_WORKER_CAME);
	core_turn(c);
}

static void
on_worker_went(uint32_t worker, void *arg)
{
	struct core *c = arg;

	event_news_worker(c->news, worker, EVENT_WORKER_LOST);
	sandbox_on_worker(c->sandboxes, worker, SANDBOX_WORKER_WENT);
	asks_worker_went(c->asks, worker);
}

static const struct fleet_ops fleet_ops = {
    on_worker_came, on_worker_went, &handlers};

void
core_attach_worker(struct core *c, uint32_t worker, int fd)
{
	fleet_attach(c->fleet, worker, fd);
}

void
core_worker_gone(struct core *c, uint32_t worker, bool throttled)
{
	fleet_worker_gone(c->fleet, worker, throttled);
}

/* ---- between runs and sandboxes */

static void
start_cb(struct sched_item *item)
{
	run_start(HASH_OF(item, struct run, turn));
}

static void
turn_cb(struct sched_item *item)
{
	quota_use_begin_engine(item);
	sandbox_on_turn(HASH_OF(item, struct sandbox, turn));
}

void
core_turn(struct core *c)
{
	sched_turn(c->sched);
}

static void
on_bus(const struct bus_event *ev, void *arg)
{
	struct core *c = arg;

	if (ev->kind == BUS_RUN_TOLD)
		sandbox_on_run_told(ev->sandbox);
	if (ev->kind == BUS_RUN_ENDED) {
		tenants_note_ended(c->tenants, run_tenant(ev->run));
		quota_use_end_run(
		    quota_use_of(c->uses, run_tenant(ev->run)), &ev->run->row);
	}
	if (ev->kind != BUS_RUN_SENT && ev->kind != BUS_RUN_LEFT)
		return;
	if (ev->run->is_doubtful)
		sandbox_drop_doubtful(ev->sandbox);
	if (ev->kind == BUS_RUN_LEFT) {
		quota_use_drop_going(
		    quota_use_of(c->uses, run_tenant(ev->run)), &ev->run->row);
		sandbox_on_run_left(ev->sandbox); /* may be gone now */
		sched_turn(c->sched);
	}
}

static void
on_refused(struct tenant_id tenant, enum quota_key key, void *arg)
{
	const struct core *c = arg;
	const struct tenant *n = tenants_find(c->tenants, tenant);

	acts_count(c->acts,
	    &(struct act){.what = "quota.refusal",
		.tenant = n == NULL ? NULL : n->row.name,
		.subject = quota_rule(key)->key});
	event_news_refused(c->news, tenant, quota_rule(key)->key);
}

/* ---- by the clock */

static void core_trim(struct core *c);

static void
trimmed_cb(int rc, const struct err *why, void *arg)
{
	struct core *c = arg;

	c->is_trimming = false;
	if (rc != 0)
		log_warn("history is not trimmed: %s", why->msg);
	core_trim(c);
	if (!c->is_trimming)
		disk_count_again(c->disk);
}

/* With each tick in which runs ended, one tenant after the other. */
static void
core_trim(struct core *c)
{
	const struct tenant *n;

	if (c->is_trimming)
		return;
	n = tenants_take_ended(c->tenants);
	if (n == NULL)
		return;
	c->is_trimming = true;
	store_trim(c->parts.store, tenant_id_of(n),
	    quota_use_history(c->uses, tenant_id_of(n),
		(uint64_t)conf_int(c->parts.conf, CONF_MAX_RUNS)),
	    trimmed_cb, c);
}

/* The agent ends what is over its limits, and the worker the agent that does
 * not; what neither did is ended here. */
static void
core_end_overdue(struct core *c, uint64_t now_ms)
{
	struct run *r;

	while ((r = runs_overdue(c->runs, now_ms)) != NULL) {
		sandbox_on_hung(r->sandbox);
		core_turn(c);
	}
}

static void
count_going(struct core *c)
{
	const struct sandbox *sb = NULL;
	const struct sched_item *item;

	quota_uses_recount(c->uses, clock_wall_ms());
	while ((sb = sandboxes_next(c->sandboxes, sb)) != NULL)
		TAILQ_FOREACH (item, &sb->queue.running, link)
			quota_use_add_going(sb->use,
			    &HASH_OF(item, const struct run, turn)->row);
}

static void
tick_cb(void *arg)
{
	struct core *c = arg;
	uint64_t now = clock_mono_ms();

	timer_set_ms(c->tick, TICK_MS);
	if (now >= c->next_reap_ms) {
		sandboxes_reap(c->sandboxes, clock_wall_ms());
		c->next_reap_ms = now +
		    (uint64_t)conf_int(c->parts.conf, CONF_REAPER_INTERVAL_MS);
	}
	census_tick(c->census, now);
	core_end_overdue(c, now);
	count_going(c);
	quota_uses_tick(c->uses);
	sandboxes_share(c->sandboxes);
	sched_set_places(c->sched,
	    (unsigned int)conf_int(c->parts.conf, CONF_MAX_RUNNING_RUNS));
	core_turn(c);
	core_trim(c);
	disk_tick(c->disk, now);
	event_news_tick(c->news, now);
	tenants_tick(c->tenants, clock_wall_ms());
	retention_tick(&c->retention);
}

/* ---- life */

static void
make_registries(struct core *c)
{
	const struct core_parts *p = &c->parts;
	const struct sandboxes_parts of_sandboxes = {.base = p->base,
	    .conf = p->conf,
	    .store = p->store,
	    .fleet = c->fleet,
	    .sched = c->sched,
	    .engine = c->engine,
	    .uses = c->uses,
	    .bus = &c->bus};
	const struct runs_parts of_runs = {.base = p->base,
	    .conf = p->conf,
	    .store = p->store,
	    .logs = c->logs,
	    .fleet = c->fleet,
	    .secrets = c->secrets,
	    .bus = &c->bus};

	c->sandboxes = sandboxes_new(&of_sandboxes);
	c->runs = runs_new(&of_runs);
	c->retention = (struct retention){.tenants = c->tenants,
	    .sandboxes = c->sandboxes,
	    .secrets = c->secrets,
	    .webhooks = p->webhooks,
	    .store = p->store,
	    .disk = c->disk};
	c->asks = asks_new(p->base, c->fleet, c->sandboxes);
	c->census = census_new(&(struct census_parts){.conf = p->conf,
	    .store = p->store,
	    .fleet = c->fleet,
	    .sandboxes = c->sandboxes,
	    .tenants = c->tenants,
	    .instance = p->instance,
	    .refuse = p->refuse,
	    .arg = p->refuse_arg});
}

int
core_new(const struct core_parts *parts, struct core **out, struct err *e)
{
	struct core *c = xcalloc(1, sizeof(*c));

	c->parts = *parts;
	if (tenants_open(parts->store, &c->tenants, e) != 0 ||
	    secrets_open(parts->store, &c->secrets, e) != 0 ||
	    logs_new(parts->base, LOG_THREADS, &c->logs, e) != 0) {
		secrets_free(c->secrets);
		tenants_free(c->tenants);
		free(c);
		return e->code;
	}
	bus_init(&c->bus);
	counters_init(&c->counters, &c->bus);
	store_audit_keep(
	    parts->store, (uint64_t)conf_int(parts->conf, CONF_AUDIT_ROWS));
	c->acts = acts_new(parts->base, parts->conf, parts->store, &c->bus);
	bus_join(&c->bus, &c->member, on_bus, c);
	c->disk = disk_new(parts->conf, parts->store, &c->bus);
	c->feeds = event_feeds_new(parts->base, parts->store);
	c->news = event_news_new(parts->store, c->disk);
	c->fleet = fleet_new(parts->base,
	    (uint32_t)conf_int(parts->conf, CONF_WORKERS), &fleet_ops, c);
	c->sched = sched_new(start_cb);
	c->engine = sched_new(turn_cb);
	sched_set_places(c->engine,
	    ENGINE_PLACES * (unsigned int)conf_int(parts->conf, CONF_WORKERS));
	c->uses = quota_uses_new(
	    parts->conf, c->tenants, parts->store, c->sched, c->engine);
	quota_uses_on_refused(c->uses, on_refused, c);
	make_registries(c);
	c->tick = timer_new(parts->base, tick_cb, c);
	timer_set_ms(c->tick, TICK_MS);
	*out = c;
	return 0;
}

void
core_free(struct core *c)
{
	if (c == NULL)
		return;
	timer_free(c->tick);
	asks_free(c->asks);
	runs_free(c->runs);
	census_free(c->census);
	sandboxes_free(c->sandboxes);
	fleet_free(c->fleet);
	quota_uses_free(c->uses);
	sched_free(c->engine);
	sched_free(c->sched);
	logs_free(c->logs);
	event_news_free(c->news);
	event_feeds_free(c->feeds);
	disk_free(c->disk);
	bus_leave(&c->bus, &c->member);
	acts_free(c->acts);
	counters_clear(&c->counters, &c->bus);
	secrets_free(c->secrets);
	tenants_free(c->tenants);
	free(c);
}

/* ---- what the database has of an earlier life of the server */

static int
compare_sandboxes(const void *key, const void *row)
{
	uint64_t id = *(const uint64_t *)key;
	uint64_t of = ((const struct store_sandbox *)row)->id;

	return id < of ? -1 : id > of;
}

/* How a run ends whose sandbox ended while the server was down, or so shortly
 * before that the run's own end is not on disk; NULL: the sandbox has no row.
 */
static struct run_fate
fate_by(const struct store_sandbox *row)
{
	if (row == NULL || row->state == SANDBOX_IS_LOST)
		return (struct run_fate){RUNLOG_LOST, ERR_LOST,
		    "the sandbox was lost while the server was down"};
	/* Failed, or deleted while it was made: the row does not tell. */
	if (row->state == SANDBOX_IS_REMOVED && row->container_id[0] == '\0')
		return (struct run_fate){RUNLOG_START_FAILED, ERR_WRONG_STATE,
		    "the sandbox was removed before it was up"};
	return (struct run_fate){RUNLOG_CANCELED, ERR_WRONG_STATE,
	    "the run was canceled: its sandbox was deleted"};
}

static struct run_fate
fate_of(const struct store_snapshot *snap, const struct sandbox *removing,
    uint64_t sandbox)
{
	if (removing != NULL)
		return fate_by(&removing->row);
	if (snap->nended == 0)
		return fate_by(NULL);
	return fate_by(bsearch(&sandbox, snap->ended, snap->nended,
	    sizeof(*snap->ended), compare_sandboxes));
}

static int
restore_sandbox(struct core *c, const struct store_sandbox *row, struct err *e)
{
	const struct tenant *n =
	    tenants_find(c->tenants, (struct tenant_id){row->tenant});

	if (n == NULL)
		return err_set(e, ERR_DAMAGED,
		    "database: sandbox %s is of no tenant", row->name);
	sandbox_restore(c->sandboxes, n->owner, row);
	return 0;
}

static int
restore_run(struct core *c, const struct store_snapshot *snap,
    const struct store_run *row, struct err *e)
{
	struct sandbox *sb = sandboxes_find(c->sandboxes, row->sandbox);
	bool is_live = sb != NULL && sandbox_state_is_live(sb->state);
	const struct run_fate fate = fate_of(snap, sb, row->sandbox);
	struct run *run;

	if (run_restore(c->runs, is_live ? sb : NULL, &fate, row, &run, e) != 0)
		return e->code;
	if (run->is_doubtful)
		sandbox_add_doubtful(sb);
	return 0;
}

/* Sandboxes first, each of its tenant; then the runs that had not ended, in
 * the queues of theirs. */
static int
restore(struct core *c, const struct store_snapshot *snap, struct err *e)
{
	sandboxes_set_next_id(c->sandboxes, snap->next_sandbox);
	runs_set_next_id(c->runs, snap->next_run);
	for (size_t i = 0; i < snap->nsandboxes; i++)
		if (restore_sandbox(c, &snap->sandboxes[i], e) != 0)
			return e->code;
	for (size_t i = 0; i < snap->nruns; i++)
		if (restore_run(c, snap, &snap->runs[i], e) != 0)
			return e->code;
	if (snap->nsandboxes > 0 || snap->nruns > 0)
		log_info("recovering %zu sandboxes, %zu unfinished runs",
		    snap->nsandboxes, snap->nruns);
	return 0;
}

int
core_recover(struct core *c, struct err *e)
{
	struct store_snapshot snap;
	int rc;

	if (store_counts(c->parts.store, &c->counters.total, e) != 0 ||
	    store_snapshot(c->parts.store, run_asked_slim, &snap, e) != 0)
		return e->code;
	event_news_began(c->news, snap.next_run);
	rc = quota_uses_restore(c->uses, clock_wall_ms(), e);
	if (rc == 0)
		rc = restore(c, &snap, e);
	store_snapshot_clear(&snap);
	return rc != 0 ? rc : census_open(c->census, e);
}

/* ---- admission, health */

bool
core_is_settled(const struct core *c)
{
	return census_is_settled(c->census) || fleet_is_away(c->fleet);
}

void
core_drain(struct core *c)
{
	c->is_draining = true;
}

static int
admit_any(const struct core *c, struct err *e)
{
	if (c->is_draining)
		return err_set(e, ERR_WRONG_STATE,
		    "the server is shutting down: try again later");
	return disk_check(c->disk, e);
}

static uint64_t
most(const struct core *c, enum conf_key k)
{
	return (uint64_t)conf_int(c->parts.conf, k);
}

/* own of total are of one tenant. */
static bool
is_over_share(
    const struct quota_use *u, uint64_t own, uint64_t total, uint64_t max)
{
	if (u->tenant.n == STORE_TENANT_DEFAULT || total >= max)
		return false; /* the second: refused anyway */
	return own >= ADMISSION_SHARE * (max - total);
}

static int
admit_sandbox(const struct core *c, struct quota_use *u, struct err *e)
{
	if (quota_use_admit_sandbox(u, e) != 0)
		return e->code;
	if (is_over_share(u, u->sandboxes, quota_uses_sandboxes(c->uses),
		most(c, CONF_MAX_SANDBOXES)))
		return err_set(e, ERR_LIMIT,
		    "limit reached: %llu sandboxes are yours, and the rest of "
		    "MAX_SANDBOXES is for other tenants: delete one with "
		    "delete_sandbox",
		    (unsigned long long)u->sandboxes);
	return 0;
}

int
core_admit_sandbox(const struct core *c, struct principal *who,
    const struct sandbox *old, struct err *e)
{
	struct quota_use *u = quota_use_of(c->uses, who->tenant);

	if (admit_any(c, e) != 0)
		return e->code;
	return old != NULL ? quota_use_admit_replacement(u, e) :
			     admit_sandbox(c, u, e);
}

/* So that one of them cannot take the places of all. */
static int
admit_to_sandbox(const struct core *c, const struct sandbox *sb, struct err *e)
{
	unsigned int n;

	if (sb == NULL)
		return 0;
	n = sched_queue_count(&sb->queue);
	if (n < most(c, CONF_MAX_SANDBOX_RUNS))
		return 0;
	return err_set(e, ERR_LIMIT,
	    "limit reached: %u runs are queued or running in the sandbox %s "
	    "(MAX_SANDBOX_RUNS): wait for some to end, or cancel them",
	    n, sb->row.identifier);
}

/* What it will be is not known yet: there must be room for the largest. */
static int
admit_bytes(const struct core *c, struct err *e)
{
	uint64_t n = runs_asked_bytes(c->runs);

	if (n + RUNSPEC_BYTES_MAX <= most(c, CONF_MAX_QUEUED_BYTES))
		return 0;
	return err_set(e, ERR_LIMIT,
	    "limit reached: the runs that are queued or running have %llu "
	    "bytes of commands and files (MAX_QUEUED_BYTES): wait for some "
	    "to end",
	    (unsigned long long)n);
}

int
core_admit_run(const struct core *c, struct principal *who,
    const struct sandbox *sb, struct err *e)
{
	struct quota_use *u = quota_use_of(c->uses, who->tenant);
	uint64_t n = runs_active(c->runs);
	uint64_t max = most(c, CONF_MAX_ACTIVE_RUNS);
	uint64_t own = u->lane.nrunning + u->lane.nwaiting;

	if (admit_any(c, e) != 0 ||
	    (sb == NULL && admit_sandbox(c, u, e) != 0) ||
	    quota_use_admit_run(u, e) != 0 || admit_to_sandbox(c, sb, e) != 0 ||
	    admit_bytes(c, e) != 0)
		return e->code;
	if (n >= max)
		return err_set(e, ERR_LIMIT,
		    "limit reached: %llu runs are queued or running "
		    "(MAX_ACTIVE_RUNS): wait for some to end",
		    (unsigned long long)n);
	if (is_over_share(u, own, n, max))
		return err_set(e, ERR_LIMIT,
		    "limit reached: %llu queued or running runs are yours, and "
		    "the rest of MAX_ACTIVE_RUNS is for other tenants: wait "
		    "for some to end",
		    (unsigned long long)own);
	return 0;
}

int
core_check(const struct core *c, struct err *e)
{
	if (c->is_draining)
		return err_set(e, ERR_WRONG_STATE, "shutting down");
	if (disk_check(c->disk, e) != 0)
		return e->code;
	return fleet_check_all(c->fleet, e);
}

int
core_delete_run(struct core *c, const struct principal *who,
    const struct uuid *run, store_done_cb done, void *arg, struct err *e)
{
	if (runs_find_uuid(c->runs, who->tenant, run) != NULL)
		return err_set(
		    e, ERR_CONFLICT, "the run has not ended: cancel it first");
	store_run_delete(c->parts.store, who->tenant, run, done, arg);
	disk_count_again(c->disk);
	return 0;
}

uint64_t
core_spool_bytes(const struct core *c)
{
	const struct sandbox *sb = NULL;
	const struct sched_item *item;
	uint64_t sum = 0;

	while ((sb = sandboxes_next(c->sandboxes, sb)) != NULL)
		TAILQ_FOREACH (item, &sb->queue.running, link)
			sum += HASH_OF(item, const struct run, turn)->length;
	return sum;
}

struct core_stats
core_stats(const struct core *c)
{
	const struct fleet_stats f = fleet_stats(c->fleet);

	return (struct core_stats){
	    .active_sandboxes = sandboxes_live(c->sandboxes),
	    .active_runs = runs_active(c->runs),
	    .workers_ready = f.ready,
	    .workers_total = f.total,
	    .worker_restarts = f.restarts,
	    .containers = census_containers(c->census),
	    .usage = disk_usage(c->disk),
	};
}

struct fleet *
core_fleet(const struct core *c)
{
	return c->fleet;
}
