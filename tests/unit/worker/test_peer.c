#include "tests/unit/worker/fixture.h"
#include "tests/unit/common/frame_raw.h"

#include "common/runspec.h"

struct fixture {
	struct event_base *base;
	struct fake_link link;
	struct peer *peer;
	char said[FRAME_SAID_TEXT_MAX + 1];
	unsigned int saids;
	unsigned int hellos, knowns, pieces, entries, closes, losts, downs;
	uint32_t nruns;
	int down_code, close_code;
};
static struct fixture fix;

static int
on_hello(const struct peer_hello *h, void *arg, struct err *e)
{
	(void)arg;
	(void)e;
	fix.hellos++;
	fix.nruns = h->nruns;
	return 0;
}

static void
on_nothing(void *arg)
{
	(void)arg;
}

static void
on_down(const struct err *why, void *arg)
{
	(void)arg;
	fix.downs++;
	fix.down_code = why->code;
}

static void
on_said(const struct frame_said *m, void *arg)
{
	(void)arg;
	fix.saids++;
	(void)snprintf(fix.said, sizeof(fix.said), "%s", m->text);
}

static const struct peer_ops ops = {
    on_hello, on_nothing, on_nothing, on_down, on_said};

static int
on_known(bool fresh, void *arg, struct err *e)
{
	(void)fresh;
	(void)arg;
	(void)e;
	fix.knowns++;
	return 0;
}

static int
on_data(const uint8_t *p, size_t n, void *arg, struct err *e)
{
	(void)arg;
	assert_true(n > 0 && n <= FRAME_DATA_MAX);
	fix.pieces++;
	if (p[0] == 'x')
		return err_set(e, ERR_PROTO, "not an x");
	return 0;
}

static int
on_entry(const struct frame_entry *m, void *arg, struct err *e)
{
	(void)m;
	(void)arg;
	(void)e;
	fix.entries++;
	return 0;
}

static void
on_close(int code, const char *text, void *arg)
{
	(void)arg;
	assert_true(strlen(text) <= FRAME_CLOSE_TEXT_MAX);
	fix.closes++;
	fix.close_code = code;
}

static void
on_lost(void *arg)
{
	(void)arg;
	fix.losts++;
}

static const struct peer_chan_ops seq_ops = {
    on_known, on_data, NULL, on_close, on_lost};
static const struct peer_chan_ops read_ops = {
    NULL, on_data, NULL, on_close, on_lost};
static const struct peer_chan_ops walk_ops = {
    NULL, NULL, on_entry, on_close, on_lost};

static int
setup(void **state)
{
	(void)state;
	memset(&fix, 0, sizeof(fix));
	fix.base = event_base_new();
	fake_link_init(&fix.link, fix.base);
	fix.peer = peer_new(fix.link.l, &ops, NULL);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	peer_free(fix.peer);
	assert_true(fix.link.l->dead);
	fake_link_clear(&fix.link);
	fixture_settle(fix.base);
	event_base_free(fix.base);
	return 0;
}

static void
put_hello(struct buf *b, uint32_t version, uint32_t runs)
{
	const struct frame_hello m = {version, {{9}}, runs};

	assert_int_equal(frame_put_hello(b, &m), 0);
}

static void
put_run(struct buf *b, uint64_t from, uint64_t length)
{
	const struct frame_hello_run m = {{{5}}, false, from, length};

	assert_int_equal(frame_put_hello_run(b, &m), 0);
}

static void
put_plain(struct buf *b, enum frame_type type)
{
	size_t at = raw_begin(b, type);

	raw_end(b, at);
}

static void
put_hello_end(struct buf *b, uint32_t left)
{
	size_t at = raw_begin(b, FRAME_HELLO_END);

	wire_put_u32(b, left);
	raw_end(b, at);
}

static int
say(struct buf *b)
{
	struct err e;

	return fake_link_say(&fix.link, b, &e);
}

static void
greet(void)
{
	fake_link_greet(&fix.link);
	(void)fake_link_sent(&fix.link, FRAME_WELCOME);
}

