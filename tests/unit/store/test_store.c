#include "tests/unit/store/fixture.h"

#include <sys/inotify.h>
#include <dlfcn.h>

/* Opening, closing, what a starting front reads, and the queue's limit. */

static int
try_open(struct fixture *f)
{
	f->err.msg[0] = '\0';
	return store_open(f->base, f->dir, NULL, &f->store, &f->err);
}

static void
write_file(const struct fixture *f, const char *name, const char *text)
{
	AUTO(auto_free) char *path = xasprintf("%s/%s", f->dir, name);
	AUTO(auto_close)
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	struct err e;

	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, text, strlen(text), &e), 0);
}

TEST(a_new_directory_gets_a_private_database)
{
	AUTO(auto_free) char *path = xasprintf("%s/deep/er", f->dir);
	AUTO(auto_free) char *file = xasprintf("%s/mcp-sandboxd.db", path);
	AUTO(auto_free) char *wal = xasprintf("%s-wal", file);
	struct store *s;
	struct stat st;

	assert_int_equal(store_open(f->base, path, NULL, &s, &f->err), 0);
	assert_int_equal(stat(file, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(stat(wal, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	store_close(s);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
}

TEST(a_second_server_is_told_that_the_directory_is_in_use)
{
	AUTO(auto_free)
	char *want =
	    xasprintf("directory %s is in use by another mcp-sandboxd", f->dir);
	struct store *second;
	pid_t pid;
	int status;

	fixture_open(f);
	assert_int_equal(
	    store_open(f->base, f->dir, NULL, &second, &f->err), ERR_CONFLICT);
	assert_string_equal(f->err.msg, want);
	pid = fork();
	if (pid == 0) {
		struct event_base *base = event_base_new();
		struct err e;
		int rc = store_open(base, f->dir, NULL, &second, &e);

		_exit(rc == ERR_CONFLICT && strcmp(e.msg, want) == 0 ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	fixture_reopen(f);
}

TEST(a_directory_that_cannot_be_written_is_named)
{
	AUTO(auto_free)
	char *want = xasprintf(
	    "directory %s cannot be written: Permission denied", f->dir);
	pid_t pid;
	int status;

	/* As somebody else: root may write anywhere. */
	assert_int_equal(chmod(f->dir, 0555), 0);
	pid = fork();
	if (pid == 0) {
		if (setgid(65534) != 0 || setuid(65534) != 0)
			_exit(2);
		if (try_open(f) == 0)
			_exit(3);
		_exit(strcmp(f->err.msg, want) == 0 ? 0 : 4);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* All but the database is for everybody. */
static void
open_dirs_to_all(const struct fixture *f)
{
	static const char *const names[] = {
	    "spool", "artifacts", "artifacts/tmp"};

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		AUTO(auto_free)
		char *path = xasprintf("%s/%s", f->dir, names[i]);

		if (chmod(path, 0777) != 0)
			_exit(5);
	}
}

TEST(a_database_that_cannot_be_written_is_named)
{
	AUTO(auto_free) char *path = xasprintf("%s/mcp-sandboxd.db", f->dir);
	AUTO(auto_free)
	char *want =
	    xasprintf("%s cannot be opened to write: Permission denied", path);
	pid_t pid;
	int status;

	fixture_open(f); /* made by root, as with sudo once, by mistake */
	fixture_close(f);
	assert_int_equal(chmod(f->dir, 0777), 0);
	pid = fork();
	if (pid == 0) {
		open_dirs_to_all(f);
		if (setgid(65534) != 0 || setuid(65534) != 0)
			_exit(2);
		if (try_open(f) == 0)
			_exit(3);
		_exit(strcmp(f->err.msg, want) == 0 ? 0 : 4);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

TEST(a_file_that_is_no_database_is_refused_and_left_alone)
{
	static const char text[] =
	    "this is a shopping list, and longer than one hundred bytes, so "
	    "that it can be told from an empty database: milk, bread, butter";

	write_file(f, "mcp-sandboxd.db", text);
	assert_int_equal(try_open(f), ERR_DAMAGED);
	assert_non_null(strstr(f->err.msg, "is no database"));
	assert_non_null(strstr(f->err.msg, f->dir));
	assert_true(fixture_file_has(f, "mcp-sandboxd.db", text));
}

TEST(a_link_in_place_of_the_database_is_not_followed)
{
	AUTO(auto_free) char *path = xasprintf("%s/mcp-sandboxd.db", f->dir);

	write_file(f, "elsewhere", "");
	assert_int_equal(symlink("elsewhere", path), 0);
	assert_int_equal(try_open(f), ERR_DB);
	assert_non_null(strstr(f->err.msg, "cannot be opened"));
}

TEST(a_newer_database_is_refused_and_left_alone)
{
	char back[64];

	fixture_open(f);
	fixture_close(f);
	(void)snprintf(back, sizeof(back), "PRAGMA user_version = %lld",
	    (long long)fixture_query(f, "PRAGMA user_version"));
	fixture_exec(f, "PRAGMA user_version = 4711");
	assert_int_equal(try_open(f), ERR_WRONG_STATE);
	assert_non_null(strstr(
	    f->err.msg, "was made by a newer mcp-sandboxd (schema 4711"));
	assert_int_equal(fixture_query(f, "PRAGMA user_version"), 4711);
	/* and the lock is free again */
	fixture_exec(f, back);
	fixture_open(f);
}

TEST(a_database_locked_by_another_program_is_refused)
{
	sqlite3 *h;

	fixture_open(f);
	fixture_close(f);
	h = fixture_sqlite(f);
	assert_int_equal(sqlite3_exec(h,
			     "PRAGMA journal_mode = DELETE;"
			     "BEGIN EXCLUSIVE",
			     NULL, NULL, NULL),
	    SQLITE_OK);
	assert_int_equal(try_open(f), ERR_DB);
	assert_non_null(strstr(f->err.msg, "is locked by another program"));
	assert_int_equal(sqlite3_close(h), SQLITE_OK);
	fixture_open(f);
}

static void
damaged_cb(const struct err *why, void *arg)
{
	struct result *r = arg;

	r->calls++;
	r->rc = why->code;
	(void)snprintf(r->msg, sizeof(r->msg), "%s", why->msg);
}

static void
ignore_run_cb(
    int rc, const struct store_run *row, const struct err *why, void *arg)
{
	(void)rc;
	(void)row;
	(void)why;
	(void)arg;
}

#define COMMITS 200

static unsigned int looks; /* of any thread */

int
statx(int fd, const char *path, int flags, unsigned int mask, struct statx *out)
{
	static int (*real)(
	    int, const char *, int, unsigned int, struct statx *);

	if (real == NULL)
		*(void **)&real = dlsym(RTLD_NEXT, "statx");
	(void)__atomic_add_fetch(&looks, 1, __ATOMIC_SEQ_CST);
	return real(fd, path, flags, mask, out);
}

static const char *const files[] = {
    "mcp-sandboxd.db", "mcp-sandboxd.db-wal", "mcp-sandboxd.db-shm"};

TEST(a_write_is_not_acknowledged_when_the_database_was_removed)
{
	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		AUTO(auto_free)
		char *path = xasprintf("%s/%s", f->dir, files[i]);
		struct result result = {0}, damaged = {0};
		struct store_sandbox s;

		fixture_open(f);
		fixture_put_sandbox(f, 1, "a");
		store_on_damaged(f->store, damaged_cb, &damaged);
		assert_int_equal(unlink(path), 0);
		fixture_sandbox(&s, 2, "b");
		store_sandbox_put(f->store, &s, result_cb, &result);
		store_sandbox_clear(&s);
		fixture_wait(f, &damaged.calls, 1);
		assert_int_equal(result.calls, 1);
		assert_int_equal(result.rc, ERR_DAMAGED);
		assert_non_null(strstr(result.msg, "was removed below"));
		assert_int_equal(damaged.rc, ERR_DAMAGED);
		assert_string_equal(damaged.msg, result.msg);
		assert_non_null(strstr(damaged.msg, path));
		fixture_close(f);
		world_remove_dir(f->dir);
		assert_int_equal(mkdir(f->dir, 0700), 0);
	}
}

static int
put_and_wait(struct fixture *f, uint64_t id, const char *identifier)
{
	struct result result = {0};
	struct store_sandbox s;

	fixture_sandbox(&s, id, identifier);
	fixture_put_row(f, &s, &result);
	return result.rc;
}

/* What has happened to the files before is no reason to look no more. */
TEST(what_is_put_back_may_be_removed_again)
{
	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		AUTO(auto_free)
		char *path = xasprintf("%s/%s", f->dir, files[i]);
		AUTO(auto_free) char *other = xasprintf("%s/other", f->dir);
		struct result damaged = {0};

		fixture_open(f);
		assert_int_equal(put_and_wait(f, 1, "a"), 0);
		assert_int_equal(link(path, other), 0);
		assert_int_equal(put_and_wait(f, 2, "b"), 0);
		assert_int_equal(unlink(other), 0);
		assert_int_equal(rename(path, other), 0);
		assert_int_equal(rename(other, path), 0);
		assert_int_equal(chmod(path, 0640), 0);
		assert_int_equal(put_and_wait(f, 3, "c"), 0);
		store_on_damaged(f->store, damaged_cb, &damaged);
		write_file(f, "other", "");
		assert_int_equal(rename(other, path), 0);
		assert_int_equal(put_and_wait(f, 4, "d"), ERR_DAMAGED);
		fixture_wait(f, &damaged.calls, 1);
		fixture_close(f);
		world_remove_dir(f->dir);
		assert_int_equal(mkdir(f->dir, 0700), 0);
	}
}

/* Where the kernel tells of changes: three for each commit, else. */
TEST(commits_do_not_look_for_files_of_which_nothing_was_told)
{
	int told = inotify_init1(IN_CLOEXEC);

	if (told == -1)
		skip();
	(void)close(told);
	fixture_open(f);
	looks = 0;
	for (uint64_t id = 1; id <= COMMITS; id++) {
		AUTO(auto_free)
		char *name = xasprintf("%llu", (unsigned long long)id);

		assert_int_equal(put_and_wait(f, id, name), 0);
	}
	assert_in_range(looks, 0, COMMITS);
}

TEST(a_replaced_database_is_noticed_without_a_write)
{
	AUTO(auto_free) char *path = xasprintf("%s/mcp-sandboxd.db", f->dir);
	AUTO(auto_free) char *other = xasprintf("%s/other", f->dir);
	struct result damaged = {0};

	fixture_open(f);
	write_file(f, "other", "");
	store_on_damaged(f->store, damaged_cb, &damaged);
	assert_int_equal(rename(other, path), 0);
	fixture_wait(f, &damaged.calls, 1);
	assert_non_null(strstr(damaged.msg, "was replaced below"));
}

TEST(damage_that_a_read_meets_is_told_once)
{
	AUTO(auto_free) char *path = xasprintf("%s/mcp-sandboxd.db", f->dir);
	struct result damaged = {0};
	struct store_run r;
	uint8_t junk[4096];
	int fd;

	fixture_open(f);
	fixture_insert_first(f, &r);
	fixture_reopen(f);
	store_on_damaged(f->store, damaged_cb, &damaged);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	memset(junk, 0x5a, sizeof(junk));
	for (off_t at = sizeof(junk); at < 40 * 4096; at += 4096)
		assert_int_equal(pwrite(fd, junk, sizeof(junk), at), 4096);
	assert_int_equal(close(fd), 0);
	for (int i = 0; i < 2; i++)
		store_run_get(f->store,
		    (struct tenant_id){STORE_TENANT_DEFAULT}, &r.uuid, 0,
		    ignore_run_cb, NULL);
	store_run_clear(&r);
	fixture_wait(f, &damaged.calls, 1);
	assert_int_equal(damaged.rc, ERR_DAMAGED);
	assert_non_null(strstr(damaged.msg, "is damaged"));
	(void)event_base_loop(f->base, EVLOOP_NONBLOCK);
	assert_int_equal(damaged.calls, 1);
}

TEST(close_commits_and_calls_nobody)
{
	struct result result = {0};
	struct store_sandbox s;

	fixture_open(f);
	for (uint64_t i = 1; i <= 50; i++) {
		char name[24];

		(void)snprintf(
		    name, sizeof(name), "s%llu", (unsigned long long)i);
		fixture_sandbox(&s, i, name);
		store_sandbox_put(f->store, &s, result_cb, &result);
		store_sandbox_clear(&s);
	}
	fixture_close(f);
	assert_int_equal(result.calls, 0);
	assert_int_equal(fixture_query(f, "SELECT count(*) FROM sandbox"), 50);
}

struct closing {
	struct fixture *f;
	unsigned int calls;
};

static void
closing_cb(int rc, const struct err *why, void *arg)
{
	struct closing *c = arg;

	(void)why;
	assert_int_equal(rc, 0);
	c->calls++;
	fixture_close(c->f);
}

TEST(close_may_be_called_from_a_callback)
{
	struct closing c = {.f = f};
	struct result after = {0};
	struct store_sandbox s;

	fixture_open(f);
	fixture_sandbox(&s, 1, "a");
	store_sandbox_put(f->store, &s, closing_cb, &c);
	for (int i = 0; i < 20; i++)
		store_sandbox_put(f->store, &s, result_cb, &after);
	store_sandbox_clear(&s);
	fixture_wait(f, &c.calls, 1);
	assert_null(f->store);
	assert_int_equal(after.calls, 0);
}

TEST(a_new_database_has_an_empty_snapshot)
{
	struct store_snapshot snap;

	fixture_open(f);
	assert_int_equal(store_snapshot(f->store, NULL, &snap, &f->err), 0);
	assert_int_equal(snap.next_sandbox, 1);
	assert_int_equal(snap.next_run, 1);
	assert_int_equal(snap.nsandboxes, 0);
	assert_int_equal(snap.nruns, 0);
	store_snapshot_clear(&snap);
}

static void
put_in_state(struct fixture *f, uint64_t id, const char *identifier,
    enum sandbox_word word)
{
	struct result result = {0};
	struct store_sandbox s;

	fixture_sandbox(&s, id, identifier);
	s.state = word;
	fixture_put_row(f, &s, &result);
	assert_string_equal(result.msg, "");
}

TEST(the_snapshot_has_what_lives_and_what_is_unfinished)
{
	struct result result = {0};
	struct store_snapshot snap;
	struct store_run r;

	fixture_open(f);
	put_in_state(f, 1, "a", SANDBOX_IS_REMOVED);
	put_in_state(f, 2, "a", SANDBOX_IS_REMOVING);
	put_in_state(f, 3, "a", SANDBOX_IS_READY);
	put_in_state(f, 4, "b", SANDBOX_IS_CREATING);
	put_in_state(f, 5, "c", SANDBOX_IS_LOST);
	for (uint64_t i = 1; i <= 3; i++) {
		fixture_run(&r, i, 3, "a");
		fixture_insert(f, &r);
		if (i == 2) {
			fixture_run_ended(&r, RUN_STATE_FAILED);
			fixture_end(f, &r);
		}
		store_run_clear(&r);
	}
	store_run_move(f->store, 3, 2, "c", result_cb, &result);
	fixture_wait(f, &result.calls, 1);
	fixture_reopen(f);
	assert_int_equal(store_snapshot(f->store, NULL, &snap, &f->err), 0);
	assert_int_equal(snap.next_sandbox, 6);
	assert_int_equal(snap.next_run, 4);
	assert_int_equal(snap.nsandboxes, 3);
	assert_int_equal(snap.sandboxes[0].state, SANDBOX_IS_REMOVING);
	assert_int_equal(snap.sandboxes[1].state, SANDBOX_IS_READY);
	assert_int_equal(snap.sandboxes[2].state, SANDBOX_IS_CREATING);
	assert_int_equal(snap.nruns, 2);
	assert_int_equal(snap.runs[0].id, 1);
	assert_int_equal(snap.runs[0].state, RUN_STATE_QUEUED);
	assert_memory_equal(snap.runs[0].spec, "SPEC", 4);
	assert_int_equal(snap.runs[0].ncommands, 1);
	assert_int_equal(snap.runs[1].id, 3);
	assert_int_equal(snap.runs[1].state, RUN_STATE_QUEUED);
	store_snapshot_clear(&snap);
}

TEST(a_full_queue_refuses_new_rows_but_never_an_end)
{
	struct result good = {0}, refused = {0}, ended = {0};
	struct store_stats stats;
	struct store_sandbox s;
	struct store_run r;
	sqlite3 *h;

	fixture_open(f);
	fixture_insert_first(f, &r);
	h = fixture_sqlite(f); /* holds the writer up */
	assert_int_equal(
	    sqlite3_exec(h, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
	fixture_sandbox(&s, 1, "a");
	do {
		store_sandbox_put(f->store, &s, result_cb, &good);
		store_stats(f->store, &stats);
	} while (stats.queue < STORE_QUEUE_MAX);
	store_sandbox_put(f->store, &s, result_cb, &refused);
	store_run_begin(f->store, &r, NULL, STORE_NOW, result_cb, &refused);
	fixture_run_ended(&r, RUN_STATE_FAILED);
	store_run_end(f->store, &r, NULL, result_cb, &ended);
	assert_int_equal(
	    sqlite3_exec(h, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_close(h), SQLITE_OK);
	fixture_wait(f, &ended.calls, 1);
	assert_int_equal(ended.rc, 0);
	assert_int_equal(refused.calls, 2); /* in their order */
	assert_int_equal(refused.rc, ERR_LIMIT);
	assert_true(good.calls >= STORE_QUEUE_MAX);
	assert_int_equal(good.rc, 0);
	store_sandbox_clear(&s);
	store_run_clear(&r);
}

/* ---- room */

static uint64_t
owed(const struct fixture *f)
{
	struct store_room room;

	store_room(f->store, &room);
	return room.owed_bytes;
}

TEST(what_the_wal_holds_is_owed_until_the_database_has_it)
{
	uint64_t id = 0;

	fixture_open(f);
	do {
		fixture_put_sandbox(f, ++id, "a");
	} while (owed(f) == 0 && id < 100);
	assert_true(owed(f) >= 4096);
	for (int i = 0; owed(f) > 0; i++) {
		assert_true(i < FIXTURE_PATIENCE_S * 100);
		(void)usleep(10000);
	}
}

TEST_MAIN(fixture_setup_closed, fixture_teardown)
