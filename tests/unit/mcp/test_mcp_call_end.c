/* Tool calls that are cancelled, or whose client or server leaves. */
#include "tests/unit/mcp/call_ground.h"

/* ---- cancelling */

static void
count_cb(struct call *c, void *arg)
{
	(void)c;
	++*(int *)arg;
}

static void
end_cb(struct call *c, void *arg)
{
	(void)c;
	fake_done(arg, "too late", NULL);
}

/* Who works for the call that is held at i. */
static void
hold(int i, call_cancel_cb on_cancel, void *arg)
{
	call_hold(mcp_call_base(fake_held[i]), on_cancel, arg);
}

TEST(a_cancelled_call_is_told_and_nothing_more_is_sent)
{
	struct ground *g = *state;
	struct fake_answer a;
	int told = 0;

	fake_post(g->m, &g->client, TOKEN("slow", "5", "1"), &a);
	hold(0, count_cb, &told);
	cancel(g, CANCEL("5"));
	assert_int_equal(told, 1);
	assert_int_equal(a.ends, 1);
	assert_int_equal(a.nevents, 0);
	assert_false(call_wants_progress(mcp_call_base(fake_held[0])));
	cancel(g, CANCEL("5"));
	assert_int_equal(told, 1);
	assert_int_equal(active(), 1);
	fake_progress(fake_held[0], 1, NULL);
	fake_done(fake_held[0], "x", json_object());
	assert_int_equal(a.nevents, 0);
	assert_int_equal(active(), 0);
	fake_clear(&a);
}

TEST(a_tool_may_end_its_call_while_it_is_told)
{
	struct ground *g = *state;
	struct fake_answer a;

	fake_post(g->m, &g->client, SLOW("\"five\""), &a);
	hold(0, end_cb, fake_held[0]);
	cancel(g, CANCEL("\"five\""));
	assert_int_equal(active(), 0);
	assert_true(fake_is_over(&a));
	assert_null(a.body);
	fake_clear(&a);
}

TEST(a_cancelled_call_of_a_json_client_ends_without_a_body)
{
	struct ground *g = *state;
	struct fake_answer a;

	g->client.accept = "application/json";
	fake_post(g->m, &g->client, SLOW("5"), &a);
	hold(0, end_cb, fake_held[0]);
	cancel(g, CANCEL("5"));
	assert_int_equal(a.status, 202);
	assert_null(a.body);
	fake_clear(&a);
}

TEST(a_cancelled_call_that_may_have_no_stream_ends_without_one)
{
	struct ground *g = *state;
	struct fake_answer a;

	fake_post(g->m, &g->client, SLOW("5"), &a);
	hold(0, end_cb, fake_held[0]);
	a.is_full = true;
	cancel(g, CANCEL("5"));
	assert_int_equal(a.takes, 1);
	assert_int_equal(a.status, 202);
	assert_null(a.body);
	fake_clear(&a);
}

TEST(who_asks_late_about_a_cancel_is_told_at_once)
{
	struct ground *g = *state;
	struct fake_answer a;
	int told = 0;

	fake_post(g->m, &g->client, SLOW("5"), &a);
	cancel(g, CANCEL("5"));
	hold(0, count_cb, &told);
	assert_int_equal(told, 1);
	fake_fail(fake_held[0], "x");
	fake_clear(&a);
}

TEST(only_the_named_request_of_the_session_is_cancelled)
{
	struct ground *g = *state;
	char *other = fake_session(g->m);
	struct fake_answer a, b;
	int told[2] = {0, 0};

	fake_post(g->m, &g->client, SLOW("5"), &a);
	g->client.session = other;
	fake_post(g->m, &g->client, SLOW("5"), &b);
	hold(0, count_cb, &told[0]);
	hold(1, count_cb, &told[1]);
	cancel(g, CANCEL("6"));
	cancel(g, CANCEL("\"5\""));
	assert_int_equal(told[0] + told[1], 0);
	cancel(g, CANCEL("5"));
	assert_int_equal(told[0], 0);
	assert_int_equal(told[1], 1);
	fake_done(fake_held[0], "", NULL);
	fake_done(fake_held[1], "", NULL);
	fake_expect(&a, 200, 0);
	fake_clear(&a);
	fake_clear(&b);
	free(other);
}

