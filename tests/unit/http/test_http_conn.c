#include "tests/unit/http/server.h"

/* Bounds in time and memory: what slow, silent, greedy and many clients get. */

/* Send one byte of text per turn, round and round, until the end. */
static uint64_t
trickle(const char *text)
{
	uint64_t start = clock_mono_ms();
	size_t n = strlen(text);

	for (size_t i = 0; !c.ended && clock_mono_ms() < start + 20000; i++) {
		(void)raw_try_send(&c, &text[i % n], 1);
		for (unsigned int t = 0; t < 10 && !c.ended; t++) {
			raw_turn(server.base);
			raw_receive(&c);
		}
	}
	assert_true(c.ended);
	return clock_mono_ms() - start;
}

TEST_WITH(open_hasty, close_all, a_client_that_says_nothing_is_closed)
{
	uint64_t start = clock_mono_ms();

	raw_wait_end(&c, server.base);
	assert_true(clock_mono_ms() - start >= server_hasty.request_ms - 50);
	assert_int_equal(buf_len(&c.in), 0);
	assert_int_equal(server_connections(&server), 0);
}

TEST_WITH(open_hasty, close_all, headers_that_trickle_in_are_cut_off_in_time)
{
	uint64_t took;

	raw_send(&c, server.base, "GET / HTTP/1.1\r\nHost: h\r\n");
	took = trickle("X-A: b\r\n");
	assert_true(raw_has(&c, " 408 "));
	assert_true(took < 5000);
}

TEST_WITH(open_hasty, close_all, a_body_that_trickles_in_is_cut_off_in_time)
{
	raw_send(&c, server.base,
	    "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 100000\r\n\r\n");
	assert_true(trickle("xxxx") < 5000);
	assert_true(raw_has(&c, " 408 "));
	assert_true(raw_has(&c, "\"request_timeout\""));
}

TEST_WITH(open_hasty, close_all, a_second_request_has_its_time_too)
{
	raw_ask(&c, server.base, GET("/one"), "\r\n\r\n/one");
	raw_send(&c, server.base, "GET / HT");
	assert_true(trickle("T") < 5000);
	assert_true(raw_has(&c, " 408 "));
}

TEST_WITH(open_hasty, close_all, an_idle_connection_is_closed_without_a_word)
{
	raw_ask(&c, server.base, GET("/one"), "\r\n\r\n/one");
	raw_wait_end(&c, server.base);
	assert_int_equal(buf_len(&c.in), 0);
}

TEST_WITH(open_hasty, close_all, a_held_request_is_not_cut_off)
{
	uint64_t until;

	raw_send(&c, server.base, GET("/hold"));
	raw_wait_until(server.base, server.nheld == 1);
	until = clock_mono_ms() + 3 * server_hasty.idle_ms;
	while (clock_mono_ms() < until)
		raw_turn(server.base);
	http_reply(server.held[0], 200, "text/plain", "done", 4);
	raw_wait_for(&c, server.base, "\r\n\r\ndone");
}

TEST_WITH(open_hasty, close_all, an_answer_that_nobody_reads_is_given_up)
{
	raw_send(&c, server.base, GET("/big"));
	raw_wait_until(server.base, server.requests == 1);
	raw_wait_until(server.base, server_connections(&server) == 0);
}

TEST_WITH(open_hasty, close_all, an_answer_that_is_read_slowly_arrives_whole)
{
	uint64_t until = clock_mono_ms() + RAW_PATIENCE_MS;
	char chunk[200000];
	size_t got = 0;
	ssize_t n;

	raw_send(&c, server.base, GET("/big"));
	/* Longer than idle_ms in all, never so long between two reads. */
	while (got < SERVER_BIG && clock_mono_ms() < until) {
		for (unsigned int i = 0; i < 10; i++)
			raw_turn(server.base);
		n = recv(c.fd, chunk, sizeof(chunk), 0);
		if (n == 0 || (n < 0 && errno != EAGAIN))
			break;
		got += n > 0 ? (size_t)n : 0;
	}
	assert_true(got >= SERVER_BIG);
}

/* ---- many clients */

