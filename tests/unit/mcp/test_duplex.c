/* HTTP+SSE: a stream for answers, and messages that are POSTed beside it. */
#include "tests/unit/mcp/ladder.h"

#include "supervisor/mcp/duplex.h"
#include "supervisor/mcp/offer.h"

struct place {
	struct mcp *m;
	struct fake_client client; /* of messages */
	struct fake_answer stream;
	char *id;
};

static int
duplex_setup(void **state)
{
	struct place *p = xcalloc(1, sizeof(*p));

	p->m = fake_server();
	fake_add_tools(p->m);
	*state = p;
	return 0;
}

static int
duplex_teardown(void **state)
{
	struct place *p = *state;

	mcp_free(p->m);
	fake_clear(&p->stream);
	free(p->id);
	free(p);
	return fake_teardown(state);
}

static struct fake_client
opener(void)
{
	struct fake_client c = fake_client(NULL);

	c.accept = "text/event-stream";
	c.content_type = NULL;
	c.route = MCP_ROUTE_SSE;
	c.messages = "messages";
	return c;
}

static void
open_stream(struct place *p)
{
	struct fake_client c = opener();
	static const char before[] = "messages?sessionId=";

	fake_http(p->m, "GET", &c, NULL, 0, &p->stream);
	assert_int_equal(p->stream.starts, 1);
	assert_int_equal(
	    strncmp(p->stream.endpoint, before, strlen(before)), 0);
	p->id = xstrdup(p->stream.endpoint + strlen(before));
	assert_int_equal(strlen(p->id), 32);
	p->client = fake_client(NULL);
	p->client.accept = NULL;
	p->client.route = MCP_ROUTE_MESSAGES;
	p->client.stream = p->id;
}

static void
post(struct place *p, const char *body, int status)
{
	struct fake_answer a;

	fake_post(p->m, &p->client, body, &a);
	assert_int_equal(a.replies, 1);
	assert_int_equal(a.status, status);
	if (status == 202)
		assert_string_equal(a.body, "Accepted");
	assert_null(a.session);
	fake_clear(&a);
}

static const char *
last(const struct place *p)
{
	assert_true(p->stream.nevents > 0);
	return p->stream.event[p->stream.nevents - 1];
}

static void
begin(struct place *p, const char *initialize)
{
	open_stream(p);
	post(p, initialize, 202);
	assert_int_equal(p->stream.nevents, 1);
	post(p, NOTIFY, 202);
	assert_int_equal(p->stream.nevents, 1);
}

#define SLOW(id)                                                               \
	"{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"tools/call\","        \
	"\"params\":{\"name\":\"slow\",\"_meta\":{\"progressToken\":1}}}"

TEST(a_stream_begins_with_its_endpoint)
{
	open_stream(*state);
}

TEST(answers_are_events_of_the_stream)
{
	struct place *p = *state;

	begin(p, FAKE_INITIALIZE("2024-11-05"));
	fake_expect_has(last(p), "\"protocolVersion\":\"2024-11-05\"");
	assert_null(p->stream.event_id[0]);
	post(p, PING, 202);
	assert_string_equal(
	    last(p), "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}");
	post(p, CALL("echo", "{\"n\":5}"), 202);
	fake_expect_has(last(p), "echoed");
	post(p, CALL("none", "{}"), 202);
	fake_expect_has(last(p), "\"error\":{\"code\":-32602");
	assert_int_equal(p->stream.nevents, 4);
	assert_int_equal(p->stream.primes, 0);
}

TEST(any_revision_with_an_initialize_may_be_negotiated)
{
	struct place *p = *state;

	begin(p, FAKE_INITIALIZE("2025-11-25"));
	fake_expect_has(last(p), "\"protocolVersion\":\"2025-11-25\"");
	post(p, FAKE_INITIALIZE("2025-11-25"), 202);
	fake_expect_has(last(p), "\"code\":-32600");
}

TEST(before_initialize_there_is_little)
{
	struct place *p = *state;

	open_stream(p);
	post(p, PING, 202);
	fake_expect_has(last(p), "\"result\":{}");
	post(p, LIST, 202);
	fake_expect_has(last(p), "\"code\":-32600");
	fake_expect_has(last(p), "\"id\":2");
	post(p, NOTIFY, 202);
	assert_int_equal(p->stream.nevents, 2);
}

