/* The life of a tool call: streams, progress, cancelling, clients that leave.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "supervisor/mcp/inflight.h"
#include "tests/unit/mcp/fake.h"

struct ground {
	struct mcp *m;
	char *session;
	struct fake_client client;
};

static int
setup(void **state)
{
	struct ground *g = xcalloc(1, sizeof(*g));

	g->m = fake_server();
	fake_add_tools(g->m);
	g->session = fake_session(g->m);
	g->client = fake_client(g->session);
	*state = g;
	return 0;
}

static int
teardown(void **state)
{
	struct ground *g = *state;

	mcp_free(g->m);
	free(g->session);
	free(g);
	return fake_teardown(state);
}

#define SLOW(id)                                                               \
	"{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"tools/call\","        \
	"\"params\":{\"name\":\"slow\"}}"
#define TOKEN(name, id, token)                                                 \
	"{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"tools/call\","        \
	"\"params\":{\"name\":\"" name                                         \
	"\",\"_meta\":{\"progressToken\":" token "}}}"
#define CANCEL(id)                                                             \
	"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\","         \
	"\"params\":{\"requestId\":" id ",\"reason\":\"r\"}}"

static void
cancel(struct ground *g, const char *text)
{
	struct fake_answer a;

	fake_post(g->m, &g->client, text, &a);
	assert_int_equal(a.status, 202);
	fake_clear(&a);
}

static size_t
active(const struct ground *g)
{
	struct mcp_stats st;

	mcp_stats(g->m, &st);
	return st.calls_active;
}

static void
test_a_call_that_ends_at_once_is_plain_json(void **state)
{
	struct ground *g = *state;
	struct fake_answer a;

	fake_post(g->m, &g->client,
	    "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"tools/call\","
	    "\"params\":{\"name\":\"echo\",\"arguments\":{\"n\":5},"
	    "\"_meta\":{\"progressToken\":1}}}",
	    &a);
	assert_int_equal(a.starts, 0);
	assert_string_equal(a.body,
	    "{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{\"content\":[{\"type\":"
	    "\"text\",\"text\":\"echoed\"}],\"structuredContent\":{\"n\":5},"
	    "\"isError\":false}}");
	fake_clear(&a);
}

static void
test_an_error_of_a_tool_is_a_protocol_error_with_its_data(void **state)
{
	struct ground *g = *state;
	struct fake_answer a;

	fake_post(g->m, &g->client, TOKEN("failing", "3", "1"), &a);
	fake_expect(&a, 200, MCP_INTERNAL_ERROR);
	fake_expect_has(a.body, "\"data\":{\"n\":7}");
	fake_clear(&a);
}

static void
test_a_call_may_end_later(void **state)
{
	struct ground *g = *state;
	struct fake_answer a;

	fake_post(g->m, &g->client, SLOW("\"x\""), &a);
	assert_non_null(a.request);
	assert_int_equal(active(g), 1);
	assert_true(mcp_call_has_client(fake_held[0]));
	mcp_call_result(fake_held[0], "done", NULL, true);
	assert_string_equal(a.body,
	    "{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"result\":{\"content\":[{"
	    "\"type\":\"text\",\"text\":\"done\"}],\"isError\":true}}");
	assert_int_equal(active(g), 0);
	fake_clear(&a);
}

static void
test_text_that_is_not_utf8_is_repaired(void **state)
{
	struct ground *g = *state;
	struct fake_answer a;

	fake_post(g->m, &g->client, SLOW("1"), &a);
	mcp_call_result(fake_held[0], "a\xff\nb", NULL, false);
	fake_expect_has(a.body, "\"text\":\"a\xef\xbf\xbd\\nb\"");
	fake_clear(&a);
}

static void
test_structured_content_that_is_no_object_is_left_out(void **state)
{
	struct ground *g = *state;
	struct fake_answer a;

	fake_post(g->m, &g->client, SLOW("1"), &a);
	mcp_call_result(fake_held[0], "t", json_array(), false);
	assert_null(strstr(a.body, "structuredContent"));
	fake_clear(&a);
}

static void
test_the_caller_is_known_to_the_tool(void **state)
{
	struct ground *g = *state;
	struct fake_answer a;

	fake_post(g->m, &g->client, SLOW("1"), &a);
	assert_ptr_equal(mcp_call_principal(fake_held[0]), g->client.principal);
	mcp_call_result(fake_held[0], "", NULL, false);
	fake_clear(&a);
}

static void
test_a_waiting_call_with_a_token_gets_a_stream_with_progress(void **state)
{
	struct ground *g = *state;
	struct fake_answer a;

	fake_post(g->m, &g->client, TOKEN("slow", "7", "9007199254740993"), &a);
	assert_int_equal(a.starts, 1);
	assert_null(a.session);
	mcp_call_progress(fake_held[0], 1, "half\n\xff");
	mcp_call_progress(fake_held[0], 1.5, NULL);
	mcp_call_result(fake_held[0], "done", NULL, false);
	assert_int_equal(a.nevents, 3);
	assert_string_equal(a.event[0],
	    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\","
	    "\"params\":{\"progressToken\":9007199254740993,\"progress\":1,"
	    "\"message\":\"half\\n\xef\xbf\xbd\"}}");
	assert_string_equal(a.event[1],
	    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\","
	    "\"params\":{\"progressToken\":9007199254740993,"
	    "\"progress\":1.5}}");
	fake_expect_has(a.event[2], "\"id\":7,\"result\"");
	assert_int_equal(a.ends, 1);
	assert_int_equal(a.replies, 0);
	fake_clear(&a);
}

static void
test_progress_that_does_not_grow_is_left_out(void **state)
{
	struct ground *g = *state;
	struct fake_answer a;

	fake_post(g->m, &g->client, TOKEN("slow", "7", "\"t\""), &a);
	mcp_call_progress(fake_held[0], -1.5, NULL);
	fake_expect_has(a.event[0], "\"progress\":-1.5}");
	mcp_call_progress(fake_held[0], 2, NULL);
	mcp_call_progress(fake_held[0], 2, NULL);
	mcp_call_progress(fake_held[0], 1, NULL);
	mcp_call_progress(fake_held[0], NAN, NULL);
	mcp_call_progress(fake_held[0], INFINITY, NULL);
	assert_int_equal(a.nevents, 2);
	mcp_call_progress(fake_held[0], 3, NULL);
	assert_int_equal(a.nevents, 3);
	mcp_call_error(fake_held[0], MCP_INTERNAL_ERROR, "e", NULL);
	fake_expect_has(a.event[3], "\"error\":{\"code\":-32603");
	fake_clear(&a);
}

static void
test_progress_is_not_sent_to_who_did_not_ask_or_cannot_take_it(void **state)
{
	struct ground *g = *state;
	struct fake_answer a;

	fake_post(g->m, &g->client, SLOW("1"), &a);
	mcp_call_progress(fake_held[0], 1, NULL);
	assert_int_equal(a.starts, 0);
	mcp_call_result(fake_held[0], "", NULL, false);
	fake_clear(&a);
	fake_post(g->m, &g->client, TOKEN("slow", "2", "null"), &a);
	mcp_call_progress(fake_held[1], 1, NULL);
	assert_int_equal(a.starts, 0);
	mcp_call_result(fake_held[1], "", NULL, false);
	fake_clear(&a);
	g->client.accept = "application/json";
	fake_post(g->m, &g->client, TOKEN("slow", "3", "1"), &a);
	mcp_call_progress(fake_held[2], 1, NULL);
	mcp_tick(g->m, clock_mono_ms() + 5000);
	mcp_call_result(fake_held[2], "", NULL, false);
	assert_int_equal(a.starts, 0);
	fake_expect(&a, 200, 0);
	fake_clear(&a);
}

static void
test_a_call_that_takes_a_second_gets_a_stream(void **state)
{
	struct ground *g = *state;
	struct fake_answer a, b;
	uint64_t before = clock_mono_ms();

	fake_post(g->m, &g->client, SLOW("1"), &a);
	fake_post(g->m, &g->client, SLOW("2"), &b);
	mcp_tick(g->m, before + 999);
	assert_int_equal(a.starts + b.starts, 0);
	mcp_tick(g->m, clock_mono_ms() + 1000);
	mcp_tick(g->m, clock_mono_ms() + 2000);
	assert_int_equal(a.starts, 1);
	assert_int_equal(b.starts, 1);
	mcp_call_result(fake_held[1], "two", NULL, false);
	mcp_call_result(fake_held[0], "one", NULL, false);
	fake_expect_has(a.event[0], "one");
	fake_expect_has(b.event[0], "two");
	fake_clear(&a);
	fake_clear(&b);
}

/* ---- cancelling ------------------------------------------------------- */

