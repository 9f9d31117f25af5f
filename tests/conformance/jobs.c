/*
 * jobs.c - tasks: tools whose work goes on behind their answer
 *
 *	working -> completed | failed | cancelled      by its timer, by a cancel
 *	input_required -> completed                    by the last answer
 *
 * Jobs are in memory, for one principal, and stay until the end; there are at
 * most JOBS_MAX of them.
 */
#include "tests/conformance/fixtures.h"

#include "common/clock.h"
#include "common/js.h"
#include "common/timer.h"
#include "common/uuid.h"
#include "common/xmalloc.h"

#define JOBS_MAX 1024
#define POLL_MS 200
#define TTL_MS (15 * 60 * 1000)

/* What a job is, once its time is over. */
struct job_end {
	enum mcp_task_status status;
	enum mcp_outcome outcome;
	int code; /* of a JSON-RPC error; 0: there is a text */
	const char *text;
};

/* A tasks/result that waits for the end. */
struct job_waiter {
	LIST_ENTRY(job_waiter) link;
	struct mcp_call *call;
};

struct job {
	LIST_ENTRY(job) link;
	struct jobs *jobs;
	char id[UUID_TEXT_LEN + 1];
	enum mcp_task_status status;
	int64_t created_ms, updated_ms, ttl_ms;
	struct timer *timer;
	struct job_end end;
	char *text;        /* what it says when it is over, or NULL */
	json_t *questions; /* not answered yet; or NULL */
	LIST_HEAD(, job_waiter) waiters;
};

struct jobs {
	struct fixtures *f;
	LIST_HEAD(, job) list; /* the newest first */
	size_t n;
};

/* ---- a job, told */

static bool
is_over(const struct job *j)
{
	return j->status != MCP_TASK_WORKING &&
	    j->status != MCP_TASK_INPUT_REQUIRED;
}

static struct mcp_task
task_of(const struct job *j)
{
	return (struct mcp_task){.id = j->id,
	    .status = j->status,
	    .created_ms = j->created_ms,
	    .updated_ms = j->updated_ms,
	    .ttl_ms = j->ttl_ms,
	    .poll_ms = POLL_MS};
}

static const char *
text_of(const struct job *j)
{
	return j->text != NULL ? j->text : j->end.text;
}

static struct mcp_content *
content_of(const struct job *j)
{
	struct mcp_content *content = mcp_content_new();

	mcp_content_text(content, text_of(j), strlen(text_of(j)));
	return content;
}

static void
tell_state(struct mcp_call *c, const struct job *j)
{
	const struct mcp_task task = task_of(j);
	struct mcp_task_end end = {.outcome = j->end.outcome};

	if (j->status == MCP_TASK_INPUT_REQUIRED) {
		end.questions = json_copy(j->questions);
	} else if (j->status == MCP_TASK_FAILED) {
		end.error_code = j->end.code;
		end.error = text_of(j);
	} else if (j->status == MCP_TASK_COMPLETED) {
		end.content = content_of(j);
	}
	mcp_call_task_state(c, &task, &end);
}

/* What the tool's call would have answered. */
static void
tell_result(struct mcp_call *c, const struct job *j)
{
	if (j->status == MCP_TASK_COMPLETED)
		mcp_call_result(c, content_of(j), j->end.outcome);
	else if (j->status == MCP_TASK_FAILED)
		mcp_call_error(c, j->end.code, text_of(j), NULL);
	else
		mcp_call_error(
		    c, MCP_INVALID_PARAMS, "the task was cancelled", NULL);
}

/* ---- its life */

static void
change(struct job *j, enum mcp_task_status status)
{
	struct job_waiter *w;

	j->status = status;
	j->updated_ms = clock_wall_ms();
	if (is_over(j))
		timer_stop(j->timer);
	while (is_over(j) && (w = LIST_FIRST(&j->waiters)) != NULL) {
		LIST_REMOVE(w, link);
		call_release(mcp_call_base(w->call));
		tell_result(w->call, j);
		free(w);
	}
	mcp_task_changed(j->jobs->f->mcp, FIXTURE_TENANT, j->id);
}

static void
job_cb(void *arg)
{
	struct job *j = arg;

	change(j, j->end.status);
}

static struct job *
job_new(struct jobs *jobs, const struct job_end *end)
{
	struct job *j = xcalloc(1, sizeof(*j));
	struct uuid id;

	uuid_random(&id);
	uuid_format(&id, j->id);
	j->jobs = jobs;
	j->end = *end;
	j->created_ms = j->updated_ms = clock_wall_ms();
	j->timer = timer_new(jobs->f->base, job_cb, j);
	LIST_INIT(&j->waiters);
	LIST_INSERT_HEAD(&jobs->list, j, link);
	jobs->n++;
	return j;
}

static void
job_free(struct job *j)
{
	LIST_REMOVE(j, link);
	timer_free(j->timer);
	free(j->text);
	json_decref(j->questions);
	free(j);
}

