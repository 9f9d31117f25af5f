#include "tests/unit/store/fixture.h"

#include <sys/syscall.h>

/* What no row wants is removed after the opening, and nothing else. */

static bool no_nameless_files; /* as on some file systems */

/* libc's, for the store. */
int
openat(int dir, const char *path, int flags, ...)
{
	va_list args;
	mode_t mode;

	va_start(args, flags);
	mode = va_arg(args, mode_t);
	va_end(args);
	if (no_nameless_files && (flags & O_TMPFILE) == O_TMPFILE) {
		errno = EOPNOTSUPP;
		return -1;
	}
	return (int)syscall(SYS_openat, dir, path, flags, mode);
}

static void
make_dir(const struct fixture *f, const char *below)
{
	AUTO(auto_free) char *path = xasprintf("%s/%s", f->dir, below);

	assert_int_equal(fd_mkdir_all(path, 0700, NULL), 0);
}

static void
make_file(const struct fixture *f, const char *below)
{
	AUTO(auto_free) char *path = xasprintf("%s/%s", f->dir, below);
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(close(fd), 0);
}

static bool
is_there(const struct fixture *f, const char *below)
{
	AUTO(auto_free) char *path = xasprintf("%s/%s", f->dir, below);

	return access(path, F_OK) == 0;
}

static char *
log_path(const struct uuid *run)
{
	char text[UUID_TEXT_LEN + 1];

	uuid_format(run, text);
	return xasprintf("spool/%.2s/%s.log", text, text);
}

#define BLOB                                                                   \
	"artifacts/1/ab/"                                                      \
	"abababababababababababababababababababababababababababababababab"

TEST(what_a_crash_left_is_removed)
{
	struct uuid run;
	AUTO(auto_free) char *log = NULL;

	fixture_open(f);
	fixture_close(f);
	uuid_random(&run);
	log = log_path(&run);
	{
		AUTO(auto_free) char *dir = xstrndup(log, strlen("spool/ab"));

		make_dir(f, dir);
	}
	make_dir(f, "artifacts/1/ab");
	make_file(f, log);
	make_file(f, BLOB);
	make_file(f, "artifacts/tmp/11111111-1111-4111-8111-111111111111.0.1");
	fixture_open(f);
	fixture_wait_files(f, "spool", 0);
	fixture_wait_files(f, "artifacts", 0);
}

TEST(the_file_of_a_log_that_is_in_its_row_is_removed)
{
	AUTO(auto_free) char *path = NULL;
	struct store_log *log;
	struct store_run r;

	fixture_open(f);
	fixture_insert_first(f, &r);
	log = fixture_log_open(f, &r);
	fixture_run_ended(&r, RUN_STATE_COMPLETED);
	fixture_end_with(f, &r, log);
	store_log_close(log);
	fixture_close(f);
	path = log_path(&r.uuid); /* as if it had died right then */
	{
		AUTO(auto_free) char *dir = xstrndup(path, strlen("spool/ab"));

		make_dir(f, dir);
	}
	make_file(f, path);
	fixture_open(f);
	fixture_wait_files(f, "spool", 0);
	store_run_clear(&r);
}

/* More of them than are looked at in one turn. */
TEST(what_rows_or_nobody_of_ours_wants_stays)
{
	static const char *const alien[] = {"spool/notes", "spool/ab/notes",
	    "artifacts/notes", "artifacts/1/ab/notes", "artifacts/x/ab/notes"};
	struct uuid unfinished[300];

	fixture_open(f);
	fixture_put_sandbox(f, 1, "a");
	for (uint64_t i = 0; i < ARRAY_LEN(unfinished); i++) {
		struct store_log *log;
		struct store_run r;

		fixture_run(&r, i + 1, 1, "a");
		log = fixture_log_open(f, &r);
		store_run_begin(f->store, &r, log, STORE_NOW, NULL, NULL);
		store_log_close(log);
		unfinished[i] = r.uuid;
		store_run_clear(&r);
	}
	fixture_close(f);
	make_dir(f, "spool/ab");
	make_dir(f, "artifacts/1/ab");
	make_dir(f, "artifacts/x/ab");
	for (size_t i = 0; i < ARRAY_LEN(alien); i++)
		make_file(f, alien[i]);
	make_file(f, BLOB); /* goes last: then all was looked at */
	fixture_open(f);
	fixture_wait_files(f, "artifacts", 3);
	for (size_t i = 0; i < ARRAY_LEN(alien); i++)
		assert_true(is_there(f, alien[i]));
	for (size_t i = 0; i < ARRAY_LEN(unfinished); i++) {
		AUTO(auto_free) char *path = log_path(&unfinished[i]);

		assert_true(is_there(f, path));
	}
}

