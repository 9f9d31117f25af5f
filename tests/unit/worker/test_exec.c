/* A program's streams through an engine that cuts them as it likes, hangs, or
 * breaks off: what its asker reads, and with which reason that ends. */
#include "common/log.h"
#include "tests/unit/common/forked.h"
#include "tests/unit/worker/fake_engine.h"
#include "worker/backends.h"

#define ID "0123456789ab"
#define EXEC "ab00000000000000000000000000000000000000000000000000000000000000"
#define SWITCHED                                                               \
	"HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n"
#define HEAD_BYTES 8
#define ERRORS_MAX 1024

static struct {
	struct event_base *base;
	struct fake_engine engine;
	struct bufferevent *stream; /* the engine's end */
	struct conf *conf;
	struct policy policy;
	struct backend *backend;
	bool told; /* by the backend: how its engine is */

	int make_status;
	const char *started; /* the engine's answer to the start, NULL: none */
	bool asked;          /* it was asked to start the program */

	struct backend_exec *exec;
	bool joined, ended;
	int rc, fd;
	char why[ERR_TEXT_MAX];
} fix;

/* ---- the engine */

static const char *
answer(struct fake_engine *f, const char *method, const char *path)
{
	(void)method;
	if (strcmp(path, "/_ping") == 0)
		return fake_engine_reply(200, "OK");
	if (strcmp(path, "/version") == 0)
		return fake_engine_reply(200,
		    "{\"ApiVersion\":\"1.41\",\"MinAPIVersion\":\"1.12\"}");
	if (strstr(path, "/info") != NULL)
		return fake_engine_reply(200, "{}");
	if (strstr(path, "/containers/" ID "/exec") != NULL)
		return fake_engine_reply(fix.make_status,
		    fix.make_status == 201 ? "{\"Id\":\"" EXEC "\"}" :
					     "{\"message\":\"as told\"}");
	if (strstr(path, "/exec/" EXEC "/start") == NULL)
		return NULL;
	fix.stream = f->from;
	fix.asked = true;
	return fix.started;
}

static void
put(const void *p, size_t n)
{
	assert_int_equal(bufferevent_write(fix.stream, p, n), 0);
}

static void
put_head(unsigned int kind, uint32_t length)
{
	const uint8_t head[HEAD_BYTES] = {(uint8_t)kind, 0, 0, 0,
	    (uint8_t)(length >> 24), (uint8_t)(length >> 16),
	    (uint8_t)(length >> 8), (uint8_t)length};

	put(head, sizeof(head));
}

static void
put_piece(unsigned int kind, const char *text)
{
	put_head(kind, (uint32_t)strlen(text));
	put(text, strlen(text));
}

/* ---- the backend, and who asks */

static void
on_state(bool up, const char *detail, void *arg)
{
	(void)up;
	(void)detail;
	(void)arg;
	fix.told = true;
}

static void
on_change(const struct backend_handle *h, enum backend_change what, void *arg)
{
	(void)h;
	(void)what;
	(void)arg;
}

static const struct backend_watch watch = {
    .on_state = on_state, .on_change = on_change};

static void
joined_cb(int rc, int fd, const struct err *why, void *arg)
{
	assert_ptr_equal(arg, &fix);
	assert_false(fix.joined);
	fix.joined = true;
	fix.rc = rc;
	fix.fd = fd;
	(void)snprintf(fix.why, sizeof(fix.why), "%s", rc != 0 ? why->msg : "");
}

static void
ended_cb(const char *why, void *arg)
{
	assert_ptr_equal(arg, &fix);
	assert_true(fix.joined && fix.rc == 0);
	assert_false(fix.ended);
	fix.ended = true;
	(void)snprintf(fix.why, sizeof(fix.why), "%s", why);
}

static int
setup(void **state)
{
	struct backend_start start = {
	    .instance_id = "inst", .policy = &fix.policy, .watch = &watch};
	char host[100];
	struct err e;

	(void)state;
	memset(&fix, 0, sizeof(fix));
	fix.fd = -1;
	fix.make_status = 201;
	fix.started = SWITCHED;
	fix.base = start.base = event_base_new();
	fix.conf = conf_new();
	assert_int_equal(policy_init(&fix.policy, fix.conf, &e), 0);
	fake_engine_init(&fix.engine, fix.base);
	fix.engine.answer = answer;
	(void)snprintf(host, sizeof(host), "unix://%s", fix.engine.path);
	assert_int_equal(conf_set(fix.conf, "DOCKER_HOST", host, &e), 0);
	assert_int_equal(
	    backend_open_configured(fix.conf, &start, &fix.backend, &e), 0);
	fixture_loop(fix.base, &fix.told);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	if (fix.backend != NULL)
		fix.backend->ops->free(fix.backend);
	if (fix.fd != -1)
		(void)close(fix.fd);
	fake_engine_clear(&fix.engine);
	fixture_settle(fix.base);
	event_base_free(fix.base);
	policy_clear(&fix.policy);
	conf_free(fix.conf);
	return 0;
}

