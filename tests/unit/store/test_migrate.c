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
		rc = migrate_run(db, files, NULL, &f->err);
	db_close(db);
	return rc;
}

static int64_t
version(const struct fixture *f)
{
	return fixture_query(f, "PRAGMA user_version");
}

TEST(the_real_migrations_run_and_run_once)
{
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

TEST(what_an_older_version_wrote_is_kept)
{
	const struct embed_file first[] = {embed_sql[0], END};

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
TEST(the_words_of_a_state_are_checked_in_old_databases_and_new)
{
	const struct embed_file first[] = {embed_sql[0], END};

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
		char *sql = xasprintf(
		    "INSERT INTO run VALUES (%u, "
		    "randomblob(16), 1, 1, 'a', 'n', '', "
		    "'t', '', '%s', '', '', '', 1, 1, 1, 1, "
		    "0, 0, 0, 0, 0, 0, 0, 3, 1, 1, NULL, '', "
		    "'', '', '', '', '', '', '', NULL, NULL, 0, NULL)",
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

/* embed_sql as it was up to a version. */
#define FILES_MAX 100

static int
run_until(struct fixture *f, int64_t last)
{
	struct embed_file files[FILES_MAX] = {{NULL, NULL, 0}};

	for (int64_t i = 0; i < last; i++)
		files[i] = embed_sql[i];
	return check_and_run(f, files);
}

#define RUN_BEFORE(id, state, reason, log)                                     \
	"INSERT INTO run VALUES (" id ", randomblob(16), 1, 1, 'a', 'n', 'c'," \
	" 'run_sandbox', '" state "', '" reason "', 'e', 'f', 10, 20, 30, 3,"  \
	" 1, 2, " log ", x'aa');"
#define COMMAND_BEFORE(run, idx, reason, code)                                 \
	"INSERT INTO command VALUES (" run ", " idx ", 'x', '', '/', '',"      \
	" 'failed', '" reason "', '', " code ", 0, 1, 0, 1, 1, 100, 7, 0);"

/* Four runs and all that refers to them, at version 13. */
static void
fill_version_13(const struct fixture *f)
{
	fixture_exec(f,
	    "INSERT INTO sandbox VALUES (1, randomblob(16), 1, 'a', 1, 'n', "
	    "'', 'i', 'removed', 'run', 1, 1, 1, 1, 1, 1, 1);" RUN_BEFORE(
		"3", "completed", "exit", "x'616263'") RUN_BEFORE("5", "failed",
		"exit",
		"NULL") RUN_BEFORE("6", "running", "", "NULL") RUN_BEFORE("9",
		"failed", "exit", "NULL") COMMAND_BEFORE("3", "0", "exit",
		"4") COMMAND_BEFORE("3", "1", "exit", "5") COMMAND_BEFORE("3",
		"2", "", "-1") COMMAND_BEFORE("5", "0", "",
		"-1") "INSERT INTO spec VALUES (6, x'01');"
		      "INSERT INTO artifact VALUES (3, 'x', 1, 'a', 5, 420, 1, "
		      "zeroblob(32)), (3, 'y', 1, 'a', 6, 420, 1, "
		      "zeroblob(32)), "
		      "(6, 'z', 1, 'a', 7, 420, 1, zeroblob(32));"
		      "INSERT INTO blob VALUES (1, zeroblob(32), 5, 3);"
		      "INSERT INTO kept VALUES (3, 1, 0, 0, 0, 0);"
		      "DELETE FROM run WHERE id = 9");
}

TEST(runs_are_kept_with_all_that_refers_to_them)
{
	assert_int_equal(run_until(f, 13), 0);
	fill_version_13(f);
	assert_int_equal(run_until(f, 14), 0);
	assert_int_equal(fixture_query(f,
			     "SELECT count(*) FROM run JOIN command"
			     " ON command.run = run.id"),
	    4);
	assert_int_equal(fixture_query(f,
			     "SELECT (SELECT count(*) FROM spec)"
			     " + (SELECT count(*) FROM artifact)"
			     " + (SELECT count(*) FROM kept)"),
	    5);
	/* The largest number was given out, and its run is gone. */
	assert_int_equal(
	    fixture_query(
		f, "SELECT seq FROM sqlite_sequence WHERE name = 'run'"),
	    9);
	fixture_exec(f, "PRAGMA foreign_keys = ON; DELETE FROM run");
	assert_int_equal(fixture_query(f,
			     "SELECT (SELECT count(*) FROM spec)"
			     " + (SELECT count(*) FROM artifact)"
			     " + (SELECT count(*) FROM command)"
			     " + (SELECT count(*) FROM kept)"),
	    0);
	assert_int_equal(fixture_query(f,
			     "SELECT count(*) FROM pragma_integrity_check"
			     " WHERE integrity_check = 'ok'"),
	    1);
}

TEST(runs_of_before_have_what_their_commands_and_files_say)
{
	assert_int_equal(run_until(f, 13), 0);
	fill_version_13(f);
	assert_int_equal(run_until(f, 14), 0);
	assert_int_equal(
	    fixture_query(f,
		"SELECT (exit_code, stdout_bytes, stderr_bytes, artifacts,"
		" artifact_bytes, sent_ms, cpu_us, log, digest, error,"
		" principal) = (5, 300, 21, 2, 11, 20, 0, x'616263', x'aa',"
		" 'e', '') FROM run WHERE id = 3"),
	    1);
	assert_int_equal(fixture_query(f,
			     "SELECT (exit_code, stdout_bytes, artifacts)"
			     " = (-1, 100, 0) AND rerun_of IS NULL"
			     " FROM run WHERE id = 5"),
	    1);
	/* What goes on has no files yet. */
	assert_int_equal(
	    fixture_query(f,
		"SELECT (exit_code, artifacts, artifact_bytes, started_ms)"
		" = (-1, 0, 0, 20) FROM run WHERE id = 6"),
	    1);
}

TEST(a_run_has_the_indices_of_before_when_it_is_made_anew)
{
	static const char sql[] =
	    "SELECT sum(length(name) + length(coalesce(sql, '')))"
	    " FROM sqlite_schema WHERE type = 'index' AND tbl_name = 'run'";
	int64_t before;

	assert_int_equal(run_until(f, 13), 0);
	before = fixture_query(f, sql);
	assert_int_equal(run_until(f, 14), 0);
	assert_int_equal(fixture_query(f, sql), before);
}

TEST(rows_of_before_are_counted_for_their_tenants)
{
	assert_int_equal(run_until(f, 13), 0);
	fill_version_13(f);
	assert_int_equal(run_until(f, 20), 0);
	/* 3: four letters, log and digest, 3 commands, 2 artifacts; 5. */
	assert_int_equal(fixture_query(f, "SELECT row_bytes FROM tenant"),
	    300 + 6 + 3 + 1 + 3 * 72 + 2 * 104 + 300 + 6 + 1 + 72);
	assert_int_equal(
	    fixture_query(f, "SELECT count(*) FROM run WHERE row_bytes > 0"),
	    0);
	/* As they are counted when they go: of the last it is the same. */
	assert_int_equal(check_and_run(f, embed_sql), 0);
	assert_int_equal(
	    fixture_query(f,
		"SELECT row_bytes = (SELECT sum(bytes) FROM run_size"
		" WHERE run <> 6) AND row_bytes > 500 FROM tenant"),
	    1);
}

#define INTEGRITY                                                              \
	"SELECT count(*) FROM pragma_integrity_check"                          \
	" WHERE integrity_check = 'ok'"
#define INDICES                                                                \
	"SELECT group_concat(name) = " INDEX_NAMES                             \
	" FROM (SELECT name FROM sqlite_schema WHERE type = 'index'"           \
	" AND tbl_name = 'run' ORDER BY name)"
#define INDEX_NAMES "'run_latest,run_of_tenant,run_sandbox,run_unfinished'"

TEST(a_run_loses_two_indices_and_nothing_else)
{
	assert_int_equal(run_until(f, 13), 0);
	fill_version_13(f);
	assert_int_equal(run_until(f, 20), 0);
	assert_int_equal(run_until(f, 21), 0);
	assert_int_equal(fixture_query(f, INTEGRITY), 1);
	assert_int_equal(fixture_query(f, INDICES), 1);
	assert_int_equal(fixture_query(f, "SELECT count(*) FROM run"), 3);
	/* Its id is its tenant's once. */
	fixture_exec(f,
	    "UPDATE OR IGNORE run SET uuid = (SELECT uuid FROM run"
	    " WHERE id = 3) WHERE id = 5");
	assert_int_equal(
	    fixture_query(f, "SELECT count(DISTINCT uuid) FROM run"), 3);
	/* As one that is new has it. */
	assert_int_equal(fixture_query(f,
			     "SELECT count(*) FROM sqlite_schema"
			     " WHERE name = 'run' AND sql LIKE"
			     " '%id INTEGER PRIMARY KEY,%'"
			     " AND sql LIKE '%uuid BLOB NOT NULL CHECK%'"),
	    1);
}

TEST(the_ends_of_the_audit_move_as_they_are)
{
	assert_int_equal(run_until(f, 21), 0);
	fixture_exec(f,
	    "UPDATE audit_ends SET head_seq = 9, base_seq = 4,"
	    " head_hash = CAST(printf('%032d', 1) AS BLOB),"
	    " base_hash = CAST(printf('%032d', 2) AS BLOB);"
	    "INSERT INTO tenant (id, name, created_ms) VALUES (2, 'b', 1);"
	    "INSERT INTO usage VALUES (2, 5, 1, 2, 3, 4, 5, 6)");
	assert_int_equal(run_until(f, 22), 0);
	assert_int_equal(
	    fixture_query(f,
		"SELECT (audit_head_seq, audit_base_seq,"
		" CAST(audit_head_hash AS TEXT), CAST(audit_base_hash AS TEXT))"
		" = (9, 4, printf('%032d', 1), printf('%032d', 2))"
		" FROM tenant WHERE audit_head_seq IS NOT NULL"),
	    1);
	assert_int_equal(fixture_query(f,
			     "SELECT (tenant, runs, run_ms, output_bytes,"
			     " artifact_bytes, sandboxes, refusals)"
			     " = ('b', 1, 2, 3, 4, 5, 6) FROM v_usage"),
	    1);
	assert_int_equal(fixture_query(f, INTEGRITY), 1);
}

TEST(no_number_of_a_run_is_given_out_twice)
{
	static const struct {
		const char *sql;
		int64_t next;
	} steps[] = {
	    /* The largest before is gone. */
	    {"SELECT 1", 10},
	    {"UPDATE run SET id = 15 WHERE id = 6", 16},
	    {"UPDATE run SET id = 12 WHERE id = 5", 16},
	    {"DELETE FROM run WHERE id = 3", 16},
	    {"DELETE FROM run WHERE id = 15", 16},
	    {"DELETE FROM run", 16},
	};

	assert_int_equal(run_until(f, 13), 0);
	fill_version_13(f);
	assert_int_equal(check_and_run(f, embed_sql), 0);
	fixture_exec(f,
	    "DELETE FROM spec; DELETE FROM command;"
	    "DELETE FROM artifact; DELETE FROM kept");
	for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
		fixture_exec(f, steps[i].sql);
		assert_int_equal(
		    fixture_query(f, db_sql[DB_NEXT_RUN]), steps[i].next);
	}
}

TEST(the_first_run_of_a_new_database_has_number_one)
{
	assert_int_equal(check_and_run(f, embed_sql), 0);
	assert_int_equal(fixture_query(f, db_sql[DB_NEXT_RUN]), 1);
}

/* A table that is made anew may leave a view of it behind that asks for what
 * is no more. */
TEST(every_view_can_be_read)
{
	sqlite3_stmt *views, *st;
	unsigned int n = 0;
	sqlite3 *h;

	assert_int_equal(check_and_run(f, embed_sql), 0);
	h = fixture_sqlite(f);
	assert_int_equal(sqlite3_prepare_v2(h,
			     "SELECT 'SELECT * FROM ' || name FROM"
			     " sqlite_schema WHERE type = 'view'",
			     -1, &views, NULL),
	    SQLITE_OK);
	for (; sqlite3_step(views) == SQLITE_ROW; n++) {
		const char *sql = (const char *)sqlite3_column_text(views, 0);

		if (sqlite3_prepare_v2(h, sql, -1, &st, NULL) != SQLITE_OK)
			fail_msg("%s: %s", sql, sqlite3_errmsg(h));
		assert_int_equal(sqlite3_finalize(st), SQLITE_OK);
	}
	assert_true(n >= 10);
	assert_int_equal(sqlite3_finalize(views), SQLITE_OK);
	assert_int_equal(sqlite3_close(h), SQLITE_OK);
}

static void
count_cb(void *arg)
{
	++*(unsigned int *)arg;
}

TEST(who_waits_is_told_that_it_goes_on)
{
	static const struct embed_file long_one[] = {FIRST,
	    FILE_OF("0002_long.sql",
		"CREATE TABLE c AS WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL"
		" SELECT x + 1 FROM n WHERE x < 6000000) SELECT max(x) FROM n"),
	    END};
	unsigned int told = 0;
	const struct store_progress p = {count_cb, &told};
	struct db *db = open_db(f);

	assert_int_equal(migrate_run(db, long_one, &p, &f->err), 0);
	assert_true(told > 0);
	db_close(db);
}

TEST(only_the_missing_ones_run)
{
	static const struct embed_file one[] = {FIRST, END};
	static const struct embed_file three[] = {FIRST,
	    FILE_OF("0002_second.sql", "INSERT INTO a VALUES (2)"),
	    FILE_OF("0003_third.sql", "INSERT INTO a VALUES (3)"), END};

	assert_int_equal(check_and_run(f, one), 0);
	assert_int_equal(version(f), 1);
	assert_int_equal(check_and_run(f, three), 0);
	assert_int_equal(version(f), 3);
	assert_int_equal(fixture_query(f, "SELECT count(*) FROM a"), 3);
}

TEST(one_that_fails_leaves_nothing_of_itself)
{
	static const struct embed_file files[] = {FIRST,
	    FILE_OF("0002_bad.sql",
		"CREATE TABLE c (x); INSERT INTO nowhere VALUES (1)"),
	    FILE_OF("0003_never.sql", "CREATE TABLE d (x)"), END};

	assert_int_equal(check_and_run(f, files), ERR_DB);
	assert_non_null(strstr(f->err.msg, "0002_bad.sql"));
	assert_non_null(strstr(f->err.msg, "nowhere"));
	assert_int_equal(version(f), 1);
	assert_int_equal(fixture_query(f,
			     "SELECT count(*) FROM sqlite_schema"
			     " WHERE name IN ('c', 'd')"),
	    0);
}

TEST(one_that_leaves_dangling_rows_is_undone)
{
	static const struct embed_file files[] = {
	    FIRST, FILE_OF("0002_orphans.sql", "DELETE FROM a"), END};

	assert_int_equal(check_and_run(f, files), ERR_DB);
	assert_non_null(strstr(f->err.msg, "rows of b"));
	assert_int_equal(version(f), 1);
	assert_int_equal(fixture_query(f, "SELECT count(*) FROM a"), 1);
}

TEST(foreign_keys_are_on_again_afterwards)
{
	struct db *db = open_db(f);

	assert_int_equal(migrate_run(db, embed_sql, NULL, &f->err), 0);
	assert_int_equal(
	    db_exec_text(
		db, "INSERT INTO spec (run, data) VALUES (1, x'00')", &f->err),
	    ERR_INVAL);
	db_close(db);
}

TEST(the_database_of_another_program_is_refused)
{
	fixture_exec(f, "CREATE TABLE bookmarks (url TEXT)");
	assert_int_equal(check_and_run(f, embed_sql), ERR_WRONG_STATE);
	assert_non_null(strstr(f->err.msg, "another program"));
	assert_int_equal(
	    fixture_query(f, "SELECT count(*) FROM sqlite_schema"), 1);
}

TEST(numbers_must_have_no_gap)
{
	static const struct embed_file files[] = {
	    FIRST, FILE_OF("0003_third.sql", ""), END};
	static const struct embed_file bare[] = {FILE_OF("0001.sql", ""), END};

	assert_int_equal(check_and_run(f, files), ERR_WRONG_STATE);
	assert_non_null(strstr(f->err.msg, "want number 0002"));
	assert_int_equal(check_and_run(f, bare), ERR_WRONG_STATE);
	assert_int_equal(version(f), 0);
}

TEST_MAIN(fixture_setup_closed, fixture_teardown)
