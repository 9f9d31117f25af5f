/* Several messages in one POST: what a session of 2025-03-26 may send. */
#include "supervisor/mcp/batch.h"
#include "supervisor/mcp/rpc.h"
#include "tests/unit/mcp/fake.h"
#include "tests/unit/test.h"

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
	g->session =
	    fake_session_of(g->m, &fake_alice, FAKE_INITIALIZE("2025-03-26"));
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

#define PING "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}"
#define LIST "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/list\"}"
#define NOTIFY "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}"
#define ECHO                                                                   \
	"{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"tools/call\","             \
	"\"params\":{\"name\":\"echo\"}}"
#define CLAIMED                                                                \
	"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/list\",\"params\":{" \
	"\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":"              \
	"\"2026-07-28\"}}}"
#define SLOW(id)                                                               \
	"{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"tools/call\","        \
	"\"params\":{\"name\":\"slow\"}}"
#define RESPONSE "{\"jsonrpc\":\"2.0\",\"id\":9,\"result\":{}}"
#define CANCEL(id)                                                             \
	"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\","         \
	"\"params\":{\"requestId\":" id "}}"

/* The answer of this id, in an array. */
static const json_t *
answer_of(const json_t *answers, int id)
{
	const json_t *one;
	size_t i;

	json_array_foreach (answers, i, one)
		if (json_integer_value(json_object_get(one, "id")) == id)
			return one;
	fail_msg("no answer has id %d", id);
	return NULL;
}

/* What a plain answer has. */
static const json_t *
answers_of(const struct fake_answer *a, size_t n)
{
	const json_t *all;

	assert_int_equal(a->replies, 1);
	assert_int_equal(a->starts, 0);
	assert_int_equal(a->status, 200);
	all = fake_parse(a->body);
	assert_int_equal(json_array_size(all), n);
	return all;
}

TEST(each_request_of_a_batch_has_its_answer)
{
	struct ground *g = *state;
	struct fake_answer a;
	const json_t *all;

	fake_post(g->m, &g->client,
	    "[" PING "," CANCEL("99") "," LIST "," RESPONSE "]", &a);
	all = answers_of(&a, 2);
	assert_non_null(json_object_get(answer_of(all, 1), "result"));
	assert_non_null(json_object_get(
	    json_object_get(answer_of(all, 2), "result"), "tools"));
	fake_clear(&a);
}

TEST(an_error_of_one_is_in_the_array_with_the_others)
{
	struct ground *g = *state;
	struct fake_answer a;
	const json_t *all;

	fake_post(g->m, &g->client,
	    "[" PING ",{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"no/such\"}]",
	    &a);
	all = answers_of(&a, 2);
	assert_int_equal(
	    json_integer_value(json_object_get(
		json_object_get(answer_of(all, 5), "error"), "code")),
	    MCP_METHOD_NOT_FOUND);
	fake_clear(&a);
}

TEST(a_batch_without_requests_is_accepted)
{
	static const char *const texts[] = {
	    "[" NOTIFY "]", "[" RESPONSE "]", "[" NOTIFY "," RESPONSE "]"};
	struct ground *g = *state;
	struct fake_answer a;

	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		fake_post(g->m, &g->client, texts[i], &a);
		assert_int_equal(a.replies, 1);
		assert_int_equal(a.status, 202);
		assert_null(a.body);
		fake_clear(&a);
	}
	g->client.accept = "text/event-stream";
	fake_post(g->m, &g->client, "[" NOTIFY "]", &a);
	assert_int_equal(a.status, 202);
	fake_clear(&a);
}

/* And nothing of it is done. */
TEST(what_is_no_batch_is_refused_as_a_whole)
{
	static const char *const bad[] = {"[]", "[7]", "[" ECHO ",7]",
	    "[" ECHO ",[" PING "]]",
	    "[" ECHO ",{\"jsonrpc\":\"2.0\",\"id\":1.5,"
	    "\"method\":\"ping\"}]",
	    "[" ECHO ",{}]", "[" ECHO "," FAKE_INITIALIZE("2025-03-26") "]",
	    "[" ECHO "," CLAIMED "]"};
	struct ground *g = *state;
	struct fake_answer a;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		fake_post(g->m, &g->client, bad[i], &a);
		fake_expect(&a, 400, MCP_INVALID_REQUEST);
		assert_null(json_object_get(fake_seen, "id"));
		assert_null(a.session);
		fake_clear(&a);
	}
	assert_int_equal(fake_called, 0);
}

