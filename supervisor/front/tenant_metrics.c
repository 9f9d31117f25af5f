#include "supervisor/front/tenant_metrics.h"

#include "common/quota.h"
#include "supervisor/core/quota_use.h"
#include "supervisor/core/tenants.h"

#define REST "other"
#define REST_PLACE (METRIC_TENANTS - 1)

_Static_assert(
    METRIC_TENANT_REFUSALS_TOTAL_CELLS == METRIC_TENANTS * QUOTA_COUNT,
    "the label quota has all quotas");

struct numbers_of_tenant {
	uint64_t sandboxes, running, queued, streams;
	uint64_t completed, failed, canceled;
	uint64_t output_bytes, requests;
	uint64_t refused[QUOTA_COUNT];
};

static void
add_use(struct numbers_of_tenant *to, const struct quota_use *u)
{
	to->sandboxes += u->sandboxes;
	to->running += u->lane.nrunning;
	to->queued += u->lane.nwaiting;
	to->streams += u->streams;
	to->completed += u->runs_completed;
	to->failed += u->runs_failed;
	to->canceled += u->runs_canceled;
	to->output_bytes += u->output_bytes;
	to->requests += u->requests;
	for (size_t i = 0; i < QUOTA_COUNT; i++)
		to->refused[i] += u->refused[i];
}

static void
note(const struct numbers_of_tenant *n, unsigned int at)
{
	unsigned int runs = METRIC_TENANT_RUNS_TOTAL + at * 3;
	unsigned int refusals = METRIC_TENANT_REFUSALS_TOTAL + at * QUOTA_COUNT;

	metric_set(METRIC_TENANT_SANDBOXES + at, n->sandboxes);
	metric_set(METRIC_TENANT_RUNS_RUNNING + at, n->running);
	metric_set(METRIC_TENANT_RUNS_QUEUED + at, n->queued);
	metric_set(METRIC_TENANT_EVENT_STREAMS + at, n->streams);
	metric_since(runs, n->completed);
	metric_since(runs + 1, n->failed);
	metric_since(runs + 2, n->canceled);
	metric_since(METRIC_TENANT_OUTPUT_BYTES_TOTAL + at, n->output_bytes);
	metric_since(METRIC_TENANT_REQUESTS_TOTAL + at, n->requests);
	for (unsigned int q = 0; q < QUOTA_COUNT; q++)
		metric_since(refusals + q, n->refused[q]);
}

/* Of who is no more the place is free before another may take it. */
static void
keep_places(const struct tenants *t)
{
	const struct tenant *n = NULL;
	bool is_used[METRIC_TENANTS] = {false};
	unsigned int hint = 0;

	while ((n = tenants_next(t, n)) != NULL) {
		unsigned int at = metric_tenant_find(n->row.id, hint);

		is_used[at] = true;
		hint = at + 1;
	}
	metric_tenants_keep(is_used);
}

void
tenant_metrics_note(const struct core *c, const char *names[METRIC_TENANTS])
{
	const struct tenants *t = core_tenants(c);
	struct numbers_of_tenant rest = {0};
	const struct tenant *n = NULL;
	bool has_rest = false;
	unsigned int hint = 0;

	keep_places(t);
	while ((n = tenants_next(t, n)) != NULL) {
		const struct quota_use *u =
		    quota_use_of(core_quota_uses(c), tenant_id_of(n));
		unsigned int at = strcmp(n->row.name, REST) == 0 ?
		    REST_PLACE :
		    metric_tenant(n->row.id, hint);

		if (at == REST_PLACE) {
			add_use(&rest, u);
			has_rest = true;
		} else {
			struct numbers_of_tenant own = {0};

			add_use(&own, u);
			note(&own, at);
			hint = at + 1;
		}
		if (names != NULL)
			names[at] = at == REST_PLACE ? REST : n->row.name;
	}
	if (has_rest)
		note(&rest, REST_PLACE);
}
