/* Answers that outlive their connection: ids of events, and GET with one. */
#include "tests/unit/mcp/call_ground.h"

#include "supervisor/mcp/event_id.h"

#define TOKEN_TEXT "0123456789abcdef"

static struct mcp_call *resumed;
static char resumed_token[MCP_TOKEN_MAX + 1];
static int nresumed;

static void
on_resume(struct mcp_call *c, const void *token, size_t n, void *arg)
{
	(void)arg;
	assert_true(n <= MCP_TOKEN_MAX);
	memcpy(resumed_token, token, n);
	resumed_token[n] = '\0';
	resumed = c;
	nresumed++;
}

static int
resume_setup(void **state)
{
	struct ground *g;
	struct err e;

	(void)setup(state);
	g = *state;
	assert_int_equal(mcp_tool_on_resume(g->m, "slow", on_resume, &e), 0);
	resumed = NULL;
	nresumed = 0;
	return 0;
}

/* A call whose stream was opened after its second, with a token. */
static void
start_call(struct ground *g, const char *body, struct fake_answer *a)
{
	fake_post(g->m, &g->client, body, a);
	mcp_call_set_token(
	    fake_held[fake_nheld - 1], TOKEN_TEXT, strlen(TOKEN_TEXT));
	mcp_tick(g->m, clock_mono_ms() + 1000);
	assert_int_equal(a->starts, 1);
}

static void
get(struct ground *g, const char *last_event_id, struct fake_answer *a)
{
	struct fake_client c = g->client;

	c.accept = "text/event-stream";
	c.content_type = NULL;
	c.last_event_id = last_event_id;
	fake_http(g->m, "GET", &c, NULL, 0, a);
}

static void
expect_refused(struct ground *g, const char *id, int status)
{
	struct fake_answer a;

	get(g, id, &a);
	assert_int_equal(a.replies, 1);
	assert_int_equal(a.status, status);
	assert_int_equal(a.starts, 0);
	fake_clear(&a);
	assert_int_equal(nresumed, 0);
}

/* The server is another one, with the same key. */
static void
restart(struct ground *g)
{
	struct err e;

	mcp_free(g->m);
	g->m = fake_server();
	fake_add_tools(g->m);
	assert_int_equal(mcp_tool_on_resume(g->m, "slow", on_resume, &e), 0);
}

TEST(a_long_call_is_primed_with_an_id)
{
	struct ground *g = *state;
	struct fake_answer a;

	fake_post(g->m, &g->client, SLOW("1"), &a);
	mcp_call_set_token(fake_held[0], TOKEN_TEXT, 16);
	assert_int_equal(a.starts, 0); /* not before it is long */
	mcp_tick(g->m, clock_mono_ms() + 1000);
	assert_int_equal(a.primes, 1);
	assert_int_equal(a.retry_ms, 1000);
	fake_done(fake_held[0], "done", NULL);
	assert_int_equal(a.nevents, 1);
	assert_non_null(a.event_id[0]);
	assert_string_not_equal(a.event_id[0], a.primed);
	assert_true(strlen(a.primed) <= 512);
	fake_clear(&a);
}

TEST(a_token_set_late_primes_the_stream_that_is_open)
{
	struct ground *g = *state;
	struct fake_answer a;

	fake_post(g->m, &g->client, SLOW("1"), &a);
	mcp_tick(g->m, clock_mono_ms() + 1000);
	assert_int_equal(a.primes, 0);
	mcp_call_set_token(fake_held[0], TOKEN_TEXT, 16);
	assert_int_equal(a.primes, 1);
	fake_done(fake_held[0], "", NULL);
	fake_clear(&a);
}

TEST(a_call_that_ends_soon_has_no_stream_and_no_id)
{
	struct ground *g = *state;
	struct fake_answer a;

	fake_post(g->m, &g->client, TOKEN("slow", "1", "1"), &a);
	mcp_call_set_token(fake_held[0], TOKEN_TEXT, 16);
	mcp_call_error(fake_held[0], MCP_INTERNAL_ERROR, "broken", NULL);
	fake_expect(&a, 200, MCP_INTERNAL_ERROR);
	assert_int_equal(a.starts, 0);
	fake_clear(&a);
}

