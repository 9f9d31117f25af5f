/* Tasks of both forms, over an offer that keeps one of each status. */
#include "common/js.h"
#include "supervisor/mcp/can.h"
#include "supervisor/mcp/content.h"
#include "supervisor/mcp/methods_tasks.h"
#include "supervisor/mcp/offer.h"
#include "supervisor/mcp/task_view.h"
#include "tests/unit/mcp/call_ground.h"
#include "tests/unit/quoted.h"

/* ---- an offer of tasks: "w" works, "c" completed, "e" is a tool's failure,
 * "f" failed with an error, "x" was cancelled, "q" asks */

static int fake_told; /* calls of the offer */
static char fake_text[64];

static enum mcp_task_status
status_of(char c)
{
	return c == 'w' ? MCP_TASK_WORKING :
	    c == 'q'    ? MCP_TASK_INPUT_REQUIRED :
	    c == 'c'    ? MCP_TASK_COMPLETED :
	    c == 'x'    ? MCP_TASK_CANCELLED :
			  MCP_TASK_FAILED;
}

static struct mcp_task
task_of(const char *id)
{
	return (struct mcp_task){.id = id,
	    .status = status_of(id[0]),
	    .message = id[0] == 'w' ? "at it" : NULL,
	    .created_ms = 1000,
	    .updated_ms = 2500,
	    .ttl_ms = id[0] == 'w' ? 60000 : MCP_TASK_NO_TTL,
	    .poll_ms = id[0] == 'w' ? 500 : 0};
}

static struct mcp_content *
content_of(const char *text)
{
	struct mcp_content *content = mcp_content_new();

	mcp_content_text(content, text, strlen(text));
	return content;
}

static struct mcp_task_end
end_of(const char *id)
{
	struct mcp_task_end end = {.content = NULL};

	if (id[0] == 'c' || id[0] == 'e')
		end.content = content_of(id);
	if (id[0] == 'e')
		end.outcome = MCP_TOOL_FAILED;
	if (id[0] == 'f') {
		end.error_code = -32603;
		end.error = "broken";
	}
	if (id[0] == 'q')
		end.questions =
		    json_pack("{s:{s:s}}", "name", "method", "roots/list");
	return end;
}

static bool
is_known(const char *id)
{
	return strlen(id) == 1 && strchr("wcefxq", id[0]) != NULL;
}

static void
fake_state(struct mcp_call *c, const char *id)
{
	struct mcp_task task = task_of(id);
	struct mcp_task_end end = end_of(id);

	fake_told++;
	if (is_known(id))
		mcp_call_task_state(c, &task, &end);
	else
		mcp_call_no_task(c, id);
	if (!is_known(id)) {
		mcp_content_free(end.content);
		json_decref(end.questions);
	}
}

static void
fake_get_cb(struct mcp_call *c, const char *id, void *arg)
{
	assert_ptr_equal(arg, fake_text);
	fake_state(c, id);
}

static void
fake_result_cb(struct mcp_call *c, const char *id, void *arg)
{
	(void)arg;
	fake_told++;
	if (!is_known(id))
		mcp_call_no_task(c, id);
	else if (id[0] == 'w')
		fake_held[fake_nheld++] = c;
	else if (id[0] == 'f')
		mcp_call_error(c, -32603, "broken", NULL);
	else
		mcp_call_result(c, content_of(id),
		    id[0] == 'e' ? MCP_TOOL_FAILED : MCP_TOOL_DONE);
}

static void
fake_update_cb(
    struct mcp_call *c, const char *id, const json_t *answers, void *arg)
{
	(void)arg;
	(void)snprintf(
	    fake_text, sizeof(fake_text), "%s", js_text(answers, "name"));
	fake_state(c, id);
}

static void
fake_list_cb(struct mcp_call *c, const char *cursor, void *arg)
{
	struct mcp_task tasks[2] = {task_of("w"), task_of("e")};

	(void)arg;
	fake_told++;
	if (cursor != NULL && strcmp(cursor, "next") != 0)
		mcp_call_error(c, MCP_INVALID_PARAMS, "bad cursor", NULL);
	else
		mcp_call_task_list(c, tasks, cursor == NULL ? 2 : 0,
		    cursor == NULL ? "next" : NULL);
}

