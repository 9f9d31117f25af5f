/* fixture.h - a store in a directory of its own, and rows to put into it. */
#ifndef TESTS_STORE_FIXTURE_H
#define TESTS_STORE_FIXTURE_H

#include <sys/stat.h>
#include <sys/wait.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>

#include <event2/event.h>
#include <sqlite3.h>

#include "common/fd.h"
#include "common/uuid.h"
#include "common/xmalloc.h"
#include "supervisor/store/store.h"

#define TEST_STATE struct fixture *f
#include "tests/unit/test.h"
#include "tests/unit/world.h"

#define FIXTURE_PATIENCE_S 60

struct fixture {
	char dir[64];
	struct event_base *base;
	struct store *store;
	struct err err;
};

struct result {
	unsigned int calls;
	int rc; /* of the last */
	char msg[ERR_TEXT_MAX];
};

static inline void
result_cb(int rc, const struct err *why, void *arg)
{
	struct result *r = arg;

	assert_int_equal(rc == 0, why == NULL);
	r->calls++;
	r->rc = rc;
	(void)snprintf(
	    r->msg, sizeof(r->msg), "%s", why == NULL ? "" : why->msg);
}

static inline void
fixture_late_cb(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	*(bool *)arg = true;
}

/* fixture_wait - run the loop until *calls is n */
static inline void
fixture_wait(struct fixture *f, const unsigned int *calls, unsigned int n)
{
	const struct timeval patience = {.tv_sec = FIXTURE_PATIENCE_S};
	bool late = false;
	struct event *ev = evtimer_new(f->base, fixture_late_cb, &late);

	assert_non_null(ev);
	assert_int_equal(event_add(ev, &patience), 0);
	while (*calls < n && !late)
		assert_int_equal(event_base_loop(f->base, EVLOOP_ONCE), 0);
	event_free(ev);
	assert_false(late);
	assert_int_equal(*calls, n);
}

static inline void
fixture_open(struct fixture *f)
{
	int rc = store_open(f->base, f->dir, NULL, &f->store, &f->err);

	if (rc != 0)
		fail_msg("store_open: %s", f->err.msg);
}

static inline void
fixture_close(struct fixture *f)
{
	store_close(f->store);
	f->store = NULL;
}

static inline void
fixture_reopen(struct fixture *f)
{
	fixture_close(f);
	fixture_open(f);
}

static inline struct fixture *
fixture_new(const char *parent)
{
	struct fixture *f = xcalloc(1, sizeof(*f));

	(void)snprintf(f->dir, sizeof(f->dir), "%s/store-XXXXXX", parent);
	if (mkdtemp(f->dir) == NULL)
		fail_msg("mkdtemp %s: %s", f->dir, strerror(errno));
	f->base = event_base_new();
	assert_non_null(f->base);
	return f;
}

static inline void
fixture_free(struct fixture *f)
{
	store_close(f->store);
	event_base_free(f->base);
	world_remove_dir(f->dir);
	free(f);
}

static inline int
fixture_setup(void **state)
{
	struct fixture *f = fixture_new("/tmp");

	fixture_open(f);
	*state = f;
	return 0;
}

static inline int
fixture_setup_closed(void **state)
{
	*state = fixture_new("/tmp");
	return 0;
}

static inline int
fixture_teardown(void **state)
{
	fixture_free(*state);
	return 0;
}

/* A second connection, as an operator with the sqlite3 command has it. */
static inline sqlite3 *
fixture_sqlite(const struct fixture *f)
{
	AUTO(auto_free) char *path = xasprintf("%s/mcp-sandboxd.db", f->dir);
	sqlite3 *h;

	assert_int_equal(sqlite3_open(path, &h), SQLITE_OK);
	assert_int_equal(sqlite3_busy_timeout(h, 10000), SQLITE_OK);
	return h;
}

