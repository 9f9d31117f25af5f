#include "tests/unit/worker/fake_engine.h"
#include "worker/docker/api.h"

struct fixture {
	struct event_base *base;
	struct fake_engine engine;
	struct api *api;
};

struct result {
	bool done;
	int rc;
	long status;
	size_t len;
	size_t streamed;
	char body[256];
	char why[ERR_TEXT_MAX];
};

static int
setup(void **state)
{
	static struct fixture f;

	f.base = event_base_new();
	fake_engine_init(&f.engine, f.base);
	f.api = api_new(f.base);
	api_set_socket(f.api, f.engine.path);
	*state = &f;
	return 0;
}

static int
teardown(void **state)
{
	struct fixture *f = *state;

	api_free(f->api);
	fake_engine_clear(&f->engine);
	fixture_settle(f->base);
	event_base_free(f->base);
	return 0;
}

static void
done_cb(const struct api_answer *a, void *arg)
{
	struct result *r = arg;

	assert_false(r->done);
	r->done = true;
	r->rc = a->rc;
	r->status = a->status;
	r->len = a->len;
	if (a->rc == 0)
		(void)snprintf(r->body, sizeof(r->body), "%.200s", a->body);
	else
		(void)snprintf(r->why, sizeof(r->why), "%s", a->why->msg);
}

static void
data_cb(const uint8_t *p, size_t n, void *arg)
{
	struct result *r = arg;

	(void)p;
	r->streamed += n;
}

static void
get(struct fixture *f, struct result *r, uint32_t timeout_ms, size_t max)
{
	struct api_ask ask = {.method = "GET",
	    .path = "/x",
	    .timeout_ms = timeout_ms,
	    .max_body = max,
	    .on_done = done_cb,
	    .arg = r};

	memset(r, 0, sizeof(*r));
	(void)api_start(f->api, &ask);
	assert_false(r->done);
}

static const char *
answer_hello(struct fake_engine *f, const char *method, const char *path)
{
	(void)f;
	(void)method;
	(void)path;
	return fake_engine_reply(200, "hello");
}

static void
test_an_answer_comes_whole(void **state)
{
	struct fixture *f = *state;
	struct result r;

	f->engine.answer = answer_hello;
	get(f, &r, 1000, 100);
	fixture_loop(f->base, &r.done);
	assert_int_equal(r.rc, 0);
	assert_int_equal(r.status, 200);
	assert_string_equal(r.body, "hello");
	assert_string_equal(f->engine.last, "GET /x");
}

static void
test_connections_are_kept(void **state)
{
	struct fixture *f = *state;
	struct result r;

	f->engine.answer = answer_hello;
	for (int i = 0; i < 5; i++) {
		get(f, &r, 1000, 100);
		fixture_loop(f->base, &r.done);
	}
	assert_int_equal(f->engine.asked, 5);
	assert_int_equal(f->engine.nconns, 1);
}

static const char *
answer_500(struct fake_engine *f, const char *method, const char *path)
{
	(void)f;
	(void)method;
	(void)path;
	return fake_engine_reply(500, "{\"message\":\"broken\"}");
}

static void
test_a_status_is_an_answer_too(void **state)
{
	struct fixture *f = *state;
	struct result r;

	f->engine.answer = answer_500;
	get(f, &r, 1000, 100);
	fixture_loop(f->base, &r.done);
	assert_int_equal(r.rc, 0);
	assert_int_equal(r.status, 500);
}

static const char *
answer_never(struct fake_engine *f, const char *method, const char *path)
{
	(void)f;
	(void)method;
	(void)path;
	return NULL;
}

static void
test_an_engine_that_hangs_is_given_up(void **state)
{
	struct fixture *f = *state;
	struct result r;

	f->engine.answer = answer_never;
	get(f, &r, 50, 100);
	fixture_loop(f->base, &r.done);
	assert_int_equal(r.rc, ERR_BACKEND);
	assert_non_null(strstr(r.why, "did not answer GET /x within 50 ms"));
}

static const char *
answer_half(struct fake_engine *f, const char *method, const char *path)
{
	(void)method;
	(void)path;
	f->close_after = true;
	return "HTTP/1.1 200 X\r\nContent-Length: 100\r\n\r\nhalf";
}

