/*
 * test_http_large.c - answers above HTTP_MEMORY_MAX wait in a file
 *
 * A file without a name is seen as a descriptor of this process that points
 * into the server's directory.
 */
#include "tests/unit/http/server.h"

#include <dirent.h>
#include <malloc.h>
#include <unistd.h>

#define LARGE (1u << 20)
#define BIG GET("/big")

static char dir[] = "/tmp/http-large-XXXXXX";

static int
open_all(void **state)
{
	struct http_limits limits = server_usual;

	(void)state;
	limits.large_dir = dir;
	server_open(&server, &limits);
	/* Small, so that most of an answer waits on the server's side. */
	raw_open(&c, server.port, 4096);
	return 0;
}

static bool
is_nameless(const char *number)
{
	char path[300], target[300];
	ssize_t n;

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%s", number);
	n = readlink(path, target, sizeof(target) - 1);
	if (n < 0)
		return false;
	target[n] = '\0';
	return strncmp(target, dir, strlen(dir)) == 0 &&
	    strstr(target, "(deleted)") != NULL;
}

static unsigned int
files(void)
{
	DIR *d = opendir("/proc/self/fd");
	const struct dirent *entry;
	unsigned int n = 0;

	assert_non_null(d);
	while ((entry = readdir(d)) != NULL)
		n += is_nameless(entry->d_name) ? 1 : 0;
	(void)closedir(d);
	return n;
}

/* Bytes of the heap in use; the sanitizers' says 0. */
static size_t
allocated(void)
{
	struct mallinfo2 all = mallinfo2();

	return all.uordblks + all.hblkhd;
}

static uint8_t
pattern(size_t i)
{
	return (uint8_t)('a' + i % 23);
}

static char *
large_text(void)
{
	char *text = xmalloc(LARGE + 1);

	for (size_t i = 0; i < LARGE; i++)
		text[i] = (char)pattern(i);
	text[LARGE] = '\0';
	return text;
}

/* What comes next in c is n bytes of the pattern, from at on. */
static void
take_pattern(size_t at, size_t n)
{
	const uint8_t *p;

	raw_wait_until(server.base, (raw_receive(&c), buf_len(&c.in) >= n));
	p = buf_data(&c.in);
	for (size_t i = 0; i < n; i++)
		if (p[i] != pattern(at + i))
			fail_msg("byte %zu is wrong", at + i);
	buf_consume(&c.in, n);
}

static void
take_text(const char *text)
{
	size_t n = strlen(text);

	raw_wait_until(server.base, (raw_receive(&c), buf_len(&c.in) >= n));
	assert_memory_equal(buf_data(&c.in), text, n);
	buf_consume(&c.in, n);
}

static void
take_head(void)
{
	const char *text;

	raw_wait_for(&c, server.base, "\r\n\r\n");
	text = raw_text(&c);
	buf_consume(&c.in, (size_t)(strstr(text, "\r\n\r\n") + 4 - text));
}

static void
stream_bytes(const void *p, size_t n)
{
	struct evbuffer *out = evbuffer_new();

	(void)evbuffer_add(out, p, n);
	http_stream_write(server.held[0], out);
	assert_int_equal(evbuffer_get_length(out), 0);
	evbuffer_free(out);
}

TEST(a_large_answer_waits_in_a_file_and_comes_whole)
{
	char *text = large_text();

	raw_send(&c, server.base, GET("/hold"));
	raw_wait_until(server.base, server.nheld == 1);
	http_reply(server.held[0], 200, "text/plain", text, LARGE);
	free(text);
	assert_int_equal(files(), 1);
	take_head();
	take_pattern(0, LARGE);
	raw_wait_until(server.base, files() == 0);
	raw_ask(&c, server.base, GET("/next"), "/next");
}

TEST(a_short_answer_needs_no_file)
{
	raw_ask(&c, server.base, GET("/short"), "/short");
	assert_int_equal(files(), 0);
}

TEST(a_head_needs_no_file)
{
	raw_ask(&c, server.base, "HEAD /big HTTP/1.1\r\nHost: h\r\n\r\n",
	    "Content-Length: 16777216\r\n");
	assert_int_equal(files(), 0);
}

TEST(a_client_that_leaves_takes_its_file_with_it)
{
	raw_send(&c, server.base, BIG);
	raw_wait_until(server.base, files() == 1);
	raw_close(&c);
	raw_wait_until(server.base, files() == 0);
}

TEST(a_large_event_waits_in_a_file_between_others)
{
	char *text = large_text();
	char chunk[32];
	size_t before;

	raw_send(&c, server.base, GET("/stream"));
	take_head();
	stream_bytes("before\n", 7);
	before = allocated();
	stream_bytes(text, LARGE);
	assert_int_equal(files(), 1);
	assert_true(allocated() < before + LARGE / 4);
	stream_bytes("behind\n", 7);
	http_stream_end(server.held[0]);
	take_text("7\r\nbefore\n\r\n");
	(void)snprintf(chunk, sizeof(chunk), "%x\r\n", LARGE - 1);
	take_text(chunk);
	take_pattern(0, LARGE - 1);
	take_text("\r\n1\r\n");
	take_pattern(LARGE - 1, 1);
	take_text("\r\n7\r\nbehind\n\r\n0\r\n\r\n");
	raw_wait_until(server.base, files() == 0);
	free(text);
}

