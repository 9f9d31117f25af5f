#include "tests/unit/store/fixture.h"

#include <sys/prctl.h>
#include <sys/syscall.h>

/*
 * A process that does all that the store does with files is killed at each
 * step: right before and right after each call that changes a directory or
 * makes something durable.  The next opening must find what was acknowledged,
 * each row with its files, and no file without a row in the end.
 *
 * The calls of libc below are those of the store and of SQLite.
 */

static unsigned int steps_left; /* 0: no end is near */

static void
step(void)
{
	if (__atomic_load_n(&steps_left, __ATOMIC_SEQ_CST) > 0 &&
	    __atomic_sub_fetch(&steps_left, 1, __ATOMIC_SEQ_CST) == 0)
		(void)kill(getpid(), SIGKILL);
}

#define STEPPED(call)                                                          \
	long stepped;                                                          \
                                                                               \
	step();                                                                \
	stepped = (call);                                                      \
	step();                                                                \
	return (int)stepped

int
fdatasync(int fd)
{
	STEPPED(syscall(SYS_fdatasync, fd));
}

int
fsync(int fd)
{
	STEPPED(syscall(SYS_fsync, fd));
}

int
linkat(int from, const char *path, int to, const char *name, int flags)
{
	STEPPED(syscall(SYS_linkat, from, path, to, name, flags));
}

int
unlinkat(int dir, const char *name, int flags)
{
	STEPPED(syscall(SYS_unlinkat, dir, name, flags));
}

int
renameat(int from, const char *path, int to, const char *name)
{
	STEPPED(syscall(SYS_renameat2, from, path, to, name, 0));
}

int
mkdirat(int dir, const char *name, mode_t mode)
{
	STEPPED(syscall(SYS_mkdirat, dir, name, mode));
}

int
ftruncate(int fd, off_t length)
{
	STEPPED(syscall(SYS_ftruncate, fd, length));
}

/* The life that is cut short.  What is on disk is told through a pipe. */

struct life {
	struct fixture *f;
	int fd;
};

static void
tell(const struct life *life, uint8_t what)
{
	if (write(life->fd, &what, 1) != 1)
		_exit(3);
}

#define TOLD_BEGUN(run) ((uint8_t)(run))
#define TOLD_ENDED(run) ((uint8_t)((run) + 100))
#define TOLD_ALL 255

static void
life_begin(struct life *life, const struct store_run *r, struct store_log *log)
{
	struct result result = {0};

	store_run_begin(life->f->store, r, log, STORE_NOW, result_cb, &result);
	fixture_wait(life->f, &result.calls, 1);
	if (result.rc != 0)
		_exit(4);
	tell(life, TOLD_BEGUN(r->id));
}

static void
bring(struct life *life, struct store_log *log, struct store_run *r,
    uint32_t file, const char *path, uint8_t digest)
{
	uint8_t sha256[32];
	int fd = store_blob_begin(log, file, &life->f->err);

	memset(sha256, digest, sizeof(sha256));
	if (fd < 0 || close(fd) != 0 ||
	    store_blob_commit(
		log, file, (struct tenant_id){1}, sha256, &life->f->err) != 0)
		_exit(5);
	if (path != NULL)
		fixture_run_artifact(r, path, digest);
}

/* One run, with what it left; when it is STORE_SOON, begun and ended at once */
static void
life_run(struct life *life, uint64_t id, enum store_when when, size_t length,
    uint8_t digest)
{
	struct result begun = {0}, ended = {0};
	struct store_log *log;
	struct store_run r;

	fixture_run(&r, id, 1, "a");
	log = fixture_log_open(life->f, &r);
	if (when == STORE_NOW)
		life_begin(life, &r, log);
	else
		store_run_begin(
		    life->f->store, &r, log, when, result_cb, &begun);
	fixture_log_fill(log, &r, 'L', length);
	fixture_run_ended(&r, RUN_STATE_COMPLETED);
	bring(life, log, &r, 0, "x", digest);
	bring(life, log, &r, 1, NULL, (uint8_t)(digest + 1)); /* in vain */
	store_run_end(life->f->store, &r, log, result_cb, &ended);
	fixture_wait(life->f, &ended.calls, 1);
	if (ended.rc != 0)
		_exit(6);
	tell(life, TOLD_ENDED(id));
	store_log_close(log);
	store_run_clear(&r);
}

