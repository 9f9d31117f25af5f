#include "tests/unit/worker/api_ground.h"

TEST(an_answer_comes_whole)
{
	struct result r;

	f->engine.answer = answer_hello;
	ask_once(f, &r);
	assert_int_equal(r.rc, 0);
	assert_int_equal(r.status, 200);
	assert_string_equal(r.body, "hello");
	assert_string_equal(f->engine.last, "GET /x");
}

TEST(connections_are_kept)
{
	struct result r;

	f->engine.answer = answer_hello;
	for (int i = 0; i < 5; i++) {
		ask_once(f, &r);
	}
	assert_int_equal(f->engine.asked, 5);
	assert_int_equal(f->engine.nconns, 1);
}

static void
header_cb(const struct api_answer *a, void *arg)
{
	struct result *r = arg;
	const char *value = api_header(a, "retry-after");

	done_cb(a, r);
	(void)snprintf(r->lines, sizeof(r->lines), "%s", value);
	assert_null(api_header(a, "Retry"));
	assert_null(api_header(a, "X-Interim"));
}

TEST(headers_are_sent_and_read)
{
	static const char *const headers[] = {
	    "Authorization: Bearer abc", "X-Two: 2", NULL};
	struct result r = {.done = false};

	engine_says(f,
	    "HTTP/1.1 102 X\r\nX-Interim: 1\r\n\r\n"
	    "HTTP/1.1 429 X\r\nA: b\r\nRetry-After:  7\r\n"
	    "Retry-After: 8\r\nContent-Length: 0\r\n\r\n");
	(void)api_start(f->api,
	    &(struct api_ask){.method = "GET",
		.path = "/x",
		.headers = headers,
		.timeout_ms = 1000,
		.on_done = header_cb,
		.arg = &r});
	fixture_loop(f->base, &r.done);
	assert_string_equal(r.lines, "7");
	assert_non_null(
	    strstr(f->engine.head, "\r\nAuthorization: Bearer abc\r\n"));
	assert_non_null(strstr(f->engine.head, "\r\nX-Two: 2"));
}

TEST(a_header_with_a_line_of_its_own_is_not_sent)
{
	static const char *const headers[] = {"X-One: 1\r\nX-Two: 2", NULL};
	struct result r;

	f->engine.answer = answer_hello;
	ask(f, &r,
	    (struct api_ask){
		.method = "GET", .path = "/x", .headers = headers});
	assert_int_equal(r.rc, ERR_INVAL);
	assert_int_equal(f->engine.asked, 0);
}

TEST(a_status_is_an_answer_too)
{
	struct result r;

	engine_says(f, fake_engine_reply(500, "{}"));
	ask_once(f, &r);
	assert_int_equal(r.rc, 0);
	assert_int_equal(r.status, 500);
}

TEST(an_engine_that_hangs_is_given_up)
{
	struct result r;

	f->engine.answer = answer_never;
	get(f, &r, 50, 100);
	fixture_loop(f->base, &r.done);
	assert_int_equal(r.rc, ERR_BACKEND);
	assert_non_null(strstr(r.why, "did not answer GET /x within 50 ms"));
}

TEST(an_answer_that_breaks_off_is_none)
{
	struct result r;

	engine_says_and_closes(
	    f, "HTTP/1.1 200 X\r\nContent-Length: 100\r\n\r\nhalf");
	get(f, &r, 1000, 1000);
	fixture_loop(f->base, &r.done);
	assert_int_equal(r.rc, ERR_BACKEND);
	assert_non_null(strstr(r.why, "broke off"));
}

static const char *
answer_large(struct fake_engine *f, const char *method, const char *path)
{
	static char body[100001];

	(void)f;
	(void)method;
	(void)path;
	memset(body, 'x', sizeof(body) - 1);
	return fake_engine_reply(200, body);
}

TEST(a_body_over_its_limit_is_refused)
{
	struct result r;

	f->engine.answer = answer_large;
	get(f, &r, 1000, 99999);
	fixture_loop(f->base, &r.done);
	assert_int_equal(r.rc, ERR_LIMIT);
	get(f, &r, 1000, 100000);
	fixture_loop(f->base, &r.done);
	assert_int_equal(r.rc, 0);
	assert_int_equal(r.len, 100000);
}

