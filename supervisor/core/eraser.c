#include "supervisor/core/eraser.h"

#include "common/clock.h"
#include "common/log.h"
#include "common/xmalloc.h"
#include "supervisor/core/disk.h"
#include "supervisor/core/sandbox.h"
#include "supervisor/core/secrets.h"
#include "supervisor/core/tenants.h"
#include "supervisor/core/webhooks.h"

struct erasing {
	struct eraser *all;
	struct tenant_id tenant;
};

/* false: something is still there.  Removing one may free it: the list is
 * walked anew for the next. */
static bool
remove_sandboxes(struct eraser *r, uint64_t tenant)
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

	g->all->is_trimming = false;
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
erase(struct eraser *r, const struct tenant *n)
{
	struct erasing *g;

	if (!remove_sandboxes(r, n->row.id) || r->is_trimming || n->is_erasing)
		return;
	g = xcalloc(1, sizeof(*g));
	g->all = r;
	g->tenant = tenant_id_of(n);
	r->is_trimming = true;
	store_trim(r->store, g->tenant, STORE_KEEP_NONE, trimmed_cb, g);
}

void
eraser_tick(struct eraser *r)
{
	const struct tenant *n = NULL;

	while ((n = tenants_next(r->tenants, n)) != NULL)
		if (n->row.deleted_ms != 0)
			erase(r, n);
	r->retention.store = r->store;
	r->retention.tenants = r->tenants;
	r->retention.disk = r->disk;
	retention_tick(&r->retention, clock_mono_ms(), clock_wall_ms());
}
