#include "tests/unit/store/history_fixture.h"

/* What can be looked for, and that it is gone when its run is. */

static void
setup_sandboxes(struct fixture *f)
{
	fixture_put_sandbox(f, 1, "a");
}

TEST(words_are_found_in_commands_and_outputs)
{
	setup_sandboxes(f);
	(void)add_run_saying(f, 1, STORE_TENANT_DEFAULT,
	    "python3 -c 'import os.path'", "Traceback (most recent call last)");
	(void)add_run_saying(
	    f, 2, STORE_TENANT_DEFAULT, "make check", "all_tests passed\nok");
	assert_int_equal(count_q(f, "python3"), 1);
	assert_int_equal(count_q(f, "TRACEBACK"), 1);
	assert_int_equal(count_q(f, "traceback python3"), 1);
	assert_int_equal(count_q(f, "traceback make"), 0);
	assert_int_equal(count_q(f, "os.path"), 1);
	assert_int_equal(count_q(f, "path.os"), 0);
	assert_int_equal(count_q(f, "\"most recent call\""), 1);
	assert_int_equal(count_q(f, "\"most call\""), 0);
	assert_int_equal(count_q(f, "all_tests"), 1);
	assert_int_equal(count_q(f, "tests"), 0);
	assert_int_equal(count_q(f, "all_te*"), 1);
	assert_int_equal(count_q(f, "\"recent cal\"*"), 1);
	assert_int_equal(count_q(f, "nothing"), 0);
}

/* What means something to FTS5 is text here. */
TEST(no_text_is_a_query_language)
{
	static const char *const texts[] = {"body:passed", "passed OR zebra",
	    "NOT passed", "passed NEAR zebra", "^zebra", "{body}:passed",
	    "passed) OR (zebra", "';DROP TABLE run;--x"};

	setup_sandboxes(f);
	(void)add_run_saying(
	    f, 1, STORE_TENANT_DEFAULT, "make check", "passed");
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		assert_int_equal(count_q(f, texts[i]), 0);
	assert_int_equal(count_q(f, "passed"), 1);
	(void)add_run_saying(
	    f, 2, STORE_TENANT_DEFAULT, "x", "passed OR zebra: body:passed");
	assert_int_equal(count_q(f, "passed OR zebra"), 1);
	assert_int_equal(count_q(f, "body:passed"), 1);
}

static void
assert_refused(struct fixture *f, const char *text, const char *want)
{
	const struct history_query q = {.filter = {.q = text}, .limit = 1};
	struct answer *a = xcalloc(1, sizeof(*a));

	ask(f, STORE_TENANT_DEFAULT, &q, a);
	assert_int_equal(a->rc, ERR_INVAL);
	if (strstr(a->msg, want) == NULL)
		fail_msg("%s: %s", text, a->msg);
	free(a);
}

TEST(what_cannot_be_looked_for_is_refused)
{
	AUTO(auto_free) char *many = xcalloc(1, HISTORY_Q_MAX + 2);

	assert_refused(f, "", "q: it has no word");
	assert_refused(f, " \t ", "q: it has no word");
	assert_refused(f, "ok --", "has no letter or digit");
	assert_refused(f, "\"open", "has no second one");
	assert_refused(f, "\"\"", "has no letter or digit");
	assert_refused(f, "ab*", "an asterisk wants");
	assert_refused(f, "*", "has no letter or digit");
	assert_refused(f, "\xff", "not UTF-8");
	memset(many, 'a', HISTORY_Q_MAX + 1);
	assert_refused(f, many, "more than");
	for (size_t i = 1; i < HISTORY_Q_MAX; i += 2)
		many[i] = ' ';
	many[HISTORY_Q_MAX] = '\0';
	assert_refused(f, many, "words and phrases");
}

TEST(another_tenants_words_are_not_found)
{
	const struct history_query q = {.filter = {.q = "marker"}, .limit = 10};
	struct answer *a = xcalloc(1, sizeof(*a));

	setup_sandboxes(f);
	put_other_tenant(f);
	(void)add_run_saying(f, 1, HISTORY_OTHER, "echo marker", "marker");
	assert_int_equal(count_q(f, "marker"), 0);
	assert_int_equal(count_q(f, "2:marker"), 0);
	assert_int_equal(count_q(f, "mark*"), 0);
	ask(f, HISTORY_OTHER, &q, a);
	assert_int_equal(a->n, 1);
	free(a);
}

