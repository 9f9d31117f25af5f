#include "tests/unit/store/fixture.h"

#include "common/log.h"
#include "supervisor/core/artifacts.h"
#include "supervisor/store/log_files.h"

#undef TEST_STATE
#define TEST_STATE struct ground *g

/* The files of one run, and a store behind them. */
struct ground {
	struct fixture *f;
	struct store_run row;
	struct store_log *log;
	struct artifacts a;
	/* The last answer. */
	unsigned int answers;
	int rc;
	char why[ERR_TEXT_MAX];
	unsigned int listed;
};

static int
setup(void **state)
{
	struct ground *g = xcalloc(1, sizeof(*g));
	void *f;

	(void)fixture_setup(&f);
	g->f = f;
	fixture_put_sandbox(g->f, 1, "a");
	fixture_run(&g->row, 1, 1, "a");
	fixture_insert(g->f, &g->row);
	g->log = fixture_log_open(g->f, &g->row);
	artifacts_init(&g->a, g->f->store, g->f->base, &g->row, g->log);
	*state = g;
	return 0;
}

static int
teardown(void **state)
{
	struct ground *g = *state;
	void *f = g->f;

	artifacts_clear(&g->a);
	store_log_close(g->log);
	store_run_clear(&g->row);
	free(g);
	return fixture_teardown(&f);
}

static void
answer_cb(void *arg, uint32_t number, int fd, const struct err *why)
{
	struct ground *g = arg;

	(void)number;
	g->answers++;
	g->rc = fd < 0 ? fd : 0;
	if (fd < 0)
		(void)snprintf(g->why, sizeof(g->why), "%s", why->msg);
	else
		assert_int_equal(close(fd), 0);
}

static void
offer(struct ground *g, uint32_t number, const char *path)
{
	const struct artifact_offer o = {.number = number,
	    .path = (const uint8_t *)path,
	    .path_len = strlen(path)};

	artifacts_offer(&g->a, &o, answer_cb, g);
}

/* Offered, answered, copied. */
static void
leave(struct ground *g, uint32_t number, const char *path, uint8_t digest)
{
	unsigned int answers = g->answers;
	uint8_t sha256[32];

	memset(sha256, digest, sizeof(sha256));
	offer(g, number, path);
	fixture_wait(g->f, &g->answers, answers + 1);
	assert_int_equal(g->rc, 0);
	artifacts_done(&g->a, number, 100, sha256);
	assert_true(2 * g->a.held_bytes <= ARTIFACTS_HELD_MAX);
}

static void
listed_cb(void *arg)
{
	((struct ground *)arg)->listed++;
}

/* The run ends; its row has what a list shows first. */
static void
end(struct ground *g)
{
	struct result result = {0};
	struct store_run row;

	fixture_run_ended(&g->row, RUN_STATE_COMPLETED);
	row = g->row;
	artifacts_lend(&g->a, &row);
	store_run_end(g->f->store, &row, g->log, result_cb, &result);
	fixture_wait(g->f, &result.calls, 1);
	assert_string_equal(result.msg, "");
	artifacts_list(&g->a, listed_cb, g);
	fixture_wait(g->f, &g->listed, 1);
	artifacts_take(&g->a, &g->row);
}

#define MANY 50000

TEST(of_many_names_a_batch_is_in_memory)
{
	char path[64];

	for (uint32_t i = 0; i < MANY; i++) {
		(void)snprintf(path, sizeof(path), "some/directory/%05u", i);
		leave(g, i, path, (uint8_t)(i % 7 + 1));
	}
	end(g);
	assert_int_equal(g->row.artifacts_total, MANY);
	assert_int_equal(g->row.nartifacts, STORE_ARTIFACTS_PAGE);
	assert_string_equal(g->row.artifacts[999].path, "some/directory/00999");
	assert_int_equal(
	    fixture_query(g->f, "SELECT count(*) FROM artifact"), MANY);
	assert_int_equal(
	    fixture_query(g->f, "SELECT sum(refs) FROM blob"), MANY);
	assert_int_equal(g->log->blobs.count, 0);
}

TEST(long_names_fill_a_batch_sooner)
{
	char path[ARTIFACTS_PATH_MAX + 1];

	for (uint32_t i = 0; i < 100; i++) {
		(void)snprintf(path, sizeof(path), "%01024u", i);
		leave(g, i, path, 1);
	}
	end(g);
	assert_int_equal(g->row.artifacts_total, 100);
}

