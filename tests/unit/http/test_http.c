#include "tests/unit/http/server.h"

TEST_WITH(open_usual, close_all, a_request_is_answered_and_the_connection_kept)
{
	raw_ask(&c, server.base, GET("/one"), "\r\n\r\n/one");
	raw_send(&c, server.base, GET("/two"));
	raw_wait_for(&c, server.base, "\r\n\r\n/two");
	assert_true(raw_has(&c, "HTTP/1.1 200 OK\r\n"));
	assert_true(raw_has(&c, "X-Request-Id: "));
	assert_true(raw_has(&c, "Content-Length: 4\r\n"));
	assert_int_equal(server_connections(&server), 1);
}

TEST_WITH(open_usual, close_all, requests_sent_together_are_answered_in_order)
{
	const char *p;

	raw_send(&c, server.base,
	    "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nfirst"
	    "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 6\r\n\r\nsecond"
	    "GET /third HTTP/1.1\r\nHost: h\r\n\r\n");
	raw_wait_for(&c, server.base, "\r\n\r\n/third");
	p = strstr(raw_text(&c), "\r\n\r\nfirst");
	assert_non_null(p);
	p = strstr(p, "\r\n\r\nsecond");
	assert_non_null(p);
	assert_int_equal(raw_count(&c, "HTTP/1.1 200"), 3);
}

TEST_WITH(open_usual, close_all, head_gets_the_length_without_the_body)
{
	raw_send(&c, server.base,
	    "HEAD /seven77 HTTP/1.1\r\nHost: h\r\n\r\n" GET("/next"));
	raw_wait_for(&c, server.base, "\r\n\r\n/next");
	assert_true(raw_has(&c, "Content-Length: 8\r\n"));
	assert_false(raw_has(&c, "\r\n\r\n/seven77"));
}

TEST_WITH(open_usual, close_all, no_content_has_neither_body_nor_type)
{
	raw_send(&c, server.base, GET("/nothing") GET("/next"));
	raw_wait_for(&c, server.base, "/next");
	assert_int_equal(strncmp(raw_text(&c), "HTTP/1.1 204", 12), 0);
	assert_int_equal(raw_count(&c, "\r\nContent-Type"), 1);
}

TEST_WITH(open_usual, close_all, the_query_is_decoded_by_name)
{
	static const struct {
		const char *query, *want;
	} table[] = {{"", "none"}, {"?", "none"}, {"?b=1", "none"},
	    {"?a=1", "1"}, {"?b=2&a=x%20y", "x y"}, {"?a=1#a=2", "1"},
	    {"?a", "none"}};
	char text[100], want[100];

	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		(void)snprintf(text, sizeof(text),
		    "GET /query%s HTTP/1.1\r\nHost: h\r\n\r\n", table[i].query);
		(void)snprintf(want, sizeof(want), "\r\n\r\n%s", table[i].want);
		raw_ask(&c, server.base, text, want);
	}
}

TEST_WITH(open_usual, close_all, a_part_of_a_file_is_sent)
{
	raw_send(&c, server.base, GET("/file") GET("/next"));
	raw_wait_for(&c, server.base, "/next");
	assert_true(raw_has(&c, "Content-Length: 5\r\n"));
	assert_true(raw_has(&c, "\r\n\r\n23456HTTP/1.1 200"));
}

TEST_WITH(open_usual, close_all, chunks_become_a_body)
{
	raw_send(&c, server.base,
	    "POST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n"
	    "\r\n4\r\nabcd\r\n3\r\nefg\r\n0\r\n\r\n");
	raw_wait_for(&c, server.base, "\r\n\r\nabcdefg");
}

