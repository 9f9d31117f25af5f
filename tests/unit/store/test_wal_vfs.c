#include "tests/unit/store/fixture.h"

#include <sys/syscall.h>

#include "supervisor/store/wal_vfs.h"

/* SQLite's writes end here. */
static struct {
	unsigned int writes;
	unsigned int fail_in; /* so many writes; 0: none fails */
	size_t largest;
} calls;

ssize_t
pwrite64(int fd, const void *p, size_t n, off_t at)
{
	calls.writes++;
	if (n > calls.largest)
		calls.largest = n;
	if (calls.fail_in > 0 && --calls.fail_in == 0) {
		errno = ENOSPC;
		return -1;
	}
	return (ssize_t)syscall(SYS_pwrite64, fd, p, n, at);
}

struct wal_test {
	char dir[64];
	char *path;
	sqlite3 *ours, *other;
};

static int
try(sqlite3 *h, const char *sql)
{
	return sqlite3_exec(h, sql, NULL, NULL, NULL);
}

static void
must(sqlite3 *h, const char *sql)
{
	if (try(h, sql) != SQLITE_OK)
		fail_msg("%s: %s", sql, sqlite3_errmsg(h));
}

static char *
text_of(sqlite3 *h, const char *sql)
{
	sqlite3_stmt *st;
	char *text;

	assert_int_equal(sqlite3_prepare_v2(h, sql, -1, &st, NULL), SQLITE_OK);
	if (sqlite3_step(st) != SQLITE_ROW)
		fail_msg("%s: %s", sql, sqlite3_errmsg(h));
	text = xstrdup((const char *)sqlite3_column_text(st, 0));
	assert_int_equal(sqlite3_finalize(st), SQLITE_OK);
	return text;
}

#define ALL                                                                    \
	"SELECT count(*) || ' ' || coalesce(sum(n), 0) || ' '"                 \
	" || coalesce(sum(length(x)), 0) FROM t"

static void
assert_whole(sqlite3 *h)
{
	AUTO(auto_free) char *text = text_of(h, "PRAGMA integrity_check");

	assert_string_equal(text, "ok");
}

static void
assert_same(sqlite3 *a, sqlite3 *b)
{
	AUTO(auto_free) char *in_a = text_of(a, ALL), *in_b = text_of(b, ALL);

	assert_string_equal(in_a, in_b);
}

static sqlite3 *
open_by(const char *path, const char *vfs)
{
	sqlite3 *h;

	assert_int_equal(sqlite3_open_v2(path, &h,
			     SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, vfs),
	    SQLITE_OK);
	return h;
}

static int
setup(void **state)
{
	struct wal_test *t = xcalloc(1, sizeof(*t));

	(void)snprintf(t->dir, sizeof(t->dir), "/tmp/wal-vfs-XXXXXX");
	assert_non_null(mkdtemp(t->dir));
	t->path = xasprintf("%s/a.db", t->dir);
	t->ours = open_by(t->path, wal_vfs_name());
	must(t->ours,
	    "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;"
	    "PRAGMA wal_autocheckpoint = 0;"
	    "CREATE TABLE t (n INTEGER PRIMARY KEY, x TEXT);");
	t->other = open_by(t->path, NULL);
	must(t->other, "PRAGMA wal_autocheckpoint = 0");
	calls.writes = 0;
	calls.fail_in = 0;
	calls.largest = 0;
	*state = t;
	return 0;
}

static int
teardown(void **state)
{
	struct wal_test *t = *state;
	DIR *list = opendir(t->dir);
	const struct dirent *entry;

	assert_int_equal(sqlite3_close(t->other), SQLITE_OK);
	assert_int_equal(sqlite3_close(t->ours), SQLITE_OK);
	while ((entry = readdir(list)) != NULL)
		(void)unlinkat(dirfd(list), entry->d_name, 0);
	assert_int_equal(closedir(list), 0);
	assert_int_equal(rmdir(t->dir), 0);
	free(t->path);
	free(t);
	return 0;
}

