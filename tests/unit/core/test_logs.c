/* link: -Wl,--wrap=fd_pread_all */
#include <fcntl.h>

#include "tests/unit/core/logs_ground.h"
#include "tests/unit/test.h"

/* ---- digests */

TEST(a_second_digest_reads_only_what_is_new)
{
	struct log_view *v;
	size_t before;
	int fd;

	make_log(24, 1000);
	before = buf_len(&g.log.b);
	fd = file_of_log(&g.log);
	v = log_view_open(g.logs, dup(fd), 1, &caps);
	expect_digest(v, UINT64_MAX);
	assert_in_range(take_nread(), before, before + 4 * MIB);
	expect_digest(v, UINT64_MAX);
	assert_int_equal(take_nread(), 0);
	put_output(&g.log, RUNLOG_STDOUT, 50000);
	assert_int_equal(fd_write_all(fd, buf_data(&g.log.b) + before,
			     buf_len(&g.log.b) - before, NULL),
	    0);
	expect_digest(v, buf_len(&g.log.b));
	/* The record, which is shorter than a read, and its tail by itself. */
	assert_int_equal(
	    take_nread(), 50000 + RUNLOG_HEADER_BYTES + LOG_TAIL_BYTES);
	log_view_close(v);
	assert_int_equal(close(fd), 0);
}

TEST(output_that_nobody_is_shown_is_not_read)
{
	struct log_view *v;

	make_log(24, RUNLOG_PAYLOAD_MAX);
	v = open_view();
	expect_digest(v, UINT64_MAX);
	assert_in_range(take_nread(), MIB, 6 * MIB);
}

/* As a front that was started again: only the encoded digest is left. */
static struct log_view *
view_restored(void)
{
	const struct runlog_source source = {-1, buf_data(&g.log.b)};
	const struct log_work none = {NULL, 0};
	struct log_digest *d = log_digest_new(1, &caps);
	struct log_view *v;
	struct buf b;
	struct err e;

	assert_int_equal(
	    log_digest_advance(d, &source, buf_len(&g.log.b), &none, &e), 0);
	buf_init(&b, LOG_DIGEST_MAX);
	log_digest_encode(d, &b);
	log_digest_free(d);
	assert_in_range(buf_len(&b), LOG_TAIL_BYTES, LOG_TAIL_BYTES + 500);
	v = open_view();
	assert_int_equal(log_view_restore(v, buf_data(&b), buf_len(&b), &e), 0);
	assert_int_equal(
	    log_view_restore(v, buf_data(&b), buf_len(&b) - 1, &e), ERR_PROTO);
	buf_clear(&b);
	return v;
}

TEST(a_kept_digest_of_a_long_log_reads_its_head_alone)
{
	struct log_view *v;

	make_log(24, 1000);
	put_ended(&g.log);
	put_run_ended(&g.log);
	v = view_restored();
	expect_digest(v, UINT64_MAX);
	assert_in_range(take_nread(), MIB, MIB + MIB / 2);
	expect_digest(v, UINT64_MAX);
	assert_int_equal(take_nread(), 0);
}

TEST(digests_of_one_view_are_answered_in_order)
{
	struct answer a[3] = {{0}};
	struct log_view *v;

	ground_open(2);
	make_log(2, 1000);
	v = open_view();
	log_view_digest(v, MIB, digest_cb, &a[0], NULL);
	log_view_digest(v, buf_len(&g.log.b), digest_cb, &a[1], NULL);
	log_view_digest(v, MIB, digest_cb, &a[2], NULL);
	await(&a[2]);
	assert_int_equal(a[1].number, a[0].number + 1);
	assert_int_equal(a[2].number, a[1].number + 1);
	assert_in_range(a[0].scanned, MIB - 2000, MIB);
	check_digest(&a[1]);
	check_digest(&a[2]); /* it does not go back */
	for (int i = 0; i < 3; i++)
		answer_clear(&a[i]);
}

TEST(heads_beyond_the_limit_are_given_back_and_read_again)
{
	struct log_view *v[LOGS_HELD_MAX / MIB + 4];
	const size_t n = ARRAY_LEN(v);

	make_log(2, 1000);
	for (size_t i = 0; i < n; i++) {
		v[i] = open_view();
		expect_digest(v[i], UINT64_MAX);
	}
	(void)take_nread();
	expect_digest(v[n - 1], UINT64_MAX); /* asked for just now */
	assert_int_equal(take_nread(), 0);
	expect_digest(v[0], MIB / 2); /* longest ago; goes not back */
	assert_in_range(take_nread(), MIB, MIB + MIB / 2);
}