static void
test_an_answer_that_breaks_off_is_none(void **state)
{
	struct fixture *f = *state;
	struct result r;

	f->engine.answer = answer_half;
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

static void
test_a_body_over_its_limit_is_refused(void **state)
{
	struct fixture *f = *state;
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

static const char *
answer_headers(struct fake_engine *f, const char *method, const char *path)
{
	static char all[200000];
	size_t n = (size_t)sprintf(all, "HTTP/1.1 200 X\r\n");

	(void)f;
	(void)method;
	(void)path;
	while (n < 100000)
		n += (size_t)sprintf(
		    all + n, "X-%zu: some text that is of no use\r\n", n);
	(void)sprintf(all + n, "Content-Length: 0\r\n\r\n");
	return all;
}

static void
test_headers_over_their_limit_are_refused(void **state)
{
	struct fixture *f = *state;
	struct result r;

	f->engine.answer = answer_headers;
	get(f, &r, 1000, 100);
	fixture_loop(f->base, &r.done);
	assert_int_equal(r.rc, ERR_LIMIT);
}

static const char *
answer_rubbish(struct fake_engine *f, const char *method, const char *path)
{
	(void)method;
	(void)path;
	f->close_after = true;
	return "\x01\x02 this is no HTTP\r\n\r\n";
}

static void
test_what_is_no_http_is_an_error(void **state)
{
	struct fixture *f = *state;
	struct result r;

	f->engine.answer = answer_rubbish;
	get(f, &r, 1000, 100);
	fixture_loop(f->base, &r.done);
	assert_int_equal(r.rc, ERR_BACKEND);
}

static void
test_nobody_at_the_socket_is_said_so(void **state)
{
	struct fixture *f = *state;
	struct result r;

	api_set_socket(f->api, "/nowhere/docker.sock");
	get(f, &r, 1000, 100);
	fixture_loop(f->base, &r.done);
	assert_int_equal(r.rc, ERR_BACKEND);
	assert_non_null(
	    strstr(r.why, "no Docker engine at /nowhere/docker.sock"));
	assert_non_null(strstr(r.why, "DOCKER_HOST"));
}

static const char *
answer_redirect(struct fake_engine *f, const char *method, const char *path)
{
	(void)f;
	(void)method;
	(void)path;
	return "HTTP/1.1 302 X\r\nLocation: http://engine/other\r\n"
	       "Content-Length: 0\r\n\r\n";
}

static void
test_a_redirect_is_not_followed(void **state)
{
	struct fixture *f = *state;
	struct result r;

	f->engine.answer = answer_redirect;
	get(f, &r, 1000, 100);
	fixture_loop(f->base, &r.done);
	assert_int_equal(r.status, 302);
	assert_int_equal(f->engine.asked, 1);
}

static void
test_a_stream_comes_in_pieces_beyond_any_limit(void **state)
{
	struct fixture *f = *state;
	struct result r = {0};
	struct api_ask ask = {.method = "GET",
	    .path = "/stream",
	    .max_body = 10,
	    .on_data = data_cb,
	    .on_done = done_cb,
	    .arg = &r};

	f->engine.answer = answer_large;
	(void)api_start(f->api, &ask);
	fixture_loop(f->base, &r.done);
	assert_int_equal(r.rc, 0);
	assert_int_equal(r.streamed, 100000);
	assert_int_equal(r.len, 0);
}

static void
test_a_cancelled_call_says_nothing(void **state)
{
	struct fixture *f = *state;
	struct result gone = {0}, r;
	struct api_ask ask = {
	    .method = "GET", .path = "/gone", .on_done = done_cb, .arg = &gone};
	struct api_call *c;

	f->engine.answer = answer_hello;
	c = api_start(f->api, &ask);
	api_cancel(c);
	get(f, &r, 1000, 100);
	fixture_loop(f->base, &r.done);
	assert_false(gone.done);
}

static void
test_a_body_is_sent_as_it_is(void **state)
{
	struct fixture *f = *state;
	struct result r = {0};
	struct api_ask ask = {.method = "DELETE",
	    .path = "/containers/x?force=1",
	    .body = "{}",
	    .body_len = 2,
	    .timeout_ms = 1000,
	    .on_done = done_cb,
	    .arg = &r};

	f->engine.answer = answer_hello;
	(void)api_start(f->api, &ask);
	fixture_loop(f->base, &r.done);
	assert_string_equal(f->engine.last, "DELETE /containers/x?force=1");
}

static void
test_the_end_of_all_tells_those_that_wait(void **state)
{
	struct fixture *f = *state;
	struct result r;

	f->engine.answer = answer_never;
	get(f, &r, 0, 100);
	fixture_settle(f->base);
	api_free(f->api);
	assert_true(r.done);
	assert_int_equal(r.rc, ERR_WRONG_STATE);
	f->api = NULL;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(test_an_answer_comes_whole),
	    TEST(test_connections_are_kept),
	    TEST(test_a_status_is_an_answer_too),
	    TEST(test_an_engine_that_hangs_is_given_up),
	    TEST(test_an_answer_that_breaks_off_is_none),
	    TEST(test_a_body_over_its_limit_is_refused),
	    TEST(test_headers_over_their_limit_are_refused),
	    TEST(test_what_is_no_http_is_an_error),
	    TEST(test_nobody_at_the_socket_is_said_so),
	    TEST(test_a_redirect_is_not_followed),
	    TEST(test_a_stream_comes_in_pieces_beyond_any_limit),
	    TEST(test_a_cancelled_call_says_nothing),
	    TEST(test_a_body_is_sent_as_it_is),
	    TEST(test_the_end_of_all_tells_those_that_wait),
	};

	return cmocka_run_group_tests_name("api", tests, NULL, NULL);
}
