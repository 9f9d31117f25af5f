#include "tests/unit/worker/fixture.h"
#include "worker/docker/reply.h"

struct read {
	struct reply reply;
	struct buf body;
	unsigned int status;
	size_t most; /* of the body */
};

static bool
body_cb(unsigned int status, const uint8_t *p, size_t n, void *arg)
{
	struct read *r = arg;

	r->status = status;
	return buf_len(&r->body) + n <= r->most &&
	    buf_append(&r->body, p, n) == 0;
}

static void
begin(struct read *r)
{
	memset(r, 0, sizeof(*r));
	r->most = 1000;
	buf_init(&r->body, 0);
	reply_init(&r->reply, body_cb, r);
}

/* In pieces of so many bytes. */
static enum reply_state
feed(struct read *r, const char *s, size_t n, size_t piece)
{
	enum reply_state state = REPLY_MORE;

	for (size_t at = 0; at < n && state == REPLY_MORE; at += piece)
		state = reply_feed(&r->reply, (const uint8_t *)s + at,
		    piece < n - at ? piece : n - at);
	return state;
}

/* However it is cut, its end, status and body are the same. */
static void
expect(const char *s, enum reply_state state, unsigned int status,
    const char *body, bool keep)
{
	for (size_t piece = 1; piece <= strlen(s); piece++) {
		struct read r;

		begin(&r);
		assert_int_equal(feed(&r, s, strlen(s), piece), state);
		assert_int_equal(reply_status(&r.reply), status);
		assert_int_equal(buf_len(&r.body), strlen(body));
		if (body[0] != '\0')
			assert_memory_equal(
			    buf_data(&r.body), body, strlen(body));
		assert_int_equal(r.reply.keep, keep);
		buf_clear(&r.body);
	}
}

static void
test_a_body_of_known_length_ends_there(void **state)
{
	(void)state;
	expect("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", REPLY_WHOLE,
	    200, "hello", true);
	expect("HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n", REPLY_WHOLE,
	    201, "", true);
	expect("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello", REPLY_MORE,
	    200, "hello", false);
}

static void
test_chunks_are_put_together(void **state)
{
	(void)state;
	expect("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
	       "3\r\nfor\r\n2;x=y\r\nty\r\n0\r\nX-Trailer: z\r\n\r\n",
	    REPLY_WHOLE, 200, "forty", true);
	expect("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
	       "3\r\nfor\r\n",
	    REPLY_MORE, 200, "for", false);
}

static void
test_an_answer_without_a_body_has_none(void **state)
{
	(void)state;
	expect("HTTP/1.1 204 No Content\r\n\r\n", REPLY_WHOLE, 204, "", true);
	expect("HTTP/1.1 304 Not Modified\r\n\r\n", REPLY_WHOLE, 304, "", true);
}

static void
test_what_comes_before_the_answer_is_skipped(void **state)
{
	(void)state;
	expect("HTTP/1.1 100 Continue\r\n\r\n"
	       "HTTP/1.1 102 Processing\r\n\r\n"
	       "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
	    REPLY_WHOLE, 200, "ok", true);
}

static void
test_a_connection_that_is_to_close_is_not_kept(void **state)
{
	(void)state;
	expect("HTTP/1.1 200 OK\r\nConnection: close\r\n"
	       "Content-Length: 2\r\n\r\nok",
	    REPLY_WHOLE, 200, "ok", false);
	expect("HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", REPLY_WHOLE,
	    200, "ok", false);
}

static void
test_more_than_the_answer_is_not_kept(void **state)
{
	static const char s[] =
	    "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1";
	struct read r;

	(void)state;
	begin(&r);
	assert_int_equal(feed(&r, s, strlen(s), strlen(s)), REPLY_WHOLE);
	assert_int_equal(buf_len(&r.body), 2);
	assert_false(r.reply.keep);
	buf_clear(&r.body);
}