static const struct mcp_task_ops task_ops = {.get = fake_get_cb,
    .result = fake_result_cb,
    .cancel = fake_get_cb,
    .update = fake_update_cb,
    .list = fake_list_cb};

/* ---- tools that may have them */

static bool tool_asked;
static int64_t tool_ttl;

/* ends without a task when its argument says so */
static void
task_tool_cb(struct mcp_call *c, json_t *arguments, void *arg)
{
	struct mcp_task task = task_of("w");

	(void)arg;
	if (strcmp(js_text(arguments, "fail"), "no") == 0)
		fake_done(c, "nothing to do", NULL);
	else if (json_object_get(arguments, "fail") != NULL)
		fake_fail(c, "no room");
	else if (mcp_call_may_task(c, &tool_asked, &tool_ttl))
		mcp_call_task(c, &task, "come back");
	else
		fake_done(c, "at once", NULL);
}

#define TOOL(name, support)                                                    \
	"{\"name\":\"" name "\",\"description\":\"d\",\"inputSchema\":"        \
	"{\"type\":\"object\",\"properties\":{\"fail\":{\"type\":\"string\"}}" \
	"},\"execution\":{\"taskSupport\":\"" support "\"}}"

static int
setup_tasks(void **state)
{
	struct ground *g;
	int rc = setup(state);

	g = *state;
	mcp_set_tasks(g->m, &task_ops, fake_text);
	fake_add(g->m, TOOL("can", "optional"), task_tool_cb);
	fake_add(g->m, TOOL("must", "required"), task_tool_cb);
	fake_add(g->m, TOOL("never", "forbidden"), task_tool_cb);
	fake_told = 0;
	return rc;
}

/* The answer to a method, ' for "; its code, 0 for a result. */
static json_t *
ask(struct ground *g, const char *method, const char *params, int code)
{
	AUTO(auto_free)
	char *text = xasprintf("{'jsonrpc':'2.0','id':1,'method':'%s',"
			       "'params':%s}",
	    method, params);
	AUTO(auto_free) char *body = quoted(text);
	struct fake_answer a;

	fake_post(g->m, &g->client, body, &a);
	fake_expect(&a, 200, code);
	fake_clear(&a);
	return json_object_get(fake_seen, code == 0 ? "result" : "error");
}

static void
expect_json(const json_t *j, const char *want)
{
	AUTO(auto_free) char *text = quoted(want);
	json_t *wanted = json_loads(text, 0, NULL);
	char *got = json_dumps(j, JSON_COMPACT);

	assert_non_null(wanted);
	if (!json_equal(wanted, j))
		fail_msg("got %s, want %s", got, text);
	free(got);
	json_decref(wanted);
}

#define TIMES                                                                  \
	"'createdAt':'1970-01-01T00:00:01.000Z',"                              \
	"'lastUpdatedAt':'1970-01-01T00:00:02.500Z'"
#define WORKING(status)                                                        \
	"'taskId':'w','status':'" status "','statusMessage':'at it'," TIMES
#define CORE_WORKING(status)                                                   \
	"{" WORKING(status) ",'ttl':60000,'pollInterval':500}"

/* ---- 2025-11-25 */

static json_t *
capability(struct ground *g, const char *init)
{
	struct fake_client c = fake_client(NULL);
	struct fake_answer a;

	fake_post(g->m, &c, init, &a);
	fake_expect(&a, 200, 0);
	fake_clear(&a);
	return json_object_get(
	    json_object_get(
		json_object_get(fake_seen, "result"), "capabilities"),
	    "tasks");
}

TEST(tasks_are_announced_where_the_revision_has_them)
{
	struct ground *g = *state;

	expect_json(capability(g, FAKE_INITIALIZE("2025-11-25")),
	    "{'list':{},'cancel':{},'requests':{'tools':{'call':{}}}}");
	assert_null(capability(g, FAKE_INITIALIZE("2025-06-18")));
	mcp_set_tasks(g->m, NULL, NULL);
	assert_null(capability(g, FAKE_INITIALIZE("2025-11-25")));
	ask(g, "tasks/get", "{'taskId':'w'}", MCP_METHOD_NOT_FOUND);
}

