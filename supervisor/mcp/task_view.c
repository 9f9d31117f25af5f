#include "supervisor/mcp/task_view.h"

#include "common/clock.h"
#include "common/js.h"
#include "supervisor/mcp/content.h"

#define SAY_MEMBER "io.modelcontextprotocol/model-immediate-response"

enum task_form
task_form_of(const struct era_revision *rev)
{
	if (era_has(rev, ERA_STATELESS))
		return TASK_IN_EXTENSION;
	return era_has(rev, ERA_EXECUTION) ? TASK_IN_CORE : TASK_IN_NO_FORM;
}

bool
task_has_ended(const struct mcp_task *task)
{
	return task->status == MCP_TASK_COMPLETED ||
	    task->status == MCP_TASK_FAILED ||
	    task->status == MCP_TASK_CANCELLED;
}

static bool
is_error_result(const struct mcp_task_end *end)
{
	return end != NULL && end->error_code == 0 &&
	    end->outcome == MCP_TOOL_FAILED;
}

/* A failed task without a JSON-RPC error is one of a tool that failed. */
static enum mcp_task_status
status_in(enum task_form form, const struct mcp_task *task,
    const struct mcp_task_end *end)
{
	if (form == TASK_IN_CORE && task->status == MCP_TASK_COMPLETED &&
	    is_error_result(end))
		return MCP_TASK_FAILED;
	if (form == TASK_IN_EXTENSION && task->status == MCP_TASK_FAILED &&
	    (end == NULL || end->error_code == 0))
		return MCP_TASK_COMPLETED;
	return task->status;
}

static json_t *
time_text(int64_t wall_ms)
{
	char text[CLOCK_TEXT_MAX];

	clock_format(wall_ms, text);
	return json_string(text);
}

/* The members that all answers have, into o. */
static void
put_task(json_t *o, enum task_form form, const struct mcp_task *task,
    const struct mcp_task_end *end)
{
	static const char *const words[] = {
	    [MCP_TASK_WORKING] = "working",
	    [MCP_TASK_INPUT_REQUIRED] = "input_required",
	    [MCP_TASK_COMPLETED] = "completed",
	    [MCP_TASK_FAILED] = "failed",
	    [MCP_TASK_CANCELLED] = "cancelled",
	};
	bool core = form == TASK_IN_CORE;

	json_object_set_new(o, "taskId", json_string(task->id));
	json_object_set_new(
	    o, "status", json_string(words[status_in(form, task, end)]));
	if (task->message != NULL)
		json_object_set_new(o, "statusMessage",
		    js_string_bytes(
			task->message, strlen(task->message), NULL));
	json_object_set_new(o, "createdAt", time_text(task->created_ms));
	json_object_set_new(o, "lastUpdatedAt", time_text(task->updated_ms));
	json_object_set_new(o, core ? "ttl" : "ttlMs",
	    task->ttl_ms == MCP_TASK_NO_TTL ? json_null() :
					      json_integer(task->ttl_ms));
	if (task->poll_ms != 0)
		json_object_set_new(o, core ? "pollInterval" : "pollIntervalMs",
		    json_integer(task->poll_ms));
}

json_t *
task_view_created(const struct era_revision *rev, const struct mcp_task *task,
    const char *say)
{
	json_t *o = json_object(), *inner;

	if (task_form_of(rev) == TASK_IN_EXTENSION) {
		json_object_set_new(o, "resultType", json_string("task"));
		put_task(o, TASK_IN_EXTENSION, task, NULL);
		return o;
	}
	inner = json_object();
	put_task(inner, TASK_IN_CORE, task, NULL);
	json_object_set_new(o, "task", inner);
	if (say != NULL)
		json_object_set_new(o, "_meta",
		    json_pack("{s:o}", SAY_MEMBER,
			js_string_bytes(say, strlen(say), NULL)));
	return o;
}

/* A whole result of its revision, as the tool's call would have been answered:
 * the official package for tasks refuses one that does not say what it is. */
static json_t *
whole_result(const struct era_revision *rev, const struct mcp_task_end *end)
{
	json_t *result = content_tool_json(rev, end->content, end->outcome);

	json_object_set_new(result, "resultType", json_string("complete"));
	return result;
}

/* What the extension's task has beside the others' members. */
static void
put_end(json_t *o, const struct era_revision *rev, const struct mcp_task *task,
    const struct mcp_task_end *end)
{
	if (task->status == MCP_TASK_INPUT_REQUIRED)
		json_object_set(o, "inputRequests", end->questions);
	else if (task->status == MCP_TASK_FAILED && end->error_code != 0)
		json_object_set_new(o, "error",
		    json_pack("{s:i, s:o}", "code", end->error_code, "message",
			js_string_bytes(end->error, strlen(end->error), NULL)));
	else if ((task->status == MCP_TASK_COMPLETED ||
		     task->status == MCP_TASK_FAILED) &&
	    end->content != NULL)
		json_object_set_new(o, "result", whole_result(rev, end));
}

json_t *
task_view_state(const struct era_revision *rev, const struct mcp_task *task,
    const struct mcp_task_end *end)
{
	enum task_form form = task_form_of(rev);
	json_t *o = json_object();

	if (form == TASK_IN_EXTENSION)
		json_object_set_new(o, "resultType", json_string("complete"));
	put_task(o, form, task, end);
	if (form == TASK_IN_EXTENSION && end != NULL)
		put_end(o, rev, task, end);
	return o;
}

json_t *
task_view_list(const struct mcp_task *tasks, size_t n, const char *next_cursor)
{
	json_t *list = json_array();

	for (size_t i = 0; i < n; i++) {
		json_t *o = json_object();

		put_task(o, TASK_IN_CORE, &tasks[i], NULL);
		json_array_append_new(list, o);
	}
	return json_pack(
	    "{s:o, s:s*}", "tasks", list, "nextCursor", next_cursor);
}

json_t *
task_view_related(const char *id)
{
	return json_pack("{s:s}", "taskId", id);
}