static void
ask(void)
{
	static const struct backend_exec_user user = {joined_cb, ended_cb};
	static const char *const command[] = {"agent", "bridge", NULL};
	struct backend_handle h;

	backend_handle_named(&h, ID);
	fix.exec =
	    fix.backend->ops->exec(fix.backend, &h, command, &user, &fix);
	assert_false(fix.joined);
}

static void
join(void)
{
	ask();
	fixture_loop(fix.base, &fix.joined);
	assert_string_equal(fix.why, "");
}

/* What comes out, which is this text and no more. */
static void
expect(const char *text)
{
	uint64_t end = clock_mono_ms() + FIXTURE_WAIT_MS;
	char got[200];
	size_t n = 0;

	while (n < strlen(text)) {
		ssize_t r = recv(fix.fd, got + n, sizeof(got) - n, 0);

		assert_true(r != 0 && clock_mono_ms() < end);
		n += r > 0 ? (size_t)r : 0;
		fixture_settle(fix.base);
	}
	assert_int_equal(n, strlen(text));
	assert_memory_equal(got, text, n);
	assert_int_equal(recv(fix.fd, got, 1, 0), fix.ended ? 0 : -1);
}

static void
expect_end(const char *why)
{
	fixture_loop(fix.base, &fix.ended);
	assert_string_equal(fix.why, why);
}

static bool
is_connected(void)
{
	for (size_t i = 0; i < fix.engine.nconns; i++)
		if (fix.engine.conns[i] == fix.stream)
			return true;
	return false;
}

/* The engine sees that nobody is there any more. */
static void
expect_hung_up(void)
{
	while (is_connected())
		fixture_settle(fix.base);
}

/* ---- what is right */

TEST(output_comes_without_the_engines_heads_and_input_goes_as_it_is)
{
	struct evbuffer *in;

	join();
	put_piece(1, "one ");
	put_piece(1, "");
	put_piece(1, "two");
	expect("one two");
	assert_int_equal(send(fix.fd, "down", 4, MSG_NOSIGNAL), 4);
	in = bufferevent_get_input(fix.stream);
	while (evbuffer_get_length(in) < 4)
		fixture_settle(fix.base);
	assert_memory_equal(evbuffer_pullup(in, 4), "down", 4);
	assert_false(fix.ended);
}

TEST(what_comes_with_the_switch_is_the_streams)
{
	fix.started = SWITCHED "\1";
	join();
	put("\0\0\0\0\0\0\5early", 12);
	expect("early");
}

TEST(heads_and_pieces_may_come_byte_for_byte)
{
	static const char bytes[] = "\1\0\0\0\0\0\0\3abc\1\0\0\0\0\0\0\2de";

	join();
	for (size_t i = 0; i < sizeof(bytes) - 1; i++) {
		put(bytes + i, 1);
		fixture_settle(fix.base);
	}
	expect("abcde");
}

TEST(what_nobody_reads_waits_and_is_whole)
{
	static uint8_t piece[1 << 16], got[1 << 16];
	size_t total = 64 * sizeof(piece), at = 0;

	join();
	for (size_t i = 0; i < 64; i++) {
		memset(piece, (int)i, sizeof(piece));
		put_head(1, sizeof(piece));
		put(piece, sizeof(piece));
	}
	/* Until sockets and buffers are full. */
	fixture_settle(fix.base);
	fixture_settle(fix.base);
	assert_true(
	    evbuffer_get_length(bufferevent_get_output(fix.stream)) > 0);
	while (at < total) {
		ssize_t r = recv(fix.fd, got, sizeof(got), 0);

		for (ssize_t i = 0; i < r; i++)
			if (got[i] != (uint8_t)((at + (size_t)i) >> 16))
				fail_msg("byte %zu", at + (size_t)i);
		at += r > 0 ? (size_t)r : 0;
		fixture_settle(fix.base);
	}
	assert_false(fix.ended);
}

/* ---- what is not of the format */

TEST(a_piece_of_the_greatest_length_is_one)
{
	join();
	put_head(1, 16u << 20);
	put("begin", 5);
	expect("begin");
	assert_false(fix.ended);
}

TEST(what_is_not_of_the_format_ends_the_stream_behind_what_was)
{
	static const struct {
		const char head[HEAD_BYTES + 1];
		const char *why;
	} rows[] = {
	    {"\1\0\0\0\377\377\377\377",
		"the engine's stream has a piece that is too long"},
	    {"\1\0\0\0\1\0\0\1",
		"the engine's stream has a piece that is too long"},
	    {"\2\0\0\0\377\377\377\377",
		"the engine's stream has a piece that is too long"},
	    {"\0\0\0\0\0\0\0\1",
		"the engine's stream has a piece of no known kind"},
	    {"\3\0\0\0\0\0\0\1",
		"the engine's stream has a piece of no known kind"},
	    {"\1\0\1\0\0\0\0\1", "the engine's stream is not of its format"},
	    {"HTTP/1.1", "the engine's stream is not of its format"},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		join();
		put_piece(1, "good");
		expect("good");
		put(rows[i].head, HEAD_BYTES);
		put("bad", 3);
		expect_end(rows[i].why);
		expect("");
		(void)close(fix.fd);
		fix.fd = -1;
		fix.joined = fix.ended = false;
	}
}

