#include "supervisor/front/route_query.h"

#include "supervisor/front/account.h"
#include "supervisor/front/audit_route.h"
#include "supervisor/front/event_streams.h"
#include "supervisor/front/export_route.h"
#include "supervisor/front/history_route.h"
#include "supervisor/front/record_route.h"
#include "supervisor/front/rerun_route.h"
#include "supervisor/front/sandbox_list_route.h"

static const struct query_table none = {NULL, 0};

static const struct route_query {
	const char *pattern; /* as in routes.c */
	const struct query_table *table;
} queries[] = {
    {"/artifacts/:identifier/:run_or_latest/*path", &none},
    {"/metrics", &none},
    {"/api/v1/audit", &audit_list_query},
    {"/api/v1/audit/verify", &audit_verify_query},
    {"/api/v1/backups", &none},
    {"/api/v1/events", &event_streams_query},
    {"/api/v1/export", &export_query},
    {"/api/v1/openapi.json", &none},
    {"/api/v1/runs", &history_runs_query},
    {"/api/v1/runs/:run", &record_whose_query},
    {"/api/v1/runs/:run/artifacts", &record_artifacts_query},
    {"/api/v1/runs/:run/cancel", &record_whose_query},
    {"/api/v1/runs/:run/output", &record_output_query},
    {"/api/v1/runs/:run/rerun", &rerun_query},
    {"/api/v1/sandboxes", &sandbox_list_query},
    {"/api/v1/sandboxes/:identifier", &none},
    {"/api/v1/stats", &history_stats_query},
    {"/api/v1/secrets", &none},
    {"/api/v1/secrets/:secret", &none},
    {"/api/v1/status", &none},
    {"/api/v1/tenants", &none},
    {"/api/v1/tenants/:tenant", &none},
    {"/api/v1/tenants/:tenant/sandboxes/:identifier", &none},
    {"/api/v1/tenants/:tenant/secrets", &none},
    {"/api/v1/tenants/:tenant/secrets/:secret", &none},
    {"/api/v1/tenants/:tenant/tokens", &none},
    {"/api/v1/tenants/:tenant/webhooks", &none},
    {"/api/v1/tenants/:tenant/webhooks/:webhook", &none},
    {"/api/v1/tenants/:tenant/webhooks/:webhook/test", &none},
    {"/api/v1/tokens", &none},
    {"/api/v1/tokens/:token", &none},
    {"/api/v1/usage", &account_usage_query},
    {"/api/v1/webhooks", &none},
    {"/api/v1/webhooks/:webhook", &none},
    {"/api/v1/webhooks/:webhook/test", &none},
    {"/api/v1/whoami", &none},
};

static bool
begins_with(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

bool
route_query_is_strict(const struct route *r)
{
	return r->place == ROUTE_TOP &&
	    (begins_with(r->pattern, "/api/") ||
		begins_with(r->pattern, "/artifacts/") ||
		strcmp(r->pattern, "/metrics") == 0);
}

const struct query_table *
route_query_table(const struct route *r)
{
	for (size_t i = 0; i < ARRAY_LEN(queries); i++)
		if (r->place == ROUTE_TOP &&
		    strcmp(queries[i].pattern, r->pattern) == 0)
			return queries[i].table;
	return NULL;
}

bool
route_query_pass(const struct route *r, struct http_exchange *x)
{
	const struct query_table *table = route_query_table(r);
	struct query q;

	if (table == NULL || table->n > 0)
		return true;
	if (!query_read(x, NULL, 0, &q))
		return false;
	query_clear(&q);
	return true;
}
