#include "tests/unit/store/fixture.h"

#include <sched.h>
#include <sys/mount.h>

/* A real full disk: a small tmpfs that only this process sees.  When it is
 * free again it has room for the index of runs as well, which comes behind. */

#define DISK_OPTIONS "size=8m,nr_inodes=300,mode=0700"

static char mount_point[] = "/tmp/store-disk-XXXXXX";

static int
setup(void **state)
{
	struct fixture *f = fixture_new(mount_point);

	fixture_open(f);
	fixture_put_sandbox(f, 1, "a");
	*state = f;
	return 0;
}

static char *
filler_path(const struct fixture *f)
{
	return xasprintf("%s/filler", f->dir);
}

static void
disk_fill(const struct fixture *f)
{
	AUTO(auto_free) char *path = filler_path(f);
	AUTO(auto_close)
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	static const char block[4096];

	assert_true(fd >= 0);
	while (write(fd, block, sizeof(block)) > 0)
		;
	assert_int_equal(errno, ENOSPC);
}

static void
disk_free(const struct fixture *f)
{
	AUTO(auto_free) char *path = filler_path(f);

	assert_int_equal(unlink(path), 0);
}

/* The WAL has some room ahead of need: use it up. */
static void
wal_fill(struct fixture *f)
{
	struct store_sandbox s;
	struct result result = {0};

	fixture_sandbox(&s, 1, "a");
	for (unsigned int i = 1; i <= 1000 && result.rc == 0; i++) {
		store_sandbox_put(f->store, &s, result_cb, &result);
		fixture_wait(f, &result.calls, i);
	}
	assert_int_equal(result.rc, ERR_DB);
	store_sandbox_clear(&s);
}

struct many {
	struct result results[400];
	unsigned int calls;
};

struct slot {
	struct many *m;
	size_t i;
};

static void
slot_cb(int rc, const struct err *why, void *arg)
{
	struct slot *s = arg;

	result_cb(rc, why, &s->m->results[s->i]);
	s->m->calls++;
	free(s);
}

/* Runs first.. first + n - 1, submitted together or one by one. */
static void
insert_many(struct fixture *f, struct many *m, uint64_t first, size_t n)
{
	unsigned int want = m->calls + (unsigned int)n;

	for (size_t i = 0; i < n; i++) {
		struct slot *s = xcalloc(1, sizeof(*s));
		struct store_run r;

		s->m = m;
		s->i = (size_t)first + i;
		fixture_run(&r, first + i, 1, "a");
		store_run_begin(f->store, &r, NULL, STORE_NOW, slot_cb, s);
		store_run_clear(&r);
	}
	fixture_wait(f, &m->calls, want);
}

/* What was acknowledged is there, and nothing else. */
static void
assert_rows_match(struct fixture *f, const struct many *m, uint64_t last)
{
	int64_t good = 0;

	for (uint64_t i = 1; i <= last; i++) {
		AUTO(auto_free)
		char *sql =
		    xasprintf("SELECT count(*) FROM run WHERE id = %llu",
			(unsigned long long)i);

		assert_int_equal(m->results[i].calls, 1);
		assert_int_equal(fixture_query(f, sql), m->results[i].rc == 0);
		good += m->results[i].rc == 0;
	}
	assert_int_equal(fixture_query(f, "SELECT count(*) FROM run"), good);
}

TEST(a_full_disk_fails_its_writes_with_a_clear_text)
{
	AUTO(auto_free)
	char *want =
	    xasprintf("database: disk is full: free space in %s", f->dir);
	struct many *m = xcalloc(1, sizeof(*m));
	struct store_stats stats;
	uint64_t id = 1;

	disk_fill(f);
	do
		insert_many(f, m, id, 1);
	while (m->results[id++].rc == 0 && id < 390);
	assert_int_equal(m->results[id - 1].rc, ERR_DB);
	assert_string_equal(m->results[id - 1].msg, want);
	store_stats(f->store, &stats);
	assert_true(stats.failures >= 1);
	assert_true(stats.last_error_ms > 0);
	disk_free(f);
	assert_rows_match(f, m, id - 1);
	free(m);
}

TEST(the_store_goes_on_when_there_is_room_again)
{
	struct many *m = xcalloc(1, sizeof(*m));
	uint64_t id = 1;

	for (int round = 0; round < 3; round++) {
		disk_fill(f);
		do
			insert_many(f, m, id, 1);
		while (m->results[id++].rc == 0 && id < 390);
		assert_int_equal(m->results[id - 1].rc, ERR_DB);
		disk_free(f);
		insert_many(f, m, id, 1);
		assert_int_equal(m->results[id++].rc, 0);
	}
	assert_rows_match(f, m, id - 1);
	fixture_reopen(f);
	assert_rows_match(f, m, id - 1);
	free(m);
}

TEST(every_write_of_a_failed_batch_is_answered_once)
{
	struct many *m = xcalloc(1, sizeof(*m));
	size_t failed = 0;

	disk_fill(f);
	wal_fill(f);
	insert_many(f, m, 1, 300);
	for (size_t i = 1; i <= 300; i++)
		failed += m->results[i].rc == ERR_DB;
	assert_true(failed > 0);
	disk_free(f);
	assert_rows_match(f, m, 300);
	insert_many(f, m, 301, 50);
	assert_int_equal(m->results[350].rc, 0);
	assert_rows_match(f, m, 350);
	free(m);
}