TEST(the_extension_is_announced_beside_others)
{
	struct ground *g = *state;
	json_t *all =
	    provider_capabilities(g->m, &era_table[ERA_REVISIONS - 1]);

	expect_json(json_object_get(all, "extensions"),
	    "{'io.modelcontextprotocol/tasks':{}}");
	assert_null(json_object_get(all, "tasks"));
	json_object_clear(all);
	json_object_set_new(
	    all, "extensions", json_pack("{s:{}}", "org.example/x"));
	methods_tasks.announce(g->m, &era_table[ERA_REVISIONS - 1], all);
	expect_json(all,
	    "{'extensions':{'org.example/x':{},"
	    "'io.modelcontextprotocol/tasks':{}}}");
	json_decref(all);
}

TEST(who_asks_for_a_task_gets_one)
{
	struct ground *g = *state;

	expect_json(ask(g, "tools/call", "{'name':'can','task':{}}", 0),
	    "{'task':" CORE_WORKING(
		"working") ",'_meta':{'io.modelcontextprotocol/"
			   "model-immediate-response':'come back'}}");
	assert_true(tool_asked);
	assert_int_equal(tool_ttl, MCP_TASK_NO_TTL);
	ask(g, "tools/call", "{'name':'must','task':{'ttl':1500}}", 0);
	assert_int_equal(tool_ttl, 1500);
}

TEST(a_wish_that_is_none_is_refused)
{
	static const char *const tasks[] = {
	    "1", "[]", "'x'", "{'ttl':-1}", "{'ttl':'1'}", "{'ttl':{}}"};
	struct ground *g = *state;

	for (size_t i = 0; i < ARRAY_LEN(tasks); i++) {
		AUTO(auto_free)
		char *params = xasprintf("{'name':'can','task':%s}", tasks[i]);

		ask(g, "tools/call", params, MCP_INVALID_PARAMS);
	}
	ask(g, "tools/call", "{'name':'can','task':{'ttl':1e300}}", 0);
	assert_true(tool_ttl > 0);
	ask(g, "tools/call", "{'name':'can','task':{'ttl':null}}", 0);
	assert_int_equal(tool_ttl, MCP_TASK_NO_TTL);
}

TEST(a_tool_says_whether_it_can)
{
	struct ground *g = *state;

	ask(g, "tools/call", "{'name':'never','task':{}}",
	    MCP_METHOD_NOT_FOUND);
	ask(g, "tools/call", "{'name':'echo','task':{}}", MCP_METHOD_NOT_FOUND);
	ask(g, "tools/call", "{'name':'must'}", MCP_METHOD_NOT_FOUND);
	ask(g, "tools/call", "{'name':'can'}", 0);
	fake_expect_has(
	    js_text(json_array_get(
			json_object_get(
			    json_object_get(fake_seen, "result"), "content"),
			0),
		"text"),
	    "at once");
	ask(g, "tools/call", "{'name':'can','task':null}", 0);
	assert_false(tool_asked);
}

TEST(an_answer_in_place_of_the_task_is_an_error)
{
	struct ground *g = *state;
	json_t *error;

	error = ask(g, "tools/call",
	    "{'name':'can','task':{},'arguments':{'fail':'1'}}",
	    MCP_SERVER_ERROR);
	assert_string_equal(js_text(error, "message"), "no room");
	error = ask(g, "tools/call",
	    "{'name':'can','task':{},'arguments':{'fail':'no'}}",
	    MCP_SERVER_ERROR);
	assert_string_equal(js_text(error, "message"), "nothing to do");
	error = ask(g, "tools/call",
	    "{'name':'can','task':{},'arguments':{'fail':1}}",
	    MCP_INVALID_PARAMS);
	fake_expect_has(js_text(error, "message"), "invalid_arguments: ");
	ask(g, "tools/call", "{'name':'can','arguments':{'fail':1}}", 0);
}