TEST(the_first_progress_opens_and_primes_the_stream)
{
	struct ground *g = *state;
	struct fake_answer a;

	fake_post(g->m, &g->client, TOKEN("slow", "1", "1"), &a);
	mcp_call_set_token(fake_held[0], TOKEN_TEXT, 16);
	assert_int_equal(a.starts, 0);
	fake_progress(fake_held[0], 1, "x");
	assert_int_equal(a.primes, 1);
	assert_int_equal(a.nevents, 1);
	assert_non_null(a.event_id[0]);
	fake_done(fake_held[0], "", NULL);
	fake_clear(&a);
}

TEST(older_revisions_get_ids_on_messages_alone)
{
	struct ground *g = *state;
	struct fake_answer a;

	free(g->session);
	g->session =
	    fake_session_of(g->m, &fake_alice, FAKE_INITIALIZE("2025-06-18"));
	g->client = fake_client(g->session);
	start_call(g, TOKEN("slow", "1", "1"), &a);
	assert_int_equal(a.primes, 0);
	fake_progress(fake_held[0], 1, "x");
	assert_non_null(a.event_id[0]);
	mcp_call_hang_up(fake_held[0], 500); /* it could not come back */
	assert_int_equal(a.ends, 0);
	fake_done(fake_held[0], "", NULL);
	assert_int_equal(a.primes, 0);
	fake_clear(&a);
}

TEST(a_tool_that_says_its_answer_once_has_no_ids)
{
	struct ground *g = *state;
	struct fake_answer a;

	fake_add(g->m,
	    "{\"name\":\"once\",\"description\":\"d\","
	    "\"inputSchema\":{\"type\":\"object\"}}",
	    fake_slow_cb);
	start_call(g, TOKEN("once", "1", "1"), &a);
	fake_done(fake_held[0], "", NULL);
	assert_int_equal(a.primes, 0);
	assert_null(a.event_id[0]);
	fake_clear(&a);
}

TEST(a_client_that_comes_back_gets_the_answer_of_its_call)
{
	struct ground *g = *state;
	struct fake_answer a, b;

	start_call(g, SLOW("\"x\""), &a);
	mcp_client_gone(a.exchange);
	get(g, a.primed, &b);
	assert_int_equal(b.starts, 1);
	assert_int_equal(b.primes, 1);
	assert_int_equal(nresumed, 0);
	assert_int_equal(g->m->calls.count, 1);
	fake_done(fake_held[0], "done", NULL);
	assert_int_equal(b.nevents, 1);
	fake_expect_has(b.event[0], "\"id\":\"x\",\"result\"");
	fake_expect_has(b.event[0], "done");
	assert_int_equal(b.ends, 1);
	assert_int_equal(a.nevents, 0);
	fake_clear(&a);
	fake_clear(&b);
}

TEST(a_client_that_comes_back_before_its_loss_is_seen_ends_the_old_stream)
{
	struct ground *g = *state;
	struct fake_answer a, b, c;

	start_call(g, SLOW("1"), &a);
	get(g, a.primed, &b);
	assert_int_equal(a.ends, 1);
	assert_int_equal(a.nevents, 0);
	get(g, b.primed, &c);
	assert_int_equal(b.ends, 1);
	fake_done(fake_held[0], "done", NULL);
	assert_int_equal(c.nevents, 1);
	assert_int_equal(g->m->calls.count, 0);
	assert_int_equal(active(), 0);
	fake_clear(&a);
	fake_clear(&b);
	fake_clear(&c);
}

TEST(an_answer_that_nobody_heard_is_said_again_by_its_token)
{
	struct ground *g = *state;
	struct fake_answer a, b;

	start_call(g, SLOW("7"), &a);
	mcp_client_gone(a.exchange);
	fake_done(fake_held[0], "lost", NULL);
	get(g, a.primed, &b);
	assert_int_equal(nresumed, 1);
	assert_string_equal(resumed_token, TOKEN_TEXT);
	fake_done(resumed, "again", NULL);
	fake_expect_has(b.event[0], "\"id\":7,\"result\"");
	fake_expect_has(b.event[0], "again");
	assert_int_equal(b.ends, 1);
	fake_clear(&a);
	fake_clear(&b);
}

