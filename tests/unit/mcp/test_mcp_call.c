/* The life of a tool call: its result, streams, progress, bounds. */
#include <math.h>

#include "tests/unit/mcp/call_ground.h"

#include "supervisor/mcp/mcp_call.h"
#include "supervisor/mcp/offer.h"

TEST(a_call_that_ends_at_once_is_plain_json)
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

TEST(a_call_may_end_later)
{
	struct ground *g = *state;
	struct mcp_content *content;
	struct fake_answer a;

	fake_post(g->m, &g->client, SLOW("\"x\""), &a);
	assert_non_null(a.exchange);
	assert_int_equal(active(), 1);
	content = mcp_content_new();
	mcp_content_text(content, "do", 2);
	mcp_content_text(content, "ne", 2);
	mcp_call_result(fake_held[0], content, MCP_TOOL_FAILED);
	assert_string_equal(a.body,
	    "{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"result\":{\"content\":[{"
	    "\"type\":\"text\",\"text\":\"do\"},{\"type\":\"text\","
	    "\"text\":\"ne\"}],\"isError\":true}}");
	assert_int_equal(active(), 0);
	fake_clear(&a);
}

TEST(an_image_is_a_block_in_base64_behind_the_text)
{
	struct ground *g = *state;
	struct mcp_content *content = mcp_content_new();
	struct fake_answer a;

	fake_post(g->m, &g->client, SLOW("1"), &a);
	mcp_content_text(content, "t", 1);
	mcp_content_image(content, "\x89PNG\0", 5, "image/png");
	mcp_call_result(fake_held[0], content, MCP_TOOL_DONE);
	fake_expect_has(a.body,
	    "[{\"type\":\"text\",\"text\":\"t\"},{\"type\":\"image\","
	    "\"data\":\"iVBORwA=\",\"mimeType\":\"image/png\"}]");
	fake_clear(&a);
}

TEST(a_call_has_the_meta_of_its_request)
{
	struct ground *g = *state;
	struct fake_answer a, b;

	fake_post(g->m, &g->client, TOKEN("slow", "1", "7"), &a);
	assert_int_equal(json_integer_value(json_object_get(
			     mcp_call_meta(fake_held[0]), "progressToken")),
	    7);
	fake_post(g->m, &g->client, SLOW("2"), &b);
	assert_null(mcp_call_meta(fake_held[1]));
	fake_done(fake_held[0], "", NULL);
	fake_done(fake_held[1], "", NULL);
	fake_clear(&a);
	fake_clear(&b);
}

TEST(text_that_is_not_utf8_is_repaired)
{
	struct ground *g = *state;
	struct fake_answer a;

	fake_post(g->m, &g->client, SLOW("1"), &a);
	fake_done(fake_held[0], "a\xff\nb", NULL);
	fake_expect_has(a.body, "\"text\":\"a\xef\xbf\xbd\\nb\"");
	fake_clear(&a);
}

TEST(structured_content_that_is_no_object_is_left_out)
{
	struct ground *g = *state;
	struct fake_answer a;

	fake_post(g->m, &g->client, SLOW("1"), &a);
	fake_done(fake_held[0], "t", json_array());
	assert_null(strstr(a.body, "structuredContent"));
	fake_clear(&a);
}

TEST(the_caller_is_known_to_the_tool)
{
	struct ground *g = *state;
	const struct call *base;
	struct fake_answer a;
	unsigned int before;

	fake_post(g->m, &g->client, SLOW("1"), &a);
	base = mcp_call_base(fake_held[0]);
	assert_ptr_equal(base->who, &fake_alice);
	assert_string_equal(base->request_id, "http-1");
	before = fake_alice.refs;
	fake_done(fake_held[0], "", NULL);
	/* Its own reference, and that of the count of its calls. */
	assert_int_equal(fake_alice.refs, before - 2);
	fake_clear(&a);
}