TEST(without_an_offer_or_a_revision_the_wish_is_ignored)
{
	struct ground *g = *state;
	char *old =
	    fake_session_of(g->m, &fake_alice, FAKE_INITIALIZE("2025-06-18"));

	g->client.session = old;
	ask(g, "tools/call", "{'name':'can','task':{}}", 0);
	ask(g, "tools/call", "{'name':'must'}", 0);
	ask(g, "tools/call", "{'name':'never','task':7}", 0);
	ask(g, "tasks/get", "{'taskId':'w'}", MCP_METHOD_NOT_FOUND);
	ask(g, "tasks/list", "{}", MCP_METHOD_NOT_FOUND);
	g->client.session = g->session;
	mcp_set_tasks(g->m, NULL, NULL);
	ask(g, "tools/call", "{'name':'can','task':{}}", 0);
	assert_int_equal(fake_told, 0);
	free(old);
}

TEST(a_task_says_how_it_stands)
{
	struct ground *g = *state;

	expect_json(
	    ask(g, "tasks/get", "{'taskId':'w'}", 0), CORE_WORKING("working"));
	expect_json(ask(g, "tasks/get", "{'taskId':'c'}", 0),
	    "{'taskId':'c','status':'completed'," TIMES ",'ttl':null}");
	expect_json(ask(g, "tasks/get", "{'taskId':'e'}", 0),
	    "{'taskId':'e','status':'failed'," TIMES ",'ttl':null}");
	expect_json(ask(g, "tasks/get", "{'taskId':'x'}", 0),
	    "{'taskId':'x','status':'cancelled'," TIMES ",'ttl':null}");
}

TEST(what_names_no_task_is_refused)
{
	struct ground *g = *state;
	AUTO(auto_free) char *long_id = xcalloc(1, 400);
	AUTO(auto_free) char *params = NULL;
	json_t *error;

	error = ask(g, "tasks/get", "{'taskId':'nobody'}", MCP_INVALID_PARAMS);
	fake_expect_has(js_text(error, "message"), "Task not found: nobody");
	ask(g, "tasks/result", "{'taskId':'nobody'}", MCP_INVALID_PARAMS);
	ask(g, "tasks/cancel", "{'taskId':'nobody'}", MCP_INVALID_PARAMS);
	assert_int_equal(fake_told, 3);
	ask(g, "tasks/get", "{}", MCP_INVALID_PARAMS);
	ask(g, "tasks/get", "{'taskId':7}", MCP_INVALID_PARAMS);
	ask(g, "tasks/get", "{'taskId':''}", MCP_INVALID_PARAMS);
	ask(g, "tasks/result", "{'taskId':'a\\u0000b'}", MCP_INVALID_PARAMS);
	memset(long_id, 'w', 399);
	params = xasprintf("{'taskId':'%s'}", long_id);
	ask(g, "tasks/cancel", params, MCP_INVALID_PARAMS);
	assert_int_equal(fake_told, 3);
}

TEST(a_result_is_the_calls_and_names_its_task)
{
	struct ground *g = *state;

	expect_json(ask(g, "tasks/result", "{'taskId':'e'}", 0),
	    "{'content':[{'type':'text','text':'e'}],'isError':true,"
	    "'_meta':{'io.modelcontextprotocol/related-task':"
	    "{'taskId':'e'}}}");
	ask(g, "tasks/result", "{'taskId':'f'}", MCP_INTERNAL_ERROR);
}

TEST(who_waits_for_a_result_gets_it_when_it_comes)
{
	struct ground *g = *state;
	struct fake_answer a;
	AUTO(auto_free)
	char *body = quoted("{'jsonrpc':'2.0','id':1,'method':'tasks/result',"
			    "'params':{'taskId':'w',"
			    "'_meta':{'progressToken':5}}}");

	fake_post(g->m, &g->client, body, &a);
	fake_progress(fake_held[0], 3, "three");
	assert_int_equal(a.starts, 1);
	assert_int_equal(a.nevents, 1);
	fake_done(fake_held[0], "whole", NULL);
	assert_int_equal(a.nevents, 2);
	fake_expect_has(a.event[1], "whole");
	fake_expect_has(a.event[1], "\"taskId\":\"w\"");
	fake_clear(&a);
}

TEST(a_cancel_is_final_at_once_and_refused_after_the_end)
{
	struct ground *g = *state;

	expect_json(ask(g, "tasks/cancel", "{'taskId':'w'}", 0),
	    CORE_WORKING("cancelled"));
	ask(g, "tasks/cancel", "{'taskId':'c'}", MCP_INVALID_PARAMS);
	ask(g, "tasks/cancel", "{'taskId':'f'}", MCP_INVALID_PARAMS);
	ask(g, "tasks/cancel", "{'taskId':'x'}", MCP_INVALID_PARAMS);
}

