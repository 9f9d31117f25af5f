#include "tests/unit/store/fixture.h"

struct trimmed {
	unsigned int calls;
	int rc;
	size_t nruns;
	struct uuid runs[500];
	size_t nblobs;
	uint8_t blobs[64]; /* first bytes of the digests */
	uint64_t tenant;
};

static void
trimmed_cb(int rc, const struct uuid *runs, size_t nruns,
    const uint8_t (*blobs)[32], size_t nblobs, uint64_t tenant, void *arg)
{
	struct trimmed *t = arg;

	t->calls++;
	t->rc = rc;
	t->nruns = nruns;
	t->nblobs = nblobs;
	t->tenant = tenant;
	assert_true(nruns <= ARRAY_LEN(t->runs));
	assert_true(nblobs <= ARRAY_LEN(t->blobs));
	for (size_t i = 0; i < nruns; i++)
		t->runs[i] = runs[i];
	for (size_t i = 0; i < nblobs; i++)
		t->blobs[i] = blobs[i][0];
}

static struct trimmed
trim(struct fixture *f, uint64_t tenant, uint64_t keep)
{
	struct trimmed t = {0};

	store_trim(f->store, tenant, keep, trimmed_cb, &t);
	fixture_wait(f, &t.calls, 1);
	return t;
}

/* An ended run that left the files 0.., with these digests (0 ends). */
static struct uuid
run_with(struct fixture *f, uint64_t id, const uint8_t *digests)
{
	struct store_run r;
	struct uuid uuid;

	fixture_run(&r, id, 1, "a");
	fixture_insert(f, &r);
	fixture_run_ended(&r, RUN_STATE_COMPLETED);
	for (size_t i = 0; digests[i] != 0; i++) {
		char path[24];

		(void)snprintf(path, sizeof(path), "f%zu", i);
		fixture_run_artifact(&r, path, digests[i]);
	}
	fixture_end(f, &r);
	uuid = r.uuid;
	store_run_clear(&r);
	return uuid;
}

#define DIGESTS(...) ((const uint8_t[]){__VA_ARGS__, 0})
#define NO_DIGESTS ((const uint8_t[]){0})

/* The counts must say what the rows say. */
static void
assert_counts_agree(struct fixture *f)
{
	assert_int_equal(
	    fixture_query(f,
		"SELECT count(*) FROM blob b WHERE refs <> (SELECT count(*)"
		" FROM artifact a WHERE a.tenant = b.tenant"
		" AND a.sha256 = b.sha256)"),
	    0);
	assert_int_equal(
	    fixture_query(f,
		"SELECT count(*) FROM artifact a WHERE NOT EXISTS (SELECT 1"
		" FROM blob b WHERE a.tenant = b.tenant"
		" AND a.sha256 = b.sha256)"),
	    0);
	assert_int_equal(
	    fixture_query(f,
		"SELECT count(*) FROM tenant t WHERE runs_kept <> (SELECT"
		" count(*) FROM run WHERE tenant = t.id AND state NOT IN"
		" ('queued', 'running')) OR events_kept <> (SELECT count(*)"
		" FROM event WHERE tenant = t.id)"),
	    0);
}

static int
setup(void **state)
{
	struct fixture *f;

	(void)fixture_setup(state);
	f = *state;
	fixture_exec(f,
	    "INSERT INTO tenant (id, name, created_ms)"
	    " VALUES (2, 'other', 0)");
	fixture_put_sandbox(f, 1, "a");
	return 0;
}

static void
test_the_oldest_ended_runs_go_and_the_newest_stay(void **state)
{
	struct fixture *f = *state;
	struct uuid uuids[10];
	struct trimmed t;

	for (uint64_t i = 0; i < 10; i++)
		uuids[i] = run_with(f, i + 1, NO_DIGESTS);
	t = trim(f, 1, 7);
	assert_int_equal(t.rc, 0);
	assert_int_equal(t.tenant, 1);
	assert_int_equal(t.nruns, 3);
	for (size_t i = 0; i < 3; i++)
		assert_memory_equal(&t.runs[i], &uuids[i], sizeof(uuids[i]));
	assert_int_equal(fixture_query(f, "SELECT min(id) FROM run"), 4);
	assert_int_equal(fixture_query(f, "SELECT count(*) FROM command"), 7);
	assert_counts_agree(f);
	t = trim(f, 1, 7);
	assert_int_equal(t.nruns, 0);
	assert_int_equal(t.nblobs, 0);
}

