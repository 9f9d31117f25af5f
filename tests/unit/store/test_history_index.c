#include "tests/unit/store/history_fixture.h"

/* The index can be anything, or nothing: what it is made of is the database. */

#define RUNS 30

static char *
index_path(const struct fixture *f)
{
	return xasprintf("%s/history.db", f->dir);
}

static void
fill(struct fixture *f, uint64_t from)
{
	for (uint64_t i = from; i < from + RUNS; i++)
		(void)add_run_saying(
		    f, i, STORE_TENANT_DEFAULT, "echo", "something");
}

static void
open_and_fill(struct fixture *f)
{
	fixture_open(f);
	fixture_put_sandbox(f, 1, "a");
	fill(f, 1);
	assert_int_equal(count_q(f, "something"), RUNS);
}

static uint64_t
made_anew(struct fixture *f)
{
	struct history_state state;

	history_state(f->store, &state);
	return state.made_anew;
}

static void
write_at(const char *path, off_t at, const char *text, size_t times)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	assert_int_not_equal(fd, -1);
	for (size_t i = 0; i < times; i++) {
		ssize_t n = (ssize_t)strlen(text);

		assert_int_equal(pwrite(fd, text, (size_t)n, at), n);
		at += n;
	}
	assert_int_equal(close(fd), 0);
}

/* When the last two that had it open closed it at once, its WAL may be left,
 * and with it what the damage is to hit. */
static void
empty_wal(const char *path)
{
	sqlite3 *h;

	assert_int_equal(sqlite3_open(path, &h), SQLITE_OK);
	assert_int_equal(sqlite3_exec(h, "PRAGMA wal_checkpoint(TRUNCATE)",
			     NULL, NULL, NULL),
	    SQLITE_OK);
	assert_int_equal(sqlite3_close(h), SQLITE_OK);
}

TEST(garbage_is_made_anew)
{
	AUTO(auto_free) char *path = index_path(f);

	open_and_fill(f);
	fixture_close(f);
	empty_wal(path);
	write_at(path, 0, "garbage ", 1024);
	fixture_open(f);
	assert_int_equal(count_q(f, "something"), RUNS);
	assert_int_equal(made_anew(f), 1);
}

/* Its beginning is good: it is found when it is read. */
TEST(damage_in_the_middle_is_made_anew)
{
	AUTO(auto_free) char *path = index_path(f);
	struct answer *a = xcalloc(1, sizeof(*a));
	const struct history_query q = {
	    .filter = {.identifier = "a"}, .limit = 500};

	open_and_fill(f);
	fixture_close(f);
	empty_wal(path);
	write_at(path, 8192, "damage! ", 8192);
	fixture_open(f);
	/* Damage may be seen by whoever asks first. */
	ask(f, STORE_TENANT_DEFAULT, &q, a);
	assert_int_equal(count_q(f, "something"), RUNS);
	ask(f, STORE_TENANT_DEFAULT, &q, a);
	assert_int_equal(a->n, RUNS);
	assert_true(made_anew(f) >= 1);
	free(a);
}

TEST(another_versions_is_made_anew)
{
	AUTO(auto_free) char *path = index_path(f);
	sqlite3 *h;

	open_and_fill(f);
	fixture_close(f);
	assert_int_equal(sqlite3_open(path, &h), SQLITE_OK);
	assert_int_equal(
	    sqlite3_exec(h, "PRAGMA user_version = 999", NULL, NULL, NULL),
	    SQLITE_OK);
	assert_int_equal(sqlite3_close(h), SQLITE_OK);
	fixture_open(f);
	assert_int_equal(count_q(f, "something"), RUNS);
	assert_int_equal(made_anew(f), 1);
}

