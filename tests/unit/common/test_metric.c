#include <unistd.h>

#include "common/metric.h"
#include "common/quota.h"
#include "tests/unit/test.h"

static int
setup(void **state)
{
	(void)state;
	metric_clear();
	return 0;
}

TEST(every_family_has_its_own_cells)
{
	unsigned int at = 0;

	for (unsigned int i = 0; i < METRIC_FAMILIES; i++) {
		const struct metric_family *f =
		    metric_family_at((enum metric_number)i);
		unsigned int n = f->width;

		assert_int_equal(f->first, at);
		assert_true(f->nbounds <= METRIC_BOUNDS_MAX);
		for (unsigned int k = 0; k < f->nlabels; k++)
			n *= f->labels[k].count;
		at += n;
	}
	assert_int_equal(at, METRIC_CELLS);
}

TEST(refusals_are_told_by_the_names_of_quotas)
{
	const struct metric_label *l =
	    &metric_family_at(FAMILY_TENANT_REFUSALS_TOTAL)->labels[1];

	assert_int_equal(l->count, QUOTA_COUNT);
	for (unsigned int i = 0; i < QUOTA_COUNT; i++)
		assert_string_equal(
		    l->values[i], quota_rule((enum quota_key)i)->key);
}

TEST(an_observation_is_in_the_bucket_that_holds_it)
{
	const unsigned int at = METRIC_RUN_QUEUE_SECONDS;
	const struct metric_family *f =
	    metric_family_at(FAMILY_RUN_QUEUE_SECONDS);

	assert_int_equal(metric_observe(FAMILY_RUN_QUEUE_SECONDS, 0, 500), 0);
	assert_int_equal(metric_observe(FAMILY_RUN_QUEUE_SECONDS, 0, 501), 1);
	assert_int_equal(
	    metric_observe(FAMILY_RUN_QUEUE_SECONDS, 0, UINT64_C(1) << 40),
	    f->nbounds);
	assert_int_equal(metric_get(at), 1);
	assert_int_equal(metric_get(at + 1), 1);
	assert_int_equal(metric_get(at + f->nbounds), 1);
	assert_int_equal(
	    metric_get(at + f->nbounds + 1), 1001 + (UINT64_C(1) << 40));
}

TEST(a_counter_stays_at_its_end)
{
	metric_add(METRIC_RUNS_ENDED_TOTAL, UINT64_MAX - 3);
	metric_add(METRIC_RUNS_ENDED_TOTAL, 1);
	assert_int_equal(metric_get(METRIC_RUNS_ENDED_TOTAL), UINT64_MAX - 2);
	metric_add(METRIC_RUNS_ENDED_TOTAL, 7);
	assert_int_equal(metric_get(METRIC_RUNS_ENDED_TOTAL), UINT64_MAX - 1);
	metric_add(METRIC_RUNS_ENDED_TOTAL, UINT64_MAX);
	assert_int_equal(metric_get(METRIC_RUNS_ENDED_TOTAL), UINT64_MAX - 1);
}

TEST(who_comes_next_goes_on_from_what_was_shown)
{
	struct err e;
	int fd = metric_make(&e);

	assert_true(fd >= 0);
	assert_int_equal(metric_adopt(fd, &e), 0);
	metric_since(METRIC_STORE_COMMITS_TOTAL, 5);
	metric_raise(METRIC_EVICTED_RUNS_TOTAL, 9);
	(void)metric_observe(FAMILY_RUN_QUEUE_SECONDS, 0, 1);
	/* Another process begins to count at 0. */
	assert_int_equal(metric_adopt(fd, &e), 0);
	metric_since(METRIC_STORE_COMMITS_TOTAL, 0);
	metric_raise(METRIC_EVICTED_RUNS_TOTAL, 8);
	assert_int_equal(metric_get(METRIC_STORE_COMMITS_TOTAL), 5);
	assert_int_equal(metric_get(METRIC_EVICTED_RUNS_TOTAL), 9);
	assert_int_equal(metric_get(METRIC_RUN_QUEUE_SECONDS), 1);
	metric_since(METRIC_STORE_COMMITS_TOTAL, 2);
	assert_int_equal(metric_get(METRIC_STORE_COMMITS_TOTAL), 7);
	(void)close(fd);
}

TEST(memory_of_another_size_is_refused_and_nobody_can_cut_ours)
{
	int other[2], fd;
	struct err e;

	assert_int_equal(pipe(other), 0);
	assert_int_equal(metric_adopt(other[0], &e), ERR_PROTO);
	fd = metric_make(&e);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, 0), -1);
	(void)close(fd);
	(void)close(other[0]);
	(void)close(other[1]);
}

TEST(a_tenant_keeps_its_place_and_leaves_no_numbers_to_the_next)
{
	bool used[METRIC_TENANTS] = {false};

	assert_int_equal(metric_tenant(7, 0), 0);
	assert_int_equal(metric_tenant(8, 1), 1);
	assert_int_equal(metric_tenant(8, 0), 1);
	metric_add(METRIC_TENANT_REQUESTS_TOTAL, 3);
	metric_add(METRIC_TENANT_RUNS_TOTAL + 2, 4);
	metric_add(METRIC_TENANT_RUNS_TOTAL + 3, 5);
	used[1] = true;
	metric_tenants_keep(used);
	assert_int_equal(metric_tenant_find(7, 0), METRIC_TENANTS - 1);
	assert_int_equal(metric_tenant(9, 0), 0);
	assert_int_equal(metric_get(METRIC_TENANT_REQUESTS_TOTAL), 0);
	assert_int_equal(metric_get(METRIC_TENANT_RUNS_TOTAL + 2), 0);
	assert_int_equal(metric_get(METRIC_TENANT_RUNS_TOTAL + 3), 5);
	for (uint64_t i = 100; i < 100 + METRIC_TENANTS; i++)
		(void)metric_tenant(i, 0);
	assert_int_equal(metric_tenant(1000, 0), METRIC_TENANTS - 1);
}

TEST_MAIN(setup, NULL)