TEST(heads_that_are_worked_on_are_not_given_back)
{
	struct log_view *v, *others[LOGS_HELD_MAX / MIB];
	struct answer a = {0}, b;

	make_log(2, 1000);
	v = open_view();
	b = digest_now(v, buf_len(&g.log.b) - 1);
	answer_clear(&b);
	gate_set(true);
	log_view_digest(v, UINT64_MAX, digest_cb, &a, NULL);
	gate_await();
	for (size_t i = 0; i < ARRAY_LEN(others); i++) {
		others[i] = log_view_open_memory(
		    g.logs, buf_data(&g.log.b), buf_len(&g.log.b), 1, &caps);
		b = digest_now(others[i], UINT64_MAX);
		answer_clear(&b);
	}
	gate_set(false);
	await(&a);
	check_digest(&a);
	answer_clear(&a);
	log_view_close(v);
}

TEST(a_log_in_memory_needs_no_thread)
{
	struct log_view *v;
	struct answer a;

	ground_open(0);
	begin_log(&g.log);
	put_started(&g.log, 0);
	put_record(&g.log, RUNLOG_STDOUT, "hello", 5);
	v = log_view_open_memory(
	    g.logs, buf_data(&g.log.b), buf_len(&g.log.b), 1, &caps);
	a = digest_now(v, UINT64_MAX);
	assert_int_equal(a.bytes, 5);
	assert_memory_equal(buf_data(&a.head), "hello", 5);
	answer_clear(&a);
	a = read_now(v, RUNLOG_HEADER_BYTES, UINT64_MAX, 0);
	assert_int_equal(a.rc, 0);
	assert_int_equal(buf_len(&a.records), 2 * RUNLOG_HEADER_BYTES + 5);
	answer_clear(&a);
}

TEST(a_log_that_is_missing_is_an_empty_one)
{
	struct log_view *v;
	struct answer a;

	v = log_view_open(g.logs, -1, 1, &caps);
	a = digest_now(v, 1000);
	assert_int_equal(a.rc, 0);
	assert_int_equal(a.scanned, 0);
	answer_clear(&a);
	a = read_now(v, 0, 1000, 0);
	assert_int_equal(a.rc, 0);
	assert_int_equal(a.next, 0);
	answer_clear(&a);
}

TEST(a_log_that_cannot_be_read_says_why)
{
	struct log_view *v;
	struct answer a;

	v = log_view_open(g.logs, open("/", O_RDONLY | O_DIRECTORY), 1, &caps);
	a = digest_now(v, UINT64_MAX);
	assert_int_equal(a.rc, ERR_SYS);
	assert_non_null(a.why);
	answer_clear(&a);
	a = read_now(v, 0, UINT64_MAX, 0);
	assert_int_equal(a.rc, ERR_SYS);
	answer_clear(&a);
}

/* ---- the cursor */

TEST(a_cursor_keeps_to_its_bounds_and_to_records)
{
	struct log_view *v;
	struct answer a;
	size_t good;

	begin_log(&g.log);
	put_started(&g.log, 0);
	put_output(&g.log, RUNLOG_STDOUT, 100);
	good = buf_len(&g.log.b);
	assert_int_equal(buf_append(&g.log.b, "0123456789abcdefgh", 18), 0);
	v = open_view();
	/* Not all of the third record may be seen. */
	a = read_now(v, 0, good - 1, 0);
	assert_int_equal(a.next, 2 * RUNLOG_HEADER_BYTES);
	answer_clear(&a);
	a = read_now(v, 2 * RUNLOG_HEADER_BYTES, good - 1, 0);
	assert_int_equal(a.rc, 0);
	assert_int_equal(a.next, 2 * RUNLOG_HEADER_BYTES);
	assert_int_equal(buf_len(&a.records), 0);
	answer_clear(&a);
	/* What is good before the garbage is given, the garbage is none. */
	a = read_now(v, 0, UINT64_MAX, 0);
	assert_int_equal(a.next, good);
	answer_clear(&a);
	a = read_now(v, good, UINT64_MAX, 0);
	assert_int_equal(a.rc, ERR_PROTO);
	answer_clear(&a);
	/* No record begins there. */
	a = read_now(v, 3, UINT64_MAX, 0);
	assert_int_equal(a.rc, ERR_PROTO);
	answer_clear(&a);
	/* Behind the end there is nothing, yet. */
	a = read_now(v, 100000, UINT64_MAX, 0);
	assert_int_equal(a.rc, 0);
	assert_int_equal(a.next, 100000);
	answer_clear(&a);
}

TEST(a_record_of_no_command_of_the_run_is_none)
{
	struct log_view *v;
	struct answer a;

	begin_log(&g.log);
	g.log.command = 1;
	put_output(&g.log, RUNLOG_STDOUT, 5);
	v = open_view();
	a = read_now(v, 0, UINT64_MAX, 0);
	assert_int_equal(a.next, RUNLOG_HEADER_BYTES);
	answer_clear(&a);
	a = read_now(v, RUNLOG_HEADER_BYTES, UINT64_MAX, 0);
	assert_int_equal(a.rc, ERR_PROTO);
	answer_clear(&a);
}

