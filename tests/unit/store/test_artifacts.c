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
	(void)fixture_setup_two(state);
	fixture_put_sandbox(*state, 2, "b");
	return 0;
}

TEST(an_artifact_is_found_by_its_run)
{
	struct uuid first = leave(f, 1, 1, "a", "x.txt", 1);
	struct uuid second = leave(f, 2, 1, "a", "x.txt", 2);
	struct got g = get(f, 1, "a", &first, "x.txt");

	assert_int_equal(g.rc, 0);
	assert_int_equal(g.digest, 1);
	assert_int_equal(g.size, 100);
	assert_string_equal(g.path, "x.txt");
	assert_int_equal(get(f, 1, "a", &second, "x.txt").digest, 2);
}

TEST(latest_is_the_newest_run_that_left_the_path)
{
	(void)leave(f, 1, 1, "a", "x.txt", 1);
	(void)leave(f, 2, 1, "a", "x.txt", 2);
	(void)leave(f, 3, 1, "a", "other", 3);
	(void)leave(f, 4, 1, "a", NULL, 0);
	(void)leave(f, 5, 2, "b", "x.txt", 5); /* not this identifier's */
	assert_int_equal(get(f, 1, "a", NULL, "x.txt").digest, 2);
}

TEST(nothing_is_found_by_another_tenant_identifier_or_path)
{
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
put(struct fixture *f, const struct store_run *run, const char *path,
    uint8_t digest, int want)
{
	struct store_run some = {.id = run->id, .tenant = run->tenant};
	struct result result = {0};

	fixture_run_artifact(&some, path, digest);
	(void)store_artifacts_put(f->store, &some, NULL, result_cb, &result);
	store_run_clear(&some);
	fixture_wait(f, &result.calls, 1);
	assert_int_equal(result.rc, want);
}

TEST(artifacts_of_a_run_that_goes_on_are_seen_when_it_has_ended)
{
	struct store_run r;

	fixture_run(&r, 1, 1, "a");
	fixture_insert(f, &r);
	put(f, &r, "x", 1, 0);
	assert_int_equal(get(f, 1, "a", &r.uuid, "x").rc, ERR_NOTFOUND);
	assert_int_equal(get(f, 1, "a", NULL, "x").rc, ERR_NOTFOUND);
	fixture_run_ended(&r, RUN_STATE_COMPLETED);
	r.artifacts_put = true;
	fixture_run_artifact(&r, "y", 2);
	fixture_end(f, &r);
	assert_int_equal(get(f, 1, "a", &r.uuid, "x").digest, 1);
	assert_int_equal(get(f, 1, "a", NULL, "y").digest, 2);
	assert_int_equal(fixture_query(f, "SELECT count(*) FROM kept"), 1);
	put(f, &r, "z", 3, ERR_WRONG_STATE);
	store_run_clear(&r);
	fixture_run(&r, 2, 1, "a"); /* has no row */
	put(f, &r, "z", 3, ERR_NOTFOUND);
	assert_int_equal(fixture_query(f, "SELECT count(*) FROM blob"), 2);
	store_run_clear(&r);
}

TEST(a_run_whose_files_were_all_put_before_has_files_that_are_kept)
{
	struct store_run r;

	fixture_run(&r, 1, 1, "a");
	fixture_insert(f, &r);
	put(f, &r, "x", 1, 0);
	fixture_run_ended(&r, RUN_STATE_COMPLETED);
	r.artifacts_put = true;
	fixture_end(f, &r);
	assert_int_equal(fixture_query(f, "SELECT count(*) FROM kept"), 1);
	store_run_clear(&r);
}

TEST(the_same_path_again_takes_the_place_of_what_was_there)
{
	struct store_run r;

	fixture_run(&r, 1, 1, "a");
	fixture_insert(f, &r);
	put(f, &r, "x", 1, 0);
	put(f, &r, "y", 1, 0);
	put(f, &r, "x", 2, 0);
	put(f, &r, "x", 2, 0);
	fixture_run_ended(&r, RUN_STATE_COMPLETED);
	r.artifacts_put = true;
	fixture_run_artifact(&r, "y", 3);
	fixture_end(f, &r);
	assert_int_equal(get(f, 1, "a", &r.uuid, "x").digest, 2);
	assert_int_equal(get(f, 1, "a", &r.uuid, "y").digest, 3);
	assert_int_equal(fixture_query(f, "SELECT count(*) FROM artifact"), 2);
	assert_int_equal(
	    fixture_query(f, "SELECT sum(refs) FROM blob WHERE refs > 0"), 2);
	assert_int_equal(
	    fixture_query(f, "SELECT count(*) FROM blob WHERE refs = 0"), 1);
	store_run_clear(&r);
}

struct page {
	unsigned int calls;
	uint32_t n, total;
	char first[1100];
};

static void
page_cb(int rc, const struct store_run *row, const struct err *why, void *arg)
{
	struct page *p = arg;

	assert_int_equal(rc, 0);
	assert_null(why);
	p->calls++;
	p->n = row->nartifacts;
	p->total = row->artifacts_total;
	p->first[0] = '\0';
	if (p->n > 0)
		(void)snprintf(
		    p->first, sizeof(p->first), "%s", row->artifacts[0].path);
}

static struct page
page_of(struct fixture *f, const struct store_run *r, uint32_t from)
{
	struct page p = {0};

	(void)store_run_get(
	    f->store, (struct tenant_id){1}, &r->uuid, from, page_cb, &p);
	fixture_wait(f, &p.calls, 1);
	return p;
}

TEST(a_list_is_read_in_pages)
{
	const uint32_t n = 2 * STORE_ARTIFACTS_PAGE;
	struct store_run r;
	char path[1025];

	fixture_run(&r, 1, 1, "a");
	fixture_insert(f, &r);
	fixture_run_ended(&r, RUN_STATE_COMPLETED);
	for (uint32_t i = 0; i < n; i++) {
		(void)snprintf(path, sizeof(path), "%04u", i);
		fixture_run_artifact(&r, path, 1);
	}
	for (int i = 0; i < 200; i++) {
		(void)snprintf(path, sizeof(path), "z%01000d", i);
		fixture_run_artifact(&r, path, 1);
	}
	fixture_end(f, &r);
	assert_int_equal(page_of(f, &r, 0).n, STORE_ARTIFACTS_PAGE);
	assert_int_equal(page_of(f, &r, 0).total, n + 200);
	assert_string_equal(page_of(f, &r, 1001).first, "1001");
	/* So many of long names. */
	assert_in_range(page_of(f, &r, n).n, 100, 199);
	assert_int_equal(page_of(f, &r, n + 199).n, 1);
	assert_int_equal(page_of(f, &r, n + 199).total, n + 200);
	assert_int_equal(page_of(f, &r, n + 200).n, 0);
	assert_int_equal(page_of(f, &r, 999999).total, n + 200);
	store_run_clear(&r);
}

TEST_MAIN(setup, fixture_teardown)
