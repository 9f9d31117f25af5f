#include "supervisor/core/quota_use.h"

#include <limits.h>
#include <sched.h>

#include "common/clock.h"
#include "common/conf.h"
#include "common/xmalloc.h"
#include "supervisor/core/tenants.h"
#include "supervisor/store/usage.h"

#define NANO 1000000000u
#define MIB_SHIFT 20
/* Of the processors, for a tenant of weight 100.  Everybody else on the host
 * has 1024, this server too; a sandbox never has more than that. */
#define SHARES 256
#define SHARES_MIN 2 /* the kernel's */
#define SHARES_MAX 1000
#define FLUSH_MS 5000
#define WAIT_FOR_ROOM_S 10
#define PLACES 64       /* bits of a word */
#define WORKED_MS 10000 /* who worked so lately is at work */
/* Who has more than so many behind what begins at the engine, in a crowd, has
 * a rest of so many ticks, but for the first so many turns of such a backlog.
 */
#define REST_BEHIND 2
#define REST_TICKS 4
#define REST_SPARES 8

TAILQ_HEAD(quota_use_list, quota_use);

struct quota_uses {
	const struct conf *conf;
	const struct tenants *tenants;
	struct sched *sched;
	struct sched *engine;
	unsigned int processors;
	unsigned int engine_share; /* of one tenant */
	unsigned int nworking;     /* tenants at work, as of the last tick */
	struct store *store;
	void (*on_refused)(
	    struct tenant_id tenant, enum quota_key key, void *arg);
	void *on_refused_arg;
	struct hashmap map;
	struct quota_use_list list;
	uint64_t sandboxes;
	int64_t counted_ms; /* when those that go were; wall clock */
	int64_t flushed_ms;
};

static int64_t
limit_of(const struct quota_use *u, enum quota_key key)
{
	return tenants_quota(u->all->tenants, u->tenant, key);
}

/* ---- life */

static uint64_t
day_used_s(const struct quota_use *u)
{
	return (u->day_ms + u->going_ms) / 1000;
}

static bool
is_day_used(const struct quota_use *u)
{
	uint64_t limit = (uint64_t)limit_of(u, QUOTA_RUN_SECONDS_PER_DAY);

	return limit != 0 && day_used_s(u) >= limit;
}

static void
set_lanes(struct quota_use *u)
{
	unsigned int weight = (unsigned int)limit_of(u, QUOTA_WEIGHT);

	sched_lane_gate(
	    &u->lane, is_day_used(u) ? SCHED_GATE_SHUT : SCHED_GATE_OPEN);
	sched_lane_set(
	    &u->lane, (unsigned int)limit_of(u, QUOTA_RUNS_RUNNING), weight);
	sched_lane_set(&u->engine,
	    tenants_is_open(u->all->tenants) ? 0 : u->all->engine_share,
	    weight);
}

struct quota_use *
quota_use_of(struct quota_uses *all, struct tenant_id tenant)
{
	struct quota_use *u = HASH_OBJECT(
	    hashmap_get_u64(&all->map, tenant.n), struct quota_use, by_tenant);

	if (u != NULL)
		return u;
	u = xcalloc(1, sizeof(*u));
	u->all = all;
	u->tenant = tenant;
	sched_lane_init(all->sched, &u->lane);
	sched_lane_init(all->engine, &u->engine);
	sched_queue_init(&u->engine, &u->asked, UINT_MAX);
	sched_queue_gate(&u->asked, SCHED_GATE_OPEN);
	set_lanes(u);
	hashmap_put(&all->map, &u->by_tenant, hashmap_key_u64(tenant.n));
	TAILQ_INSERT_TAIL(&all->list, u, link);
	return u;
}

static unsigned int
processors(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof(set), &set) != 0 ?
	    1 :
	    (unsigned int)CPU_COUNT(&set);
}