static void
test_an_answer_may_end_with_its_connection(void **state)
{
	static const char s[] = "HTTP/1.1 200 OK\r\n\r\nall of it";
	struct read r;

	(void)state;
	begin(&r);
	assert_int_equal(feed(&r, s, strlen(s), 3), REPLY_MORE);
	assert_int_equal(reply_end(&r.reply), REPLY_WHOLE);
	assert_false(r.reply.keep);
	assert_memory_equal(buf_data(&r.body), "all of it", 9);
	buf_clear(&r.body);
}

static void
test_an_answer_that_is_cut_off_is_broken(void **state)
{
	static const char *const cut[] = {"", "HTTP/1.1 2",
	    "HTTP/1.1 200 OK\r\nContent-Le",
	    "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nhe",
	    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe",
	    "HTTP/1.1 100 Continue\r\n\r\n"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(cut); i++) {
		struct read r;

		begin(&r);
		assert_int_equal(
		    feed(&r, cut[i], strlen(cut[i]), 7), REPLY_MORE);
		assert_int_equal(reply_end(&r.reply), REPLY_BROKEN);
		assert_string_not_equal(reply_why(&r.reply), "");
		buf_clear(&r.body);
	}
}

static void
test_what_is_no_answer_is_broken(void **state)
{
	static const char *const bad[] = {"GET / HTTP/1.1\r\n\r\n",
	    "HTTP/1.1 2000 X\r\n\r\n", "HTTP/1.1 20x X\r\n\r\n",
	    "HTTP/1.1 200 OK\r\nContent-Length: 1, 2\r\n\r\nx",
	    "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
	    "HTTP/1.1 200 OK\r\nContent-Length: "
	    "99999999999999999999999\r\n\r\n",
	    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
	    "fffffffffffffffff\r\n",
	    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxy\r\n",
	    "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n"
	    "Upgrade: tcp\r\n\r\n"};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct read r;

		begin(&r);
		assert_int_equal(
		    feed(&r, bad[i], strlen(bad[i]), strlen(bad[i])),
		    REPLY_BROKEN);
		assert_string_not_equal(reply_why(&r.reply), "");
		buf_clear(&r.body);
	}
}

static void
test_headers_have_a_bound(void **state)
{
	static const char head[] = "HTTP/1.1 200 OK\r\nX: ";
	enum reply_state last = REPLY_MORE;
	struct read r;
	size_t n = 0;

	(void)state;
	begin(&r);
	assert_int_equal(feed(&r, head, strlen(head), 9), REPLY_MORE);
	for (; last == REPLY_MORE && n < 2 * (size_t)REPLY_HEADERS_MAX; n++)
		last = reply_feed(&r.reply, (const uint8_t *)"x", 1);
	assert_int_equal(last, REPLY_HEADERS);
	assert_in_range(n, REPLY_HEADERS_MAX / 2, REPLY_HEADERS_MAX + 1);
	buf_clear(&r.body);
}

static void
test_who_reads_may_stop(void **state)
{
	static const char s[] =
	    "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n123456789";
	struct read r;

	(void)state;
	begin(&r);
	r.most = 4;
	assert_int_equal(feed(&r, s, strlen(s), 1), REPLY_STOPPED);
	assert_int_equal(buf_len(&r.body), 4);
	assert_int_equal(reply_end(&r.reply), REPLY_STOPPED);
	buf_clear(&r.body);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_a_body_of_known_length_ends_there),
	    cmocka_unit_test(test_chunks_are_put_together),
	    cmocka_unit_test(test_an_answer_without_a_body_has_none),
	    cmocka_unit_test(test_what_comes_before_the_answer_is_skipped),
	    cmocka_unit_test(test_a_connection_that_is_to_close_is_not_kept),
	    cmocka_unit_test(test_more_than_the_answer_is_not_kept),
	    cmocka_unit_test(test_an_answer_may_end_with_its_connection),
	    cmocka_unit_test(test_an_answer_that_is_cut_off_is_broken),
	    cmocka_unit_test(test_what_is_no_answer_is_broken),
	    cmocka_unit_test(test_headers_have_a_bound),
	    cmocka_unit_test(test_who_reads_may_stop),
	};

	return cmocka_run_group_tests_name("reply", tests, NULL, NULL);
}