TEST(only_sessions_of_2025_03_26_send_batches)
{
	static const char *const others[] = {FAKE_INITIALIZE("2024-11-05"),
	    FAKE_INITIALIZE("2025-06-18"), FAKE_INITIALIZE("2025-11-25")};
	struct ground *g = *state;
	struct fake_client c = fake_client(NULL);
	struct fake_answer a;

	for (size_t i = 0; i < ARRAY_LEN(others); i++) {
		char *s = fake_session_of(g->m, &fake_alice, others[i]);

		c.session = s;
		fake_post(g->m, &c, "[" ECHO "," NOTIFY "]", &a);
		fake_expect(&a, 400, MCP_INVALID_REQUEST);
		assert_null(json_object_get(fake_seen, "id"));
		fake_clear(&a);
		free(s);
	}
	c.session = NULL;
	fake_ask(g->m, &c, "[" PING "]", 400, MCP_INVALID_REQUEST);
	c.session = "made-up";
	fake_ask(g->m, &c, "[" PING "]", 404, MCP_SESSION_NOT_FOUND);
	c = g->client;
	c.version = "2026-07-28";
	fake_ask(g->m, &c, "[" PING "]", 400, MCP_INVALID_REQUEST);
	c.version = "1999-01-01";
	fake_ask(g->m, &c, "[" PING "]", 400, MCP_SERVER_ERROR);
	assert_int_equal(fake_called, 0);
}

TEST(the_answer_waits_for_the_last_request)
{
	struct ground *g = *state;
	struct fake_answer a;
	const json_t *all;

	fake_post(g->m, &g->client, "[" SLOW("1") "," SLOW("2") "]", &a);
	assert_non_null(a.exchange);
	fake_done(fake_held[1], "two", NULL);
	assert_int_equal(a.replies, 0);
	fake_done(fake_held[0], "one", NULL);
	all = answers_of(&a, 2);
	assert_non_null(answer_of(all, 1));
	assert_non_null(answer_of(all, 2));
	fake_clear(&a);
}

/* One that runs for a second opens it: each answer is a message then. */
TEST(a_long_request_makes_a_stream_of_all_answers)
{
	struct ground *g = *state;
	struct fake_answer a;

	fake_post(
	    g->m, &g->client, "[" PING "," SLOW("5") "," SLOW("6") "]", &a);
	mcp_tick(g->m, clock_mono_ms() + 5000);
	assert_int_equal(a.starts, 1);
	assert_int_equal(a.nevents, 1);
	fake_expect_has(a.event[0], "\"id\":1,\"result\":{}");
	fake_done(fake_held[1], "six", NULL);
	assert_int_equal(a.nevents, 2);
	fake_expect_has(a.event[1], "\"id\":6");
	assert_int_equal(a.ends, 0);
	fake_done(fake_held[0], "five", NULL);
	assert_int_equal(a.nevents, 3);
	assert_int_equal(a.ends, 1);
	assert_int_equal(a.replies, 0);
	fake_clear(&a);
}

TEST(a_client_that_takes_only_streams_gets_one)
{
	struct ground *g = *state;
	struct fake_answer a;

	g->client.accept = "text/event-stream";
	fake_post(g->m, &g->client, "[" PING "," LIST "]", &a);
	assert_int_equal(a.replies, 0);
	assert_int_equal(a.nevents, 2);
	assert_int_equal(a.ends, 1);
	fake_clear(&a);
}

TEST(progress_of_a_request_goes_into_the_stream)
{
	static const char text[] =
	    "[{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"tools/call\","
	    "\"params\":{\"name\":\"slow\",\"_meta\":{\"progressToken\":\"p\"}}"
	    "}]";
	struct ground *g = *state;
	struct fake_answer a;

	fake_post(g->m, &g->client, text, &a);
	fake_progress(fake_held[0], 1, "m");
	assert_int_equal(a.starts, 1);
	assert_int_equal(a.nevents, 1);
	fake_expect_has(a.event[0], "\"progressToken\":\"p\"");
	/* What may be left out is, when the client does not read. */
	a.pending = MCP_PROGRESS_PENDING_MAX + 1;
	fake_progress(fake_held[0], 2, "m");
	assert_int_equal(a.nevents, 1);
	fake_done(fake_held[0], "x", NULL);
	assert_int_equal(a.nevents, 2);
	assert_int_equal(a.ends, 1);
	fake_clear(&a);
}

