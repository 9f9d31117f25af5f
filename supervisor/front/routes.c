/*
 * routes.c - what is served where, and which names paths may have
 */
#include "supervisor/front/routes.h"

#include <stdio.h>

#include "common/metric.h"
#include "common/principal.h"
#include "common/token.h"
#include "common/uuid.h"
#include "supervisor/core/secrets.h"
#include "supervisor/front/account.h"
#include "supervisor/front/admin.h"
#include "supervisor/front/audit_route.h"
#include "supervisor/front/backup_route.h"
#include "supervisor/front/event_streams.h"
#include "supervisor/front/export_route.h"
#include "supervisor/front/history_route.h"
#include "supervisor/front/oauth.h"
#include "supervisor/front/openapi_route.h"
#include "supervisor/front/record_route.h"
#include "supervisor/front/rerun_route.h"
#include "supervisor/front/sandbox_list_route.h"
#include "supervisor/front/sandbox_route.h"
#include "supervisor/front/secret_route.h"
#include "supervisor/front/webhook_route.h"
#include "supervisor/front/server_status.h"

#define IDENTIFIER_MAX 36
#define ROUTE_NAME_MAX 64

/* ---- kinds of parameters */

static bool
is_identifier(const char *s)
{
	static const char good[] =
	    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
	size_t n = strlen(s);

	return n >= 1 && n <= IDENTIFIER_MAX && strspn(s, good) == n;
}

static bool
is_run(const char *s)
{
	struct uuid id;

	return uuid_parse(s, &id) == 0;
}

static bool
is_run_or_latest(const char *s)
{
	return strcmp(s, "latest") == 0 || is_run(s);
}

/* "-" is none. */
static bool
is_tenant(const char *s)
{
	static const char good[] =
	    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	    "._-";
	size_t n = strlen(s);

	return n >= 1 && n <= PRINCIPAL_TENANT_MAX && strspn(s, good) == n;
}

static bool
is_secret(const char *s)
{
	return secrets_check_name(s, NULL) == 0;
}

static const struct http_param_kind kinds[] = {
    {"tenant", is_tenant},
    {"token", token_is_id},
    {"secret", is_secret},
    {"webhook", is_run},
    {"identifier", is_identifier},
    {"run", is_run},
    {"run_or_latest", is_run_or_latest},
};

/* ---- routes */

#define READ (HTTP_METHOD_GET | HTTP_METHOD_HEAD)
#define READ_ALLOW "GET, HEAD, OPTIONS"
#define CHANGE (READ | HTTP_METHOD_PUT | HTTP_METHOD_DELETE)
#define CHANGE_ALLOW "GET, HEAD, PUT, DELETE, OPTIONS"

#define EDIT (READ | HTTP_METHOD_PATCH | HTTP_METHOD_DELETE)
#define EDIT_ALLOW "GET, HEAD, PATCH, DELETE, OPTIONS"
#define LIST_ALLOW "GET, HEAD, POST, OPTIONS"

#define USER ROUTE_ROLE(PRINCIPAL_USER)
#define ADMIN ROUTE_ROLE(PRINCIPAL_ADMIN)
#define METRICS ROUTE_ROLE(PRINCIPAL_METRICS)