TEST(headers_over_their_limit_are_refused)
{
	struct result r;

	f->engine.answer = answer_headers;
	ask_once(f, &r);
	assert_int_equal(r.rc, ERR_LIMIT);
}

#define CHUNKED "HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n\r\n"

TEST(what_is_no_whole_answer_is_an_error)
{
	static const char *const bad[] = {"\x01\x02 this is no HTTP\r\n\r\n",
	    "\r\n\r\n", "hello\n", "HTTP/1.1 abc X\r\n\r\n", "HTTP/1.1 200",
	    "HTTP/1.1 200 X\r\nContent-Le",
	    "HTTP/1.1 200 X\r\nContent-Length: -1\r\n\r\nhello",
	    "HTTP/1.1 200 X\r\nContent-Length: 6\r\n\r\nhello",
	    CHUNKED "5\r\nhel", CHUNKED "xyz\r\n", CHUNKED "5\r\nhello\r\n",
	    "HTTP/1.1 100 X\r\n\r\n",
	    "HTTP/1.1 101 X\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\nhi"};
	struct result r;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		engine_says_and_closes(f, bad[i]);
		ask_once(f, &r);
		if (r.rc != ERR_BACKEND || strstr(r.why, "broke off") == NULL)
			fail_msg("%s: %d %s", said, r.rc, r.why);
	}
}

TEST(an_answer_in_each_form_is_whole)
{
	static const char *const good[] = {
	    "HTTP/1.1 200 X\r\nContent-Length: 5\r\n\r\nhello",
	    "HTTP/1.0 200 X\r\n\r\nhello",
	    "HTTP/1.1 200 X\r\nConnection: close\r\n\r\nhello",
	    ("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 102 X\r\nA: b\r\n\r\n"
	     "HTTP/1.1 200 X\r\nContent-Length: 5\r\n\r\nhello"),
	    ("HTTP/1.1 200 X\r\nTransfer-Encoding: chunked\r\n\r\n"
	     "2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\nT: railer\r\n\r\n")};
	struct result r;

	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		engine_says_and_closes(f, good[i]);
		ask_once(f, &r);
		if (r.rc != 0 || strcmp(r.body, "hello") != 0)
			fail_msg("%s: %d %s", said, r.rc, r.why);
	}
}

TEST(interim_answers_have_the_bound_of_headers)
{
	struct result r;

	f->engine.answer = answer_interim;
	get(f, &r, 10000, 100);
	fixture_loop(f->base, &r.done);
	assert_int_equal(r.rc, ERR_LIMIT);
}

/* A byte of an endless answer, once that has begun, whenever the loop turns. */
static void
trickle_cb(evutil_socket_t fd, short what, void *arg)
{
	const struct fixture *f = arg;

	(void)fd;
	(void)what;
	if (f->engine.nconns > 0 && f->engine.asked > 0)
		(void)bufferevent_write(f->engine.conns[0], "x", 1);
}

TEST(an_answer_that_trickles_has_its_time_and_no_more)
{
	static const struct timeval often = {0, 2000};
	struct event *ev = event_new(f->base, -1, EV_PERSIST, trickle_cb, f);
	struct result r;

	(void)event_add(ev, &often);
	engine_says(f, "HTTP/1.1 200 X\r\nContent-Length: 100000\r\n\r\n");
	get(f, &r, 100, 200000);
	fixture_loop(f->base, &r.done);
	assert_non_null(strstr(r.why, "within 100 ms"));
	event_free(ev);
}

TEST(nobody_at_the_socket_is_said_so)
{
	struct result r;

	api_set_socket(f->api, "/nowhere/docker.sock");
	ask_once(f, &r);
	assert_int_equal(r.rc, ERR_BACKEND);
	assert_non_null(
	    strstr(r.why, "no Docker engine at /nowhere/docker.sock"));
	assert_non_null(strstr(r.why, "DOCKER_HOST"));
}

