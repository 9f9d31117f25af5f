#include "supervisor/core/retention.h"

#include "common/clock.h"
#include "common/log.h"
#include "common/xmalloc.h"
#include "supervisor/core/disk.h"
#include "supervisor/core/sandbox.h"
#include "supervisor/core/secrets.h"
#include "supervisor/core/tenants.h"
#include "supervisor/core/webhooks.h"

#define EVERY_MS 60000
#define DAY_MS INT64_C(86400000)

/* Of days and of bounds, 0: none; so it is for who was deleted. */
static int64_t
limit_of(const struct tenant *n, enum quota_key key)
{
	return n->row.deleted_ms != 0 ? 0 : n->quota[key];
}

/* It is another one when either of any tenant's is. */
static uint64_t
digest(const struct tenants *t, enum quota_key one, enum quota_key other)
{
	const struct tenant *n = NULL;
	uint64_t sum = 0;

	while ((n = tenants_next(t, n)) != NULL)
		sum = sum * 31 + n->row.id * 7 +
		    (uint64_t)limit_of(n, one) * 100003 +
		    (uint64_t)limit_of(n, other);
	return sum;
}

/* What has no bound of its own is trimmed when a run ends. */
static void
note_bounds(struct retention *r)
{
	uint64_t bounds =
	    digest(r->tenants, QUOTA_HISTORY_RUNS, QUOTA_HISTORY_MB);
	const struct tenant *n = NULL;

	if (bounds == r->bounds)
		return;
	r->bounds = bounds;
	while ((n = tenants_next(r->tenants, n)) != NULL)
		if (limit_of(n, QUOTA_HISTORY_RUNS) > 0 ||
		    limit_of(n, QUOTA_HISTORY_MB) > 0)
			tenants_note_ended(r->tenants, tenant_id_of(n));
}

/* The next behind the one that was looked at last, that has a number of days:
 * tenants may come and go in between. */
static const struct tenant *
next_tenant(const struct retention *r)
{
	const struct tenant *n = NULL;

	while ((n = tenants_next(r->tenants, n)) != NULL)
		if (n->row.id > r->at &&
		    (limit_of(n, QUOTA_HISTORY_DAYS) > 0 ||
			limit_of(n, QUOTA_FILES_DAYS) > 0))
			return n;
	return NULL;
}

static int64_t
before(const struct tenant *n, enum quota_key key, int64_t wall_ms)
{
	int64_t days = limit_of(n, key);

	return days > 0 && wall_ms > days * DAY_MS ? wall_ms - days * DAY_MS :
						     0;
}

static void
expired_cb(
    int rc, const struct store_expired *what, const struct err *why, void *arg)
{
	static struct log_limit limit;
	struct retention *r = arg;

	r->is_expiring = false;
	/* What went before a step failed is gone, too. */
	if (what->runs + what->files_of > 0)
		disk_count_again(r->disk);
	if (rc != 0) {
		log_warn_limited(
		    &limit, "old runs are not forgotten: %s", why->msg);
		return;
	}
	if (what->runs + what->files_of == 0)
		return;
	log_info("too old by the days that are set: %llu runs are forgotten, "
		 "%llu gave up their files; %llu files, %llu MiB",
	    (unsigned long long)what->runs, (unsigned long long)what->files_of,
	    (unsigned long long)what->files,
	    (unsigned long long)(what->bytes >> 20));
}

static void
tick_runs(struct retention *r, uint64_t now_ms, int64_t wall_ms)
{
	uint64_t days =
	    digest(r->tenants, QUOTA_HISTORY_DAYS, QUOTA_FILES_DAYS);
	const struct tenant *n;

	note_bounds(r);
	if (r->is_expiring)
		return;
	if (r->at == 0 && now_ms < r->next_ms && days == r->days)
		return;
	if (r->at == 0) {
		r->days = days;
		r->next_ms = now_ms + EVERY_MS;
	}
	n = next_tenant(r);
	r->at = n == NULL ? 0 : n->row.id;
	if (n == NULL)
		return;
	r->is_expiring = true;
	store_expire(r->store,
	    &(struct store_expiry){.tenant = tenant_id_of(n),
		.runs_before_ms = before(n, QUOTA_HISTORY_DAYS, wall_ms),
		.files_before_ms = before(n, QUOTA_FILES_DAYS, wall_ms)},
	    expired_cb, r);
}

static void
tick_tasks(struct retention *r, uint64_t now_ms, int64_t wall_ms)
{
	if (now_ms < r->tasks_ms)
		return;
	r->tasks_ms = now_ms + EVERY_MS;
	store_tasks_expire(r->store, wall_ms);
}

/* ---- tenants that are being deleted */

struct erasing {
	struct retention *all;
	struct tenant_id tenant;
};

/* false: something is still there.  Removing one may free it: the list is
 * walked anew for the next. */
static bool
remove_sandboxes(struct retention *r, uint64_t tenant)
{
	struct sandbox *sb = NULL;
	bool is_any = false;

	while ((sb = sandboxes_next(r->sandboxes, sb)) != NULL) {
		if (sb->row.tenant != tenant)
			continue;
		is_any = true;
		if (!sandbox_state_is_live(sb->state))
			continue;
		sandbox_remove(sb);
		sb = NULL;
		is_any = false;
	}
	return !is_any;
}

static void
trimmed_cb(int rc, const struct err *why, void *arg)
{
	struct erasing *g = arg;
	struct tenant *n = tenants_find(g->all->tenants, g->tenant);

	g->all->is_erasing = false;
	disk_count_again(g->all->disk);
	if (rc != 0)
		log_warn("the history of a deleted tenant stays for now: %s",
		    why->msg);
	if (rc == 0 && n != NULL) {
		secrets_forget(g->all->secrets, g->tenant);
		if (g->all->webhooks != NULL)
			webhooks_forget(g->all->webhooks, g->tenant);
		tenant_erase(n);
	}
	free(g);
}

static void
erase(struct retention *r, const struct tenant *n)
{
	struct erasing *g;

	if (!remove_sandboxes(r, n->row.id) || r->is_erasing || n->is_erasing)
		return;
	g = xcalloc(1, sizeof(*g));
	g->all = r;
	g->tenant = tenant_id_of(n);
	r->is_erasing = true;
	store_trim(r->store, g->tenant, STORE_KEEP_NONE, trimmed_cb, g);
}

void
retention_tick(struct retention *r)
{
	const struct tenant *n = NULL;

	while ((n = tenants_next(r->tenants, n)) != NULL)
		if (n->row.deleted_ms != 0)
			erase(r, n);
	tick_runs(r, clock_mono_ms(), clock_wall_ms());
	tick_tasks(r, clock_mono_ms(), clock_wall_ms());
}