TEST(a_large_event_to_http_1_0_has_no_chunks)
{
	char *text = large_text();

	raw_send(&c, server.base, "GET /stream HTTP/1.0\r\nHost: h\r\n\r\n");
	take_head();
	stream_bytes(text, LARGE);
	http_stream_end(server.held[0]);
	take_pattern(0, LARGE);
	raw_wait_end(&c, server.base);
	assert_int_equal(buf_len(&c.in), 0);
	free(text);
}

/* A client that reads little: what comes behind a file is in memory, however
 * much of the file went. */
TEST(what_waits_behind_a_file_is_counted)
{
	enum {
		SHORT = 60000
	};
	char chunk[32];
	char *text = large_text();
	struct http_stats st;

	(void)snprintf(chunk, sizeof(chunk), "%x\r\n", LARGE - 1);
	raw_send(&c, server.base, GET("/stream"));
	take_head();
	stream_bytes(text, LARGE);
	take_text(chunk); /* some of it went */
	stream_bytes(text, SHORT);
	http_server_stats(server.http, &st);
	assert_true(st.waiting_memory >= SHORT);
	http_stream_end(server.held[0]);
	free(text);
}

/* Clients that do not read: what waits for them together has two limits. */
TEST(what_waits_for_all_clients_is_bounded)
{
	struct raw many[6];
	struct http_stats st;

	for (size_t i = 0; i < ARRAY_LEN(many); i++) {
		raw_open(&many[i], server.port, 4096);
		raw_send(&many[i], server.base, BIG);
	}
	raw_wait_until(server.base, server.requests == ARRAY_LEN(many));
	assert_int_equal(files(), 4); /* 64 MiB */
	http_server_stats(server.http, &st);
	assert_int_equal(st.waiting_files, 64u << 20);
	raw_wait_for(&many[4], server.base, " 503 ");
	raw_wait_for(&many[5], server.base, "\"busy\"");
	raw_ask(&c, server.base, GET("/short"), "/short");
	for (size_t i = 0; i < ARRAY_LEN(many); i++)
		raw_close(&many[i]);
	raw_wait_until(server.base, files() == 0);
	http_server_stats(server.http, &st);
	assert_int_equal(st.waiting_files, 0);
	assert_int_equal(st.waiting_memory, 0);
}

TEST_WITH(NULL, close_all, when_memory_is_short_files_begin_earlier)
{
	struct http_limits limits = server_usual;
	static char text[200000];
	struct http_stats st;
	struct raw many[8];

	limits.large_dir = dir;
	limits.waiting_memory = 300000;
	server_open(&server, &limits);
	for (size_t i = 0; i < ARRAY_LEN(many); i++) {
		raw_open(&many[i], server.port, 4096);
		raw_send(&many[i], server.base, GET("/hold"));
		raw_wait_until(server.base, server.nheld == i + 1);
	}
	/* In one turn: the sockets take nothing before its end. */
	for (size_t i = 0; i < ARRAY_LEN(many); i++)
		http_reply(
		    server.held[i], 200, "text/plain", text, sizeof(text));
	http_server_stats(server.http, &st);
	assert_in_range(st.waiting_memory, 1, limits.waiting_memory);
	assert_int_equal(files(), ARRAY_LEN(many) - 1);
	for (size_t i = 0; i < ARRAY_LEN(many); i++)
		raw_close(&many[i]);
	raw_open(&c, server.port, 0);
}

TEST(one_file_is_the_answer_to_many)
{
	struct http_large *large;
	struct raw many[3];
	int fd;

	fd = http_large_file(server.http);
	assert_int_equal(write(fd, "shared", 6), 6);
	large = http_large_new(server.http, fd, 6);
	for (size_t i = 0; i < ARRAY_LEN(many); i++) {
		raw_open(&many[i], server.port, 4096);
		raw_send(&many[i], server.base, GET("/hold"));
		raw_wait_until(server.base, server.nheld == i + 1);
		http_reply_large(server.held[i], 200, "text/plain", large);
	}
	http_large_unref(large);
	for (size_t i = 0; i < ARRAY_LEN(many); i++) {
		raw_wait_for(&many[i], server.base, "\r\n\r\nshared");
		raw_close(&many[i]);
	}
	raw_wait_until(server.base, files() == 0);
}

TEST_WITH(NULL, close_all, without_a_directory_a_large_answer_waits_in_memory)
{
	server_open(&server, &server_usual);
	raw_open(&c, server.port, 4096);
	raw_ask(&c, server.base, BIG, "Content-Length: 16777216\r\n");
	assert_int_equal(files(), 0);
}

int
main(void)
{
	int failed;

	if (mkdtemp(dir) == NULL)
		return 1;
	failed = tests_run(open_all, close_all, NULL, NULL);
	(void)rmdir(dir);
	return failed;
}
