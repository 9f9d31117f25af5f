#include "tests/unit/worker/fixture.h"

#include "common/runspec.h"

struct fixture {
	struct fake_link link;
	struct peer *peer;
	unsigned int hellos, logs, entries, pieces, ends, downs;
	uint32_t nruns;
	int down_code;
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

static int
on_run_known(const struct uuid *run, bool fresh, uint64_t length, void *arg,
    struct err *e)
{
	(void)run;
	(void)fresh;
	(void)length;
	(void)arg;
	(void)e;
	return 0;
}

static int
on_run_refused(
    const struct uuid *run, const char *why, void *arg, struct err *e)
{
	(void)run;
	(void)arg;
	(void)e;
	assert_true(strlen(why) <= PEER_WHY_MAX);
	return 0;
}

static int
on_run_log(const struct uuid *run, uint64_t offset, const uint8_t *p, size_t n,
    void *arg, struct err *e)
{
	(void)run;
	(void)offset;
	(void)arg;
	assert_true(n > 0 && n <= FRAME_LOG_MAX);
	fix.logs++;
	if (p[0] == 'x')
		return err_set(e, ERR_PROTO, "not an x");
	return 0;
}

static int
on_file_entry(
    uint32_t request, const struct peer_entry *f, void *arg, struct err *e)
{
	(void)request;
	(void)f;
	(void)arg;
	(void)e;
	fix.entries++;
	return 0;
}

static int
on_file_data(uint32_t request, uint64_t offset, const uint8_t *p, size_t n,
    void *arg, struct err *e)
{
	(void)request;
	(void)offset;
	(void)p;
	(void)n;
	(void)arg;
	(void)e;
	fix.pieces++;
	return 0;
}

static int
on_file_end(
    uint32_t request, int32_t error, uint64_t size, void *arg, struct err *e)
{
	(void)request;
	(void)error;
	(void)size;
	(void)arg;
	(void)e;
	fix.ends++;
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

static const struct peer_ops ops = {on_hello, on_run_known, on_run_refused,
    on_run_log, on_file_entry, on_file_data, on_file_end, on_nothing,
    on_nothing, on_down};

static int
setup(void **state)
{
	(void)state;
	memset(&fix, 0, sizeof(fix));
	fake_link_init(&fix.link);
	fix.peer = peer_new(&fix.link.l, &ops, NULL);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	peer_free(fix.peer);
	assert_true(fix.link.freed);
	return 0;
}

static void
put_hello(struct buf *b, uint32_t version, uint32_t runs)
{
	struct uuid boot = {{9}};
	size_t at = frame_begin(b, FRAME_HELLO);

	wire_put_u32(b, version);
	wire_put_uuid(b, &boot);
	wire_put_u32(b, runs);
	frame_end(b, at);
}

static void
put_run(struct buf *b, uint64_t from, uint64_t length)
{
	struct uuid run = {{5}};
	size_t at = frame_begin(b, FRAME_HELLO_RUN);

	wire_put_uuid(b, &run);
	wire_put_u8(b, 0);
	wire_put_u64(b, from);
	wire_put_u64(b, length);
	frame_end(b, at);
}

static void
put_plain(struct buf *b, enum frame_type type)
{
	size_t at = frame_begin(b, type);

	frame_end(b, at);
}

static void
put_log(struct buf *b, const char *bytes, size_t n, uint64_t offset)
{
	struct uuid run = {{5}};
	size_t at = frame_begin(b, FRAME_RUN_LOG);

	wire_put_uuid(b, &run);
	wire_put_u64(b, offset);
	assert_int_equal(buf_append(b, bytes, n), 0);
	frame_end(b, at);
}

static int
say(struct buf *b)
{
	struct err e;

	return fake_link_say(&fix.link, b, &e);
}

static void
open_link(void)
{
	fix.link.l.user->on_open(&fix.link.l, fix.link.l.arg);
}

static void
test_it_is_up_after_the_whole_hello_only(void **state)
{
	struct wire_in in;
	struct buf b;

	(void)state;
	buf_init(&b, 0);
	open_link();
	put_hello(&b, FRAME_VERSION, 2);
	put_run(&b, 0, 10);
	put_run(&b, 10, 10);
	assert_int_equal(say(&b), 0);
	assert_false(peer_is_up(fix.peer));
	put_plain(&b, FRAME_HELLO_END);
	assert_int_equal(say(&b), 0);
	assert_true(peer_is_up(fix.peer));
	assert_int_equal(fix.hellos, 1);
	assert_int_equal(fix.nruns, 2);
	in = fake_link_sent(&fix.link, FRAME_WELCOME);
	assert_int_equal(wire_get_u32(&in), FRAME_VERSION);
}

static void
test_hellos_that_lie_are_refused(void **state)
{
	struct buf b;

	(void)state;
	buf_init(&b, 0);
	open_link();
	put_hello(&b, FRAME_VERSION + 1, 0);
	assert_int_equal(say(&b), ERR_PROTO);
	put_hello(&b, FRAME_VERSION, PEER_RUNS_MAX + 1);
	assert_int_equal(say(&b), ERR_PROTO);
	put_hello(&b, FRAME_VERSION, 1);
	put_plain(&b, FRAME_HELLO_END); /* one is missing */
	assert_int_equal(say(&b), ERR_PROTO);
	open_link();
	put_hello(&b, FRAME_VERSION, 1);
	put_run(&b, 0, 1);
	put_run(&b, 0, 1); /* one too many */
	assert_int_equal(say(&b), ERR_PROTO);
	open_link();
	put_hello(&b, FRAME_VERSION, 1);
	put_run(&b, 2, 1); /* from behind the end */
	assert_int_equal(say(&b), ERR_PROTO);
	assert_int_equal(fix.hellos, 0);
}

static void
test_nothing_but_hello_may_come_first_and_only_once(void **state)
{
	struct buf b;

	(void)state;
	buf_init(&b, 0);
	open_link();
	put_log(&b, "abc", 3, 0);
	assert_int_equal(say(&b), ERR_PROTO);
	assert_int_equal(fix.logs, 0);
	fake_link_greet(&fix.link);
	put_hello(&b, FRAME_VERSION, 0);
	assert_int_equal(say(&b), ERR_PROTO);
}

static void
test_frames_of_our_own_direction_are_refused(void **state)
{
	struct buf b;

	(void)state;
	buf_init(&b, 0);
	fake_link_greet(&fix.link);
	for (unsigned int t = FRAME_WELCOME; t <= FRAME_PING; t++) {
		put_plain(&b, (enum frame_type)t);
		assert_int_equal(say(&b), ERR_PROTO);
	}
}

static void
test_logs_are_bounded_in_size_and_place(void **state)
{
	static const char much[FRAME_LOG_MAX] = {'a'};
	struct buf b;

	(void)state;
	buf_init(&b, 0);
	fake_link_greet(&fix.link);
	put_log(&b, "", 0, 0);
	assert_int_equal(say(&b), ERR_PROTO);
	put_log(&b, "a", 1, UINT64_MAX);
	assert_int_equal(say(&b), ERR_PROTO);
	put_log(&b, much, sizeof(much), 0);
	assert_int_equal(say(&b), 0);
	assert_int_equal(fix.logs, 1);
}

static void
test_fields_too_few_or_too_many_are_refused(void **state)
{
	struct buf b;
	size_t at;

	(void)state;
	buf_init(&b, 0);
	fake_link_greet(&fix.link);
	for (unsigned int t = FRAME_RUN_KNOWN; t <= FRAME_PONG; t++) {
		at = frame_begin(&b, (enum frame_type)t);
		wire_put_u16(&b, 7);
		frame_end(&b, at);
		assert_int_equal(say(&b), ERR_PROTO);
	}
	at = frame_begin(&b, FRAME_PONG);
	wire_put_u64(&b, 7);
	wire_put_u8(&b, 7);
	frame_end(&b, at);
	assert_int_equal(say(&b), ERR_PROTO);
	assert_int_equal(fix.logs + fix.entries + fix.pieces + fix.ends, 0);
}

static void
put_entry(struct buf *b, uint8_t kind, const char *path, size_t n)
{
	size_t at = frame_begin(b, FRAME_FILE_ENTRY);

	wire_put_u32(b, 1);
	wire_put_u8(b, kind);
	wire_put_u32(b, 0644);
	wire_put_u64(b, 5);
	wire_put_i64(b, 0);
	wire_put_bytes(b, path, n);
	frame_end(b, at);
}

static void
test_files_have_a_kind_and_a_bounded_path(void **state)
{
	static const char path[FRAME_PATH_MAX + 1] = {'a'};
	struct buf b;

	(void)state;
	buf_init(&b, 0);
	fake_link_greet(&fix.link);
	put_entry(&b, 'x', "a", 1);
	assert_int_equal(say(&b), ERR_PROTO);
	put_entry(&b, 0, "a", 1);
	assert_int_equal(say(&b), ERR_PROTO);
	put_entry(&b, 'f', path, sizeof(path));
	assert_int_equal(say(&b), ERR_PROTO);
	put_entry(&b, 'f', path, sizeof(path) - 1);
	assert_int_equal(say(&b), 0);
	assert_int_equal(fix.entries, 1);
}

static void
test_what_a_callback_refuses_is_the_agents_fault(void **state)
{
	struct buf b;
	struct err e;

	(void)state;
	buf_init(&b, 0);
	fake_link_greet(&fix.link);
	put_log(&b, "x", 1, 0);
	assert_int_equal(fake_link_say(&fix.link, &b, &e), ERR_PROTO);
	assert_string_equal(e.msg, "RUN_LOG: not an x");
}

static void
test_nothing_is_sent_while_it_is_not_up(void **state)
{
	struct uuid run = {{1}};

	(void)state;
	peer_run_cancel(fix.peer, &run, RUNLOG_CANCELED);
	fake_link_sent_nothing(&fix.link);
	open_link();
	peer_run_cancel(fix.peer, &run, RUNLOG_CANCELED);
	fake_link_sent_nothing(&fix.link);
}

static void
test_an_agent_that_never_reads_is_hung_up_on(void **state)
{
	struct uuid run = {{1}};

	(void)state;
	fake_link_greet(&fix.link);
	while (!fix.link.hung_up) {
		assert_true(buf_len(&fix.link.l.out) <= LINK_OUT_MAX);
		peer_run_ack(fix.peer, &run, 1);
	}
	assert_true(buf_len(&fix.link.l.out) == 0);
}

static void
test_large_frames_leave_room_for_small_ones(void **state)
{
	(void)state;
	fake_link_greet(&fix.link);
	assert_true(peer_has_room(fix.peer, RUNSPEC_BYTES_MAX));
	assert_non_null(
	    buf_reserve(&fix.link.l.out, LINK_OUT_MAX / 2 + 500000));
	buf_commit(&fix.link.l.out, LINK_OUT_MAX / 2 + 500000);
	assert_false(peer_has_room(fix.peer, RUNSPEC_BYTES_MAX));
}

static void
test_a_lost_stream_is_told_with_its_reason(void **state)
{
	struct err why;

	(void)state;
	fake_link_greet(&fix.link);
	(void)err_set(&why, ERR_PROTO, "x");
	fix.link.l.user->on_close(&fix.link.l, &why, fix.link.l.arg);
	assert_int_equal(fix.downs, 1);
	assert_int_equal(fix.down_code, ERR_PROTO);
	assert_false(peer_is_up(fix.peer));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(test_it_is_up_after_the_whole_hello_only),
	    TEST(test_hellos_that_lie_are_refused),
	    TEST(test_nothing_but_hello_may_come_first_and_only_once),
	    TEST(test_frames_of_our_own_direction_are_refused),
	    TEST(test_logs_are_bounded_in_size_and_place),
	    TEST(test_fields_too_few_or_too_many_are_refused),
	    TEST(test_files_have_a_kind_and_a_bounded_path),
	    TEST(test_what_a_callback_refuses_is_the_agents_fault),
	    TEST(test_nothing_is_sent_while_it_is_not_up),
	    TEST(test_an_agent_that_never_reads_is_hung_up_on),
	    TEST(test_large_frames_leave_room_for_small_ones),
	    TEST(test_a_lost_stream_is_told_with_its_reason),
	};

	return cmocka_run_group_tests_name("peer", tests, NULL, NULL);
}
