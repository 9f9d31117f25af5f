#include "tests/unit/front/fixture.h"

/* Routes, who may ask, and the small pages. */

#define GOOD_ORIGIN "Origin: http://app.example\r\n"

static int
setup_allowing(void **state)
{
	static const char *const settings[] = {"CORS_ALLOW_ORIGINS",
	    "http://app.example", "ALLOWED_HOSTS", "box.example:9,any.example",
	    NULL};

	(void)state;
	fixture_open(settings);
	return 0;
}

static int
setup_other_path(void **state)
{
	static const char *const settings[] = {"MCP_PATH", "/a/b/", NULL};

	(void)state;
	fixture_open(settings);
	return 0;
}

TEST(readiness_follows_the_worker)
{
	raw_wait_until(fx.base,
	    fixture_status(fixture_ask("GET", "/readyz", "", "")) == 200);
	core_worker_gone(fx.core, 0, false);
	fixture_expect("GET", "/readyz", "", 503);
	fixture_has("\"code\":\"not_ready\"");
}

TEST(the_index_names_the_endpoint)
{
	fixture_expect("GET", "/", "", 200);
	fixture_has("\"mcp\":\"/mcp\"");
}

TEST(an_unknown_path_is_a_json_error_with_the_request_id)
{
	const char *id, *text;
	char want[80];

	fixture_expect("GET", "/nope", "", 404);
	text = raw_text(&fx.c);
	id = strstr(text, "X-Request-Id: ");
	assert_non_null(id);
	(void)snprintf(want, sizeof(want), "\"request_id\":\"%.17s\"", id + 14);
	fixture_has(want);
	fixture_has("\"code\":\"not_found\"");
	fixture_has("HTTP/1.1 404 Not Found\r\n");
	fixture_has("Content-Type: application/problem+json\r\n");
	fixture_has("X-Content-Type-Options: nosniff\r\n");
	fixture_has("Cache-Control: no-store\r\n");
}

/* RFC 9457, and beside it the member that was there before. */
TEST(an_error_is_a_problem_and_says_so_twice)
{
	static const char *const same[] = {"code", "request_id"};
	const json_t *error;
	json_t *o;

	o = fixture_body(fixture_ask("GET", "/nope", "", ""));
	error = json_object_get(o, "error");
	assert_string_equal(js_text(o, "type"), "about:blank");
	assert_string_equal(js_text(o, "title"), "Not Found");
	assert_int_equal(json_integer_value(json_object_get(o, "status")), 404);
	assert_true(json_equal(
	    json_object_get(o, "detail"), json_object_get(error, "message")));
	assert_non_null(
	    strstr(js_text(o, "instance"), js_text(o, "request_id")));
	for (size_t i = 0; i < ARRAY_LEN(same); i++) {
		assert_non_null(json_object_get(o, same[i]));
		assert_true(json_equal(json_object_get(o, same[i]),
		    json_object_get(error, same[i])));
	}
	json_decref(o);
}

TEST(a_wrong_method_says_which_are_right)
{
	static const char *const methods[] = {"POST", "PUT", "DELETE", "PATCH"};

	for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
		fixture_expect(methods[i], "/healthz", "", 405);
		fixture_has("Allow: GET, HEAD, OPTIONS\r\n");
	}
	fixture_expect("PUT", "/mcp", "", 405);
	fixture_has("Allow: POST, DELETE, OPTIONS\r\n");
	fixture_has("\"jsonrpc\":\"2.0\"");
	fixture_expect("GET", "/mcp", "Accept: application/json\r\n", 405);
	fixture_has("Allow: POST, DELETE, OPTIONS\r\n");
	fixture_expect("GET", "/mcp", "", 405);
	fixture_expect("HEAD", "/mcp", "", 405);
}

TEST(a_browser_is_told_how_to_connect)
{
	static const char browser[] =
	    "Accept: text/html,application/xhtml+xml,*/*;q=0.8\r\n";
	static const char *const paths[] = {"/", "/mcp", "/mcp/"};

	for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
		fixture_expect("GET", paths[i], browser, 200);
		fixture_has("Content-Type: text/html; charset=utf-8\r\n");
		fixture_has("default-src 'none'");
		fixture_has("/mcp</pre>");
	}
	fixture_expect("GET", "/", "", 200);
	fixture_has("Content-Type: application/json\r\n");
	fixture_expect("POST", "/mcp", browser, 415);
}

TEST(options_is_answered_everywhere)
{
	fixture_expect("OPTIONS", "/mcp", "", 204);
	fixture_has("Allow: POST, DELETE, OPTIONS\r\n");
	assert_false(raw_has(&fx.c, "Access-Control"));
	fixture_expect("OPTIONS", "/nope", "", 204);
	fixture_expect("OPTIONS", "*", "", 204);
}

/* ---- Host and Origin */

static void
send_with_host(const char *host)
{
	char *text = xasprintf(
	    "GET /healthz HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n",
	    host);

	fixture_reconnect();
	raw_send(&fx.c, fx.base, text);
	raw_wait_end(&fx.c, fx.base);
	free(text);
}