static void
count_cb(void *arg)
{
	++*(int *)arg;
}

static void
end_cb(void *arg)
{
	mcp_call_result(arg, "too late", NULL, false);
}

static void
test_a_cancelled_call_is_told_and_nothing_more_is_sent(void **state)
{
	struct ground *g = *state;
	struct fake_answer a;
	int told = 0;

	fake_post(g->m, &g->client, TOKEN("slow", "5", "1"), &a);
	mcp_call_on_cancel(fake_held[0], count_cb, &told);
	cancel(g, CANCEL("5"));
	assert_int_equal(told, 1);
	assert_int_equal(a.ends, 1);
	assert_int_equal(a.nevents, 0);
	assert_false(mcp_call_has_client(fake_held[0]));
	cancel(g, CANCEL("5"));
	assert_int_equal(told, 1);
	assert_int_equal(active(g), 1);
	mcp_call_progress(fake_held[0], 1, NULL);
	mcp_call_result(fake_held[0], "x", json_object(), false);
	assert_int_equal(a.nevents, 0);
	assert_int_equal(active(g), 0);
	fake_clear(&a);
}

static void
test_a_tool_may_end_its_call_while_it_is_told(void **state)
{
	struct ground *g = *state;
	struct fake_answer a;

	fake_post(g->m, &g->client, SLOW("\"five\""), &a);
	mcp_call_on_cancel(fake_held[0], end_cb, fake_held[0]);
	cancel(g, CANCEL("\"five\""));
	assert_int_equal(active(g), 0);
	assert_true(fake_is_over(&a));
	assert_null(a.body);
	fake_clear(&a);
}

