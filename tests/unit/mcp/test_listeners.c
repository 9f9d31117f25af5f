/* What is told to who listens: sessions, and subscriptions of 2026-07-28. */
#include "tests/unit/mcp/call_ground.h"

#include "supervisor/mcp/listeners.h"
#include "supervisor/mcp/offer.h"

/* Requests of 2026-07-28: members of params before _meta, then of _meta, and of
 * what the client can. */
#define MODERN_ALL(method, members, can, more)                                 \
	"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"" method                   \
	"\",\"params\":{" members                                              \
	"\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":"              \
	"\"2026-07-28\",\"io.modelcontextprotocol/clientCapabilities\":{" can  \
	"}" more "}}}"
#define MODERN_WITH(method, members, more) MODERN_ALL(method, members, "", more)
#define MODERN_CAN(method, members, can) MODERN_ALL(method, members, can, "")

static struct mcp_call *asking; /* of an address that takes time */
/* Whose client is found gone while the next thing is asked for. */
static struct fake_answer *leaving;

static void
leave(void)
{
	struct fake_answer *a = leaving;

	leaving = NULL;
	if (a != NULL)
		mcp_client_gone(a->exchange);
}

static void
nothing_cb(struct mcp_call *c, const char *text, void *arg)
{
	(void)text;
	(void)arg;
	mcp_call_answer(c, json_object());
}

/* "x://no" is another tenant's; "x://late" takes time. */
static void
watch_cb(struct mcp_call *c, const char *uri, void *arg)
{
	(void)arg;
	leave();
	if (strcmp(uri, "x://late") == 0)
		asking = c;
	else if (strcmp(uri, "x://no") == 0)
		mcp_call_no_resource(c, uri);
	else
		mcp_call_answer(c, json_object());
}

static const struct mcp_resource_ops resources = {
    .list = nothing_cb, .read = nothing_cb, .watch = watch_cb};

static int task_asked;

static void
task_cb(struct mcp_call *c, const char *id, void *arg)
{
	const struct mcp_task task = {
	    .id = id, .status = MCP_TASK_WORKING, .ttl_ms = MCP_TASK_NO_TTL};

	(void)arg;
	task_asked++;
	leave();
	if (strcmp(id, "none") == 0)
		mcp_call_no_task(c, id);
	else
		mcp_call_task_state(c, &task, NULL);
}

static const struct mcp_task_ops tasks = {.get = task_cb};

static struct mcp *
server(void)
{
	const struct mcp_config config = {.name = "test",
	    .version = "1",
	    .session_key = fake_key,
	    .session_key_len = sizeof(fake_key),
	    .session_ttl_s = 3600,
	    .body_max = FAKE_BODY_MAX,
	    .heartbeat_ms = FAKE_HEARTBEAT_MS,
	    .list_changes = true};
	struct mcp *m = mcp_new(&config);

	fake_add_tools(m);
	mcp_set_resources(m, NULL, &resources, NULL);
	mcp_set_tasks(m, &tasks, NULL);
	return m;
}

static int
listen_setup(void **state)
{
	struct ground *g = xcalloc(1, sizeof(*g));

	g->m = server();
	g->session = fake_session(g->m);
	g->client = fake_client(g->session);
	asking = NULL;
	leaving = NULL;
	task_asked = 0;
	*state = g;
	return 0;
}

static void
get_of(struct ground *g, const char *session, struct fake_answer *a)
{
	struct fake_client c = fake_client(session);

	c.accept = "text/event-stream";
	c.content_type = NULL;
	fake_http(g->m, "GET", &c, NULL, 0, a);
}

static void
get(struct ground *g, struct fake_answer *a)
{
	get_of(g, g->session, a);
	assert_int_equal(a->starts, 1);
	assert_int_equal(a->primes, 0);
}

static void
tick(struct ground *g)
{
	mcp_tick(g->m, clock_mono_ms());
}

#define ASK(method, params)                                                    \
	"{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"" method                   \
	"\",\"params\":" params "}"
#define SUBSCRIBE(uri) ASK("resources/subscribe", "{\"uri\":\"" uri "\"}")
#define UNSUBSCRIBE(uri) ASK("resources/unsubscribe", "{\"uri\":\"" uri "\"}")
#define UPDATED(uri)                                                           \
	"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/resources/updated\"," \
	"\"params\":{\"uri\":\"" uri "\"}}"

static void
ask(struct ground *g, const char *body)
{
	fake_ask(g->m, &g->client, body, 200, 0);
}

