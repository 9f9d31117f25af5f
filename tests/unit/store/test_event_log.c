#include "tests/unit/store/fixture.h"

#include "common/js.h"
#include "supervisor/store/event_log.h"
#include "supervisor/store/event_put.h"
#include "supervisor/store/usage.h"

/*
 * Events are written with what they tell, numbered for each tenant without a
 * gap, kept up to a bound, and read in pages.
 */

struct told {
	unsigned int calls;
	uint64_t tenant; /* of the last */
};

static void
told_cb(uint64_t tenant, void *arg)
{
	struct told *t = arg;

	t->calls++;
	t->tenant = tenant;
}

struct read_page {
	unsigned int calls;
	struct store_events_page page; /* rows are copies */
};

static void
page_cb(int rc, const struct store_events_page *page, const struct err *why,
    void *arg)
{
	struct read_page *r = arg;

	(void)why;
	assert_int_equal(rc, 0);
	r->calls++;
	r->page = *page;
	r->page.rows = xcalloc(page->n + 1, sizeof(*page->rows));
	for (size_t i = 0; i < page->n; i++)
		store_event_copy(&r->page.rows[i], &page->rows[i]);
}

static struct store_events_page
read_events(struct fixture *f, uint64_t tenant, uint64_t after,
    const struct store_events_filter *filter, size_t limit)
{
	struct read_page r = {0};

	(void)store_events_read(
	    f->store, tenant, after, filter, limit, page_cb, &r);
	fixture_wait(f, &r.calls, 1);
	return r.page;
}

static void
page_clear(struct store_events_page *page)
{
	for (size_t i = 0; i < page->n; i++)
		store_event_clear(&page->rows[i]);
	free(page->rows);
}

/* Each field that schema/events.txt names is there, unless it may be missing,
 * and none else. */
static void
assert_fields(const struct store_event *row)
{
	const char *fields = event_kind_fields(row->kind);
	AUTO(auto_json) json_t *o = NULL;
	AUTO(auto_free) char *names = xstrdup(fields);
	const char *key;
	json_t *value;
	char *next = names, *name;

	assert_int_equal(js_parse(row->data[0] == '\0' ? "{}" : row->data,
			     row->data[0] == '\0' ? 2 : strlen(row->data),
			     STORE_EVENT_DATA_MAX, 4, &o, NULL),
	    0);
	json_object_foreach (o, key, value) {
		AUTO(auto_free) char *must = xasprintf(" %s ", key);
		AUTO(auto_free) char *may = xasprintf(" %s? ", key);

		if (strstr(fields, must) == NULL && strstr(fields, may) == NULL)
			fail_msg("%s has a field %s",
			    event_kind_word(row->kind), key);
		assert_true(json_is_string(value) || json_is_number(value) ||
		    json_is_boolean(value));
	}
	while ((name = strsep(&next, " ")) != NULL)
		if (name[0] != '\0' && name[strlen(name) - 1] != '?' &&
		    json_object_get(o, name) == NULL)
			fail_msg(
			    "%s has no %s", event_kind_word(row->kind), name);
}

/* The kinds that a tenant has, in order. */
static void
assert_kinds(
    struct fixture *f, uint64_t tenant, const enum event_kind *kinds, size_t n)
{
	struct store_events_page page =
	    read_events(f, tenant, 0, NULL, STORE_EVENTS_PAGE);

	for (size_t i = 0; i < page.n && i < n; i++) {
		assert_string_equal(event_kind_word(page.rows[i].kind),
		    event_kind_word(kinds[i]));
		assert_int_equal(page.rows[i].seq, i + 1);
		assert_int_equal(page.rows[i].tenant, tenant);
		assert_fields(&page.rows[i]);
	}
	assert_int_equal(page.n, n);
	page_clear(&page);
}

static void
put_sandbox_row(
    struct fixture *f, struct store_sandbox *s, enum sandbox_word state)
{
	struct result r = {0};

	s->state = state;
	fixture_set(&s->container_id, "c0ffee");
	store_sandbox_put(f->store, s, result_cb, &r);
	fixture_wait(f, &r.calls, 1);
	assert_int_equal(r.rc, 0);
}