enum kind {
	SEQUENCE,
	READ,
	WALK,
	KINDS
};

/* A channel of that kind; its number in *number. */
static struct peer_chan *
open_chan(enum kind kind, uint32_t *number)
{
	static const enum frame_type types[] = {
	    FRAME_OPEN_SEQUENCE, FRAME_OPEN_READ, FRAME_OPEN_WALK};
	struct peer_chan *c;

	if (kind == SEQUENCE)
		c = peer_open_sequence(fix.peer,
		    (struct frame_open_sequence){.run = {{1}}}, &seq_ops, NULL);
	else if (kind == READ)
		c = peer_open_read(fix.peer,
		    (struct frame_open_read){.until = 9, .root = "/r"},
		    &read_ops, NULL);
	else
		c = peer_open_walk(fix.peer,
		    (struct frame_open_walk){.root = "/r"}, &walk_ops, NULL);
	*number = fake_link_sent_chan(&fix.link, types[kind]);
	return c;
}

static int
say_data(uint32_t chan, uint64_t at, const char *text)
{
	return fake_link_data(&fix.link, chan, at, text, strlen(text));
}

static int
say_entry(uint32_t chan, uint64_t index, uint8_t kind, size_t path)
{
	static const uint8_t bytes[FRAME_PATH_MAX] = {'a'};
	static const uint8_t mark[FRAME_MARK_BYTES];
	const struct frame_entry m = {.chan = chan,
	    .index = index,
	    .kind = kind,
	    .mark = mark,
	    .path = {bytes, path}};
	struct buf b;

	buf_init(&b, 0);
	assert_int_equal(frame_put_entry(&b, &m), 0);
	return say(&b);
}

TEST(it_is_up_after_the_whole_hello_only)
{
	struct wire_in in;
	struct buf b;

	buf_init(&b, 0);
	fake_link_open(&fix.link);
	put_hello(&b, FRAME_VERSION, 2);
	put_run(&b, 0, 10);
	put_run(&b, 10, 10);
	assert_int_equal(say(&b), 0);
	assert_int_equal(fix.hellos, 0);
	put_hello_end(&b, 3);
	assert_int_equal(say(&b), 0);
	assert_int_equal(fix.hellos, 1);
	assert_int_equal(fix.nruns, 2);
	in = fake_link_sent(&fix.link, FRAME_WELCOME);
	assert_int_equal(wire_get_u32(&in), FRAME_VERSION);
}

TEST(hellos_that_lie_are_refused)
{
	struct buf b;

	buf_init(&b, 0);
	fake_link_open(&fix.link);
	put_hello(&b, FRAME_VERSION, PEER_RUNS_MAX + 1);
	assert_int_equal(say(&b), ERR_PROTO);
	put_hello(&b, FRAME_VERSION, 1);
	put_hello_end(&b, 3); /* one is missing */
	assert_int_equal(say(&b), ERR_PROTO);
	fake_link_open(&fix.link);
	put_hello(&b, FRAME_VERSION, 1);
	put_run(&b, 0, 1);
	put_run(&b, 0, 1); /* one too many */
	assert_int_equal(say(&b), ERR_PROTO);
	fake_link_open(&fix.link);
	put_hello(&b, FRAME_VERSION, 1);
	put_run(&b, 2, 1); /* from behind the end */
	assert_int_equal(say(&b), ERR_PROTO);
	assert_int_equal(fix.hellos, 0);
}

TEST(an_agent_of_another_version_is_told_apart)
{
	struct buf b;
	struct err e;
	char want[200];

	buf_init(&b, 0);
	fake_link_open(&fix.link);
	put_hello(&b, 1, 0); /* as that version said it, too */
	assert_int_equal(fake_link_say(&fix.link, &b, &e), ERR_PROTO);
	(void)snprintf(want, sizeof(want),
	    "HELLO: the agent speaks version 1 of the link, this server "
	    "versions %d to %d: the sandbox is of another version of it",
	    FRAME_VERSION_OLDEST, FRAME_VERSION);
	assert_string_equal(e.msg, want);
	fake_link_sent_nothing(&fix.link);
}

