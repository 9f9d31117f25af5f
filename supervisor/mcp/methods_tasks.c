/*
 * methods_tasks.c - tasks/get and its kin, and a task as a tool's answer
 *
 * Of MCP 2025-11-25: the client asks with params.task; get, result, list and
 * cancel.  Of 2026-07-28: the client declares the extension in each request,
 * the tool decides; get, update and cancel.  Which task is whose is the
 * offer's to know (offer.h); here are the forms, and what is refused before.
 */
#include "supervisor/mcp/methods_tasks.h"

#include "common/js.h"
#include "common/log.h"
#include "common/xmalloc.h"
#include "supervisor/mcp/can.h"
#include "supervisor/mcp/content.h"
#include "supervisor/mcp/offer.h"
#include "supervisor/mcp/task_view.h"

#define CORE_REVISION 20251125
#define EXTENSION_REVISION 20260728
#define ID_MAX 256     /* bytes; a longer one is unknown */
#define CURSOR_MAX 512 /* bytes */
#define TTL_WISH_MAX 1e15

static bool
is_offered(const struct mcp *m)
{
	return m->task_ops != NULL;
}

void
mcp_set_tasks(struct mcp *m, const struct mcp_task_ops *ops, void *arg)
{
	m->task_ops = ops;
	m->task_arg = arg;
}

static void
announce(
    const struct mcp *m, const struct era_revision *rev, json_t *capabilities)
{
	enum task_form form = task_form_of(rev);
	json_t *extensions;

	(void)m;
	if (form == TASK_IN_NO_FORM)
		return;
	if (form == TASK_IN_CORE) {
		json_object_set_new(capabilities, "tasks",
		    json_pack("{s:{}, s:{}, s:{s:{s:{}}}}", "list", "cancel",
			"requests", "tools", "call"));
		return;
	}
	extensions = json_object_get(capabilities, "extensions");
	if (extensions == NULL) {
		extensions = json_object();
		json_object_set_new(capabilities, "extensions", extensions);
	}
	json_object_set_new(extensions, TASK_EXTENSION, json_object());
}

/* ---- what a client says of them */

static bool
is_declared(const struct mcp_context *c)
{
	return (c->client_can & can_bit(MCP_CAN_TASKS)) != 0;
}

void
tasks_need_extension(struct mcp_request *r)
{
	AUTO(auto_json)
	json_t *data = json_pack(
	    "{s:o}", "requiredCapabilities", can_required(MCP_CAN_TASKS));

	request_refuse_with(r, 400, MCP_CAPABILITY_MISSING,
	    "this needs tasks: declare the extension "
	    "io.modelcontextprotocol/tasks in the capabilities of the request",
	    data);
}

static bool
admit_extension(struct mcp_request *r, const struct mcp_context *c,
    const struct registry_tool *tool, struct call_task *out)
{
	bool declared = is_declared(c);

	out->may = declared && tool->tasks != REGISTRY_TASKS_FORBIDDEN;
	if (declared || tool->tasks != REGISTRY_TASKS_REQUIRED)
		return true;
	tasks_need_extension(r);
	return false;
}

/* params.task; null: some clients write all members. */
static bool
read_wish(const json_t *task, struct call_task *out)
{
	const json_t *ttl = json_object_get(task, "ttl");
	double ms = json_number_value(ttl);

	if (!json_is_object(task))
		return false;
	if (ttl == NULL || json_is_null(ttl))
		return true;
	if (!json_is_number(ttl) || !(ms >= 0))
		return false;
	out->ttl_ms = (int64_t)(ms < TTL_WISH_MAX ? ms : TTL_WISH_MAX);
	return true;
}

static bool
admit_core(struct mcp_request *r, const struct mcp_context *c,
    const struct registry_tool *tool, struct call_task *out)
{
	const json_t *task = json_object_get(c->message->params, "task");
	AUTO(auto_free) char *text = NULL;
	bool asked = task != NULL && !json_is_null(task);

	if (asked && tool->tasks == REGISTRY_TASKS_FORBIDDEN) {
		text = xasprintf("%s cannot run as a task; call it without "
				 "params.task",
		    tool->name);
		request_error(r, MCP_METHOD_NOT_FOUND, text, NULL);
		return false;
	}
	if (!asked && tool->tasks == REGISTRY_TASKS_REQUIRED) {
		text = xasprintf(
		    "%s runs as a task alone; call it with params.task",
		    tool->name);
		request_error(r, MCP_METHOD_NOT_FOUND, text, NULL);
		return false;
	}
	if (asked && !read_wish(task, out)) {
		request_error(r, MCP_INVALID_PARAMS,
		    "params.task must be an object, its ttl milliseconds",
		    NULL);
		return false;
	}
	out->may = out->asked = asked;
	return true;
}

