#include "tests/unit/store/fixture.h"

#define MAX 3
#define HOUR INT64_C(3600000)

static struct principal ann = {.refs = 1, .tenant = {1}, .subject = "ann"};
static struct principal bob = {.refs = 1, .tenant = {1}, .subject = "bob"};
static struct principal other = {.refs = 1, .tenant = {2}, .subject = "ann"};

static struct store_task
task(const struct principal *who, uint8_t id, int64_t created_ms)
{
	static char empty[] = "{}", tool[] = "run_sandbox";

	return (struct store_task){.uuid.b = {id},
	    .tenant = who->tenant.n,
	    .subject = (char *)(uintptr_t)who->subject,
	    .run.b = {id, 7},
	    .tool = tool,
	    .wish = empty,
	    .created_ms = created_ms,
	    .expires_ms = created_ms + HOUR};
}

static struct result
put(struct fixture *f, const struct store_task *row)
{
	struct result r = {0};

	store_task_put(f->store, row, MAX, result_cb, &r);
	fixture_wait(f, &r.calls, 1);
	return r;
}

struct seen {
	unsigned int calls;
	int rc;
	size_t n;
	bool has_more;
	struct store_task rows[8];
};

static void
row_cb(int rc, const struct store_task *row, const struct err *why, void *arg)
{
	struct seen *s = arg;

	assert_true((rc == 0) == (why == NULL));
	s->calls++;
	s->rc = rc;
	if (rc == 0)
		store_task_copy(&s->rows[0], row);
}

static void
page_cb(int rc, const struct store_task_page *page, const struct err *why,
    void *arg)
{
	struct seen *s = arg;

	assert_int_equal(rc, 0);
	assert_null(why);
	s->calls++;
	s->n = page->n;
	s->has_more = page->has_more;
	for (size_t i = 0; i < page->n; i++)
		store_task_copy(&s->rows[i], &page->rows[i]);
}

static void
seen_clear(struct seen *s)
{
	for (size_t i = 0; i < ARRAY_LEN(s->rows); i++)
		store_task_clear(&s->rows[i]);
}

static int
get(struct fixture *f, const struct principal *who, uint8_t id, int64_t now_ms,
    struct seen *s)
{
	const struct uuid uuid = {.b = {id}};

	*s = (struct seen){0};
	store_task_get(f->store, who, &uuid, now_ms, row_cb, s);
	fixture_wait(f, &s->calls, 1);
	return s->rc;
}

static int
is_there(
    struct fixture *f, const struct principal *who, uint8_t id, int64_t now_ms)
{
	struct seen s;
	int rc = get(f, who, id, now_ms, &s);

	seen_clear(&s);
	return rc;
}

static struct seen
list(struct fixture *f, const struct principal *who,
    const struct store_task_place *after, size_t limit)
{
	struct seen s = {0};

	store_task_list(f->store, who, after, 2000, limit, page_cb, &s);
	fixture_wait(f, &s.calls, 1);
	return s;
}

static void
add_tenant(struct fixture *f)
{
	fixture_exec(
	    f, "INSERT INTO tenant (id, name, created_ms) VALUES (2, 't2', 0)");
}

TEST(a_task_is_its_principals_alone)
{
	const struct store_task row = task(&ann, 1, 1000);
	struct seen s;

	assert_int_equal(put(f, &row).rc, 0);
	assert_int_equal(get(f, &ann, 1, 2000, &s), 0);
	assert_string_equal(s.rows[0].tool, "run_sandbox");
	assert_string_equal(s.rows[0].wish, "{}");
	assert_string_equal(s.rows[0].run_state, ""); /* there is no such run */
	assert_memory_equal(s.rows[0].run.b, row.run.b, 16);
	assert_int_equal(s.rows[0].expires_ms, 1000 + HOUR);
	seen_clear(&s);
	assert_int_equal(is_there(f, &bob, 1, 2000), ERR_NOTFOUND);
	assert_int_equal(is_there(f, &other, 1, 2000), ERR_NOTFOUND);
	assert_int_equal(is_there(f, &ann, 2, 2000), ERR_NOTFOUND);
}

TEST(a_task_survives_a_restart)
{
	const struct store_task row = task(&ann, 1, 1000);

	assert_int_equal(put(f, &row).rc, 0);
	fixture_reopen(f);
	assert_int_equal(is_there(f, &ann, 1, 2000), 0);
}

TEST(a_task_says_how_its_run_stands)
{
	struct store_task row = task(&ann, 1, 1000);
	struct store_run run;
	struct seen s;

	fixture_put_sandbox(f, 1, "a");
	fixture_insert_first(f, &run);
	row.run = run.uuid;
	store_run_clear(&run);
	assert_int_equal(put(f, &row).rc, 0);
	assert_int_equal(get(f, &ann, 1, 2000, &s), 0);
	assert_string_equal(s.rows[0].run_state, "queued");
	assert_int_equal(s.rows[0].run_reason, 0);
	seen_clear(&s);
}