TEST(a_sandbox_tells_each_change_once)
{
	static const enum event_kind kinds[] = {EVENT_SANDBOX_CREATED,
	    EVENT_SANDBOX_READY, EVENT_SANDBOX_REMOVING, EVENT_SANDBOX_REMOVED,
	    EVENT_SANDBOX_CREATED, EVENT_SANDBOX_FAILED, EVENT_SANDBOX_CREATED,
	    EVENT_SANDBOX_READY, EVENT_SANDBOX_LOST};
	struct store_sandbox s;

	fixture_sandbox(&s, 1, "a");
	put_sandbox_row(f, &s, SANDBOX_IS_CREATING);
	put_sandbox_row(f, &s, SANDBOX_IS_CREATING);
	put_sandbox_row(f, &s, SANDBOX_IS_READY);
	put_sandbox_row(f, &s, SANDBOX_IS_READY); /* used again */
	put_sandbox_row(f, &s, SANDBOX_IS_REMOVING);
	put_sandbox_row(f, &s, SANDBOX_IS_REMOVED);
	store_sandbox_clear(&s);
	fixture_sandbox(&s, 2, "a");
	put_sandbox_row(f, &s, SANDBOX_IS_CREATING);
	fixture_set(&s.reason, "failed");
	fixture_set(&s.why, "no such image");
	put_sandbox_row(f, &s, SANDBOX_IS_REMOVED);
	store_sandbox_clear(&s);
	fixture_sandbox(&s, 3, "a");
	put_sandbox_row(f, &s, SANDBOX_IS_READY); /* taken over */
	put_sandbox_row(f, &s, SANDBOX_IS_LOST);
	store_sandbox_clear(&s);
	assert_kinds(f, STORE_TENANT_DEFAULT, kinds, ARRAY_LEN(kinds));
	assert_int_equal(fixture_query(f,
			     "SELECT count(*) FROM event WHERE kind ="
			     " 'sandbox.failed' AND data ->> '$.error' ="
			     " 'no such image'"),
	    1);
}

static void
begin_run(struct fixture *f, struct store_run *run, enum store_when when,
    struct result *r)
{
	store_run_begin(f->store, run, NULL, when, result_cb, r);
	if (when == STORE_NOW) {
		fixture_wait(f, &r->calls, 1);
		assert_int_equal(r->rc, 0);
	}
}

static void
end_run(struct fixture *f, struct store_run *run)
{
	struct result r = {0};

	run->state = RUN_STATE_COMPLETED;
	run->end_reason = RUNLOG_EXIT;
	run->started_ms = run->created_ms + 1;
	run->ended_ms = run->created_ms + 2;
	store_run_end(f->store, run, NULL, result_cb, &r);
	fixture_wait(f, &r.calls, 1);
	assert_int_equal(r.rc, 0);
}

static void
make_run(struct fixture *f, struct store_run *run, uint64_t id)
{
	if (fixture_query(f, "SELECT count(*) FROM sandbox") == 0) {
		struct store_sandbox s;

		fixture_sandbox(&s, 1, "a");
		put_sandbox_row(f, &s, SANDBOX_IS_READY);
		store_sandbox_clear(&s);
	}
	fixture_run(run, id, 1, "a");
}

TEST(a_run_that_is_held_until_its_end_is_one_event)
{
	static const enum event_kind kinds[] = {
	    EVENT_SANDBOX_CREATED, EVENT_SANDBOX_READY, EVENT_RUN_ENDED};
	struct result r = {0};
	struct store_run run;

	make_run(f, &run, 1);
	begin_run(f, &run, STORE_SOON, &r);
	run.started_ms = run.created_ms + 1;
	store_run_started(f->store, &run, STORE_EVENT_ALWAYS);
	end_run(f, &run);
	assert_int_equal(r.calls, 1);
	assert_kinds(f, STORE_TENANT_DEFAULT, kinds, ARRAY_LEN(kinds));
	store_run_clear(&run);
}

TEST(a_longer_run_tells_its_begin_with_its_row)
{
	static const enum event_kind kinds[] = {EVENT_SANDBOX_CREATED,
	    EVENT_SANDBOX_READY, EVENT_RUN_CREATED, EVENT_RUN_STARTED,
	    EVENT_RUN_CREATED, EVENT_RUN_STARTED, EVENT_RUN_ENDED,
	    EVENT_RUN_ENDED};
	struct store_run held, other;
	struct result r = {0};

	make_run(f, &held, 1);
	begin_run(f, &held, STORE_SOON, &r);
	held.started_ms = held.created_ms + 1;
	store_run_started(f->store, &held, STORE_EVENT_ALWAYS);
	fixture_wait(f, &r.calls, 1); /* it is due by itself */
	r.calls = 0;
	make_run(f, &other, 2);
	begin_run(f, &other, STORE_NOW, &r);
	other.started_ms = other.created_ms + 1;
	store_run_started(f->store, &other, STORE_EVENT_ALWAYS);
	end_run(f, &other);
	end_run(f, &held);
	assert_kinds(f, STORE_TENANT_DEFAULT, kinds, ARRAY_LEN(kinds));
	store_run_clear(&held);
	store_run_clear(&other);
}

