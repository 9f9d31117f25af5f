#include <stdio.h>
#include <unistd.h>

#include "common/xmalloc.h"
#include "supervisor/front/hook_turns.h"
#include "tests/unit/test.h"

#define PLACES 48
#define MANY 30000
#define HANGS_S 120 /* only to end a test that would go on for hours */

static struct hook_turns *all;

struct request {
	uint64_t tenant;
	struct hook_turn turn;
};

static int
set_up(void **state)
{
	(void)state;
	all = hook_turns_new();
	return 0;
}

static int
tear_down(void **state)
{
	(void)state;
	hook_turns_free(all);
	return 0;
}

static void
add(struct request *r, uint64_t tenant, const char *host)
{
	r->tenant = tenant;
	hook_turns_wait(all, &r->turn, tenant, host);
}

/* The next, or NULL. */
static struct request *
next(size_t places)
{
	struct hook_turn *t = hook_turns_next(all, places);

	return t == NULL ? NULL : CONTAINER_OF(t, struct request, turn);
}

static void
leave_all(struct request *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		hook_turns_leave(all, &list[i].turn);
}

TEST(those_of_a_host_come_in_their_order)
{
	struct request r[3];

	for (size_t i = 0; i < ARRAY_LEN(r); i++)
		add(&r[i], 1, "a.example");
	for (size_t i = 0; i < ARRAY_LEN(r); i++)
		assert_ptr_equal(next(PLACES), &r[i]);
	assert_null(next(PLACES));
	leave_all(r, ARRAY_LEN(r));
}

TEST(tenants_take_turns_and_so_do_their_hosts)
{
	struct request a[4], b[2];

	add(&a[0], 1, "a.example");
	add(&a[1], 1, "a.example");
	add(&a[2], 1, "b.example");
	add(&a[3], 1, "b.example");
	add(&b[0], 2, "a.example");
	add(&b[1], 2, "a.example");
	assert_ptr_equal(next(PLACES), &a[0]);
	assert_ptr_equal(next(PLACES), &b[0]);
	assert_ptr_equal(next(PLACES), &a[2]);
	assert_ptr_equal(next(PLACES), &b[1]);
	assert_ptr_equal(next(PLACES), &a[1]);
	assert_ptr_equal(next(PLACES), &a[3]);
	leave_all(a, ARRAY_LEN(a));
	leave_all(b, ARRAY_LEN(b));
}

TEST(a_host_is_bounded_for_each_tenant_by_itself)
{
	struct request a[HOOK_TURNS_PER_HOST + 1], b, other;

	for (size_t i = 0; i < ARRAY_LEN(a); i++)
		add(&a[i], 1, "slow.example");
	for (size_t i = 0; i < HOOK_TURNS_PER_HOST; i++)
		assert_ptr_equal(next(PLACES), &a[i]);
	assert_null(next(PLACES));
	add(&other, 1, "well.example");
	add(&b, 2, "slow.example");
	assert_ptr_equal(next(PLACES), &other);
	assert_ptr_equal(next(PLACES), &b);
	assert_null(next(PLACES));
	hook_turns_leave(all, &a[0].turn);
	assert_ptr_equal(next(PLACES), &a[HOOK_TURNS_PER_HOST]);
	leave_all(a, ARRAY_LEN(a));
	leave_all(&b, 1);
	leave_all(&other, 1);
}

TEST(a_tenant_is_bounded_over_all_its_hosts)
{
	struct request a[HOOK_TURNS_PER_TENANT + 1];
	char host[32];

	for (size_t i = 0; i < ARRAY_LEN(a); i++) {
		(void)snprintf(host, sizeof(host), "%zu.example", i);
		add(&a[i], 1, host);
	}
	for (size_t i = 0; i < HOOK_TURNS_PER_TENANT; i++)
		assert_ptr_equal(next(PLACES), &a[i]);
	assert_null(next(PLACES));
	leave_all(a, ARRAY_LEN(a));
}

TEST(what_is_taken_at_once_counts_as_well)
{
	struct request a[HOOK_TURNS_PER_HOST], one, b, c;

	for (size_t i = 0; i < ARRAY_LEN(a); i++)
		assert_true(hook_turns_take(
		    all, &a[i].turn, 1, "slow.example", PLACES));
	assert_false(
	    hook_turns_take(all, &one.turn, 1, "slow.example", PLACES));
	hook_turns_leave(all, &one.turn);
	add(&one, 1, "slow.example");
	assert_null(next(PLACES));
	assert_true(hook_turns_take(all, &b.turn, 2, "slow.example", PLACES));
	assert_false(hook_turns_take(all, &c.turn, 3, "slow.example", 0));
	leave_all(a, ARRAY_LEN(a));
	assert_ptr_equal(next(PLACES), &one);
	leave_all(&one, 1);
	leave_all(&b, 1);
}

/* Of tenants that fill all places with what hangs, none keeps out one that has
 * nothing under way. */
TEST(the_last_places_are_for_who_has_none)
{
	struct request hang[20][HOOK_TURNS_PER_HOST], well;
	size_t free_places = PLACES;

	for (size_t i = 0; i < ARRAY_LEN(hang); i++)
		for (size_t j = 0; j < HOOK_TURNS_PER_HOST; j++)
			add(&hang[i][j], i, "slow.example");
	while (next(free_places) != NULL)
		free_places--;
	assert_true(free_places > 0);
	add(&well, ARRAY_LEN(hang), "slow.example");
	assert_ptr_equal(next(free_places), &well);
	for (size_t i = 0; i < ARRAY_LEN(hang); i++)
		leave_all(hang[i], HOOK_TURNS_PER_HOST);
	leave_all(&well, 1);
}

TEST(without_places_nobody_is_next)
{
	struct request r;

	add(&r, 1, "a.example");
	assert_null(next(0));
	assert_ptr_equal(next(1), &r);
	leave_all(&r, 1);
}

TEST(however_many_wait_the_next_is_found_at_once)
{
	struct request *r = xcalloc(MANY, sizeof(*r)), well;
	size_t sent = 0;

	(void)alarm(HANGS_S);
	for (size_t i = 0; i < MANY; i++) {
		add(&r[i], 1, "slow.example");
		sent += next(PLACES) != NULL;
	}
	assert_int_equal(sent, HOOK_TURNS_PER_HOST);
	add(&well, 2, "slow.example");
	assert_ptr_equal(next(PLACES), &well);
	leave_all(r, MANY);
	leave_all(&well, 1);
	(void)alarm(0);
	free(r);
}

TEST_MAIN(set_up, tear_down)
