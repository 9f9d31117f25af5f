#include "common/msg/frame_gen.h"
#include "common/msg/msg_gen.h"
#include "tests/unit/common/codec_any.h"
#include "tests/unit/common/forked.h"
#include "tests/unit/test.h"

#define ROUNDS 40
#define POOL_BYTES (1u << 18)

static uint8_t pool[POOL_BYTES];
static struct any any = {.pool = pool, .size = sizeof(pool)};

/* Calls fn with each kind of message that there is, encoded. */
static void
each_encoded(
    void (*fn)(const struct codec *c, const struct buf *b), unsigned int rounds)
{
	unsigned int n = 0;

	for (unsigned int type = 0; type < 2 * UINT16_MAX; type++) {
		const struct codec *c =
		    type % 2 == 0 ? msg_codec(type / 2) : frame_codec(type / 2);

		if (c == NULL)
			continue;
		n++;
		for (unsigned int i = 0; i < rounds; i++) {
			struct buf b;

			buf_init(&b, 0);
			any_fill(&any, c);
			codec_put(&b, c, any.m);
			fn(c, &b);
			buf_clear(&b);
		}
	}
	assert_true(n > 50);
}

static int
decode(const struct codec *c, const uint8_t *p, size_t n, uint8_t *m,
    struct err *e)
{
	struct wire_in in;

	wire_in_init(&in, p, n);
	return codec_get(&in, c, m, e);
}

static void
check_same(const struct codec *c, const struct buf *b)
{
	static struct any back;
	struct err e = {0};

	assert_int_equal(codec_size(c, any.m), buf_len(b));
	if (decode(c, buf_data(b), buf_len(b), back.m, &e) != 0)
		fail_msg("%s", e.msg);
	if (!any_is_equal(c, any.m, back.m))
		fail_msg("%s is not what it was", c->name);
}

TEST(what_was_encoded_is_decoded)
{
	each_encoded(check_same, ROUNDS);
}

static bool
has_rest(const struct codec *c)
{
	return c->nfields > 0 && c->fields[c->nfields - 1].kind == CODEC_REST;
}

static void
check_cut(const struct codec *c, const struct buf *b)
{
	static struct any back;
	struct err e = {0};

	for (size_t n = 0; n < buf_len(b) && !has_rest(c); n++)
		assert_int_equal(
		    decode(c, buf_data(b), n, back.m, &e), ERR_PROTO);
}

TEST(a_message_cut_short_is_refused)
{
	each_encoded(check_cut, 4);
}

static void
check_longer(const struct codec *c, const struct buf *b)
{
	static uint8_t longer[POOL_BYTES];
	static struct any back;
	struct err e = {0};

	if (buf_len(b) > 0)
		memcpy(longer, buf_data(b), buf_len(b));
	longer[buf_len(b)] = 0;
	assert_int_equal(decode(c, longer, buf_len(b) + 1, back.m, &e),
	    has_rest(c) ? 0 : ERR_PROTO);
}

TEST(a_byte_too_many_is_refused)
{
	each_encoded(check_longer, ROUNDS);
}

/* Whatever a byte becomes: refused, or a message that is encoded like that. */
static void
check_flipped(const struct codec *c, const struct buf *b)
{
	static struct any back;
	uint8_t *p = buf_data(b);
	struct err e = {0};

	for (size_t i = 0; i < buf_len(b); i++) {
		uint8_t was = p[i];
		struct buf again;

		p[i] = (uint8_t)any_random(&any);
		if (decode(c, p, buf_len(b), back.m, &e) == 0) {
			buf_init(&again, 0);
			codec_put(&again, c, back.m);
			assert_int_equal(buf_len(&again), buf_len(b));
			/* cmocka compares byte by byte: slow */
			if (memcmp(buf_data(&again), p, buf_len(b)) != 0)
				assert_memory_equal(
				    buf_data(&again), p, buf_len(b));
			buf_clear(&again);
		}
		p[i] = was;
	}
}

TEST(a_changed_byte_is_refused_or_read_as_it_is)
{
	each_encoded(check_flipped, 6);
}

/* What only the bounds of the test list would let through. */
static const struct codec_field fields[] = {
    {"small", 0, CODEC_U32, 3, 5},
    {"below", 4, CODEC_I32, -4, UINT64_MAX}, /* to -1 */
    {"name", 8, CODEC_STR, 0, 3},
};
static const struct codec codec = {
    .type = 1, .name = "TEST", .size = 16, .fields = fields, .nfields = 3};
struct test {
	uint32_t small;
	int32_t below;
	const char *name;
};

static void
check_refused(const char *bytes, size_t n, const char *why)
{
	struct test t;
	struct err e = {0};

	assert_int_equal(
	    decode(&codec, (const uint8_t *)bytes, n, (uint8_t *)&t, &e),
	    ERR_PROTO);
	assert_string_equal(e.msg, why);
}

TEST(bounds_are_checked_and_the_field_is_named)
{
	struct test t;
	struct err e;

	assert_int_equal(decode(&codec,
			     (const uint8_t *)"\5\0\0\0\xff\xff\xff\xff"
					      "\3\0\0\0abc",
			     16, (uint8_t *)&t, &e),
	    0);
	assert_int_equal(t.small, 5);
	assert_int_equal(t.below, -1);
	assert_string_equal(t.name, "abc");
	check_refused("\2\0\0\0", 4, "TEST: small: out of its range");
	check_refused("\6\0\0\0", 4, "TEST: small: out of its range");
	check_refused("\3\0\0", 3, "TEST: small: a number is cut off");
	check_refused("\3\0\0\0\0\0\0\0", 8, "TEST: below: out of its range");
	check_refused(
	    "\3\0\0\0\xfb\xff\xff\xff", 8, "TEST: below: out of its range");
	check_refused("\3\0\0\0\xfc\xff\xff\xff\4\0\0\0abcd", 17,
	    "TEST: name: a string is longer than permitted");
	check_refused("\3\0\0\0\xfc\xff\xff\xff\2\0\0\0ab!", 15,
	    "TEST: name: a string has a NUL inside, or none at its end");
	check_refused("\3\0\0\0\xfc\xff\xff\xff\2\0\0\0a\0", 15,
	    "TEST: name: a string has a NUL inside, or none at its end");
	check_refused("\3\0\0\0\xfc\xff\xff\xff\0\0\0\0\0x", 14,
	    "TEST: 1 bytes too many");
}

static void
put(const struct test *t)
{
	struct buf b;

	buf_init(&b, 0);
	codec_put(&b, &codec, t);
	buf_clear(&b);
}

static void
put_large(void)
{
	put(&(struct test){.small = 6, .below = -1});
}

static void
put_positive(void)
{
	put(&(struct test){.small = 3, .below = 1});
}

static void
put_long(void)
{
	put(&(struct test){.small = 3, .below = -1, .name = "abcd"});
}

static void
put_good(void)
{
	put(&(struct test){.small = 3, .below = -1, .name = NULL});
}

TEST(sending_what_is_over_a_bound_is_our_bug)
{
	struct forked f;

	forked_run(&f, put_large);
	assert_int_equal(f.status, 70);
	forked_run(&f, put_positive);
	assert_int_equal(f.status, 70);
	forked_run(&f, put_long);
	assert_int_equal(f.status, 70);
	assert_non_null(strstr(f.text, "name has 4 bytes, limit 3"));
	forked_run(&f, put_good);
	assert_int_equal(f.status, 0);
}

TEST_MAIN(NULL, NULL)