TEST(another_server_with_the_key_says_it_too)
{
	struct ground *g = *state;
	struct fake_answer a, b, c;

	start_call(g, SLOW("7"), &a);
	mcp_client_gone(a.exchange);
	restart(g);
	fake_done(fake_held[0], "too late", NULL);
	get(g, a.primed, &b);
	assert_int_equal(b.starts, 1);
	assert_int_equal(nresumed, 1);
	mcp_client_gone(b.exchange);
	get(g, b.primed, &c); /* its call still goes on */
	assert_int_equal(nresumed, 1);
	assert_int_equal(g->m->calls.count, 1);
	fake_done(resumed, "said", NULL);
	fake_expect_has(c.event[0], "\"id\":7,\"result\"");
	fake_clear(&a);
	fake_clear(&b);
	fake_clear(&c);
}

TEST(progress_goes_on_where_it_was)
{
	struct ground *g = *state;
	struct fake_answer a, b;

	start_call(g, TOKEN("slow", "7", "\"t\""), &a);
	fake_progress(fake_held[0], 5, "five");
	mcp_client_gone(a.exchange);
	restart(g);
	fake_done(fake_held[0], "too late", NULL);
	get(g, a.event_id[0], &b);
	fake_progress(resumed, 4, "old");
	fake_progress(resumed, 5, "old");
	assert_int_equal(b.nevents, 0);
	fake_progress(resumed, 6, "six");
	assert_int_equal(b.nevents, 1);
	fake_expect_has(b.event[0], "\"progressToken\":\"t\"");
	fake_done(resumed, "done", NULL);
	fake_clear(&a);
	fake_clear(&b);
}

TEST(an_answer_that_the_client_has_is_not_said_again)
{
	struct ground *g = *state;
	struct fake_answer a;

	start_call(g, SLOW("7"), &a);
	fake_done(fake_held[0], "done", NULL);
	expect_refused(g, a.event_id[0], 405);
	fake_clear(&a);
}

TEST(ids_that_are_not_of_this_session_are_refused)
{
	struct ground *g = *state;
	struct fake_answer a;
	char *session, *id;

	start_call(g, SLOW("7"), &a);
	expect_refused(g, "garbage", 400);
	expect_refused(g, "", 400);
	expect_refused(g, g->session, 400);
	id = xstrdup(a.primed);
	id[strlen(id) / 2] = (char)(id[strlen(id) / 2] == 'A' ? 'B' : 'A');
	expect_refused(g, id, 400);
	free(id);
	id = xasprintf("%sAAAA", a.primed);
	expect_refused(g, id, 400);
	free(id);
	/* Another session of the same principal, then another principal's. */
	session = fake_session(g->m);
	g->client.session = session;
	expect_refused(g, a.primed, 400);
	free(session);
	session =
	    fake_session_of(g->m, fake_bob(), FAKE_INITIALIZE("2025-11-25"));
	g->client.session = session;
	g->client.who = fake_bob();
	expect_refused(g, a.primed, 400);
	g->client.session = g->session;
	expect_refused(g, a.primed, 404); /* not bob's session */
	free(session);
	fake_done(fake_held[0], "", NULL);
	fake_clear(&a);
}

TEST(one_stream_never_gets_the_messages_of_another)
{
	struct ground *g = *state;
	struct fake_answer a, b, c;

	start_call(g, TOKEN("slow", "1", "1"), &a);
	start_call(g, TOKEN("slow", "2", "2"), &b);
	mcp_client_gone(a.exchange);
	get(g, a.primed, &c);
	fake_progress(fake_held[1], 1, "two");
	fake_done(fake_held[1], "two", NULL);
	assert_int_equal(c.nevents, 0);
	fake_progress(fake_held[0], 1, "one");
	fake_done(fake_held[0], "one", NULL);
	assert_int_equal(c.nevents, 2);
	assert_int_equal(b.nevents, 2);
	fake_clear(&a);
	fake_clear(&b);
	fake_clear(&c);
}

TEST(a_call_may_hang_up_and_go_on)
{
	struct ground *g = *state;
	struct fake_answer a, b;

	start_call(g, SLOW("1"), &a);
	mcp_call_hang_up(fake_held[0], 250);
	assert_int_equal(a.ends, 1);
	assert_int_equal(a.retry_ms, 250);
	assert_int_equal(a.nevents, 0);
	assert_int_equal(g->m->calls.count, 1);
	get(g, a.primed, &b);
	fake_done(fake_held[0], "done", NULL);
	assert_int_equal(b.nevents, 1);
	fake_clear(&a);
	fake_clear(&b);
}