TEST(a_session_is_told_on_its_newest_stream)
{
	struct ground *g = *state;
	struct fake_answer a, b;

	get(g, &a);
	mcp_tools_changed(g->m);
	assert_int_equal(a.nevents, 0);
	tick(g);
	tick(g);
	assert_int_equal(a.nevents, 1);
	assert_string_equal(a.event[0],
	    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/"
	    "list_changed\",\"params\":{}}");
	get(g, &b);
	mcp_tools_changed(g->m);
	mcp_prompts_changed(g->m);
	tick(g);
	assert_int_equal(a.nevents, 1);
	assert_int_equal(b.nevents, 2);
	fake_expect_has(b.event[1], "notifications/prompts/list_changed");
	mcp_client_gone(b.exchange);
	mcp_tools_changed(g->m);
	tick(g);
	assert_int_equal(a.nevents, 2);
	mcp_client_gone(a.exchange);
	mcp_tools_changed(g->m);
	tick(g);
	fake_clear(&a);
	fake_clear(&b);
}

TEST(a_session_has_so_many_streams)
{
	struct ground *g = *state;
	struct fake_answer a[LISTENERS_STREAMS + 1];

	for (size_t i = 0; i < ARRAY_LEN(a); i++) {
		get(g, &a[i]);
		assert_int_equal(a[0].ends, i == LISTENERS_STREAMS ? 1 : 0);
	}
	for (size_t i = 0; i < ARRAY_LEN(a); i++) {
		if (i > 0) {
			assert_int_equal(a[i].ends, 0);
			mcp_client_gone(a[i].exchange);
		}
		fake_clear(&a[i]);
	}
}

TEST(the_end_of_a_session_ends_its_streams)
{
	struct ground *g = *state;
	struct fake_answer a, b, d;

	get(g, &a);
	get(g, &b);
	ask(g, SUBSCRIBE("x://a"));
	fake_http(g->m, "DELETE", &g->client, NULL, 0, &d);
	assert_int_equal(d.status, 204);
	assert_int_equal(a.ends + b.ends, 2);
	assert_false(mcp_is_watched(g->m));
	fake_clear(&d);
	get_of(g, g->session, &d);
	assert_int_equal(d.status, 404);
	fake_clear(&a);
	fake_clear(&b);
	fake_clear(&d);
}

TEST(what_is_subscribed_to_is_told_of_once_a_second)
{
	struct ground *g = *state;
	struct fake_answer a;

	get(g, &a);
	ask(g, SUBSCRIBE("x://a"));
	ask(g, SUBSCRIBE("x://a"));
	assert_true(mcp_is_watched(g->m));
	mcp_resource_changed(g->m, fake_alice.tenant, "x://a");
	mcp_resource_changed(g->m, fake_alice.tenant, "x://a");
	mcp_resource_changed(g->m, fake_alice.tenant, "x://b");
	mcp_resource_changed(g->m, fake_bob()->tenant, "x://a");
	tick(g);
	tick(g);
	assert_int_equal(a.nevents, 1);
	assert_string_equal(a.event[0], UPDATED("x://a"));
	ask(g, UNSUBSCRIBE("x://a"));
	ask(g, UNSUBSCRIBE("x://never"));
	assert_false(mcp_is_watched(g->m));
	mcp_resource_changed(g->m, fake_alice.tenant, "x://a");
	tick(g);
	assert_int_equal(a.nevents, 1);
	mcp_client_gone(a.exchange);
	fake_clear(&a);
}

TEST(a_resource_that_may_not_be_seen_cannot_be_subscribed_to)
{
	struct ground *g = *state;
	struct fake_answer a;

	fake_ask(g->m, &g->client, SUBSCRIBE("x://no"), 200, -32002);
	fake_ask(g->m, &g->client, SUBSCRIBE(""), 200, MCP_INVALID_PARAMS);
	assert_false(mcp_is_watched(g->m));
	fake_post(g->m, &g->client, SUBSCRIBE("x://late"), &a);
	assert_non_null(a.exchange);
	assert_false(mcp_is_watched(g->m));
	mcp_call_answer(asking, json_object());
	fake_expect(&a, 200, 0);
	assert_true(mcp_is_watched(g->m));
	fake_clear(&a);
	/* Its client leaves before the answer. */
	fake_post(g->m, &g->client, SUBSCRIBE("x://late"), &a);
	mcp_client_gone(a.exchange);
	mcp_call_answer(asking, json_object());
	assert_int_equal(a.replies, 0);
	fake_clear(&a);
}