static void
test_a_cancelled_call_of_a_json_client_ends_without_a_body(void **state)
{
	struct ground *g = *state;
	struct fake_answer a;

	g->client.accept = "application/json";
	fake_post(g->m, &g->client, SLOW("5"), &a);
	mcp_call_on_cancel(fake_held[0], end_cb, fake_held[0]);
	cancel(g, CANCEL("5"));
	assert_int_equal(a.status, 202);
	assert_null(a.body);
	fake_clear(&a);
}

static void
test_who_asks_late_about_a_cancel_is_told_at_once(void **state)
{
	struct ground *g = *state;
	struct fake_answer a;
	int told = 0;

	fake_post(g->m, &g->client, SLOW("5"), &a);
	cancel(g, CANCEL("5"));
	mcp_call_on_cancel(fake_held[0], count_cb, &told);
	assert_int_equal(told, 1);
	mcp_call_error(fake_held[0], MCP_INTERNAL_ERROR, "x", json_object());
	fake_clear(&a);
}

static void
test_only_the_named_request_of_the_session_is_cancelled(void **state)
{
	struct ground *g = *state;
	char *other = fake_session(g->m);
	struct fake_answer a, b;
	int told[2] = {0, 0};

	fake_post(g->m, &g->client, SLOW("5"), &a);
	g->client.session = other;
	fake_post(g->m, &g->client, SLOW("5"), &b);
	mcp_call_on_cancel(fake_held[0], count_cb, &told[0]);
	mcp_call_on_cancel(fake_held[1], count_cb, &told[1]);
	cancel(g, CANCEL("6"));
	cancel(g, CANCEL("\"5\""));
	assert_int_equal(told[0] + told[1], 0);
	cancel(g, CANCEL("5"));
	assert_int_equal(told[0], 0);
	assert_int_equal(told[1], 1);
	mcp_call_result(fake_held[0], "", NULL, false);
	mcp_call_result(fake_held[1], "", NULL, false);
	fake_expect(&a, 200, 0);
	fake_clear(&a);
	fake_clear(&b);
	free(other);
}

static void
test_a_call_that_ended_is_not_cancelled(void **state)
{
	struct ground *g = *state;
	struct fake_answer a;
	int told = 0;

	fake_post(g->m, &g->client, SLOW("5"), &a);
	mcp_call_on_cancel(fake_held[0], count_cb, &told);
	mcp_call_result(fake_held[0], "", NULL, false);
	cancel(g, CANCEL("5"));
	assert_int_equal(told, 0);
	fake_clear(&a);
}

/* ---- clients that leave ----------------------------------------------- */

