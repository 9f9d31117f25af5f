#include "tests/unit/store/fixture.h"

#include <sys/syscall.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>

#include "common/log.h"
#include "supervisor/store/syncer.h"

/*
 * What is made durable, in which order: the calls of libc below are those of
 * the store and of SQLite.  Each is noted by a letter for what it was of.
 *
 *	w  the WAL		l  a run's log		b  a blob
 *	d  a bucket		r  a directory above	A  all of a disk
 */
static struct {
	pthread_mutex_t mutex;
	char letters[256];
	size_t n;
	char fails; /* with EIO; 0: none does */
} seen = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static char
letter_of(int fd)
{
	char self[40], path[256] = "", *name;
	ssize_t n;

	(void)snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	n = readlink(self, path, sizeof(path) - 1);
	if (n < 0)
		return '?';
	path[n] = '\0';
	name = strrchr(path, '/') + 1;
	if (strcmp(name, "mcp-sandboxd.db-wal") == 0)
		return 'w';
	if (strstr(name, ".log") != NULL || strstr(path, "/spool/#") != NULL)
		return 'l';
	if (strlen(name) == 64)
		return 'b';
	if (strlen(name) == 2)
		return 'd';
	if (strstr(path, "/artifacts") != NULL ||
	    strstr(path, "/spool") != NULL)
		return 'r';
	return 0;
}

/* Whether it is to fail. */
static bool
note(char letter)
{
	bool fails;

	(void)pthread_mutex_lock(&seen.mutex);
	if (letter != 0 && seen.n < sizeof(seen.letters) - 1)
		seen.letters[seen.n++] = letter;
	fails = letter != 0 && letter == seen.fails;
	(void)pthread_mutex_unlock(&seen.mutex);
	if (fails)
		errno = EIO;
	return fails;
}

int
fdatasync(int fd)
{
	return note(letter_of(fd)) ? -1 : (int)syscall(SYS_fdatasync, fd);
}

int
fsync(int fd)
{
	return note(letter_of(fd)) ? -1 : (int)syscall(SYS_fsync, fd);
}

int
syncfs(int fd)
{
	return note('A') ? -1 : (int)syscall(SYS_syncfs, fd);
}

/* Of files, and the WAL behind them all; what else is written to the WAL may
 * come in between. */
static void
assert_seen(const char *letters)
{
	char files[sizeof(seen.letters)];
	size_t n = 0;

	assert_true(seen.n > 0);
	assert_int_equal(seen.letters[seen.n - 1], 'w');
	for (size_t i = 0; i < seen.n; i++)
		if (seen.letters[i] != 'w')
			files[n++] = seen.letters[i];
	files[n] = '\0';
	assert_string_equal(files, letters);
}

static void
forget_seen(void)
{
	(void)pthread_mutex_lock(&seen.mutex);
	memset(seen.letters, 0, sizeof(seen.letters));
	seen.n = 0;
	(void)pthread_mutex_unlock(&seen.mutex);
}

static int
setup_sandbox(void **state)
{
	seen.fails = 0;
	if (fixture_setup(state) != 0)
		return -1;
	fixture_put_sandbox(*state, 1, "a");
	return 0;
}

static void
leave_blob(
    struct fixture *f, struct store_log *log, struct store_run *r, uint8_t i)
{
	uint8_t sha256[32];
	int fd = store_blob_begin(log, i, &f->err);

	memset(sha256, i, sizeof(sha256));
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "x", 1), 1);
	(void)close(fd);
	assert_int_equal(
	    store_blob_commit(log, i, (struct tenant_id){1}, sha256, &f->err),
	    0);
	fixture_run_artifact(r, (char[]){(char)('A' + i), '\0'}, i);
	r->artifacts[r->nartifacts - 1].size = 1;
}

/* A run with that log and so many artifacts, the first with digest 1. */
static void
end_run(struct fixture *f, uint64_t id, size_t log_bytes, uint8_t blobs)
{
	struct result begun = {0}, ended = {0};
	struct store_log *log;
	struct store_run r;

	fixture_run(&r, id, 1, "a");
	r.uuid.b[0] = r.uuid.b[15] = 7; /* its bucket */
	log = fixture_log_open(f, &r);
	store_run_begin(f->store, &r, log, STORE_SOON, result_cb, &begun);
	fixture_log_fill(log, &r, 'L', log_bytes);
	fixture_run_ended(&r, RUN_STATE_COMPLETED);
	for (uint8_t i = 1; i <= blobs; i++)
		leave_blob(f, log, &r, i);
	forget_seen();
	store_run_end(f->store, &r, log, result_cb, &ended);
	fixture_wait(f, &ended.calls, 1);
	assert_string_equal(ended.msg, "");
	store_log_close(log);
	store_run_clear(&r);
}

TEST(a_run_that_is_in_its_rows_syncs_no_file)
{
	end_run(f, 1, STORE_INLINE_MAX, 0);
	assert_seen("");
}