struct quota_uses *
quota_uses_new(const struct conf *conf, const struct tenants *tenants,
    struct store *store, struct sched *sched, struct sched *engine)
{
	struct quota_uses *all = xcalloc(1, sizeof(*all));

	all->conf = conf;
	all->tenants = tenants;
	all->sched = sched;
	all->engine = engine;
	all->processors = processors();
	/* The engine's work for a sandbox is most of a processor's while it
	 * lasts: half of the processors stay free for who comes next. */
	all->engine_share = all->processors < 4 ? 1 : all->processors / 2;
	all->store = store;
	TAILQ_INIT(&all->list);
	return all;
}

void
quota_uses_free(struct quota_uses *all)
{
	struct quota_use *u;

	if (all == NULL)
		return;
	while ((u = TAILQ_FIRST(&all->list)) != NULL) {
		sched_queue_clear(&u->asked);
		sched_lane_clear(&u->engine);
		sched_lane_clear(&u->lane);
		TAILQ_REMOVE(&all->list, u, link);
		free(u);
	}
	hashmap_clear(&all->map);
	free(all);
}

void
quota_uses_on_refused(struct quota_uses *all,
    void (*cb)(struct tenant_id tenant, enum quota_key key, void *arg),
    void *arg)
{
	all->on_refused = cb;
	all->on_refused_arg = arg;
}

static bool
is_working(const struct quota_use *u)
{
	return u->worked_ms != 0 && clock_mono_ms() - u->worked_ms < WORKED_MS;
}

static void
look_at_work(struct quota_use *u)
{
	uint64_t ended = u->runs_completed + u->runs_failed + u->runs_canceled;

	if (u->lane.nrunning > 0 || u->engine.nrunning > 0 || ended != u->ended)
		u->worked_ms = clock_mono_ms();
	u->ended = ended;
	u->all->nworking += is_working(u);
}

static void
rest(struct quota_use *u)
{
	if (u->rest > 0 && (--u->rest == 0 || !quota_use_is_crowded(u))) {
		u->rest = 0;
		sched_lane_gate(&u->engine, SCHED_GATE_OPEN);
	}
}

/* What was counted here goes to the database. */
static void
flush(struct quota_uses *all)
{
	struct quota_use *u;

	all->flushed_ms = all->counted_ms;
	TAILQ_FOREACH (u, &all->list, link) {
		if (u->refusals == 0)
			continue;
		store_usage_add(all->store,
		    &(struct store_day){.tenant = u->tenant.n,
			.day = store_day_of(all->counted_ms),
			.refusals = u->refusals});
		u->refusals = 0;
	}
}

void
quota_uses_tick(struct quota_uses *all)
{
	struct quota_use *u;

	all->nworking = 0;
	TAILQ_FOREACH (u, &all->list, link) {
		look_at_work(u);
		if (u->lane.nwaiting > 0 || u->engine.nwaiting > 0)
			set_lanes(u);
	}
	TAILQ_FOREACH (u, &all->list, link)
		rest(u);
	sched_turn(all->engine);
	if (all->counted_ms >= all->flushed_ms + FLUSH_MS ||
	    all->counted_ms < all->flushed_ms)
		flush(all);
}

void
quota_use_ask_engine(struct quota_use *u, struct sched_item *item)
{
	set_lanes(u);
	sched_add(&u->asked, item, false);
}

void
quota_use_begin_engine(const struct sched_item *item)
{
	struct quota_use *u = HASH_OF(item->queue, struct quota_use, asked);

	if (u->engine.nwaiting <= REST_BEHIND) {
		u->begun = 0;
		return;
	}
	if (++u->begun < REST_SPARES + u->all->engine_share)
		return;
	u->begun = REST_SPARES;
	if (!quota_use_is_crowded(u))
		return;
	u->rest = REST_TICKS;
	sched_lane_gate(&u->engine, SCHED_GATE_SHUT);
}

/* ---- the day */