static struct job *
job_find(const struct jobs *jobs, const char *id)
{
	struct job *j;

	LIST_FOREACH (j, &jobs->list, link)
		if (strcmp(j->id, id) == 0)
			return j;
	return NULL;
}

/* The answer of a tool: a job that is over in ms milliseconds, or, when there
 * are questions, with their answers.  say and questions are taken over. */
static void
answer_job(struct fixtures *f, struct mcp_call *c, const struct job_end *end,
    unsigned int ms, char *say, json_t *questions)
{
	struct mcp_task task;
	struct job *j;
	bool asked;

	if (f->jobs->n == JOBS_MAX) {
		free(say);
		json_decref(questions);
		fixture_fail(c, "there are too many tasks");
		return;
	}
	j = job_new(f->jobs, end);
	j->text = say;
	j->questions = questions;
	(void)mcp_call_may_task(c, &asked, &j->ttl_ms);
	if (j->ttl_ms == MCP_TASK_NO_TTL || j->ttl_ms > TTL_MS)
		j->ttl_ms = TTL_MS;
	if (questions != NULL)
		j->status = MCP_TASK_INPUT_REQUIRED;
	else
		timer_set_ms(j->timer, ms);
	task = task_of(j);
	mcp_call_task(c, &task, NULL);
}

/* ---- what is asked of jobs */

static void
on_get(struct mcp_call *c, const char *id, void *arg)
{
	const struct job *j = job_find(arg, id);

	if (j == NULL)
		mcp_call_no_task(c, id);
	else
		tell_state(c, j);
}

static void
waiter_on_cancel(struct call *call, void *arg)
{
	struct job_waiter *w = arg;
	struct mcp_call *c = w->call;

	call_release(call);
	LIST_REMOVE(w, link);
	free(w);
	fixture_fail(c, "cancelled");
}

static void
on_result(struct mcp_call *c, const char *id, void *arg)
{
	struct job *j = job_find(arg, id);
	struct job_waiter *w;

	if (j == NULL) {
		mcp_call_no_task(c, id);
		return;
	}
	if (is_over(j)) {
		tell_result(c, j);
		return;
	}
	w = xcalloc(1, sizeof(*w));
	w->call = c;
	LIST_INSERT_HEAD(&j->waiters, w, link);
	call_hold(mcp_call_base(c), waiter_on_cancel, w);
}

static void
on_cancel(struct mcp_call *c, const char *id, void *arg)
{
	struct job *j = job_find(arg, id);

	if (j != NULL && !is_over(j))
		change(j, MCP_TASK_CANCELLED);
	on_get(c, id, arg);
}

/* Answers to questions that are not there any more are left alone. */
static void
on_update(struct mcp_call *c, const char *id, const json_t *answers, void *arg)
{
	struct job *j = job_find(arg, id);
	const json_t *answer;
	const char *key;
	void *next;

	if (j != NULL && j->status == MCP_TASK_INPUT_REQUIRED) {
		json_object_foreach_safe (j->questions, next, key, answer)
			if (json_object_get(answers, key) != NULL)
				(void)json_object_del(j->questions, key);
		if (json_object_size(j->questions) == 0)
			change(j, j->end.status);
	}
	on_get(c, id, arg);
}

/* All on one page. */
static void
on_list(struct mcp_call *c, const char *cursor, void *arg)
{
	const struct jobs *jobs = arg;
	struct mcp_task tasks[JOBS_MAX];
	const struct job *j;
	size_t n = 0;

	if (cursor != NULL) {
		mcp_call_error(
		    c, MCP_INVALID_PARAMS, "this cursor is none of ours", NULL);
		return;
	}
	LIST_FOREACH (j, &jobs->list, link)
		tasks[n++] = task_of(j);
	mcp_call_task_list(c, tasks, n, NULL);
}

static const struct mcp_task_ops ops = {
    .get = on_get,
    .result = on_result,
    .cancel = on_cancel,
    .update = on_update,
    .list = on_list,
};

/* ---- tools */

static const struct job_end done = {
    .status = MCP_TASK_COMPLETED, .text = "done"};
static const struct job_end failed = {.status = MCP_TASK_COMPLETED,
    .outcome = MCP_TOOL_FAILED,
    .text = "the job failed, as it always does"};
static const struct job_end broken = {.status = MCP_TASK_FAILED,
    .code = MCP_INTERNAL_ERROR,
    .text = "the job broke, as it always does"};

/* true: a task may stand for its result; else the call is answered. */
static bool
may_begin(struct mcp_call *c)
{
	bool asked;
	int64_t ttl_ms;

	if (mcp_call_may_task(c, &asked, &ttl_ms))
		return true;
	mcp_call_need(c, MCP_CAN_TASKS);
	return false;
}

static void
on_greet(struct mcp_call *c, json_t *arguments, void *arg)
{
	AUTO(auto_free)
	char *text = xasprintf("Hello, %s!", js_text(arguments, "name"));

	(void)arg;
	fixture_say(c, text);
}

static void
computed(struct fixtures *f, struct mcp_call *c, unsigned int step)
{
	(void)f;
	(void)step;
	fixture_say(c, "computed");
}