TEST(what_is_told_again_after_a_restart_is_there_once)
{
	static const enum event_kind kinds[] = {EVENT_SANDBOX_CREATED,
	    EVENT_SANDBOX_READY, EVENT_RUN_CREATED, EVENT_RUN_STARTED};
	struct result r = {0};
	struct store_run run;

	make_run(f, &run, 1);
	begin_run(f, &run, STORE_NOW, &r);
	run.started_ms = run.created_ms + 1;
	store_run_started(f->store, &run, STORE_EVENT_ALWAYS);
	fixture_reopen(f);
	store_run_started(f->store, &run, STORE_EVENT_ONCE);
	fixture_reopen(f);
	assert_kinds(f, STORE_TENANT_DEFAULT, kinds, ARRAY_LEN(kinds));
	store_run_clear(&run);
}

TEST(a_run_that_is_deleted_tells_it_once)
{
	static const enum event_kind kinds[] = {EVENT_SANDBOX_CREATED,
	    EVENT_SANDBOX_READY, EVENT_RUN_ENDED, EVENT_RUN_DELETED};
	const struct tenant_id tenant = {STORE_TENANT_DEFAULT};
	struct result r = {0};
	struct store_run run;

	make_run(f, &run, 1);
	begin_run(f, &run, STORE_SOON, &r);
	end_run(f, &run);
	for (unsigned int i = 1; i <= 2; i++) {
		r.calls = 0;
		store_run_delete(f->store, tenant, &run.uuid, result_cb, &r);
		fixture_wait(f, &r.calls, 1);
		assert_int_equal(r.rc, i == 1 ? 0 : ERR_NOTFOUND);
	}
	assert_kinds(f, STORE_TENANT_DEFAULT, kinds, ARRAY_LEN(kinds));
	store_run_clear(&run);
}

static void
note(struct fixture *f, uint64_t tenant, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		store_event_tell(f->store,
		    &(struct store_news){.tenant = tenant,
			.kind = EVENT_QUOTA_REFUSED,
			.quota = "streams",
			.times = i + 1});
}

/* What rides goes at the end, if not before. */
static void
flush(struct fixture *f)
{
	fixture_reopen(f);
}

TEST(each_tenant_has_its_own_numbers)
{
	static const enum event_kind two[] = {
	    EVENT_QUOTA_REFUSED, EVENT_QUOTA_REFUSED};
	static const enum event_kind one[] = {EVENT_ENGINE_DOWN};
	struct told told = {0};

	fixture_exec(f,
	    "INSERT INTO tenant (id, name, created_ms) VALUES (5, 'five', 1)");
	store_on_events(f->store, told_cb, &told);
	note(f, 5, 1);
	store_event_tell(f->store,
	    &(struct store_news){.kind = EVENT_ENGINE_DOWN,
		.has_worker = true,
		.worker = 1,
		.error = "gone"});
	note(f, 5, 1);
	fixture_wait(f, &told.calls, 3);
	assert_kinds(f, 5, two, 2);
	assert_kinds(f, STORE_EVENTS_OF_SERVER, one, 1);
	assert_kinds(f, 6, NULL, 0);
}

/* They are due together: one batch, which is begun anew for the one that has
 * another's number. */
TEST(who_fails_among_others_leaves_no_gap)
{
	static const uint64_t ids[] = {1, 2, 3, 3, 4};
	struct result r = {0};

	for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
		struct store_run run;

		make_run(f, &run, ids[i]);
		begin_run(f, &run, STORE_SOON, &r);
		store_run_clear(&run);
	}
	fixture_wait(f, &r.calls, ARRAY_LEN(ids));
	assert_int_equal(fixture_query(f,
			     "SELECT count(*) FROM event"
			     " WHERE kind = 'run.created'"),
	    4);
	assert_int_equal(
	    fixture_query(
		f, "SELECT count(*) = max(seq) FROM event WHERE tenant = 1"),
	    1);
}