/* Nobody said then that it may be seen. */
TEST(a_subscription_that_is_cancelled_before_its_answer_is_none)
{
	struct ground *g = *state;
	struct fake_answer a;

	fake_post(g->m, &g->client, SUBSCRIBE("x://late"), &a);
	assert_non_null(a.exchange);
	cancel(g, CANCEL("5"));
	assert_int_equal(a.replies + a.ends, 1);
	assert_int_equal(a.nevents, 0);
	assert_null(a.body);
	assert_false(mcp_is_watched(g->m));
	mcp_call_no_resource(asking, "x://late");
	assert_false(mcp_is_watched(g->m));
	fake_clear(&a);
}

TEST(a_session_that_ended_meanwhile_subscribes_nothing)
{
	struct ground *g = *state;
	struct fake_answer a, d;

	fake_post(g->m, &g->client, SUBSCRIBE("x://late"), &a);
	fake_http(g->m, "DELETE", &g->client, NULL, 0, &d);
	assert_int_equal(d.status, 204);
	mcp_call_answer(asking, json_object());
	fake_expect(&a, 200, MCP_SESSION_NOT_FOUND);
	assert_false(mcp_is_watched(g->m));
	fake_clear(&a);
	fake_clear(&d);
}

TEST(subscriptions_of_a_session_are_bounded)
{
	struct ground *g = *state;
	char body[200];

	for (int i = 0; i <= WATCHES_MAX; i++) {
		(void)snprintf(body, sizeof(body),
		    ASK("resources/subscribe", "{\"uri\":\"x://%d\"}"), i);
		fake_ask(g->m, &g->client, body, 200,
		    i < WATCHES_MAX ? 0 : MCP_INVALID_PARAMS);
	}
	ask(g, UNSUBSCRIBE("x://0"));
	ask(g, SUBSCRIBE("x://new"));
}

/* Of so long addresses, x://NN before them. */
#define PER_SESSION                                                            \
	((int)(WATCHER_BYTES_MAX / (WATCH_TEXT_MAX - 20 + 6 + WATCH_COST)))

TEST(addresses_of_a_session_and_of_a_principal_are_bounded)
{
	struct ground *g = *state;
	char *name = xcalloc(1, WATCH_TEXT_MAX + 1), *body;
	struct fake_answer a;

	memset(name, 'n', WATCH_TEXT_MAX - 20);
	/* Sessions without a stream give room to newer ones. */
	for (int i = 0; i < 20; i++) {
		char *session = fake_session(g->m);
		struct fake_client c = fake_client(session);

		for (int k = 0; k <= PER_SESSION; k++) {
			body = xasprintf(ASK("resources/subscribe",
					     "{\"uri\":\"x://%02d%s\"}"),
			    k, name);
			fake_ask(g->m, &c, body, 200,
			    k < PER_SESSION ? 0 : MCP_INVALID_PARAMS);
			free(body);
		}
		free(session);
	}
	assert_int_equal(watches_count(listeners_watches(g->m)),
	    LISTENERS_BYTES_MAX / WATCHER_BYTES_MAX * PER_SESSION);
	body = xasprintf(
	    ASK("resources/subscribe", "{\"uri\":\"%s%s\"}"), name, name);
	fake_post(g->m, &g->client, body, &a);
	fake_expect(&a, 200, MCP_INVALID_PARAMS);
	fake_clear(&a);
	free(body);
	free(name);
}

TEST(a_session_without_a_stream_is_forgotten)
{
	struct ground *g = *state;
	struct fake_answer a;

	ask(g, SUBSCRIBE("x://a"));
	ask(g, ASK("logging/setLevel", "{\"level\":\"info\"}"));
	mcp_tick(g->m, clock_mono_ms() + LISTENERS_IDLE_MS - 1000);
	assert_true(mcp_is_watched(g->m));
	get(g, &a);
	mcp_tick(g->m, clock_mono_ms() + LISTENERS_IDLE_MS + 1000);
	assert_true(mcp_is_watched(g->m)); /* it has one */
	mcp_client_gone(a.exchange);
	mcp_tick(g->m, clock_mono_ms() + LISTENERS_IDLE_MS + 1000);
	assert_false(mcp_is_watched(g->m));
	fake_clear(&a);
}