static void
test_a_client_that_leaves_cancels_nothing(void **state)
{
	struct ground *g = *state;
	struct fake_answer a;
	int told = 0;

	fake_post(g->m, &g->client, TOKEN("slow", "5", "1"), &a);
	mcp_call_on_cancel(fake_held[0], count_cb, &told);
	mcp_client_gone(a.request);
	assert_int_equal(told, 0);
	assert_false(mcp_call_has_client(fake_held[0]));
	assert_int_equal(active(g), 1);
	mcp_call_progress(fake_held[0], 1, NULL);
	mcp_call_result(fake_held[0], "x", NULL, false);
	assert_int_equal(a.nevents + a.ends + a.replies, 0);
	fake_clear(&a);
}

static void
test_a_call_whose_client_left_can_be_cancelled_from_elsewhere(void **state)
{
	struct ground *g = *state;
	struct fake_answer a;
	int told = 0;

	fake_post(g->m, &g->client, SLOW("5"), &a);
	mcp_call_on_cancel(fake_held[0], count_cb, &told);
	mcp_client_gone(a.request);
	cancel(g, CANCEL("5"));
	assert_int_equal(told, 1);
	mcp_call_result(fake_held[0], "x", NULL, false);
	fake_clear(&a);
}

/* A transport that finds its connection closed while it is told to write. */
struct leaver {
	struct mcp_request *request;
	int told; /* calls of ops after the client left */
};

static void
leave_reply_cb(void *handle, int status, const char *session_id,
    const char *body, size_t len)
{
	(void)status;
	(void)session_id;
	(void)body;
	(void)len;
	((struct leaver *)handle)->told++;
}

static void
leave_start_cb(void *handle, const char *session_id)
{
	struct leaver *l = handle;

	(void)session_id;
	mcp_client_gone(l->request);
}

static void
leave_send_cb(void *handle, const char *data, size_t len)
{
	(void)data;
	(void)len;
	((struct leaver *)handle)->told++;
}

static void
leave_end_cb(void *handle)
{
	((struct leaver *)handle)->told++;
}

static const struct mcp_reply_ops leave_ops = {
    leave_reply_cb, leave_start_cb, leave_send_cb, leave_end_cb};

/* A call that waits, whose transport leaves when its stream is opened. */
static void
leaver_post(struct ground *g, struct leaver *l)
{
	static const char body[] = SLOW("5");
	struct mcp_http http = {.method = "POST",
	    .content_type = "application/json",
	    .accept = FAKE_BOTH,
	    .session_id = g->session,
	    .body = body,
	    .body_len = sizeof(body) - 1,
	    .principal = g->client.principal};

	l->request = mcp_handle(g->m, &http, &leave_ops, l);
	assert_non_null(l->request);
}

static void
test_a_client_may_leave_while_its_stream_is_opened(void **state)
{
	struct ground *g = *state;
	struct leaver l = {NULL, 0};

	leaver_post(g, &l);
	mcp_tick(g->m, clock_mono_ms() + 1000);
	assert_false(mcp_call_has_client(fake_held[0]));
	mcp_call_result(fake_held[0], "x", NULL, false);
	assert_int_equal(l.told, 0);
}

static void
test_a_client_may_leave_while_its_call_is_cancelled(void **state)
{
	struct ground *g = *state;
	struct leaver l = {NULL, 0};

	leaver_post(g, &l);
	cancel(g, CANCEL("5"));
	mcp_call_result(fake_held[0], "x", NULL, false);
	assert_int_equal(l.told, 0);
}

static void
test_the_server_may_go_before_its_calls(void **state)
{
	struct ground *g = *state;
	struct fake_answer a, b;

	fake_post(g->m, &g->client, SLOW("5"), &a);
	fake_post(g->m, &g->client, SLOW("6"), &b);
	mcp_client_gone(b.request);
	mcp_free(g->m);
	g->m = NULL;
	assert_false(mcp_call_has_client(fake_held[0]));
	mcp_call_progress(fake_held[0], 1, NULL);
	mcp_call_result(fake_held[0], "x", NULL, false);
	mcp_call_error(fake_held[1], MCP_INTERNAL_ERROR, "x", NULL);
	assert_int_equal(a.replies + a.starts, 0);
	fake_clear(&a);
	fake_clear(&b);
}

/* ---- bounds ----------------------------------------------------------- */