/* ---- ending early */

TEST(a_canceled_request_is_not_answered_and_the_next_one_is)
{
	struct answer a[4] = {{0}};
	struct log_request *r[3];
	struct log_view *v;

	make_log(2, 1000);
	v = open_view();
	gate_set(true);
	log_view_digest(v, UINT64_MAX, digest_cb, &a[0], &r[0]);
	gate_await();
	log_view_digest(v, UINT64_MAX, digest_cb, &a[1], &r[1]); /* waits */
	log_view_read(v, &(struct log_at){0}, UINT64_MAX, 0, read_cb, &a[2],
	    &r[2]); /* queued */
	log_view_digest(v, UINT64_MAX, digest_cb, &a[3], NULL);
	for (int i = 0; i < 3; i++)
		log_request_cancel(r[i]);
	log_request_cancel(NULL);
	gate_set(false);
	await(&a[3]);
	check_digest(&a[3]);
	for (int i = 0; i < 3; i++)
		assert_int_equal(a[i].calls, 0);
	answer_clear(&a[3]);
}

TEST(a_canceled_walk_stops_and_is_gone_on_with)
{
	struct answer a = {0};
	struct log_request *r;
	struct log_view *v;

	make_log(24, 1000);
	v = open_view();
	gate_set(true);
	log_view_digest(v, UINT64_MAX, digest_cb, &a, &r);
	gate_await();
	log_request_cancel(r);
	gate_set(false);
	log_view_read(v, &(struct log_at){0}, UINT64_MAX, 0, read_cb, &a, NULL);
	await(&a);
	answer_clear(&a);
	assert_in_range(take_nread(), 1, LOG_SLICE_BYTES + MIB);
	a = digest_now(v, UINT64_MAX);
	check_digest(&a);
	assert_in_range(take_nread(), 18 * MIB, 24 * MIB);
	answer_clear(&a);
}

TEST(a_view_closed_while_it_is_read_answers_nothing)
{
	struct answer a[3] = {{0}}, other = {0};
	struct log_view *v, *w;

	make_log(2, 1000);
	v = open_view();
	w = open_view();
	gate_set(true);
	log_view_digest(v, UINT64_MAX, digest_cb, &a[0], NULL);
	log_view_digest(v, UINT64_MAX, digest_cb, &a[1], NULL);
	log_view_read(
	    v, &(struct log_at){0}, UINT64_MAX, 0, read_cb, &a[2], NULL);
	gate_await();
	log_view_close(v);
	gate_set(false);
	log_view_digest(w, UINT64_MAX, digest_cb, &other, NULL);
	await(&other);
	for (int i = 0; i < 3; i++)
		assert_int_equal(a[i].calls, 0);
	answer_clear(&other);
	log_view_close(NULL);
}

struct closing {
	struct log_view *view;
	bool all;
	unsigned int calls;
};

static void
closing_cb(int rc, const struct log_digest *d, const struct err *why, void *arg)
{
	struct closing *c = arg;

	(void)d;
	(void)why;
	assert_int_equal(rc, 0);
	c->calls++;
	if (c->all) {
		logs_free(g.logs);
		g.logs = NULL;
	} else {
		log_view_close(c->view);
	}
}

static void
close_in_callback(bool all)
{
	struct closing c = {.all = all};
	struct answer other = {0};

	ground_open(1);
	begin_log(&g.log);
	c.view = open_view();
	log_view_digest(c.view, UINT64_MAX, closing_cb, &c, NULL);
	log_view_digest(c.view, UINT64_MAX, digest_cb, &other, NULL);
	log_view_read(
	    c.view, &(struct log_at){0}, UINT64_MAX, 0, read_cb, &other, NULL);
	log_view_read(
	    c.view, &(struct log_at){0}, UINT64_MAX, 0, read_cb, &other, NULL);
	while (c.calls == 0)
		assert_int_equal(event_base_loop(g.base, EVLOOP_ONCE), 0);
	assert_in_range(other.calls, 0, 2); /* reads before it */
	answer_clear(&other);
	buf_clear(&g.log.b);
}

TEST(a_callback_may_close_its_view_or_all)
{
	close_in_callback(false);
	close_in_callback(true);
}

