#include "tests/unit/front/fixture.h"

#include <pthread.h>

/* MCP over HTTP with the real library and core. */

#define RUN_AWAIT                                                              \
	"{\"identifier\":\"box\",\"commands\":[{\"shell\":\"true\"}],"         \
	"\"options\":{\"await_completion\":true}}"
#define RUN "{\"identifier\":\"box\",\"commands\":[{\"shell\":\"true\"}]}"

/* ---- who frees what a client sent */

static pthread_t loop_thread;
static unsigned int freed_by_loop;

static void
free_and_count(void *p)
{
	if (pthread_equal(pthread_self(), loop_thread) != 0)
		freed_by_loop++;
	free(p);
}

/* A call with this for its arguments, %s being a list of 48,000 empty objects;
 * an object is three pieces of memory, at least. */
static json_t *
call_with_many_objects(const char *form)
{
	enum {
		OBJECTS = 48000
	};
	char *list = xcalloc(1, 3 * OBJECTS + 3), *at = list, *arguments;
	json_t *result;

	*at++ = '[';
	for (int i = 0; i < OBJECTS; i++)
		at = mempcpy(at, "{},", 3);
	at[-1] = ']';
	arguments = xasprintf("%.200s%s}", form, list);
	free(list);
	freed_by_loop = 0;
	json_set_alloc_funcs(malloc, free_and_count);
	loop_thread = pthread_self();
	fixture_call(FIXTURE_BOTH, "run_sandbox", arguments);
	free(arguments);
	result = fixture_result();
	assert_in_range(freed_by_loop, 1, OBJECTS / 10);
	return result;
}

static const char *
text_of(const json_t *result)
{
	return fixture_text_at(result, "content.0.text");
}

TEST(what_is_ignored_of_a_large_call_is_not_freed_by_the_loop)
{
	json_t *result;

	fx.worker.at_once = true;
	fx.worker.said = "";
	fixture_initialize();
	result = call_with_many_objects(
	    "{\"identifier\":\"box\",\"commands\":[{\"shell\":\"true\"}],"
	    "\"description\":");
	assert_false(json_boolean_value(json_object_get(result, "isError")));
	json_decref(result);
}

TEST(what_is_wrong_in_a_large_call_is_not_freed_by_the_loop)
{
	json_t *result;

	fixture_initialize();
	result = call_with_many_objects("{\"identifier\":\"box\",\"x\":");
	assert_true(json_boolean_value(json_object_get(result, "isError")));
	json_decref(result);
}

/* The answer names the run: a crash must not forget it. */
TEST(a_wait_that_is_over_too_early_is_answered_when_the_run_is_on_disk)
{
	struct store_snapshot snap;
	json_t *result;
	struct err e;

	fx.worker.deaf = true;
	result = fixture_use("run_sandbox",
	    "{\"identifier\":\"box\",\"commands\":[{\"shell\":\"true\"}],"
	    "\"options\":{\"await_completion\":true,"
	    "\"await_timeout_ms\":1}}");
	assert_true(
	    json_is_null(fixture_at(result, "structuredContent.final")));
	json_decref(result);
	assert_int_equal(store_snapshot(fx.store, NULL, &snap, &e), 0);
	assert_int_equal(snap.nruns, 1);
	store_snapshot_clear(&snap);
}

TEST(without_an_engine_the_error_says_what_is_away)
{
	json_t *result;

	core_worker_gone(fx.core, 0, false);
	result = fixture_use("run_sandbox", RUN);
	assert_true(json_is_true(json_object_get(result, "isError")));
	assert_non_null(strstr(text_of(result), "worker"));
	assert_int_equal(
	    strncmp(text_of(result), "BACKEND_UNAVAILABLE: ", 21), 0);
	assert_null(json_object_get(result, "structuredContent"));
	json_decref(result);
}

static int
setup_hasty(void **state)
{
	(void)state;
	fixture_heartbeat_ms = 20;
	fixture_open(NULL);
	fixture_heartbeat_ms = FRONT_HEARTBEAT_MS;
	return 0;
}

static uint64_t
streams(void)
{
	struct http_stats st;

	http_server_stats(fx.front->http, &st);
	return st.streams;
}

TEST_WITH(setup_hasty, fixture_teardown,
    a_call_that_runs_long_gets_a_stream_with_heartbeats)
{
	fixture_initialize();
	fixture_call("Accept: application/json, text/event-stream\r\n",
	    "run_sandbox", RUN_AWAIT);
	raw_wait_for(&fx.c, fx.base, "Content-Type: text/event-stream\r\n");
	raw_wait_for(&fx.c, fx.base, ": \n\n");
	worker_print(&fx.worker, "late", 4);
	worker_end(&fx.worker, 0);
	raw_wait_for(&fx.c, fx.base, "0\r\n\r\n");
	fixture_has("event: message\n");
	fixture_has("\ndata: {\"jsonrpc\"");
	fixture_has("completed\\nexit code 0\\nlate\\n\"}],\"isError\"");
	assert_int_equal(raw_count(&fx.c, "event: message"), 1);
	fixture_expect("GET", "/healthz", "", 200);
}