TEST_WITH(
    setup_allowing, fixture_teardown, only_names_of_ours_are_taken_for_the_host)
{
	static const struct {
		const char *host; /* %u: the port */
		int status;
	} table[] = {
	    {"127.0.0.1:%u", 200},
	    {"localhost:%u", 200},
	    {"LocalHost:%u", 200},
	    {"[::1]:%u", 200},
	    {"box.example:9", 200},
	    {"any.example", 200},
	    {"any.example:%u", 200},
	    {"evil.example:%u", 403},
	    {"evil.example", 403},
	    {"127.0.0.1", 200}, /* the client is on this machine */
	    {"127.0.0.1:1", 200},
	    {"localhost", 200},
	    {"LOCALHOST:65535", 200},
	    {"[::1]", 200},
	    {"[::1]:1", 200},
	    {"127.0.0.1:", 403},
	    {"127.0.0.1:65536", 403},
	    {"127.0.0.1:1x", 403},
	    {"127.0.0.1.evil.example", 403},
	    {"127.0.0.2", 403},
	    {"::1", 403},
	    {"localhost.", 403},
	    {"localhost.evil.example:%u", 403},
	    {"127.0.0.1:%u.evil.example", 403},
	    {"box.example", 403},
	    {"any.example.evil", 403},
	    {"", 403},
	    {":%u", 403},
	};
	char host[100];

	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		const char *mark = strstr(table[i].host, "%u");

		if (mark == NULL)
			(void)snprintf(host, sizeof(host), "%s", table[i].host);
		else
			(void)snprintf(host, sizeof(host), "%.*s%u%s",
			    (int)(mark - table[i].host), table[i].host, fx.port,
			    mark + 2);
		send_with_host(host);
		if (fixture_status(raw_text(&fx.c)) != table[i].status)
			fail_msg("Host %s: %.200s", host, raw_text(&fx.c));
	}
}

TEST(the_host_of_an_absolute_target_counts)
{
	char *text = xasprintf("GET http://evil.example:%u/healthz HTTP/1.1\r\n"
			       "Host: 127.0.0.1:%u\r\n\r\n",
	    fx.port, fx.port);

	raw_ask(&fx.c, fx.base, text, "\"host_not_allowed\"");
	free(text);
	text = xasprintf("GET http://127.0.0.1:%u/healthz HTTP/1.1\r\n"
			 "Host: evil.example\r\n\r\n",
	    fx.port);
	raw_ask(&fx.c, fx.base, text, "{\"status\":\"ok\"}");
	free(text);
}

static void
expect_origin(const char *origin, int status)
{
	char more[200];

	(void)snprintf(more, sizeof(more), "Origin: %s\r\n", origin);
	fixture_expect("GET", "/healthz", more, status);
	fixture_expect("POST", "/mcp", more, status == 200 ? 415 : 403);
}

TEST_WITH(setup_allowing, fixture_teardown,
    only_pages_of_ours_and_listed_ones_may_call)
{
	char own[60];

	(void)snprintf(own, sizeof(own), "http://127.0.0.1:%u", fx.port);
	expect_origin(own, 200);
	(void)snprintf(own, sizeof(own), "http://localhost:%u", fx.port);
	expect_origin(own, 200);
	(void)snprintf(own, sizeof(own), "http://[::1]:%u", fx.port);
	expect_origin(own, 200);
	expect_origin("http://app.example", 200);
	expect_origin("https://app.example", 403);
	expect_origin("http://app.example.evil.example", 403);
	expect_origin("http://evil.example", 403);
	expect_origin("null", 403);
	expect_origin("http://127.0.0.1", 403);
	expect_origin("http://127.0.0.1:1", 403);
	/* A Host that is allowed is no Origin that is. */
	expect_origin("http://any.example", 403);
}

TEST(on_the_mcp_path_a_refusal_is_a_json_rpc_error_without_id)
{
	json_t *o;

	o = fixture_body(fixture_ask(
	    "POST", "/mcp", "Origin: http://evil.example\r\n", "{}"));
	assert_string_equal(js_text(o, "jsonrpc"), "2.0");
	assert_null(json_object_get(o, "id"));
	assert_int_equal(json_integer_value(json_object_get(
			     json_object_get(o, "error"), "code")),
	    -32000);
	json_decref(o);
}