/* The looking goes on while new runs begin. */
TEST(what_is_new_is_nobodys_leftover)
{
	const uint8_t sha256[32] = {0xcd};
	struct store_log *log;
	struct store_run r;
	int fd;

	fixture_open(f);
	fixture_put_sandbox(f, 1, "a");
	fixture_close(f);
	make_dir(f, "artifacts/1/ab");
	make_file(f, BLOB);
	fixture_open(f); /* and at once, before the first look: */
	fixture_run(&r, 1, 1, "a");
	log = fixture_log_open(f, &r);
	for (uint32_t i = 0; i < 2; i++) {
		fd = store_blob_begin(log, i, &f->err);
		assert_true(fd >= 0);
		assert_int_equal(close(fd), 0);
	}
	assert_int_equal(
	    store_blob_commit(log, 0, (struct tenant_id){1}, sha256, &f->err),
	    0);
	store_run_begin(f->store, &r, log, STORE_NOW, NULL, NULL);
	fixture_wait_files(f, "artifacts", 2); /* BLOB is gone */
	fixture_wait_files(f, "spool", 1);
	assert_int_equal(
	    store_blob_commit(log, 1, (struct tenant_id){1}, sha256, &f->err),
	    0);
	store_log_close(log);
	store_run_clear(&r);
}

/* A database that was moved away is missed, not the files. */
TEST(files_beside_a_new_database_stay)
{
	AUTO(auto_free) char *kept = xasprintf("%s/artifacts/keep-all", f->dir);

	make_dir(f, "artifacts/tmp");
	make_dir(f, "artifacts/1/ab");
	make_file(f, BLOB);
	for (int i = 0; i < 2; i++) { /* the second time it is no new one */
		make_file(f, "artifacts/tmp/of-old.0.1");
		fixture_open(f);
		fixture_wait_files(f, "artifacts/tmp", 0); /* it has looked */
		assert_true(is_there(f, BLOB));
		fixture_close(f);
	}
	assert_int_equal(unlink(kept), 0);
	fixture_open(f);
	fixture_wait_files(f, "artifacts", 0);
}

/* A log that has a name from the beginning, before its row. */
TEST(without_nameless_files_the_order_is_kept_too)
{
	struct result begun = {0};
	struct store_log *log, *bad;
	struct store_run r;

	fixture_open(f);
	fixture_put_sandbox(f, 1, "a");
	fixture_close(f);
	make_dir(f, "artifacts/1/ab");
	make_file(f, BLOB);
	fixture_run(&r, 1, 1, "a");
	no_nameless_files = true;
	fixture_open(f);
	log = fixture_log_open(f, &r);
	assert_int_equal(fixture_files(f, "spool"), 1);
	fixture_wait_files(f, "artifacts", 0); /* all was looked at */
	assert_int_equal(fixture_files(f, "spool"), 1);
	store_run_begin(f->store, &r, log, STORE_NOW, result_cb, &begun);
	fixture_wait(f, &begun.calls, 1);
	assert_int_equal(begun.rc, 0);
	assert_int_equal(fixture_files(f, "spool"), 1);
	fixture_run_ended(&r, RUN_STATE_COMPLETED);
	fixture_end_with(f, &r, log);
	assert_int_equal(fixture_files(f, "spool"), 0);
	store_log_close(log);
	store_run_clear(&r);

	fixture_run(&r, 2, 99, "a"); /* no such sandbox */
	bad = fixture_log_open(f, &r);
	store_run_begin(f->store, &r, bad, STORE_SOON, result_cb, &begun);
	fixture_wait(f, &begun.calls, 2);
	assert_int_equal(begun.rc, ERR_INVAL);
	assert_int_equal(fixture_files(f, "spool"), 0);
	no_nameless_files = false;
	store_log_close(bad);
	store_run_clear(&r);
}

TEST_MAIN(fixture_setup_closed, fixture_teardown)
