/* Bytes between a connection that an engine switched and a socket of a pair. */
#include "tests/unit/worker/api_ground.h"

#include "worker/pump.h"

#define SWITCHED "HTTP/1.1 101 UPGRADED\r\nUpgrade: tcp\r\n\r\n"
#define MUCH (4u << 20)

/* What the engine says that the pump's user understands: "S" is the last, "A"
 * wants an answer; what is of another kind is the asker's. */
struct pumping {
	struct fixture *f;
	struct api_call *stream;
	struct pump *pump;
	int fd;
	bool joined, ended, left;
	enum pump_end how;
};

static int
up_cb(const uint8_t *p, size_t n, struct buf *out, struct buf *back, void *arg)
{
	(void)arg;
	for (size_t i = 0; i < n; i++) {
		if (p[i] == 'S')
			return -1;
		if (p[i] == 'A' && buf_append(back, "answer", 6) != 0)
			return -1;
		if (p[i] != 'A')
			assert_int_equal(buf_append(out, p + i, 1), 0);
	}
	return 0;
}

static void
down_cb(const uint8_t *p, size_t n, struct buf *out, void *arg)
{
	(void)arg;
	assert_int_equal(buf_append(out, "<", 1), 0);
	assert_int_equal(buf_append(out, p, n), 0);
	assert_int_equal(buf_append(out, ">", 1), 0);
}

static void
ended_cb(enum pump_end how, void *arg)
{
	struct pumping *p = arg;

	assert_false(p->ended);
	p->ended = true;
	p->how = how;
}

static void
left_cb(void *arg)
{
	struct pumping *p = arg;

	assert_false(p->left);
	p->left = true;
}

static const struct pump_user made_over = {up_cb, down_cb, ended_cb, left_cb};

static int
as_it_is_cb(
    const uint8_t *p, size_t n, struct buf *out, struct buf *back, void *arg)
{
	(void)back;
	(void)arg;
	return buf_append(out, p, n);
}

static const struct pump_user as_it_is = {
    .up = as_it_is_cb, .ended = ended_cb, .left = left_cb};

static void
switched_cb(const struct api_answer *a, void *arg)
{
	struct pumping *p = arg;

	assert_non_null(a->stream);
	p->stream = a->stream;
	p->joined = true;
}

static struct bufferevent *
engine_of(struct pumping *p)
{
	assert_int_equal(p->f->engine.nconns, 1);
	return p->f->engine.conns[0];
}

static void
pumping_begin(
    struct fixture *f, struct pumping *p, const struct pump_user *user)
{
	struct err e;

	*p = (struct pumping){.f = f, .fd = -1};
	engine_says(f, SWITCHED);
	(void)api_start(f->api,
	    &(struct api_ask){.method = "POST",
		.path = "/x",
		.upgrade = "tcp",
		.timeout_ms = 5000,
		.on_done = switched_cb,
		.arg = p});
	fixture_loop(f->base, &p->joined);
	assert_int_equal(
	    pump_open(f->base, p->stream, user, p, &p->pump, &p->fd, &e), 0);
}

static void
pumping_end(struct pumping *p)
{
	pump_free(p->pump);
	if (p->fd != -1)
		(void)close(p->fd);
	fixture_settle(p->f->base);
}

static void
expect_asker_gets(struct pumping *p, const char *text)
{
	size_t n = strlen(text), at = 0;
	char got[100];
	ssize_t r;

	while (at < n) {
		r = recv(p->fd, got + at, n - at, 0);
		assert_true(r > 0 || (r == -1 && errno == EAGAIN));
		at += r > 0 ? (size_t)r : 0;
		fixture_settle(p->f->base);
	}
	assert_memory_equal(got, text, n);
}

static void
expect_engine_gets(struct pumping *p, const char *text)
{
	struct evbuffer *in = bufferevent_get_input(engine_of(p));
	size_t n = strlen(text);

	while (evbuffer_get_length(in) < n)
		fixture_settle(p->f->base);
	assert_int_equal(evbuffer_get_length(in), n);
	assert_memory_equal(evbuffer_pullup(in, (ssize_t)n), text, n);
	(void)evbuffer_drain(in, n);
}

static void
engine_sends(struct pumping *p, const void *bytes, size_t n)
{
	assert_int_equal(bufferevent_write(engine_of(p), bytes, n), 0);
}

