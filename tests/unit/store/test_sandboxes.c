#include "tests/unit/store/fixture.h"

static void
put(struct fixture *f, struct store_sandbox *s, struct result *r)
{
	memset(r, 0, sizeof(*r));
	store_sandbox_put(f->store, s, result_cb, r);
	fixture_wait(f, &r->calls, 1);
}

TEST(a_sandbox_comes_back_as_it_was_put)
{
	struct store_snapshot snap;
	struct store_sandbox s;
	const struct store_sandbox *got;
	struct result r;

	fixture_sandbox(&s, 7, "conv-1");
	s.memory_bytes = UINT64_MAX;
	put(f, &s, &r);
	assert_int_equal(r.rc, 0);
	assert_int_equal(store_snapshot(f->store, NULL, &snap, &f->err), 0);
	assert_int_equal(snap.nsandboxes, 1);
	got = &snap.sandboxes[0];
	assert_int_equal(got->id, s.id);
	assert_memory_equal(&got->uuid, &s.uuid, sizeof(s.uuid));
	assert_int_equal(got->tenant, s.tenant);
	assert_string_equal(got->identifier, s.identifier);
	assert_int_equal(got->generation, s.generation);
	assert_string_equal(got->name, s.name);
	assert_string_equal(got->container_id, s.container_id);
	assert_string_equal(got->image, s.image);
	assert_int_equal(got->state, s.state);
	assert_string_equal(got->origin, s.origin);
	assert_true(got->memory_bytes == s.memory_bytes);
	assert_int_equal(got->nano_cpus, s.nano_cpus);
	assert_int_equal(got->pids, s.pids);
	assert_int_equal(got->ttl_s, s.ttl_s);
	assert_int_equal(got->created_ms, s.created_ms);
	assert_int_equal(got->expires_ms, s.expires_ms);
	assert_int_equal(got->ended_ms, s.ended_ms);
	store_snapshot_clear(&snap);
	store_sandbox_clear(&s);
}

TEST(putting_again_changes_the_row_and_keeps_its_runs)
{
	struct store_sandbox s;
	struct store_run run;
	struct result r;

	fixture_sandbox(&s, 1, "a");
	put(f, &s, &r);
	fixture_run(&run, 1, 1, "a");
	fixture_insert(f, &run);
	store_run_clear(&run);
	s.state = SANDBOX_IS_READY;
	fixture_set(&s.container_id, "c0ffee");
	s.expires_ms = 99;
	put(f, &s, &r);
	assert_int_equal(r.rc, 0);
	assert_int_equal(fixture_query(f,
			     "SELECT count(*) FROM sandbox WHERE id = 1 AND"
			     " state = 'ready' AND container_id = 'c0ffee'"
			     " AND expires_ms = 99"),
	    1);
	assert_int_equal(fixture_query(f, "SELECT count(*) FROM run"), 1);
	store_sandbox_clear(&s);
}

TEST(an_identifier_has_one_live_sandbox_in_a_tenant)
{
	struct store_sandbox s;
	struct result r;

	fixture_exec(f,
	    "INSERT INTO tenant (id, name, created_ms)"
	    " VALUES (2, 'other', 0)");
	fixture_put_sandbox(f, 1, "a");
	fixture_sandbox(&s, 2, "a");
	put(f, &s, &r);
	assert_int_equal(r.rc, ERR_CONFLICT);
	s.tenant = 2; /* another tenant's name is its own */
	put(f, &s, &r);
	assert_int_equal(r.rc, 0);
	store_sandbox_clear(&s);
}

TEST(a_sandbox_being_removed_frees_its_identifier)
{
	struct store_sandbox s;
	struct result r;

	fixture_sandbox(&s, 1, "a");
	put(f, &s, &r);
	s.state = SANDBOX_IS_REMOVING;
	put(f, &s, &r);
	assert_int_equal(r.rc, 0);
	fixture_put_sandbox(f, 2, "a");
	/* and ends while the other lives */
	s.state = SANDBOX_IS_REMOVED;
	put(f, &s, &r);
	assert_int_equal(r.rc, 0);
	store_sandbox_clear(&s);
}

TEST(a_state_that_is_none_is_refused)
{
	struct store_sandbox s;
	struct result r;

	fixture_sandbox(&s, 1, "a");
	s.state = SANDBOX_WORD_COUNT;
	put(f, &s, &r);
	assert_int_equal(r.rc, ERR_INVAL);
	assert_int_equal(fixture_query(f, "SELECT count(*) FROM sandbox"), 0);
	store_sandbox_clear(&s);
}

TEST(numbers_are_never_given_out_twice)
{
	struct store_snapshot snap;

	fixture_put_sandbox(f, 41, "a");
	fixture_exec(f, "DELETE FROM sandbox");
	fixture_reopen(f);
	assert_int_equal(store_snapshot(f->store, NULL, &snap, &f->err), 0);
	assert_int_equal(snap.next_sandbox, 42);
	store_snapshot_clear(&snap);
}

TEST_MAIN(fixture_setup, fixture_teardown)
