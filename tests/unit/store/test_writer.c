#include "tests/unit/store/fixture.h"

#include <semaphore.h>
#include <sys/syscall.h>

#include "common/embed.h"
#include "supervisor/store/db.h"
#include "supervisor/store/done.h"
#include "supervisor/store/migrate.h"
#include "supervisor/store/writer.h"

#undef TEST_STATE
#define TEST_STATE struct rig *r

/* The writer alone, with ops of the test's own. */

static unsigned int syncs;

/* SQLite's own calls of it end here, too. */
int
fdatasync(int fd)
{
	(void)__atomic_add_fetch(&syncs, 1, __ATOMIC_SEQ_CST);
	return (int)syscall(SYS_fdatasync, fd);
}

static int later_s; /* what all clocks are ahead by */

int
clock_gettime(clockid_t id, struct timespec *t)
{
	int rc = (int)syscall(SYS_clock_gettime, id, t);

	t->tv_sec += __atomic_load_n(&later_s, __ATOMIC_SEQ_CST);
	return rc;
}

struct rig {
	struct fixture *f;
	struct done *done;
	struct writer *writer;
	sem_t entered; /* by a gate op, on the writer's thread */
	sem_t leave;
	unsigned int delivered;
	unsigned int released;
	uint64_t order[4096];
	int rc[4096];
	char msg[ERR_TEXT_MAX]; /* of the last failure */
};

struct test_op {
	struct op op;
	struct rig *rig;
	uint64_t number;
};

static int
insert(struct db *db, uint64_t number, struct err *e)
{
	AUTO(auto_free)
	char *sql = xasprintf("INSERT INTO event (tenant, seq, at_ms, kind,"
			      " identifier, data) SELECT %d,"
			      " coalesce(max(seq), 0) + 1, %llu, 'kind', '', ''"
			      " FROM event",
	    STORE_TENANT_DEFAULT, (unsigned long long)number);

	return db_exec_text(db, sql, e);
}

static int
good_run(struct db *db, struct op *op, struct err *e)
{
	return insert(db, ((struct test_op *)op)->number, e);
}

static int
gate_run(struct db *db, struct op *op, struct err *e)
{
	struct rig *r = ((struct test_op *)op)->rig;

	(void)sem_post(&r->entered);
	while (sem_wait(&r->leave) == -1)
		;
	return insert(db, ((struct test_op *)op)->number, e);
}

static int
refusing_run(struct db *db, struct op *op, struct err *e)
{
	if (insert(db, ((struct test_op *)op)->number, e) != 0)
		return e->code;
	return err_set(e, ERR_WRONG_STATE, "not today");
}

/* Writes something, then breaks a foreign key. */
static int
constraint_run(struct db *db, struct op *op, struct err *e)
{
	struct db_call c;

	if (insert(db, ((struct test_op *)op)->number, e) != 0)
		return e->code;
	db_call_init(&c, db, DB_SPEC_INSERT);
	db_put_uint(&c, 12345);
	db_put_blob(&c, "x", 1);
	return db_call_run(&c, e);
}

/* Ends the transaction behind the writer's back, as SQLite does when the disk
 * fails: what the writer does then fails, too. */
static int
dooming_run(struct db *db, struct op *op, struct err *e)
{
	(void)op;
	return db_exec(db, DB_ROLLBACK, e);
}

static void
test_op_deliver(struct op *op)
{
	struct test_op *t = (struct test_op *)op;
	struct rig *r = t->rig;

	r->order[r->delivered] = t->number;
	r->rc[r->delivered] = op->rc;
	if (op->rc != 0)
		(void)snprintf(r->msg, sizeof(r->msg), "%s", op->why.msg);
	r->delivered++;
}

static void
test_op_release(struct op *op)
{
	((struct test_op *)op)->rig->released++;
	free(op);
}

typedef int (*op_run)(struct db *, struct op *, struct err *);

static struct op *
make_op(struct rig *r, op_run run, uint64_t number)
{
	struct test_op *t = xcalloc(1, sizeof(*t));

	t->op.run = run;
	t->op.deliver = test_op_deliver;
	t->op.release = test_op_release;
	t->rig = r;
	t->number = number;
	return &t->op;
}

static void
submit(struct rig *r, op_run run, uint64_t number)
{
	writer_submit(r->writer, make_op(r, run, number));
}

/* Until gate_open, all that is submitted waits behind the gate. */
static void
gate_shut(struct rig *r)
{
	submit(r, gate_run, 0);
	while (sem_wait(&r->entered) == -1)
		;
}

static void
gate_open(struct rig *r)
{
	(void)sem_post(&r->leave);
}