TEST_WITH(setup_allowing, fixture_teardown, cors_is_answered_to_listed_origins)
{
	fixture_expect("OPTIONS", "/mcp",
	    GOOD_ORIGIN "Access-Control-Request-Method: POST\r\n", 204);
	fixture_has("Access-Control-Allow-Origin: http://app.example\r\n");
	fixture_has("Access-Control-Allow-Methods: POST, DELETE, OPTIONS\r\n");
	fixture_has("Access-Control-Allow-Headers: Accept, Authorization, "
		    "Content-Type, Mcp-Session-Id, Mcp-Protocol-Version, "
		    "Last-Event-ID, Mcp-Method, Mcp-Name, If-Match, "
		    "If-None-Match\r\n");
	fixture_has("Access-Control-Max-Age: 300\r\n");
	assert_false(raw_has(&fx.c, "Access-Control-Allow-Credentials"));
	/* Each path offers what it has. */
	fixture_expect("OPTIONS", "/api/v1/tenants/acme", GOOD_ORIGIN, 204);
	fixture_has("Access-Control-Allow-Methods: GET, HEAD, PATCH, DELETE, "
		    "OPTIONS\r\n");
	fixture_expect("GET", "/healthz", GOOD_ORIGIN, 200);
	fixture_has("Access-Control-Expose-Headers: Mcp-Session-Id, "
		    "WWW-Authenticate, ETag\r\n");
	fixture_has("Vary: Origin\r\n");
	fixture_expect("GET", "/healthz", "", 200);
	fixture_has("Vary: Origin\r\n");
	assert_false(raw_has(&fx.c, "Access-Control-Allow-Origin"));
}

/* ---- the rest */

TEST_WITH(
    setup_other_path, fixture_teardown, another_mcp_path_moves_what_is_below_it)
{
	fixture_expect("GET", "/a/b", "", 405);
	fixture_expect("GET", "/a/b/", "", 405);
	fixture_expect("GET", "/a/b/events", "", 400);
	fixture_expect("GET", "/a/b/runs/x", "", 404);
	fixture_expect("GET", "/mcp", "", 404);
	fixture_expect("GET", "/a/bc", "", 404);
}

TEST(metrics_have_the_compatible_names_and_count)
{
	static const char *const names[] = {"mcp_active_sandboxes ",
	    "mcp_active_runs ", "mcp_runs_total{status=\"completed\"} 1\n",
	    "mcp_runs_total{status=\"failed\"} 0\n",
	    "mcp_commands_total{status=\"completed\"} 1\n",
	    "mcp_commands_total{status=\"timed_out\"} 0\n",
	    "mcp_command_duration_seconds_bucket{le=\"0.001\"} 1\n",
	    "mcp_command_duration_seconds_bucket{le=\"120\"} 1\n",
	    "mcp_command_duration_seconds_bucket{le=\"+Inf\"} 1\n",
	    "mcp_command_duration_seconds_count 1\n",
	    "mcp_reaper_deletes_total 0\n", "sandboxd_connections 1\n",
	    "sandboxd_event_streams 0\n", "sandboxd_workers_ready 1\n",
	    "sandboxd_store_failures_total 0\n",
	    "sandboxd_http_requests_total{code=\"2xx\"} ",
	    "sandboxd_build_info{version=\"",
	    "# TYPE mcp_command_duration_seconds histogram\n"};
	char *id;

	fx.worker.at_once = true;
	fx.worker.said = "x";
	id = fixture_start_run();
	fixture_wait_run_state(id, "completed");
	free(id);
	fixture_expect("GET", "/metrics", "", 200);
	fixture_has(
	    "Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n");
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		fixture_has(names[i]);
	/* HELP and TYPE once per name. */
	assert_int_equal(raw_count(&fx.c, "# TYPE mcp_runs_total "), 1);
}

TEST(a_run_is_shown_and_a_foreign_one_is_not_found)
{
	char *id = fixture_start_run(), *path;

	worker_print(&fx.worker, "hi\n", 3);
	worker_end(&fx.worker, 0);
	fixture_wait_run_state(id, "completed");
	fixture_has("\"stdout\":\"hi\\n\"");
	path = xasprintf("/mcp/runs/%s", id);
	fixture_expect("HEAD", path, "", 200);
	free(path);
	free(id);
	fixture_expect("GET", "/mcp/runs/nonsense", "", 404);
	fixture_expect(
	    "GET", "/mcp/runs/00000000-0000-4000-8000-000000000000", "", 404);
	fixture_expect("GET", "/mcp/runs/", "", 404);
}

TEST(asking_for_a_run_and_leaving_is_safe)
{
	fixture_send(
	    "GET", "/mcp/runs/00000000-0000-4000-8000-000000000000", "", "");
	(void)event_base_loop(fx.base, EVLOOP_NONBLOCK);
	fixture_reconnect();
	fixture_expect("GET", "/healthz", "", 200);
	raw_wait_until(fx.base,
	    strstr(fixture_ask("GET", "/metrics", "", ""),
		"sandboxd_connections 1\n") != NULL);
}

TEST(a_reload_takes_new_hosts)
{
	struct err e;

	send_with_host("late.example");
	assert_int_equal(fixture_status(raw_text(&fx.c)), 403);
	assert_int_equal(
	    conf_set(fx.conf, "ALLOWED_HOSTS", "late.example", &e), 0);
	front_reload(fx.front);
	send_with_host("late.example");
	assert_int_equal(fixture_status(raw_text(&fx.c)), 200);
}

TEST_MAIN(fixture_setup, fixture_teardown)
