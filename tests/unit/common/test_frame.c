#include "common/msg/frame_gen.h"
#include "tests/unit/common/forked.h"
#include "tests/unit/common/frame_raw.h"
#include "tests/unit/test.h"

static void
put_pong(struct buf *b, uint64_t token)
{
	size_t at = raw_begin(b, FRAME_PONG);

	wire_put_u64(b, token);
	raw_end(b, at);
}

TEST(frames_come_out_whole_and_in_order)
{
	struct frame f;
	struct buf b;
	struct err e;
	size_t at;

	buf_init(&b, 0);
	put_pong(&b, 7);
	at = raw_begin(&b, FRAME_HELLO_END);
	wire_put_u32(&b, 0);
	raw_end(&b, at);
	put_pong(&b, 8);

	assert_int_equal(frame_next(&b, FRAME_UP_MAX, &f, &e), 1);
	assert_int_equal(f.type, FRAME_PONG);
	assert_int_equal(f.size, FRAME_HEADER_BYTES + 8);
	assert_int_equal(wire_get_u64(&f.in), 7);
	assert_int_equal(wire_get_end(&f.in, &e), 0);
	buf_consume(&b, f.size);
	assert_int_equal(frame_next(&b, FRAME_UP_MAX, &f, &e), 1);
	assert_int_equal(f.type, FRAME_HELLO_END);
	assert_int_equal(wire_get_u32(&f.in), 0);
	assert_int_equal(wire_get_end(&f.in, &e), 0);
	buf_consume(&b, f.size);
	assert_int_equal(frame_next(&b, FRAME_UP_MAX, &f, &e), 1);
	assert_int_equal(wire_get_u64(&f.in), 8);
	buf_consume(&b, f.size);
	assert_int_equal(frame_next(&b, FRAME_UP_MAX, &f, &e), 0);
	buf_clear(&b);
}

TEST(a_frame_in_pieces_is_waited_for)
{
	struct buf whole, b;
	struct frame f;
	struct err e;

	buf_init(&whole, 0);
	buf_init(&b, 0);
	put_pong(&whole, 9);
	for (size_t i = 0; i < buf_len(&whole); i++) {
		assert_int_equal(frame_next(&b, FRAME_UP_MAX, &f, &e), 0);
		assert_int_equal(buf_append(&b, buf_data(&whole) + i, 1), 0);
	}
	assert_int_equal(frame_next(&b, FRAME_UP_MAX, &f, &e), 1);
	assert_int_equal(wire_get_u64(&f.in), 9);
	buf_clear(&whole);
	buf_clear(&b);
}

static void
check_no_frame(const void *p, size_t n, size_t max)
{
	struct frame f;
	struct buf b;
	struct err e;

	buf_init(&b, 0);
	assert_int_equal(buf_append(&b, p, n), 0);
	assert_int_equal(frame_next(&b, max, &f, &e), ERR_PROTO);
	buf_clear(&b);
}

static void
put_data(struct buf *b, uint64_t offset, const char *bytes)
{
	const struct frame_data m = {.chan = 7,
	    .offset = offset,
	    .bytes = {(const uint8_t *)bytes, strlen(bytes)}};

	assert_int_equal(frame_put_data(b, &m), 0);
}

/* What is there of it, and then the rest behind a head of its own. */
static void
check_cut(const struct buf *whole, size_t at, const char *bytes, size_t n)
{
	struct frame_data m, rest;
	struct frame f;
	struct buf b, tail;
	struct err e;

	buf_init(&b, 0);
	buf_init(&tail, 0);
	assert_int_equal(buf_append(&b, buf_data(whole), at), 0);
	assert_true(frame_cut(&b, &f, &rest));
	assert_int_equal(f.type, FRAME_DATA);
	assert_int_equal(f.size, at);
	assert_int_equal(frame_get_data(&f, &m, &e), 0);
	assert_int_equal(m.chan, 7);
	assert_int_equal(m.offset, 1000);
	assert_int_equal(m.bytes.n, n);
	assert_memory_equal(m.bytes.p, bytes, n);
	assert_int_equal(frame_put_data(&tail, &rest), 0);
	assert_int_equal(
	    buf_append(&tail, buf_data(whole) + at, buf_len(whole) - at), 0);
	assert_int_equal(frame_next(&tail, FRAME_UP_MAX, &f, &e), 1);
	assert_int_equal(f.size, buf_len(&tail));
	assert_int_equal(frame_get_data(&f, &m, &e), 0);
	assert_int_equal(m.chan, 7);
	assert_int_equal(m.offset, 1000 + n);
	assert_int_equal(m.bytes.n, strlen(bytes) - n);
	assert_memory_equal(m.bytes.p, bytes + n, m.bytes.n);
	buf_clear(&b);
	buf_clear(&tail);
}