TEST(idle_sessions_of_a_principal_are_bounded)
{
	struct ground *g = *state;
	char *first = NULL;

	for (int i = 0; i <= LISTENERS_IDLE_MAX; i++) {
		char *session = fake_session(g->m);
		struct fake_client c = fake_client(session);

		fake_ask(g->m, &c, SUBSCRIBE("x://a"), 200, 0);
		if (i == 0)
			first = session;
		else
			free(session);
	}
	assert_int_equal(
	    watches_count(listeners_watches(g->m)), LISTENERS_IDLE_MAX);
	free(first);
}

TEST(a_client_that_does_not_read_is_sent_nothing_more)
{
	struct ground *g = *state;
	struct fake_answer a;

	get(g, &a);
	a.pending = MCP_PROGRESS_PENDING_MAX + 1;
	mcp_tools_changed(g->m);
	tick(g);
	assert_int_equal(a.nevents, 0);
	mcp_client_gone(a.exchange);
	fake_clear(&a);
}

TEST(a_drain_ends_streams_that_wait_for_nothing)
{
	struct ground *g = *state;
	struct fake_answer a, b;

	get(g, &a);
	fake_post(g->m, &g->client, SLOW("1"), &b);
	mcp_drain(g->m);
	assert_int_equal(a.ends, 1);
	fake_done(fake_held[0], "done", NULL);
	assert_int_equal(b.status, 200);
	fake_clear(&a);
	fake_clear(&b);
}

TEST(the_server_may_end_before_its_streams)
{
	struct ground *g = *state;
	struct fake_answer a;

	get(g, &a);
	ask(g, SUBSCRIBE("x://a"));
	mcp_free(g->m);
	g->m = NULL;
	assert_int_equal(a.ends, 0);
	fake_clear(&a);
}

/* ---- over HTTP+SSE: the stream is the session */

static void
post_to_stream(struct ground *g, const char *id, const char *body)
{
	struct fake_client c = fake_client(NULL);
	struct fake_answer a;

	c.route = MCP_ROUTE_MESSAGES;
	c.stream = id;
	fake_post(g->m, &c, body, &a);
	assert_int_equal(a.status, 202);
	fake_clear(&a);
}

static const char *
open_duplex(struct ground *g, struct fake_answer *a)
{
	struct fake_client c = fake_client(NULL);
	const char *id;

	c.accept = "text/event-stream";
	c.route = MCP_ROUTE_SSE;
	c.messages = "m";
	fake_http(g->m, "GET", &c, NULL, 0, a);
	id = a->endpoint + strlen("m?sessionId=");
	post_to_stream(g, id, FAKE_INITIALIZE("2024-11-05"));
	return id;
}

TEST(a_client_may_be_found_gone_while_it_subscribes)
{
	struct ground *g = *state;
	struct fake_answer a;
	const char *id = open_duplex(g, &a);

	leaving = &a;
	post_to_stream(g, id, SUBSCRIBE("x://a"));
	assert_false(mcp_is_watched(g->m));
	fake_clear(&a);
	id = open_duplex(g, &a);
	leaving = &a;
	post_to_stream(g, id, SUBSCRIBE("x://late"));
	mcp_call_answer(asking, json_object());
	assert_false(mcp_is_watched(g->m));
	fake_clear(&a);
}

TEST(nothing_is_kept_for_a_session_whose_only_stream_has_closed)
{
	struct ground *g = *state;
	struct fake_answer a;
	const char *id = open_duplex(g, &a);

	post_to_stream(g, id, SUBSCRIBE("x://a"));
	assert_true(mcp_is_watched(g->m));
	mcp_client_gone(a.exchange);
	assert_false(mcp_is_watched(g->m));
	fake_clear(&a);
	id = open_duplex(g, &a);
	post_to_stream(g, id, SUBSCRIBE("x://a"));
	mcp_drain(g->m);
	assert_int_equal(a.ends, 1);
	assert_false(mcp_is_watched(g->m));
	fake_clear(&a);
}

/* ---- log messages */

static void
log_hello(struct mcp_call *c, enum mcp_level level)
{
	mcp_call_log(c, level, "tool", json_string("hello"));
}

