/* test_run_answers.c - answers that the writer sends when the end is on disk */
#include "tests/unit/store/fixture.h"

#include <poll.h>
#include <sys/socket.h>

#include "common/parcel.h"

/* An end that waits until h lets the database go; its answer is in parcel. */
static struct parcel *
end_with_answer(struct fixture *f, const struct store_run *r, sqlite3 *h,
    int fd, struct result *ended)
{
	struct parcel *p;

	assert_int_equal(
	    sqlite3_exec(h, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
	p = store_run_end(f->store, r, NULL, result_cb, ended);
	assert_non_null(p);
	assert_true(parcel_fill(p, fd, xstrdup("answer"), 6));
	return parcel_ref(p);
}

/* Without a turn of the loop; 0 when the other end is closed. */
static ssize_t
receive_answer(int fd, char text[16])
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	assert_int_equal(poll(&p, 1, 60000), 1);
	return recv(fd, text, 16, 0);
}

static void
test_an_answer_is_sent_when_its_end_is_on_disk(void **state)
{
	struct fixture *f = *state;
	struct result ended = {0};
	sqlite3 *h = fixture_sqlite(f);
	struct parcel *p;
	struct store_run r;
	char text[16];
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	fixture_put_sandbox(f, 1, "a");
	fixture_run(&r, 1, 1, "a");
	fixture_insert(f, &r);
	fixture_run_ended(&r, RUN_STATE_COMPLETED);
	p = end_with_answer(f, &r, h, pair[0], &ended);
	assert_int_equal(recv(pair[1], text, sizeof(text), MSG_DONTWAIT), -1);
	assert_int_equal(
	    sqlite3_exec(h, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(receive_answer(pair[1], text), 6);
	assert_memory_equal(text, "answer", 6);
	/* Who has it may ask, and what he is told has it, too. */
	assert_int_equal(ended.calls, 0);
	store_catch_up(f->store);
	assert_int_equal(ended.calls, 1);
	assert_int_equal(ended.rc, 0);
	(void)event_base_loop(f->base, EVLOOP_NONBLOCK);
	assert_int_equal(ended.calls, 1);
	parcel_unref(p);
	store_run_clear(&r);
	(void)sqlite3_close(h);
	(void)close(pair[0]);
	(void)close(pair[1]);
}

static void
test_an_answer_is_not_sent_when_its_end_is_not_on_disk(void **state)
{
	struct fixture *f = *state;
	struct result ended = {0};
	sqlite3 *h = fixture_sqlite(f);
	const char *rest;
	struct parcel *p;
	struct store_run r;
	char text[16];
	size_t n;
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	fixture_run(&r, 1, 1, "a"); /* nobody began it */
	fixture_run_ended(&r, RUN_STATE_COMPLETED);
	p = end_with_answer(f, &r, h, pair[0], &ended);
	assert_int_equal(
	    sqlite3_exec(h, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
	fixture_wait(f, &ended.calls, 1);
	assert_int_equal(ended.rc, ERR_NOTFOUND);
	assert_int_equal(parcel_take(p, &rest, &n), 0);
	assert_int_equal(n, 6);
	(void)close(pair[0]);
	assert_int_equal(receive_answer(pair[1], text), 0);
	parcel_unref(p);
	store_run_clear(&r);
	(void)sqlite3_close(h);
	(void)close(pair[1]);
}

static void
test_many_ends_have_their_answers_sent_by_the_loop(void **state)
{
	struct fixture *f = *state;
	struct result began = {0}, ended = {0};
	struct store_run r[20];

	fixture_put_sandbox(f, 1, "a");
	for (unsigned int i = 0; i < ARRAY_LEN(r); i++) {
		fixture_run(&r[i], i + 1, 1, "a");
		store_run_begin(
		    f->store, &r[i], NULL, STORE_SOON, result_cb, &began);
	}
	fixture_run_ended(&r[0], RUN_STATE_COMPLETED);
	assert_null(store_run_end(f->store, &r[0], NULL, result_cb, &ended));
	fixture_wait(f, &ended.calls, 1);
	assert_int_equal(ended.rc, 0);
	fixture_wait(f, &began.calls, ARRAY_LEN(r));
	for (unsigned int i = 0; i < ARRAY_LEN(r); i++)
		store_run_clear(&r[i]);
}

int
main(void)
{
#define TEST(t)                                                                \
	cmocka_unit_test_setup_teardown(t, fixture_setup, fixture_teardown)
	const struct CMUnitTest tests[] = {
	    TEST(test_an_answer_is_sent_when_its_end_is_on_disk),
	    TEST(test_an_answer_is_not_sent_when_its_end_is_not_on_disk),
	    TEST(test_many_ends_have_their_answers_sent_by_the_loop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