TEST(a_redirect_is_not_followed)
{
	struct result r;

	engine_says(f,
	    "HTTP/1.1 302 X\r\nLocation: http://engine/other\r\n"
	    "Content-Length: 0\r\n\r\n");
	ask_once(f, &r);
	assert_int_equal(r.status, 302);
	assert_int_equal(f->engine.asked, 1);
}

static const char *
answer_lines(struct fake_engine *f, const char *method, const char *path)
{
	static char all[400000];
	size_t n = (size_t)sprintf(
	    all, "HTTP/1.1 200 X\r\nConnection: close\r\n\r\none\n\ntwo\n");

	(void)method;
	(void)path;
	f->close_after = true;
	memset(all + n, 'x', API_LINE_MAX + 1);
	n += API_LINE_MAX + 1;
	all[n++] = '\n';
	memset(all + n, 'y', API_LINE_MAX);
	n += API_LINE_MAX;
	(void)sprintf(all + n, "\nlast");
	return all;
}

static void
line_cb(const char *line, size_t n, void *arg)
{
	struct result *r = arg;
	size_t at = strlen(r->lines);

	r->longest = n > r->longest ? n : r->longest;
	(void)snprintf(r->lines + at, sizeof(r->lines) - at, "%.*s;",
	    n > 10 ? 1 : (int)n, line);
}

TEST(a_stream_comes_by_lines_beyond_any_limit_of_bodies)
{
	struct result r;

	f->engine.answer = answer_lines;
	ask(f, &r,
	    (struct api_ask){.method = "GET",
		.path = "/stream",
		.max_body = 10,
		.on_line = line_cb});
	assert_int_equal(r.rc, 0);
	assert_string_equal(r.lines, "one;two;y;last;");
	assert_int_equal(r.longest, API_LINE_MAX);
	assert_int_equal(r.len, 0);
}

TEST(a_cancelled_call_says_nothing)
{
	struct result gone = {0}, r;
	struct api_ask ask = {
	    .method = "GET", .path = "/gone", .on_done = done_cb, .arg = &gone};
	struct api_call *c;

	f->engine.answer = answer_hello;
	c = api_start(f->api, &ask);
	api_cancel(c);
	ask_once(f, &r);
	assert_false(gone.done);
}

TEST(a_body_is_sent_as_it_is)
{
	struct result r;

	f->engine.answer = answer_hello;
	ask(f, &r,
	    (struct api_ask){.method = "DELETE",
		.path = "/containers/x?force=1",
		.body = "{}",
		.body_len = 2,
		.timeout_ms = 1000});
	assert_string_equal(f->engine.last, "DELETE /containers/x?force=1");
}

TEST(the_end_of_all_tells_those_that_wait)
{
	struct result r;

	f->engine.answer = answer_never;
	get(f, &r, 0, 100);
	fixture_settle(f->base);
	api_free(f->api);
	assert_true(r.done);
	assert_int_equal(r.rc, ERR_WRONG_STATE);
	f->api = NULL;
}

/* ---- connections that end, and calls that do */

TEST(a_kept_connection_that_was_closed_is_not_used)
{
	struct result r;

	f->engine.answer = answer_hello;
	ask_once(f, &r);
	fake_engine_drop(&f->engine, f->engine.conns[0]);
	ask_once(f, &r);
	assert_int_equal(r.rc, 0);
	assert_int_equal(f->engine.asked, 2);
}

/* The first time it closes without a word. */
static const char *
answer_at_second(struct fake_engine *f, const char *method, const char *path)
{
	if (f->asked != 2)
		return answer_hello(f, method, path);
	for (size_t i = 0; i < f->nconns; i++)
		(void)shutdown(bufferevent_getfd(f->conns[i]), SHUT_RDWR);
	return NULL;
}

TEST(a_kept_connection_that_breaks_gives_its_call_to_another)
{
	struct result r;

	f->engine.answer = answer_at_second;
	ask_once(f, &r);
	ask_once(f, &r);
	assert_int_equal(r.rc, 0);
	assert_string_equal(r.body, "hello");
	assert_int_equal(f->engine.asked, 3);
}

