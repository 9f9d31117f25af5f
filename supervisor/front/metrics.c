#include "supervisor/front/handlers.h"

#include <stdio.h>

#include "common/buf.h"
#include "common/clock.h"
#include "common/metric.h"
#include "common/quota.h"
#include "supervisor/core/fleet.h"
#include "supervisor/core/quota_use.h"
#include "supervisor/core/run.h"
#include "supervisor/core/tenants.h"
#include "supervisor/front/deliveries.h"
#include "supervisor/front/exposition.h"
#include "supervisor/store/history.h"

/* GET /metrics, and what keeps its cells up to date. */

#define METRICS_MAX (8u << 20)
#define EXEMPLAR_MAX 128
#define REST "other"
#define REST_PLACE (METRIC_TENANTS - 1)

_Static_assert(
    METRIC_TENANT_REFUSALS_TOTAL_CELLS == METRIC_TENANTS * QUOTA_COUNT,
    "the label quota has all quotas");

/* What others count, gathered. */
struct numbers {
	struct core_stats core;
	struct counters counters;
	struct store_stats store;
	struct store_room room;
	struct http_stats http;
	struct deliveries_counts webhooks;
	uint64_t spool_bytes;
	struct history_state index;
	uint64_t index_up, index_lag_us;
};

static const struct source {
	unsigned int cell;
	enum source_kind {
		SOURCE_NOW,
		SOURCE_SINCE, /* counted since this front was started */
		SOURCE_TOTAL  /* of the database, or counted since ever */
	} kind;
	size_t offset; /* of a uint64_t in struct numbers */
} sources[] = {
#define AT(field) offsetof(struct numbers, field)
    {METRIC_MCP_ACTIVE_SANDBOXES, SOURCE_NOW, AT(core.active_sandboxes)},
    {METRIC_MCP_ACTIVE_RUNS, SOURCE_NOW, AT(core.active_runs)},
    {METRIC_MCP_RUNS_TOTAL, SOURCE_TOTAL, AT(counters.total.runs_completed)},
    {METRIC_MCP_RUNS_TOTAL + 1, SOURCE_TOTAL, AT(counters.total.runs_failed)},
    {METRIC_MCP_RUNS_TOTAL + 2, SOURCE_TOTAL, AT(counters.total.runs_canceled)},
    {METRIC_MCP_COMMANDS_TOTAL, SOURCE_TOTAL,
	AT(counters.total.commands_completed)},
    {METRIC_MCP_COMMANDS_TOTAL + 1, SOURCE_TOTAL,
	AT(counters.total.commands_failed)},
    {METRIC_MCP_COMMANDS_TOTAL + 2, SOURCE_TOTAL,
	AT(counters.total.commands_timed_out)},
    {METRIC_MCP_REAPER_DELETES_TOTAL, SOURCE_SINCE,
	AT(counters.reaper_deletes)},
    {METRIC_HISTORY_BYTES, SOURCE_NOW, AT(core.usage.log_bytes)},
    {METRIC_HISTORY_BYTES + 1, SOURCE_NOW, AT(core.usage.blob_bytes)},
    {METRIC_HISTORY_FILES, SOURCE_NOW, AT(core.usage.log_files)},
    {METRIC_HISTORY_FILES + 1, SOURCE_NOW, AT(core.usage.blob_files)},
    {METRIC_HISTORY_INDEX_UP, SOURCE_NOW, AT(index_up)},
    {METRIC_HISTORY_INDEX_LAG_ROWS, SOURCE_NOW, AT(index.lag_rows)},
    {METRIC_HISTORY_INDEX_LAG_SECONDS, SOURCE_NOW, AT(index_lag_us)},
    {METRIC_HISTORY_INDEX_TEXT_BYTES, SOURCE_NOW, AT(index.text_bytes)},
    {METRIC_HISTORY_INDEX_MADE_ANEW_TOTAL, SOURCE_SINCE, AT(index.made_anew)},
    {METRIC_SPOOL_BYTES, SOURCE_NOW, AT(spool_bytes)},
    {METRIC_EVICTED_RUNS_TOTAL, SOURCE_TOTAL, AT(core.usage.evicted)},
    {METRIC_HTTP_REQUESTS_TOTAL, SOURCE_SINCE, AT(http.by_class[1])},
    {METRIC_HTTP_REQUESTS_TOTAL + 1, SOURCE_SINCE, AT(http.by_class[2])},
    {METRIC_HTTP_REQUESTS_TOTAL + 2, SOURCE_SINCE, AT(http.by_class[3])},
    {METRIC_HTTP_REQUESTS_TOTAL + 3, SOURCE_SINCE, AT(http.by_class[4])},
    {METRIC_HTTP_REQUESTS_TOTAL + 4, SOURCE_SINCE, AT(http.by_class[5])},
    {METRIC_CONNECTIONS, SOURCE_NOW, AT(http.connections)},
    {METRIC_EVENT_STREAMS, SOURCE_NOW, AT(http.streams)},
    {METRIC_CONNECTIONS_DISPLACED_TOTAL, SOURCE_SINCE, AT(http.displaced)},
    {METRIC_TLS_HANDSHAKES_TOTAL, SOURCE_SINCE, AT(http.handshakes)},
    {METRIC_TLS_HANDSHAKES_TOTAL + 1, SOURCE_SINCE, AT(http.handshakes_failed)},
    {METRIC_REFUSED_TOTAL, SOURCE_SINCE, AT(http.refused[LIMITER_CONNECTIONS])},
    {METRIC_REFUSED_TOTAL + 1, SOURCE_SINCE,
	AT(http.refused[LIMITER_REQUESTS])},
    {METRIC_REFUSED_TOTAL + 2, SOURCE_SINCE, AT(http.refused[LIMITER_LOGINS])},
    {METRIC_ANSWERS_WAITING_BYTES, SOURCE_NOW, AT(http.waiting_memory)},
    {METRIC_ANSWERS_WAITING_BYTES + 1, SOURCE_NOW, AT(http.waiting_files)},
    {METRIC_WORKERS_READY, SOURCE_NOW, AT(core.workers_ready)},
    {METRIC_WORKER_RESTARTS_TOTAL, SOURCE_SINCE, AT(core.worker_restarts)},
    {METRIC_WEBHOOK_DELIVERIES_TOTAL, SOURCE_SINCE, AT(webhooks.taken)},
    {METRIC_WEBHOOK_DELIVERIES_TOTAL + 1, SOURCE_SINCE, AT(webhooks.failed)},
    {METRIC_WEBHOOK_DELIVERIES_TOTAL + 2, SOURCE_SINCE, AT(webhooks.lost)},
    {METRIC_WEBHOOK_QUEUE, SOURCE_NOW, AT(webhooks.waiting)},
    {METRIC_STORE_COMMITS_TOTAL, SOURCE_SINCE, AT(store.commits)},
    {METRIC_STORE_FAILURES_TOTAL, SOURCE_SINCE, AT(store.failures)},
    {METRIC_STORE_QUEUE, SOURCE_NOW, AT(store.queue)},
    {METRIC_DISK_FREE_BYTES, SOURCE_NOW, AT(room.data.bytes)},
    {METRIC_DISK_FREE_BYTES + 1, SOURCE_NOW, AT(room.artifacts.bytes)},
    {METRIC_DISK_FREE_INODES, SOURCE_NOW, AT(room.data.inodes)},
    {METRIC_DISK_FREE_INODES + 1, SOURCE_NOW, AT(room.artifacts.inodes)},
#undef AT
};