/* ---- the program's errors */

TEST(a_line_of_errors_is_not_in_the_output)
{
	join();
	put_piece(1, "be");
	put_piece(2, "a line of nobody\n");
	put_piece(1, "tween");
	expect("between");
}

TEST(so_many_errors_are_borne_and_one_more_is_not)
{
	char errors[ERRORS_MAX + 1] = {0};

	memset(errors, 'x', ERRORS_MAX);
	join();
	put_piece(2, errors);
	put_piece(1, "good");
	expect("good");
	put_piece(2, "x");
	expect_end("the program in the sandbox writes too much to its stderr");
}

static void
say_an_error_and_end(void)
{
	NEED(event_reinit(fix.base) == 0);
	log_init("worker/0");
	join();
	put_piece(2, "no \33[31magent\n");
	fixture_settle(fix.base);
	fake_engine_drop(&fix.engine, fix.stream);
	fixture_loop(fix.base, &fix.ended);
}

TEST(what_it_said_is_in_the_log_and_fit_for_it)
{
	struct forked f;

	forked_run(&f, say_an_error_and_end);
	assert_non_null(strstr(f.text, "the program in the sandbox says: no "));
	assert_non_null(strstr(f.text, "[31magent"));
	assert_null(strchr(f.text, '\33'));
}

/* ---- an engine that closes, or hangs */

TEST(a_close_in_the_middle_of_the_format_ends_it_behind_what_came)
{
	static const struct {
		const char *bytes;
		size_t n;
		const char *out;
	} rows[] = {{"", 0, ""}, {"\1\0\0", 3, ""},
	    {"\1\0\0\0\0\0\0\5ab", 10, "ab"},
	    {"\1\0\0\0\0\0\0\2ab\1\0\0\0\0", 15, "ab"},
	    {"\2\0\0\0\0\0\0\5ab", 10, ""}};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		join();
		put(rows[i].bytes, rows[i].n);
		fixture_settle(fix.base);
		fake_engine_drop(&fix.engine, fix.stream);
		expect_end("the engine ended the stream");
		expect(rows[i].out);
		(void)close(fix.fd);
		fix.fd = -1;
		fix.joined = fix.ended = false;
	}
}

TEST(a_stream_on_which_nothing_comes_is_the_askers_to_end)
{
	char c;

	join();
	fixture_settle(fix.base);
	assert_false(fix.ended);
	fix.backend->ops->exec_cancel(fix.exec);
	expect_hung_up();
	assert_int_equal(recv(fix.fd, &c, 1, 0), 0);
	assert_false(fix.ended);
}

TEST(an_asker_that_hangs_up_ends_it)
{
	join();
	(void)close(fix.fd);
	fix.fd = -1;
	expect_end("the worker hung up");
	expect_hung_up();
}

TEST(an_engine_that_never_switches_may_be_left)
{
	fix.started = NULL;
	ask();
	fixture_loop(fix.base, &fix.asked);
	fix.backend->ops->exec_cancel(fix.exec);
	expect_hung_up();
	assert_false(fix.joined);
}

TEST(who_waits_for_the_switch_is_told_when_the_backend_ends)
{
	fix.started = NULL;
	ask();
	fixture_loop(fix.base, &fix.asked);
	fix.backend->ops->free(fix.backend);
	fix.backend = NULL;
	assert_true(fix.joined);
	assert_int_equal(fix.rc, ERR_WRONG_STATE);
}

/* ---- refusals */

TEST(a_refusal_is_told_with_the_engines_words)
{
	static const struct {
		int status, rc;
	} rows[] = {{404, ERR_NOTFOUND}, {409, ERR_NOTFOUND},
	    {403, ERR_BACKEND}, {500, ERR_BACKEND}};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		fix.make_status = rows[i].status;
		fix.joined = false;
		ask();
		fixture_loop(fix.base, &fix.joined);
		assert_int_equal(fix.rc, rows[i].rc);
		assert_non_null(strstr(fix.why, "as told"));
	}
	assert_false(fix.asked);
}

TEST(an_engine_that_does_not_hand_the_connection_over_is_named)
{
	fix.started = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
	ask();
	fixture_loop(fix.base, &fix.joined);
	assert_int_equal(fix.rc, ERR_BACKEND);
	assert_non_null(strstr(fix.why, "does not hand the connection over"));
	assert_int_equal(fix.fd, -1);
}

TEST_MAIN(setup, teardown)