static int
say_line(uint32_t version, const char *text)
{
	const struct frame_said m = {.level = FRAME_SAID_LEVEL_WARN,
	    .what = FRAME_SAID_WHAT_DISK_FULL,
	    .text = text};
	struct buf b;

	buf_init(&b, 0);
	fake_link_open(&fix.link);
	put_hello(&b, version, 0);
	put_hello_end(&b, 0);
	assert_int_equal(frame_put_said(&b, &m), 0);
	return say(&b);
}

TEST(an_older_agent_is_answered_in_its_version_and_says_nothing)
{
	struct wire_in in;

	assert_int_equal(say_line(FRAME_VERSION_OLDEST, "x"), ERR_PROTO);
	assert_int_equal(fix.downs, 0);
	in = fake_link_sent(&fix.link, FRAME_WELCOME);
	assert_int_equal(wire_get_u32(&in), FRAME_VERSION_OLDEST);
	assert_int_equal(fix.saids, 0);
}

TEST(what_an_agent_says_is_passed_on)
{
	assert_int_equal(say_line(FRAME_VERSION, "/ is full"), 0);
	assert_int_equal(fix.saids, 1);
	assert_string_equal(fix.said, "/ is full");
	assert_int_equal(fix.downs, 0);
}

TEST(a_line_before_the_hello_is_refused)
{
	const struct frame_said m = {.text = ""};
	struct buf b;

	buf_init(&b, 0);
	fake_link_open(&fix.link);
	put_hello(&b, FRAME_VERSION, 0);
	assert_int_equal(frame_put_said(&b, &m), 0);
	assert_int_equal(say(&b), ERR_PROTO);
	assert_int_equal(fix.saids, 0);
}

static int
say_raw(uint8_t level)
{
	struct buf b;
	size_t at;

	buf_init(&b, 0);
	at = raw_begin(&b, FRAME_SAID);
	wire_put_u8(&b, level);
	wire_put_u8(&b, 0);
	for (size_t i = 0; i < 6; i++) /* run, dropped, length of text */
		wire_put_u32(&b, 0);
	wire_put_u8(&b, 0);
	raw_end(&b, at);
	return say(&b);
}

TEST(a_level_above_a_warning_is_refused)
{
	greet();
	assert_int_equal(say_raw(FRAME_SAID_LEVEL_WARN), 0);
	assert_int_equal(say_raw(FRAME_SAID_LEVEL_WARN + 1), ERR_PROTO);
	assert_int_equal(fix.saids, 1);
}

TEST(nothing_but_hello_may_come_first_and_only_once)
{
	struct buf b;

	buf_init(&b, 0);
	fake_link_open(&fix.link);
	assert_int_equal(say_data(1, 0, "abc"), ERR_PROTO);
	assert_int_equal(fix.pieces, 0);
	fake_link_greet(&fix.link);
	put_hello(&b, FRAME_VERSION, 0);
	assert_int_equal(say(&b), ERR_PROTO);
}

TEST(frames_of_our_own_direction_are_refused)
{
	struct buf b;

	buf_init(&b, 0);
	greet();
	for (unsigned int t = FRAME_WELCOME; t <= FRAME_OPEN_WALK; t++) {
		if (strcmp(frame_type_name(t), "?") == 0)
			continue;
		put_plain(&b, t);
		assert_int_equal(say(&b), ERR_PROTO);
	}
}

TEST(fields_too_few_or_too_many_are_refused)
{
	struct buf b;
	size_t at;

	buf_init(&b, 0);
	greet();
	for (unsigned int t = FRAME_DATA; t <= FRAME_EXITED; t++) {
		if (strcmp(frame_type_name(t), "?") == 0)
			continue;
		at = raw_begin(&b, t);
		wire_put_u16(&b, 7);
		raw_end(&b, at);
		assert_int_equal(say(&b), ERR_PROTO);
	}
	at = raw_begin(&b, FRAME_PONG);
	wire_put_u64(&b, 7);
	wire_put_u8(&b, 7);
	raw_end(&b, at);
	assert_int_equal(say(&b), ERR_PROTO);
	assert_int_equal(fix.pieces + fix.entries + fix.closes, 0);
}

