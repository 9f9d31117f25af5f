#include "supervisor/core/recovery.h"

#include <stdlib.h>

#include "common/log.h"
#include "supervisor/core/run.h"
#include "supervisor/core/run_fate.h"
#include "supervisor/core/sandbox.h"
#include "supervisor/core/tenants.h"

static int
compare_sandboxes(const void *key, const void *row)
{
	uint64_t id = *(const uint64_t *)key;
	uint64_t of = ((const struct store_sandbox *)row)->id;

	return id < of ? -1 : id > of;
}

static struct run_fate
fate_of(const struct store_snapshot *snap, const struct sandbox *removing,
    uint64_t sandbox)
{
	if (removing != NULL)
		return run_fate_of(&removing->row);
	if (snap->nended == 0)
		return run_fate_of(NULL);
	return run_fate_of(bsearch(&sandbox, snap->ended, snap->nended,
	    sizeof(*snap->ended), compare_sandboxes));
}

static int
restore_sandbox(
    const struct recovery *r, const struct store_sandbox *row, struct err *e)
{
	const struct tenant *n =
	    tenants_find(r->tenants, (struct tenant_id){row->tenant});

	if (n == NULL)
		return err_set(e, ERR_DAMAGED,
		    "database: sandbox %s is of no tenant", row->name);
	sandbox_restore(r->sandboxes, n->owner, row);
	return 0;
}

static int
restore_run(const struct recovery *r, const struct store_snapshot *snap,
    const struct store_run *row, struct err *e)
{
	struct sandbox *sb = sandboxes_find(r->sandboxes, row->sandbox);
	bool is_live = sb != NULL && sandbox_state_is_live(sb->state);
	const struct run_fate fate = fate_of(snap, sb, row->sandbox);
	struct run *run;

	if (run_restore(r->runs, is_live ? sb : NULL, &fate, row, &run, e) != 0)
		return e->code;
	if (run->is_doubtful)
		sandbox_add_doubtful(sb);
	return 0;
}

int
recovery_restore(
    const struct recovery *r, const struct store_snapshot *snap, struct err *e)
{
	sandboxes_set_next_id(r->sandboxes, snap->next_sandbox);
	runs_set_next_id(r->runs, snap->next_run);
	for (size_t i = 0; i < snap->nsandboxes; i++)
		if (restore_sandbox(r, &snap->sandboxes[i], e) != 0)
			return e->code;
	for (size_t i = 0; i < snap->nruns; i++)
		if (restore_run(r, snap, &snap->runs[i], e) != 0)
			return e->code;
	if (snap->nsandboxes > 0 || snap->nruns > 0)
		log_info("recovering %zu sandboxes, %zu unfinished runs",
		    snap->nsandboxes, snap->nruns);
	return 0;
}