static int
rig_setup(void **state)
{
	struct rig *r = xcalloc(1, sizeof(*r));
	struct db *db;
	struct err e;

	r->f = fixture_new("/tmp");
	assert_int_equal(db_open(r->f->dir, DB_WRITER, &db, &e), 0);
	assert_int_equal(db_use_wal(db, &e), 0);
	assert_int_equal(migrate_run(db, embed_sql, NULL, &e), 0);
	assert_int_equal(done_new(r->f->base, &r->done, &e), 0);
	assert_int_equal(
	    writer_start(r->f->base, db, NULL, r->done, &r->writer, &e), 0);
	assert_int_equal(sem_init(&r->entered, 0, 0), 0);
	assert_int_equal(sem_init(&r->leave, 0, 0), 0);
	*state = r;
	return 0;
}

static int
rig_teardown(void **state)
{
	struct rig *r = *state;

	if (r->writer != NULL)
		writer_stop(r->writer);
	done_free(r->done);
	(void)sem_destroy(&r->entered);
	(void)sem_destroy(&r->leave);
	fixture_free(r->f);
	free(r);
	later_s = 0;
	return 0;
}

static int64_t
rows(struct rig *r)
{
	return fixture_query(r->f, "SELECT count(*) FROM event");
}

TEST(all_that_waits_makes_one_commit)
{
	struct store_stats before, after;
	unsigned int synced;

	gate_shut(r);
	for (uint64_t i = 1; i <= 500; i++)
		submit(r, good_run, i);
	writer_stats(r->writer, &before);
	assert_int_equal(before.queue, 500);
	synced = __atomic_load_n(&syncs, __ATOMIC_SEQ_CST);
	gate_open(r);
	fixture_wait(r->f, &r->delivered, 501);
	writer_stats(r->writer, &after);
	assert_int_equal(after.commits - before.commits, 2); /* gate, rest */
	assert_int_equal(after.writes - before.writes, 501);
	assert_int_equal(after.queue, 0);
	/* The two commits, each on disk; more only if a checkpoint began. */
	assert_true(__atomic_load_n(&syncs, __ATOMIC_SEQ_CST) - synced >= 2);
	assert_true(__atomic_load_n(&syncs, __ATOMIC_SEQ_CST) - synced < 50);
	assert_int_equal(rows(r), 501);
}

TEST(a_batch_has_a_limit)
{
	struct store_stats s;

	gate_shut(r);
	for (uint64_t i = 1; i <= WRITER_BATCH_MAX + 1; i++)
		submit(r, good_run, i);
	gate_open(r);
	fixture_wait(r->f, &r->delivered, WRITER_BATCH_MAX + 2);
	writer_stats(r->writer, &s);
	assert_int_equal(s.commits, 3);
}

TEST(one_alone_is_committed_at_once_and_synced)
{
	struct store_stats s;

	for (unsigned int i = 1; i <= 20; i++) {
		unsigned int synced = __atomic_load_n(&syncs, __ATOMIC_SEQ_CST);

		submit(r, good_run, i);
		fixture_wait(r->f, &r->delivered, i);
		assert_true(__atomic_load_n(&syncs, __ATOMIC_SEQ_CST) > synced);
	}
	writer_stats(r->writer, &s);
	assert_int_equal(s.commits, 20);
}

TEST(delivery_is_in_the_order_of_submission)
{
	for (uint64_t i = 0; i < 2000; i++)
		submit(r, i % 7 == 3 ? refusing_run : good_run, i);
	fixture_wait(r->f, &r->delivered, 2000);
	for (uint64_t i = 0; i < 2000; i++) {
		assert_int_equal(r->order[i], i);
		assert_int_equal(r->rc[i], i % 7 == 3 ? ERR_WRONG_STATE : 0);
	}
	assert_int_equal(r->released, 2000);
}

static void
submit_again(struct rig *r, op_run run, uint64_t number)
{
	struct op *op = make_op(r, run, number);

	op->again = true;
	writer_submit(r->writer, op);
}

TEST(one_that_fails_among_those_that_can_run_again)
{
	struct store_stats s;

	gate_shut(r);
	submit_again(r, good_run, 1);
	submit_again(r, constraint_run, 2);
	submit_again(r, refusing_run, 3);
	submit_again(r, good_run, 4);
	gate_open(r);
	fixture_wait(r->f, &r->delivered, 5);
	assert_int_equal(r->rc[1], 0);
	assert_int_equal(r->rc[2], ERR_INVAL);
	assert_int_equal(r->rc[3], ERR_WRONG_STATE);
	assert_int_equal(r->rc[4], 0);
	assert_int_equal(rows(r), 3);
	writer_stats(r->writer, &s);
	assert_int_equal(s.commits, 2);
	assert_int_equal(s.failures, 2);
}

