/* mcp_int.h - the structures that the files of mcp/ share */
#ifndef MCP_MCP_INT_H
#define MCP_MCP_INT_H

#include <sys/queue.h>

#include "common/hashmap.h"
#include "supervisor/mcp/mcp.h"
#include "supervisor/mcp/offer.h"
#include "supervisor/mcp/registry.h"
#include "supervisor/mcp/session.h"

struct duplexes;
struct listeners;
struct mcp_provider;
struct prompts;
struct question_book;
struct mcp_task_ops;
TAILQ_HEAD(exchange_list, mcp_exchange);
LIST_HEAD(stream_list, mcp_exchange);
LIST_HEAD(batch_list, mcp_batch);

struct mcp {
	const char *name, *title, *version, *instructions; /* as configured */
	size_t body_max;
	bool list_changes, is_legacy_only;
	struct session_keeper *sessions;
	struct registry *registry;
	struct prompts *prompts;
	struct duplexes *duplexes;
	struct question_book *questions; /* to clients, not answered yet */
	struct listeners *listeners;
	mcp_complete_cb on_complete; /* NULL: there is no completion */
	void *complete_arg;
	const struct mcp_resource_ops *resource_ops; /* NULL: none */
	void *resource_arg;
	json_t *templates;      /* an array, or NULL */
	struct hashmap calls;   /* in flight: mcp_call.c, as the next */
	struct hashmap callers; /* who has any */
	const struct mcp_provider *const *providers;
	size_t nproviders;
	const struct mcp_task_ops *task_ops; /* NULL: no tasks */
	void *task_arg;
	struct exchange_list exchanges; /* not answered yet, oldest first */
	struct stream_list streams;     /* of them, with an event stream */
	/* While mcp_tick walks them: who comes next, if it does not end */
	struct mcp_exchange *next_exchange, *next_stream;
	struct batch_list batches; /* not answered yet */
	uint32_t heartbeat_ms;
};

#endif