/* ---- what others count */

static void
take_number(const struct source *s, const struct numbers *n)
{
	uint64_t value;

	memcpy(&value, (const char *)n + s->offset, sizeof(value));
	if (s->kind == SOURCE_NOW)
		metric_set(s->cell, value);
	else if (s->kind == SOURCE_SINCE)
		metric_since(s->cell, value);
	else
		metric_raise(s->cell, value);
}

/* Room that is not known is METRIC_UNKNOWN as it stands. */
static void
take_numbers(const struct front *f)
{
	struct numbers n = {.room = {.data = {METRIC_UNKNOWN, METRIC_UNKNOWN},
				.artifacts = {METRIC_UNKNOWN, METRIC_UNKNOWN}}};
	struct store *store = core_store(f->core);

	n.core = core_stats(f->core);
	n.counters = *core_counters(f->core);
	n.spool_bytes = core_spool_bytes(f->core);
	http_server_stats(f->http, &n.http);
	if (f->deliveries != NULL)
		n.webhooks = deliveries_counts(f->deliveries);
	store_stats(store, &n.store);
	store_room(store, &n.room);
	history_state(store, &n.index);
	n.index_up = n.index.is_available;
	n.index_lag_us = n.index.lag_ms * 1000;
	for (size_t i = 0; i < ARRAY_LEN(sources); i++)
		take_number(&sources[i], &n);
}