/* ---- while it runs */

TEST(bytes_go_both_ways_and_are_made_over)
{
	struct pumping p;

	pumping_begin(f, &p, &made_over);
	engine_sends(&p, "A", 1); /* nothing of it is the asker's */
	expect_engine_gets(&p, "answer");
	engine_sends(&p, "hello", 5);
	expect_asker_gets(&p, "hello");
	assert_int_equal(send(p.fd, "down", 4, 0), 4);
	expect_engine_gets(&p, "<down>");
	engine_sends(&p, "xAy", 3);
	expect_asker_gets(&p, "xy");
	expect_engine_gets(&p, "answer");
	assert_false(p.ended);
	pumping_end(&p);
}

TEST(what_came_with_the_answer_is_not_lost)
{
	struct pumping p;
	struct err e;

	p = (struct pumping){.f = f, .fd = -1};
	engine_says(f, SWITCHED "early");
	(void)api_start(f->api,
	    &(struct api_ask){.method = "POST",
		.path = "/x",
		.upgrade = "tcp",
		.on_done = switched_cb,
		.arg = &p});
	fixture_loop(f->base, &p.joined);
	assert_int_equal(
	    pump_open(f->base, p.stream, &made_over, &p, &p.pump, &p.fd, &e),
	    0);
	expect_asker_gets(&p, "early");
	pumping_end(&p);
}

/* The n-th byte of a long text. */
static uint8_t
byte_at(size_t n)
{
	return (uint8_t)(n ^ n >> 8 ^ n >> 16);
}

static uint8_t *
long_text(void)
{
	uint8_t *text = xcalloc(1, MUCH);

	for (size_t i = 0; i < MUCH; i++)
		text[i] = byte_at(i);
	return text;
}

TEST(an_asker_that_does_not_read_is_waited_for)
{
	AUTO(auto_free) uint8_t *text = long_text();
	static uint8_t got[30000];
	struct evbuffer *out;
	struct pumping p;
	size_t total = 0;

	pumping_begin(f, &p, &as_it_is);
	engine_sends(&p, text, MUCH);
	out = bufferevent_get_output(engine_of(&p));
	for (size_t before = 0; before != evbuffer_get_length(out);) {
		before = evbuffer_get_length(out);
		fixture_settle(f->base);
	}
	assert_true(evbuffer_get_length(out) > MUCH / 4);
	while (total < MUCH) {
		ssize_t n = recv(p.fd, got, sizeof(got), 0);

		fixture_settle(f->base);
		for (ssize_t i = 0; i < n; i++)
			if (got[i] != byte_at(total++))
				fail_msg("byte %zu", total - 1);
	}
	assert_false(p.ended);
	pumping_end(&p);
}

TEST(an_engine_that_does_not_read_is_waited_for)
{
	AUTO(auto_free) uint8_t *text = long_text();
	size_t sent = 0, idle = 0;
	struct evbuffer *in;
	struct pumping p;

	pumping_begin(f, &p, &as_it_is);
	(void)bufferevent_disable(engine_of(&p), EV_READ);
	while (idle < 3) {
		ssize_t n = send(p.fd, text + sent, MUCH - sent, 0);

		idle = n > 0 ? 0 : idle + 1;
		sent += n > 0 ? (size_t)n : 0;
		fixture_settle(f->base);
	}
	assert_in_range(sent, 1, MUCH - 1);
	(void)bufferevent_enable(engine_of(&p), EV_READ);
	in = bufferevent_get_input(engine_of(&p));
	while (evbuffer_get_length(in) < MUCH) {
		ssize_t n = send(p.fd, text + sent, MUCH - sent, 0);

		sent += n > 0 ? (size_t)n : 0;
		fixture_settle(f->base);
	}
	assert_memory_equal(evbuffer_pullup(in, -1), text, MUCH);
	assert_false(p.ended);
	pumping_end(&p);
}

/* ---- how it ends */

TEST(the_last_output_comes_before_the_end)
{
	struct pumping p;

	pumping_begin(f, &p, &made_over);
	engine_sends(&p, "lastSmore", 9);
	fixture_loop(f->base, &p.ended);
	assert_int_equal(p.how, PUMP_STOPPED);
	expect_asker_gets(&p, "last");
	pumping_end(&p);
}

