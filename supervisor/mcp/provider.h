/*
 * provider.h - who answers which methods
 *
 * A provider is a table of methods, each with the revisions it belongs to.
 * Which providers there are is a list in mcp.c; to add one is a file with its
 * table and a line in that list.
 */
#ifndef MCP_PROVIDER_H
#define MCP_PROVIDER_H

#include "supervisor/mcp/mirror.h"
#include "supervisor/mcp/request.h"
#include "supervisor/mcp/rpc.h"

/* What a method is called with; gone when it returns. */
struct mcp_context {
	struct mcp *m;
	const struct rpc_message *message; /* params: none, or an object */
	/* NULL: initialize.  In a revision without sessions it is one of this
	 * request alone, that says who asks. */
	const struct session *session;
	const struct era_revision *rev; /* NULL: initialize */
	unsigned int client_can;        /* what it declared (can.h) */
	size_t body_len;                /* of the HTTP request */
	struct principal *who;
	const char *request_id;  /* of the transport */
	const char *origin;      /* likewise; may be NULL */
	const char *server_url;  /* likewise */
	const char *traceparent; /* the transport's, or NULL */
	/* MCP 2026-07-28: messages of this level (enum mcp_level) and above,
	 * or LEVEL_NONE (level.h).  Of a session see its own. */
	int log_level;
	struct mirror_source headers; /* of the request */
};

/* Members since and until are revisions as numbers (20251125), both of them
 * in; 0: no limit. */
struct mcp_method {
	const char *name; /* whole */
	uint32_t since, until;
	/* Answers r, now or later. */
	void (*on)(struct mcp_request *r, const struct mcp_context *c);
};

/* A notification: nothing answers it. */
struct mcp_notice {
	const char *name;
	uint32_t since, until;
	void (*on)(const struct mcp_context *c);
};

struct mcp_provider {
	/* Is anything registered for it?  If not, its methods are unknown to
	 * clients.  NULL: always. */
	bool (*is_offered)(const struct mcp *m);
	/* Sets what this revision announces of it; NULL: nothing. */
	void (*announce)(const struct mcp *m, const struct era_revision *rev,
	    json_t *capabilities);
	const struct mcp_method *methods;
	size_t nmethods;
	const struct mcp_notice *notices;
	size_t nnotices;
};

extern const struct mcp_provider methods_core;
extern const struct mcp_provider methods_tools;
extern const struct mcp_provider methods_resources;
extern const struct mcp_provider methods_prompts;
extern const struct mcp_provider methods_completion;
extern const struct mcp_provider methods_tasks;
extern const struct mcp_provider methods_watch; /* methods_watch.c */
extern const struct mcp_provider methods_logging;
extern const struct mcp_provider methods_subscriptions; /* subscriptions.c */

/* provider_capabilities - what the server can, as initialize and
 * server/discover say it: a new object */
json_t *provider_capabilities(
    const struct mcp *m, const struct era_revision *rev);

/* provider_server_info - serverInfo, as this revision knows it: a new object */
json_t *provider_server_info(
    const struct mcp *m, const struct era_revision *rev);

/* provider_list_capability - of what is listed: {"listChanged": true} when
 * changes are told of, else {} */
json_t *provider_list_capability(const struct mcp *m);

/* NULL when no provider has it in this revision; rev NULL: before there is
 * one, in initialize. */
const struct mcp_method *provider_method(
    const struct mcp *m, const char *name, const struct era_revision *rev);
const struct mcp_notice *provider_notice(
    const struct mcp *m, const char *name, const struct era_revision *rev);

#endif
