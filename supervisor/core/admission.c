#include "supervisor/core/admission.h"

#include "common/conf.h"
#include "supervisor/core/disk.h"
#include "supervisor/core/quota_use.h"
#include "supervisor/core/run.h"
#include "supervisor/core/sandbox.h"
#include "supervisor/core/sandbox_row.h"

int
admission_any(const struct admission *a, struct err *e)
{
	if (a->is_draining)
		return err_set(e, ERR_WRONG_STATE,
		    "the server is shutting down: try again later");
	return disk_check(a->disk, e);
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

/* ---- sandboxes */

int
admission_sandbox(const struct admission *a, struct quota_use *u, struct err *e)
{
	struct store_sandbox like = {.tenant = u->tenant.n};
	uint64_t max = (uint64_t)conf_int(a->conf, CONF_MAX_SANDBOXES);

	sandbox_row_limits(&like, a->conf, u->all);
	if (quota_use_admit_sandbox(u, &like,
		(uint64_t)conf_int(a->conf, CONF_SANDBOX_DISK_MB), e) != 0)
		return e->code;
	if (is_over_share(u, u->sandboxes, quota_uses_sandboxes(u->all), max))
		return err_set(e, ERR_LIMIT,
		    "limit reached: %llu sandboxes are yours, and the rest of "
		    "MAX_SANDBOXES is for other tenants: delete one with "
		    "delete_sandbox",
		    (unsigned long long)u->sandboxes);
	return 0;
}

/* ---- runs */

/* So that one of them cannot take the places of all. */
static int
admit_to_sandbox(
    const struct admission *a, const struct sandbox *sb, struct err *e)
{
	unsigned int n;

	if (sb == NULL)
		return 0;
	n = sched_queue_count(&sb->queue);
	if (n < (unsigned int)conf_int(a->conf, CONF_MAX_SANDBOX_RUNS))
		return 0;
	return err_set(e, ERR_LIMIT,
	    "limit reached: %u runs are queued or running in the sandbox %s "
	    "(MAX_SANDBOX_RUNS): wait for some to end, or cancel them",
	    n, sb->row.identifier);
}

/* What it will be is not known yet: there must be room for the largest. */
static int
admit_bytes(const struct admission *a, struct err *e)
{
	uint64_t n = runs_asked_bytes(a->runs);

	if (n + RUNSPEC_BYTES_MAX <=
	    (uint64_t)conf_int(a->conf, CONF_MAX_QUEUED_BYTES))
		return 0;
	return err_set(e, ERR_LIMIT,
	    "limit reached: the runs that are queued or running have %llu "
	    "bytes of commands and files (MAX_QUEUED_BYTES): wait for some "
	    "to end",
	    (unsigned long long)n);
}

int
admission_run(const struct admission *a, struct quota_use *u,
    const struct sandbox *sb, struct err *e)
{
	uint64_t n = runs_active(a->runs);
	uint64_t max = (uint64_t)conf_int(a->conf, CONF_MAX_ACTIVE_RUNS);
	uint64_t own = u->lane.nrunning + u->lane.nwaiting;

	if (quota_use_admit_run(u, e) != 0 || admit_to_sandbox(a, sb, e) != 0 ||
	    admit_bytes(a, e) != 0)
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
