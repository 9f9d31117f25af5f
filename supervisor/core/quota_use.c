#include "supervisor/core/quota_use.h"

#include <limits.h>
#include <sched.h>

#include "common/xmalloc.h"
#include "supervisor/core/tenants.h"
#include "supervisor/store/store.h"

#define NANO 1000000000u
#define MIB_SHIFT 20

TAILQ_HEAD(quota_use_list, quota_use);

struct quota_uses {
	const struct tenants *tenants;
	struct sched *sched;
	struct sched *engine;
	unsigned int engine_share; /* of one tenant */
	struct hashmap map;
	struct quota_use_list list;
	uint64_t sandboxes;
};

static int64_t
limit_of(const struct quota_use *u, enum quota_key key)
{
	return tenants_quota(u->all->tenants, u->tenant, key);
}

/* ---- life */

static void
set_lanes(struct quota_use *u)
{
	unsigned int weight = (unsigned int)limit_of(u, QUOTA_WEIGHT);

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

/* The engine's work for a sandbox is most of a processor's while it lasts:
 * half of the processors stay free for who comes next. */
static unsigned int
engine_share(void)
{
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set) != 0 || CPU_COUNT(&set) < 4)
		return 1;
	return (unsigned int)CPU_COUNT(&set) / 2;
}

struct quota_uses *
quota_uses_new(
    const struct tenants *tenants, struct sched *sched, struct sched *engine)
{
	struct quota_uses *all = xcalloc(1, sizeof(*all));

	all->tenants = tenants;
	all->sched = sched;
	all->engine = engine;
	all->engine_share = engine_share();
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
quota_uses_tick(struct quota_uses *all)
{
	struct quota_use *u;

	TAILQ_FOREACH (u, &all->list, link)
		if (u->lane.nwaiting > 0 || u->engine.nwaiting > 0)
			set_lanes(u);
}

void
quota_use_ask_engine(struct quota_use *u, struct sched_item *item)
{
	set_lanes(u);
	sched_add(&u->asked, item, false);
}

/* ---- what there is */

void
quota_use_cut(struct quota_uses *all, struct store_sandbox *row)
{
	const struct quota_use *u =
	    quota_use_of(all, (struct tenant_id){row->tenant});
	uint64_t cpus = (uint64_t)limit_of(u, QUOTA_SANDBOX_CPU_CORES) * NANO;
	uint64_t memory = (uint64_t)limit_of(u, QUOTA_SANDBOX_MEMORY_MB)
	    << MIB_SHIFT;
	uint32_t pids = (uint32_t)limit_of(u, QUOTA_SANDBOX_PIDS);

	if (row->nano_cpus > cpus)
		row->nano_cpus = cpus;
	if (row->memory_bytes > memory)
		row->memory_bytes = memory;
	if (row->pids > pids)
		row->pids = pids;
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
		return "delete a sandbox with delete_sandbox";
	case QUOTA_RUNS_QUEUED:
		return "wait for runs to end, or cancel some";
	case QUOTA_STREAMS:
		return "end an event stream";
	default:
		return "try again later";
	}
}

int
quota_refusal_text(const struct quota_refusal *why, struct err *e)
{
	return err_set(e, ERR_QUOTA,
	    "quota %s: the limit is %lld, used are %lld: %s, or ask an "
	    "administrator for more",
	    quota_rule(why->key)->key, (long long)why->limit,
	    (long long)why->used, what_to_do(why->key));
}

/* 0 is no limit. */
static int
check_one(const struct quota_use *u, enum quota_key key, uint64_t used,
    uint64_t more, struct err *e)
{
	const struct quota_refusal why = {
	    .key = key, .limit = limit_of(u, key), .used = (int64_t)used};

	if (why.limit == 0 || used + more <= (uint64_t)why.limit)
		return 0;
	return quota_refusal_text(&why, e);
}

int
quota_use_admit_sandbox(
    const struct quota_use *u, const struct store_sandbox *like, struct err *e)
{
	if (check_one(u, QUOTA_SANDBOXES, u->sandboxes, 1, e) != 0 ||
	    check_one(u, QUOTA_CPU_CORES, u->nano_cpus / NANO,
		like->nano_cpus / NANO, e) != 0 ||
	    check_one(u, QUOTA_MEMORY_MB, u->memory_bytes >> MIB_SHIFT,
		like->memory_bytes >> MIB_SHIFT, e) != 0)
		return e->code;
	return 0;
}

int
quota_use_admit_run(struct quota_use *u, struct err *e)
{
	set_lanes(u);
	return check_one(u, QUOTA_RUNS_QUEUED, u->lane.nwaiting, 1, e);
}

int
quota_use_admit_replacement(const struct quota_use *u, struct err *e)
{
	const struct quota_refusal why = {.key = QUOTA_SANDBOXES,
	    .limit = limit_of(u, QUOTA_SANDBOXES),
	    .used = (int64_t)u->sandboxes};

	if (why.limit == 0 || why.used < 2 * why.limit)
		return 0;
	return quota_refusal_text(&why, e);
}

uint64_t
quota_use_history(struct quota_uses *all, struct tenant_id tenant, uint64_t max)
{
	uint64_t limit =
	    (uint64_t)limit_of(quota_use_of(all, tenant), QUOTA_HISTORY_RUNS);

	return limit == 0 || limit > max ? max : limit;
}

/* ---- requests: a bucket that fills again */

bool
quota_use_admit_request(
    struct quota_use *u, uint64_t now_ms, struct quota_refusal *why)
{
	uint64_t rate = (uint64_t)limit_of(u, QUOTA_REQUESTS_PER_SECOND);
	uint64_t full = (uint64_t)limit_of(u, QUOTA_REQUEST_BURST) * 1000;
	uint64_t past = now_ms - u->filled_ms;

	if (rate == 0)
		return true;
	if (u->filled_ms == 0 || past >= full / rate + 1)
		u->tokens_ms = full;
	else
		u->tokens_ms += past * rate; /* a thousandth in a millisecond */
	if (u->tokens_ms > full)
		u->tokens_ms = full;
	u->filled_ms = now_ms;
	if (u->tokens_ms >= 1000) {
		u->tokens_ms -= 1000;
		return true;
	}
	*why = (struct quota_refusal){.key = QUOTA_REQUESTS_PER_SECOND,
	    .limit = (int64_t)rate,
	    .used = (int64_t)rate,
	    .wait_s = 1};
	return false;
}

/* ---- streams */

bool
quota_use_add_stream(struct quota_use *u, struct quota_refusal *why)
{
	int64_t limit = limit_of(u, QUOTA_STREAMS);

	if (limit != 0 && u->streams >= (uint64_t)limit) {
		*why = (struct quota_refusal){.key = QUOTA_STREAMS,
		    .limit = limit,
		    .used = (int64_t)u->streams,
		    .wait_s = 1};
		return false;
	}
	u->streams++;
	return true;
}

void
quota_use_drop_stream(struct quota_use *u)
{
	u->streams--;
}
