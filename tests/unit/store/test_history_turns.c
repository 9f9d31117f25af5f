/* link: -Wl,--wrap=readers_begin,--wrap=done_push,--wrap=clock_mono_ms */
#include "tests/unit/store/history_fixture.h"

#include <stdatomic.h>

#include "supervisor/store/done.h"
#include "supervisor/store/history_readers.h"

/* Who asks much waits for himself. */

#define HARD_RUNS 100

/* ---- what the slow lane does */

static atomic_uint slow_reads;
static atomic_uint interrupted; /* that were pushed with a reason */
static atomic_bool clock_runs;  /* so much each time it is looked at */
#define CLOCK_STEP_MS 5
static atomic_uint looks;

static struct history_readers *readers;

void __real_readers_begin(
    struct history_readers *r, enum history_lane lane, atomic_bool *is_stopped);
void __wrap_readers_begin(
    struct history_readers *r, enum history_lane lane, atomic_bool *is_stopped);
void
__wrap_readers_begin(
    struct history_readers *r, enum history_lane lane, atomic_bool *is_stopped)
{
	__real_readers_begin(r, lane, is_stopped);
	readers = r;
	if (lane == LANE_SLOW)
		atomic_fetch_add(&slow_reads, 1);
}

void __real_done_push(struct done *d, struct op *list);
void __wrap_done_push(struct done *d, struct op *list);
void
__wrap_done_push(struct done *d, struct op *list)
{
	if (list != NULL && list->rc != 0)
		atomic_fetch_add(&interrupted, 1);
	__real_done_push(d, list);
}

uint64_t __real_clock_mono_ms(void);
uint64_t __wrap_clock_mono_ms(void);
uint64_t
__wrap_clock_mono_ms(void)
{
	if (atomic_load(&clock_runs))
		atomic_fetch_add(&looks, 1);
	return __real_clock_mono_ms() +
	    CLOCK_STEP_MS * (uint64_t)atomic_load(&looks);
}

/* ---- questions */

static const struct tenant_id mine = {STORE_TENANT_DEFAULT};
static const struct tenant_id other = {HISTORY_OTHER};

/* An answer, and which one it was of all. */
struct turn {
	unsigned int calls;
	unsigned int place;
	int rc;
	char msg[ERR_TEXT_MAX];
	uint64_t runs;
};
static unsigned int answered;

static void
sums_cb(int rc, const struct history_sums *s, const struct err *why, void *arg)
{
	struct turn *t = arg;

	t->calls++;
	t->place = ++answered;
	t->rc = rc;
	if (rc != 0)
		(void)snprintf(t->msg, sizeof(t->msg), "%s", why->msg);
	for (size_t i = 0; s != NULL && i < s->n; i++)
		t->runs += s->sums[i].runs;
}

static void
page_cb(int rc, const struct history_page *p, const struct err *why, void *arg)
{
	const struct history_sums none = {0};

	(void)p;
	sums_cb(rc, rc == 0 ? &none : NULL, why, arg);
}

static struct history_asking *
ask_sums(struct fixture *f, struct tenant_id tenant, struct turn *t)
{
	const struct history_filter all = {0};

	return history_stats(
	    f->store, tenant, &all, HISTORY_BY_STATE, sums_cb, t);
}

/* A phrase of words that each run has thousands of times, and that is nowhere:
 * the lane is at it while the test asks for more. */
static struct history_asking *
ask_hard(struct fixture *f, struct tenant_id tenant, struct turn *t)
{
	char q[HISTORY_Q_MAX] = "\"b";
	const struct history_query hard = {.filter = {.q = q}, .limit = 10};

	for (int i = 0; i < 200; i++)
		(void)strcat(q, " b");
	(void)strcat(q, "\"");
	return history_export(f->store, tenant, &hard, page_cb, t);
}

static void
setup_ground(struct fixture *f)
{
	char *text = xcalloc(1, 60001);

	answered = 0;
	atomic_store(&slow_reads, 0);
	atomic_store(&interrupted, 0);
	fixture_put_sandbox(f, 1, "a");
	put_other_tenant(f);
	for (size_t at = 0; at < 60000; at += 4)
		memcpy(text + at, "a b ", 4);
	for (uint64_t i = 1; i <= HARD_RUNS; i++)
		(void)add_run_saying(f, i, STORE_TENANT_DEFAULT, text, "x");
	(void)add_run_saying(f, 1000, HISTORY_OTHER, "other", "x");
	assert_int_equal(count_q(f, "a"), HARD_RUNS);
	free(text);
}

/* It is at work on this one, and nothing else is asked. */
static struct history_asking *
occupy(struct fixture *f, struct turn *t)
{
	struct history_asking *a = ask_hard(f, mine, t);

	while (atomic_load(&slow_reads) == 0)
		(void)usleep(100);
	return a;
}

