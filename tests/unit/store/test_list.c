#include "tests/unit/store/fixture.h"

/* What the last list had. */
struct seen {
	unsigned int calls;
	int rc;
	size_t n;
	bool has_more;
	struct uuid next;
	struct uuid ids[64];
	enum run_state states[64];
};

static void
seen_cb(
    int rc, const struct store_run_list *list, const struct err *why, void *arg)
{
	struct seen *s = arg;

	(void)why;
	s->calls++;
	s->rc = rc;
	s->n = rc == 0 ? list->n : 0;
	if (rc != 0)
		return;
	s->has_more = list->has_more;
	s->next = list->next;
	assert_in_range(list->n, 0, ARRAY_LEN(s->ids));
	for (size_t i = 0; i < list->n; i++) {
		s->ids[i] = list->lines[i].uuid;
		s->states[i] = list->lines[i].state;
	}
}

static struct seen
list(struct fixture *f, uint64_t tenant, const struct store_run_filter *filter)
{
	struct seen s = {0};

	(void)store_run_list(
	    f->store, (struct tenant_id){tenant}, filter, seen_cb, &s);
	fixture_wait(f, &s.calls, 1);
	return s;
}

/* Run id of sandbox 1 or 2, which are those of a and b; each fourth failed. */
static struct uuid
add_run(struct fixture *f, uint64_t id)
{
	struct store_run r;
	struct uuid uuid;

	fixture_run(&r, id, 1 + id % 2, id % 2 == 0 ? "a" : "b");
	r.created_ms = (int64_t)(1000 + id / 3);
	fixture_insert(f, &r);
	fixture_run_ended(
	    &r, id % 4 == 0 ? RUN_STATE_FAILED : RUN_STATE_COMPLETED);
	fixture_end(f, &r);
	uuid = r.uuid;
	store_run_clear(&r);
	return uuid;
}

static void
fill(struct fixture *f, struct uuid *ids, uint64_t n)
{
	fixture_put_sandbox(f, 1, "a");
	fixture_put_sandbox(f, 2, "b");
	for (uint64_t i = 1; i <= n; i++)
		ids[i] = add_run(f, i);
}

static void
test_pages_are_newest_first_and_leave_nothing_out(void **state)
{
	struct fixture *f = *state;
	struct store_run_filter filter = {.limit = 4};
	struct uuid ids[12], after;
	uint64_t at = 11;
	struct seen s;

	fill(f, ids, 11);
	do {
		s = list(f, STORE_TENANT_DEFAULT, &filter);
		assert_int_equal(s.rc, 0);
		for (size_t i = 0; i < s.n; i++, at--)
			assert_memory_equal(
			    &s.ids[i], &ids[at], sizeof(ids[at]));
		after = s.next;
		filter.after = &after;
	} while (s.has_more);
	assert_int_equal(at, 0);
}

static void
test_a_filter_gives_what_it_says(void **state)
{
	struct fixture *f = *state;
	struct uuid ids[13];
	struct seen s;

	fill(f, ids, 12);
	s = list(f, STORE_TENANT_DEFAULT,
	    &(struct store_run_filter){.identifier = "a", .limit = 50});
	assert_int_equal(s.n, 6);
	s = list(f, STORE_TENANT_DEFAULT,
	    &(struct store_run_filter){
		.states = 1u << RUN_STATE_FAILED, .limit = 50});
	assert_int_equal(s.n, 3);
	for (size_t i = 0; i < s.n; i++)
		assert_int_equal(s.states[i], RUN_STATE_FAILED);
	s = list(f, STORE_TENANT_DEFAULT,
	    &(struct store_run_filter){.identifier = "b",
		.states = 1u << RUN_STATE_FAILED,
		.limit = 50});
	assert_int_equal(s.n, 0);
	assert_false(s.has_more);
}

static void
test_another_tenant_sees_neither_runs_nor_cursors(void **state)
{
	struct fixture *f = *state;
	struct uuid ids[4], unknown;
	struct seen s;

	fill(f, ids, 3);
	s = list(f, 77, &(struct store_run_filter){.limit = 50});
	assert_int_equal(s.rc, 0);
	assert_int_equal(s.n, 0);
	s = list(
	    f, 77, &(struct store_run_filter){.after = &ids[2], .limit = 50});
	assert_int_equal(s.rc, ERR_NOTFOUND);
	uuid_random(&unknown);
	s = list(f, STORE_TENANT_DEFAULT,
	    &(struct store_run_filter){.after = &unknown, .limit = 50});
	assert_int_equal(s.rc, ERR_NOTFOUND);
}

static void
test_a_listing_that_nobody_waits_for_is_not_told(void **state)
{
	const struct store_run_filter filter = {.limit = 10};
	struct fixture *f = *state;
	struct seen s = {0};

	store_listing_cancel(store_run_list(
	    f->store, (struct tenant_id){1}, &filter, seen_cb, &s));
	(void)list(f, 1, &filter); /* behind it */
	assert_int_equal(s.calls, 0);
	/* And one that the store does not outlive. */
	(void)store_run_list(
	    f->store, (struct tenant_id){1}, &filter, seen_cb, &s);
}

int
main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, fixture_setup, fixture_teardown)
	const struct CMUnitTest tests[] = {
	    T(test_a_listing_that_nobody_waits_for_is_not_told),
	    T(test_pages_are_newest_first_and_leave_nothing_out),
	    T(test_a_filter_gives_what_it_says),
	    T(test_another_tenant_sees_neither_runs_nor_cursors),
	};

	return cmocka_run_group_tests_name("list", tests, NULL, NULL);
}