TEST(a_waiting_call_gets_a_stream_with_its_first_progress)
{
	struct ground *g = *state;
	struct fake_answer a;

	fake_post(g->m, &g->client, TOKEN("slow", "7", "9007199254740993"), &a);
	assert_int_equal(a.starts, 0);
	assert_true(call_wants_progress(mcp_call_base(fake_held[0])));
	fake_progress(fake_held[0], 1, "half\n\xff");
	assert_int_equal(a.starts, 1);
	assert_null(a.session);
	fake_progress(fake_held[0], 2, NULL);
	fake_done(fake_held[0], "done", NULL);
	assert_int_equal(a.nevents, 3);
	assert_string_equal(a.event[0],
	    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\","
	    "\"params\":{\"progressToken\":9007199254740993,\"progress\":1,"
	    "\"message\":\"half\\n\xef\xbf\xbd\"}}");
	assert_string_equal(a.event[1],
	    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\","
	    "\"params\":{\"progressToken\":9007199254740993,"
	    "\"progress\":2}}");
	fake_expect_has(a.event[2], "\"id\":7,\"result\"");
	assert_int_equal(a.ends, 1);
	assert_int_equal(a.replies, 0);
	fake_clear(&a);
}

TEST(progress_that_does_not_grow_is_left_out)
{
	struct ground *g = *state;
	struct fake_answer a;

	fake_post(g->m, &g->client, TOKEN("slow", "7", "\"t\""), &a);
	fake_progress(fake_held[0], 0, NULL);
	fake_expect_has(a.event[0], "\"progress\":0}");
	fake_progress(fake_held[0], 2, NULL);
	fake_progress(fake_held[0], 2, NULL);
	fake_progress(fake_held[0], 1, NULL);
	fake_progress(fake_held[0], UINT64_MAX, NULL); /* no JSON integer */
	assert_int_equal(a.nevents, 2);
	fake_progress(fake_held[0], 3, NULL);
	assert_int_equal(a.nevents, 3);
	fake_fail(fake_held[0], "e");
	fake_expect_has(a.event[3], "\"isError\":true");
	fake_clear(&a);
}

TEST(progress_may_have_a_total_and_fractions)
{
	struct ground *g = *state;
	struct fake_answer a;

	fake_post(g->m, &g->client, TOKEN("slow", "5", "1"), &a);
	mcp_call_progress(fake_held[0], 0, 100, NULL);
	fake_expect_has(a.event[0], "\"progress\":0,\"total\":100}");
	mcp_call_progress(fake_held[0], 0.5, 0.75, "half");
	fake_expect_has(a.event[1],
	    "\"progress\":0.5,\"total\":0.75,\"message\":\"half\"}");
	mcp_call_progress(fake_held[0], 0.5, 1, NULL);
	mcp_call_progress(fake_held[0], 0.25, 1, NULL);
	mcp_call_progress(fake_held[0], NAN, 1, NULL);
	mcp_call_progress(fake_held[0], INFINITY, 1, NULL);
	assert_int_equal(a.nevents, 2);
	mcp_call_progress(fake_held[0], 50, NAN, NULL);
	fake_expect_has(a.event[2], "\"progress\":50}");
	fake_progress(fake_held[0], 50, NULL);
	fake_progress(fake_held[0], 51, NULL);
	assert_int_equal(a.nevents, 4);
	fake_done(fake_held[0], "", NULL);
	fake_clear(&a);
}

TEST(progress_gives_way_to_a_client_that_does_not_read)
{
	struct ground *g = *state;
	struct fake_answer a;

	fake_post(g->m, &g->client, TOKEN("slow", "7", "\"t\""), &a);
	mcp_tick(g->m, clock_mono_ms() + 1000);
	a.pending = MCP_PROGRESS_PENDING_MAX + 1;
	fake_progress(fake_held[0], 1, "lost");
	assert_int_equal(a.nevents, 0);
	a.pending = MCP_PROGRESS_PENDING_MAX;
	fake_progress(fake_held[0], 2, "seen");
	assert_int_equal(a.nevents, 1);
	fake_expect_has(a.event[0], "seen");
	a.pending = MCP_PROGRESS_PENDING_MAX + 1;
	fake_done(fake_held[0], "never lost", NULL);
	fake_expect_has(a.event[1], "never lost");
	fake_clear(&a);
}