static void
test_a_commit_of_ten_pages_is_one_write(void **state)
{
	struct wal_test *t = *state;

	must(t->ours, "INSERT INTO t VALUES (1, hex(randomblob(17000)))");
	calls.writes = 0;
	calls.largest = 0;
	must(t->ours, "UPDATE t SET x = hex(randomblob(17000))");
	assert_int_equal(calls.writes, 1);
	assert_true(calls.largest > 32000);
	assert_same(t->ours, t->other);
}

/* What a killed process leaves: the files, as they are now. */
static void
copy_file(const struct wal_test *t, const char *end)
{
	AUTO(auto_free) char *from = xasprintf("%s%s", t->path, end);
	AUTO(auto_free) char *to = xasprintf("%s/copy.db%s", t->dir, end);
	AUTO(auto_close) int in = open(from, O_RDONLY | O_CLOEXEC);
	AUTO(auto_close)
	int out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	static uint8_t bytes[65536];
	struct err e;
	ssize_t n;

	assert_true(in >= 0 && out >= 0);
	while ((n = read(in, bytes, sizeof(bytes))) > 0)
		assert_int_equal(fd_write_all(out, bytes, (size_t)n, &e), 0);
	assert_int_equal(n, 0);
}

/* Ours is not asked, which could have it write what it holds. */
static void
assert_would_survive(const struct wal_test *t)
{
	AUTO(auto_free) char *copy = xasprintf("%s/copy.db", t->dir);
	sqlite3 *h;

	copy_file(t, "");
	copy_file(t, "-wal");
	h = open_by(copy, NULL);
	assert_whole(h);
	assert_same(t->other, h);
	assert_int_equal(sqlite3_close(h), SQLITE_OK);
}

/* A cache of a few pages has pages written, and read back, and written over,
 * long before the commit. */
static void
assert_same_by_random_steps(struct wal_test *t, const char *synchronous)
{
	static const char *const steps[] = {
	    "INSERT INTO t (x) VALUES (hex(randomblob(20000)))",
	    "INSERT INTO t (x) SELECT hex(randomblob(300)) FROM t LIMIT 20",
	    "UPDATE t SET x = x || hex(randomblob(50))",
	    "UPDATE t SET x = hex(randomblob(500)) WHERE n % 3 = 1",
	    "DELETE FROM t WHERE n % 5 = 2", "SAVEPOINT s", "ROLLBACK TO s",
	    "ROLLBACK", "COMMIT", "COMMIT", "COMMIT",
	    "PRAGMA wal_checkpoint(RESTART)",
	    "PRAGMA wal_checkpoint(TRUNCATE)"};
	uint32_t seed = 1;

	must(t->ours, synchronous);
	must(t->ours, "PRAGMA cache_size = 5");
	for (int i = 0; i < 600; i++) {
		seed = seed * 1103515245 + 12345;
		if (sqlite3_get_autocommit(t->ours) != 0 &&
		    (seed >> 8) % 4 != 0)
			must(t->ours, "BEGIN IMMEDIATE");
		/* Some make no sense here, and are refused. */
		(void)try(t->ours, steps[(seed >> 16) % ARRAY_LEN(steps)]);
		if (sqlite3_get_autocommit(t->ours) == 0)
			continue;
		if (i % 3 == 0)
			assert_would_survive(t);
		assert_same(t->ours, t->other);
		if (i % 7 == 0)
			must(t->other, "INSERT INTO t (x) VALUES ('other')");
		if (i % 50 == 0)
			must(t->ours, "DELETE FROM t WHERE n % 8 <> 0");
	}
	if (sqlite3_get_autocommit(t->ours) == 0)
		must(t->ours, "ROLLBACK");
	assert_same(t->ours, t->other);
	assert_whole(t->ours);
	assert_whole(t->other);
}

static void
test_others_and_the_disk_have_each_commit(void **state)
{
	assert_same_by_random_steps(*state, "PRAGMA synchronous = FULL");
}

static void
test_without_syncs_others_have_each_commit_too(void **state)
{
	assert_same_by_random_steps(*state, "PRAGMA synchronous = NORMAL");
}

