#include "tests/unit/core/core_ground.h"

#include <sched.h>

#include "supervisor/core/quota_use.h"
#include "supervisor/core/tenants.h"

/* Whose sandboxes the engine makes and removes next. */

#define PLACES 8 /* of the one worker */

static struct sandbox *
open_of(struct principal *who, unsigned int n)
{
	struct sandbox *sb;
	char name[16];
	struct err e;

	(void)snprintf(name, sizeof(name), "box-%u", n);
	if (sandbox_open(core_sandboxes(g.core),
		&(struct sandbox_wish){.who = who,
		    .identifier = name,
		    .image = "image",
		    .origin = "run",
		    .ttl_s = 3600},
		&sb, &e) != 0)
		fail_msg("%s", e.msg);
	return sb;
}

static unsigned int
count_told(const char *what)
{
	unsigned int n = 0;

	ground_settle(0);
	for (const char *at = ground_told(0); (at = strstr(at, what)) != NULL;
	     at++)
		n++;
	return n;
}

static struct principal *
tenant_of(const char *name)
{
	struct tenant *n;
	struct err e;

	if (tenant_add(core_tenants(g.core), name, NULL, NULL, &n, &e) != 0)
		fail_msg("%s", e.msg);
	return n->owner;
}

TEST(a_worker_is_asked_for_so_many_at_a_time)
{
	for (unsigned int i = 1; i <= 3 * PLACES; i++)
		(void)open_of(g.who, i);
	assert_int_equal(count_told("create "), PLACES);
	say_ready(0, 1);
	assert_int_equal(count_told("create "), PLACES + 1);
	say_failed(0, 2, ERR_POLICY);
	assert_int_equal(count_told("create "), PLACES + 2);
}

TEST(a_flood_of_one_tenant_leaves_room_for_another)
{
	struct principal *a = tenant_of("a"), *b = tenant_of("b");
	unsigned int n;

	for (unsigned int i = 0; i < 3 * PLACES; i++)
		(void)open_of(a, i);
	n = count_told("create ");
	assert_in_range(n, 1, 3 * PLACES - 1);
	(void)open_of(b, 1);
	assert_int_equal(count_told("create "), n < PLACES ? n + 1 : n);
	say_ready(0, 1);
	expect_told(0, "create 25");
}

TEST(removals_wait_for_their_turn_as_well)
{
	struct principal *a = tenant_of("a"), *b = tenant_of("b");
	struct sandbox *old = open_of(a, 0);
	uint64_t first = old->row.id, last;

	say_ready(0, first);
	for (unsigned int i = 1; i <= 3 * PLACES; i++)
		last = open_of(a, i)->row.id;
	sandbox_remove(old);
	ground_wait_until(old->nwrites == 0);
	assert_int_equal(count_told("remove "), 0);
	(void)open_of(b, 1);
	/* What waits and is not wanted any more is never asked for. */
	for (uint64_t id = first + 1; id <= last; id++)
		if (sandboxes_find(core_sandboxes(g.core), id)->state ==
		    SANDBOX_NEW)
			sandbox_remove(
			    sandboxes_find(core_sandboxes(g.core), id));
	for (uint64_t id = first + 1; id <= last; id++)
		if (sandboxes_find(core_sandboxes(g.core), id) != NULL)
			say_ready(0, id);
	expect_told(0, "remove 1");
	assert_in_range(count_told("create "), 3, 2 + PLACES);
	say_removed(0, first, 0);
	assert_null(sandboxes_find(core_sandboxes(g.core), first));
}

TEST(taking_over_waits_for_no_turn)
{
	for (unsigned int i = 1; i <= 3 * PLACES; i++)
		(void)open_of(g.who, i);
	for (unsigned int i = 1; i <= 3 * PLACES - PLACES; i++)
		say_ready(0, i);
	ground_kill_worker(0);
	forget_told(0);
	ground_worker(0);
	assert_int_equal(count_told("adopt "), 3 * PLACES);
	/* One of those that were being made is not there. */
	say_lost(0, 3 * PLACES);
	expect_told(0, "create 24");
}

TEST(shares_of_the_processors_follow_the_number_of_sandboxes)
{
	struct principal *a = tenant_of("a");
	struct sandbox *first = open_of(a, 1);

	say_ready(0, 1);
	assert_int_equal(first->share.told.cpu_shares, 256);
	(void)open_of(a, 2);
	(void)open_of(a, 3);
	expect_told(0, "shares 1");
	assert_int_equal(first->share.told.cpu_shares, 64);
	say_ready(0, 2);
	say_failed(0, 3, ERR_POLICY);
	ground_wait_until(first->share.told.cpu_shares == 128);
	tenant_grant(tenants_find(core_tenants(g.core), a->tenant),
	    QUOTA_WEIGHT, 1000, NULL, NULL);
	ground_wait_until(first->share.told.cpu_shares == 1000);
}

TEST(shares_of_what_was_taken_over_are_told_again)
{
	struct sandbox *sb = open_of(g.who, 1);

	say_ready(0, 1);
	ground_kill_worker(0);
	forget_told(0);
	ground_worker(0);
	expect_told(0, "adopt 1");
	assert_int_equal(sb->share.told.cpu_shares, 0);
	say_ready(0, 1);
	expect_told(0, "shares 1");
	assert_int_equal(sb->share.told.cpu_shares, 256);
}