TEST(progress_is_not_sent_to_who_did_not_ask_or_cannot_take_it)
{
	struct ground *g = *state;
	struct fake_answer a;

	fake_post(g->m, &g->client, SLOW("1"), &a);
	fake_progress(fake_held[0], 1, NULL);
	assert_int_equal(a.starts, 0);
	fake_done(fake_held[0], "", NULL);
	fake_clear(&a);
	fake_post(g->m, &g->client, TOKEN("slow", "2", "null"), &a);
	fake_progress(fake_held[1], 1, NULL);
	assert_int_equal(a.starts, 0);
	fake_done(fake_held[1], "", NULL);
	fake_clear(&a);
	g->client.accept = "application/json";
	fake_post(g->m, &g->client, TOKEN("slow", "3", "1"), &a);
	fake_progress(fake_held[2], 1, NULL);
	mcp_tick(g->m, clock_mono_ms() + 5000);
	fake_done(fake_held[2], "", NULL);
	assert_int_equal(a.starts, 0);
	fake_expect(&a, 200, 0);
	fake_clear(&a);
}

TEST(a_call_that_takes_a_second_gets_a_stream)
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
	fake_done(fake_held[1], "two", NULL);
	fake_done(fake_held[0], "one", NULL);
	fake_expect_has(a.event[0], "one");
	fake_expect_has(b.event[0], "two");
	fake_clear(&a);
	fake_clear(&b);
}

TEST(a_silent_stream_shows_that_it_lives)
{
	struct ground *g = *state;
	struct fake_answer a;
	uint64_t now;

	fake_post(g->m, &g->client, TOKEN("slow", "7", "1"), &a);
	now = clock_mono_ms() + FAKE_HEARTBEAT_MS;
	mcp_tick(g->m, now - FAKE_HEARTBEAT_MS / 2);
	assert_int_equal(a.beats, 0);
	mcp_tick(g->m, now);
	mcp_tick(g->m, now + 1);
	assert_int_equal(a.beats, 1);
	a.pending = 1; /* bytes that wait prove as much */
	mcp_tick(g->m, now + FAKE_HEARTBEAT_MS);
	assert_int_equal(a.beats, 1);
	fake_done(fake_held[0], "done", NULL);
	mcp_tick(g->m, now + 3 * (uint64_t)FAKE_HEARTBEAT_MS);
	assert_int_equal(a.beats, 1);
	fake_clear(&a);
}

/* ---- bounds */

TEST(an_id_in_use_is_refused_and_free_again_afterwards)
{
	struct ground *g = *state;
	struct fake_answer a, b;

	fake_post(g->m, &g->client, SLOW("5"), &a);
	fake_ask(g->m, &g->client, SLOW("5"), 400, MCP_INVALID_REQUEST);
	assert_int_equal(fake_called, 1);
	fake_done(fake_held[0], "", NULL);
	fake_post(g->m, &g->client, SLOW("5"), &b);
	assert_int_equal(fake_called, 2);
	fake_done(fake_held[1], "", NULL);
	fake_expect(&b, 200, 0);
	fake_clear(&a);
	fake_clear(&b);
}

TEST(calls_in_flight_are_bounded_per_principal)
{
	struct ground *g = *state;
	char *bobs =
	    fake_session_of(g->m, fake_bob(), FAKE_INITIALIZE("2025-11-25"));
	struct fake_answer a[MCP_CALLS_PER_PRINCIPAL], b;
	struct fake_client bob = fake_client(bobs);
	char text[120];

	bob.who = fake_bob();
	for (int i = 0; i < MCP_CALLS_PER_PRINCIPAL; i++) {
		(void)snprintf(text, sizeof(text), SLOW("%d"), i);
		fake_post(g->m, &g->client, text, &a[i]);
		assert_non_null(a[i].exchange);
	}
	fake_ask(g->m, &g->client, SLOW("-1"), 429, MCP_SERVER_ERROR);
	assert_int_equal(active(), MCP_CALLS_PER_PRINCIPAL);
	fake_post(g->m, &bob, SLOW("0"), &b);
	assert_non_null(b.exchange);
	/* A client that left still has its work. */
	mcp_client_gone(a[0].exchange);
	fake_ask(g->m, &g->client, SLOW("-1"), 429, MCP_SERVER_ERROR);
	for (int i = 0; i <= MCP_CALLS_PER_PRINCIPAL; i++)
		fake_done(fake_held[i], "", NULL);
	assert_int_equal(active(), 0);
	for (int i = 0; i < MCP_CALLS_PER_PRINCIPAL; i++)
		fake_clear(&a[i]);
	fake_clear(&b);
	free(bobs);
}

TEST_MAIN(setup, teardown)
