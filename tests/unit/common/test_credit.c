#include "common/credit.h"
#include "tests/unit/test.h"

TEST(a_sender_has_what_was_granted_less_what_it_sent)
{
	struct credit c;
	struct err e;

	credit_open(&c, 10, 10);
	assert_int_equal(credit_left(&c), 0);
	assert_int_equal(credit_grant(&c, 10, 15, &e), 0);
	assert_int_equal(credit_left(&c), 5);
	c.sent = 15;
	assert_int_equal(credit_left(&c), 0);
	credit_open(&c, 10, 3); /* granted before it begins: nothing */
	assert_int_equal(credit_left(&c), 0);
	credit_open(&c, 0, UINT64_MAX);
	assert_true(credit_left(&c) == UINT64_MAX);
}

TEST(a_grant_never_goes_back)
{
	struct credit c;
	struct err e;

	credit_open(&c, 0, 100);
	c.sent = 50;
	assert_int_equal(credit_grant(&c, 40, 90, &e), 0);
	assert_int_equal(c.limit, 100);
	assert_int_equal(c.taken, 40);
	assert_int_equal(credit_grant(&c, 30, 120, &e), 0);
	assert_int_equal(c.limit, 120);
	assert_int_equal(c.taken, 40);
}

TEST(what_was_not_sent_cannot_be_taken)
{
	struct credit c;
	struct err e;

	credit_open(&c, 5, 100);
	assert_int_equal(credit_grant(&c, 6, 200, &e), ERR_PROTO);
	assert_int_equal(c.limit, 100); /* nothing of it counts */
	assert_int_equal(credit_grant(&c, UINT64_MAX, 200, &e), ERR_PROTO);
}

static const struct {
	uint64_t offset;
	uint64_t n;
	int rc;
} pieces[] = {
    /* got 10, granted up to 20 */
    {10, 1, 0},
    {10, 10, 0},
    {10, 11, ERR_PROTO},
    {10, UINT64_MAX, ERR_PROTO},
    {10, 0, ERR_PROTO},
    {9, 1, ERR_PROTO},
    {11, 1, ERR_PROTO},
    {UINT64_MAX, 1, ERR_PROTO},
};

TEST(a_receiver_takes_the_next_ones_within_its_grant)
{
	struct grant g;
	struct err e;

	for (size_t i = 0; i < ARRAY_LEN(pieces); i++) {
		grant_open(&g, 10, 20);
		assert_int_equal(
		    grant_take(&g, pieces[i].offset, pieces[i].n, &e),
		    pieces[i].rc);
		assert_int_equal(
		    g.got, pieces[i].rc == 0 ? 10 + pieces[i].n : 10);
	}
	grant_open(&g, 10, 0);
	assert_int_equal(grant_take(&g, 10, 1, &e), ERR_PROTO);
}

TEST_MAIN(NULL, NULL)