TEST(a_few_names_go_with_the_end_of_the_run)
{
	leave(g, 0, "b", 1);
	leave(g, 1, "a", 2);
	assert_int_equal(
	    fixture_query(g->f, "SELECT count(*) FROM artifact"), 0);
	assert_false(g->a.is_put);
	end(g);
	assert_int_equal(g->row.artifacts_total, 2);
	assert_string_equal(g->row.artifacts[0].path, "a");
}

/* The numbers begin anew, too. */
TEST(the_next_worker_begins_anew)
{
	const uint32_t n = ARTIFACTS_BATCH + 20;
	char path[24];

	for (unsigned int life = 1; life <= 3; life++) {
		for (uint32_t i = 0; i < n; i++) {
			(void)snprintf(path, sizeof(path), "%u", i);
			leave(g, i, path, (uint8_t)life);
		}
		offer(g, n, "under way");
		artifacts_begin_anew(&g->a);
	}
	end(g);
	assert_int_equal(g->row.artifacts_total, n);
	assert_int_equal(
	    fixture_query(g->f,
		"SELECT count(*) FROM artifact WHERE hex(sha256) LIKE '03%'"),
	    (int64_t)n);
}

/* A trim may take the run as soon as its end is on disk. */
TEST(a_run_that_was_forgotten_meanwhile_has_an_empty_list)
{
	struct result result = {0};
	struct store_run row;
	char path[24];

	for (uint32_t i = 0; i < ARTIFACTS_BATCH + 1; i++) {
		(void)snprintf(path, sizeof(path), "%u", i);
		leave(g, i, path, 1);
	}
	fixture_run_ended(&g->row, RUN_STATE_COMPLETED);
	row = g->row;
	artifacts_lend(&g->a, &row);
	store_run_end(g->f->store, &row, g->log, result_cb, &result);
	fixture_wait(g->f, &result.calls, 1);
	store_trim(g->f->store, (struct tenant_id){g->row.tenant},
	    STORE_KEEP_NONE, result_cb, &result);
	fixture_wait(g->f, &result.calls, 2);
	assert_string_equal(result.msg, "");
	artifacts_list(&g->a, listed_cb, g);
	fixture_wait(g->f, &g->listed, 1);
	artifacts_take(&g->a, &g->row);
	assert_int_equal(g->row.nartifacts, 0);
	assert_int_equal(g->row.artifacts_total, 0);
}

TEST(while_the_database_fails_the_worker_waits)
{
	unsigned int answers;
	char path[24];

	log_set_level(LOG_ERROR);
	fixture_exec(g->f,
	    "CREATE TRIGGER no BEFORE INSERT ON artifact BEGIN"
	    " SELECT raise(ABORT, 'no'); END");
	for (uint32_t i = 0; i < ARTIFACTS_BATCH; i++) {
		(void)snprintf(path, sizeof(path), "%u", i);
		leave(g, i, path, 1);
	}
	answers = g->answers;
	offer(g, ARTIFACTS_BATCH, "waits");
	while (g->a.again == NULL) /* it has failed */
		(void)event_base_loop(g->f->base, EVLOOP_ONCE);
	assert_int_equal(g->answers, answers);
	fixture_exec(g->f, "DROP TRIGGER no");
	fixture_wait(g->f, &g->answers, answers + 1);
	assert_int_equal(g->rc, 0);
	artifacts_failed(&g->a, ARTIFACTS_BATCH);
	end(g);
	assert_int_equal(g->row.artifacts_total, ARTIFACTS_BATCH);
}

TEST(only_so_many_files_come_at_a_time)
{
	char path[24];

	for (uint32_t i = 0; i < ARTIFACTS_AT_A_TIME; i++) {
		(void)snprintf(path, sizeof(path), "%u", i);
		offer(g, i, path);
		assert_int_equal(g->rc, 0);
	}
	offer(g, ARTIFACTS_AT_A_TIME, "more");
	assert_int_equal(g->rc, ERR_LIMIT);
	assert_string_equal(g->why, "too many files at a time");
}

TEST(a_name_is_text)
{
	offer(g, 0, "");
	assert_int_equal(g->rc, ERR_INVAL);
	offer(g, 0, "\xff");
	assert_int_equal(g->rc, ERR_INVAL);
}

TEST_MAIN(setup, teardown)