TEST(a_long_log_is_on_disk_before_its_row)
{
	end_run(f, 1, STORE_INLINE_MAX + 1, 0);
	assert_seen("ldr");                     /* spool/ has the bucket */
	end_run(f, 2, STORE_INLINE_MAX + 1, 0); /* in the same one */
	assert_seen("ld");
	assert_int_equal(fixture_query(f, "SELECT sum(lost_ms) FROM kept"), 0);
}

TEST(artifacts_are_on_disk_before_their_rows)
{
	end_run(f, 1, 100, 2);
	/* The tenant's directory, and artifacts/. */
	assert_seen("bdrrbdrr");
	end_run(f, 2, 100, 2);
	assert_seen("bdbd");
}

TEST(of_many_files_the_disk_is_synced_once)
{
	end_run(f, 1, STORE_INLINE_MAX + 1, 20);
	assert_seen("A");
}

TEST(when_not_all_can_be_synced_each_is)
{
	seen.fails = 'A';
	end_run(f, 1, 100, 20);
	assert_non_null(strchr(seen.letters, 'A'));
	assert_non_null(strchr(seen.letters, 'b'));
	assert_int_equal(
	    fixture_query(f, "SELECT count(*) FROM blob WHERE lost_ms > 0"), 0);
}

TEST(artifacts_that_come_in_batches_are_on_disk_first)
{
	struct result begun = {0}, put = {0};
	struct store_log *log;
	struct store_run r;

	fixture_run(&r, 1, 1, "a");
	log = fixture_log_open(f, &r);
	store_run_begin(f->store, &r, log, STORE_NOW, result_cb, &begun);
	fixture_wait(f, &begun.calls, 1);
	leave_blob(f, log, &r, 1);
	forget_seen();
	(void)store_artifacts_put(f->store, &r, log, result_cb, &put);
	fixture_wait(f, &put.calls, 1);
	assert_string_equal(put.msg, "");
	assert_seen("bdrr");
	store_log_close(log);
	store_run_clear(&r);
}

/* A second sync would say that all is well. */
TEST(what_the_disk_did_not_take_is_lost)
{
	log_set_level(LOG_ERROR);
	seen.fails = 'b';
	end_run(f, 1, STORE_INLINE_MAX + 1, 2);
	assert_int_equal(
	    fixture_query(f, "SELECT count(*) FROM blob WHERE lost_ms > 0"), 2);
	assert_int_equal(fixture_query(f, "SELECT lost_ms FROM kept"), 0);
	seen.fails = 'l';
	end_run(f, 2, STORE_INLINE_MAX + 1, 1);
	assert_int_equal(
	    fixture_query(f, "SELECT run FROM kept WHERE lost_ms > 0"), 2);
	/* The same bytes came once more, and are there now. */
	assert_int_equal(
	    fixture_query(f, "SELECT count(*) FROM blob WHERE lost_ms > 0"), 1);
}

/* ---- what waits */

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static sem_t at_gate;

static int
name_behind_gate(struct store_log *log, struct err *e)
{
	(void)log;
	(void)sem_post(&at_gate);
	(void)pthread_mutex_lock(&gate);
	(void)pthread_mutex_unlock(&gate);
	return err_set(e, ERR_SYS, "no name");
}

static void
ignore_cb(struct op *op)
{
	(void)op;
}

TEST(more_than_a_queue_should_hold_is_said_to_be_too_much)
{
	struct store_log *any = (struct store_log *)f; /* never looked into */
	struct syncing waits[2] = {
	    {.log = any, .name_log = name_behind_gate, .log_fd = -1},
	    {.log = any, .name_log = name_behind_gate, .log_fd = -1}};
	struct syncer *y;

	waits[0].op.deliver = waits[1].op.deliver = ignore_cb;
	waits[0].op.release = waits[1].op.release = ignore_cb;
	waits[1].op.bytes = STORE_QUEUE_BYTES_MAX;
	assert_int_equal(sem_init(&at_gate, 0, 0), 0);
	assert_int_equal(syncer_start(f->base, NULL, &y, &f->err), 0);
	(void)pthread_mutex_lock(&gate);
	syncer_submit(y, &waits[0]);
	assert_false(syncer_is_full(y));
	(void)sem_wait(&at_gate); /* the thread has that one alone */
	syncer_submit(y, &waits[1]);
	assert_true(syncer_is_full(y));
	(void)pthread_mutex_unlock(&gate);
	syncer_stop(y);
}

TEST(what_is_on_its_way_is_written_at_the_close)
{
	struct store_log *log;
	struct store_run r;

	fixture_run(&r, 1, 1, "a");
	log = fixture_log_open(f, &r);
	store_run_begin(f->store, &r, log, STORE_SOON, NULL, NULL);
	fixture_log_fill(log, &r, 'L', 100);
	fixture_run_ended(&r, RUN_STATE_COMPLETED);
	leave_blob(f, log, &r, 1);
	store_run_end(f->store, &r, log, NULL, NULL);
	store_log_close(log);
	fixture_close(f);
	assert_int_equal(
	    fixture_query(f, "SELECT state = 'completed' FROM run"), 1);
	store_run_clear(&r);
}

TEST_MAIN(setup_sandbox, fixture_teardown)