/* What an agent may say on a channel, each good once for its kinds. */
static int
say_known(uint32_t chan)
{
	return fake_link_known(&fix.link, chan, true);
}

static int
say_a_byte(uint32_t chan)
{
	return say_data(chan, 0, "a");
}

static int
say_an_entry(uint32_t chan)
{
	return say_entry(chan, 0, 'f', 1);
}

static int
say_close(uint32_t chan)
{
	return fake_link_close(&fix.link, chan, 5, "text");
}

static const struct {
	int (*say)(uint32_t chan);
	bool good[KINDS];
} words[] = {
    {say_known, {[SEQUENCE] = true}},
    {say_a_byte, {[SEQUENCE] = true, [READ] = true}},
    {say_an_entry, {[WALK] = true}},
    {say_close, {true, true, true}},
};

TEST(each_kind_takes_what_is_its_own)
{
	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		for (enum kind k = 0; k < KINDS; k++) {
			uint32_t n;

			greet();
			(void)open_chan(k, &n);
			assert_int_equal(
			    words[i].say(n), words[i].good[k] ? 0 : ERR_PROTO);
			fake_link_lose(&fix.link);
		}
}

enum end {
	BY_US,
	BY_AGENT,
	NEVER_OPENED,
	ANOTHER_STREAM
};

static const struct {
	enum end end;
	int rc;
} ends[] = {{BY_US, 0}, {BY_AGENT, 0}, {NEVER_OPENED, ERR_PROTO},
    {ANOTHER_STREAM, ERR_PROTO}};

/* A channel's number after that end of it. */
static uint32_t
number_after(enum end how, enum kind kind)
{
	struct peer_chan *c;
	uint32_t n;

	c = open_chan(kind, &n);
	if (how == BY_US) {
		peer_close(c);
		assert_int_equal(
		    fake_link_sent_chan(&fix.link, FRAME_CLOSE), n);
	} else if (how == BY_AGENT) {
		assert_int_equal(say_close(n), 0);
	} else if (how == ANOTHER_STREAM) {
		fake_link_lose(&fix.link);
		greet();
	}
	return how == NEVER_OPENED ? n + 1 : n;
}

TEST(what_comes_for_a_channel_that_is_not_open)
{
	for (size_t i = 0; i < ARRAY_LEN(ends); i++)
		for (size_t w = 0; w < ARRAY_LEN(words); w++)
			for (enum kind k = 0; k < KINDS; k++) {
				uint32_t n;

				greet();
				n = number_after(ends[i].end, k);
				fix.knowns = fix.pieces = fix.entries =
				    fix.closes = 0;
				assert_int_equal(words[w].say(n), ends[i].rc);
				assert_int_equal(fix.knowns + fix.pieces +
					fix.entries + fix.closes,
				    0);
				fake_link_lose(&fix.link);
			}
}

TEST(numbers_begin_anew_with_each_stream)
{
	uint32_t n;

	for (int i = 0; i < 2; i++) {
		greet();
		(void)open_chan(READ, &n);
		assert_int_equal(n, 1);
		(void)open_chan(WALK, &n);
		assert_int_equal(n, 2);
		fake_link_lose(&fix.link);
		assert_int_equal(fix.losts, 2 * (i + 1));
	}
	assert_int_equal(say_data(0, 0, "a"), ERR_PROTO);
}