/* Of a long output the beginning and the end. */
TEST(a_long_output_is_found_by_its_ends)
{
	const struct runlog_header start = {RUNLOG_COMMAND_STARTED, 0, 0, 1};
	const size_t n = 2u << 20;
	char *text = xmalloc(n);
	struct result done = {0};
	struct store_log *log;
	struct store_run r;
	struct buf b;

	setup_sandboxes(f);
	memset(text, '.', n);
	memcpy(text + 3, " beginning ", 11);
	memcpy(text + n / 2, " middle ", 8);
	memcpy(text + n - 20, " ending ", 8);
	fixture_run(&r, 1, 1, "a");
	log = fixture_log_open(f, &r);
	buf_init(&b, 0);
	runlog_put_header(&b, &start);
	for (size_t at = 0; at < n; at += 32768) {
		const struct runlog_header h = {RUNLOG_STDOUT, 0, 32768, 1};

		runlog_put_header(&b, &h);
		assert_int_equal(buf_append(&b, text + at, 32768), 0);
	}
	assert_int_equal(
	    fd_write_all(store_log_fd(log), buf_data(&b), buf_len(&b), &f->err),
	    0);
	r.spool_bytes = buf_len(&b);
	store_run_begin(f->store, &r, log, STORE_NOW, NULL, NULL);
	fixture_run_ended(&r, RUN_STATE_COMPLETED);
	store_run_end(f->store, &r, log, result_cb, &done);
	fixture_wait(f, &done.calls, 1);
	assert_string_equal(done.msg, "");
	assert_int_equal(count_q(f, "beginning"), 1);
	assert_int_equal(count_q(f, "ending"), 1);
	assert_int_equal(count_q(f, "middle"), 0);
	store_log_close(log);
	store_run_clear(&r);
	buf_clear(&b);
	free(text);
}

/* A phrase of so many words that each of them is in a run thousands of times,
 * and it nowhere. */
static void
write_hard_phrase(char *to)
{
	(void)strcpy(to, "\"b");
	for (int i = 0; i < 200; i++)
		(void)strcat(to, " b");
	(void)strcat(to, "\"");
}

#define HARD_BYTES 16000 /* a row keeps that much of a command */
#define HARD_RUNS 375

static void
fill_with_hard_text(struct fixture *f, uint64_t runs)
{
	char *text = xcalloc(1, HARD_BYTES + 1);

	for (size_t at = 0; at < HARD_BYTES; at += 4)
		memcpy(text + at, "a b ", 4);
	for (uint64_t i = 1; i <= runs; i++)
		(void)add_run_saying(f, i, STORE_TENANT_DEFAULT, text, "x");
	free(text);
}

TEST(what_is_hard_to_find_delays_no_other_question)
{
	char q[HISTORY_Q_MAX];
	const struct history_query hard = {
	    .filter = {.q = q}, .total = HISTORY_TOTAL, .limit = 10};
	const struct history_query easy = {.limit = 10};
	struct answer *a = xcalloc(2, sizeof(*a));

	setup_sandboxes(f);
	fill_with_hard_text(f, HARD_RUNS);
	write_hard_phrase(q);
	assert_int_equal(count_q(f, "a"), HARD_RUNS);
	(void)history_list(f->store, (struct tenant_id){STORE_TENANT_DEFAULT},
	    &hard, answer_cb, &a[0]);
	(void)history_list(f->store, (struct tenant_id){STORE_TENANT_DEFAULT},
	    &easy, answer_cb, &a[1]);
	fixture_wait(f, &a[1].calls, 1);
	assert_int_equal(a[0].calls, 0);
	assert_int_equal(a[1].n, 10);
	fixture_wait(f, &a[0].calls, 1);
	/* On a machine that is slow enough it is given up. */
	if (a[0].rc != 0) {
		assert_int_equal(a[0].rc, ERR_INVAL);
		assert_non_null(strstr(a[0].msg, "take rarer words"));
	}
	assert_int_equal(a[0].n, 0);
	/* And the lane is as good as before. */
	assert_int_equal(count_q(f, "a"), HARD_RUNS);
	free(a);
}

/* ---- forgetting */

static bool
is_anywhere(const struct fixture *f, const char *text)
{
	return fixture_file_has(f, "history.db", text) ||
	    fixture_file_has(f, "history.db-wal", text);
}

/* Nobody is told when. */
static void
wait_until_gone(struct fixture *f, const char *text)
{
	for (int i = 0; i < FIXTURE_PATIENCE_S * 100; i++) {
		assert_true(event_base_loop(f->base, EVLOOP_NONBLOCK) >= 0);
		if (!is_anywhere(f, text))
			return;
		(void)usleep(10000);
	}
	fail_msg("%s is still in the index", text);
}

static void
fill_with_others(struct fixture *f, uint64_t from, uint64_t n)
{
	char word[32];

	for (uint64_t i = from; i < from + n; i++) {
		(void)snprintf(
		    word, sizeof(word), "word%llu", (unsigned long long)i);
		(void)add_run_saying(f, i, STORE_TENANT_DEFAULT, "echo", word);
	}
}

