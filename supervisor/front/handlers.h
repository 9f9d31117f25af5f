/*
 * handlers.h - the handler of each route (routes.c), and the parameters that
 * it knows
 */
#ifndef FRONT_HANDLERS_H
#define FRONT_HANDLERS_H

#include "supervisor/front/routes.h"

/* mcp_endpoint.c: MCP_PATH, and the two paths of HTTP+SSE */
void front_on_mcp(struct request *r);
void front_on_mcp_sse(struct request *r);
void front_on_mcp_messages(struct request *r);

/* about.c: what this server is, and how to reach it */
void front_on_index(struct request *r);
void front_on_healthz(struct request *r);
void front_on_readyz(struct request *r);
void front_on_openapi(struct request *r);
void front_on_resource_metadata(struct request *r);

/* record_route.c: one run, for clients of MCP and (record_on_*) of the API */
void front_on_run(struct request *r);
void front_on_run_cancel(struct request *r);
void record_on_run(struct request *r);
void record_on_cancel(struct request *r);
void record_on_output(struct request *r);
void record_on_artifacts(struct request *r);
void record_on_rerun(struct request *r);
extern const struct query_table record_whose_query, record_output_query,
    record_artifacts_query;

/* artifact_route.c */
void front_on_artifact(struct request *r);

/* run_events.c: of a run, for clients of MCP; event_streams.c: of a tenant, and
 * of the server (docs/events.md) */
void front_on_events(struct request *r);
void event_streams_on_request(struct request *r);
extern const struct query_table event_streams_query;

/* history_route.c: runs of a tenant in pages, what they come to, and all of
 * them as JSON lines or CSV */
void history_on_runs(struct request *r);
void history_on_stats(struct request *r);
void history_on_export(struct request *r);
extern const struct query_table history_runs_query, history_stats_query,
    export_query;

/* sandbox_route.c: those that are there and those that ended; one, how it is
 * isolated (for who administers also what is known to be wrong with the host),
 * and its end, which is answered when nothing of it is left */
void sandbox_on_list(struct request *r);
void sandbox_on_one(struct request *r);
extern const struct query_table sandbox_list_query;

/* secret_route.c, webhook_route.c: the caller's own, or for who administers
 * those of the tenant in the path */
void secret_on_list(struct request *r);
void secret_on_one(struct request *r);
void webhook_on_list(struct request *r);
void webhook_on_one(struct request *r);
void webhook_on_test(struct request *r);

/* account.c: who somebody is; what its tenant has, or of an administrator all
 * or the one of ?tenant= */
void account_on_whoami(struct request *r);
void account_on_usage(struct request *r);
extern const struct query_table account_usage_query;

/* admin.c: tenants, tokens ("-" stands for no tenant), and that somebody makes
 * a backup: it is written down, and who makes it is told where artifacts are
 * and what stays free */
void admin_on_tenants(struct request *r);
void admin_on_tenant(struct request *r);
void admin_on_tenant_tokens(struct request *r);
void admin_on_tokens(struct request *r);
void admin_on_token(struct request *r);
void admin_on_backup(struct request *r);

/* audit_route.c: a page of rows, newest first; a piece of the chain of hashes,
 * from where the piece before ended */
void audit_on_list(struct request *r);
void audit_on_verify(struct request *r);
extern const struct query_table audit_list_query, audit_verify_query;

/* server_status.c, metrics.c */
void front_on_status(struct request *r);
void front_on_metrics(struct request *r);

#endif