TEST(a_tenants_question_waits_for_one_of_anothers)
{
	struct turn hard = {0}, many[HISTORY_WAITING_MAX] = {0}, one = {0};

	setup_ground(f);
	(void)occupy(f, &hard);
	for (size_t i = 0; i < HISTORY_WAITING_MAX; i++)
		(void)ask_sums(f, mine, &many[i]);
	(void)ask_sums(f, other, &one);
	fixture_wait(f, &many[HISTORY_WAITING_MAX - 1].calls, 1);
	assert_int_equal(one.calls, 1);
	assert_string_equal(one.msg, "");
	assert_int_equal(one.runs, 1);
	if (one.place > 3)
		fail_msg("%u were answered before", one.place - 1);
	assert_int_equal(many[HISTORY_WAITING_MAX - 1].runs, HARD_RUNS);
}

TEST(few_of_a_tenant_wait_and_more_are_refused)
{
	struct turn hard = {0}, many[HISTORY_WAITING_MAX + 1] = {0}, one = {0};
	const struct turn *last = &many[HISTORY_WAITING_MAX];

	setup_ground(f);
	(void)occupy(f, &hard);
	for (size_t i = 0; i <= HISTORY_WAITING_MAX; i++)
		(void)ask_sums(f, mine, &many[i]);
	(void)ask_sums(f, other, &one);
	fixture_wait(f, &last->calls, 1);
	assert_int_equal(last->rc, ERR_LIMIT);
	assert_non_null(strstr(last->msg, "wait already"));
	fixture_wait(f, &one.calls, 1);
	assert_int_equal(one.rc, 0);
	fixture_wait(f, &many[HISTORY_WAITING_MAX - 1].calls, 1);
	assert_int_equal(many[HISTORY_WAITING_MAX - 1].rc, 0);
}

TEST(what_is_canceled_leaves_the_queue)
{
	struct history_asking *asked[HISTORY_WAITING_MAX];
	struct turn hard = {0}, many[HISTORY_WAITING_MAX] = {0}, one = {0};

	setup_ground(f);
	(void)occupy(f, &hard);
	for (size_t i = 0; i < HISTORY_WAITING_MAX; i++)
		asked[i] = ask_sums(f, mine, &many[i]);
	for (size_t i = 0; i < HISTORY_WAITING_MAX; i++)
		history_cancel(asked[i]);
	(void)ask_sums(f, mine, &one);
	fixture_wait(f, &one.calls, 1);
	assert_int_equal(one.rc, 0);
	for (size_t i = 0; i < HISTORY_WAITING_MAX; i++)
		assert_int_equal(many[i].calls, 0);
	/* Nobody has read for them. */
	assert_int_equal(atomic_load(&slow_reads), 2);
}

TEST(what_is_canceled_is_interrupted)
{
	struct turn hard = {0}, one = {0};

	setup_ground(f);
	history_cancel(occupy(f, &hard));
	(void)ask_sums(f, mine, &one);
	fixture_wait(f, &one.calls, 1);
	assert_int_equal(one.rc, 0);
	assert_int_equal(one.runs, HARD_RUNS);
	assert_int_equal(hard.calls, 0);
	assert_int_equal(atomic_load(&interrupted), 1);
}

TEST(what_gives_way_to_a_checkpoint_is_begun_again)
{
	struct turn hard = {0}, one = {0};

	setup_ground(f);
	(void)occupy(f, &hard);
	readers_interrupt(readers);
	(void)ask_sums(f, other, &one);
	fixture_wait(f, &hard.calls, 1);
	/* It may have taken its ten seconds. */
	if (hard.rc != ERR_INVAL)
		assert_int_equal(hard.rc, 0);
	assert_int_equal(one.place, 1);
	assert_int_equal(atomic_load(&slow_reads), 3);
}

/* Runs of the same moment and of different ones, by two ways. */
TEST(statistics_in_slices_count_each_run_once)
{
	const struct history_filter by_file = {.artifact = "x"};
	struct turn all = {0}, files = {0};
	const unsigned int runs = 700;

	fixture_put_sandbox(f, 1, "a");
	for (uint64_t i = 1; i <= runs; i++) {
		struct store_run r;

		fixture_run(&r, i, 1, "a");
		r.created_ms = 1000000 + (int64_t)i / 2;
		fixture_insert(f, &r);
		fixture_run_ended(&r, RUN_STATE_COMPLETED);
		fixture_run_artifact(&r, "x", 1);
		fixture_run_artifact(&r, "y/x", 2);
		fixture_end(f, &r);
		store_run_clear(&r);
	}
	atomic_store(&slow_reads, 0);
	atomic_store(&clock_runs, true);
	(void)ask_sums(f, mine, &all);
	fixture_wait(f, &all.calls, 1);
	assert_string_equal(all.msg, "");
	assert_int_equal(all.runs, runs);
	assert_true(atomic_load(&slow_reads) > 1);
	atomic_store(&slow_reads, 0);
	(void)history_stats(
	    f->store, mine, &by_file, HISTORY_BY_DAY, sums_cb, &files);
	fixture_wait(f, &files.calls, 1);
	atomic_store(&clock_runs, false);
	assert_string_equal(files.msg, "");
	assert_int_equal(files.runs, runs);
	assert_true(atomic_load(&slow_reads) > 1);
}

TEST_MAIN(fixture_setup, fixture_teardown)