TEST(a_body_that_is_no_message_is_refused)
{
	struct place *p = *state;

	begin(p, FAKE_INITIALIZE("2025-03-26"));
	post(p, "{", 400);
	post(p, "[" PING "]", 400);
	post(p, "\"text\"", 400);
	p->client.content_type = "text/plain";
	post(p, PING, 415);
	assert_int_equal(p->stream.nevents, 1);
}

TEST(a_stream_is_of_its_principal_alone)
{
	struct place *p = *state;
	struct fake_answer a, b;

	begin(p, FAKE_INITIALIZE("2024-11-05"));
	p->client.who = fake_bob();
	fake_post(p->m, &p->client, PING, &a);
	fake_expect(&a, 404, MCP_SESSION_NOT_FOUND);
	p->client.who = &fake_alice;
	p->client.stream = "00000000000000000000000000000000";
	fake_post(p->m, &p->client, PING, &b);
	assert_string_equal(a.body, b.body);
	p->client.stream = NULL;
	post(p, PING, 404);
	p->client.stream = p->id;
	post(p, PING, 202);
	mcp_client_gone(p->stream.exchange);
	post(p, PING, 404);
	fake_clear(&a);
	fake_clear(&b);
}

TEST(progress_comes_before_the_answer)
{
	struct place *p = *state;

	begin(p, FAKE_INITIALIZE("2025-11-25"));
	post(p, SLOW("7"), 202);
	mcp_call_set_token(fake_held[0], "t", 1);
	mcp_tick(p->m, clock_mono_ms() + 1000);
	assert_int_equal(p->stream.nevents, 1);
	fake_progress(fake_held[0], 1, "half");
	fake_expect_has(last(p), "half");
	fake_done(fake_held[0], "done", NULL);
	fake_expect_has(last(p), "\"id\":7,\"result\"");
	assert_int_equal(p->stream.nevents, 3);
	assert_null(p->stream.event_id[2]); /* nobody could come back */
	assert_int_equal(p->stream.ends, 0);
}

TEST(the_end_of_the_stream_cancels_what_waits)
{
	struct place *p = *state;

	begin(p, FAKE_INITIALIZE("2024-11-05"));
	post(p, SLOW("7"), 202);
	post(p, SLOW("8"), 202);
	mcp_tick(p->m, clock_mono_ms() + 1000);
	post(p, SLOW("9"), 202);
	mcp_client_gone(p->stream.exchange);
	for (int i = 0; i < 3; i++) {
		assert_true(mcp_call_base(fake_held[i])->canceled);
		fake_done(fake_held[i], "late", NULL);
	}
	assert_int_equal(p->stream.nevents, 1);
}

TEST(a_cancel_leaves_the_stream)
{
	struct place *p = *state;

	begin(p, FAKE_INITIALIZE("2024-11-05"));
	post(p, SLOW("7"), 202);
	post(p,
	    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\","
	    "\"params\":{\"requestId\":7}}",
	    202);
	assert_true(mcp_call_base(fake_held[0])->canceled);
	fake_done(fake_held[0], "late", NULL);
	assert_int_equal(p->stream.nevents, 1);
	post(p, PING, 202);
	assert_int_equal(p->stream.nevents, 2);
}

TEST(requests_without_answers_are_bounded)
{
	struct place *p = *state;
	char body[200];

	begin(p, FAKE_INITIALIZE("2024-11-05"));
	for (int i = 0; i <= DUPLEX_REQUESTS_MAX; i++) {
		(void)snprintf(body, sizeof(body), SLOW("%d"), i);
		post(p, body, i < DUPLEX_REQUESTS_MAX ? 202 : 429);
	}
	fake_done(fake_held[0], "", NULL);
	post(p, PING, 202);
	mcp_client_gone(p->stream.exchange);
	for (int i = 1; i < DUPLEX_REQUESTS_MAX; i++)
		fake_done(fake_held[i], "", NULL);
}

TEST(a_client_that_does_not_read_is_bounded)
{
	struct place *p = *state;

	begin(p, FAKE_INITIALIZE("2024-11-05"));
	post(p, SLOW("7"), 202);
	fake_progress(fake_held[0], 1, "told");
	p->stream.pending = DUPLEX_PENDING_MAX + 1;
	post(p, PING, 429);
	fake_progress(fake_held[0], 2, "left out");
	assert_int_equal(p->stream.nevents, 2);
	p->stream.pending = DUPLEX_BREAK_BYTES + 1;
	fake_done(fake_held[0], "never read", NULL);
	assert_int_equal(p->stream.ends, 1);
	post(p, PING, 404);
}