bool
tasks_admit(struct mcp_request *r, const struct mcp_context *c,
    const struct registry_tool *tool, struct call_task *out)
{
	enum task_form form = task_form_of(c->rev);

	*out = (struct call_task){.ttl_ms = MCP_TASK_NO_TTL};
	if (!is_offered(c->m) || form == TASK_IN_NO_FORM)
		return true;
	return form == TASK_IN_CORE ? admit_core(r, c, tool, out) :
				      admit_extension(r, c, tool, out);
}

bool
mcp_call_may_task(const struct mcp_call *c, bool *asked, int64_t *ttl_ms)
{
	const struct call_task *t = mcp_call_task_of(c);

	*asked = t->asked;
	*ttl_ms = t->ttl_ms;
	return t->may;
}

/* ---- answers */

void
mcp_call_task(struct mcp_call *c, const struct mcp_task *task, const char *say)
{
	if (mcp_call_task_of(c)->may) {
		mcp_call_answer(
		    c, task_view_created(mcp_call_rev(c), task, say));
		return;
	}
	log_error("a task for who may have none");
	mcp_call_error(c, MCP_INTERNAL_ERROR, "internal error", NULL);
}

/* Cancelled at once, whatever the work still comes to; of one that has ended
 * there is nothing to cancel (MCP 2025-11-25, tasks, cancellation). */
static void
answer_cancel(struct mcp_call *c, const struct mcp_task *task,
    const struct mcp_task_end *end)
{
	struct mcp_task then = *task;

	if (task_has_ended(task)) {
		mcp_call_error(c, MCP_INVALID_PARAMS,
		    "the task has ended; there is nothing to cancel", NULL);
		return;
	}
	then.status = MCP_TASK_CANCELLED;
	mcp_call_answer(c, task_view_state(mcp_call_rev(c), &then, end));
}

void
mcp_call_task_state(struct mcp_call *c, const struct mcp_task *task,
    const struct mcp_task_end *end)
{
	enum call_task_way way = mcp_call_task_of(c)->way;
	const struct era_revision *rev = mcp_call_rev(c);

	if (way == CALL_TASK_TAKEN ||
	    (way == CALL_TASK_CANCEL && task_form_of(rev) == TASK_IN_EXTENSION))
		mcp_call_answer(
		    c, json_pack("{s:s}", "resultType", "complete"));
	else if (way == CALL_TASK_CANCEL)
		answer_cancel(c, task, end);
	else
		mcp_call_answer(c, task_view_state(rev, task, end));
	if (end != NULL) {
		mcp_content_free(end->content);
		json_decref(end->questions);
	}
}

bool
mcp_call_shows_end(const struct mcp_call *c)
{
	return mcp_call_task_of(c)->way == CALL_TASK_GET &&
	    task_form_of(mcp_call_rev(c)) == TASK_IN_EXTENSION;
}

void
mcp_call_task_list(struct mcp_call *c, const struct mcp_task *tasks, size_t n,
    const char *next_cursor)
{
	mcp_call_answer(c, task_view_list(tasks, n, next_cursor));
}

void
mcp_call_no_task(struct mcp_call *c, const char *id)
{
	AUTO(auto_free)
	char *text = xasprintf(
	    "Task not found: %.80s; it never was, or its ttl is over", id);

	mcp_call_error(c, MCP_INVALID_PARAMS, text, NULL);
}

/* ---- methods */

struct task_work {
	const struct mcp *m;
	enum call_task_way way;
	const char *text; /* id or cursor */
	const json_t *answers;
};

/* Where no task ever asks, all answers are ignored. */
static void
update(struct mcp_call *c, const struct task_work *w)
{
	const struct mcp_task_ops *ops = w->m->task_ops;

	if (ops->update != NULL)
		ops->update(c, w->text, w->answers, w->m->task_arg);
	else
		ops->get(c, w->text, w->m->task_arg);
}