/* Some of what row has is put, and it has it no more. */
static void
life_put(struct life *life, struct store_log *log, struct store_run *row)
{
	struct store_run some = {.id = row->id,
	    .tenant = row->tenant,
	    .artifacts = row->artifacts,
	    .nartifacts = row->nartifacts};
	struct result result = {0};

	(void)store_artifacts_put(
	    life->f->store, &some, log, result_cb, &result);
	fixture_wait(life->f, &result.calls, 1);
	if (result.rc != 0)
		_exit(7);
	for (uint32_t i = 0; i < row->nartifacts; i++)
		store_artifact_clear(&row->artifacts[i]);
	row->nartifacts = 0;
	row->artifacts_put = true;
}

/* Its files come in batches, one of them twice, as after a lost worker. */
static void
life_batches(struct life *life, uint64_t id)
{
	struct result ended = {0};
	struct store_log *log;
	struct store_run r;

	fixture_run(&r, id, 1, "a");
	log = fixture_log_open(life->f, &r);
	life_begin(life, &r, log);
	fixture_log_fill(log, &r, 'L', 10);
	bring(life, log, &r, 0, "x", 50);
	bring(life, log, &r, 1, "y", 51);
	life_put(life, log, &r);
	bring(life, log, &r, 2, "x", 52);
	life_put(life, log, &r);
	bring(life, log, &r, 3, "z", 53);
	fixture_run_ended(&r, RUN_STATE_COMPLETED);
	store_run_end(life->f->store, &r, log, result_cb, &ended);
	fixture_wait(life->f, &ended.calls, 1);
	if (ended.rc != 0)
		_exit(8);
	tell(life, TOLD_ENDED(id));
	store_log_close(log);
	store_run_clear(&r);
}

static void
evicted_cb(
    int rc, const struct store_evicted *what, const struct err *why, void *arg)
{
	(void)what;
	result_cb(rc, why, arg);
}

/* One that has no end. */
static void
life_endless(struct life *life, const char *put)
{
	struct store_log *log;
	struct store_run r;

	fixture_run(&r, 5, 1, "a");
	log = fixture_log_open(life->f, &r);
	life_begin(life, &r, log);
	fixture_log_fill(log, &r, 'L', 10);
	bring(life, log, &r, 0, NULL, 40);
	if (put == NULL)
		return;
	bring(life, log, &r, 1, put, 41);
	life_put(life, log, &r);
}

static void
live_by_runs(struct life *life)
{
	const struct store_evict_wish wish = {.free = {1, 0}};
	struct store *s = life->f->store;
	struct result trimmed = {0};

	life_run(life, 1, STORE_NOW, STORE_INLINE_MAX + 1, 10);
	life_run(life, 2, STORE_NOW, 100, 20);
	life_run(life, 3, STORE_SOON, 100, 30);
	life_run(life, 4, STORE_SOON, STORE_INLINE_MAX + 1, 20);
	store_trim(s, (struct tenant_id){1}, (struct store_keep){9, 3000},
	    result_cb, &trimmed);
	fixture_wait(life->f, &trimmed.calls, 1);
	store_trim(s, (struct tenant_id){1}, (struct store_keep){2, UINT64_MAX},
	    result_cb, &trimmed);
	fixture_wait(life->f, &trimmed.calls, 2);
	store_evict(s, &wish, evicted_cb, &trimmed);
	fixture_wait(life->f, &trimmed.calls, 3);
	life_endless(life, NULL);
}

static void
live_by_batches(struct life *life)
{
	life_batches(life, 6);
	life_endless(life, "x");
}

static void
life_main(struct fixture *f, int fd, unsigned int steps,
    void (*live)(struct life *life))
{
	struct life life = {.f = f, .fd = fd};

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (event_reinit(f->base) != 0)
		_exit(2);
	fixture_open(f);
	__atomic_store_n(&steps_left, steps, __ATOMIC_SEQ_CST);
	live(&life);
	fixture_close(f);
	__atomic_store_n(&steps_left, 0, __ATOMIC_SEQ_CST);
	tell(&life, TOLD_ALL);
	_exit(0);
}

/* Afterwards. */

static void
assert_log_is_there(struct fixture *f, const char *hex)
{
	AUTO(auto_free)
	char *path = xasprintf("%s/spool/%.2s/%.8s-%.4s-%.4s-%.4s-%.12s.log",
	    f->dir, hex, hex, hex + 8, hex + 12, hex + 16, hex + 20);

	assert_int_equal(access(path, F_OK), 0);
}