/* A server of two places, both of them at work. */
static void
open_two_busy(struct server *s, struct raw two[2])
{
	struct http_limits limits = server_usual;

	limits.connections_max = 2;
	server_open(s, &limits);
	for (unsigned int i = 0; i < 2; i++) {
		raw_open(&two[i], s->port, 0);
		raw_send(&two[i], s->base, GET("/hold"));
		raw_wait_until(s->base, s->nheld == i + 1);
	}
}

static void
close_two(struct server *s, struct raw two[2])
{
	for (unsigned int i = 0; i < s->nheld; i++)
		if (s->held[i] != NULL)
			http_reply(s->held[i], 204, NULL, NULL, 0);
	raw_close(&two[0]);
	raw_close(&two[1]);
	server_close(s);
}

TEST(connections_beyond_the_limit_are_told_so)
{
	struct raw two[2];
	struct server s;

	open_two_busy(&s, two);
	raw_close(&c);
	raw_open(&c, s.port, 0);
	raw_send(&c, s.base, GET("/c"));
	raw_wait_end(&c, s.base);
	assert_true(raw_has(&c, " 503 "));
	assert_true(raw_has(&c, "\"busy\""));
	http_reply(s.held[0], 200, "text/plain", "end", 3);
	s.held[0] = NULL;
	raw_wait_for(&two[0], s.base, "end");
	raw_close(&two[0]);
	raw_wait_until(s.base, server_connections(&s) == 1);
	raw_close(&c);
	raw_open(&c, s.port, 0);
	raw_ask(&c, s.base, GET("/d"), "/d");
	close_two(&s, two);
}

TEST(a_probe_is_answered_beyond_the_limit)
{
	struct raw two[2];
	struct server s;

	open_two_busy(&s, two);
	raw_close(&c);
	raw_open(&c, s.port, 0);
	raw_send(&c, s.base, GET("/probe"));
	raw_wait_end(&c, s.base);
	assert_true(raw_has(&c, " 200 "));
	assert_true(raw_has(&c, "Connection: close\r\n"));
	close_two(&s, two);
}

/* Nobody waits for it, and its client may always connect again. */
TEST(the_connection_that_rests_longest_gives_its_place)
{
	struct http_limits limits = server_usual;
	struct raw two[2];
	struct server s;

	limits.connections_max = 2;
	server_open(&s, &limits);
	for (unsigned int i = 0; i < 2; i++) {
		raw_open(&two[i], s.port, 0);
		raw_ask(&two[i], s.base, GET("/a"), "/a");
	}
	raw_ask(&two[0], s.base, GET("/again"), "/again");
	raw_close(&c);
	raw_open(&c, s.port, 0);
	raw_ask(&c, s.base, GET("/c"), "/c");
	raw_wait_end(&two[1], s.base);
	assert_int_equal(buf_len(&two[1].in), 0);
	raw_ask(&two[0], s.base, GET("/d"), "/d");
	assert_int_equal(server_connections(&s), 2);
	close_two(&s, two);
}

/* A server of two places, for connections that do not ask. */
static void
open_two_quiet(struct server *s, const struct http_limits *limits,
    struct raw two[2], const char *say)
{
	struct http_limits of_two = *limits;

	of_two.connections_max = 2;
	server_open(s, &of_two);
	for (unsigned int i = 0; i < 2; i++) {
		raw_open(&two[i], s->port, 0);
		raw_send(&two[i], s->base, say);
		raw_wait_until(s->base, server_connections(s) == i + 1);
	}
}

TEST(connections_that_say_nothing_keep_nobody_out)
{
	struct raw two[2];
	struct server s;

	open_two_quiet(&s, &server_usual, two, "");
	raw_close(&c);
	raw_open(&c, s.port, 0);
	raw_ask(&c, s.base, GET("/c"), "/c");
	raw_wait_end(&two[0], s.base);
	assert_int_equal(buf_len(&two[0].in), 0);
	raw_ask(&two[1], s.base, GET("/late"), "/late");
	assert_int_equal(server_connections(&s), 2);
	close_two(&s, two);
}