TEST(a_session_is_told_on_its_only_stream)
{
	struct place *p = *state;

	begin(p, FAKE_INITIALIZE("2024-11-05"));
	post(p,
	    "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"logging/setLevel\","
	    "\"params\":{\"level\":\"info\"}}",
	    202);
	post(p, SLOW("7"), 202);
	mcp_call_log(fake_held[0], MCP_ERROR, NULL, json_string("words"));
	fake_expect_has(last(p), "\"data\":\"words\"");
	fake_done(fake_held[0], "", NULL);
}

TEST(a_drain_waits_for_answers)
{
	struct place *p = *state;
	struct place other = {.m = p->m};

	open_stream(&other);
	begin(p, FAKE_INITIALIZE("2024-11-05"));
	post(p, SLOW("7"), 202);
	mcp_drain(p->m);
	assert_int_equal(other.stream.ends, 1);
	assert_int_equal(p->stream.ends, 0);
	post(p, PING, 404);
	fake_done(fake_held[0], "done", NULL);
	fake_expect_has(last(p), "done");
	assert_int_equal(p->stream.ends, 1);
	fake_clear(&other.stream);
	free(other.id);
}

TEST(the_server_may_end_before_its_streams)
{
	struct place *p = *state;

	begin(p, FAKE_INITIALIZE("2024-11-05"));
	post(p, SLOW("7"), 202);
	mcp_free(p->m);
	p->m = NULL;
	assert_false(mcp_call_base(fake_held[0])->canceled);
	fake_done(fake_held[0], "", NULL);
}

TEST(silence_is_broken)
{
	struct place *p = *state;

	open_stream(p);
	mcp_tick(p->m, clock_mono_ms() + FAKE_HEARTBEAT_MS);
	assert_int_equal(p->stream.beats, 1);
}

/* What waits in the stream ends with it. */
TEST(a_client_may_be_found_gone_when_silence_is_broken)
{
	struct place *p = *state;

	begin(p, FAKE_INITIALIZE("2024-11-05"));
	post(p, SLOW("5"), 202);
	fake_progress(fake_held[0], 1, NULL);
	assert_int_equal(p->stream.nevents, 2);
	p->stream.leaves = true;
	mcp_tick(p->m, clock_mono_ms() + FAKE_HEARTBEAT_MS);
	assert_false(p->stream.leaves);
	assert_true(mcp_call_base(fake_held[0])->canceled);
	fake_done(fake_held[0], "late", NULL);
	assert_int_equal(p->stream.nevents, 2);
	post(p, PING, 404);
}

static void
tell_other_cb(struct call *call, void *arg)
{
	(void)call;
	(void)arg;
	fake_progress(fake_held[1], 1, NULL);
}

TEST(a_client_may_be_found_gone_while_its_notification_is_served)
{
	struct place *p = *state;

	begin(p, FAKE_INITIALIZE("2024-11-05"));
	post(p, SLOW("5"), 202);
	post(p, SLOW("6"), 202);
	call_hold(mcp_call_base(fake_held[0]), tell_other_cb, NULL);
	p->stream.leaves = true;
	post(p,
	    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\","
	    "\"params\":{\"requestId\":5}}",
	    202);
	assert_false(p->stream.leaves);
	assert_true(mcp_call_base(fake_held[1])->canceled);
	fake_done(fake_held[0], "late", NULL);
	fake_done(fake_held[1], "late", NULL);
	assert_int_equal(p->stream.nevents, 1);
}

/* ---- on MCP_PATH */

static void
get_main(struct place *p, const struct fake_client *c, int status)
{
	struct fake_answer a;

	fake_http(p->m, "GET", c, NULL, 0, &a);
	if (status == 200) {
		assert_non_null(a.endpoint);
		mcp_client_gone(a.exchange);
	} else {
		assert_int_equal(a.status, status);
	}
	fake_clear(&a);
}

TEST(a_get_without_a_session_opens_a_stream_for_old_clients_alone)
{
	struct fake_client c = opener();

	c.route = MCP_ROUTE_MAIN;
	get_main(*state, &c, 200);
	c.version = "2025-11-25";
	get_main(*state, &c, 405);
	c.version = NULL;
	c.last_event_id = "x";
	get_main(*state, &c, 405);
	c.last_event_id = NULL;
	c.accept = "*/*";
	get_main(*state, &c, 405);
	c.accept = NULL;
	get_main(*state, &c, 405);
	c.accept = "text/event-stream";
	c.messages = NULL;
	get_main(*state, &c, 405);
}

TEST_MAIN(duplex_setup, duplex_teardown)