TEST(a_call_may_hang_up_before_there_is_a_stream)
{
	struct ground *g = *state;
	struct fake_answer a, b;

	fake_post(g->m, &g->client, SLOW("1"), &a);
	mcp_call_hang_up(fake_held[0], 250); /* nobody could come back */
	assert_int_equal(a.starts, 0);
	mcp_call_set_token(fake_held[0], TOKEN_TEXT, strlen(TOKEN_TEXT));
	mcp_call_hang_up(fake_held[0], 250);
	assert_int_equal(a.starts, 1);
	assert_int_equal(a.ends, 1);
	assert_int_equal(a.retry_ms, 250);
	get(g, a.primed, &b);
	fake_done(fake_held[0], "done", NULL);
	assert_int_equal(b.nevents, 1);
	fake_clear(&a);
	fake_clear(&b);
}

TEST(a_cancel_reaches_the_call_that_was_taken_up)
{
	struct ground *g = *state;
	struct fake_answer a, b;

	start_call(g, SLOW("7"), &a);
	mcp_client_gone(a.exchange);
	restart(g);
	fake_done(fake_held[0], "too late", NULL);
	get(g, a.primed, &b);
	cancel(g, CANCEL("7"));
	assert_int_equal(b.ends, 1);
	assert_int_equal(b.nevents, 0);
	assert_true(mcp_call_base(resumed)->canceled);
	fake_done(resumed, "", NULL);
	fake_clear(&a);
	fake_clear(&b);
}

TEST(a_request_that_is_too_long_for_an_id_has_none)
{
	struct ground *g = *state;
	char *name = xcalloc(1, 251), *body;
	struct fake_answer a;

	memset(name, 'n', 250);
	body = xasprintf("{\"jsonrpc\":\"2.0\",\"id\":\"%s\",\"method\":"
			 "\"tools/call\",\"params\":{\"name\":\"slow\","
			 "\"_meta\":{\"progressToken\":\"%s\"}}}",
	    name, name);
	start_call(g, body, &a);
	assert_int_equal(a.primes, 0);
	fake_done(fake_held[0], "", NULL);
	assert_null(a.event_id[0]);
	fake_clear(&a);
	free(name);
	free(body);
}

TEST(a_silent_stream_that_was_taken_up_shows_that_it_lives)
{
	struct ground *g = *state;
	struct fake_answer a, b;

	start_call(g, SLOW("1"), &a);
	mcp_client_gone(a.exchange);
	get(g, a.primed, &b);
	mcp_tick(g->m, clock_mono_ms() + FAKE_HEARTBEAT_MS);
	assert_int_equal(b.beats, 1);
	fake_done(fake_held[0], "", NULL);
	fake_clear(&a);
	fake_clear(&b);
}

TEST(an_old_id_is_refused)
{
	struct ground *g = *state;
	struct text_signer *s = text_signer_new(fake_key, sizeof(fake_key));
	struct session_keeper *k =
	    session_keeper_new(fake_key, sizeof(fake_key), 3600);
	int64_t now_s = clock_wall_ms() / 1000;
	struct event_id id = {.tool = "slow", .request = "1"}, seen;
	struct session session;
	char text[EVENT_ID_TEXT_MAX + 1];

	assert_int_equal(
	    session_open(k, g->session, &fake_alice, now_s, &session), 0);
	memcpy(id.session, session.id, SESSION_ID_LEN);
	assert_true(event_id_begin(&id));
	event_id_format(s, &id, &fake_alice, now_s, text);
	assert_int_equal(event_id_parse(s, text, &session, &fake_alice,
			     now_s + EVENT_ID_AGE_MAX_S, &seen),
	    0);
	assert_string_equal(seen.tool, "slow");
	assert_string_equal(seen.request, "1");
	assert_int_equal(event_id_parse(s, text, &session, &fake_alice,
			     now_s + EVENT_ID_AGE_MAX_S + 1, &seen),
	    ERR_NOTFOUND);
	text_signer_free(s);
	session_keeper_free(k);
}

TEST_MAIN(resume_setup, teardown)
