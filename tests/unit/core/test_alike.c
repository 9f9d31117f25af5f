#include "tests/unit/core/core_ground.h"

#include <dlfcn.h>
#include <limits.h>

#include "common/uuid.h"
#include "supervisor/core/download.h"
#include "supervisor/core/follow.h"
#include "supervisor/core/lookup.h"

/*
 * The id of another tenant's run makes the same work as one that nobody has:
 * so many statements, so many steps of SQLite's machine, so many pages looked
 * at.  tests/bench/alike measures the time.
 */

/* ---- work, as SQLite is given it, on whatever thread */

struct work {
	unsigned long statements, steps, pages;
};
static struct work work;
/* The index of runs goes on beside the questions (store/history_index.h): what
 * its thread does once it has opened its file is not of them. */
static __thread bool is_of_index;
static bool has_index;

static unsigned long
pages_of(sqlite3 *db)
{
	int hits = 0, misses = 0, most;

	(void)sqlite3_db_status(db, SQLITE_DBSTATUS_CACHE_HIT, &hits, &most, 1);
	(void)sqlite3_db_status(
	    db, SQLITE_DBSTATUS_CACHE_MISS, &misses, &most, 1);
	return (unsigned long)hits + (unsigned long)misses;
}

#define ADD(sum, n) (void)__atomic_add_fetch(&(sum), n, __ATOMIC_SEQ_CST)

static void
look_whose(sqlite3 *db)
{
	const char *file = sqlite3_db_filename(db, "main");

	if (is_of_index || file == NULL || strstr(file, "history.db") == NULL)
		return;
	is_of_index = true;
	__atomic_store_n(&has_index, true, __ATOMIC_SEQ_CST);
}

int
sqlite3_step(sqlite3_stmt *st)
{
	static int (*step)(sqlite3_stmt *);
	bool is_first = sqlite3_stmt_busy(st) == 0;
	int rc;

	if (step == NULL)
		*(void **)&step = dlsym(RTLD_NEXT, "sqlite3_step");
	look_whose(sqlite3_db_handle(st));
	if (is_of_index)
		return step(st);
	rc = step(st);
	ADD(work.statements, is_first);
	ADD(work.steps,
	    (unsigned long)sqlite3_stmt_status(
		st, SQLITE_STMTSTATUS_VM_STEP, 1));
	ADD(work.pages, pages_of(sqlite3_db_handle(st)));
	return rc;
}

/* ---- questions */

static unsigned int answers;
static int answer; /* the last */

static void
answered(int rc)
{
	answers++;
	answer = rc;
}

static void
found_cb(int rc, const struct lookup_found *f, const struct err *why, void *arg)
{
	(void)f;
	(void)why;
	(void)arg;
	answered(rc);
}

static void
ask_for_its_state(struct principal *who, const struct uuid *run)
{
	struct lookup *l = lookup_open(g.core, who, run, 0, found_cb, NULL);

	ground_wait_until(answers == 1);
	lookup_close(l);
}

static void
follow_on_open(struct follow *f, int rc, const struct err *why, void *arg)
{
	(void)f;
	(void)why;
	(void)arg;
	answered(rc);
}

static void
ask_for_its_events(struct principal *who, const struct uuid *run)
{
	static const struct follow_ops ops = {.on_open = follow_on_open};
	struct follow *f =
	    follow_open(g.core, who, run, &(struct log_at){40, 0}, &ops, NULL);

	ground_wait_until(answers == 1);
	follow_close(f);
}

static void
download_opened_cb(int rc, struct download *d, const struct err *why, void *arg)
{
	(void)d;
	(void)why;
	(void)arg;
	answered(rc);
}

static void
ask_for_its_artifact(struct principal *who, const struct uuid *run)
{
	char id[UUID_TEXT_LEN + 1];

	uuid_format(run, id);
	download_open(
	    g.core, who, "box", id, "left.txt", download_opened_cb, NULL);
	ground_wait_until(answers == 1);
}

static void
deleted_cb(int rc, const struct err *why, void *arg)
{
	(void)why;
	(void)arg;
	answered(rc);
}

static void
ask_for_its_end(struct principal *who, const struct uuid *run)
{
	struct err e;

	assert_int_equal(
	    core_delete_run(g.core, who, run, deleted_cb, NULL, &e), 0);
	ground_wait_until(answers == 1);
}

static const struct question {
	const char *name;
	void (*ask)(struct principal *who, const struct uuid *run);
} questions[] = {
    {"state", ask_for_its_state},
    {"events", ask_for_its_events},
    {"artifact", ask_for_its_artifact},
    {"delete", ask_for_its_end},
};