/* Each row of a query names files that must be there: check does it. */
static void
for_each(struct fixture *f, const char *sql,
    void (*check)(struct fixture *f, const char *text))
{
	sqlite3 *h = fixture_sqlite(f);
	sqlite3_stmt *st;

	assert_int_equal(sqlite3_prepare_v2(h, sql, -1, &st, NULL), SQLITE_OK);
	while (sqlite3_step(st) == SQLITE_ROW)
		check(f, (const char *)sqlite3_column_text(st, 0));
	assert_int_equal(sqlite3_finalize(st), SQLITE_OK);
	assert_int_equal(sqlite3_close(h), SQLITE_OK);
}

static void
assert_blob_is_there(struct fixture *f, const char *hex)
{
	AUTO(auto_free)
	char *path = xasprintf("%s/artifacts/1/%.2s/%s", f->dir, hex, hex);

	assert_int_equal(access(path, F_OK), 0);
}

static void
assert_acknowledged(struct fixture *f, uint8_t told)
{
	AUTO(auto_free)
	char *sql = xasprintf("SELECT count(*) FROM run WHERE id = %d%s",
	    told % 100, told >= 100 ? " AND state = 'completed'" : "");

	/* The trim takes the first two, and is told of by nobody. */
	if (told != TOLD_ALL && told % 100 > 2)
		assert_int_equal(fixture_query(f, sql), 1);
}

#define EVICTED "(SELECT run FROM kept WHERE evicted_ms <> 0)"

static void
assert_rows_have_their_files(struct fixture *f)
{
	for_each(f,
	    "SELECT lower(hex(uuid)) FROM run WHERE log IS NULL"
	    " AND id NOT IN " EVICTED,
	    assert_log_is_there);
	for_each(f,
	    "SELECT lower(hex(sha256)) FROM artifact WHERE run NOT IN " EVICTED,
	    assert_blob_is_there);
	assert_int_equal(
	    fixture_query(f,
		"SELECT (SELECT coalesce(sum(refs), 0) FROM blob)"
		" - (SELECT count(*) FROM artifact WHERE run NOT IN " EVICTED
		")"),
	    0);
	assert_int_equal(
	    fixture_query(f,
		"SELECT row_bytes - (SELECT coalesce(sum(bytes), 0) FROM run"
		" JOIN run_size ON run_size.run = id"
		" WHERE state NOT IN ('queued', 'running')) FROM tenant"),
	    0);
}

static void
assert_files_have_their_rows(struct fixture *f)
{
	fixture_open(f);
	fixture_wait_files(f, "spool",
	    (unsigned int)fixture_query(f,
		"SELECT count(*) FROM run WHERE log IS NULL"
		" AND id NOT IN " EVICTED));
	fixture_wait_files(f, "artifacts",
	    (unsigned int)fixture_query(f, "SELECT count(*) FROM blob"));
	fixture_close(f);
}

/* One life of so many steps; true if it was cut short. */
static bool
life_and_death(
    struct fixture *f, unsigned int steps, void (*live)(struct life *life))
{
	uint8_t told[32];
	size_t n = 0;
	int fds[2], status;
	pid_t pid;

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		life_main(f, fds[1], steps, live);
	(void)close(fds[1]);
	while (n < sizeof(told) && read(fds[0], &told[n], 1) == 1)
		n++;
	(void)close(fds[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (!WIFSIGNALED(status))
		assert_int_equal(status, 0);
	assert_rows_have_their_files(f); /* also before anything is mended */
	for (size_t i = 0; i < n; i++)
		assert_acknowledged(f, told[i]);
	assert_files_have_their_rows(f);
	assert_rows_have_their_files(f);
	return WIFSIGNALED(status);
}

/* A store with a sandbox, as one that was just made: making it is most of a
 * life's work. */
static struct fixture *
copy_of(const struct fixture *f)
{
	struct fixture *copy = fixture_new("/tmp");
	AUTO(auto_free)
	char *command = xasprintf("cp -a %s/. %s", f->dir, copy->dir);

	assert_int_equal(system(command), 0);
	return copy;
}

static void
die_at_each_step(void (*live)(struct life *life), unsigned int at_least)
{
	struct fixture *fresh = fixture_new("/tmp");
	bool died = true;

	fixture_open(fresh);
	fixture_put_sandbox(fresh, 1, "a");
	fixture_close(fresh);
	for (unsigned int steps = 1; died; steps++) {
		struct fixture *f = copy_of(fresh);

		died = life_and_death(f, steps, live);
		fixture_free(f);
		assert_true(died || steps > at_least);
	}
	fixture_free(fresh);
}

TEST(rows_and_files_fit_whenever_the_process_dies)
{
	die_at_each_step(live_by_runs, 40);
}

TEST(so_they_do_when_artifacts_come_in_batches)
{
	die_at_each_step(live_by_batches, 20);
}

TEST_MAIN(NULL, NULL)