TEST(a_call_that_ended_is_not_cancelled)
{
	struct ground *g = *state;
	struct fake_answer a;
	int told = 0;

	fake_post(g->m, &g->client, SLOW("5"), &a);
	hold(0, count_cb, &told);
	fake_done(fake_held[0], "", NULL);
	cancel(g, CANCEL("5"));
	assert_int_equal(told, 0);
	fake_clear(&a);
}

/* ---- clients that leave */

TEST(a_client_that_leaves_cancels_nothing)
{
	struct ground *g = *state;
	struct fake_answer a;
	int told = 0;

	fake_post(g->m, &g->client, TOKEN("slow", "5", "1"), &a);
	hold(0, count_cb, &told);
	mcp_client_gone(a.exchange);
	assert_int_equal(told, 0);
	assert_false(call_wants_progress(mcp_call_base(fake_held[0])));
	assert_int_equal(active(), 1);
	fake_progress(fake_held[0], 1, NULL);
	fake_done(fake_held[0], "x", NULL);
	assert_int_equal(a.nevents + a.ends + a.replies, 0);
	fake_clear(&a);
}

TEST(a_call_whose_client_left_can_be_cancelled_from_elsewhere)
{
	struct ground *g = *state;
	struct fake_answer a;
	int told = 0;

	fake_post(g->m, &g->client, SLOW("5"), &a);
	hold(0, count_cb, &told);
	mcp_client_gone(a.exchange);
	cancel(g, CANCEL("5"));
	assert_int_equal(told, 1);
	fake_done(fake_held[0], "x", NULL);
	fake_clear(&a);
}

/* A transport that finds its connection closed while it is told to write. */
struct leaver {
	struct mcp_exchange *exchange;
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
	mcp_client_gone(l->exchange);
}

static void
leave_write_cb(void *handle, const struct iovec *pieces, int n)
{
	(void)pieces;
	(void)n;
	((struct leaver *)handle)->told++;
}

static void
leave_end_cb(void *handle)
{
	((struct leaver *)handle)->told++;
}

static size_t
leave_pending_cb(void *handle)
{
	(void)handle;
	return 0;
}

static const struct mcp_transport_ops leave_ops = {.reply = leave_reply_cb,
    .stream_start = leave_start_cb,
    .stream_write = leave_write_cb,
    .stream_pending = leave_pending_cb,
    .stream_end = leave_end_cb};

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
	    .who = g->client.who,
	    .request_id = "http-2"};

	l->exchange = mcp_handle(g->m, &http, &leave_ops, l);
	assert_non_null(l->exchange);
}

TEST(a_client_may_leave_while_its_stream_is_opened)
{
	struct ground *g = *state;
	struct leaver l = {NULL, 0};

	leaver_post(g, &l);
	mcp_tick(g->m, clock_mono_ms() + 1000);
	assert_false(call_wants_progress(mcp_call_base(fake_held[0])));
	fake_done(fake_held[0], "x", NULL);
	assert_int_equal(l.told, 0);
}

TEST(a_client_may_leave_while_its_call_is_cancelled)
{
	struct ground *g = *state;
	struct leaver l = {NULL, 0};

	leaver_post(g, &l);
	cancel(g, CANCEL("5"));
	fake_done(fake_held[0], "x", NULL);
	assert_int_equal(l.told, 0);
}

TEST(the_server_may_go_before_its_calls)
{
	struct ground *g = *state;
	struct fake_answer a, b;

	fake_post(g->m, &g->client, SLOW("5"), &a);
	fake_post(g->m, &g->client, SLOW("6"), &b);
	mcp_client_gone(b.exchange);
	mcp_free(g->m);
	g->m = NULL;
	assert_false(call_wants_progress(mcp_call_base(fake_held[0])));
	fake_progress(fake_held[0], 1, NULL);
	fake_done(fake_held[0], "x", NULL);
	fake_fail(fake_held[1], "x");
	assert_int_equal(a.replies + a.starts, 0);
	fake_clear(&a);
	fake_clear(&b);
}

TEST_MAIN(setup, teardown)