TEST(a_request_of_the_batch_can_be_cancelled)
{
	struct ground *g = *state;
	struct fake_answer a, b;

	g->client.accept = "application/json";
	fake_post(g->m, &g->client, "[" SLOW("1") "," PING "]", &a);
	assert_int_equal(a.replies, 0);
	/* By a later one, which is of the same session. */
	fake_post(g->m, &g->client, "[" CANCEL("1") "]", &b);
	assert_int_equal(b.status, 202);
	fake_clear(&b);
	assert_true(mcp_call_base(fake_held[0])->canceled);
	fake_done(fake_held[0], "late", NULL);
	(void)answers_of(&a, 1);
	fake_clear(&a);
	/* And by another message of its own batch. */
	fake_post(g->m, &g->client, "[" SLOW("3") "," CANCEL("3") "]", &a);
	assert_int_equal(a.status, 202);
	assert_null(a.body);
	fake_done(fake_held[1], "late", NULL);
	fake_clear(&a);
}

TEST(the_requests_go_on_without_their_client)
{
	struct ground *g = *state;
	struct fake_answer a;

	fake_post(g->m, &g->client, "[" SLOW("1") "," SLOW("2") "]", &a);
	fake_done(fake_held[0], "one", NULL);
	mcp_client_gone(a.exchange);
	mcp_tick(g->m, clock_mono_ms() + 5000);
	assert_false(mcp_call_base(fake_held[1])->canceled);
	fake_done(fake_held[1], "two", NULL);
	assert_int_equal(a.replies + a.starts, 0);
	fake_clear(&a);
}

TEST(the_requests_outlive_the_server)
{
	struct mcp *m = fake_server();
	struct ground *g = *state;
	struct fake_answer a;

	fake_add_tools(m);
	fake_post(m, &g->client, "[" SLOW("1") "," PING "]", &a);
	mcp_free(m);
	fake_done(fake_held[0], "late", NULL);
	assert_int_equal(a.replies + a.starts, 0);
	fake_clear(&a);
}

TEST(a_batch_is_bounded)
{
	struct ground *g = *state;
	char *text = xmalloc((RPC_BATCH_MAX + 2) * (strlen(NOTIFY) + 1));
	struct fake_answer a;
	char *p = text;

	for (int i = 0; i < RPC_BATCH_MAX; i++) {
		*p++ = i == 0 ? '[' : ',';
		p = stpcpy(p, NOTIFY);
	}
	memcpy(p, "]", 2);
	fake_post(g->m, &g->client, text, &a);
	assert_int_equal(a.status, 202);
	fake_clear(&a);
	*p++ = ',';
	p = stpcpy(p, NOTIFY);
	memcpy(p, "]", 2);
	fake_post(g->m, &g->client, text, &a);
	fake_expect(&a, 400, MCP_INVALID_REQUEST);
	fake_expect_has(a.body, "a batch of 101 messages: send at most 100");
	fake_clear(&a);
	free(text);
}

/* A tool whose answer is 3 MiB. */
static void
large_cb(struct mcp_call *c, json_t *arguments, void *arg)
{
	const size_t n = 3u << 20;
	struct mcp_content *content = mcp_content_new();
	char *text = xmalloc(n);

	(void)arguments;
	(void)arg;
	memset(text, 'x', n);
	mcp_content_text(content, text, n);
	mcp_call_result(c, content, MCP_TOOL_DONE);
	free(text);
}

#define LARGE(id)                                                              \
	"{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"tools/call\","        \
	"\"params\":{\"name\":\"large\"}}"

/* Three answers are more than BATCH_BYTES_MAX: they do not wait, or the last
 * is none. */
TEST(answers_that_are_large_together_are_not_kept)
{
	static const char text[] =
	    "[" LARGE("1") "," LARGE("2") "," LARGE("3") "]";
	struct ground *g = *state;
	struct fake_answer a;
	const json_t *all;

	fake_add(g->m,
	    "{\"name\":\"large\",\"description\":\"d\",\"inputSchema\":{"
	    "\"type\":\"object\"}}",
	    large_cb);
	fake_post(g->m, &g->client, text, &a);
	assert_int_equal(a.nevents, 3);
	assert_int_equal(a.ends, 1);
	fake_clear(&a);
	g->client.accept = "application/json";
	fake_post(g->m, &g->client, text, &a);
	all = answers_of(&a, 3);
	assert_non_null(json_object_get(answer_of(all, 2), "result"));
	assert_int_equal(
	    json_integer_value(json_object_get(
		json_object_get(answer_of(all, 3), "error"), "code")),
	    MCP_INTERNAL_ERROR);
	fake_clear(&a);
}

TEST_MAIN(setup, teardown)