static void
test_unfinished_runs_never_go(void **state)
{
	struct fixture *f = *state;
	struct store_run r;
	struct trimmed t;

	fixture_run(&r, 1, 1, "a"); /* the oldest, and still queued */
	fixture_insert(f, &r);
	store_run_clear(&r);
	(void)run_with(f, 2, NO_DIGESTS);
	t = trim(f, 1, 0);
	assert_int_equal(t.nruns, 1);
	assert_int_equal(fixture_query(f, "SELECT id FROM run"), 1);
	assert_counts_agree(f);
}

static void
test_a_blob_goes_with_its_last_reference_only(void **state)
{
	struct fixture *f = *state;
	struct trimmed t;

	(void)run_with(f, 1, DIGESTS(10, 11, 11)); /* twice in one run */
	(void)run_with(f, 2, DIGESTS(10, 12));
	(void)run_with(f, 3, DIGESTS(12));
	assert_counts_agree(f);
	t = trim(f, 1, 2);
	assert_int_equal(t.nblobs, 1);
	assert_int_equal(t.blobs[0], 11);
	assert_counts_agree(f);
	t = trim(f, 1, 1);
	assert_int_equal(t.nblobs, 1);
	assert_int_equal(t.blobs[0], 10);
	assert_counts_agree(f);
	t = trim(f, 1, 0);
	assert_int_equal(t.nblobs, 1);
	assert_int_equal(t.blobs[0], 12);
	assert_int_equal(fixture_query(f, "SELECT count(*) FROM blob"), 0);
}

static void
test_another_tenant_is_left_alone(void **state)
{
	struct fixture *f = *state;
	struct store_sandbox s;
	struct result result = {0};
	struct store_run r;
	struct trimmed t;

	fixture_sandbox(&s, 2, "a");
	s.tenant = 2;
	store_sandbox_put(f->store, &s, result_cb, &result);
	store_sandbox_clear(&s);
	fixture_run(&r, 1, 2, "a");
	r.tenant = 2;
	fixture_insert(f, &r);
	fixture_run_ended(&r, RUN_STATE_COMPLETED);
	fixture_run_artifact(&r, "x", 10);
	fixture_end(f, &r);
	store_run_clear(&r);
	(void)run_with(f, 2, DIGESTS(10)); /* the same bytes, its own blob */
	t = trim(f, 1, 0);
	assert_int_equal(t.nruns, 1);
	assert_int_equal(t.nblobs, 1);
	assert_int_equal(fixture_query(f, "SELECT tenant FROM run"), 2);
	assert_int_equal(fixture_query(f, "SELECT tenant FROM blob"), 2);
	assert_counts_agree(f);
}

static void
test_an_unknown_tenant_is_not_found(void **state)
{
	struct trimmed t = trim(*state, 999, 0);

	assert_int_equal(t.rc, ERR_NOTFOUND);
	assert_int_equal(t.nruns, 0);
	assert_int_equal(t.tenant, 999);
}

static void
test_a_blob_that_a_run_just_brings_again_is_not_given_away(void **state)
{
	struct fixture *f = *state;
	struct result result = {0};
	struct trimmed t = {0};
	struct store_run r;

	(void)run_with(f, 1, DIGESTS(10, 11));
	fixture_run(&r, 2, 1, "a");
	fixture_insert(f, &r);
	fixture_run_ended(&r, RUN_STATE_COMPLETED);
	fixture_run_artifact(&r, "again", 10);
	/* The file is there and the row on its way when the trim comes back. */
	store_trim(f->store, 1, 0, trimmed_cb, &t);
	store_run_end(f->store, &r, result_cb, &result);
	store_run_clear(&r);
	fixture_wait(f, &result.calls, 1);
	assert_int_equal(result.rc, 0);
	assert_int_equal(t.calls, 1);
	assert_int_equal(t.nruns, 1);
	assert_int_equal(t.nblobs, 1);
	assert_int_equal(t.blobs[0], 11);
	assert_int_equal(fixture_query(f, "SELECT refs FROM blob"), 1);
	assert_counts_agree(f);
}