/* Who asks in the same turn is older, and not at rest. */
TEST(a_connection_whose_request_waits_to_be_read_keeps_its_place)
{
	struct raw two[2];
	struct server s;

	open_two_quiet(&s, &server_usual, two, "");
	raw_close(&c);
	raw_open(&c, s.port, 0);
	raw_send(&two[0], s.base, GET("/a"));
	raw_send(&c, s.base, GET("/c"));
	raw_wait_for(&c, s.base, "/c");
	raw_wait_for(&two[0], s.base, "/a");
	raw_wait_end(&two[1], s.base);
	close_two(&s, two);
}

/* They do not go on: each has the time for its request, and no longer a place
 * that somebody else asks for. */
TEST(requests_that_stay_unfinished_keep_nobody_out)
{
	uint64_t until = clock_mono_ms() + RAW_PATIENCE_MS;
	struct http_limits limits = server_usual;
	struct raw two[2];
	struct server s;

	limits.request_ms = 2 * RAW_PATIENCE_MS;
	open_two_quiet(&s, &limits, two, "GET /never HTTP/1.1\r\nHo");
	while (!raw_has(&c, "/c") && clock_mono_ms() < until) {
		raw_close(&c);
		raw_open(&c, s.port, 0);
		raw_send(&c, s.base, GET("/c"));
		while (
		    !raw_has(&c, "/c") && !c.ended && clock_mono_ms() < until) {
			raw_turn(s.base);
			raw_receive(&c);
		}
	}
	assert_true(raw_has(&c, "/c"));
	raw_wait_end(&two[0], s.base);
	assert_true(raw_has(&two[0], " 408 "));
	close_two(&s, two);
}

static unsigned int
next_descriptor(void)
{
	int fd = dup(0);

	assert_true(fd >= 0);
	(void)close(fd);
	return (unsigned int)fd;
}

/* The clients are of this process too: enough for them, not for the server. */
TEST(accepting_pauses_while_descriptors_are_scarce)
{
	struct rlimit usual, few;
	struct raw waits;
	struct server s;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &usual), 0);
	few = usual;
	few.rlim_cur = next_descriptor() + 14;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	server_open(&s, &server_usual);
	raw_open(&waits, s.port, 0);
	raw_send(&waits, s.base, GET("/a"));
	raw_wait_end(&waits, s.base);
	raw_close(&waits);
	raw_open(&waits, s.port, 0);
	raw_send(&waits, s.base, GET("/b"));
	for (unsigned int i = 0; i < 50; i++)
		raw_turn(s.base);
	http_server_tick(s.http);
	assert_int_equal(s.requests, 0);
	/* A server that knows a higher limit goes on with the same queue. */
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &usual), 0);
	raw_close(&waits);
	server_close(&s);
}

TEST(accepting_goes_on_when_descriptors_are_free_again)
{
	struct rlimit usual, few;
	int spare[40];
	struct raw waits;
	struct server s;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &usual), 0);
	few = usual;
	few.rlim_cur = next_descriptor() + 70;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	server_open(&s, &server_usual);
	for (size_t i = 0; i < ARRAY_LEN(spare); i++) {
		spare[i] = dup(0);
		assert_true(spare[i] >= 0);
	}
	for (unsigned int i = 0; i < 20; i++) {
		raw_open(&waits, s.port, 0);
		for (unsigned int turn = 0; turn < 3; turn++)
			raw_turn(s.base);
		raw_close(&waits);
	}
	raw_open(&waits, s.port, 0);
	raw_send(&waits, s.base, GET("/late"));
	for (size_t i = 0; i < ARRAY_LEN(spare); i++)
		(void)close(spare[i]);
	http_server_tick(s.http);
	raw_wait_for(&waits, s.base, "/late");
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &usual), 0);
	raw_close(&waits);
	server_close(&s);
}

