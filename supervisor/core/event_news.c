#include "supervisor/core/event_news.h"

#include "common/clock.h"
#include "common/xmalloc.h"
#include "supervisor/core/disk.h"
#include "supervisor/core/fleet.h"

#define LOOK_MS 1000

enum seen_engine {
	SEEN_NOTHING,
	SEEN_UP,
	SEEN_DOWN
};

struct refused_quota {
	struct tenant_id tenant;
	const char *quota; /* NULL: free */
	uint64_t times;    /* since it was told */
	uint64_t until_ms; /* it is not told before */
};

struct event_news {
	struct store *store;
	struct disk *disk;
	uint64_t first_run;
	enum seen_engine engines[FLEET_WORKERS_MAX];
	struct refused_quota refused[EVENT_NEWS_REFUSALS_MAX];
	uint64_t look_ms;
	bool is_full;
	uint64_t commits, error_ms; /* as of the last look */
	uint64_t error_told_ms;     /* which was told last */
	uint64_t error_until_ms;    /* none is told before */
};

void
event_news_of_server(struct store *s, enum event_kind kind)
{
	store_event_tell(s, &(struct store_news){.kind = kind});
}

/* ---- workers, and the engine */

void
event_news_worker(struct event_news *n, uint32_t worker, enum event_kind kind)
{
	if (kind == EVENT_WORKER_LOST)
		n->engines[worker] = SEEN_NOTHING;
	store_event_tell(n->store,
	    &(struct store_news){
		.kind = kind, .has_worker = true, .worker = worker});
}

void
event_news_engine(struct event_news *n, uint32_t worker, const char *why)
{
	enum seen_engine now = why == NULL ? SEEN_UP : SEEN_DOWN;

	if (n->engines[worker] == now)
		return;
	n->engines[worker] = now;
	store_event_tell(n->store,
	    &(struct store_news){
		.kind = why == NULL ? EVENT_ENGINE_UP : EVENT_ENGINE_DOWN,
		.has_worker = true,
		.worker = worker,
		.error = why});
}

/* ---- runs */

void
event_news_began(struct event_news *n, uint64_t first_run)
{
	n->first_run = first_run;
}

/* What an earlier process saw begin, it may have told, or not. */
void
event_news_started(
    struct event_news *n, const struct store_run *row, int64_t before)
{
	if (before == 0 && row->started_ms != 0)
		store_run_started(n->store, row,
		    row->id < n->first_run ? STORE_EVENT_ONCE :
					     STORE_EVENT_ALWAYS);
}

/* ---- refusals */

static void
tell_refused(struct event_news *n, struct refused_quota *r, uint64_t now_ms)
{
	store_event_tell(n->store,
	    &(struct store_news){.tenant = r->tenant.n,
		.kind = EVENT_QUOTA_REFUSED,
		.quota = r->quota,
		.times = r->times});
	r->times = 0;
	r->until_ms = now_ms + EVENT_NEWS_PERIOD_MS;
}

void
event_news_refused(
    struct event_news *n, struct tenant_id tenant, const char *quota)
{
	struct refused_quota *found = NULL;

	for (size_t i = 0; i < EVENT_NEWS_REFUSALS_MAX; i++) {
		struct refused_quota *r = &n->refused[i];

		if (r->quota == quota && r->tenant.n == tenant.n) {
			r->times++;
			return;
		}
		if (r->quota == NULL && found == NULL)
			found = r;
	}
	if (found == NULL)
		return;
	*found = (struct refused_quota){
	    .tenant = tenant, .quota = quota, .times = 1};
	tell_refused(n, found, clock_mono_ms());
}

static void
tick_refused(struct event_news *n, uint64_t now_ms)
{
	for (size_t i = 0; i < EVENT_NEWS_REFUSALS_MAX; i++) {
		struct refused_quota *r = &n->refused[i];

		if (r->quota == NULL || now_ms < r->until_ms)
			continue;
		if (r->times > 0)
			tell_refused(n, r, now_ms);
		else
			r->quota = NULL;
	}
}

/* ---- disk, and database */

static void
tick_disk(struct event_news *n)
{
	struct err why;
	bool is_full = disk_check(n->disk, &why) != 0;

	if (is_full == n->is_full)
		return;
	n->is_full = is_full;
	store_event_tell(n->store,
	    &(struct store_news){
		.kind = is_full ? EVENT_DISK_FULL : EVENT_DISK_FREE,
		.error = is_full ? why.msg : NULL});
}

/* While they all fail, an event of it would only fail, too. */
static void
tick_store(struct event_news *n, uint64_t now_ms)
{
	struct store_stats st;
	bool is_well;

	store_stats(n->store, &st);
	is_well = st.commits > n->commits && st.last_error_ms == n->error_ms;
	n->commits = st.commits;
	n->error_ms = st.last_error_ms;
	if (!is_well || st.last_error_ms == n->error_told_ms ||
	    now_ms < n->error_until_ms)
		return;
	store_event_tell(n->store,
	    &(struct store_news){.kind = EVENT_STORE_FAILED,
		.failed_ms = (int64_t)st.last_error_ms});
	n->error_told_ms = st.last_error_ms;
	n->error_until_ms = now_ms + EVENT_NEWS_PERIOD_MS;
}

void
event_news_tick(struct event_news *n, uint64_t now_ms)
{
	if (now_ms < n->look_ms)
		return;
	n->look_ms = now_ms + LOOK_MS;
	tick_refused(n, now_ms);
	tick_disk(n);
	tick_store(n, now_ms);
}

/* ---- life */

struct event_news *
event_news_new(struct store *store, struct disk *disk)
{
	struct event_news *n = xcalloc(1, sizeof(*n));

	n->store = store;
	n->disk = disk;
	return n;
}

void
event_news_free(struct event_news *n)
{
	free(n);
}