static unsigned long
smaller(unsigned long a, unsigned long b)
{
	return a < b ? a : b;
}

/* The least of several times: what else goes on only adds. */
static struct work
work_of(const struct question *q, struct principal *who, const struct uuid *run,
    int want)
{
	struct work least = {ULONG_MAX, ULONG_MAX, ULONG_MAX};

	for (int i = 0; i < 8; i++) {
		work = (struct work){0};
		answers = 0;
		q->ask(who, run);
		assert_int_equal(answer, want);
		least.statements = smaller(least.statements, work.statements);
		least.steps = smaller(least.steps, work.steps);
		least.pages = smaller(least.pages, work.pages);
	}
	return least;
}

/* ---- runs of the default tenant, and who else asks */

static struct principal *stranger;

static struct run *
begin_run(const char *told_line)
{
	struct sandbox *sb = ground_find("box");
	struct run *r;

	r = ground_run(sb != NULL ? sb : ground_open("box"), false);
	if (sb == NULL)
		say_ready(0, 1);
	expect_told(0, told_line);
	say_begun(0, r->row.id);
	ground_wait_until(r->recorded == RUN_IS_RECORDED);
	return r;
}

static void
leave_artifact(void)
{
	sqlite3 *db = ground_lock();

	assert_int_equal(
	    sqlite3_exec(db,
		"INSERT INTO artifact (run, path, tenant, identifier, size,"
		" mode, mtime_ns, sha256) SELECT id, 'left.txt', tenant,"
		" identifier, 1, 420, 1, zeroblob(32) FROM run; COMMIT",
		NULL, NULL, NULL),
	    SQLITE_OK);
	(void)sqlite3_close(db);
}

static void
assert_alike(const struct question *q, const char *which, const struct run *r)
{
	struct work foreign, unknown;
	struct uuid nobodys;

	uuid_random(&nobodys);
	foreign = work_of(q, stranger, &r->row.uuid, ERR_NOTFOUND);
	unknown = work_of(q, stranger, &nobodys, ERR_NOTFOUND);
	if (foreign.statements != unknown.statements ||
	    foreign.steps != unknown.steps || foreign.pages != unknown.pages)
		fail_msg("%s of %s: %lu statements, %lu steps, %lu pages; of "
			 "none: %lu, %lu, %lu",
		    q->name, which, foreign.statements, foreign.steps,
		    foreign.pages, unknown.statements, unknown.steps,
		    unknown.pages);
	assert_true(
	    foreign.statements > 0 && foreign.steps > 0 && foreign.pages > 0);
}

TEST(a_foreign_id_makes_the_work_of_an_unknown_one)
{
	struct run *ended = begin_run("start 1"), *running;

	say_command_ended(0, 1, 0);
	say_ended(0, 1, RUNLOG_EXIT);
	ground_wait_over(ended);
	ground_wait_until(__atomic_load_n(&has_index, __ATOMIC_SEQ_CST));
	running = begin_run("start 2");
	leave_artifact();
	for (size_t i = 0; i < ARRAY_LEN(questions); i++) {
		assert_alike(&questions[i], "a run that ended", ended);
		assert_alike(&questions[i], "a run that goes on", running);
	}
}

/* So that it is known to be seen: the own run is read. */
TEST(more_work_is_noticed)
{
	struct run *r = begin_run("start 1");
	struct work own, foreign;
	struct uuid id;

	say_command_ended(0, 1, 0);
	say_ended(0, 1, RUNLOG_EXIT);
	ground_wait_over(r);
	ground_wait_until(__atomic_load_n(&has_index, __ATOMIC_SEQ_CST));
	id = r->row.uuid;
	run_unref(r);
	foreign = work_of(&questions[0], stranger, &id, ERR_NOTFOUND);
	ground_wait_until(
	    runs_find_uuid(core_runs(g.core), g.who->tenant, &id) == NULL);
	own = work_of(&questions[0], g.who, &id, 0);
	assert_true(own.statements > foreign.statements);
	assert_true(own.steps > foreign.steps);
	assert_true(own.pages > foreign.pages);
}

static int
set_up(void **state)
{
	has_index = false;
	stranger = principal_new(
	    (struct tenant_id){2}, "other", "test", PRINCIPAL_USER);
	return ground_set_up(state);
}

static int
tear_down(void **state)
{
	principal_unref(stranger);
	return ground_tear_down(state);
}

TEST_MAIN(set_up, tear_down)