static void
run_ops(struct mcp_call *c, void *arg)
{
	const struct task_work *w = arg;
	const struct mcp_task_ops *ops = w->m->task_ops;
	struct call_task task = {.way = w->way};

	if (w->way == CALL_TASK_RESULT)
		task.id = xstrdup(w->text);
	mcp_call_set_task(c, &task);
	switch (w->way) {
	case CALL_TASK_LIST:
		ops->list(c, w->text, w->m->task_arg);
		break;
	case CALL_TASK_RESULT:
		ops->result(c, w->text, w->m->task_arg);
		break;
	case CALL_TASK_CANCEL:
		ops->cancel(c, w->text, w->m->task_arg);
		break;
	case CALL_TASK_TAKEN:
		update(c, w);
		break;
	case CALL_TASK_GET:
	case CALL_TASK_NONE:
	default:
		ops->get(c, w->text, w->m->task_arg);
		break;
	}
}

static void
bad_params(struct mcp_request *r, const char *message)
{
	request_error(r, MCP_INVALID_PARAMS, message, NULL);
}

/* A text of params without NUL, at most max bytes; NULL: it is none. */
static const char *
param_text(const struct mcp_context *c, const char *name, size_t max)
{
	const json_t *v = json_object_get(c->message->params, name);
	const char *s = json_string_value(v);

	return s == NULL || json_string_length(v) > max ||
		strlen(s) != json_string_length(v) ?
	    NULL :
	    s;
}

static bool
may_ask(struct mcp_request *r, const struct mcp_context *c)
{
	if (task_form_of(c->rev) == TASK_IN_CORE || is_declared(c))
		return true;
	tasks_need_extension(r);
	return false;
}

static void
start(struct mcp_request *r, const struct mcp_context *c,
    enum call_task_way way, const json_t *answers)
{
	struct task_work w = {.m = c->m, .way = way, .answers = answers};

	w.text = param_text(c, "taskId", ID_MAX);
	if (w.text == NULL || w.text[0] == '\0')
		bad_params(r,
		    "params.taskId must be the id of a task, as its call was "
		    "answered with it");
	else
		mcp_call_start(r, c, run_ops, &w);
}

static void
on_get(struct mcp_request *r, const struct mcp_context *c)
{
	if (may_ask(r, c))
		start(r, c, CALL_TASK_GET, NULL);
}

static void
on_result(struct mcp_request *r, const struct mcp_context *c)
{
	start(r, c, CALL_TASK_RESULT, NULL);
}

static void
on_cancel(struct mcp_request *r, const struct mcp_context *c)
{
	if (may_ask(r, c))
		start(r, c, CALL_TASK_CANCEL, NULL);
}

static void
on_update(struct mcp_request *r, const struct mcp_context *c)
{
	const json_t *answers =
	    json_object_get(c->message->params, "inputResponses");

	if (!may_ask(r, c))
		return;
	if (!json_is_object(answers))
		bad_params(r,
		    "params.inputResponses must be an object: an answer by "
		    "the key of its question");
	else
		start(r, c, CALL_TASK_TAKEN, answers);
}

static void
on_list(struct mcp_request *r, const struct mcp_context *c)
{
	const json_t *cursor = json_object_get(c->message->params, "cursor");
	struct task_work w = {.m = c->m, .way = CALL_TASK_LIST};

	w.text = param_text(c, "cursor", CURSOR_MAX);
	if (cursor != NULL && !json_is_null(cursor) && w.text == NULL)
		bad_params(
		    r, "params.cursor must be a text that tasks/list answered");
	else
		mcp_call_start(r, c, run_ops, &w);
}

static const struct mcp_method methods[] = {
    {"tasks/get", CORE_REVISION, 0, on_get},
    {"tasks/result", CORE_REVISION, CORE_REVISION, on_result},
    {"tasks/list", CORE_REVISION, CORE_REVISION, on_list},
    {"tasks/cancel", CORE_REVISION, 0, on_cancel},
    {"tasks/update", EXTENSION_REVISION, 0, on_update},
};

const struct mcp_provider methods_tasks = {
    .is_offered = is_offered,
    .announce = announce,
    .methods = methods,
    .nmethods = ARRAY_LEN(methods),
};