TEST(a_list_has_pages)
{
	struct ground *g = *state;

	expect_json(ask(g, "tasks/list", "{}", 0),
	    "{'tasks':[" CORE_WORKING(
		"working") ",{'taskId':'e','status':'failed'," TIMES
			   ",'ttl':null}],'nextCursor':'next'}");
	expect_json(
	    ask(g, "tasks/list", "{'cursor':'next'}", 0), "{'tasks':[]}");
	ask(g, "tasks/list", "{'cursor':'no'}", MCP_INVALID_PARAMS);
	ask(g, "tasks/list", "{'cursor':1}", MCP_INVALID_PARAMS);
	ask(g, "tasks/list", "{'cursor':null}", 0);
}

/* ---- 2026-07-28: a request of it, without the road to it */

#define DECLARED                                                               \
	"'_meta':{'io.modelcontextprotocol/clientCapabilities':"               \
	"{'extensions':{'io.modelcontextprotocol/tasks':{}}}}"

static json_t *
ask_modern(struct ground *g, const char *method, const char *params, int status,
    int code)
{
	const struct era_revision *rev = &era_table[ERA_REVISIONS - 1];
	const struct session session = {.rev = rev};
	AUTO(auto_free) char *text = quoted(params);
	struct rpc_message message = {.params = json_loads(text, 0, NULL)};
	struct fake_answer a = {0};
	struct mcp_context c = {.m = g->m,
	    .message = &message,
	    .session = &session,
	    .rev = rev,
	    .client_can =
		can_of(json_object_get(json_object_get(message.params, "_meta"),
			   "io.modelcontextprotocol/clientCapabilities"),
		    rev),
	    .who = &fake_alice,
	    .request_id = "http-1"};
	struct mcp_exchange *x = exchange_new(g->m, &fake_ops, &a);
	const struct mcp_method *found = provider_method(g->m, method, rev);
	struct err e;

	assert_non_null(message.params);
	assert_int_equal(exchange_set_forms(x, 1, &e), 0);
	exchange_pin(x);
	if (found == NULL) {
		request_error(request_new(x, xstrdup("1")),
		    MCP_METHOD_NOT_FOUND, "no", NULL);
	} else {
		message.removed = json_array();
		found->on(request_new(x, xstrdup("1")), &c);
	}
	exchange_unpin(x);
	fake_expect(&a, status, code);
	fake_clear(&a);
	json_decref(message.params);
	json_decref(message.removed);
	return json_object_get(fake_seen, code == 0 ? "result" : "error");
}

#define EXTENSION_WORKING                                                      \
	WORKING("working") ",'ttlMs':60000,'pollIntervalMs':500}"

TEST(the_extensions_tool_decides_for_who_declares_it)
{
	struct ground *g = *state;

	expect_json(
	    ask_modern(g, "tools/call", "{'name':'can'," DECLARED "}", 200, 0),
	    "{'resultType':'task'," EXTENSION_WORKING);
	assert_false(tool_asked);
	expect_json(ask_modern(g, "tools/call",
			"{'name':'can','task':{'ttl':5}}", 200, 0),
	    "{'content':[{'type':'text','text':'at once'}],'isError':false}");
	ask_modern(g, "tools/call", "{'name':'never'," DECLARED "}", 200, 0);
	assert_non_null(
	    json_object_get(json_object_get(fake_seen, "result"), "content"));
	ask_modern(g, "tools/call",
	    "{'name':'can','arguments':{'fail':'1'}," DECLARED "}", 200, 0);
}

