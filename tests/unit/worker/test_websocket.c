/* The client's side of a WebSocket, against frames written by hand. */
struct fixture;
#define TEST_STATE struct fixture *f

#include "common/xmalloc.h"
#include "tests/unit/test.h"
#include "tests/unit/worker/websocket_frames.h"
#include "worker/kubernetes/websocket.h"

struct fixture {
	struct websocket *w;
	struct buf in, back;
	struct buf seen; /* messages, each in brackets */
};

static void
see(struct fixture *f, const void *p, size_t n)
{
	assert_int_equal(buf_append(&f->seen, p, n), 0);
}

static void
begin_cb(void *arg)
{
	see(arg, "[", 1);
}

static void
bytes_cb(const uint8_t *p, size_t n, void *arg)
{
	see(arg, p, n);
}

static void
end_cb(void *arg)
{
	see(arg, "]", 1);
}

static const struct websocket_user user = {begin_cb, bytes_cb, end_cb};

static int
setup(void **state)
{
	static struct fixture f;

	memset(&f, 0, sizeof(f));
	f.w = websocket_new(&user, &f);
	*state = &f;
	return 0;
}

static int
teardown(void **state)
{
	struct fixture *f = *state;

	websocket_free(f->w);
	buf_clear(&f->in);
	buf_clear(&f->back);
	buf_clear(&f->seen);
	return 0;
}

static void
begin_anew(struct fixture *f)
{
	void *state = f;

	(void)teardown(&state);
	(void)setup(&state);
}

/* What is in f->in, in pieces of at most so many bytes. */
static int
take(struct fixture *f, size_t piece, struct err *e)
{
	int rc = 0;

	while (buf_len(&f->in) > 0 && rc == 0) {
		size_t n = buf_len(&f->in) < piece ? buf_len(&f->in) : piece;

		rc = websocket_take(f->w, buf_data(&f->in), n, &f->back, e);
		buf_consume(&f->in, n);
	}
	return rc;
}

static void
expect_seen(struct fixture *f, const char *text)
{
	assert_int_equal(buf_len(&f->seen), strlen(text));
	assert_memory_equal(buf_data(&f->seen), text, strlen(text));
}

/* ---- the handshake */

TEST(an_answer_to_a_key_is_the_one_of_rfc_6455)
{
	(void)f;
	assert_true(websocket_is_answer(
	    "dGhlIHNhbXBsZSBub25jZQ==", "s3pPLMBiTxaQ9kYGzzhZRbK+xOo="));
	assert_false(websocket_is_answer(
	    "dGhlIHNhbXBsZSBub25jZQ==", "s3pPLMBiTxaQ9kYGzzhZRbK+xOp="));
	assert_false(websocket_is_answer("dGhlIHNhbXBsZSBub25jZQ==", ""));
	assert_false(websocket_is_answer("dGhlIHNhbXBsZSBub25jZQ==", NULL));
}

TEST(a_key_is_another_each_time)
{
	char one[WEBSOCKET_KEY_LEN + 1], other[WEBSOCKET_KEY_LEN + 1];

	(void)f;
	websocket_make_key(one);
	websocket_make_key(other);
	assert_int_equal(strlen(one), WEBSOCKET_KEY_LEN);
	assert_string_not_equal(one, other);
}

/* ---- what is said */

TEST(a_message_is_one_masked_frame_whatever_its_size)
{
	static const size_t sizes[] = {
	    0, 1, 125, 126, 4096, 65535, 65536, WEBSOCKET_MESSAGE_MAX};
	static uint8_t bytes[WEBSOCKET_MESSAGE_MAX];

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * 7);
	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		websocket_put(f->w, bytes, sizes[i], &f->back);
		frames_expect(
		    &f->back, FRAMES_FINAL | FRAMES_BINARY, bytes, sizes[i]);
		assert_int_equal(buf_len(&f->back), 0);
	}
}

TEST(two_messages_have_two_masks)
{
	uint8_t first[4];

	websocket_put(f->w, (const uint8_t *)"x", 1, &f->back);
	memcpy(first, buf_data(&f->back) + 2, sizeof(first));
	buf_consume(&f->back, buf_len(&f->back));
	websocket_put(f->w, (const uint8_t *)"x", 1, &f->back);
	assert_memory_not_equal(buf_data(&f->back) + 2, first, sizeof(first));
}

TEST(nothing_is_said_after_a_close)
{
	websocket_close(f->w, WEBSOCKET_NORMAL_CLOSURE, &f->back);
	websocket_put(f->w, (const uint8_t *)"x", 1, &f->back);
	websocket_close(f->w, WEBSOCKET_NORMAL_CLOSURE, &f->back);
	frames_expect_close(&f->back, 1000);
	assert_int_equal(buf_len(&f->back), 0);
	assert_false(websocket_is_closed(f->w));
}

/* ---- what is heard */

TEST(messages_are_the_same_in_whatever_pieces_they_come)
{
	static const size_t pieces[] = {1, 2, 3, 7, 100000};
	static const char big[5000] = {'a'};
	struct err e;

	for (size_t i = 0; i < ARRAY_LEN(pieces); i++) {
		begin_anew(f);
		frames_put(&f->in, FRAMES_FINAL | FRAMES_BINARY, "one", 3);
		frames_put(&f->in, FRAMES_FINAL | FRAMES_BINARY, "", 0);
		frames_put(
		    &f->in, FRAMES_FINAL | FRAMES_BINARY, big, sizeof(big));
		assert_int_equal(take(f, pieces[i], &e), 0);
		assert_int_equal(buf_len(&f->seen), 5 + 2 + sizeof(big) + 2);
		assert_memory_equal(buf_data(&f->seen), "[one][][a", 9);
		assert_int_equal(buf_len(&f->back), 0);
	}
}