TEST(an_expired_task_is_not_found_and_then_goes)
{
	const struct store_task row = task(&ann, 1, 1000);
	const struct store_task later = task(&ann, 2, 5000);

	assert_int_equal(put(f, &row).rc, 0);
	assert_int_equal(put(f, &later).rc, 0);
	assert_int_equal(is_there(f, &ann, 1, 1000 + HOUR - 1), 0);
	assert_int_equal(is_there(f, &ann, 1, 1000 + HOUR), ERR_NOTFOUND);
	store_tasks_expire(f->store, 1000 + HOUR);
	fixture_put_sandbox(f, 1, "a"); /* behind it */
	assert_int_equal(fixture_query(f, "SELECT count(*) FROM task"), 1);
	assert_int_equal(is_there(f, &ann, 2, 1000 + HOUR), 0);
}

TEST(more_than_a_step_of_expired_tasks_go)
{
	fixture_exec(f,
	    "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n"
	    " WHERE i < 1700) INSERT INTO task SELECT randomblob(16), 1, 'ann',"
	    " randomblob(16), 'x', '{}', 1, 2, 0 FROM n");
	store_tasks_expire(f->store, 2);
	for (int i = 0; i < 5; i++)
		fixture_put_sandbox(f, 1, "a");
	assert_int_equal(fixture_query(f, "SELECT count(*) FROM task"), 0);
}

TEST(a_principal_has_so_many_that_are_not_over)
{
	struct result r = {0};
	struct store_task row;

	for (uint8_t i = 0; i < MAX; i++) {
		row = task(&ann, i, 1000);
		assert_int_equal(put(f, &row).rc, 0);
	}
	row = task(&ann, 9, 1000);
	r = put(f, &row);
	assert_int_equal(r.rc, ERR_LIMIT);
	assert_non_null(strstr(r.msg, "3 tasks of yours are kept"));
	store_task_check(f->store, &ann, 1000, MAX, result_cb, &r);
	fixture_wait(f, &r.calls, 2);
	assert_int_equal(r.rc, ERR_LIMIT);
	store_task_check(f->store, &bob, 1000, MAX, result_cb, &r);
	fixture_wait(f, &r.calls, 3);
	assert_int_equal(r.rc, 0);
	row = task(&bob, 9, 1000);
	assert_int_equal(put(f, &row).rc, 0);
	row = task(&ann, 10, 1000 + HOUR); /* those before are over */
	assert_int_equal(put(f, &row).rc, 0);
}

TEST(a_cancel_is_noted_once)
{
	const struct store_task row = task(&ann, 1, 1000);
	struct result r = {0};
	struct seen s;

	assert_int_equal(put(f, &row).rc, 0);
	store_task_cancel(f->store, &row, 1500, result_cb, &r);
	store_task_cancel(f->store, &row, 1700, result_cb, &r);
	fixture_wait(f, &r.calls, 2);
	assert_int_equal(r.rc, 0);
	assert_int_equal(get(f, &ann, 1, 2000, &s), 0);
	assert_int_equal(s.rows[0].cancelled_ms, 1500);
	seen_clear(&s);
}

TEST(pages_are_newest_first_and_lose_none)
{
	struct store_task_place place;
	struct store_task rows[MAX];
	struct seen s;

	rows[0] = task(&ann, 1, 1000);
	rows[1] = task(&ann, 2, 1000); /* in the same millisecond */
	rows[2] = task(&ann, 3, 900);
	for (size_t i = 0; i < MAX; i++)
		assert_int_equal(put(f, &rows[i]).rc, 0);
	rows[0] = task(&bob, 4, 1000);
	assert_int_equal(put(f, &rows[0]).rc, 0);
	s = list(f, &ann, NULL, 1);
	assert_int_equal(s.n, 1);
	assert_true(s.has_more);
	assert_int_equal(s.rows[0].uuid.b[0], 2);
	place = (struct store_task_place){s.rows[0].created_ms, s.rows[0].uuid};
	seen_clear(&s);
	s = list(f, &ann, &place, 2);
	assert_int_equal(s.n, 2);
	assert_false(s.has_more);
	assert_int_equal(s.rows[0].uuid.b[0], 1);
	assert_int_equal(s.rows[1].uuid.b[0], 3);
	seen_clear(&s);
}

TEST(a_tenants_tasks_go_with_it)
{
	struct store_task row = task(&other, 1, 1000);
	struct result r = {0};

	assert_int_not_equal(put(f, &row).rc, 0); /* no such tenant */
	add_tenant(f);
	assert_int_equal(put(f, &row).rc, 0);
	store_tenant_erase(f->store, (struct tenant_id){2}, 1, result_cb, &r);
	fixture_wait(f, &r.calls, 1);
	assert_int_equal(r.rc, 0);
	assert_int_equal(fixture_query(f, "SELECT count(*) FROM task"), 0);
	assert_int_not_equal(put(f, &row).rc, 0);
}

TEST(those_of_unfinished_runs_are_read_at_a_start)
{
	struct store_task row = task(&ann, 1, 1000), lost = task(&ann, 2, 1000);
	struct store_task_page all;
	struct store_run run;

	fixture_put_sandbox(f, 1, "a");
	fixture_insert_first(f, &run);
	row.run = run.uuid;
	store_run_clear(&run);
	assert_int_equal(put(f, &row).rc, 0);
	assert_int_equal(put(f, &lost).rc, 0);
	assert_int_equal(store_tasks_read(f->store, &all, &f->err), 0);
	assert_int_equal(all.n, 1);
	assert_int_equal(all.rows[0].uuid.b[0], 1);
	store_task_page_clear(&all);
}

TEST_MAIN(fixture_setup, fixture_teardown)
