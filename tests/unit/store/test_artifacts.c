#include "tests/unit/store/fixture.h"

struct got {
	unsigned int calls;
	int rc;
	uint64_t size;
	uint8_t digest;
	char path[128];
};

static void
got_cb(
    int rc, const struct store_artifact *row, const struct err *why, void *arg)
{
	struct got *g = arg;

	assert_int_equal(rc == 0, row != NULL);
	assert_int_equal(rc == 0, why == NULL);
	g->calls++;
	g->rc = rc;
	if (row == NULL)
		return;
	g->size = row->size;
	g->digest = row->sha256[0];
	(void)snprintf(g->path, sizeof(g->path), "%s", row->path);
}

static struct got
get(struct fixture *f, uint64_t tenant, const char *identifier,
    const struct uuid *run, const char *path)
{
	struct got g = {0};

	store_artifact_get(f->store, (struct tenant_id){tenant}, identifier,
	    run, path, got_cb, &g);
	fixture_wait(f, &g.calls, 1);
	return g;
}

/* A run of identifier that left path with this digest. */
static struct uuid
leave(struct fixture *f, uint64_t id, uint64_t sandbox, const char *identifier,
    const char *path, uint8_t digest)
{
	struct store_run r;
	struct uuid uuid;

	fixture_run(&r, id, sandbox, identifier);
	fixture_insert(f, &r);
	fixture_run_ended(&r, RUN_STATE_COMPLETED);
	if (path != NULL)
		fixture_run_artifact(&r, path, digest);
	fixture_end(f, &r);
	uuid = r.uuid;
	store_run_clear(&r);
	return uuid;
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
	fixture_put_sandbox(f, 2, "b");
	return 0;
}

static void
test_an_artifact_is_found_by_its_run(void **state)
{
	struct fixture *f = *state;
	struct uuid first = leave(f, 1, 1, "a", "x.txt", 1);
	struct uuid second = leave(f, 2, 1, "a", "x.txt", 2);
	struct got g = get(f, 1, "a", &first, "x.txt");

	assert_int_equal(g.rc, 0);
	assert_int_equal(g.digest, 1);
	assert_int_equal(g.size, 100);
	assert_string_equal(g.path, "x.txt");
	assert_int_equal(get(f, 1, "a", &second, "x.txt").digest, 2);
}

static void
test_latest_is_the_newest_run_that_left_the_path(void **state)
{
	struct fixture *f = *state;

	(void)leave(f, 1, 1, "a", "x.txt", 1);
	(void)leave(f, 2, 1, "a", "x.txt", 2);
	(void)leave(f, 3, 1, "a", "other", 3);
	(void)leave(f, 4, 1, "a", NULL, 0);
	(void)leave(f, 5, 2, "b", "x.txt", 5); /* not this identifier's */
	assert_int_equal(get(f, 1, "a", NULL, "x.txt").digest, 2);
}

static void
test_nothing_is_found_by_another_tenant_identifier_or_path(void **state)
{
	struct fixture *f = *state;
	struct uuid run = leave(f, 1, 1, "a", "x.txt", 1);
	struct uuid unknown;

	uuid_random(&unknown);
	assert_int_equal(get(f, 2, "a", &run, "x.txt").rc, ERR_NOTFOUND);
	assert_int_equal(get(f, 2, "a", NULL, "x.txt").rc, ERR_NOTFOUND);
	assert_int_equal(get(f, 1, "b", &run, "x.txt").rc, ERR_NOTFOUND);
	assert_int_equal(get(f, 1, "b", NULL, "x.txt").rc, ERR_NOTFOUND);
	assert_int_equal(get(f, 1, "a", &run, "x.tx").rc, ERR_NOTFOUND);
	assert_int_equal(get(f, 1, "a", NULL, "X.TXT").rc, ERR_NOTFOUND);
	assert_int_equal(get(f, 1, "a", &unknown, "x.txt").rc, ERR_NOTFOUND);
}

static void
test_the_same_path_twice_in_a_run_undoes_the_whole_end(void **state)
{
	struct fixture *f = *state;
	struct result result = {0};
	struct store_run r;

	fixture_run(&r, 1, 1, "a");
	fixture_insert(f, &r);
	fixture_run_ended(&r, RUN_STATE_COMPLETED);
	fixture_run_artifact(&r, "x", 1);
	fixture_run_artifact(&r, "x", 2);
	store_run_end(f->store, &r, NULL, result_cb, &result);
	fixture_wait(f, &result.calls, 1);
	assert_int_equal(result.rc, ERR_CONFLICT);
	assert_int_equal(fixture_query(f, "SELECT count(*) FROM blob"), 0);
	assert_int_equal(fixture_query(f, "SELECT count(*) FROM spec"), 1);
	store_run_clear(&r);
}

int
main(void)
{
#define TEST(t) cmocka_unit_test_setup_teardown(t, setup, fixture_teardown)
	const struct CMUnitTest tests[] = {
	    TEST(test_an_artifact_is_found_by_its_run),
	    TEST(test_latest_is_the_newest_run_that_left_the_path),
	    TEST(test_nothing_is_found_by_another_tenant_identifier_or_path),
	    TEST(test_the_same_path_twice_in_a_run_undoes_the_whole_end),
	};

	return cmocka_run_group_tests_name("artifacts", tests, NULL, NULL);
}