static inline int64_t
fixture_query(const struct fixture *f, const char *sql)
{
	sqlite3 *h = fixture_sqlite(f);
	sqlite3_stmt *st;
	int64_t n;

	assert_int_equal(sqlite3_prepare_v2(h, sql, -1, &st, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(st), SQLITE_ROW);
	n = sqlite3_column_int64(st, 0);
	assert_int_equal(sqlite3_finalize(st), SQLITE_OK);
	assert_int_equal(sqlite3_close(h), SQLITE_OK);
	return n;
}

static inline void
fixture_exec(const struct fixture *f, const char *sql)
{
	sqlite3 *h = fixture_sqlite(f);

	assert_int_equal(sqlite3_exec(h, sql, NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_close(h), SQLITE_OK);
}

static inline bool
fixture_file_has(const struct fixture *f, const char *name, const char *text)
{
	AUTO(auto_free) char *path = xasprintf("%s/%s", f->dir, name);
	AUTO(auto_free) char *data = NULL;
	size_t n;
	struct err e;

	if (access(path, F_OK) != 0)
		return false;
	assert_int_equal(fd_read_file(path, 1u << 30, &data, &n, &e), 0);
	return memmem(data, n, text, strlen(text)) != NULL;
}

/* Rows; clear them with store_..._clear. */

static inline void
fixture_sandbox(struct store_sandbox *s, uint64_t id, const char *identifier)
{
	*s = (struct store_sandbox){.id = id,
	    .tenant = STORE_TENANT_DEFAULT,
	    .identifier = xstrdup(identifier),
	    .generation = 1,
	    .name = xasprintf("mcp-%llu", (unsigned long long)id),
	    .container_id = xstrdup(""),
	    .image = xstrdup("sandbox:latest"),
	    .state = SANDBOX_IS_CREATING,
	    .origin = xstrdup("run"),
	    .memory_bytes = 1u << 30,
	    .nano_cpus = 1000000000,
	    .pids = 256,
	    .ttl_s = 3600,
	    .created_ms = 1000 + (int64_t)id,
	    .expires_ms = 3601000};
	uuid_random(&s->uuid);
}

static inline void
fixture_run(
    struct store_run *r, uint64_t id, uint64_t sandbox, const char *identifier)
{
	*r = (struct store_run){.id = id,
	    .tenant = STORE_TENANT_DEFAULT,
	    .sandbox = sandbox,
	    .identifier = xstrdup(identifier),
	    .sandbox_name = xasprintf("mcp-%llu", (unsigned long long)sandbox),
	    .container_id = xstrdup(""),
	    .tool = xstrdup("run_sandbox"),
	    .state = RUN_STATE_QUEUED,
	    .error = xstrdup(""),
	    .artifacts_error = xstrdup(""),
	    .created_ms = 5000 + (int64_t)id,
	    .stdout_max = 1048576,
	    .stderr_max = 1048576,
	    .spec = xmemdup("SPEC", 4),
	    .spec_len = 4,
	    .commands = xcalloc(1, sizeof(struct store_command)),
	    .ncommands = 1};
	r->commands[0] = (struct store_command){.shell = xstrdup("true"),
	    .argv_json = xstrdup(""),
	    .cwd = xstrdup("/workspace"),
	    .env_json = xstrdup("{\"A\":\"***\"}"),
	    .status = COMMAND_QUEUED,
	    .error = xstrdup(""),
	    .exit_code = -1,
	    .timeout_ms = 120000};
	uuid_random(&r->uuid);
}

static inline void
fixture_set(char **text, const char *value)
{
	free(*text);
	*text = xstrdup(value);
}

/* The end of a run as fixture_run made it. */
static inline void
fixture_run_ended(struct store_run *r, enum run_state state)
{
	r->state = state;
	r->end_reason = RUNLOG_EXIT;
	r->started_ms = r->created_ms + 1;
	r->ended_ms = r->created_ms + 2;
	r->commands[0].status = state == RUN_STATE_COMPLETED ?
	    COMMAND_COMPLETED :
	    state == RUN_STATE_CANCELED ? COMMAND_CANCELED :
					  COMMAND_FAILED;
	r->commands[0].end_reason = RUNLOG_EXIT;
	r->commands[0].exit_code = 0;
	r->commands[0].started_ms = r->started_ms;
	r->commands[0].ended_ms = r->ended_ms;
}

static inline void
fixture_run_artifact(struct store_run *r, const char *path, uint8_t digest)
{
	struct store_artifact *a;

	r->artifacts = xreallocarray(
	    r->artifacts, r->nartifacts + 1, sizeof(*r->artifacts));
	a = &r->artifacts[r->nartifacts++];
	*a = (struct store_artifact){.path = xstrdup(path),
	    .size = 100,
	    .mode = 0644,
	    .mtime_ns = 1700000000123456789};
	memset(a->sha256, digest, sizeof(a->sha256));
}

/* fixture_put_row - it is cleared */
static inline void
fixture_put_row(
    struct fixture *f, struct store_sandbox *s, struct result *result)
{
	store_sandbox_put(f->store, s, result_cb, result);
	store_sandbox_clear(s);
	fixture_wait(f, &result->calls, 1);
}

/* Writes that must succeed. */

static inline void
fixture_put_sandbox(struct fixture *f, uint64_t id, const char *identifier)
{
	struct result result = {0};
	struct store_sandbox s;

	fixture_sandbox(&s, id, identifier);
	fixture_put_row(f, &s, &result);
	assert_string_equal(result.msg, "");
}

static inline void
fixture_insert(struct fixture *f, const struct store_run *r)
{
	struct result result = {0};

	store_run_begin(f->store, r, NULL, STORE_NOW, result_cb, &result);
	fixture_wait(f, &result.calls, 1);
	assert_string_equal(result.msg, "");
}

/* fixture_insert_first - run 1, of a sandbox that is new, too */
static inline void
fixture_insert_first(struct fixture *f, struct store_run *r)
{
	fixture_put_sandbox(f, 1, "a");
	fixture_run(r, 1, 1, "a");
	fixture_insert(f, r);
}

static inline void
fixture_end_with(
    struct fixture *f, const struct store_run *r, struct store_log *log)
{
	struct result result = {0};

	store_run_end(f->store, r, log, result_cb, &result);
	fixture_wait(f, &result.calls, 1);
	assert_string_equal(result.msg, "");
}

static inline void
fixture_end(struct fixture *f, const struct store_run *r)
{
	fixture_end_with(f, r, NULL);
}

/* fixture_setup_two - with another tenant, 2, and a sandbox */
static inline int
fixture_setup_two(void **state)
{
	(void)fixture_setup(state);
	fixture_exec(*state,
	    "INSERT INTO tenant (id, name, created_ms)"
	    " VALUES (2, 'other', 0)");
	fixture_put_sandbox(*state, 1, "a");
	return 0;
}

/* A run, as it is read. */

struct got_run {
	unsigned int calls;
	int rc;
	char msg[ERR_TEXT_MAX];
	struct store_run row;
};

static inline void
got_run_cb(
    int rc, const struct store_run *row, const struct err *why, void *arg)
{
	struct got_run *g = arg;

	assert_int_equal(rc == 0, row != NULL);
	g->calls++;
	g->rc = rc;
	if (row != NULL)
		store_run_copy(&g->row, row);
	else
		(void)snprintf(g->msg, sizeof(g->msg), "%s", why->msg);
}

static inline void
fixture_get(struct fixture *f, uint64_t tenant, const struct uuid *uuid,
    struct got_run *g)
{
	memset(g, 0, sizeof(*g));
	store_run_get(
	    f->store, (struct tenant_id){tenant}, uuid, 0, got_run_cb, g);
	fixture_wait(f, &g->calls, 1);
}

/* Logs. */

static inline struct store_log *
fixture_log_open(struct fixture *f, const struct store_run *r)
{
	struct store_log *log;

	if (store_log_open(f->store, &r->uuid, &log, &f->err) != 0)
		fail_msg("store_log_open: %s", f->err.msg);
	return log;
}

/* fixture_log_fill - so many more bytes, all c */
static inline void
fixture_log_fill(struct store_log *log, struct store_run *r, char c, size_t n)
{
	AUTO(auto_free) char *p = xmalloc(n + 1);
	struct err e;

	memset(p, c, n);
	assert_int_equal(fd_write_all(store_log_fd(log), p, n, &e), 0);
	r->spool_bytes += n;
}

/* fixture_files - how many files there are below a directory of the store's */
static inline unsigned int
fixture_files(const struct fixture *f, const char *below)
{
	AUTO(auto_free) char *path = xasprintf("%s/%s", f->dir, below);
	DIR *dir = opendir(path);
	const struct dirent *entry;
	unsigned int n = 0;

	if (dir == NULL)
		return 1; /* it is one itself */
	while ((entry = readdir(dir)) != NULL) {
		AUTO(auto_free) char *sub = NULL;

		if (strcmp(entry->d_name, ".") == 0 ||
		    strcmp(entry->d_name, "..") == 0)
			continue;
		sub = xasprintf("%s/%s", below, entry->d_name);
		n += fixture_files(f, sub);
	}
	(void)closedir(dir);
	return n;
}

/* fixture_wait_files - until there are so many; what removes them tells
 * nobody */
static inline void
fixture_wait_files(struct fixture *f, const char *below, unsigned int n)
{
	for (int i = 0; i < FIXTURE_PATIENCE_S * 100; i++) {
		assert_true(event_base_loop(f->base, EVLOOP_NONBLOCK) >= 0);
		if (fixture_files(f, below) == n)
			return;
		(void)usleep(10000);
	}
	fail_msg("%s: %u files, want %u", below, fixture_files(f, below), n);
}

#endif