static void
got_cb(int rc, const struct store_run *row, const struct err *why, void *arg)
{
	(void)row;
	result_cb(rc, why, arg);
}

TEST(reads_go_on_while_the_disk_is_full)
{
	struct result result = {0};
	struct store_run r;

	fixture_run(&r, 1, 1, "a");
	fixture_insert(f, &r);
	disk_fill(f);
	store_run_get(
	    f->store, (struct tenant_id){1}, &r.uuid, 0, got_cb, &result);
	fixture_wait(f, &result.calls, 1);
	assert_int_equal(result.rc, 0);
	disk_free(f);
	store_run_clear(&r);
}

TEST(an_end_that_failed_can_be_given_again)
{
	struct result result = {0};
	struct store_log *log;
	struct store_run r;
	unsigned int calls = 0;

	fixture_run(&r, 1, 1, "a");
	fixture_insert(f, &r);
	fixture_run_ended(&r, RUN_STATE_COMPLETED);
	log = fixture_log_open(f, &r);
	fixture_log_fill(log, &r, 'L', STORE_INLINE_MAX);
	fixture_run_artifact(&r, "x", 1);
	disk_fill(f);
	wal_fill(f);
	store_run_end(f->store, &r, log, result_cb, &result);
	fixture_wait(f, &result.calls, ++calls);
	assert_int_equal(result.rc, ERR_DB);
	assert_int_equal(
	    fixture_query(f, "SELECT count(*) FROM run WHERE state = 'queued'"),
	    1);
	disk_free(f);
	store_run_end(f->store, &r, log, result_cb, &result);
	fixture_wait(f, &result.calls, ++calls);
	assert_int_equal(result.rc, 0);
	assert_int_equal(fixture_query(f, "SELECT refs FROM blob"), 1);
	store_log_close(log);
	store_run_clear(&r);
}

/* No room for names, but for pages of the database. */
static unsigned int
names_fill(const struct fixture *f)
{
	for (unsigned int n = 0;; n++) {
		AUTO(auto_free) char *path = xasprintf("%s/name-%u", f->dir, n);
		int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

		if (fd < 0) {
			assert_int_equal(errno, ENOSPC);
			return n;
		}
		assert_int_equal(close(fd), 0);
	}
}

static void
names_free(const struct fixture *f, unsigned int n)
{
	while (n-- > 0) {
		AUTO(auto_free) char *path = xasprintf("%s/name-%u", f->dir, n);

		assert_int_equal(unlink(path), 0);
	}
}

TEST(a_log_that_finds_no_room_for_its_name_fails_its_run_alone)
{
	struct result put = {0}, begun = {0};
	struct store_sandbox s;
	struct store_log *log, *later;
	struct store_run r;
	unsigned int n;

	fixture_run(&r, 1, 1, "a");
	log = fixture_log_open(f, &r);
	later = fixture_log_open(f, &r);
	n = names_fill(f);
	fixture_sandbox(&s, 2, "b");
	store_run_begin(f->store, &r, log, STORE_NOW, result_cb, &begun);
	store_sandbox_put(f->store, &s, result_cb, &put);
	fixture_wait(f, &put.calls, 1);
	assert_int_equal(put.rc, 0);
	assert_int_equal(begun.rc, ERR_SYS);
	assert_non_null(strstr(begun.msg, "disk is full: free space in"));
	names_free(f, n);
	assert_int_equal(fixture_query(f, "SELECT count(*) FROM run"), 0);
	store_run_begin(f->store, &r, later, STORE_NOW, result_cb, &begun);
	fixture_wait(f, &begun.calls, 2);
	assert_int_equal(begun.rc, 0);
	assert_int_equal(fixture_files(f, "spool"), 1);
	store_log_close(log);
	store_log_close(later);
	store_sandbox_clear(&s);
	store_run_clear(&r);
}

TEST(a_store_opens_on_a_full_disk_or_says_why_not)
{
	struct many *m = xcalloc(1, sizeof(*m));
	int rc;

	insert_many(f, m, 1, 20);
	fixture_close(f);
	disk_fill(f);
	rc = store_open(f->base, f->dir, NULL, &f->store, &f->err);
	if (rc != 0) {
		assert_int_equal(rc, ERR_DB);
		assert_non_null(strstr(f->err.msg, "disk is full"));
	}
	disk_free(f);
	if (rc != 0)
		fixture_open(f);
	assert_rows_match(f, m, 20);
	free(m);
}

int
main(void)
{
	int rc;

	if (mkdtemp(mount_point) == NULL || unshare(CLONE_NEWNS) != 0 ||
	    mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
	    mount("none", mount_point, "tmpfs", 0, DISK_OPTIONS) != 0) {
		perror("a tmpfs in a mount namespace (needs root)");
		(void)rmdir(mount_point);
		return 1;
	}
	rc = tests_run(setup, fixture_teardown, NULL, NULL);
	(void)umount(mount_point);
	(void)rmdir(mount_point);
	return rc;
}