TEST(a_session_asks_for_log_messages_by_level)
{
	struct ground *g = *state;
	struct fake_answer a;

	fake_post(g->m, &g->client, SLOW("1"), &a);
	log_hello(fake_held[0], MCP_EMERGENCY);
	assert_int_equal(a.starts, 0); /* it did not ask */
	ask(g, ASK("logging/setLevel", "{\"level\":\"warning\"}"));
	log_hello(fake_held[0], MCP_NOTICE);
	assert_int_equal(a.starts, 0);
	log_hello(fake_held[0], MCP_WARNING);
	assert_int_equal(a.nevents, 1);
	assert_string_equal(a.event[0],
	    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\","
	    "\"params\":{\"level\":\"warning\",\"logger\":\"tool\","
	    "\"data\":\"hello\"}}");
	fake_done(fake_held[0], "", NULL);
	fake_clear(&a);
	fake_ask(g->m, &g->client,
	    ASK("logging/setLevel", "{\"level\":\"loud\"}"), 200,
	    MCP_INVALID_PARAMS);
}

TEST(a_request_of_2026_asks_for_log_messages_itself)
{
	struct ground *g = *state;
	struct fake_client c = fake_modern("tools/call", "slow");
	struct fake_answer a;

	fake_post(g->m, &c,
	    MODERN_WITH("tools/call", "\"name\":\"slow\",",
		",\"io.modelcontextprotocol/logLevel\":\"error\""),
	    &a);
	log_hello(fake_held[0], MCP_WARNING);
	assert_int_equal(a.starts, 0);
	log_hello(fake_held[0], MCP_ERROR);
	assert_int_equal(a.nevents, 1);
	fake_done(fake_held[0], "", NULL);
	fake_clear(&a);
}

/* ---- subscriptions of MCP 2026-07-28 */

static void
listen_to(
    struct ground *g, const char *wish, const char *more, struct fake_answer *a)
{
	struct fake_client c = fake_modern("subscriptions/listen", NULL);
	char *body = xasprintf(
	    MODERN_WITH("subscriptions/listen", "\"notifications\":%s,", "%s"),
	    wish, more);

	fake_post(g->m, &c, body, a);
	free(body);
}

#define ID_META "\"_meta\":{\"io.modelcontextprotocol/subscriptionId\":7}"

TEST(a_subscription_is_acknowledged_with_what_is_agreed)
{
	struct ground *g = *state;
	struct fake_answer a;

	listen_to(g,
	    "{\"toolsListChanged\":true,\"promptsListChanged\":false,"
	    "\"resourcesListChanged\":true,\"resourceSubscriptions\":"
	    "[\"x://a\",\"x://no\",\"x://b\"]}",
	    "", &a);
	assert_int_equal(a.nevents, 1);
	assert_string_equal(a.event[0],
	    "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/subscriptions/"
	    "acknowledged\",\"params\":{\"notifications\":{"
	    "\"toolsListChanged\":true,\"resourceSubscriptions\":[\"x://a\","
	    "\"x://b\"]}," ID_META "}}");
	mcp_tools_changed(g->m);
	mcp_prompts_changed(g->m);
	mcp_resource_changed(g->m, fake_alice.tenant, "x://b");
	mcp_resource_changed(g->m, fake_alice.tenant, "x://no");
	tick(g);
	assert_int_equal(a.nevents, 3);
	fake_expect_has(a.event[1], "notifications/tools/list_changed");
	fake_expect_has(a.event[1], ID_META);
	fake_expect_has(a.event[2], "\"uri\":\"x://b\"," ID_META);
	assert_null(a.event_id[2]);
	mcp_client_gone(a.exchange);
	assert_false(mcp_is_watched(g->m));
	mcp_tools_changed(g->m);
	tick(g);
	fake_clear(&a);
}

TEST(an_address_that_takes_time_delays_the_acknowledgement)
{
	struct ground *g = *state;
	struct fake_answer a;

	listen_to(
	    g, "{\"resourceSubscriptions\":[\"x://a\",\"x://late\"]}", "", &a);
	assert_int_equal(a.nevents, 0);
	mcp_resource_changed(g->m, fake_alice.tenant, "x://a");
	tick(g);
	assert_int_equal(a.nevents, 0);
	mcp_call_answer(asking, json_object());
	assert_int_equal(a.nevents, 1);
	fake_expect_has(a.event[0], "\"x://late\"");
	mcp_client_gone(a.exchange);
	fake_clear(&a);
	listen_to(g, "{\"resourceSubscriptions\":[\"x://late\"]}", "", &a);
	mcp_client_gone(a.exchange);
	mcp_call_answer(asking, json_object());
	assert_int_equal(a.nevents, 0);
	fake_clear(&a);
}