TEST(bytes_come_in_order_and_within_credit)
{
	static const char much[FRAME_DATA_MAX] = {'a'};
	struct peer_chan *c;
	uint64_t at = 0;
	uint32_t n;

	greet();
	c = open_chan(READ, &n);
	assert_int_equal(say_data(n, 1, "abc"), ERR_PROTO);
	assert_int_equal(say_data(n, 0, ""), ERR_PROTO);
	assert_int_equal(say_data(n, UINT64_MAX, "abc"), ERR_PROTO);
	for (; at < FRAME_WINDOW_BYTES; at += sizeof(much))
		assert_int_equal(
		    fake_link_data(&fix.link, n, at, much, sizeof(much)), 0);
	assert_int_equal(say_data(n, at, "a"), ERR_PROTO);
	peer_take(c, 3);
	assert_int_equal(fake_link_sent_credit(&fix.link), 3);
	assert_int_equal(say_data(n, at, "abcd"), ERR_PROTO);
	assert_int_equal(say_data(n, at, "abc"), 0);
	assert_int_equal(fix.pieces, 5);
}

TEST(a_piece_and_another_stream_have_bounds)
{
	const struct frame_data other = {
	    .chan = 1, .stream = 1, .bytes = {(const uint8_t *)"a", 1}};
	static const uint8_t much[FRAME_DATA_MAX + 1];
	struct buf b;
	uint32_t n;

	buf_init(&b, 0);
	greet();
	(void)open_chan(READ, &n);
	assert_int_equal(frame_put_data(&b, &other), 0);
	assert_int_equal(say(&b), ERR_PROTO);
	assert_int_equal(
	    fake_link_data(&fix.link, n, 0, much, sizeof(much)), ERR_PROTO);
}

TEST(entries_have_a_kind_and_are_counted)
{
	uint32_t n;

	greet();
	(void)open_chan(WALK, &n);
	assert_int_equal(say_entry(n, 0, 'x', 1), ERR_PROTO);
	assert_int_equal(say_entry(n, 0, 0, 1), ERR_PROTO);
	assert_int_equal(say_entry(n, 0, 'f', FRAME_PATH_MAX), 0);
	assert_int_equal(say_entry(n, 0, 'f', 1), ERR_PROTO);
	assert_int_equal(say_entry(n, 2, 'f', 1), ERR_PROTO);
	for (uint64_t i = 1; i < PEER_WALK_WINDOW; i++)
		assert_int_equal(say_entry(n, i, 'd', 1), 0);
	assert_int_equal(say_entry(n, PEER_WALK_WINDOW, 'd', 1), ERR_PROTO);
	assert_int_equal(fix.entries, PEER_WALK_WINDOW);
}

TEST(what_a_callback_refuses_is_the_agents_fault)
{
	const struct frame_data m = {
	    .chan = 1, .bytes = {(const uint8_t *)"x", 1}};
	struct buf b;
	struct err e;
	uint32_t n;

	buf_init(&b, 0);
	greet();
	(void)open_chan(SEQUENCE, &n);
	assert_int_equal(frame_put_data(&b, &m), 0);
	assert_int_equal(fake_link_say(&fix.link, &b, &e), ERR_PROTO);
	assert_string_equal(e.msg, "DATA: not an x");
}

TEST(a_discarded_run_is_opened_and_closed)
{
	const struct uuid run = {{1}};
	uint32_t n;

	peer_discard(fix.peer, &run, 7); /* not up: nothing */
	fake_link_sent_nothing(&fix.link);
	greet();
	peer_discard(fix.peer, &run, 7);
	n = fake_link_sent_chan(&fix.link, FRAME_OPEN_SEQUENCE);
	assert_int_equal(fake_link_sent_chan(&fix.link, FRAME_CLOSE), n);
	/* its log may have been on its way */
	assert_int_equal(say_known(n), 0);
	assert_int_equal(say_data(n, 7, "abc"), 0);
	assert_int_equal(fix.knowns + fix.pieces, 0);
}

TEST(nothing_is_sent_while_it_is_not_up)
{
	static const uint8_t mark[FRAME_MARK_BYTES];
	const struct frame_taken m = {.root = "/", .mark = mark};

	peer_taken(fix.peer, &m);
	fake_link_sent_nothing(&fix.link);
	fake_link_open(&fix.link);
	peer_taken(fix.peer, &m);
	fake_link_sent_nothing(&fix.link);
}