/* In pieces of every size, a fault is told by its name. */
TEST_WITH(open_usual, close_all, chunks_that_are_refused_are_named)
{
	static const struct {
		const char *chunks, *status, *word;
	} table[] = {
	    {"28;ext=1\r\n", " 400 ", "extension"},
	    {"4\r\nabcd\r\n3;x=y\r\n", " 400 ", "extension"},
	    {"4;\r\n", " 400 ", "extension"},
	    {"zz\r\n", " 400 ", "hexadecimal"},
	    {";x\r\n", " 400 ", "hexadecimal"},
	    {"-1\r\n", " 400 ", "hexadecimal"},
	    {"4\r\nabcdefgh\r\n", " 400 ", "hexadecimal"},
	    {"0000000000000000000000000000000000000000000000000000000000000000"
	     "4",
		" 400 ", "too long"},
	    {"7fffffffffffffff\r\n", " 413 ", "MAX_BODY_BYTES"},
	    {"ffffffffffffffffffff\r\n", " 413 ", "MAX_BODY_BYTES"},
	};

	for (size_t i = 0; i < 2 * ARRAY_LEN(table); i++) {
		size_t at = i / 2, step = i % 2 == 0 ? 1 : 1000;
		const char *p = table[at].chunks;

		raw_close(&c);
		raw_open(&c, server.port, 0);
		raw_send(&c, server.base,
		    "POST /echo HTTP/1.1\r\nHost: h\r\n"
		    "TRANSFER-encoding:\tChunked \r\n\r\n");
		while (*p != '\0') {
			size_t n = strnlen(p, step);

			raw_turn(server.base);
			(void)raw_try_send(&c, p, n);
			p += n;
		}
		raw_wait_end(&c, server.base);
		assert_true(raw_has(&c, table[at].status));
		assert_true(raw_has(&c, table[at].word));
		assert_int_equal(raw_count(&c, "HTTP/1.1 "), 1);
	}
}

/* With blanks and bare LFs, which a proxy may take for other chunks. */
TEST_WITH(open_usual, close_all, nothing_behind_chunks_is_a_request)
{
	raw_send(&c, server.base,
	    "POST /echo HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n"
	    "\r\n4\nabcd\r\n0\r\n\r\n" GET("/smuggled"));
	raw_wait_end(&c, server.base);
	assert_true(raw_has(&c, "Connection: close\r\n"));
	assert_false(raw_has(&c, "/smuggled"));
	assert_in_range(server.requests, 1, 1);
}

TEST_WITH(open_usual, close_all, a_late_answer_to_a_client_that_left_is_safe)
{
	raw_send(&c, server.base, GET("/hold"));
	raw_wait_until(server.base, server.nheld == 1);
	raw_close(&c);
	/* While it is held nobody reads: the answer finds out. */
	http_reply(server.held[0], 200, "text/plain", "late", 4);
	raw_wait_until(server.base, server_connections(&server) == 0);
	assert_int_equal(server.gone, 0);
	raw_open(&c, server.port, 0);
	raw_ask(&c, server.base, GET("/next"), "/next");
}

TEST_WITH(open_usual, close_all, a_client_that_leaves_a_watched_one_is_noticed)
{
	raw_send(&c, server.base, GET("/watch"));
	raw_wait_until(server.base, server.nheld == 1);
	assert_int_equal(server.gone, 0);
	raw_close(&c);
	raw_wait_until(server.base, server.gone == 1);
	assert_int_equal(server_connections(&server), 0);
	http_reply(server.held[0], 200, "text/plain", "late", 4);
}

/* libevent 2.1 ends the process when a second request is read meanwhile. */
TEST_WITH(open_usual, close_all, a_request_sent_while_one_is_held_waits)
{
	raw_send(&c, server.base, GET("/hold") GET("/second"));
	raw_wait_until(server.base, server.nheld == 1);
	raw_send(&c, server.base, GET("/third"));
	for (unsigned int i = 0; i < 20; i++)
		raw_turn(server.base);
	assert_int_equal(server.requests, 1);
	http_reply(server.held[0], 200, "text/plain", "held", 4);
	raw_wait_for(&c, server.base, "\r\n\r\n/third");
	assert_int_equal(raw_count(&c, "HTTP/1.1 200"), 3);
}