/* Its question to the offer ends with it. */
TEST(a_client_may_be_found_gone_when_its_stream_opens)
{
	struct ground *g = *state;
	struct fake_answer a;

	listen_to(g, "{\"resourceSubscriptions\":[\"x://late\"]}", "", &a);
	a.leaves = true;
	mcp_tick(g->m, clock_mono_ms() + 2000);
	assert_int_equal(a.starts, 1);
	assert_false(a.leaves);
	mcp_tick(g->m, clock_mono_ms() + 2000);
	mcp_call_answer(asking, json_object());
	assert_int_equal(a.nevents + a.ends, 0);
	fake_clear(&a);
}

TEST(a_subscription_ends_with_a_result)
{
	struct ground *g = *state;
	struct fake_answer a, b;

	listen_to(g, "{\"toolsListChanged\":true}", "", &a);
	listen_to(g, "{}", "", &b);
	mcp_drain(g->m);
	assert_int_equal(a.ends + b.ends, 2);
	fake_expect_has(a.event[1], "\"id\":7,\"result\":{");
	fake_expect_has(a.event[1], "\"resultType\":\"complete\"");
	fake_expect_has(
	    a.event[1], "\"io.modelcontextprotocol/subscriptionId\":7");
	fake_clear(&a);
	fake_clear(&b);
}

#define CAN_TASKS "\"extensions\":{\"io.modelcontextprotocol/tasks\":{}}"

TEST(tasks_are_told_of_with_their_state)
{
	struct ground *g = *state;
	struct fake_client c = fake_modern("subscriptions/listen", NULL);
	struct fake_answer a;

	fake_post(g->m, &c,
	    MODERN_CAN("subscriptions/listen",
		"\"notifications\":{\"taskIds\":[\"t1\",\"none\",\"t2\"]},",
		CAN_TASKS),
	    &a);
	fake_expect_has(a.event[0], "{\"taskIds\":[\"t1\",\"t2\"]}");
	mcp_task_changed(g->m, fake_alice.tenant, "t1");
	mcp_task_changed(g->m, fake_alice.tenant, "t2");
	mcp_task_changed(g->m, fake_alice.tenant, "t1");
	mcp_task_changed(g->m, fake_bob()->tenant, "t2");
	tick(g);
	assert_int_equal(task_asked, 5);
	assert_int_equal(a.nevents, 3);
	fake_expect_has(a.event[1], "\"method\":\"notifications/tasks\"");
	fake_expect_has(a.event[1], "\"taskId\":\"t1\"");
	fake_expect_has(a.event[1], ID_META);
	fake_expect_has(a.event[2], "\"taskId\":\"t2\"");
	mcp_client_gone(a.exchange);
	fake_clear(&a);
}

TEST(a_client_may_be_found_gone_while_a_state_is_asked_for)
{
	struct ground *g = *state;
	struct fake_client c = fake_modern("subscriptions/listen", NULL);
	struct fake_answer a;

	fake_post(g->m, &c,
	    MODERN_CAN("subscriptions/listen",
		"\"notifications\":{\"taskIds\":[\"t1\",\"t2\"]},", CAN_TASKS),
	    &a);
	mcp_task_changed(g->m, fake_alice.tenant, "t1");
	mcp_task_changed(g->m, fake_alice.tenant, "t2");
	leaving = &a;
	tick(g);
	assert_int_equal(task_asked, 3);
	assert_int_equal(a.nevents, 1);
	fake_clear(&a);
}

TEST(a_subscription_that_cannot_be_is_refused)
{
	struct ground *g = *state;
	struct fake_client c = fake_modern("subscriptions/listen", NULL);
	struct fake_answer a;

	listen_to(g, "7", "", &a);
	fake_expect(&a, 200, MCP_INVALID_PARAMS);
	fake_clear(&a);
	listen_to(g, "{\"resourceSubscriptions\":[7]}", "", &a);
	fake_expect(&a, 200, MCP_INVALID_PARAMS);
	fake_clear(&a);
	listen_to(g, "{\"taskIds\":[\"t1\"]}", "", &a);
	fake_expect(&a, 400, -32021);
	fake_clear(&a);
	c.accept = "application/json";
	fake_post(g->m, &c,
	    MODERN_CAN("subscriptions/listen", "\"notifications\":{},", ""),
	    &a);
	fake_expect(&a, 406, MCP_SERVER_ERROR);
	fake_clear(&a);
}

TEST_MAIN(listen_setup, teardown)