/* A backup of the database, and the index of what came after it. */
TEST(another_databases_is_made_anew)
{
	AUTO(auto_free)
	char *sql = xasprintf("VACUUM INTO '%s/backup'", f->dir);
	AUTO(auto_free) char *backup = xasprintf("%s/backup", f->dir);
	AUTO(auto_free) char *db = xasprintf("%s/mcp-sandboxd.db", f->dir);

	open_and_fill(f);
	fixture_exec(f, sql);
	fill(f, 1 + RUNS);
	assert_int_equal(count_q(f, "something"), 2 * RUNS);
	fixture_close(f);
	assert_int_equal(rename(backup, db), 0);
	fixture_open(f);
	assert_int_equal(count_q(f, "something"), RUNS);
	assert_int_equal(made_anew(f), 1);
	fill(f, 1 + RUNS);
	assert_int_equal(count_q(f, "something"), 2 * RUNS);
}

static void
assert_not_available(struct fixture *f)
{
	const struct history_query q = {.limit = 1};
	struct answer *a = xcalloc(1, sizeof(*a));

	ask_once(f, STORE_TENANT_DEFAULT, &q, a);
	assert_int_equal(a->rc, ERR_BACKEND);
	assert_non_null(strstr(a->msg, "history is not available"));
	assert_null(strstr(a->msg, f->dir));
	free(a);
}

/* What is no damage is waited for; runs are recorded meanwhile. */
TEST(an_index_that_cannot_be_opened_is_tried_again)
{
	AUTO(auto_free) char *path = index_path(f);

	assert_int_equal(mkdir(path, 0700), 0);
	fixture_open(f);
	fixture_put_sandbox(f, 1, "a");
	fill(f, 1);
	assert_not_available(f);
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(count_q(f, "something"), RUNS);
	assert_int_equal(made_anew(f), 0);
}

static int64_t
page_of(const char *path, const char *name)
{
	AUTO(auto_free)
	char *sql = xasprintf(
	    "SELECT rootpage FROM sqlite_schema WHERE name = '%s'", name);
	sqlite3_stmt *st;
	sqlite3 *h;
	int64_t page;

	assert_int_equal(sqlite3_open(path, &h), SQLITE_OK);
	assert_int_equal(sqlite3_prepare_v2(h, sql, -1, &st, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(st), SQLITE_ROW);
	page = sqlite3_column_int64(st, 0);
	assert_int_equal(sqlite3_finalize(st), SQLITE_OK);
	assert_int_equal(sqlite3_close(h), SQLITE_OK);
	return page;
}

/* That opening it does not find. */
TEST(damage_behind_another_failure_is_made_anew)
{
	AUTO(auto_free) char *path = index_path(f);
	AUTO(auto_free) char *aside = xasprintf("%s.aside", path);

	open_and_fill(f);
	fixture_close(f);
	empty_wal(path);
	write_at(path, (page_of(path, "run_unfinished") - 1) * 4096, "damage! ",
	    512);
	assert_int_equal(rename(path, aside), 0);
	assert_int_equal(mkdir(path, 0700), 0);
	fixture_open(f);
	assert_not_available(f);
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(rename(aside, path), 0);
	assert_int_equal(count_q(f, "something"), RUNS);
	assert_true(made_anew(f) >= 1);
}

TEST(an_index_that_is_locked_is_waited_for)
{
	AUTO(auto_free) char *path = index_path(f);
	sqlite3 *h;

	open_and_fill(f);
	assert_int_equal(sqlite3_open(path, &h), SQLITE_OK);
	assert_int_equal(sqlite3_busy_timeout(h, 60000), SQLITE_OK);
	assert_int_equal(
	    sqlite3_exec(h, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
	fill(f, 1 + RUNS);
	assert_not_available(f);
	assert_int_equal(
	    sqlite3_exec(h, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_close(h), SQLITE_OK);
	assert_int_equal(count_q(f, "something"), 2 * RUNS);
	assert_int_equal(made_anew(f), 0);
}

TEST_MAIN(fixture_setup_closed, fixture_teardown)
