#include "tests/unit/store/fixture.h"

#include <sys/syscall.h>

#include "common/embed.h"
#include "supervisor/store/db.h"
#include "supervisor/store/history_sql.h"
#include "supervisor/store/history_words.h"
#include "supervisor/store/migrate.h"

static void
assert_prepares(sqlite3 *h, int q)
{
	sqlite3_stmt *st;

	if (db_sql[q] == NULL)
		fail_msg("query %d has no text", q);
	if (sqlite3_prepare_v2(h, db_sql[q], -1, &st, NULL) != SQLITE_OK)
		fail_msg("%s: %s", db_sql[q], sqlite3_errmsg(h));
	assert_int_equal(sqlite3_finalize(st), SQLITE_OK);
}

TEST(every_statement_can_be_prepared)
{
	sqlite3 *h = fixture_sqlite(f);

	for (int q = 0; q < DB_INDEX_STATE; q++)
		assert_prepares(h, q);
	assert_int_equal(sqlite3_close(h), SQLITE_OK);
}

/* An index of runs, empty. */
static sqlite3 *
history_sqlite(void)
{
	sqlite3 *h;

	assert_int_equal(sqlite3_open(":memory:", &h), SQLITE_OK);
	assert_int_equal(history_words_install(h), SQLITE_OK);
	assert_int_equal(
	    sqlite3_exec(h, HISTORY_SCHEMA, NULL, NULL, NULL), SQLITE_OK);
	return h;
}

TEST(every_statement_of_the_history_can_be_prepared)
{
	sqlite3 *h = history_sqlite();

	for (int q = DB_INDEX_STATE; q < DB_NQUERY; q++)
		assert_prepares(h, q);
	assert_int_equal(sqlite3_close(h), SQLITE_OK);
}

/* The plan of a statement, as one text. */
static char *
plan_in(sqlite3 *h, const char *sql)
{
	AUTO(auto_free) char *explain = xasprintf("EXPLAIN QUERY PLAN %s", sql);
	char *plan = xstrdup("");
	sqlite3_stmt *st;

	assert_int_equal(
	    sqlite3_prepare_v2(h, explain, -1, &st, NULL), SQLITE_OK);
	while (sqlite3_step(st) == SQLITE_ROW) {
		char *longer = xasprintf(
		    "%s%s\n", plan, (const char *)sqlite3_column_text(st, 3));

		free(plan);
		plan = longer;
	}
	assert_int_equal(sqlite3_finalize(st), SQLITE_OK);
	return plan;
}

static char *
plan_of(const struct fixture *f, const char *sql)
{
	sqlite3 *h = fixture_sqlite(f);
	char *plan = plan_in(h, sql);

	assert_int_equal(sqlite3_close(h), SQLITE_OK);
	return plan;
}

/* By which index a way goes, and how far it narrows the search. */
static const char *const ways[HISTORY_NWAY] = {
    [WAY_TENANT] = "INDEX run_tenant (tenant=? AND place>? AND "
		   "place<?)",
    [WAY_LASTING] = "INDEX run_tenant (tenant=? AND place>? AND "
		    "place<?)",
    [WAY_IDENTIFIER] = "INDEX run_identifier (tenant=? AND "
		       "identifier=? AND rowid>? AND rowid<?)",
    [WAY_SANDBOX] = "INDEX run_sandbox (tenant=? AND "
		    "sandbox_name=? AND rowid>? AND rowid<?)",
    [WAY_PRINCIPAL] = "INDEX run_principal (tenant=? AND "
		      "principal=? AND rowid>? AND rowid<?)",
    [WAY_TOOL] = "INDEX run_tool (tenant=? AND tool=? AND "
		 "rowid>? AND rowid<?)",
    [WAY_LANGUAGE] = "INDEX run_language (tenant=? AND "
		     "language=? AND rowid>? AND rowid<?)",
    [WAY_STATE] = "INDEX run_state (tenant=? AND state=? AND "
		  "rowid>? AND rowid<?)",
    [WAY_REASON] = "INDEX run_reason (tenant=? AND end_reason=? "
		   "AND rowid>? AND rowid<?)",
    [WAY_EXIT] = "INDEX run_exit (tenant=? AND exit_code=? AND "
		 "rowid>? AND rowid<?)",
    [WAY_NAME] = "INDEX artifact_name (tenant=? AND name=? AND "
		 "place>? AND place<?)",
    [WAY_PATH] = "INDEX artifact_path (tenant=? AND path=? AND "
		 "place>? AND place<?)",
    [WAY_DIGEST] = "INDEX artifact_digest (tenant=? AND sha256=? "
		   "AND place>? AND place<?)",
    [WAY_TEXT] = "SCAN word VIRTUAL TABLE INDEX",
    [WAY_DURATION_IS] = "INDEX run_duration (tenant=? AND "
			"duration_ms=? AND rowid>? AND rowid<?)",
    [WAY_BYTES_IS] = "INDEX run_bytes (tenant=? AND bytes=? AND "
		     "rowid>? AND rowid<?)",
    [WAY_DURATION] = "INDEX run_duration (tenant=? AND "
		     "duration_ms>? AND duration_ms<?)",
    [WAY_BYTES] = "INDEX run_bytes (tenant=? AND bytes>? AND "
		  "bytes<?)"};