TEST(a_lost_transaction_of_those_that_can_run_again)
{
	gate_shut(r);
	submit_again(r, good_run, 1);
	submit_again(r, dooming_run, 2);
	submit_again(r, good_run, 3);
	gate_open(r);
	fixture_wait(r->f, &r->delivered, 4);
	assert_int_equal(r->rc[1], ERR_DB);
	assert_int_equal(r->rc[2], ERR_DB);
	assert_int_equal(r->rc[3], ERR_DB);
	assert_int_equal(rows(r), 1);
	submit_again(r, good_run, 4);
	fixture_wait(r->f, &r->delivered, 5);
	assert_int_equal(r->rc[4], 0);
}

TEST(one_that_fails_is_undone_alone)
{
	struct store_stats s;

	gate_shut(r);
	submit(r, good_run, 1);
	submit(r, constraint_run, 2);
	submit(r, refusing_run, 3);
	submit(r, good_run, 4);
	gate_open(r);
	fixture_wait(r->f, &r->delivered, 5);
	assert_int_equal(r->rc[1], 0);
	assert_int_equal(r->rc[2], ERR_INVAL);
	assert_int_equal(r->rc[3], ERR_WRONG_STATE);
	assert_int_equal(r->rc[4], 0);
	assert_string_equal(r->msg, "not today");
	assert_int_equal(rows(r), 3);
	writer_stats(r->writer, &s);
	assert_int_equal(s.commits, 2);
	assert_int_equal(s.failures, 2);
	assert_int_equal(s.last_error_ms, 0); /* not the database's fault */
}

TEST(a_lost_transaction_fails_all_of_it_and_nothing_after)
{
	struct store_stats s;

	gate_shut(r);
	submit(r, good_run, 1);
	submit(r, refusing_run, 2);
	submit(r, dooming_run, 3);
	submit(r, good_run, 4);
	gate_open(r);
	fixture_wait(r->f, &r->delivered, 5);
	assert_int_equal(r->rc[0], 0); /* the gate had its own */
	assert_int_equal(r->rc[1], ERR_DB);
	assert_int_equal(r->rc[2], ERR_WRONG_STATE); /* its own reason */
	assert_int_equal(r->rc[3], ERR_DB);
	assert_int_equal(r->rc[4], ERR_DB);
	assert_int_equal(rows(r), 1);
	writer_stats(r->writer, &s);
	assert_int_equal(s.failures, 4);
	assert_true(s.last_error_ms > 0);
	submit(r, good_run, 5);
	fixture_wait(r->f, &r->delivered, 6);
	assert_int_equal(r->rc[5], 0);
	assert_int_equal(rows(r), 2);
}

TEST(one_that_was_refused_before_is_only_delivered)
{
	struct test_op *t = xcalloc(1, sizeof(*t));

	t->op.rc = ERR_LIMIT;
	t->op.deliver = test_op_deliver;
	t->op.release = test_op_release;
	t->rig = r;
	gate_shut(r);
	submit(r, good_run, 1);
	writer_submit(r->writer, &t->op);
	gate_open(r);
	fixture_wait(r->f, &r->delivered, 3);
	assert_int_equal(r->rc[2], ERR_LIMIT);
	assert_int_equal(rows(r), 2);
}

TEST(stop_commits_what_is_queued_and_delivers_nothing)
{
	gate_shut(r);
	for (uint64_t i = 1; i <= 100; i++)
		submit(r, good_run, i);
	gate_open(r);
	writer_stop(r->writer);
	r->writer = NULL;
	assert_int_equal(rows(r), 101);
	assert_int_equal(r->delivered, 0);
	done_free(r->done);
	r->done = NULL;
	assert_int_equal(r->released, 101);
}

static off_t
wal_size(const struct rig *r)
{
	AUTO(auto_free)
	char *path = xasprintf("%s/mcp-sandboxd.db-wal", r->f->dir);
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	return st.st_size;
}

/* The WAL-index (SQLite, WAL-mode file format, 2.2): of mxFrame frames
 * nBackfill are in the database. */
static bool
wal_is_copied(const struct rig *r)
{
	AUTO(auto_free)
	char *path = xasprintf("%s/mcp-sandboxd.db-shm", r->f->dir);
	AUTO(auto_free) char *data = NULL;
	size_t n;
	struct err e;

	assert_int_equal(fd_read_file(path, 1u << 20, &data, &n, &e), 0);
	assert_true(n >= 100);
	return memcmp(data + 16, data + 96, 4) == 0;
}