/* Bodies that never come whole: together they would be 200 MiB. */
TEST(unfinished_bodies_are_bounded_together)
{
	static const char head[] =
	    "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: 2097152\r\n\r\n";
	uint64_t until = clock_mono_ms() + RAW_PATIENCE_MS;
	struct raw *many = xcalloc(100, sizeof(*many));
	char *body = xcalloc(1, 2u << 20);
	unsigned int refused = 0;
	size_t *at = xcalloc(100, sizeof(*at));

	for (size_t i = 0; i < 100; i++) {
		raw_open(&many[i], server.port, 0);
		raw_send(&many[i], server.base, head);
	}
	while (refused == 0 && clock_mono_ms() < until) {
		for (size_t i = 0; i < 100; i++) {
			at[i] += raw_try_send(
			    &many[i], body + at[i], (2u << 20) - 1 - at[i]);
			raw_receive(&many[i]);
			refused += raw_has(&many[i], " 503 ");
		}
		raw_turn(server.base);
	}
	assert_true(refused > 0);
	for (size_t i = 0; i < 100; i++)
		raw_close(&many[i]);
	raw_ask(&c, server.base, GET("/alive"), "/alive");
	raw_wait_until(server.base, server_connections(&server) == 1);
	free(many);
	free(body);
	free(at);
}

enum {
	HOGS = 40,
	HOG_BYTES = (2u << 20) - 64
};

/* A body that never comes whole; in chunks of 60,000 bytes or as it is. */
static char *
hog_body(bool chunked)
{
	char *body = xcalloc(1, HOG_BYTES + 1);

	memset(body, 'x', HOG_BYTES);
	for (size_t at = 0; chunked && at + 60008 < HOG_BYTES; at += 60008) {
		memcpy(body + at, "ea60\r\n", 6);
		memcpy(body + at + 60006, "\r\n", 2);
	}
	return body;
}

/* All of them have sent all of it, or were refused; how many were. */
static unsigned int
hogs_send(struct raw hogs[HOGS], const char *body, bool chunked)
{
	uint64_t until = clock_mono_ms() + RAW_PATIENCE_MS;
	size_t n = chunked ? HOG_BYTES / 60008 * 60008 : HOG_BYTES;
	size_t at[HOGS] = {0}, busy = HOGS;
	unsigned int refused = 0;

	while (busy > 0 && clock_mono_ms() < until) {
		busy = 0;
		refused = 0;
		for (size_t i = 0; i < HOGS; i++) {
			raw_receive(&hogs[i]);
			refused += raw_has(&hogs[i], " 503 ");
			if (hogs[i].ended || at[i] == n)
				continue;
			at[i] +=
			    raw_try_send(&hogs[i], body + at[i], n - at[i]);
			busy++;
		}
		raw_turn(server.base);
	}
	assert_int_equal(busy, 0);
	return refused;
}

static void
check_newcomer_beside_hogs(const char *head, bool chunked)
{
	struct raw hogs[HOGS], newcomer;
	char *body = hog_body(chunked);
	char *whole = xcalloc(1, (1u << 20) + 200);
	int n;

	for (size_t i = 0; i < HOGS; i++) {
		raw_open(&hogs[i], server.port, 0);
		raw_send(&hogs[i], server.base, head);
	}
	assert_in_range(hogs_send(hogs, body, chunked), 1, HOGS - 16);
	raw_open(&newcomer, server.port, 0);
	n = snprintf(whole, 200,
	    "POST /echo HTTP/1.1\r\nHost: h\r\nContent-Length: %u\r\n\r\n",
	    1u << 20);
	memset(whole + n, 'y', 1u << 20);
	raw_send(&newcomer, server.base, whole);
	raw_wait_for(&newcomer, server.base, "HTTP/1.1 ");
	assert_true(raw_has(&newcomer, " 200 "));
	raw_close(&newcomer);
	for (size_t i = 0; i < HOGS; i++)
		raw_close(&hogs[i]);
	free(whole);
	free(body);
}

TEST(who_sends_without_end_gives_way_to_who_has_just_come)
{
	check_newcomer_beside_hogs("POST /echo HTTP/1.1\r\nHost: h\r\n"
				   "Content-Length: 2097152\r\n\r\n",
	    false);
}

/* Which evhttp takes out of its input one by one. */
TEST(chunks_of_unfinished_bodies_count_as_well)
{
	check_newcomer_beside_hogs("POST /echo HTTP/1.1\r\nHost: h\r\n"
				   "Transfer-Encoding: chunked\r\n\r\n",
	    true);
}

TEST_MAIN(open_usual, close_all)