/* A way stops when its page is full: it is in order already. */
static void
assert_way(sqlite3 *h, int q, enum history_way way)
{
	AUTO(auto_free) char *plan = plan_in(h, db_sql[q + (int)way]);

	if (strstr(plan, ways[way]) == NULL ||
	    strstr(plan, "ORDER BY") != NULL ||
	    strstr(plan, "SCAN r") != NULL || strstr(plan, "SCAN a") != NULL ||
	    strstr(plan, "SCAN x") != NULL)
		fail_msg("%s\n%s", db_sql[q + (int)way], plan);
}

TEST(every_question_goes_by_an_index)
{
	sqlite3 *h = history_sqlite();

	for (int way = 0; way < HISTORY_NWAY; way++) {
		assert_way(h, DB_HISTORY_DOWN, (enum history_way)way);
		assert_way(h, DB_HISTORY_UP, (enum history_way)way);
		assert_way(h, DB_HISTORY_COUNT, (enum history_way)way);
		assert_way(h, DB_HISTORY_KEYS, (enum history_way)way);
		assert_way(h, DB_HISTORY_STATS, (enum history_way)way);
	}
	assert_int_equal(sqlite3_close(h), SQLITE_OK);
}

static void
assert_plan(const struct fixture *f, const char *sql, const char *want)
{
	char *plan = plan_of(f, sql);

	if (strstr(plan, want) == NULL)
		fail_msg("%s\nwant %s in:\n%s", sql, want, plan);
	/* A scan is fine only along an index that is made for it. */
	if (strstr(plan, "TEMP B-TREE") != NULL ||
	    (strstr(plan, "SCAN") != NULL && strncmp(want, "SCAN", 4) != 0))
		fail_msg("%s\nscans or sorts:\n%s", sql, plan);
	free(plan);
}

TEST(every_query_goes_by_an_index)
{
	static const struct {
		enum db_query q;
		const char *want;
	} plans[] = {
	    {DB_RUN_GET, "run_of_tenant (uuid=? AND tenant=?)"},
	    {DB_RUN_UNFINISHED, "SCAN run USING INDEX run_unfinished"},
	    {DB_SANDBOX_LIVE, "SCAN sandbox USING INDEX sandbox_live"},
	    {DB_ARTIFACT_GET, "run_of_tenant (uuid=? AND tenant=?)"},
	    {DB_ARTIFACT_LATEST,
		"artifact_latest (tenant=? AND identifier=? AND path=?)"},
	    {DB_LOG_WANTED, "(uuid=?)"},
	    {DB_BLOB_WANTED, "(tenant=? AND sha256=?)"},
	    {DB_TRIM_RUNS, "run_latest (tenant=?)"},
	    {DB_EVICT_OLDEST, "kept_here (tenant=?)"},
	    {DB_FORGET_FIND, "run_of_tenant (uuid=? AND tenant=?)"},
	    {DB_FORGET_BLOBS, "blob_unused (tenant=?)"},
	    {DB_TRIM_SANDBOXES, "sandbox_dead (tenant=? AND ended_ms<?)"},
	    {DB_FORGET_RUN, "(rowid=?)"},
	};

	for (size_t i = 0; i < ARRAY_LEN(plans); i++)
		assert_plan(f, db_sql[plans[i].q], plans[i].want);
}

TEST(foreign_keys_hold)
{
	struct db_call c;
	struct db *db;

	assert_int_equal(db_open(f->dir, DB_WRITER, &db, &f->err), 0);
	db_call_init(&c, db, DB_SPEC_INSERT);
	db_put_uint(&c, 1);
	db_put_blob(&c, "x", 1);
	assert_int_equal(db_call_run(&c, &f->err), ERR_INVAL);
	assert_false(db_is_doomed(db));
	db_close(db);
}

TEST(a_reader_cannot_write)
{
	struct db_call c;
	struct db *db;

	assert_int_equal(db_open(f->dir, DB_READER, &db, &f->err), 0);
	db_call_init(&c, db, DB_FORGET_COUNT);
	db_put_uint(&c, 1);
	db_put_uint(&c, 1);
	assert_int_equal(db_call_run(&c, &f->err), ERR_DB);
	db_close(db);
}

TEST(a_reader_makes_no_database)
{
	AUTO(auto_free) char *dir = xasprintf("%s/nothing", f->dir);
	AUTO(auto_free) char *path = xasprintf("%s/" DB_FILE, dir);
	struct db *db;

	assert_int_equal(mkdir(dir, 0700), 0);
	assert_int_equal(db_open(dir, DB_READER, &db, &f->err), ERR_DB);
	assert_int_equal(access(path, F_OK), -1);
}

TEST(a_damaged_database_says_so)
{
	AUTO(auto_free) char *path = xasprintf("%s/" DB_FILE, f->dir);
	uint8_t junk[4096];
	struct db *db;
	int fd;

	fd = open(path, O_WRONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	memset(junk, 0x5a, sizeof(junk));
	for (off_t at = sizeof(junk); at < 40 * 4096; at += 4096)
		assert_int_equal(pwrite(fd, junk, sizeof(junk), at), 4096);
	assert_int_equal(close(fd), 0);
	assert_int_equal(db_open(f->dir, DB_WRITER, &db, &f->err), ERR_DAMAGED);
	assert_non_null(strstr(f->err.msg, "is damaged"));
	assert_non_null(strstr(f->err.msg, f->dir));
}

static int
setup(void **state)
{
	(void)fixture_setup(state);
	fixture_close(*state);
	return 0;
}

TEST_MAIN(setup, fixture_teardown)
