#include "tests/unit/store/fixture.h"

#include "common/embed.h"
#include "supervisor/store/db.h"
#include "supervisor/store/migrate.h"

#define FILE_OF(name, text)                                                    \
	{                                                                      \
		name, text, sizeof(text) - 1                                   \
	}
#define FIRST                                                                  \
	FILE_OF("0001_first.sql",                                              \
	    "PRAGMA application_id = 1296257107;"                              \
	    "CREATE TABLE a (id INTEGER PRIMARY KEY);"                         \
	    "CREATE TABLE b (a INTEGER REFERENCES a (id));"                    \
	    "INSERT INTO a VALUES (1); INSERT INTO b VALUES (1);")
#define END                                                                    \
	{                                                                      \
		NULL, NULL, 0                                                  \
	}

static struct db *
open_db(struct fixture *f)
{
	struct db *db;

	assert_int_equal(db_open(f->dir, DB_WRITER, &db, &f->err), 0);
	assert_int_equal(db_use_wal(db, &f->err), 0);
	return db;
}

static int
check_and_run(struct fixture *f, const struct embed_file *files)
{
	struct db *db = open_db(f);
	int rc = migrate_check(db, files, &f->err);

	if (rc == 0)
		rc = migrate_run(db, files, &f->err);
	db_close(db);
	return rc;
}

static int64_t
version(const struct fixture *f)
{
	return fixture_query(f, "PRAGMA user_version");
}

static void
test_the_real_migrations_run_and_run_once(void **state)
{
	struct fixture *f = *state;
	int64_t count = 0;

	while (embed_sql[count].name != NULL)
		count++;
	assert_true(count > 0);
	assert_int_equal(check_and_run(f, embed_sql), 0);
	assert_int_equal(version(f), count);
	fixture_exec(f, "UPDATE tenant SET runs_failed = 5");
	assert_int_equal(check_and_run(f, embed_sql), 0);
	assert_int_equal(fixture_query(f, "SELECT runs_failed FROM tenant"), 5);
}

static void
test_what_an_older_version_wrote_is_kept(void **state)
{
	const struct embed_file first[] = {embed_sql[0], END};
	struct fixture *f = *state;

	assert_int_equal(check_and_run(f, first), 0);
	fixture_exec(f,
	    "INSERT INTO sandbox VALUES (1, randomblob(16), 1, 'a', 1, 'n', "
	    "'', 'i', 'removed', 'run', 1, 1, 1, 1, 1, 1, 1);"
	    "INSERT INTO run VALUES (7, randomblob(16), 1, 1, 'a', 'n', '', "
	    "'run_sandbox', 'completed', 'exit', '', '', 1, 1, 1, 3, 1, 1, "
	    "x'616263');"
	    "INSERT INTO run VALUES (8, randomblob(16), 1, 1, 'a', 'n', '', "
	    "'run_sandbox', 'completed', 'exit', '', '', 1, 1, 1, 20000, 1, "
	    "1, NULL);"
	    "INSERT INTO artifact VALUES (8, 'x', 1, 'a', 5, 420, 1, "
	    "zeroblob(32));"
	    "INSERT INTO blob VALUES (1, zeroblob(32), 5, 1)");
	assert_int_equal(check_and_run(f, embed_sql), 0);
	assert_int_equal(fixture_query(f,
			     "SELECT id FROM run WHERE log = x'616263' "
			     "AND digest IS NULL"),
	    7);
	assert_int_equal(fixture_query(f, "SELECT run FROM kept"), 8);
	assert_int_equal(
	    fixture_query(f,
		"SELECT (log_files, log_bytes, blob_files, blob_bytes)"
		" = (1, 20000, 1, 5) FROM tenant"),
	    1);
}

/* A CHECK is changed in the text of its table. */
static void
test_the_words_of_a_state_are_checked_in_old_databases_and_new(void **state)
{
	const struct embed_file first[] = {embed_sql[0], END};
	struct fixture *f = *state;

	assert_int_equal(check_and_run(f, first), 0);
	assert_int_equal(check_and_run(f, embed_sql), 0);
	assert_int_equal(fixture_query(f,
			     "SELECT count(*) FROM sqlite_schema"
			     " WHERE name = 'run'"
			     " AND sql LIKE '%state = ''completed'' OR%'"
			     " AND sql NOT LIKE '%state IN%'"),
	    1);
	fixture_exec(f,
	    "INSERT INTO sandbox VALUES (1, randomblob(16), 1, 'a', 1, 'n', "
	    "'', 'i', 'removed', 'run', 1, 1, 1, 1, 1, 1, 1)");
	for (unsigned int i = 0; i < RUN_STATE_COUNT; i++) {
		AUTO(auto_free)
		char *sql = xasprintf("INSERT INTO run VALUES (%u, "
				      "randomblob(16), 1, 1, 'a', 'n', '', "
				      "'t', '%s', '', '', '', 1, 1, 1, 3, 1, "
				      "1, NULL, NULL)",
		    i + 1, run_state_word((enum run_state)i));

		fixture_exec(f, sql);
	}
	fixture_exec(
	    f, "UPDATE OR IGNORE run SET state = 'complete' WHERE id = 1");
	assert_int_equal(fixture_query(f,
			     "SELECT count(*) FROM run"
			     " WHERE state = 'complete'"),
	    0);
	assert_int_equal(fixture_query(f,
			     "SELECT count(*) FROM pragma_integrity_check"
			     " WHERE integrity_check = 'ok'"),
	    1);
}