static const char *
answer_shut(struct fake_engine *f, const char *method, const char *path)
{
	(void)method;
	(void)path;
	(void)shutdown(bufferevent_getfd(f->conns[0]), SHUT_RDWR);
	return NULL;
}

TEST(a_new_connection_that_breaks_is_the_calls_end)
{
	struct result r;

	f->engine.answer = answer_shut;
	ask_once(f, &r);
	assert_int_equal(r.rc, ERR_BACKEND);
	assert_non_null(strstr(r.why, "broke off"));
	assert_int_equal(f->engine.asked, 1);
}

/* What it might have done already is not done again. */
TEST(a_request_that_is_not_safe_is_sent_once)
{
	struct result r;

	f->engine.answer = answer_at_second;
	ask_once(f, &r);
	ask(f, &r,
	    (struct api_ask){
		.method = "POST", .path = "/exec/x/start", .timeout_ms = 1000});
	assert_int_equal(r.rc, ERR_BACKEND);
	assert_int_equal(f->engine.asked, 2);
}

TEST(an_engine_that_started_anew_is_asked_at_once)
{
	struct result r[4];

	f->engine.answer = answer_hello;
	for (int round = 0; round < 3; round++) {
		for (size_t i = 0; i < ARRAY_LEN(r); i++)
			get(f, &r[i], 1000, 100);
		for (size_t i = 0; i < ARRAY_LEN(r); i++) {
			fixture_loop(f->base, &r[i].done);
			assert_string_equal(r[i].body, "hello");
		}
		fake_engine_clear(&f->engine);
		fake_engine_listen(&f->engine);
	}
}

TEST(many_calls_at_once_have_their_own_answers)
{
	struct result r[20];

	f->engine.answer = answer_hello;
	for (int round = 0; round < 2; round++) {
		for (size_t i = 0; i < ARRAY_LEN(r); i++)
			get(f, &r[i], 10000, 100);
		for (size_t i = 0; i < ARRAY_LEN(r); i++) {
			fixture_loop(f->base, &r[i].done);
			assert_string_equal(r[i].body, "hello");
		}
	}
	fixture_settle(f->base);
	assert_in_range(f->engine.nconns, 1, 4); /* that are kept */
}

struct canceller {
	struct fixture *f;
	struct api_call *call;
	unsigned int lines;
	struct result next;
};

static void
cancel_in_line_cb(const char *line, size_t n, void *arg)
{
	struct canceller *c = arg;

	(void)line;
	(void)n;
	c->lines++;
	api_cancel(c->call);
	get(c->f, &c->next, 1000, 100);
}

TEST(a_call_may_be_cancelled_by_its_own_line)
{
	struct canceller c = {.f = f};
	struct api_ask ask = {.method = "GET",
	    .path = "/stream",
	    .on_line = cancel_in_line_cb,
	    .on_done = done_cb,
	    .arg = &c};

	engine_says(f, CHUNKED "4\r\none\n\r\n3\r\ntwo\r\n0\r\n\r\n");
	c.call = api_start(f->api, &ask);
	fixture_loop(f->base, &c.next.done);
	assert_int_equal(c.lines, 1);
	assert_string_equal(c.next.body, "one\ntwo");
}

struct chain {
	struct fixture *f;
	unsigned int left;
	bool done;
};

static void
chain_cb(const struct api_answer *a, void *arg)
{
	struct chain *c = arg;
	struct api_ask ask = {
	    .method = "GET", .path = "/x", .on_done = chain_cb, .arg = c};

	assert_int_equal(a->rc, 0);
	if (--c->left == 0)
		c->done = true;
	else
		(void)api_start(c->f->api, &ask);
}

TEST(an_answer_may_ask_the_next)
{
	struct chain c = {.f = f, .left = 20};
	struct api_ask ask = {
	    .method = "GET", .path = "/x", .on_done = chain_cb, .arg = &c};

	f->engine.answer = answer_hello;
	(void)api_start(f->api, &ask);
	fixture_loop(f->base, &c.done);
	assert_int_equal(f->engine.asked, 20);
	assert_int_equal(f->engine.nconns, 1);
}