/* ---- rests: turns begun and left by hand, with no loop and no clock */

#define ITEMS 16 /* for each of the processors, which a tenant has half of */

struct turns {
	struct sched *runs, *engine;
	struct quota_uses *uses;
	struct quota_use *a, *b;
	struct sched_item *of_a, of_b;
	unsigned int nitems, asked, left; /* of a's; begun in order */
};

static void
begin_cb(struct sched_item *item)
{
	quota_use_begin_engine(item);
}

static void
turns_open(struct turns *t)
{
	cpu_set_t set;

	assert_int_equal(sched_getaffinity(0, sizeof(set), &set), 0);
	*t = (struct turns){.nitems = ITEMS * (unsigned int)CPU_COUNT(&set)};
	t->runs = sched_new(begin_cb);
	t->engine = sched_new(begin_cb);
	t->uses = quota_uses_new(core_conf(g.core), core_tenants(g.core),
	    g.store, t->runs, t->engine);
	t->a = quota_use_of(t->uses, tenant_of("a")->tenant);
	t->b = quota_use_of(t->uses, tenant_of("b")->tenant);
	t->of_a = xcalloc(t->nitems, sizeof(*t->of_a));
}

static void
turns_close(struct turns *t)
{
	for (unsigned int i = 0; i < t->nitems; i++)
		sched_leave(&t->of_a[i]);
	sched_leave(&t->of_b);
	quota_uses_free(t->uses);
	sched_free(t->engine);
	sched_free(t->runs);
	free(t->of_a);
}

static void
ask_a(struct turns *t, unsigned int n)
{
	while (n-- > 0)
		quota_use_ask_engine(t->a, &t->of_a[t->asked++]);
	sched_turn(t->engine);
}

/* All that a has going has ended; how many go then? */
static unsigned int
leave_a(struct turns *t)
{
	unsigned int n = t->a->engine.nrunning;

	while (n-- > 0)
		sched_leave(&t->of_a[t->left++]);
	sched_turn(t->engine);
	return t->a->engine.nrunning;
}

static void
until_rest(struct turns *t)
{
	while (leave_a(t) > 0)
		continue;
	assert_int_not_equal(t->a->engine.nwaiting, 0);
}

static void
b_works(struct turns *t)
{
	sched_leave(&t->of_b);
	quota_use_ask_engine(t->b, &t->of_b);
	sched_turn(t->engine);
	assert_int_equal(t->of_b.where, SCHED_IS_RUNNING);
	quota_uses_tick(t->uses);
	assert_true(quota_use_is_crowded(t->a));
}

TEST(a_backlog_beside_others_has_rests)
{
	unsigned int going, ticks = 0;
	struct turns t;

	turns_open(&t);
	ask_a(&t, t.nitems);
	going = t.a->engine.nrunning;
	assert_in_range(going, 1, t.nitems / 4);
	b_works(&t);
	until_rest(&t);
	b_works(&t); /* who has none waits for nothing */
	for (; t.a->engine.nrunning == 0; ticks++)
		quota_uses_tick(t.uses);
	assert_in_range(ticks, 1, 10);
	assert_int_equal(t.a->engine.nrunning, going);
	assert_int_equal(leave_a(&t), 0);
	turns_close(&t);
}

TEST(who_has_no_backlog_has_no_rest)
{
	struct turns t;

	turns_open(&t);
	b_works(&t);
	while (t.asked + 3 < t.nitems) { /* one, and the next two behind it */
		ask_a(&t, 3);
		while (t.a->engine.nwaiting > 0)
			assert_int_not_equal(leave_a(&t), 0);
		assert_int_equal(leave_a(&t), 0);
	}
	turns_close(&t);
}

TEST(a_few_at_once_have_no_rest)
{
	struct turns t;

	turns_open(&t);
	b_works(&t);
	for (int i = 0; i < 2; i++) {
		ask_a(&t, 8);
		while (leave_a(&t) > 0)
			continue;
		assert_int_equal(t.left, t.asked);
	}
	turns_close(&t);
}

TEST(a_backlog_without_others_has_no_rest)
{
	struct turns t;

	turns_open(&t);
	ask_a(&t, t.nitems);
	do
		quota_uses_tick(t.uses);
	while (leave_a(&t) > 0);
	assert_int_equal(t.left, t.nitems);
	turns_close(&t);
}

TEST(a_rest_ends_with_the_crowd)
{
	struct turns t;

	turns_open(&t);
	ask_a(&t, t.nitems);
	b_works(&t);
	until_rest(&t);
	sched_leave(&t.of_b);
	t.b->worked_ms = 0; /* as if some seconds ago */
	quota_uses_tick(t.uses);
	assert_false(quota_use_is_crowded(t.a));
	while (t.a->engine.nrunning > 0)
		(void)leave_a(&t);
	assert_int_equal(t.left, t.nitems);
	turns_close(&t);
}

TEST_MAIN(ground_set_up, ground_tear_down)