/* As a transaction writes that has more pages than its cache. */
static void
test_nothing_is_held_when_the_lock_is_given_up(void **state)
{
	static const uint8_t header[24];
	struct wal_test *t = *state;
	sqlite3_file *wal = NULL;

	must(t->ours, "INSERT INTO t VALUES (1, 'a'), (2, 'b')");
	assert_int_equal(sqlite3_file_control(t->ours, "main",
			     SQLITE_FCNTL_JOURNAL_POINTER, &wal),
	    SQLITE_OK);
	must(t->ours, "BEGIN IMMEDIATE");
	calls.writes = 0;
	assert_int_equal(
	    wal->pMethods->xWrite(wal, header, sizeof(header), 1 << 20),
	    SQLITE_OK);
	assert_int_equal(calls.writes, 0);
	must(t->ours, "ROLLBACK");
	assert_int_equal(calls.writes, 1);
	must(t->other, "DELETE FROM t WHERE n = 1");
	assert_would_survive(t);
	assert_same(t->ours, t->other);
}

static void
test_a_write_that_fails_fails_its_commit(void **state)
{
	struct wal_test *t = *state;

	for (unsigned int i = 1; i <= 3; i++) {
		must(t->ours,
		    i == 1 ? "PRAGMA synchronous = FULL" :
			     "PRAGMA synchronous = NORMAL");
		must(t->ours, "BEGIN IMMEDIATE");
		must(
		    t->ours, "INSERT INTO t (x) VALUES (hex(zeroblob(50000)))");
		calls.fail_in = i == 1 ? 1 : i - 1;
		assert_int_equal(try(t->ours, "COMMIT"), SQLITE_FULL);
		calls.fail_in = 0;
		if (sqlite3_get_autocommit(t->ours) == 0)
			must(t->ours, "ROLLBACK");
		assert_same(t->ours, t->other);
		must(t->ours, "INSERT INTO t (x) VALUES ('a')");
		assert_same(t->ours, t->other);
		assert_would_survive(t);
	}
}

/* Also one long before the commit, of a transaction that has more pages than
 * its cache. */
static void
test_any_write_may_fail(void **state)
{
	static const char *const steps[] = {
	    "INSERT INTO t (x) SELECT hex(randomblob(20000)) FROM t LIMIT 3",
	    "UPDATE t SET x = x || hex(randomblob(50))",
	    "UPDATE t SET x = hex(randomblob(500)) WHERE n % 3 = 1"};
	struct wal_test *t = *state;
	unsigned int failed = 0;

	must(t->ours, "PRAGMA cache_size = 5");
	must(t->ours, "INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c')");
	for (unsigned int i = 1; i <= 60; i++) {
		int rc = SQLITE_OK;

		must(t->ours, "BEGIN IMMEDIATE");
		calls.fail_in = i;
		for (size_t k = 0; k < ARRAY_LEN(steps) && rc == SQLITE_OK; k++)
			rc = try(t->ours, steps[k]);
		if (rc == SQLITE_OK)
			rc = try(t->ours, "COMMIT");
		failed += rc != SQLITE_OK;
		assert_int_equal(rc == SQLITE_OK, calls.fail_in > 0);
		calls.fail_in = 0;
		if (sqlite3_get_autocommit(t->ours) == 0)
			must(t->ours, "ROLLBACK");
		assert_same(t->ours, t->other);
		assert_would_survive(t);
		must(t->ours, "DELETE FROM t WHERE n > 3");
		must(t->ours, "PRAGMA wal_checkpoint(PASSIVE)");
	}
	assert_true(failed > 10);
	assert_whole(t->ours);
}

int
main(void)
{
#define TEST(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
	const struct CMUnitTest tests[] = {
	    TEST(test_a_commit_of_ten_pages_is_one_write),
	    TEST(test_others_and_the_disk_have_each_commit),
	    TEST(test_without_syncs_others_have_each_commit_too),
	    TEST(test_nothing_is_held_when_the_lock_is_given_up),
	    TEST(test_a_write_that_fails_fails_its_commit),
	    TEST(test_any_write_may_fail),
	};

	return cmocka_run_group_tests_name("wal_vfs", tests, NULL, NULL);
}