int
quota_uses_restore(struct quota_uses *all, int64_t wall_ms, struct err *e)
{
	struct store_days days;

	if (store_usage_of_day(all->store, store_day_of(wall_ms), &days, e) !=
	    0)
		return e->code;
	all->counted_ms = all->flushed_ms = wall_ms;
	for (size_t i = 0; i < days.n; i++)
		quota_use_of(all, (struct tenant_id){days.rows[i].tenant})
		    ->day_ms = days.rows[i].run_ms;
	free(days.rows);
	return 0;
}

/* Who had a place keeps it; the others have the lowest that are free. */
static void
give_places(struct quota_uses *all)
{
	unsigned int more = 0;
	uint64_t taken = 0;
	struct quota_use *u;

	TAILQ_FOREACH (u, &all->list, link) {
		u->has_place = u->has_place && u->busy > 0;
		if (u->has_place)
			taken |= UINT64_C(1) << u->place;
	}
	TAILQ_FOREACH (u, &all->list, link) {
		if (u->busy == 0 || u->has_place)
			continue;
		u->place = taken == UINT64_MAX ?
		    more++ % PLACES :
		    (unsigned int)__builtin_ctzll(~taken);
		u->has_place = true;
		taken |= UINT64_C(1) << u->place;
	}
}

void
quota_uses_recount(struct quota_uses *all, int64_t wall_ms)
{
	bool is_new_day =
	    store_day_of(wall_ms) != store_day_of(all->counted_ms);
	struct quota_use *u;

	if (is_new_day) {
		flush(all);
		store_usage_forget(all->store, store_day_of(wall_ms));
	}
	all->counted_ms = wall_ms;
	TAILQ_FOREACH (u, &all->list, link) {
		u->going_ms = 0;
		u->busy = u->busy_so_far;
		u->busy_so_far = 0;
		if (is_new_day)
			u->day_ms = 0;
	}
	give_places(all);
}

static uint64_t
going_share(const struct quota_uses *all, const struct store_run *row)
{
	return row->started_ms == 0 ?
	    0 :
	    store_day_share(row->started_ms, all->counted_ms,
		store_day_of(all->counted_ms));
}

void
quota_use_add_going(struct quota_use *u, const struct store_run *row)
{
	u->going_ms += going_share(u->all, row);
}

void
quota_use_drop_going(struct quota_use *u, const struct store_run *row)
{
	uint64_t share = going_share(u->all, row);

	u->going_ms -= share < u->going_ms ? share : u->going_ms;
}

void
quota_use_end_run(struct quota_use *u, const struct store_run *row)
{
	u->runs_completed += row->state == RUN_STATE_COMPLETED;
	u->runs_failed += row->state == RUN_STATE_FAILED;
	u->runs_canceled += row->state == RUN_STATE_CANCELED;
	for (uint32_t i = 0; i < row->ncommands; i++)
		u->output_bytes += row->commands[i].stdout_bytes +
		    row->commands[i].stderr_bytes;
	if (row->started_ms != 0)
		u->day_ms += store_day_share(row->started_ms, row->ended_ms,
		    store_day_of(u->all->counted_ms));
}

/* ---- what there is */

uint64_t
quota_use_divide(uint64_t total, uint64_t n, uint64_t least)
{
	uint64_t by = 1;

	while (by < n)
		by *= 2;
	return total / by < least ? least : total / by;
}

uint32_t
quota_use_cpu_shares(const struct quota_use *u)
{
	uint64_t n =
	    quota_use_divide((uint64_t)limit_of(u, QUOTA_WEIGHT) * SHARES / 100,
		u->sandboxes, SHARES_MIN);

	return n > SHARES_MAX ? SHARES_MAX : (uint32_t)n;
}

void
quota_use_add_busy(struct quota_use *u)
{
	u->busy_so_far++;
}

unsigned int
quota_use_processors(const struct quota_use *u)
{
	return u->all->processors;
}

