#include "tests/unit/http/server.h"

static void
stream_text(const char *text)
{
	struct evbuffer *out = evbuffer_new();

	(void)evbuffer_add(out, text, strlen(text));
	http_stream_write(server.held[0], out);
	evbuffer_free(out);
}

static void
open_stream(const char *request)
{
	raw_send(&c, server.base, request);
	raw_wait_for(&c, server.base, "\r\n\r\n");
	assert_int_equal(server.nheld, 1);
}

static uint64_t
streams(void)
{
	struct http_stats st;

	http_server_stats(server.http, &st);
	return st.streams;
}

TEST_WITH(
    open_usual, close_all, a_stream_has_a_clean_end_and_the_connection_goes_on)
{
	open_stream(GET("/stream"));
	assert_true(raw_has(&c, "Content-Type: text/event-stream\r\n"));
	assert_true(raw_has(&c, "Transfer-Encoding: chunked\r\n"));
	assert_int_equal(streams(), 1);
	stream_text("data: 1\n\n");
	raw_wait_for(&c, server.base, "9\r\ndata: 1\n\n\r\n");
	http_stream_end(server.held[0]);
	assert_int_equal(streams(), 0);
	raw_wait_for(&c, server.base, "0\r\n\r\n");
	raw_ask(&c, server.base, GET("/next"), "/next");
	assert_int_equal(server.gone, 0);
}

TEST_WITH(open_usual, close_all, a_client_that_leaves_is_noticed_at_once)
{
	open_stream(GET("/stream"));
	raw_close(&c);
	raw_wait_until(server.base, server.gone == 1);
	assert_int_equal(streams(), 0);
	assert_int_equal(server_connections(&server), 0);
	stream_text("nobody reads this"); /* safe until it is ended */
	http_stream_end(server.held[0]);
}