static void
on_compute(struct mcp_call *c, json_t *arguments, void *arg)
{
	json_int_t s =
	    json_integer_value(json_object_get(arguments, "seconds"));
	unsigned int ms = (unsigned int)s * 1000;
	int64_t ttl_ms;
	bool asked;

	if (ms == 0)
		computed(arg, c, 0);
	else if (mcp_call_may_task(c, &asked, &ttl_ms))
		answer_job(arg, c, &done, ms,
		    xasprintf("computed %s", js_text(arguments, "label")),
		    NULL);
	else
		fixture_wait(arg, c, ms, computed, 0);
}

static void
on_failing(struct mcp_call *c, json_t *arguments, void *arg)
{
	(void)arguments;
	if (may_begin(c))
		answer_job(arg, c, &failed, 1000, NULL, NULL);
}

static void
on_breaking(struct mcp_call *c, json_t *arguments, void *arg)
{
	(void)arguments;
	if (may_begin(c))
		answer_job(arg, c, &broken, 300, NULL, NULL);
}

static json_t *
question(const char *message)
{
	return json_pack("{s:s, s:{s:s, s:{s:s, s:{s:{s:s}}}}}", "method",
	    "elicitation/create", "params", "message", message,
	    "requestedSchema", "type", "object", "properties", "confirm",
	    "type", "boolean");
}

static void
on_delete(struct mcp_call *c, json_t *arguments, void *arg)
{
	AUTO(auto_free)
	char *message = xasprintf("Delete %s?", js_text(arguments, "filename"));

	if (may_begin(c))
		answer_job(arg, c, &done, 0, NULL,
		    json_pack("{s:o}", "confirm", question(message)));
}

static void
on_two_questions(struct mcp_call *c, json_t *arguments, void *arg)
{
	(void)arguments;
	if (may_begin(c))
		answer_job(arg, c, &done, 0, NULL,
		    json_pack("{s:o, s:o}", "first", question("The first?"),
			"second", question("The second?")));
}

/* Asks for a name before there is a task, which then says it. */
static void
on_name_and_task(struct mcp_call *c, json_t *arguments, void *arg)
{
	const json_t *answer =
	    json_object_get(mcp_call_answers(c), "user_name");
	const char *name = json_string_value(
	    json_object_get(json_object_get(answer, "content"), "name"));

	(void)arguments;
	if (!may_begin(c))
		return;
	if (name != NULL)
		answer_job(
		    arg, c, &done, 300, xasprintf("Hello, %s!", name), NULL);
	else if (!mcp_call_can(c, MCP_CAN_ELICIT))
		mcp_call_need(c, MCP_CAN_ELICIT);
	else
		mcp_call_ask(c,
		    fixture_json(
			"{\"user_name\": {\"method\": \"elicitation/create\","
			"\"params\": {\"message\": \"What is your name?\","
			"\"requestedSchema\": {\"type\": \"object\","
			"\"required\": [\"name\"], \"properties\":"
			"{\"name\": {\"type\": \"string\"}}}}}}"),
		    NULL);
}

static const char compute_schema[] =
    "{\"type\": \"object\", \"required\": [\"seconds\"], \"properties\": {"
    "\"seconds\": {\"type\": \"integer\", \"minimum\": 0,"
    "  \"maximum\": 3600}, \"label\": {\"type\": \"string\"}}}";

#define ONE_STRING(name)                                                       \
	"{\"type\": \"object\", \"required\": [\"" name "\"],"                 \
	" \"properties\": {\"" name "\": {\"type\": \"string\"}}}"

static const struct fixture_tool tools[] = {
    {"greet", "Greets", ONE_STRING("name"), NULL, on_greet},
    {"slow_compute", "Computes for some seconds", compute_schema, "optional",
	on_compute},
    {"failing_job", "Fails after a second", NULL, "required", on_failing},
    {"protocol_error_job", "Ends with a protocol error", NULL, "required",
	on_breaking},
    {"confirm_delete", "Asks once", ONE_STRING("filename"), "required",
	on_delete},
    {"multi_input", "Asks twice at once", NULL, "required", on_two_questions},
    {"test_tool_with_task", "Asks for a name, then is a task", NULL, "required",
	on_name_and_task},
};

void
job_fixtures(struct fixtures *f)
{
	f->jobs = xcalloc(1, sizeof(*f->jobs));
	f->jobs->f = f;
	LIST_INIT(&f->jobs->list);
	fixture_add_tools(f, tools, ARRAY_LEN(tools));
	mcp_set_tasks(f->mcp, &ops, f->jobs);
}

/* Calls that wait have no client any more. */
void
jobs_end(struct jobs *jobs)
{
	struct job *j;
	struct job_waiter *w;

	while ((j = LIST_FIRST(&jobs->list)) != NULL) {
		while ((w = LIST_FIRST(&j->waiters)) != NULL)
			waiter_on_cancel(mcp_call_base(w->call), w);
		job_free(j);
	}
	free(jobs);
}