bool
quota_use_is_crowded(const struct quota_use *u)
{
	return !tenants_is_open(u->all->tenants) &&
	    u->all->nworking > (is_working(u) ? 1u : 0u);
}

static uint64_t
limit_of_new(const struct quota_use *u, enum conf_key of, enum quota_key most)
{
	int64_t n = conf_int(u->all->conf, of), max = limit_of(u, most);

	return (uint64_t)(n > max ? max : n);
}

void
quota_use_limit_sandbox(const struct quota_use *u, struct store_sandbox *row)
{
	row->nano_cpus = NANO *
	    limit_of_new(u, CONF_DEFAULT_CPU_CORES, QUOTA_SANDBOX_CPU_CORES);
	row->memory_bytes =
	    limit_of_new(u, CONF_DEFAULT_MEMORY_MB, QUOTA_SANDBOX_MEMORY_MB)
	    << MIB_SHIFT;
	row->pids =
	    (uint32_t)limit_of_new(u, CONF_DEFAULT_PIDS, QUOTA_SANDBOX_PIDS);
}

uint64_t
quota_uses_sandboxes(const struct quota_uses *all)
{
	return all->sandboxes;
}

void
quota_use_add_sandbox(struct quota_use *u, const struct store_sandbox *row)
{
	u->sandboxes++;
	u->all->sandboxes++;
	u->nano_cpus += row->nano_cpus;
	u->memory_bytes += row->memory_bytes;
}

void
quota_use_drop_sandbox(struct quota_use *u, const struct store_sandbox *row)
{
	u->sandboxes--;
	u->all->sandboxes--;
	u->nano_cpus -= row->nano_cpus;
	u->memory_bytes -= row->memory_bytes;
}

/* ---- may there be more? */

static const char *
what_to_do(enum quota_key key)
{
	switch (key) {
	case QUOTA_SANDBOXES:
	case QUOTA_CPU_CORES:
	case QUOTA_MEMORY_MB:
	case QUOTA_DISK_MB:
		return "delete a sandbox with delete_sandbox";
	case QUOTA_RUNS_QUEUED:
		return "wait for runs to end, or cancel some";
	case QUOTA_RUN_SECONDS_PER_DAY:
		return "wait for the next day (UTC)";
	case QUOTA_STREAMS:
		return "end an event stream";
	default:
		return "try again later";
	}
}

static uint32_t
wait_of(const struct quota_uses *all, enum quota_key key)
{
	if (key == QUOTA_RUN_SECONDS_PER_DAY)
		return (
		    uint32_t)((STORE_DAY_MS - all->counted_ms % STORE_DAY_MS) /
			1000 +
		    1);
	return key == QUOTA_REQUESTS_PER_SECOND || key == QUOTA_STREAMS ?
	    1 :
	    WAIT_FOR_ROOM_S;
}

static int
refuse(struct quota_use *u, enum quota_key key, uint64_t used, struct err *e)
{
	struct quota_uses *all = u->all;

	(void)err_set(e, ERR_QUOTA,
	    "quota %s: the limit is %lld, used are %llu: %s, or ask an "
	    "administrator for more",
	    quota_rule(key)->key, (long long)limit_of(u, key),
	    (unsigned long long)used, what_to_do(key));
	e->refusal = (struct err_refusal){.quota = quota_rule(key)->key,
	    .limit = limit_of(u, key),
	    .used = (int64_t)used,
	    .wait_s = wait_of(all, key)};
	u->refusals++;
	u->refused[key]++;
	if (all->on_refused != NULL)
		all->on_refused(u->tenant, key, all->on_refused_arg);
	return ERR_QUOTA;
}

/* 0 is no limit. */
static int
check_one(struct quota_use *u, enum quota_key key, uint64_t used, uint64_t more,
    struct err *e)
{
	uint64_t limit = (uint64_t)limit_of(u, key);