TEST_WITH(open_usual, close_all, a_reset_is_noticed_too)
{
	const struct linger hard = {1, 0};

	open_stream(GET("/stream"));
	(void)setsockopt(c.fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
	raw_close(&c);
	raw_wait_until(server.base, server.gone == 1);
	assert_true(http_is_gone(server.held[0]));
	http_drop(server.held[0]);
}

TEST_WITH(open_usual, close_all, a_stream_to_http_1_0_ends_with_the_connection)
{
	open_stream("GET /stream HTTP/1.0\r\nHost: h\r\n"
		    "Connection: keep-alive\r\n\r\n");
	assert_false(raw_has(&c, "chunked"));
	stream_text("data: 1\n\n");
	raw_wait_for(&c, server.base, "data: 1\n\n");
	http_stream_end(server.held[0]);
	raw_wait_end(&c, server.base);
}

TEST_WITH(
    open_usual, close_all, a_reader_that_reads_nothing_costs_a_bounded_buffer)
{
	uint64_t before;

	raw_close(&c);
	raw_open(&c, server.port, 4096);
	raw_send(&c, server.base, GET("/flood"));
	raw_wait_until(server.base, server.nheld == 1);
	do { /* until the kernel's buffers are full */
		before = server.streamed;
		for (unsigned int i = 0; i < 100; i++)
			raw_turn(server.base);
	} while (server.streamed != before);
	assert_in_range(server.pending_max, 1, HTTP_STREAM_HIGH + 4100);
	assert_true(server.streamed < 16u << 20);
	/* It goes on when it is read. */
	raw_wait_until(server.base,
	    (raw_receive(&c), server.streamed > before + (1u << 20)));
	assert_in_range(server.pending_max, 1, HTTP_STREAM_HIGH + 4100);
	server.nheld = 0;
	raw_close(&c);
	raw_wait_until(server.base, server.gone == 1);
	assert_true(http_is_gone(server.held[0]));
	http_drop(server.held[0]);
}

TEST_WITH(open_usual, close_all,
    a_client_that_floods_during_a_stream_is_not_swallowed)
{
	char *junk = xcalloc(1, 1u << 20);
	size_t sent = 0, n;
	unsigned int full = 0;

	open_stream(GET("/stream"));
	while (full < 200 && sent < 200u << 20) {
		n = raw_try_send(&c, junk, 1u << 20);
		full = n == 0 ? full + 1 : 0;
		sent += n;
		raw_turn(server.base);
	}
	assert_true(sent < 32u << 20); /* the kernel's buffers, not ours */
	raw_close(&c);
	/* Not read any more, so its end is seen when writing fails. */
	raw_wait_until(
	    server.base, (stream_text("data: 1\n\n"), server.gone == 1));
	http_stream_end(server.held[0]);
	free(junk);
}

/* Each with its own exchange, which its on_gone ends. */
static void
end_many_cb(void *arg)
{
	http_stream_end(arg);
}

static void
on_request_of_many(struct http_exchange *x, void *arg)
{
	(void)arg;
	http_hold(x, end_many_cb, x);
	http_stream_start(x, NULL);
}

TEST(a_thousand_silent_streams_are_held)
{
	const struct http_limits limits = {
	    16384, 4096, 30000, 60000, 2000, 1u << 20, 1u << 20, NULL};
	struct raw *many = xcalloc(1000, sizeof(*many));
	struct event_base *base = event_base_new();
	struct http_server *http;
	struct http_stats st = {0};
	struct err e;
	uint16_t port;

	raw_allow_descriptors(4000);
	http = http_server_new(base, &limits, on_request_of_many, NULL);
	assert_int_equal(http_server_listen(http, raw_listen(&port), &e), 0);
	for (size_t i = 0; i < 1000; i++) {
		raw_open(&many[i], port, 0);
		raw_send(&many[i], base, GET("/"));
	}
	raw_wait_until(
	    base, (http_server_stats(http, &st), st.streams == 1000));
	for (size_t i = 0; i < 1000; i++)
		raw_close(&many[i]);
	raw_wait_until(base, (http_server_stats(http, &st), st.streams == 0));
	http_server_free(http);
	(void)event_base_loop(base, EVLOOP_NONBLOCK);
	event_base_free(base);
	free(many);
}

/* Too much waits for another client: little is given, but never nothing. */
TEST(appetite_is_small_while_too_much_waits)
{
	struct http_limits limits = server_usual;
	struct raw silent, reads;
	struct http_stats st;
	struct server s;

	limits.waiting_memory = 5u << 20;
	server_open(&s, &limits);
	raw_open(&reads, s.port, 0);
	raw_send(&reads, s.base, GET("/stream"));
	raw_wait_for(&reads, s.base, "\r\n\r\n");
	assert_int_equal(http_stream_appetite(s.held[0]), HTTP_STREAM_HIGH);
	raw_open(&silent, s.port, 4096);
	raw_send(&silent, s.base, GET("/big"));
	raw_wait_until(s.base,
	    (http_server_stats(s.http, &st),
		st.waiting_memory > limits.waiting_memory));
	for (unsigned int i = 0; i < 3; i++) {
		size_t n = http_stream_appetite(s.held[0]);
		struct evbuffer *out = evbuffer_new();
		char text[1000];

		assert_in_range(n, 1, sizeof(text) - 1);
		memset(text, 'a' + (int)i, n);
		(void)evbuffer_add(out, text, n);
		http_stream_write(s.held[0], out);
		evbuffer_free(out);
		assert_int_equal(http_stream_appetite(s.held[0]), 0);
		raw_wait_for(&reads, s.base,
		    i == 0     ? "aaa" :
			i == 1 ? "bbb" :
				 "ccc");
		raw_wait_until(s.base, http_stream_pending(s.held[0]) == 0);
	}
	raw_close(&silent);
	raw_wait_until(
	    s.base, http_stream_appetite(s.held[0]) == HTTP_STREAM_HIGH);
	http_stream_end(s.held[0]);
	raw_close(&reads);
	server_close(&s);
}

TEST_MAIN(NULL, NULL)