TEST(a_client_without_streams_waits_for_json)
{
	json_t *result;

	fixture_initialize();
	fixture_call("Accept: application/json\r\n", "run_sandbox", RUN_AWAIT);
	raw_wait_until(fx.base, fx.worker.runs == 1);
	mcp_tick(fx.front->mcp, clock_mono_ms() + 60000);
	assert_int_equal(buf_len(&fx.c.in), 0);
	worker_end(&fx.worker, 0);
	result = fixture_result();
	json_decref(result);
}

/* The run goes on, says MCP 2025-11-25; and the late answer harms nobody. */
TEST(a_client_that_leaves_during_a_call_is_let_go)
{
	static const char *const accepts[] = {"Accept: application/json\r\n",
	    "Accept: application/json, text/event-stream\r\n"};

	for (size_t i = 0; i < 2; i++) {
		fixture_reconnect();
		fixture_initialize();
		fixture_call(accepts[i], "run_sandbox", RUN_AWAIT);
		raw_wait_until(fx.base, fx.worker.runs == i + 1);
		if (i == 1)
			raw_wait_for(&fx.c, fx.base, "text/event-stream");
		raw_close(&fx.c);
		raw_wait_until(fx.base, i == 0 || streams() == 0);
		raw_open(&fx.c, fx.port, 0);
		worker_end(&fx.worker, 0);
		raw_wait_until(fx.base,
		    strstr(fixture_ask("GET", "/metrics", "", ""),
			"sandboxd_connections 1\n") != NULL);
	}
	raw_wait_until(fx.base,
	    strstr(fixture_ask("GET", "/metrics", "", ""),
		"mcp_runs_total{status=\"completed\"} 2\n") != NULL);
}

/* text, and blanks that make it too large for the loop. */
static char *
large_of(const char *text)
{
	return xasprintf("%s%*s", text, 3 * 65536, "");
}

TEST(a_large_message_is_answered_as_a_small_one)
{
	static const char *const texts[] = {
	    "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"ping\"}",
	    "{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"no/such\"}",
	    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}",
	    "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":}",
	    "{\"id\":7,\"method\":\"ping\"}",
	    "[]",
	    "{\"a\":1,\"a\":2}",
	    "\"\xff\"",
	    "[1e400]",
	};
	char *more;

	fixture_initialize();
	more = fixture_session();
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		char *small, *large = large_of(texts[i]);
		int status;

		status =
		    fixture_status(fixture_ask("POST", "/mcp", more, texts[i]));
		small = xstrdup(strstr(raw_text(&fx.c), "\r\n\r\n"));
		assert_int_equal(
		    fixture_status(fixture_ask("POST", "/mcp", more, large)),
		    status);
		assert_string_equal(strstr(raw_text(&fx.c), "\r\n\r\n"), small);
		free(small);
		free(large);
	}
	free(more);
}

/* Requests of one connection, sent at once: answers in their order. */
TEST(a_small_message_behind_a_large_one_waits_for_it)
{
	char *large =
	    large_of("{\"jsonrpc\":\"2.0\",\"id\":71,\"method\":\"no/one\"}");
	const char *small =
	    "{\"jsonrpc\":\"2.0\",\"id\":72,\"method\":\"no/two\"}";
	char *more;

	fixture_initialize();
	more = fixture_session();
	buf_consume(&fx.c.in, buf_len(&fx.c.in));
	fixture_send("POST", "/mcp", more, large);
	fixture_send("POST", "/mcp", more, small);
	raw_wait_for(&fx.c, fx.base, "no/two");
	assert_true(strstr(raw_text(&fx.c), "\"id\":71") <
	    strstr(raw_text(&fx.c), "\"id\":72"));
	free(more);
	free(large);
}

TEST(a_client_that_leaves_while_its_message_is_read_is_let_go)
{
	char *large =
	    large_of("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}");
	char *more;

	fixture_initialize();
	more = fixture_session();
	for (int i = 0; i < 30; i++) {
		fixture_send("POST", "/mcp", more, large);
		for (int turns = 0; turns < i % 5; turns++)
			(void)event_base_loop(fx.base, EVLOOP_NONBLOCK);
		fixture_reconnect();
	}
	raw_wait_until(fx.base,
	    strstr(fixture_ask("GET", "/metrics", "", ""),
		"sandboxd_connections 1\n") != NULL);
	/* One that is being read when all ends. */
	fixture_send("POST", "/mcp", more, large);
	for (int turns = 0; turns < 3; turns++)
		(void)event_base_loop(fx.base, EVLOOP_NONBLOCK);
	free(more);
	free(large);
}