	return limit == 0 || used + more <= limit ? 0 : refuse(u, key, used, e);
}

int
quota_use_admit_sandbox(struct quota_use *u, struct err *e)
{
	uint64_t disk_mb =
	    (uint64_t)conf_int(u->all->conf, CONF_SANDBOX_DISK_MB);
	struct store_sandbox like;

	quota_use_limit_sandbox(u, &like);
	/* Without a limit of each there is no sum to be held. */
	if (disk_mb == 0)
		disk_mb = UINT32_MAX;
	if (check_one(u, QUOTA_SANDBOXES, u->sandboxes, 1, e) != 0 ||
	    check_one(u, QUOTA_CPU_CORES, u->nano_cpus / NANO,
		like.nano_cpus / NANO, e) != 0 ||
	    check_one(u, QUOTA_MEMORY_MB, u->memory_bytes >> MIB_SHIFT,
		like.memory_bytes >> MIB_SHIFT, e) != 0 ||
	    check_one(u, QUOTA_DISK_MB, u->sandboxes * disk_mb, disk_mb, e) !=
		0)
		return e->code;
	return 0;
}

int
quota_use_admit_run(struct quota_use *u, struct err *e)
{
	set_lanes(u);
	if (is_day_used(u))
		return refuse(u, QUOTA_RUN_SECONDS_PER_DAY, day_used_s(u), e);
	return check_one(u, QUOTA_RUNS_QUEUED, u->lane.nwaiting, 1, e);
}

int
quota_use_admit_replacement(struct quota_use *u, struct err *e)
{
	uint64_t limit = (uint64_t)limit_of(u, QUOTA_SANDBOXES);

	if (limit == 0 || u->sandboxes < 2 * limit)
		return 0;
	return refuse(u, QUOTA_SANDBOXES, u->sandboxes, e);
}

struct store_keep
quota_use_history(struct quota_uses *all, struct tenant_id tenant, uint64_t max)
{
	const struct quota_use *u = quota_use_of(all, tenant);
	uint64_t runs = (uint64_t)limit_of(u, QUOTA_HISTORY_RUNS);
	uint64_t mb = (uint64_t)limit_of(u, QUOTA_HISTORY_MB);

	return (struct store_keep){.runs = runs == 0 || runs > max ? max : runs,
	    .bytes = mb == 0 ? UINT64_MAX : mb << MIB_SHIFT};
}

/* ---- requests: a bucket that fills again */

int
quota_use_admit_request(struct quota_use *u, uint64_t now_ms, struct err *e)
{
	uint64_t rate = (uint64_t)limit_of(u, QUOTA_REQUESTS_PER_SECOND);
	uint64_t full = (uint64_t)limit_of(u, QUOTA_REQUEST_BURST) * 1000;
	uint64_t past = now_ms - u->filled_ms;

	u->requests++;
	if (rate == 0)
		return 0;
	if (u->filled_ms == 0 || past >= full / rate + 1)
		u->tokens_ms = full;
	else
		u->tokens_ms += past * rate; /* a thousandth in a millisecond */
	if (u->tokens_ms > full)
		u->tokens_ms = full;
	u->filled_ms = now_ms;
	if (u->tokens_ms < 1000)
		return refuse(u, QUOTA_REQUESTS_PER_SECOND, rate, e);
	u->tokens_ms -= 1000;
	return 0;
}

/* ---- streams */

int
quota_use_add_stream(struct quota_use *u, struct err *e)
{
	if (check_one(u, QUOTA_STREAMS, u->streams, 1, e) != 0)
		return e->code;
	u->streams++;
	return 0;
}

void
quota_use_drop_stream(struct quota_use *u)
{
	u->streams--;
}

const struct tenant *
quota_use_tenant(const struct quota_use *u)
{
	return u == NULL ? NULL : tenants_find(u->all->tenants, u->tenant);
}