TEST(fragments_are_one_message_and_a_ping_between_is_answered)
{
	struct err e;

	frames_put(&f->in, FRAMES_BINARY, "ab", 2);
	frames_put(&f->in, FRAMES_FINAL | FRAMES_PING, "hi", 2);
	frames_put(&f->in, FRAMES_CONTINUATION, "", 0);
	frames_put(&f->in, FRAMES_FINAL | FRAMES_PONG, "", 0);
	frames_put(&f->in, FRAMES_FINAL | FRAMES_CONTINUATION, "cd", 2);
	assert_int_equal(take(f, 3, &e), 0);
	expect_seen(f, "[abcd]");
	frames_expect(&f->back, FRAMES_FINAL | FRAMES_PONG, "hi", 2);
	assert_int_equal(buf_len(&f->back), 0);
}

TEST(a_close_is_answered_and_ends_it)
{
	struct err e;

	frames_put(&f->in, FRAMES_FINAL | FRAMES_BINARY, "last", 4);
	frames_put_close(&f->in, 1000);
	frames_put(&f->in, FRAMES_FINAL | FRAMES_BINARY, "later", 5);
	assert_int_equal(take(f, 100, &e), 0);
	assert_true(websocket_is_closed(f->w));
	expect_seen(f, "[last]");
	websocket_put(f->w, (const uint8_t *)"x", 1, &f->back);
	frames_expect_close(&f->back, 1000);
	assert_int_equal(buf_len(&f->back), 0);
}

TEST(a_message_has_its_bound_in_one_frame_or_in_many)
{
	static uint8_t bytes[WEBSOCKET_MESSAGE_MAX + 1];
	struct err e;

	frames_put(
	    &f->in, FRAMES_FINAL | FRAMES_BINARY, bytes, sizeof(bytes) - 1);
	assert_int_equal(take(f, 65536, &e), 0);
	frames_put(&f->in, FRAMES_FINAL | FRAMES_BINARY, bytes, sizeof(bytes));
	assert_int_equal(take(f, 65536, &e), ERR_PROTO);
	frames_expect_close(&f->back, 1009);
	begin_anew(f);
	frames_put(&f->in, FRAMES_BINARY, bytes, sizeof(bytes) / 2);
	frames_put(&f->in, FRAMES_CONTINUATION, bytes, sizeof(bytes) / 2);
	frames_put(&f->in, FRAMES_CONTINUATION, bytes, 1);
	assert_int_equal(take(f, 65536, &e), ERR_PROTO);
	assert_non_null(strstr(e.msg, "a message too long"));
}

/* What a server must not send, and the code that it is closed with; 0: a CLOSE
 * without one. */
TEST(what_breaks_the_protocol_ends_it)
{
	static const struct {
		const char *bytes;
		size_t n;
		unsigned int code;
	} bad[] = {
	    {"\x82\x81\x01\x02\x03\x04x", 7, 1002}, /* a mask */
	    {"\xc2\x01x", 3, 1002},                 /* a reserved bit */
	    {"\x83\x01x", 3, 1002},                 /* a kind that is none */
	    {"\x80\x01x", 3, 1002},                 /* goes on with nothing */
	    {"\x02\x01x\x82\x01y", 6, 1002}, /* a message within another */
	    {"\x81\x01x", 3, 1003},          /* text */
	    {"\x09\x01x", 3, 0},             /* a PING in fragments */
	    {"\x89\x7e\x00\x7e", 4, 0},      /* a PING too long */
	    {"\x82\x7e\x00\x01x", 5, 0},     /* a length written too long */
	    {"\x88\x02\x03\xed", 4, 1002},   /* a code that is none */
	    {"\x88\x03\x03\xe8\xff", 5, 1007},
	};
	struct err e;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		begin_anew(f);
		assert_int_equal(buf_append(&f->in, bad[i].bytes, bad[i].n), 0);
		if (take(f, 100, &e) != ERR_PROTO)
			fail_msg("number %zu is taken", i);
		if (bad[i].code != 0)
			frames_expect_close(&f->back, bad[i].code);
		else
			frames_expect(
			    &f->back, FRAMES_FINAL | FRAMES_CLOSE, "", 0);
		assert_false(websocket_is_closed(f->w));
		assert_int_equal(buf_len(&f->back), 0);
	}
}

TEST(a_server_that_asks_for_more_than_it_reads_is_left)
{
	struct err e;

	buf_set_max(&f->back, 100);
	for (int i = 0; i < 20; i++)
		frames_put(&f->in, FRAMES_FINAL | FRAMES_PING, "12345678", 8);
	assert_int_equal(take(f, 1000, &e), ERR_LIMIT);
	assert_in_range(buf_len(&f->back), 1, 100);
	websocket_put(f->w, (const uint8_t *)"x", 1, &f->back);
	websocket_close(f->w, WEBSOCKET_NORMAL_CLOSURE, &f->back);
	assert_in_range(buf_len(&f->back), 1, 100);
}

TEST_MAIN(setup, teardown)