TEST(a_large_body_is_sent_whole)
{
	size_t n = (size_t)4 << 20;
	char *body = xcalloc(1, n);
	struct result r;

	f->engine.answer = answer_hello;
	start(f, &r,
	    (struct api_ask){.method = "POST",
		.path = "/build",
		.body = body,
		.body_len = n,
		.content_type = "application/x-tar",
		.timeout_ms = 20000});
	free(body);
	fixture_loop(f->base, &r.done);
	assert_int_equal(r.rc, 0);
	assert_string_equal(f->engine.last, "POST /build");
}

TEST(a_path_with_a_line_in_it_is_not_sent)
{
	static const char *const bad[] = {
	    "/x y", "/x\r\nX: y", "/x\n", "/\t", "/x\177"};
	struct result r;

	f->engine.answer = answer_hello;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		ask(f, &r, (struct api_ask){.method = "GET", .path = bad[i]});
		assert_int_equal(r.rc, ERR_INVAL);
	}
	assert_int_equal(f->engine.asked, 0);
}

TEST(a_path_is_sent_byte_for_byte)
{
	static const char path[] = "/a/../b/./%2e%2E//c?x=%2F&y={z}[1]#f\\\xff";
	struct result r;

	f->engine.answer = answer_hello;
	ask(f, &r, (struct api_ask){.method = "GET", .path = path});
	assert_string_equal(f->engine.last + strlen("GET "), path);
}

TEST(the_environment_is_nobodys_proxy)
{
	struct result r;

	(void)setenv("http_proxy", "http://127.0.0.1:9", 1);
	(void)setenv("ALL_PROXY", "http://127.0.0.1:9", 1);
	f->engine.answer = answer_hello;
	ask_once(f, &r);
	assert_string_equal(r.body, "hello");
	(void)unsetenv("http_proxy");
	(void)unsetenv("ALL_PROXY");
}

TEST(another_socket_is_another_engine)
{
	struct result r;

	f->engine.answer = answer_hello;
	ask_once(f, &r);
	api_set_socket(f->api, "/nowhere/docker.sock");
	ask_once(f, &r);
	assert_int_equal(r.rc, ERR_BACKEND);
	api_set_socket(f->api, f->engine.path);
	ask_once(f, &r);
	assert_int_equal(r.rc, 0);
}

/* An engine whose queue of connections is full until it accepts one. */
struct queue {
	int full[8];
	int n;
};

static void
queue_fill(struct fixture *f, struct queue *q)
{
	struct sockaddr_un sa = {.sun_family = AF_UNIX};

	q->n = 0;
	assert_int_equal(listen(f->engine.fd, 0), 0);
	(void)snprintf(sa.sun_path, sizeof(sa.sun_path), "%s", f->engine.path);
	do {
		q->full[q->n] = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);
		assert_in_range(q->full[q->n], 0, INT32_MAX);
	} while (connect(q->full[q->n++], (const struct sockaddr *)&sa,
		     sizeof(sa)) == 0 &&
	    q->n < 8);
	assert_int_equal(errno, EAGAIN);
}

static void
queue_close(struct queue *q)
{
	while (q->n > 0)
		(void)close(q->full[--q->n]);
}

TEST(a_full_queue_is_waited_for)
{
	struct queue q;
	struct result r;

	f->engine.answer = answer_hello;
	queue_fill(f, &q);
	ask_once(f, &r);
	assert_int_equal(r.rc, 0);
	queue_close(&q);
}

TEST(a_full_queue_is_not_waited_for_beyond_a_calls_time)
{
	uint64_t before = clock_mono_ms();
	struct queue q;
	struct result r;

	(void)event_del(f->engine.on_accept);
	queue_fill(f, &q);
	get(f, &r, 50, 100);
	fixture_loop(f->base, &r.done);
	assert_int_equal(r.rc, ERR_BACKEND);
	assert_in_range(clock_mono_ms() - before, 40, 1500);
	queue_close(&q);
}

TEST_MAIN(setup, teardown)