static void
test_an_id_in_use_is_refused_and_free_again_afterwards(void **state)
{
	struct ground *g = *state;
	struct fake_answer a, b;

	fake_post(g->m, &g->client, SLOW("5"), &a);
	fake_ask(g->m, &g->client, SLOW("5"), 400, MCP_INVALID_REQUEST);
	assert_int_equal(fake_called, 1);
	mcp_call_result(fake_held[0], "", NULL, false);
	fake_post(g->m, &g->client, SLOW("5"), &b);
	assert_int_equal(fake_called, 2);
	mcp_call_result(fake_held[1], "", NULL, false);
	fake_expect(&b, 200, 0);
	fake_clear(&a);
	fake_clear(&b);
}

static void
test_calls_in_flight_are_bounded_per_principal(void **state)
{
	struct ground *g = *state;
	char *bobs =
	    fake_session_of(g->m, "two/bob", FAKE_INITIALIZE("2025-11-25"));
	struct fake_answer a[INFLIGHT_PER_PRINCIPAL], b;
	struct fake_client bob = fake_client(bobs);
	char text[120];

	bob.principal = "two/bob";
	for (int i = 0; i < INFLIGHT_PER_PRINCIPAL; i++) {
		(void)snprintf(text, sizeof(text), SLOW("%d"), i);
		fake_post(g->m, &g->client, text, &a[i]);
		assert_non_null(a[i].request);
	}
	fake_ask(g->m, &g->client, SLOW("-1"), 429, MCP_SERVER_ERROR);
	assert_int_equal(active(g), INFLIGHT_PER_PRINCIPAL);
	fake_post(g->m, &bob, SLOW("0"), &b);
	assert_non_null(b.request);
	/* A client that left still has its work. */
	mcp_client_gone(a[0].request);
	fake_ask(g->m, &g->client, SLOW("-1"), 429, MCP_SERVER_ERROR);
	for (int i = 0; i <= INFLIGHT_PER_PRINCIPAL; i++)
		mcp_call_result(fake_held[i], "", NULL, false);
	assert_int_equal(active(g), 0);
	for (int i = 0; i < INFLIGHT_PER_PRINCIPAL; i++)
		fake_clear(&a[i]);
	fake_clear(&b);
	free(bobs);
}

#define WITH_GROUND(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    WITH_GROUND(test_a_call_that_ends_at_once_is_plain_json),
	    WITH_GROUND(
		test_an_error_of_a_tool_is_a_protocol_error_with_its_data),
	    WITH_GROUND(test_a_call_may_end_later),
	    WITH_GROUND(test_text_that_is_not_utf8_is_repaired),
	    WITH_GROUND(test_structured_content_that_is_no_object_is_left_out),
	    WITH_GROUND(test_the_caller_is_known_to_the_tool),
	    WITH_GROUND(
		test_a_waiting_call_with_a_token_gets_a_stream_with_progress),
	    WITH_GROUND(test_progress_that_does_not_grow_is_left_out),
	    WITH_GROUND(
		test_progress_is_not_sent_to_who_did_not_ask_or_cannot_take_it),
	    WITH_GROUND(test_a_call_that_takes_a_second_gets_a_stream),
	    WITH_GROUND(test_a_cancelled_call_is_told_and_nothing_more_is_sent),
	    WITH_GROUND(test_a_tool_may_end_its_call_while_it_is_told),
	    WITH_GROUND(
		test_a_cancelled_call_of_a_json_client_ends_without_a_body),
	    WITH_GROUND(test_who_asks_late_about_a_cancel_is_told_at_once),
	    WITH_GROUND(
		test_only_the_named_request_of_the_session_is_cancelled),
	    WITH_GROUND(test_a_call_that_ended_is_not_cancelled),
	    WITH_GROUND(test_a_client_that_leaves_cancels_nothing),
	    WITH_GROUND(
		test_a_call_whose_client_left_can_be_cancelled_from_elsewhere),
	    WITH_GROUND(test_a_client_may_leave_while_its_stream_is_opened),
	    WITH_GROUND(test_a_client_may_leave_while_its_call_is_cancelled),
	    WITH_GROUND(test_the_server_may_go_before_its_calls),
	    WITH_GROUND(test_an_id_in_use_is_refused_and_free_again_afterwards),
	    WITH_GROUND(test_calls_in_flight_are_bounded_per_principal),
	};

	return cmocka_run_group_tests_name("call", tests, NULL, NULL);
}
