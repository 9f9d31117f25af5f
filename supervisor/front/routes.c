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
#include "supervisor/front/handlers.h"
#include "supervisor/front/oauth.h"

#define IDENTIFIER_MAX 36
#define ROUTE_NAME_MAX 64

/* ---- kinds of parameters */

#define LETTERS_DIGITS                                                         \
	"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

static bool
is_made_of(const char *s, const char *good, size_t max)
{
	size_t n = strlen(s);

	return n >= 1 && n <= max && strspn(s, good) == n;
}

static bool
is_identifier(const char *s)
{
	return is_made_of(s, LETTERS_DIGITS "_-", IDENTIFIER_MAX);
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
	return is_made_of(s, LETTERS_DIGITS "._-", PRINCIPAL_TENANT_MAX);
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

#define GET HTTP_METHOD_GET
#define READ (HTTP_METHOD_GET | HTTP_METHOD_HEAD)
#define POST HTTP_METHOD_POST
#define PUT HTTP_METHOD_PUT
#define PATCH HTTP_METHOD_PATCH
#define DELETE HTTP_METHOD_DELETE

#define USER ROUTE_ROLE(PRINCIPAL_USER)
#define ADMIN ROUTE_ROLE(PRINCIPAL_ADMIN)
#define METRICS ROUTE_ROLE(PRINCIPAL_METRICS)
#define ALL (USER | ADMIN | METRICS)

static const struct query_table none = {NULL, 0};

static const struct route routes[] = {
    {ROUTE_MCP, "", GET | POST | DELETE, NULL, front_on_mcp, USER, NULL},
    {ROUTE_BELOW_MCP, "/events", READ, NULL, front_on_events, USER, NULL},
    {ROUTE_BELOW_MCP, "/runs/:run", READ | DELETE, "no such run", front_on_run,
	USER, NULL},
    {ROUTE_BELOW_MCP, "/runs/:run/cancel", POST, "no such run",
	front_on_run_cancel, USER, NULL},
    {ROUTE_TOP, "/sse", GET, NULL, front_on_mcp_sse, USER, NULL},
    {ROUTE_TOP, "/messages", POST, NULL, front_on_mcp_messages, USER, NULL},
    {ROUTE_TOP, "/artifacts/:identifier/:run_or_latest/*path", READ,
	"no such artifact", front_on_artifact, USER, &none},
    {ROUTE_TOP, "/healthz", READ, NULL, front_on_healthz, ROUTE_NOBODY, NULL},
    {ROUTE_TOP, "/readyz", READ, NULL, front_on_readyz, ROUTE_NOBODY, NULL},
    {ROUTE_TOP, OAUTH_WELL_KNOWN, READ, NULL, front_on_resource_metadata,
	ROUTE_NOBODY, NULL},
    {ROUTE_TOP, OAUTH_WELL_KNOWN "/*path", READ, NULL,
	front_on_resource_metadata, ROUTE_NOBODY, NULL},
    {ROUTE_TOP, "/metrics", READ, NULL, front_on_metrics,
	METRICS | ADMIN | ROUTE_WHILE_OPEN, &none},
    {ROUTE_TOP, "/api/v1/openapi.json", READ, NULL, front_on_openapi, ALL,
	&none},
    {ROUTE_TOP, "/api/v1/whoami", READ, NULL, account_on_whoami, ALL, &none},
    {ROUTE_TOP, "/api/v1/usage", READ, NULL, account_on_usage, USER | ADMIN,
	&account_usage_query},
    {ROUTE_TOP, "/api/v1/tenants", READ | POST, NULL, admin_on_tenants, ADMIN,
	&none},
    {ROUTE_TOP, "/api/v1/tenants/:tenant", READ | PATCH | DELETE,
	"no such tenant", admin_on_tenant, ADMIN, &none},
    {ROUTE_TOP, "/api/v1/tenants/:tenant/tokens", READ | POST, "no such tenant",
	admin_on_tenant_tokens, ADMIN, &none},
    {ROUTE_TOP, "/api/v1/tenants/:tenant/secrets", READ, "no such tenant",
	secret_on_list, ADMIN, &none},
    {ROUTE_TOP, "/api/v1/tenants/:tenant/secrets/:secret", READ | PUT | DELETE,
	"no such secret", secret_on_one, ADMIN, &none},
    {ROUTE_TOP, "/api/v1/tenants/:tenant/sandboxes/:identifier", READ | DELETE,
	"no such sandbox", sandbox_on_one, ADMIN, &none},
    {ROUTE_TOP, "/api/v1/sandboxes", READ, NULL, sandbox_on_list, USER | ADMIN,
	&sandbox_list_query},
    {ROUTE_TOP, "/api/v1/sandboxes/:identifier", READ | DELETE,
	"no such sandbox", sandbox_on_one, USER, &none},
    {ROUTE_TOP, "/api/v1/runs", READ, NULL, history_on_runs, USER | ADMIN,
	&history_runs_query},
    {ROUTE_TOP, "/api/v1/stats", READ, NULL, history_on_stats, USER | ADMIN,
	&history_stats_query},
    {ROUTE_TOP, "/api/v1/export", GET, NULL, history_on_export, USER | ADMIN,
	&export_query},
    {ROUTE_TOP, "/api/v1/runs/:run", READ | DELETE, "no such run",
	record_on_run, USER | ADMIN, &record_whose_query},
    {ROUTE_TOP, "/api/v1/runs/:run/output", READ, "no such run",
	record_on_output, USER | ADMIN, &record_output_query},
    {ROUTE_TOP, "/api/v1/runs/:run/artifacts", READ, "no such run",
	record_on_artifacts, USER | ADMIN, &record_artifacts_query},
    {ROUTE_TOP, "/api/v1/runs/:run/cancel", POST, "no such run",
	record_on_cancel, USER | ADMIN, &record_whose_query},
    {ROUTE_TOP, "/api/v1/runs/:run/rerun", POST, "no such run", record_on_rerun,
	USER | ADMIN, &record_whose_query},
    {ROUTE_TOP, "/api/v1/secrets", READ, NULL, secret_on_list, USER, &none},
    {ROUTE_TOP, "/api/v1/secrets/:secret", READ | PUT | DELETE,
	"no such secret", secret_on_one, USER, &none},
    {ROUTE_TOP, "/api/v1/events", READ, NULL, event_streams_on_request,
	USER | ADMIN, &event_streams_query},
    {ROUTE_TOP, "/api/v1/webhooks", READ | POST, NULL, webhook_on_list, USER,
	&none},
    {ROUTE_TOP, "/api/v1/webhooks/:webhook", READ | PATCH | DELETE,
	"no such webhook", webhook_on_one, USER, &none},
    {ROUTE_TOP, "/api/v1/webhooks/:webhook/test", POST, "no such webhook",
	webhook_on_test, USER, &none},
    {ROUTE_TOP, "/api/v1/tenants/:tenant/webhooks", READ | POST,
	"no such tenant", webhook_on_list, ADMIN, &none},
    {ROUTE_TOP, "/api/v1/tenants/:tenant/webhooks/:webhook",
	READ | PATCH | DELETE, "no such webhook", webhook_on_one, ADMIN, &none},
    {ROUTE_TOP, "/api/v1/tenants/:tenant/webhooks/:webhook/test", POST,
	"no such webhook", webhook_on_test, ADMIN, &none},
    {ROUTE_TOP, "/api/v1/tokens", READ, NULL, admin_on_tokens, ADMIN, &none},
    {ROUTE_TOP, "/api/v1/tokens/:token", READ | DELETE, "no such token",
	admin_on_token, ADMIN, &none},
    {ROUTE_TOP, "/api/v1/backups", POST, NULL, admin_on_backup, ADMIN, &none},
    {ROUTE_TOP, "/api/v1/status", READ, NULL, front_on_status, ADMIN, &none},
    {ROUTE_TOP, "/api/v1/audit", READ, NULL, audit_on_list, ADMIN,
	&audit_list_query},
    {ROUTE_TOP, "/api/v1/audit/verify", READ, NULL, audit_on_verify, ADMIN,
	&audit_verify_query},
    {ROUTE_TOP, "/", READ, NULL, front_on_index, ALL, NULL},
};

/* In the order in which Allow has them. */
static const struct method_name {
	enum http_method method;
	const char *name;
} methods[] = {{HTTP_METHOD_GET, "GET"}, {HTTP_METHOD_HEAD, "HEAD"},
    {HTTP_METHOD_POST, "POST"}, {HTTP_METHOD_PUT, "PUT"},
    {HTTP_METHOD_PATCH, "PATCH"}, {HTTP_METHOD_DELETE, "DELETE"},
    {HTTP_METHOD_OPTIONS, "OPTIONS"}};

const char *
routes_method_name(enum http_method method)
{
	for (size_t i = 0; i < ARRAY_LEN(methods); i++)
		if (methods[i].method == method)
			return methods[i].name;
	return "other";
}

void
routes_allow(const struct route *r, char out[ROUTES_ALLOW_MAX])
{
	unsigned int allowed = r->methods | HTTP_METHOD_OPTIONS;

	if (r->place == ROUTE_MCP)
		allowed &= ~(unsigned int)HTTP_METHOD_GET;
	out[0] = '\0';
	for (size_t i = 0; i < ARRAY_LEN(methods); i++)
		if ((allowed & (unsigned int)methods[i].method) != 0) {
			(void)strcat(out, out[0] == '\0' ? "" : ", ");
			(void)strcat(out, methods[i].name);
		}
}

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