TEST(a_second_after_a_write_the_wal_is_written_from_its_beginning)
{
	off_t size;

	for (unsigned int i = 0; i < 10; i++) {
		submit(r, good_run, i);
		fixture_wait(r->f, &r->delivered, i + 1);
	}
	size = wal_size(r);
	for (int i = 0; i < FIXTURE_PATIENCE_S * 100 && !wal_is_copied(r); i++)
		(void)usleep(10000);
	assert_true(wal_is_copied(r));
	submit(r, good_run, 10);
	fixture_wait(r->f, &r->delivered, 11);
	assert_int_equal(wal_size(r), size);
	assert_int_equal(rows(r), 11);
}

/* The writer may look at the clock between its step and our write, and
 * truncate what the write before left: then the next one's minute counts. */
TEST(a_minute_after_a_write_the_wal_is_truncated)
{
	unsigned int n = 0;

	for (int i = 0; i < FIXTURE_PATIENCE_S && (n < 2 || wal_size(r) > 0);
	     i++) {
		submit(r, good_run, ++n);
		fixture_wait(r->f, &r->delivered, n);
		for (int j = 0; j < 100 && n > 1 && wal_size(r) > 0; j++)
			(void)usleep(10000);
		if (n == 1)
			assert_true(wal_size(r) > 0);
		if (wal_size(r) > 0)
			__atomic_add_fetch(&later_s, 61, __ATOMIC_SEQ_CST);
	}
	assert_int_equal(wal_size(r), 0);
	assert_int_equal(rows(r), n);
}