TEST(a_deleted_runs_text_is_gone_from_the_file)
{
	struct result done = {0};
	struct uuid uuid;

	setup_sandboxes(f);
	fill_with_others(f, 1, 40);
	uuid = add_run_saying(f, 100, STORE_TENANT_DEFAULT,
	    "echo Qmarkercommandq", "xx Zmarkeroutputz");
	fill_with_others(f, 200, 40);
	assert_int_equal(count_q(f, "qmarkercommandq zmarkeroutputz"), 1);
	assert_true(is_anywhere(f, "Qmarkercommandq"));
	assert_true(is_anywhere(f, "arkeroutputz"));
	store_run_delete(f->store, (struct tenant_id){STORE_TENANT_DEFAULT},
	    &uuid, result_cb, &done);
	fixture_wait(f, &done.calls, 1);
	assert_string_equal(done.msg, "");
	assert_int_equal(count_q(f, "qmarkercommandq"), 0);
	wait_until_gone(f, "Qmarkercommandq");
	wait_until_gone(f, "arkercommandq");
	wait_until_gone(f, "Zmarkeroutputz");
	wait_until_gone(f, "arkeroutputz");
	assert_int_equal(count_q(f, "word201"), 1);
}

#define MANY_WORDS 1200 /* a run has that many of its own */
#define MANY_RUNS 100
#define LATE_RUNS 10
#define MERGE_BEGINS_MS 60 /* 50 after the last that was to be done */

/* So many that a merge takes several steps. */
static void
fill_with_many_words(struct fixture *f)
{
	char *text = xcalloc(MANY_WORDS, 16), *to;

	for (unsigned int i = 0; i < MANY_RUNS; i++) {
		to = text;
		for (unsigned int j = 0; j < MANY_WORDS; j++)
			to += sprintf(
			    to, "%08x ", (i * MANY_WORDS + j) * 2654435761u);
		(void)add_run_saying(
		    f, 1 + i, STORE_TENANT_DEFAULT, "echo", text);
	}
	free(text);
}

/* Deleted while what was deleted before them is being merged. */
TEST(what_is_deleted_during_a_merge_is_gone_from_the_file)
{
	struct uuid uuids[LATE_RUNS];
	struct result done = {0};
	char word[32];

	setup_sandboxes(f);
	fill_with_many_words(f);
	for (unsigned int i = 0; i < LATE_RUNS; i++) {
		/* no two with a beginning that FTS5 would write once */
		(void)snprintf(
		    word, sizeof(word), "%cmarker%uq", (char)('c' + i), i);
		uuids[i] = add_run_saying(
		    f, 1000 + i, STORE_TENANT_DEFAULT, word, "x");
	}
	assert_int_equal(count_q(f, "jmarker7q"), 1);
	assert_true(is_anywhere(f, "marker7q"));
	for (unsigned int i = 0; i < LATE_RUNS; i++) {
		store_run_delete(f->store,
		    (struct tenant_id){STORE_TENANT_DEFAULT}, &uuids[i],
		    result_cb, &done);
		fixture_wait(f, &done.calls, i + 1);
		assert_string_equal(done.msg, "");
		assert_int_equal(count_q(f, "cmarker0q"), 0);
		(void)usleep(MERGE_BEGINS_MS * 1000);
	}
	for (unsigned int i = 0; i < LATE_RUNS; i++) {
		(void)snprintf(word, sizeof(word), "marker%uq", i);
		wait_until_gone(f, word);
	}
	assert_int_equal(count_q(f, "echo"), MANY_RUNS);
}

TEST(a_purged_tenants_runs_are_gone_from_the_file)
{
	const struct history_query q = {.limit = 10};
	struct answer *a = xcalloc(1, sizeof(*a));
	struct result done = {0};

	setup_sandboxes(f);
	put_other_tenant(f);
	fill_with_others(f, 1, 20);
	for (uint64_t i = 100; i < 120; i++)
		(void)add_run_saying(f, i, HISTORY_OTHER,
		    "echo Qmarkercommandq", "Zmarkeroutputz");
	ask(f, HISTORY_OTHER, &q, a);
	assert_int_equal(a->n, 10);
	store_trim(f->store, (struct tenant_id){HISTORY_OTHER}, STORE_KEEP_NONE,
	    result_cb, &done);
	fixture_wait(f, &done.calls, 1);
	assert_string_equal(done.msg, "");
	ask(f, HISTORY_OTHER, &q, a);
	assert_int_equal(a->rc, 0);
	assert_int_equal(a->n, 0);
	wait_until_gone(f, "arkercommandq");
	wait_until_gone(f, "arkeroutputz");
	assert_int_equal(count_q(f, "word19"), 1);
	free(a);
}

/* Deleted while no index heard of it. */
TEST(what_went_while_the_server_was_down_is_not_found)
{
	const struct history_query q = {.limit = 10};
	struct answer *a = xcalloc(1, sizeof(*a));

	setup_sandboxes(f);
	fill_with_others(f, 1, 5);
	assert_int_equal(count_q(f, "word3"), 1);
	fixture_close(f);
	fixture_exec(f, "DELETE FROM run WHERE id = 3");
	fixture_exec(f, "UPDATE tenant SET runs_kept = runs_kept - 1");
	fixture_open(f);
	assert_int_equal(count_q(f, "word3"), 0);
	ask(f, STORE_TENANT_DEFAULT, &q, a);
	assert_int_equal(a->n, 4);
	wait_until_gone(f, "word3");
	free(a);
}

TEST_MAIN(fixture_setup, fixture_teardown)