TEST(without_the_extension_tasks_are_refused_with_what_is_missing)
{
	static const char *const methods[] = {
	    "tasks/get", "tasks/cancel", "tasks/update"};
	struct ground *g = *state;

	for (size_t i = 0; i < ARRAY_LEN(methods); i++)
		expect_json(
		    json_object_get(ask_modern(g, methods[i],
					"{'taskId':'w','inputResponses':{}}",
					400, MCP_CAPABILITY_MISSING),
			"data"),
		    "{'requiredCapabilities':{'extensions':"
		    "{'io.modelcontextprotocol/tasks':{}}}}");
	ask_modern(
	    g, "tools/call", "{'name':'must'}", 400, MCP_CAPABILITY_MISSING);
	ask_modern(g, "tools/call", "{'name':'must'," DECLARED "}", 200, 0);
	assert_int_equal(fake_told, 0);
	ask_modern(g, "tasks/result", "{'taskId':'w'," DECLARED "}", 200,
	    MCP_METHOD_NOT_FOUND);
	ask_modern(
	    g, "tasks/list", "{" DECLARED "}", 200, MCP_METHOD_NOT_FOUND);
}

TEST(a_task_of_the_extension_holds_what_it_came_to)
{
	struct ground *g = *state;

	expect_json(
	    ask_modern(g, "tasks/get", "{'taskId':'w'," DECLARED "}", 200, 0),
	    "{'resultType':'complete'," EXTENSION_WORKING);
	expect_json(
	    ask_modern(g, "tasks/get", "{'taskId':'e'," DECLARED "}", 200, 0),
	    "{'resultType':'complete','taskId':'e','status':'completed'," TIMES
	    ",'ttlMs':null,'result':{'content':[{'type':'text','text':'e'}],"
	    "'isError':true,'resultType':'complete'}}");
	expect_json(
	    ask_modern(g, "tasks/get", "{'taskId':'f'," DECLARED "}", 200, 0),
	    "{'resultType':'complete','taskId':'f','status':'failed'," TIMES
	    ",'ttlMs':null,'error':{'code':-32603,'message':'broken'}}");
	expect_json(
	    ask_modern(g, "tasks/get", "{'taskId':'q'," DECLARED "}", 200, 0),
	    "{'resultType':'complete','taskId':'q',"
	    "'status':'input_required'," TIMES ",'ttlMs':null,"
	    "'inputRequests':{'name':{'method':'roots/list'}}}");
}

TEST(cancel_and_update_of_the_extension_are_taken_and_no_more)
{
	static const char *const ids[] = {"w", "c", "x"};
	struct ground *g = *state;

	for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
		AUTO(auto_free)
		char *params =
		    xasprintf("{'taskId':'%s'," DECLARED "}", ids[i]);

		expect_json(ask_modern(g, "tasks/cancel", params, 200, 0),
		    "{'resultType':'complete'}");
	}
	expect_json(
	    ask_modern(g, "tasks/update",
		"{'taskId':'q','inputResponses':{'name':'Ann'}," DECLARED "}",
		200, 0),
	    "{'resultType':'complete'}");
	assert_string_equal(fake_text, "Ann");
	ask_modern(g, "tasks/update", "{'taskId':'q'," DECLARED "}", 200,
	    MCP_INVALID_PARAMS);
	ask_modern(g, "tasks/cancel", "{'taskId':'no'," DECLARED "}", 200,
	    MCP_INVALID_PARAMS);
}

TEST(tasks_that_never_ask_take_any_answer)
{
	struct mcp_task_ops silent = task_ops;
	struct ground *g = *state;

	silent.update = NULL;
	mcp_set_tasks(g->m, &silent, fake_text);
	expect_json(
	    ask_modern(g, "tasks/update",
		"{'taskId':'w','inputResponses':{'x':1}," DECLARED "}", 200, 0),
	    "{'resultType':'complete'}");
	ask_modern(g, "tasks/update",
	    "{'taskId':'no','inputResponses':{}," DECLARED "}", 200,
	    MCP_INVALID_PARAMS);
	mcp_set_tasks(g->m, &task_ops, fake_text);
}

/* ---- the definition */

TEST(a_definition_with_another_word_is_refused)
{
	struct ground *g = *state;
	json_t *bad = json_loads(TOOL("odd", "maybe"), 0, NULL);
	struct err e;

	assert_int_equal(
	    mcp_add_tool(g->m, bad, task_tool_cb, NULL, &e), ERR_INVAL);
	fake_expect_has(e.msg, "execution.taskSupport");
	json_decref(bad);
}

TEST_MAIN(setup_tasks, teardown)