static const struct route routes[] = {
    {ROUTE_MCP, "", HTTP_METHOD_GET | HTTP_METHOD_POST | HTTP_METHOD_DELETE,
	"POST, DELETE, OPTIONS", NULL, front_on_mcp, ROUTE_FOR_USERS, USER},
    {ROUTE_BELOW_MCP, "/events", READ, READ_ALLOW, NULL, front_on_events,
	ROUTE_FOR_USERS, USER},
    {ROUTE_BELOW_MCP, "/runs/:run", READ | HTTP_METHOD_DELETE,
	"GET, HEAD, DELETE, OPTIONS", "no such run", front_on_run,
	ROUTE_FOR_USERS, USER},
    {ROUTE_BELOW_MCP, "/runs/:run/cancel", HTTP_METHOD_POST, "POST, OPTIONS",
	"no such run", front_on_run_cancel, ROUTE_FOR_USERS, USER},
    {ROUTE_TOP, "/artifacts/:identifier/:run_or_latest/*path", READ, READ_ALLOW,
	"no such artifact", front_on_artifact, ROUTE_FOR_USERS, USER},
    {ROUTE_TOP, "/healthz", READ, READ_ALLOW, NULL, front_on_healthz,
	ROUTE_FOR_PROBES, ROUTE_NOBODY},
    {ROUTE_TOP, "/readyz", READ, READ_ALLOW, NULL, front_on_readyz,
	ROUTE_FOR_PROBES, ROUTE_NOBODY},
    {ROUTE_TOP, OAUTH_WELL_KNOWN, READ, READ_ALLOW, NULL,
	front_on_resource_metadata, ROUTE_FOR_PROBES, ROUTE_NOBODY},
    {ROUTE_TOP, OAUTH_WELL_KNOWN "/*path", READ, READ_ALLOW, NULL,
	front_on_resource_metadata, ROUTE_FOR_PROBES, ROUTE_NOBODY},
    {ROUTE_TOP, "/metrics", READ, READ_ALLOW, NULL, front_on_metrics,
	ROUTE_FOR_PROBES, METRICS | ADMIN | ROUTE_WHILE_OPEN},
    {ROUTE_TOP, "/api/v1/openapi.json", READ, READ_ALLOW, NULL,
	openapi_on_request, ROUTE_FOR_USERS, USER | ADMIN | METRICS},
    {ROUTE_TOP, "/api/v1/whoami", READ, READ_ALLOW, NULL, account_on_whoami,
	ROUTE_FOR_USERS, USER | ADMIN | METRICS},
    {ROUTE_TOP, "/api/v1/usage", READ, READ_ALLOW, NULL, account_on_usage,
	ROUTE_FOR_USERS, USER | ADMIN},
    {ROUTE_TOP, "/api/v1/tenants", READ | HTTP_METHOD_POST,
	"GET, HEAD, POST, OPTIONS", NULL, admin_on_tenants, ROUTE_FOR_USERS,
	ADMIN},
    {ROUTE_TOP, "/api/v1/tenants/:tenant",
	READ | HTTP_METHOD_PATCH | HTTP_METHOD_DELETE,
	"GET, HEAD, PATCH, DELETE, OPTIONS", "no such tenant", admin_on_tenant,
	ROUTE_FOR_USERS, ADMIN},
    {ROUTE_TOP, "/api/v1/tenants/:tenant/tokens", READ | HTTP_METHOD_POST,
	"GET, HEAD, POST, OPTIONS", "no such tenant", admin_on_tenant_tokens,
	ROUTE_FOR_USERS, ADMIN},
    {ROUTE_TOP, "/api/v1/tenants/:tenant/secrets", READ, READ_ALLOW,
	"no such tenant", secret_on_tenant_list, ROUTE_FOR_USERS, ADMIN},
    {ROUTE_TOP, "/api/v1/tenants/:tenant/secrets/:secret", CHANGE, CHANGE_ALLOW,
	"no such secret", secret_on_tenant, ROUTE_FOR_USERS, ADMIN},
    {ROUTE_TOP, "/api/v1/tenants/:tenant/sandboxes/:identifier",
	READ | HTTP_METHOD_DELETE, "GET, HEAD, DELETE, OPTIONS",
	"no such sandbox", sandbox_on_tenant, ROUTE_FOR_USERS, ADMIN},
    {ROUTE_TOP, "/api/v1/sandboxes", READ, READ_ALLOW, NULL, sandbox_on_list,
	ROUTE_FOR_USERS, USER | ADMIN},
    {ROUTE_TOP, "/api/v1/sandboxes/:identifier", READ | HTTP_METHOD_DELETE,
	"GET, HEAD, DELETE, OPTIONS", "no such sandbox", sandbox_on_own,
	ROUTE_FOR_USERS, USER},
    {ROUTE_TOP, "/api/v1/runs", READ, READ_ALLOW, NULL, history_on_runs,
	ROUTE_FOR_USERS, USER | ADMIN},
    {ROUTE_TOP, "/api/v1/stats", READ, READ_ALLOW, NULL, history_on_stats,
	ROUTE_FOR_USERS, USER | ADMIN},
    {ROUTE_TOP, "/api/v1/export", HTTP_METHOD_GET, "GET, OPTIONS", NULL,
	export_on_get, ROUTE_FOR_USERS, USER | ADMIN},
    {ROUTE_TOP, "/api/v1/runs/:run", READ | HTTP_METHOD_DELETE,
	"GET, HEAD, DELETE, OPTIONS", "no such run", record_on_run,
	ROUTE_FOR_USERS, USER | ADMIN},
    {ROUTE_TOP, "/api/v1/runs/:run/output", READ, READ_ALLOW, "no such run",
	record_on_output, ROUTE_FOR_USERS, USER | ADMIN},
    {ROUTE_TOP, "/api/v1/runs/:run/artifacts", READ, READ_ALLOW, "no such run",
	record_on_artifacts, ROUTE_FOR_USERS, USER | ADMIN},
    {ROUTE_TOP, "/api/v1/runs/:run/cancel", HTTP_METHOD_POST, "POST, OPTIONS",
	"no such run", record_on_cancel, ROUTE_FOR_USERS, USER | ADMIN},
    {ROUTE_TOP, "/api/v1/runs/:run/rerun", HTTP_METHOD_POST, "POST, OPTIONS",
	"no such run", rerun_on_run, ROUTE_FOR_USERS, USER | ADMIN},
    {ROUTE_TOP, "/api/v1/secrets", READ, READ_ALLOW, NULL, secret_on_own_list,
	ROUTE_FOR_USERS, USER},
    {ROUTE_TOP, "/api/v1/secrets/:secret", CHANGE, CHANGE_ALLOW,
	"no such secret", secret_on_own, ROUTE_FOR_USERS, USER},
    {ROUTE_TOP, "/api/v1/events", READ, READ_ALLOW, NULL,
	event_streams_on_request, ROUTE_FOR_USERS, USER | ADMIN},
    {ROUTE_TOP, "/api/v1/webhooks", READ | HTTP_METHOD_POST, LIST_ALLOW, NULL,
	webhook_on_list, ROUTE_FOR_USERS, USER},
    {ROUTE_TOP, "/api/v1/webhooks/:webhook", EDIT, EDIT_ALLOW,
	"no such webhook", webhook_on_one, ROUTE_FOR_USERS, USER},
    {ROUTE_TOP, "/api/v1/webhooks/:webhook/test", HTTP_METHOD_POST,
	"POST, OPTIONS", "no such webhook", webhook_on_test, ROUTE_FOR_USERS,
	USER},
    {ROUTE_TOP, "/api/v1/tenants/:tenant/webhooks", READ | HTTP_METHOD_POST,
	LIST_ALLOW, "no such tenant", webhook_on_list, ROUTE_FOR_USERS, ADMIN},
    {ROUTE_TOP, "/api/v1/tenants/:tenant/webhooks/:webhook", EDIT, EDIT_ALLOW,
	"no such webhook", webhook_on_one, ROUTE_FOR_USERS, ADMIN},
    {ROUTE_TOP, "/api/v1/tenants/:tenant/webhooks/:webhook/test",
	HTTP_METHOD_POST, "POST, OPTIONS", "no such webhook", webhook_on_test,
	ROUTE_FOR_USERS, ADMIN},
    {ROUTE_TOP, "/api/v1/tokens", READ, READ_ALLOW, NULL, admin_on_tokens,
	ROUTE_FOR_USERS, ADMIN},
    {ROUTE_TOP, "/api/v1/tokens/:token", READ | HTTP_METHOD_DELETE,
	"GET, HEAD, DELETE, OPTIONS", "no such token", admin_on_token,
	ROUTE_FOR_USERS, ADMIN},
    {ROUTE_TOP, "/api/v1/backups", HTTP_METHOD_POST, "POST, OPTIONS", NULL,
	backup_on_request, ROUTE_FOR_USERS, ADMIN},
    {ROUTE_TOP, "/api/v1/status", READ, READ_ALLOW, NULL,
	server_status_on_request, ROUTE_FOR_USERS, ADMIN},
    {ROUTE_TOP, "/api/v1/audit", READ, READ_ALLOW, NULL, audit_on_list,
	ROUTE_FOR_USERS, ADMIN},
    {ROUTE_TOP, "/api/v1/audit/verify", READ, READ_ALLOW, NULL, audit_on_verify,
	ROUTE_FOR_USERS, ADMIN},
    {ROUTE_TOP, "/", READ, READ_ALLOW, NULL, front_on_index, ROUTE_FOR_USERS,
	USER | ADMIN | METRICS},
};