/* Between two of our commits, and while ours is asked for: it is waited for. */
TEST(what_others_write_is_in_nobodys_way)
{
	sqlite3 *h = fixture_sqlite(r->f);

	for (unsigned int i = 0; i < 50; i++) {
		submit(r, good_run, i);
		fixture_wait(r->f, &r->delivered, 2 * i + 1);
		assert_int_equal(sqlite3_exec(h,
				     "BEGIN IMMEDIATE;"
				     "INSERT INTO event (tenant, seq, at_ms,"
				     " kind, identifier, data) SELECT 1,"
				     " max(seq) + 1, 0, 'theirs', '', ''"
				     " FROM event",
				     NULL, NULL, NULL),
		    SQLITE_OK);
		submit(r, good_run, i);
		assert_int_equal(
		    sqlite3_exec(h, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
		fixture_wait(r->f, &r->delivered, 2 * i + 2);
		assert_int_equal(r->rc[2 * i], 0);
		assert_int_equal(r->rc[2 * i + 1], 0);
		assert_int_equal(rows(r), 3 * (i + 1));
	}
	assert_int_equal(sqlite3_close(h), SQLITE_OK);
}

/* Nor are we, a second after the last commit. */
TEST(others_can_empty_the_wal_when_nothing_is_written)
{
	sqlite3 *h;
	int busy = 1;

	submit(r, good_run, 1);
	fixture_wait(r->f, &r->delivered, 1);
	h = fixture_sqlite(r->f);
	for (unsigned int i = 0; busy && i < FIXTURE_PATIENCE_S * 100; i++) {
		busy = sqlite3_wal_checkpoint_v2(h, NULL,
			   SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL) != SQLITE_OK;
		if (busy)
			(void)usleep(10000);
	}
	assert_false(busy);
	assert_int_equal(sqlite3_close(h), SQLITE_OK);
	submit(r, good_run, 2);
	fixture_wait(r->f, &r->delivered, 2);
	assert_int_equal(r->rc[1], 0);
	assert_int_equal(rows(r), 2);
}

TEST(what_an_op_covers_goes_its_way_right_before_it)
{
	gate_shut(r);
	submit(r, good_run, 1);
	for (uint64_t i = 0; i < 2; i++) {
		struct op *op =
		    make_op(r, i == 0 ? good_run : refusing_run, 20 + i);

		op->covers = make_op(r, refusing_run, 10 + i); /* not run */
		writer_submit(r->writer, op);
	}
	submit(r, good_run, 3);
	gate_open(r);
	fixture_wait(r->f, &r->delivered, 7);
	for (unsigned int i = 0; i < 7; i++) {
		static const uint64_t order[] = {0, 1, 10, 20, 11, 21, 3};
		static const int rc[] = {
		    0, 0, 0, 0, ERR_WRONG_STATE, ERR_WRONG_STATE, 0};

		assert_int_equal(r->order[i], order[i]);
		assert_int_equal(r->rc[i], rc[i]);
	}
	assert_int_equal(rows(r), 4);
}

static bool
is_number(const struct op *op, const void *arg)
{
	return ((const struct test_op *)op)->number == *(const uint64_t *)arg;
}

static void
hold(struct rig *r, uint64_t number)
{
	writer_hold(r->writer, make_op(r, good_run, number));
}

TEST(what_is_held_can_be_taken_back)
{
	for (uint64_t i = 1; i <= 3; i++)
		hold(r, i);
	for (uint64_t i = 3; i >= 2; i--) {
		struct op *op = writer_take(r->writer, is_number, &i);

		assert_non_null(op);
		assert_null(writer_take(r->writer, is_number, &i));
		op->release(op);
	}
	hold(r, 4);
	writer_let_go(r->writer);
	submit(r, good_run, 5);
	fixture_wait(r->f, &r->delivered, 3);
	assert_int_equal(r->order[0], 1);
	assert_int_equal(r->order[1], 4);
	assert_int_equal(r->order[2], 5);
	assert_int_equal(rows(r), 3);
}

TEST(what_is_held_waits_for_nothing_else_that_is_written)
{
	hold(r, 1);
	submit(r, good_run, 2);
	submit(r, good_run, 3);
	/* By itself: it is due after the others were delivered. */
	fixture_wait(r->f, &r->delivered, 3);
	assert_int_equal(r->order[0], 2);
	assert_int_equal(r->order[1], 3);
	assert_int_equal(r->order[2], 1);
}

TEST(what_is_held_goes_when_it_is_due_and_no_sooner)
{
	/* One that is taken does not keep the next from its time. */
	for (uint64_t i = 1; i <= 3; i++)
		hold(r, i);
	for (uint64_t i = 1; i <= 2; i++) {
		struct op *op = writer_take(r->writer, is_number, &i);

		op->release(op);
	}
	fixture_wait(r->f, &r->delivered, 1);
	assert_int_equal(r->order[0], 3);
	hold(r, 4);
	fixture_wait(r->f, &r->delivered, 2);
	assert_int_equal(r->order[1], 4);
}

TEST(stop_commits_what_is_held)
{
	hold(r, 1);
	hold(r, 2);
	writer_stop(r->writer);
	r->writer = NULL;
	assert_int_equal(rows(r), 2);
}

static void
after_note(struct db *db, struct op *op)
{
	struct test_op *t = (struct test_op *)op;
	int64_t n = -1;

	/* Outside of the transaction, and that is over. */
	if (db_begin(db, &op->why) == 0 &&
	    db_exec_int(db, DB_GET_VERSION, &n, &op->why) == 0)
		db_rollback(db);
	t->number += 100 * (uint64_t)(op->rc == 0 ? 1 : 2);
}

TEST(an_after_knows_how_it_went_and_runs_before_delivery)
{
	struct op *ops[3] = {make_op(r, good_run, 1),
	    make_op(r, refusing_run, 2), make_op(r, NULL, 3)};
	struct store_stats before, after;

	writer_stats(r->writer, &before);
	gate_shut(r);
	for (size_t i = 0; i < 3; i++) {
		ops[i]->after = after_note;
		writer_submit(r->writer, ops[i]);
	}
	gate_open(r);
	fixture_wait(r->f, &r->delivered, 4);
	assert_int_equal(r->order[1], 101);
	assert_int_equal(r->order[2], 202);
	assert_int_equal(r->order[3], 103); /* it has only an after */
	writer_stats(r->writer, &after);
	assert_int_equal(after.writes - before.writes, 2); /* gate, first */
	assert_int_equal(rows(r), 2);
}

TEST(a_lost_transaction_is_known_to_every_after)
{
	struct op *op = make_op(r, good_run, 1);

	op->after = after_note;
	gate_shut(r);
	writer_submit(r->writer, op);
	submit(r, dooming_run, 2);
	gate_open(r);
	fixture_wait(r->f, &r->delivered, 3);
	assert_int_equal(r->order[1], 201);
}

TEST(the_wal_stays_bounded_while_writes_go_on)
{
	AUTO(auto_free)
	char *path = xasprintf("%s/mcp-sandboxd.db-wal", r->f->dir);
	off_t largest = 0;

	/* Each commit of one row writes pages anew: some 36 MB in all. */
	for (unsigned int i = 0; i < 3000; i++) {
		struct stat st;

		submit(r, good_run, i);
		fixture_wait(r->f, &r->delivered, i + 1);
		if (stat(path, &st) == 0 && st.st_size > largest)
			largest = st.st_size;
	}
	assert_true(largest > 0);
	assert_true(largest <= (17 << 20));
}

TEST_MAIN(rig_setup, rig_teardown)
