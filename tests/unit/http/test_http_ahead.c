#include "tests/unit/http/server.h"

#include <pthread.h>

#include "common/parcel.h"

#define GET(path) "GET " path " HTTP/1.1\r\nHost: h\r\n\r\n"
#define LARGE 60000 /* less than what is never sent ahead */

static struct server server;
static struct raw c;
static struct parcel *parcel;

static int
open_usual(void **state)
{
	(void)state;
	server_open(&server, &server_usual);
	raw_open(&c, server.port, 0);
	parcel = parcel_new();
	return 0;
}

static int
close_all(void **state)
{
	(void)state;
	raw_close(&c);
	server_close(&server);
	parcel_unref(parcel);
	return 0;
}

static void *
send_main(void *arg)
{
	parcel_send(arg);
	return NULL;
}

static void
send_elsewhere(struct parcel *p)
{
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, send_main, p), 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
}

static struct http_exchange *
hold(const char *request)
{
	raw_send(&c, server.base, request);
	raw_wait_until(server.base, server.nheld == 1);
	server.nheld = 0;
	return server.held[0];
}

static bool
ahead(struct http_exchange *x, const char *text)
{
	return http_reply_ahead(x, "text/plain", text, strlen(text), parcel);
}

/* The loop does not turn, and the client has it. */
static void
receive_without_a_turn(const char *text)
{
	struct pollfd p = {.fd = c.fd, .events = POLLIN};

	assert_int_equal(poll(&p, 1, RAW_PATIENCE_MS), 1);
	raw_receive(&c);
	assert_true(raw_has(&c, text));
}

static void
what_another_thread_sent_is_the_answer(void **state)
{
	struct http_exchange *x = hold(GET("/hold"));

	(void)state;
	http_add_header(x, "Before", "it");
	assert_true(ahead(x, "ahead"));
	send_elsewhere(parcel);
	receive_without_a_turn("\r\n\r\nahead");
	assert_true(raw_has(&c, "HTTP/1.1 200 OK\r\nBefore: it\r\n"));
	assert_true(raw_has(&c, "\r\nX-Request-Id: "));
	assert_true(raw_has(&c, "\r\nContent-Type: text/plain\r\n"));
	assert_true(raw_has(&c, "\r\nX-Content-Type-Options: nosniff\r\n"));
	assert_true(raw_has(&c, "\r\nCache-Control: no-store\r\n"));
	assert_true(raw_has(&c, "\r\nDate: "));
	assert_true(raw_has(&c, "\r\nContent-Length: 5\r\n"));
	http_error(x, 503, "late", "another word");
	raw_send(&c, server.base, GET("/next"));
	raw_wait_for(&c, server.base, "\r\n\r\n/next");
	assert_int_equal(raw_count(&c, "HTTP/1.1 "), 2);
	assert_false(raw_has(&c, "another word"));
	assert_int_equal(server_connections(&server), 1);
}

static void
what_nobody_sent_gives_way(void **state)
{
	struct http_exchange *x = hold(GET("/hold"));

	(void)state;
	assert_true(ahead(x, "ahead"));
	http_reply(x, 200, "text/plain", "word", 4);
	parcel_send(parcel);
	raw_wait_for(&c, server.base, "\r\n\r\nword");
	raw_send(&c, server.base, GET("/next"));
	raw_wait_for(&c, server.base, "\r\n\r\n/next");
	assert_int_equal(raw_count(&c, "HTTP/1.1 "), 2);
	assert_false(raw_has(&c, "ahead"));
}

static void
one_who_comes_too_late_is_told(void **state)
{
	struct http_exchange *x = hold(GET("/hold"));

	(void)state;
	parcel_send(parcel);
	assert_false(ahead(x, "ahead"));
	http_reply(x, 200, "text/plain", "word", 4);
	raw_wait_for(&c, server.base, "\r\n\r\nword");
	assert_false(raw_has(&c, "ahead"));
}

static void
drop_cb(void *arg)
{
	http_drop(arg);
}

static void
a_parcel_of_a_connection_that_closed_is_not_sent(void **state)
{
	struct http_exchange *x = hold(GET("/hold"));
	struct raw other;

	(void)state;
	http_hold(x, drop_cb, x);
	assert_true(ahead(x, "ahead"));
	server_close(&server);
	/* Whoever has the descriptor now is nobody the answer is for. */
	server_open(&server, &server_usual);
	raw_open(&other, server.port, 0);
	parcel_send(parcel);
	raw_ask(&other, server.base, GET("/next"), "\r\n\r\n/next");
	assert_false(raw_has(&other, "ahead"));
	raw_close(&other);
}

static void
an_answer_that_ends_its_connection_does_not_go_ahead(void **state)
{
	static const char *const requests[] = {
	    "GET /hold HTTP/1.0\r\nHost: h\r\n\r\n",
	    "GET /hold HTTP/1.0\r\nHost: h\r\nConnection: keep-alive\r\n\r\n",
	    "GET /hold HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n",
	    "HEAD /hold HTTP/1.1\r\nHost: h\r\n\r\n"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(requests); i++) {
		struct http_exchange *x = hold(requests[i]);

		assert_false(ahead(x, "ahead"));
		http_reply(x, 200, "text/plain", "word", 4);
		raw_wait_for(&c, server.base, "nosniff\r\n");
		raw_close(&c);
		raw_open(&c, server.port, 0);
	}
}

/* More than the sockets take, of whom the client reads nothing meanwhile. */
static void
what_a_socket_did_not_take_follows(void **state)
{
	AUTO(auto_free) char *text = xcalloc(1, LARGE + 1);
	size_t n = 0, want = 0;

	(void)state;
	memset(text, 'x', LARGE);
	raw_close(&c);
	raw_open(&c, server.port, 4096);
	for (unsigned int i = 0; i < 200; i++) {
		struct http_exchange *x = hold(GET("/hold"));

		assert_true(ahead(x, text));
		parcel_send(parcel);
		http_reply(x, 200, "text/plain", "word", 4);
		parcel_unref(parcel);
		parcel = parcel_new();
		want += LARGE;
		/* The next request is only read behind this answer. */
		raw_wait_for(&c, server.base, "xx");
		raw_send(&c, server.base, GET("/next"));
		raw_wait_for(&c, server.base, "\r\n\r\n/next");
		for (size_t at = 0; at < buf_len(&c.in); at++)
			n += buf_data(&c.in)[at] == 'x' &&
			    (at == 0 || buf_data(&c.in)[at - 1] != 'e');
		assert_int_equal(raw_count(&c, "HTTP/1.1 200"), 2);
		assert_false(raw_has(&c, "word"));
		buf_clear(&c.in);
	}
	assert_int_equal(n, want);
}

#define T(f) cmocka_unit_test_setup_teardown(f, open_usual, close_all)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    T(what_another_thread_sent_is_the_answer),
	    T(what_nobody_sent_gives_way),
	    T(one_who_comes_too_late_is_told),
	    T(a_parcel_of_a_connection_that_closed_is_not_sent),
	    T(an_answer_that_ends_its_connection_does_not_go_ahead),
	    T(what_a_socket_did_not_take_follows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