TEST(of_a_tenant_that_is_gone_nothing_is_noted)
{
	fixture_exec(f,
	    "INSERT INTO tenant (id, name, created_ms, gone_ms)"
	    " VALUES (5, '.gone-5', 1, 2)");
	note(f, 5, 1);
	store_usage_add(f->store,
	    &(struct store_day){.tenant = 5, .day = 1, .refusals = 1});
	flush(f);
	assert_kinds(f, 5, NULL, 0);
	assert_int_equal(fixture_query(f, "SELECT count(*) FROM usage"), 0);
}

/* What was asked for once is asked for again behind what others wrote, and
 * behind the end of the tenant itself. */
TEST(numbers_go_on_behind_what_others_wrote)
{
	struct result r = {0};
	struct told told = {0};

	fixture_exec(f,
	    "INSERT INTO tenant (id, name, created_ms) VALUES (5, 'five', 1)");
	store_on_events(f->store, told_cb, &told);
	note(f, 5, 2);
	fixture_wait(f, &told.calls, 2);
	fixture_exec(f,
	    "INSERT INTO event (tenant, seq, at_ms, kind, identifier, data)"
	    " VALUES (5, 3, 1, 'quota.refused', '', '')");
	note(f, 5, 1);
	fixture_wait(f, &told.calls, 3);
	assert_int_equal(
	    fixture_query(f, "SELECT sum(seq) FROM event WHERE tenant = 5"),
	    1 + 2 + 3 + 4);
	fixture_exec(f, "DELETE FROM event WHERE tenant = 5 AND seq > 1");
	note(f, 5, 1);
	fixture_wait(f, &told.calls, 4);
	assert_int_equal(
	    fixture_query(f, "SELECT sum(seq) FROM event WHERE tenant = 5"),
	    1 + 2);
	store_tenant_erase(f->store, (struct tenant_id){5}, 7, result_cb, &r);
	note(f, 5, 1);
	fixture_wait(f, &r.calls, 1);
	assert_int_equal(r.rc, 0);
	flush(f);
	assert_kinds(f, 5, NULL, 0);
}

TEST(a_start_says_whether_the_end_before_was_one)
{
	store_event_began(f->store, "1");
	flush(f);
	store_event_began(f->store, "1");
	store_event_tell(
	    f->store, &(struct store_news){.kind = EVENT_SERVER_STOPPED});
	flush(f);
	store_event_began(f->store, "1");
	flush(f);
	assert_int_equal(fixture_query(f,
			     "SELECT sum((data ->> '$.clean') << seq) FROM"
			     " event WHERE kind = 'server.started'"),
	    (1 << 1) + (1 << 4));
}

TEST(the_oldest_go_and_the_newest_stays)
{
	struct store_events_page page;

	fixture_exec(f,
	    "INSERT INTO quota (tenant, key, value)"
	    " VALUES (1, 'events', 100)");
	for (int i = 0; i < 8; i++) {
		note(f, 1, 128);
		flush(f);
	}
	page = read_events(f, 1, 0, NULL, 10);
	assert_int_equal(page.newest, 1024);
	assert_int_equal(page.oldest, 1024 - 100 + 1);
	assert_int_equal(page.rows[0].seq, page.oldest);
	assert_true(page.has_more);
	page_clear(&page);
	fixture_exec(f, "DELETE FROM event WHERE tenant = 1 AND seq < 1024");
	note(f, 1, 1);
	flush(f);
	page = read_events(f, 1, 1024, NULL, 10);
	assert_int_equal(page.newest, 1025);
	page_clear(&page);
}

TEST(a_filter_passes_over_and_says_how_far_it_is)
{
	static const struct uuid none = {{1}};
	const struct store_events_filter filters[] = {
	    {.kinds = UINT64_C(1) << EVENT_RUN_ENDED},
	    {.identifier = "a"},
	    {.run = &none},
	};
	static const size_t want[] = {1, 3, 0};
	struct result r = {0};
	struct store_run run;

	make_run(f, &run, 1);
	begin_run(f, &run, STORE_SOON, &r);
	end_run(f, &run);
	note(f, 1, 3);
	flush(f);
	for (size_t i = 0; i < ARRAY_LEN(filters); i++) {
		struct store_events_page page =
		    read_events(f, 1, 0, &filters[i], 10);

		assert_int_equal(page.n, want[i]);
		assert_int_equal(page.scanned, 6);
		assert_false(page.has_more);
		page_clear(&page);
	}
	store_run_clear(&run);
}

TEST_MAIN(fixture_setup, fixture_teardown)