/* ---- what each tenant has and did */

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
note_tenant(const struct numbers_of_tenant *n, unsigned int at)
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

/* METRIC_TENANTS - 1 tenants have samples of their own, in the order in which
 * they were made as long as there is a place; those of all others are added up
 * as "other", as are those of a tenant of that name.  names (NULL: not wanted)
 * becomes who has which place, borrowed, NULL where nobody has it. */
static void
note_tenants(const struct core *c, const char *names[METRIC_TENANTS])
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
			note_tenant(&own, at);
			hint = at + 1;
		}
		if (names != NULL)
			names[at] = at == REST_PLACE ? REST : n->row.name;
	}
	if (has_rest)
		note_tenant(&rest, REST_PLACE);
}

/* ---- when */

void
metrics_begin(void)
{
	metric_set(METRIC_BUILD_INFO, 1);
	metric_set(METRIC_ENGINE_INFO, 1);
	metric_set(METRIC_START_TIME_SECONDS, (uint64_t)clock_wall_us());
}

void
metrics_note(struct front *f)
{
	take_numbers(f);
	note_tenants(f->core, NULL);
}

void
metrics_on_request(unsigned int route, uint64_t us)
{
	(void)metric_observe(FAMILY_HTTP_REQUEST_SECONDS, route, us);
}

/* ---- words */

struct scrape {
	const struct front *front;
	const char *tenants[METRIC_TENANTS];
	char exemplar[EXEMPLAR_MAX];
};

/* NULL while no worker reaches it. */
static const char *
engine_label(const struct scrape *s, unsigned int label)
{
	const struct fleet_engine *en =
	    fleet_engine(core_fleet(s->front->core));

	return en == NULL ? NULL : label == 0 ? en->version : en->api;
}

static const char *
label_cb(
    enum metric_number family, unsigned int label, unsigned int i, void *arg)
{
	const struct scrape *s = arg;

	if (family == FAMILY_ENGINE_INFO)
		return engine_label(s, label);
	if (family == FAMILY_BUILD_INFO)
		return PACKAGE_VERSION;
	if (family == FAMILY_HTTP_REQUEST_SECONDS)
		return s->front->route_name(i);
	return s->tenants[i];
}

static bool
exemplar_cb(enum metric_number family, unsigned int bucket,
    struct exposition_exemplar *out, void *arg)
{
	const struct run_sample *r;
	struct scrape *s = arg;
	char run[UUID_TEXT_LEN + 1];

	if (family < FAMILY_RUN_QUEUE_SECONDS ||
	    family > FAMILY_RUN_DURATION_SECONDS)
		return false;
	r = counters_latest(core_counters(s->front->core),
	    (enum run_span)(family - FAMILY_RUN_QUEUE_SECONDS), bucket);
	if (r == NULL)
		return false;
	uuid_format(&r->run, run);
	(void)snprintf(s->exemplar, sizeof(s->exemplar), "run_id=\"%s\"%s%s%s",
	    run, r->trace[0] != '\0' ? ",trace_id=\"" : "", r->trace,
	    r->trace[0] != '\0' ? "\"" : "");
	*out = (struct exposition_exemplar){
	    .labels = s->exemplar, .us = r->us, .wall_ms = r->wall_ms};
	return true;
}

void
front_on_metrics(struct request *r)
{
	const struct front *f = r->front;
	enum exposition_form form =
	    exposition_choose(http_header(r->x, HTTP_H_ACCEPT));
	struct scrape s = {.front = f};
	const struct exposition_words words = {label_cb, exemplar_cb, &s};
	struct buf b;

	take_numbers(f);
	note_tenants(f->core, s.tenants);
	buf_init(&b, METRICS_MAX);
	exposition_write(&b, form, &words);
	http_add_header(r->x, "Cache-Control", "no-store");
	http_add_header(r->x, "Vary", "Accept");
	http_reply(r->x, 200, exposition_type(form), buf_data(&b), buf_len(&b));
	buf_clear(&b);
}