/* Read by us, not by evhttp: it would end the process. */
TEST_WITH(open_usual, close_all, a_request_sent_while_one_is_watched_waits)
{
	raw_send(&c, server.base, GET("/watch") GET("/second"));
	raw_wait_until(server.base, server.nheld == 1);
	raw_send(&c, server.base, GET("/third"));
	for (unsigned int i = 0; i < 20; i++)
		raw_turn(server.base);
	assert_int_equal(server.requests, 1);
	http_reply(server.held[0], 200, "text/plain", "held", 4);
	raw_wait_for(&c, server.base, "\r\n\r\n/third");
	assert_int_equal(server.gone, 0);
	assert_int_equal(raw_count(&c, "HTTP/1.1 200"), 3);
}

static void
end_gone_stream_cb(void *arg)
{
	struct server *s = arg;

	s->gone++;
	http_stream_end(s->held[0]);
}

TEST(freeing_the_server_tells_the_holders)
{
	struct server s;
	struct raw r;

	server_open(&s, &server_usual);
	raw_open(&r, s.port, 0);
	raw_send(&r, s.base, GET("/stream"));
	raw_wait_for(&r, s.base, "\r\n\r\n");
	http_hold(s.held[0], end_gone_stream_cb, &s);
	server_close(&s);
	assert_int_equal(s.gone, 1);
	raw_close(&r);
}

TEST_WITH(open_usual, close_all,
    draining_closes_idle_connections_and_finishes_the_others)
{
	struct raw idle;

	raw_open(&idle, server.port, 0);
	raw_ask(&idle, server.base, GET("/x"), "\r\n\r\n/x");
	raw_send(&c, server.base, GET("/hold"));
	raw_wait_until(server.base, server.nheld == 1);
	http_server_drain(server.http);
	raw_wait_end(&idle, server.base);
	raw_close(&idle);
	http_reply(server.held[0], 200, "text/plain", "last", 4);
	raw_wait_end(&c, server.base);
	assert_true(raw_has(&c, "Connection: close\r\n"));
	assert_true(raw_has(&c, "\r\n\r\nlast"));
	assert_int_equal(server_connections(&server), 0);
}

TEST_WITH(open_usual, close_all, http_1_0_is_answered_and_closed)
{
	raw_send(&c, server.base, "GET /old HTTP/1.0\r\nHost: h\r\n\r\n");
	raw_wait_end(&c, server.base);
	assert_true(raw_has(&c, "HTTP/1.0 200"));
	assert_true(raw_has(&c, "\r\n\r\n/old"));
}

/* ---- what is refused */

struct refused {
	const char *request;
	const char *status;
};

static void
check_refused(const struct refused *r)
{
	struct raw client;

	raw_open(&client, server.port, 0);
	raw_send(&client, server.base, r->request);
	raw_wait_end(&client, server.base);
	if (!raw_has(&client, r->status) ||
	    !raw_has(&client, "\"error\":{\"code\":") ||
	    !raw_has(&client, "Connection: close\r\n"))
		fail_msg("to %.80s: %.600s", r->request, raw_text(&client));
	raw_close(&client);
}

