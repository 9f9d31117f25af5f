/*
 * task_view.h - tasks in the form that a revision has, as JSON
 *
 * MCP 2025-11-25 has tasks in its core: a client asks for one, and fetches its
 * result apart.  Since 2026-07-28 they are an extension: the server decides,
 * and the result stands in the task.  A tool's failure (isError) is a failed
 * task in the one and a completed one in the other.
 */
#ifndef MCP_TASK_VIEW_H
#define MCP_TASK_VIEW_H

#include <jansson.h>

#include "supervisor/mcp/era.h"
#include "supervisor/mcp/offer.h"

#define TASK_RELATED "io.modelcontextprotocol/related-task"
#define TASK_EXTENSION "io.modelcontextprotocol/tasks"

enum task_form {
	TASK_IN_NO_FORM, /* the revision has no tasks */
	TASK_IN_CORE,
	TASK_IN_EXTENSION
};
enum task_form task_form_of(const struct era_revision *rev);
bool task_has_ended(const struct mcp_task *task);

/* task_view_created - the answer to a tool's call.  say: for the model, or
 * NULL; the extension has no place for it */
json_t *task_view_created(const struct era_revision *rev,
    const struct mcp_task *task, const char *say);
/* task_view_state - the answer to tasks/get; end as mcp_call_task_state's, and
 * only read */
json_t *task_view_state(const struct era_revision *rev,
    const struct mcp_task *task, const struct mcp_task_end *end);
/* task_view_list - of the core; next_cursor NULL: it is the last page */
json_t *task_view_list(
    const struct mcp_task *tasks, size_t n, const char *next_cursor);
/* task_view_related - what a result says of the task that it is of */
json_t *task_view_related(const char *id);

#endif