static void
test_only_the_missing_ones_run(void **state)
{
	static const struct embed_file one[] = {FIRST, END};
	static const struct embed_file three[] = {FIRST,
	    FILE_OF("0002_second.sql", "INSERT INTO a VALUES (2)"),
	    FILE_OF("0003_third.sql", "INSERT INTO a VALUES (3)"), END};
	struct fixture *f = *state;

	assert_int_equal(check_and_run(f, one), 0);
	assert_int_equal(version(f), 1);
	assert_int_equal(check_and_run(f, three), 0);
	assert_int_equal(version(f), 3);
	assert_int_equal(fixture_query(f, "SELECT count(*) FROM a"), 3);
}

static void
test_one_that_fails_leaves_nothing_of_itself(void **state)
{
	static const struct embed_file files[] = {FIRST,
	    FILE_OF("0002_bad.sql",
		"CREATE TABLE c (x); INSERT INTO nowhere VALUES (1)"),
	    FILE_OF("0003_never.sql", "CREATE TABLE d (x)"), END};
	struct fixture *f = *state;

	assert_int_equal(check_and_run(f, files), ERR_DB);
	assert_non_null(strstr(f->err.msg, "0002_bad.sql"));
	assert_non_null(strstr(f->err.msg, "nowhere"));
	assert_int_equal(version(f), 1);
	assert_int_equal(fixture_query(f,
			     "SELECT count(*) FROM sqlite_schema"
			     " WHERE name IN ('c', 'd')"),
	    0);
}

static void
test_one_that_leaves_dangling_rows_is_undone(void **state)
{
	static const struct embed_file files[] = {
	    FIRST, FILE_OF("0002_orphans.sql", "DELETE FROM a"), END};
	struct fixture *f = *state;

	assert_int_equal(check_and_run(f, files), ERR_DB);
	assert_non_null(strstr(f->err.msg, "rows of b"));
	assert_int_equal(version(f), 1);
	assert_int_equal(fixture_query(f, "SELECT count(*) FROM a"), 1);
}

static void
test_foreign_keys_are_on_again_afterwards(void **state)
{
	struct fixture *f = *state;
	struct db *db = open_db(f);

	assert_int_equal(migrate_run(db, embed_sql, &f->err), 0);
	assert_int_equal(
	    db_exec_text(
		db, "INSERT INTO spec (run, data) VALUES (1, x'00')", &f->err),
	    ERR_INVAL);
	db_close(db);
}

static void
test_the_database_of_another_program_is_refused(void **state)
{
	struct fixture *f = *state;

	fixture_exec(f, "CREATE TABLE bookmarks (url TEXT)");
	assert_int_equal(check_and_run(f, embed_sql), ERR_WRONG_STATE);
	assert_non_null(strstr(f->err.msg, "another program"));
	assert_int_equal(
	    fixture_query(f, "SELECT count(*) FROM sqlite_schema"), 1);
}

static void
test_numbers_must_have_no_gap(void **state)
{
	static const struct embed_file files[] = {
	    FIRST, FILE_OF("0003_third.sql", ""), END};
	static const struct embed_file bare[] = {FILE_OF("0001.sql", ""), END};
	struct fixture *f = *state;

	assert_int_equal(check_and_run(f, files), ERR_WRONG_STATE);
	assert_non_null(strstr(f->err.msg, "want number 0002"));
	assert_int_equal(check_and_run(f, bare), ERR_WRONG_STATE);
	assert_int_equal(version(f), 0);
}

int
main(void)
{
#define TEST(t)                                                                \
	cmocka_unit_test_setup_teardown(                                       \
	    t, fixture_setup_closed, fixture_teardown)
	const struct CMUnitTest tests[] = {
	    TEST(test_the_real_migrations_run_and_run_once),
	    TEST(test_what_an_older_version_wrote_is_kept),
	    TEST(
		test_the_words_of_a_state_are_checked_in_old_databases_and_new),
	    TEST(test_only_the_missing_ones_run),
	    TEST(test_one_that_fails_leaves_nothing_of_itself),
	    TEST(test_one_that_leaves_dangling_rows_is_undone),
	    TEST(test_foreign_keys_are_on_again_afterwards),
	    TEST(test_the_database_of_another_program_is_refused),
	    TEST(test_numbers_must_have_no_gap),
	};

	return cmocka_run_group_tests_name("migrate", tests, NULL, NULL);
}