TEST_WITH(open_usual, close_all, malformed_and_ambiguous_requests_are_refused)
{
	static const struct refused table[] = {
	    {"GET\r\n\r\n", " 400 "},
	    {"\x16\x03\x01\x02\x01\x01\xfc\x03\r\n\r\n", " 400 "},
	    {"GET / FTP/1.1\r\n\r\n", " 400 "},
	    {"GET / HTTP/2.0\r\nHost: h\r\n\r\n", " 400 "},
	    {"GET / HTTP/0.9\r\nHost: h\r\n\r\n", "HTTP/1.1 505 "},
	    {"GET / HTTP/1.1\r\n\r\n", " 400 "},
	    {"GET / HTTP/1.1\r\nHost: h\r\nnonsense\r\n\r\n", " 400 "},
	    {"GET / HTTP/1.1\r\nHost : h\r\n\r\n", " 400 "},
	    {"GET / HTTP/1.1\r\nHost: h\r\nA b: c\r\n\r\n", " 400 "},
	    {"GET / HTTP/1.1\r\nHost: h\r\nHost: h\r\n\r\n", " 400 "},
	    {"GET / HTTP/1.1\r\nHost: h\r\nOrigin: a\r\norigin: a\r\n\r\n",
		" 400 "},
	    {"GET / HTTP/1.1\r\nHost: h\r\nAuthorization: a\r\n"
	     "Authorization: b\r\n\r\n",
		" 400 "},
	    {"GET / HTTP/1.1\r\nHost: h\r\nMcp-Name: a\r\nMcp-Name: a\r\n\r\n",
		" 400 "},
	    {"GET / HTTP/1.1\r\nHost: h\r\nMcp-Session-Id: a\r\n"
	     "MCP-SESSION-ID: a\r\n\r\n",
		" 400 "},
	    {"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n"
	     "Content-Length: 1\r\n\r\nx",
		" 400 "},
	    {"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n"
	     "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		" 400 "},
	    {"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding:\tchunked\r\n"
	     "\r\n0\r\n\r\n",
		" 501 "},
	    {"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip, chunked"
	     "\r\n\r\n0\r\n\r\n",
		" 501 "},
	    {"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: +1\r\n\r\nx",
		" 400 "},
	    {"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: -1\r\n\r\nx",
		" 400 "},
	    {"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1x\r\n\r\nx",
		" 400 "},
	    {"POST / HTTP/1.1\r\nHost: h\r\n"
	     "Content-Length: 99999999999999999999\r\n\r\nx",
		" 4"},
	    {"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
	     "zz\r\n",
		" 400 "},
	    {"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
	     "7fffffffffffffff\r\n",
		" 413 "},
	    {"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
	     "-1\r\n",
		" 400 "},
	    {"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 2097153\r\n\r\n",
		" 413 "},
	    {"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\n"
	     "Expect: miracles\r\n\r\n",
		" 417 "},
	    {"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 9999999\r\n"
	     "Expect: 100-continue\r\n\r\n",
		" 413 "},
	    {"BREW / HTTP/1.1\r\nHost: h\r\n\r\n", " 501 "},
	    {"CONNECT a:1 HTTP/1.1\r\nHost: h\r\n\r\n", " 501 "},
	    {"GET nothing HTTP/1.1\r\nHost: h\r\n\r\n", " 400 "},
	    {"GET https://h/ HTTP/1.1\r\nHost: h\r\n\r\n", " 400 "},
	    {" continued: line HTTP/1.1\r\n\r\n", " 501 "},
	    /* What a proxy before us may read in another way. */
	    {"GET / HTTP/1.1\nHost: h\r\n\r\n", " 400 "},
	    {"GET / HTTP/1.1\r\nHost: h\nA: b\r\n\r\n", " 400 "},
	    {"GET / HTTP/1.1\r\nHost: h\r\n\n", " 400 "},
	    {"GET / HTTP/1.1\r\nHost: h\r\nA: b\r\n c\r\n\r\n", " 400 "},
	    {"GET / HTTP/1.1\r\nHost: h\r\nA: b\rc\r\n\r\n", " 400 "},
	    {"\r\nGET /a HTTP/1.1\r\nHost: h\r\n\r\n"
	     "GET /b HTTP/1.1\nHost: h\r\n\r\n",
		" 400 "},
	};

	for (size_t i = 0; i < ARRAY_LEN(table); i++)
		check_refused(&table[i]);
	raw_ask(&c, server.base, GET("/alive"), "/alive");
}

/* evhttp would take the body for the next request. */
TEST_WITH(open_usual, close_all, a_body_with_head_is_refused)
{
	raw_send(&c, server.base,
	    "HEAD / HTTP/1.1\r\nHost: h\r\nContent-Length: 29\r\n\r\n"
	    "GET /x HTTP/1.1\r\nHost: h\r\n\r\n");
	raw_wait_end(&c, server.base);
	assert_true(raw_has(&c, " 400 "));
	assert_int_equal(raw_count(&c, "HTTP/1.1"), 1);
}

TEST_WITH(open_usual, close_all, bytes_that_are_no_http_do_no_harm)
{
	static const char nul_line[] =
	    "GET / HTTP/1.1\r\nHost: h\r\n\0\r\nX: y\r\n\r\n";
	static const char nul_uri[] = "GET /a\0b HTTP/1.1\r\nHost: h\r\n\r\n";
	unsigned char noise[4096];
	uint32_t seed = 1;
	struct raw client;

	for (unsigned int round = 0; round < 40; round++) {
		raw_open(&client, server.port, 0);
		for (size_t i = 0; i < sizeof(noise); i++) {
			seed = seed * 1103515245u + 12345u;
			noise[i] = (unsigned char)(seed >> 16);
		}
		noise[sizeof(noise) - 1] = '\n';
		(void)raw_try_send(&client, noise, sizeof(noise));
		(void)raw_try_send(&client, nul_line, sizeof(nul_line) - 1);
		(void)raw_try_send(&client, nul_uri, sizeof(nul_uri) - 1);
		raw_turn(server.base);
		raw_close(&client);
	}
	raw_ask(&c, server.base, GET("/alive"), "/alive");
	raw_wait_until(server.base, server_connections(&server) == 1);
}

TEST_WITH(
    open_usual, close_all, an_absolute_target_gives_its_path_and_authority)
{
	raw_send(&c, server.base,
	    "GET http://other:1/a/b?c=d HTTP/1.1\r\nHost: h\r\n\r\n");
	raw_wait_for(&c, server.base, "\r\n\r\n/a/b");
}

TEST_WITH(open_usual, close_all, headers_beyond_the_limit_are_refused)
{
	char *text = xcalloc(1, 40000);

	(void)snprintf(text, 40000, "GET / HTTP/1.1\r\nHost: h\r\nX: ");
	memset(text + strlen(text), 'x', 20000);
	raw_send(&c, server.base, text);
	raw_wait_for(&c, server.base, " 431 ");
	raw_wait_end(&c, server.base);
	assert_true(raw_has(&c, "\"headers_too_large\""));
	raw_close(&c);
	raw_open(&c, server.port, 0);
	text[0] = '\0';
	(void)snprintf(text, 40000, "GET /");
	memset(text + 5, 'u', 20000);
	raw_send(&c, server.base, text);
	raw_wait_for(&c, server.base, " 431 ");
	free(text);
}

TEST_WITH(open_usual, close_all, many_header_lines_are_refused)
{
	struct buf b = {0};

	assert_int_equal(buf_printf(&b, "GET / HTTP/1.1\r\nHost: h\r\n"), 0);
	for (unsigned int i = 0; i < 200; i++)
		assert_int_equal(buf_printf(&b, "Mcp-%u: x\r\n", i), 0);
	assert_int_equal(buf_append(&b, "\r\n", 3), 0);
	raw_send(&c, server.base, (const char *)buf_data(&b));
	raw_wait_for(&c, server.base, " 431 ");
	buf_clear(&b);
}

/* A reset in answer to bytes that still come would hide the reason. */
TEST_WITH(open_usual, close_all, who_sends_too_much_can_read_why)
{
	char *body = xcalloc(1, 3u << 20);
	size_t at = 0;
	uint64_t until = clock_mono_ms() + RAW_PATIENCE_MS;

	raw_send(&c, server.base,
	    "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 3145728\r\n"
	    "\r\n");
	while (at < 3u << 20 && clock_mono_ms() < until) {
		at += raw_try_send(&c, body + at, (3u << 20) - at);
		raw_turn(server.base);
	}
	assert_int_equal(at, 3u << 20);
	raw_wait_end(&c, server.base);
	assert_false(c.reset);
	assert_true(raw_has(&c, " 413 "));
	assert_true(raw_has(&c, "\"code\":\"body_too_large\""));
	assert_true(raw_has(&c, "Content-Type: application/problem+json\r\n"));
	assert_true(raw_has(&c, "\"title\":\"Content Too Large\""));
	free(body);
}

TEST_WITH(open_usual, close_all, a_client_that_asks_is_told_to_continue)
{
	raw_ask(&c, server.base,
	    "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n"
	    "Expect: 100-continue\r\n\r\n",
	    "HTTP/1.1 100 Continue\r\n\r\n");
	raw_send(&c, server.base, "ok");
	raw_wait_for(&c, server.base, "\r\n\r\nok");
}

TEST_MAIN(NULL, NULL)