TEST(an_agent_that_never_reads_is_hung_up_on)
{
	struct peer_chan *c;
	uint32_t n;

	greet();
	c = open_chan(READ, &n);
	while (!fix.link.l->failed) {
		assert_true(buf_len(link_out(fix.link.l)) <= LINK_OUT_MAX);
		peer_take(c, 0);
	}
}

TEST(large_frames_leave_room_for_small_ones)
{
	fake_link_greet(&fix.link);
	assert_true(peer_has_room(fix.peer, RUNSPEC_BYTES_MAX));
	assert_non_null(
	    buf_reserve(link_out(fix.link.l), LINK_OUT_MAX / 2 + 500000));
	buf_commit(link_out(fix.link.l), LINK_OUT_MAX / 2 + 500000);
	assert_false(peer_has_room(fix.peer, RUNSPEC_BYTES_MAX));
}

TEST(a_lost_stream_is_told_with_its_reason)
{
	struct err why;
	uint32_t n;

	fake_link_greet(&fix.link);
	(void)err_set(&why, ERR_PROTO, "x");
	fix.link.l->user->on_close(&why, fix.link.l->arg);
	assert_int_equal(fix.downs, 1);
	assert_int_equal(fix.down_code, ERR_PROTO);
	buf_clear(link_out(fix.link.l));
	greet();
	(void)open_chan(READ, &n);
	fake_link_lose(&fix.link);
	assert_int_equal(fix.losts, 1); /* the channel, before its stream */
	assert_int_equal(fix.closes, 0);
}

/* ---- a stream that may be open at this end alone (peer_limit_greeting) */

#define GREET_MS 10

static void
wait_down(void)
{
	uint64_t end = clock_mono_ms() + FIXTURE_WAIT_MS;

	while (fix.downs == 0) {
		assert_true(clock_mono_ms() < end);
		(void)event_base_loop(fix.base, EVLOOP_ONCE);
	}
}

TEST(an_agent_that_does_not_greet_in_its_time_is_given_up)
{
	peer_limit_greeting(fix.peer, GREET_MS);
	fake_link_open(&fix.link);
	wait_down();
	assert_int_equal(fix.down_code, ERR_LOST);
	fake_link_open(&fix.link); /* the next stream has its time anew */
	fix.downs = 0;
	wait_down();
}

TEST(the_time_for_a_greeting_goes_on_when_it_is_read)
{
	peer_limit_greeting(fix.peer, GREET_MS);
	link_pause(fix.link.l);
	fake_link_open(&fix.link);
	(void)event_base_loop(fix.base, EVLOOP_ONCE); /* it is over */
	assert_int_equal(fix.downs, 0);
	link_resume(fix.link.l);
	wait_down();
}

TEST(who_has_greeted_has_all_the_time)
{
	int before =
	    event_base_get_num_events(fix.base, EVENT_BASE_COUNT_ADDED);

	peer_limit_greeting(fix.peer, GREET_MS);
	greet();
	/* It is read, and no timer runs. */
	assert_int_equal(
	    event_base_get_num_events(fix.base, EVENT_BASE_COUNT_ADDED),
	    before + 1);
}

/* The code with which it is down. */
static int
break_protocol(void)
{
	struct err e;

	(void)err_set(&e, ERR_PROTO, "no frame of a good agent");
	fix.link.l->user->on_close(&e, fix.link.l->arg);
	return fix.down_code;
}

TEST(no_frame_in_place_of_a_greeting_is_no_agents_fault)
{
	peer_limit_greeting(fix.peer, 60000);
	fake_link_open(&fix.link);
	assert_int_equal(break_protocol(), ERR_LOST);
}

TEST(no_frame_behind_the_greeting_is_an_agents_fault)
{
	peer_limit_greeting(fix.peer, 60000);
	greet();
	assert_int_equal(break_protocol(), ERR_PROTO);
}

TEST(without_a_limit_no_frame_is_an_agents_fault)
{
	fake_link_open(&fix.link);
	assert_int_equal(break_protocol(), ERR_PROTO);
}

TEST_MAIN(setup, teardown)