TEST(all_may_be_freed_while_logs_are_read)
{
	struct answer a[8] = {{0}};

	make_log(2, 1000);
	for (unsigned int threads = 0; threads <= 2; threads++) {
		ground_open(threads);
		for (int i = 0; i < 4; i++) {
			struct log_view *v = open_view();

			log_view_digest(
			    v, UINT64_MAX, digest_cb, &a[2 * i], NULL);
			log_view_digest(
			    v, UINT64_MAX, digest_cb, &a[2 * i], NULL);
			log_view_read(v, &(struct log_at){0}, UINT64_MAX, 0,
			    read_cb, &a[2 * i + 1], NULL);
		}
		ground_close();
		for (int i = 0; i < 8; i++)
			assert_int_equal(a[i].calls, 0);
	}
	buf_clear(&g.log.b);
}

/* ---- many */

TEST(a_long_walk_lets_others_go_before)
{
	struct answer a = {0}, b = {0};
	struct log_view *v, *w;

	make_log(24, 1000);
	v = open_view();
	w = open_view();
	gate_set(true);
	log_view_digest(v, UINT64_MAX, digest_cb, &a, NULL);
	gate_await();
	log_view_read(w, &(struct log_at){0}, UINT64_MAX, 0, read_cb, &b, NULL);
	gate_set(false);
	await(&a);
	assert_int_equal(b.calls, 1);
	assert_true(b.number < a.number);
	answer_clear(&a);
	answer_clear(&b);
}

TEST(many_views_are_all_answered)
{
	static struct answer a[300];
	struct log_view *v[ARRAY_LEN(a)];
	int fd;

	ground_open(2);
	make_log(2, 1000);
	fd = file_of_log(&g.log);
	for (size_t i = 0; i < ARRAY_LEN(a); i++) {
		v[i] = log_view_open(g.logs, dup(fd), 1, &caps);
		log_view_digest(v[i], UINT64_MAX, digest_cb, &a[i], NULL);
	}
	for (size_t i = 0; i < ARRAY_LEN(a); i++) {
		await(&a[i]);
		check_digest(&a[i]);
		answer_clear(&a[i]);
		log_view_close(v[i]);
	}
	assert_int_equal(close(fd), 0);
}

TEST(too_many_requests_are_refused)
{
	struct answer first = {0}, last = {0};
	struct log_request *r;
	struct log_view *v;

	begin_log(&g.log);
	v = open_view();
	gate_set(true);
	log_view_digest(v, UINT64_MAX, digest_cb, &first, NULL);
	gate_await();
	for (int i = 1; i < LOGS_REQUESTS_MAX; i++) {
		log_view_read(
		    v, &(struct log_at){0}, UINT64_MAX, 0, read_cb, &first, &r);
		log_request_cancel(r);
	}
	log_view_digest(v, UINT64_MAX, digest_cb, &last, NULL);
	await(&last);
	assert_int_equal(last.rc, ERR_LIMIT);
	assert_int_equal(first.calls, 0);
	gate_set(false);
	await(&first);
	assert_int_equal(first.rc, 0);
	answer_clear(&first);
	answer_clear(&last);
}

/* ---- what is made of a digest */

struct made {
	struct log_maker base;
	pthread_t by;
	uint64_t bytes;
	unsigned int makes, dones;
};

static void
made_make(struct log_maker *m, const struct log_digest *d)
{
	struct made *made = (struct made *)m;

	made->by = pthread_self();
	made->bytes = d->commands[0].out[0].bytes;
	made->makes++;
}

static void
made_done(struct log_maker *m)
{
	((struct made *)m)->dones++;
}

TEST(what_is_made_of_a_file_is_made_by_a_thread)
{
	struct made made = {.base = {made_make, made_done}};
	struct answer a = {0};
	struct log_view *v;

	make_log(6, 1000); /* more than a slice */
	v = open_view();
	log_view_make(v, UINT64_MAX, &made.base, digest_cb, &a, NULL);
	await(&a);
	assert_int_equal(made.makes, 1);
	assert_int_equal(made.dones, 1);
	assert_int_equal(made.bytes, g.log.bytes[0]);
	assert_false(pthread_equal(made.by, pthread_self()));
	answer_clear(&a);
}

TEST(a_maker_is_done_with_whatever_becomes_of_it)
{
	struct made made = {.base = {made_make, made_done}};
	struct answer a = {0};
	struct log_view *v;

	make_log(1, 1000);
	v = open_view();
	gate_set(true);
	log_view_make(v, UINT64_MAX, &made.base, digest_cb, &a, NULL);
	gate_await();
	log_view_close(v); /* it is made by now, or never */
	gate_set(false);
	while (made.dones == 0)
		(void)event_base_loop(g.base, EVLOOP_ONCE);
	assert_int_equal(a.calls, 0);
	buf_clear(&g.log.b);
	ground_close();
	assert_int_equal(made.dones, 1);
}

TEST_MAIN(ground_set_up, ground_tear_down)