static void
test_dead_sandboxes_go_with_the_last_of_their_time(void **state)
{
	static const struct {
		uint64_t id;
		enum sandbox_word state;
		int64_t ended_ms;
	} rows[] = {{2, SANDBOX_IS_REMOVED, 5001}, {3, SANDBOX_IS_LOST, 5002},
	    {4, SANDBOX_IS_REMOVED, 9000}, {5, SANDBOX_IS_READY, 0}};
	struct fixture *f = *state;
	struct result result = {0};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct store_sandbox s;
		char name[24];

		(void)snprintf(name, sizeof(name), "s%zu", i);
		fixture_sandbox(&s, rows[i].id, name);
		s.state = rows[i].state;
		s.ended_ms = rows[i].ended_ms;
		store_sandbox_put(f->store, &s, result_cb, &result);
		store_sandbox_clear(&s);
	}
	for (uint64_t i = 10; i < 13; i++) /* created_ms 5010, 5011, 5012 */
		(void)run_with(f, i, NO_DIGESTS);
	(void)trim(f, 1, 1);
	assert_int_equal(fixture_query(f,
			     "SELECT group_concat(id, '') FROM"
			     " (SELECT id FROM sandbox ORDER BY id)"),
	    145);
}

static void
test_events_beyond_the_limit_go(void **state)
{
	struct fixture *f = *state;
	AUTO(auto_free)
	char *sql = xasprintf(
	    "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n"
	    " WHERE i < %d) INSERT INTO event (tenant, at_ms, kind, subject,"
	    " data) SELECT 1, i, 'k', 's', '' FROM n;"
	    " UPDATE tenant SET events_kept = %d WHERE id = 1",
	    STORE_EVENTS_KEEP + 10, STORE_EVENTS_KEEP + 10);

	fixture_exec(f, sql);
	(void)trim(f, 1, 0);
	assert_int_equal(
	    fixture_query(f, "SELECT count(*) FROM event"), STORE_EVENTS_KEEP);
	assert_int_equal(fixture_query(f, "SELECT min(at_ms) FROM event"), 11);
	assert_counts_agree(f);
}

static void
test_at_most_five_hundred_go_at_a_time(void **state)
{
	struct fixture *f = *state;
	struct result result = {0};
	struct trimmed t;

	for (uint64_t i = 1; i <= 510; i++) {
		struct store_run r;

		fixture_run(&r, i, 1, "a");
		store_run_insert(f->store, &r, STORE_NOW, NULL, NULL);
		fixture_run_ended(&r, RUN_STATE_COMPLETED);
		store_run_end(f->store, &r, result_cb, &result);
		store_run_clear(&r);
	}
	fixture_wait(f, &result.calls, 510);
	t = trim(f, 1, 5);
	assert_int_equal(t.nruns, 500);
	t = trim(f, 1, 5);
	assert_int_equal(t.nruns, 5);
	assert_counts_agree(f);
}

int
main(void)
{
#define TEST(t) cmocka_unit_test_setup_teardown(t, setup, fixture_teardown)
	const struct CMUnitTest tests[] = {
	    TEST(test_the_oldest_ended_runs_go_and_the_newest_stay),
	    TEST(test_unfinished_runs_never_go),
	    TEST(test_a_blob_goes_with_its_last_reference_only),
	    TEST(test_another_tenant_is_left_alone),
	    TEST(test_an_unknown_tenant_is_not_found),
	    TEST(test_a_blob_that_a_run_just_brings_again_is_not_given_away),
	    TEST(test_dead_sandboxes_go_with_the_last_of_their_time),
	    TEST(test_events_beyond_the_limit_go),
	    TEST(test_at_most_five_hundred_go_at_a_time),
	};

	return cmocka_run_group_tests_name("trim", tests, NULL, NULL);
}
