#include "images/agent/journal.h"
#include "tests/unit/test.h"

/* Only their addresses count here. */
static char places[JOURNAL_ENDED_MAX + 10];
static unsigned int dropped;

static void
drop_cb(struct seq *q)
{
	assert_non_null(q);
	dropped++;
}

static struct seq *
place(size_t i)
{
	void *p = &places[i];

	return p;
}

static struct uuid
key(uint32_t i)
{
	struct uuid u = {{0}};

	memcpy(u.b + 4, &i, sizeof(i));
	return u;
}

static struct journal *
setup(void)
{
	static struct journal j;

	journal_init(&j, drop_cb);
	dropped = 0;
	return &j;
}

static void
clear(struct journal *j)
{
	struct journal_list *const lists[] = {&j->live, &j->ended};
	struct journal_entry *en;

	hashmap_clear(&j->by_key);
	for (size_t i = 0; i < ARRAY_LEN(lists); i++)
		while ((en = TAILQ_FIRST(lists[i])) != NULL) {
			TAILQ_REMOVE(lists[i], en, by_age);
			free(en);
		}
}

static struct journal_entry *
add_ended(struct journal *j, uint32_t i)
{
	struct uuid k = key(i);
	struct journal_entry *en = journal_add(j, &k, place(i));

	journal_end(j, en, 100 + i);
	return en;
}

TEST(an_added_key_is_found_and_others_are_not)
{
	struct journal *j = setup();
	struct uuid one = key(1), two = key(2);
	struct journal_entry *en = journal_add(j, &one, place(1));

	assert_ptr_equal(journal_find(j, &one), en);
	assert_null(journal_find(j, &two));
	assert_int_equal(j->nlive, 1);
	clear(j);
}

TEST(an_ended_key_keeps_its_length)
{
	struct journal *j = setup();
	struct uuid k = key(5);

	journal_end(j, journal_add(j, &k, place(5)), 4711);
	assert_true(journal_find(j, &k)->ended);
	assert_int_equal(journal_find(j, &k)->length, 4711);
	assert_int_equal(j->nlive, 0);
	assert_int_equal(j->nended, 1);
	clear(j);
}

TEST(forgetting_gives_it_back_once_and_keeps_the_key)
{
	struct journal *j = setup();
	struct journal_entry *en = add_ended(j, 3);
	struct uuid k = key(3);

	assert_int_equal(j->nkept, 1);
	assert_ptr_equal(journal_forget(j, en), place(3));
	assert_null(journal_forget(j, en));
	assert_int_equal(j->nkept, 0);
	assert_ptr_equal(journal_find(j, &k), en);
	clear(j);
	assert_int_equal(dropped, 0);
}

TEST(the_oldest_forgotten_goes_first)
{
	struct journal *j = setup();
	struct uuid k0 = key(0), k5 = key(5);

	for (uint32_t i = 0; i < JOURNAL_ENDED_MAX; i++)
		(void)add_ended(j, i);
	(void)journal_forget(j, journal_find(j, &k5));
	(void)add_ended(j, JOURNAL_ENDED_MAX);
	assert_null(journal_find(j, &k5));
	assert_non_null(journal_find(j, &k0));
	assert_int_equal(j->nended, JOURNAL_ENDED_MAX);
	assert_int_equal(dropped, 0);
	clear(j);
}

TEST(without_a_forgotten_one_the_oldest_goes_with_its_log)
{
	struct journal *j = setup();
	struct uuid k0 = key(0), k1 = key(1);

	for (uint32_t i = 0; i <= JOURNAL_ENDED_MAX; i++)
		(void)add_ended(j, i);
	assert_null(journal_find(j, &k0));
	assert_non_null(journal_find(j, &k1));
	assert_int_equal(dropped, 1);
	assert_int_equal(j->nkept, JOURNAL_ENDED_MAX);
	clear(j);
}

TEST(a_live_key_is_never_dropped)
{
	struct journal *j = setup();
	struct uuid k = key(UINT32_MAX);

	(void)journal_add(j, &k, place(0));
	for (uint32_t i = 1; i < JOURNAL_ENDED_MAX + 9; i++)
		(void)add_ended(j, i);
	assert_non_null(journal_find(j, &k));
	assert_false(journal_find(j, &k)->ended);
	clear(j);
}

TEST_MAIN(NULL, NULL)
