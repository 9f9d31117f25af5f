#include "images/agent/ring.h"
#include "tests/unit/test.h"

#define MAX 200000

static uint8_t
byte_at(uint64_t off)
{
	return (uint8_t)(off * 31 + (off >> 8));
}

static void
append_pattern(struct ring *r, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint8_t b = byte_at(r->end);

		ring_append(r, &b, 1);
	}
}

static void
check_pattern(struct ring *r)
{
	for (uint64_t off = r->start; off < r->end; off++) {
		uint8_t b;

		ring_get(r, off, &b, 1);
		assert_int_equal(b, byte_at(off));
	}
}

TEST(a_new_ring_takes_no_memory)
{
	struct ring r;

	ring_init(&r, MAX);
	assert_int_equal(r.cap, 0);
	assert_int_equal(ring_used(&r), 0);
	assert_int_equal(ring_room(&r), MAX);
	ring_clear(&r);
}

TEST(a_few_bytes_take_a_kilobyte)
{
	struct ring r;

	ring_init(&r, MAX);
	append_pattern(&r, 200);
	assert_int_equal(r.cap, 1024);
	ring_clear(&r);
}

TEST(bytes_survive_every_step_of_growth)
{
	struct ring r;

	ring_init(&r, MAX);
	append_pattern(&r, 700);
	ring_release(&r, 500);
	append_pattern(&r, 600); /* wraps in the small memory */
	assert_int_equal(r.cap, 1024);
	append_pattern(&r, 5000);
	check_pattern(&r);
	ring_release(&r, 5000);
	append_pattern(&r, MAX - ring_used(&r));
	assert_int_equal(ring_room(&r), 0);
	check_pattern(&r);
	ring_clear(&r);
}

TEST(it_goes_round_for_ever)
{
	struct ring r;

	ring_init(&r, MAX);
	for (int i = 0; i < 40; i++) {
		append_pattern(&r, 37777);
		check_pattern(&r);
		ring_release(&r, r.end - 1111);
	}
	assert_int_equal(ring_used(&r), 1111);
	check_pattern(&r);
	ring_clear(&r);
}

TEST(a_view_across_the_end_has_two_pieces)
{
	struct iovec iov[2];
	struct ring r;

	ring_init(&r, MAX);
	append_pattern(&r, 1000);
	ring_release(&r, 1000);
	assert_int_equal(ring_view(&r, 1000, 100, iov), 2);
	assert_int_equal(iov[0].iov_len, 24);
	assert_int_equal(iov[1].iov_len, 76);
	assert_int_equal(ring_view(&r, 1000, 24, iov), 1);
	ring_clear(&r);
}

TEST(bytes_put_beyond_the_end_count_when_committed)
{
	struct ring r;
	char got[6] = "";

	ring_init(&r, MAX);
	ring_put(&r, 3, "def", 3);
	ring_put(&r, 0, "abc", 3);
	assert_int_equal(ring_used(&r), 0);
	ring_commit(&r, 6);
	ring_get(&r, 0, got, 6);
	assert_memory_equal(got, "abcdef", 6);
	ring_clear(&r);
}

TEST(releasing_what_is_gone_does_nothing)
{
	struct ring r;

	ring_init(&r, MAX);
	append_pattern(&r, 100);
	ring_release(&r, 60);
	ring_release(&r, 20);
	assert_int_equal(r.start, 60);
	ring_clear(&r);
	assert_int_equal(r.start, 100);
}

TEST_MAIN(NULL, NULL)