TEST(data_can_be_cut_wherever_it_is_not_whole)
{
	static const char bytes[] = "some bytes of a log";
	struct frame_data rest;
	struct frame f;
	struct buf whole, b;
	size_t head;

	buf_init(&whole, 0);
	buf_init(&b, 0);
	put_data(&whole, 1000, bytes);
	head = buf_len(&whole) - strlen(bytes);
	for (size_t at = 0; at < buf_len(&whole); at++) {
		if (at > head)
			check_cut(&whole, at, bytes, at - head);
		else
			assert_false(frame_cut(&b, &f, &rest));
		assert_int_equal(buf_append(&b, buf_data(&whole) + at, 1), 0);
	}
	assert_false(frame_cut(&b, &f, &rest)); /* it is whole */
	buf_clear(&whole);
	buf_clear(&b);
}

TEST(nothing_else_is_cut)
{
	struct frame_data rest;
	struct frame f;
	struct buf b;
	size_t at;

	buf_init(&b, 0);
	put_pong(&b, 7);
	b.end--;
	assert_false(frame_cut(&b, &f, &rest));
	buf_clear(&b);
	at = raw_begin(&b, FRAME_DATA); /* longer than one may be */
	assert_non_null(buf_reserve(&b, FRAME_DATA_MAX + 14));
	memset(buf_data(&b) + buf_len(&b), 0, FRAME_DATA_MAX + 14);
	buf_commit(&b, FRAME_DATA_MAX + 14);
	raw_end(&b, at);
	b.end--;
	assert_false(frame_cut(&b, &f, &rest));
	buf_clear(&b);
}

TEST(what_is_no_frame_is_refused_as_early_as_possible)
{
	check_no_frame("\x03\0\0\0", 4, 100); /* shorter than a header */
	check_no_frame("\0\0\0\0", 4, 100);
	check_no_frame("\x61\0\0\0", 4, 100); /* 97 + 4 */
	check_no_frame("\xff\xff\xff\xff", 4, FRAME_DOWN_MAX);
	check_no_frame("\x40\0\0\0\0\0\0\0", 8, 100);   /* FRAME_NONE */
	check_no_frame("\x40\0\0\0\x04\0\0\0", 8, 100); /* 4 is nothing */
	check_no_frame("\x40\0\0\0\xff\xff\0\0", 8, 100);
	check_no_frame("\x40\0\0\0\x01\0\x01\0", 8, 100); /* must be zero */
}

TEST(a_frame_of_exactly_the_limit_passes)
{
	static const uint8_t fields[92];
	struct frame f;
	struct buf b;
	struct err e;
	size_t at;

	buf_init(&b, 0);
	at = raw_begin(&b, FRAME_DATA);
	assert_int_equal(buf_append(&b, fields, sizeof(fields)), 0);
	raw_end(&b, at);
	assert_int_equal(frame_next(&b, 100, &f, &e), 1);
	assert_int_equal(f.size, 100);
	assert_int_equal(frame_next(&b, 99, &f, &e), ERR_PROTO);
	buf_clear(&b);
}

TEST(every_type_has_its_own_name)
{
	for (unsigned int a = 0; a <= FRAME_OPEN_ASK + 1; a++)
		for (unsigned int b = 0; b < a; b++)
			if (frame_codec(a) != NULL && frame_codec(b) != NULL)
				assert_string_not_equal(
				    frame_type_name(a), frame_type_name(b));
	assert_string_equal(frame_type_name(FRAME_NONE), "?");
	assert_string_equal(frame_type_name(FRAME_OPEN_ASK + 1), "?");
	assert_string_equal(frame_type_name(UINT32_MAX), "?");
	assert_string_equal(frame_type_name(FRAME_TAKEN), "TAKEN");
}

TEST(a_rest_that_is_sent_from_elsewhere_is_counted_only)
{
	const struct frame_data m = {
	    .chan = 7, .stream = 1, .bytes = {NULL, 200000}};
	struct frame_data got;
	struct frame f;
	struct buf b;
	struct err e;
	size_t head;

	buf_init(&b, 0);
	assert_int_equal(frame_put_data(&b, &m), 0);
	head = buf_len(&b);
	assert_true(b.cap < 1024); /* no room for what does not come */
	assert_int_equal(frame_next(&b, FRAME_UP_MAX, &f, &e), 0);
	assert_non_null(buf_reserve(&b, m.bytes.n));
	buf_commit(&b, m.bytes.n);
	assert_int_equal(frame_next(&b, FRAME_UP_MAX, &f, &e), 1);
	assert_int_equal(f.size, head + m.bytes.n);
	assert_int_equal(frame_get_data(&f, &got, &e), 0);
	assert_int_equal(got.bytes.n, m.bytes.n);
	buf_clear(&b);
}

static void
put_a_frame_too_long(void)
{
	struct buf b;

	buf_init(&b, 0);
	if (frame_put_open_sequence(&b,
		&(struct frame_open_sequence){
		    .spec = {NULL, FRAME_DOWN_MAX}}) != 0)
		abort();
}

TEST(making_a_frame_over_the_limit_is_our_bug)
{
	struct forked f;

	forked_run(&f, put_a_frame_too_long);
	assert_int_equal(f.status, 70);
}

TEST_MAIN(NULL, NULL)