const struct route *
routes_next(const struct route *r)
{
	const struct route *next = r == NULL ? routes : r + 1;

	return next == routes + ARRAY_LEN(routes) ? NULL : next;
}

unsigned int
routes_number(const struct route *r)
{
	size_t at = r == NULL ? METRIC_ROUTES : (size_t)(r - routes);

	return at < METRIC_ROUTES - 1 ? (unsigned int)at : METRIC_ROUTES - 1;
}

/* MCP_PATH is told as it is by default. */
static char names[ARRAY_LEN(routes)][ROUTE_NAME_MAX];

const char *
routes_name(unsigned int number)
{
	if (number == METRIC_ROUTES - 1)
		return "other";
	return number < ARRAY_LEN(routes) && names[number][0] != '\0' ?
	    names[number] :
	    NULL;
}

struct http_router *
routes_new(const char *mcp_path)
{
	struct http_router *r = http_router_new(kinds, ARRAY_LEN(kinds));

	for (size_t i = 0; i < ARRAY_LEN(routes); i++) {
		const struct route *route = &routes[i];

		(void)snprintf(names[i], sizeof(names[i]), "%s%s",
		    route->place == ROUTE_TOP ? "" : "/mcp", route->pattern);
		http_router_add(r, route->place == ROUTE_TOP ? "" : mcp_path,
		    route->pattern, route);
		if (route->place == ROUTE_MCP)
			http_router_add(r, mcp_path, "/", route);
	}
	return r;
}