TEST(draining_refuses_new_calls_and_finishes_old_ones)
{
	json_t *result;

	fixture_initialize();
	fixture_call("Accept: application/json\r\n", "run_sandbox", RUN_AWAIT);
	raw_wait_until(fx.base, fx.worker.runs == 1);
	front_drain(fx.front, fixture_idle_cb, NULL);
	worker_end(&fx.worker, 0);
	result = fixture_result();
	json_decref(result);
	fixture_has("Connection: close\r\n");
	raw_wait_end(&fx.c, fx.base);
	assert_true(front_is_quiet(fx.front));
}

/* The answer to tools/list; the caller's. */
static json_t *
listed(void)
{
	AUTO(auto_free) char *more = NULL;

	fixture_initialize();
	more = fixture_session();
	return fixture_body(fixture_ask("POST", "/mcp", more,
	    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}"));
}

static int
setup_described(void **state)
{
	static const char *const settings[] = {"TOOL_DESC_RUN_SANDBOX_OVERRIDE",
	    "Runs \"things\".", "TOOL_DESC_STOP_SANDBOX_APPEND", "Ask first.",
	    NULL};

	(void)state;
	fixture_open(settings);
	return 0;
}

TEST_WITH(setup_described, fixture_teardown,
    descriptions_can_be_replaced_and_extended)
{
	fixture_initialize();
	json_decref(listed());
	assert_true(raw_has(&fx.c, "\"description\":\"Runs \\\"things\\\".\""));
	assert_true(raw_has(&fx.c, ". Ask first.\""));
}

/* ---- settings */

static int
setup_set(void **state)
{
	static const char *const settings[] = {"DEFAULT_AWAIT_COMPLETION",
	    "false", "DEFAULT_AWAIT_TIMEOUT_MS", "7001",
	    "DEFAULT_COMMAND_TIMEOUT_MS", "7002", "DEFAULT_TTL_SECONDS", "7003",
	    "MAX_TTL_SECONDS", "7004", NULL};

	(void)state;
	fixture_open(settings);
	return 0;
}

TEST(all_tools_are_listed)
{
	static const char *const names[] = {"run_sandbox", "delete_sandbox",
	    "restart_sandbox", "initialize_sandbox", "execute_code",
	    "stop_sandbox", "get_run", "list_runs", "list_sandboxes",
	    "control_run"};
	const json_t *tools;
	json_t *o;

	fixture_initialize();
	o = listed();
	tools = json_object_get(json_object_get(o, "result"), "tools");
	assert_int_equal(json_array_size(tools), ARRAY_LEN(names));
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		assert_string_equal(json_string_value(json_object_get(
					json_array_get(tools, i), "name")),
		    names[i]);
	json_decref(o);
}

TEST_WITH(setup_set, fixture_teardown, what_is_listed_is_what_is_set)
{
	json_t *o = listed();
	const json_t *options = fixture_at(
	    o, "result.tools.0.inputSchema.properties.options.properties");
	struct err e;

	assert_true(
	    json_is_false(fixture_at(options, "await_completion.default")));
	assert_int_equal(
	    json_integer_value(fixture_at(options, "await_timeout_ms.default")),
	    7001);
	fixture_has("await_completion (default false)");
	assert_int_equal(raw_count(&fx.c, "7002"), 2);
	assert_int_equal(
	    raw_count(&fx.c, "7003 unless given, at most 7004"), 2);
	assert_false(raw_has(&fx.c, "{DEFAULT_"));
	assert_false(raw_has(&fx.c, "{MAX_"));
	json_decref(o);
	assert_int_equal(
	    conf_set(fx.conf, "DEFAULT_AWAIT_COMPLETION", "true", &e), 0);
	front_reload(fx.front);
	o = listed();
	fixture_has("await_completion (default true)");
	json_decref(o);
}

TEST(a_tool_without_a_definition_stops_the_start)
{
	static const struct embed_file none[] = {{NULL, NULL, 0}};
	const uint8_t key[FRONT_KEY_BYTES] = {0};
	const struct front_parts parts = {.base = fx.base,
	    .conf = fx.conf,
	    .core = fx.core,
	    .tools = none,
	    .session_key = key,
	    .heartbeat_ms = FRONT_HEARTBEAT_MS};
	struct front *front = NULL;
	struct err e;

	assert_int_equal(front_new(&parts, &front, &e), ERR_INVAL);
	assert_null(front);
}

TEST_MAIN(fixture_setup, fixture_teardown)