TEST(an_engine_that_hangs_up_ends_it)
{
	struct pumping p;

	pumping_begin(f, &p, &made_over);
	engine_sends(&p, "last", 4);
	expect_asker_gets(&p, "last");
	fake_engine_drop(&f->engine, engine_of(&p));
	fixture_loop(f->base, &p.ended);
	assert_int_equal(p.how, PUMP_PEER_ENDED);
	pumping_end(&p);
}

TEST(an_asker_that_hangs_up_ends_it)
{
	struct pumping p;

	pumping_begin(f, &p, &made_over);
	(void)close(p.fd);
	p.fd = -1;
	fixture_loop(f->base, &p.ended);
	assert_int_equal(p.how, PUMP_ASKER_LEFT);
	pumping_end(&p);
	while (f->engine.nconns > 0)
		fixture_settle(f->base);
}

/* ---- leaving */

static void
leave(struct pumping *p, const char *last, uint32_t ms)
{
	struct buf b;

	buf_init(&b, 0);
	assert_int_equal(buf_append(&b, last, strlen(last)), 0);
	pump_leave(p->pump, &b, ms);
	buf_clear(&b);
}

TEST(an_engine_is_told_the_last_and_then_waited_for)
{
	struct pumping p;
	char c;

	pumping_begin(f, &p, &made_over);
	leave(&p, "good-bye", 60000);
	assert_int_equal(recv(p.fd, &c, 1, 0), 0);
	expect_engine_gets(&p, "good-bye");
	engine_sends(&p, "SAx", 3); /* nobody listens */
	fixture_settle(f->base);
	assert_false(p.left);
	fake_engine_drop(&f->engine, engine_of(&p));
	fixture_loop(f->base, &p.left);
	assert_false(p.ended);
	pumping_end(&p);
}

TEST(it_leaves_after_the_asker_too)
{
	struct pumping p;

	pumping_begin(f, &p, &made_over);
	(void)close(p.fd);
	p.fd = -1;
	fixture_loop(f->base, &p.ended);
	leave(&p, "good-bye", 60000);
	expect_engine_gets(&p, "good-bye");
	fake_engine_drop(&f->engine, engine_of(&p));
	fixture_loop(f->base, &p.left);
	pumping_end(&p);
}

TEST(what_was_left_over_goes_before_the_last)
{
	static uint8_t text[65536];
	struct evbuffer *in;
	size_t sent = 0, idle = 0, n = 0;
	struct pumping p;

	pumping_begin(f, &p, &as_it_is);
	(void)bufferevent_disable(engine_of(&p), EV_READ);
	while (idle < 3) {
		ssize_t r = send(p.fd, text, sizeof(text), 0);

		idle = r > 0 ? 0 : idle + 1;
		sent += r > 0 ? (size_t)r : 0;
		fixture_settle(f->base);
	}
	leave(&p, "good-bye", 60000);
	fixture_settle(f->base);
	assert_false(p.left);
	(void)bufferevent_enable(engine_of(&p), EV_READ);
	in = bufferevent_get_input(engine_of(&p));
	while (n < 8 ||
	    memcmp(evbuffer_pullup(in, -1) + n - 8, "good-bye", 8) != 0) {
		fixture_settle(f->base);
		n = evbuffer_get_length(in);
	}
	assert_in_range(n, 9, sent + 8);
	pumping_end(&p);
}

TEST(an_engine_that_asks_for_more_than_it_reads_is_left_too)
{
	static char asks[200000];
	struct pumping p;

	memset(asks, 'A', sizeof(asks));
	pumping_begin(f, &p, &made_over);
	(void)bufferevent_disable(engine_of(&p), EV_READ);
	engine_sends(&p, asks, sizeof(asks));
	fixture_loop(f->base, &p.ended);
	assert_int_equal(p.how, PUMP_STOPPED);
	leave(&p, "good-bye", 10);
	fixture_loop(f->base, &p.left);
	pumping_end(&p);
}

TEST(an_engine_that_stays_is_left)
{
	struct pumping p;

	pumping_begin(f, &p, &made_over);
	leave(&p, "", 10);
	fixture_loop(f->base, &p.left);
	assert_int_equal(f->engine.nconns, 1);
	pumping_end(&p);
	while (f->engine.nconns > 0)
		fixture_settle(f->base);
}

TEST_MAIN(setup, teardown)
