#include "supervisor/core/log_digest.h"
#include "tests/unit/core/log_fixture.h"
#include "tests/unit/test.h"

static const struct log_caps caps = {{100, 50}, 20, 0, 0};

static uint8_t work_chunk[LOG_WORK_BYTES];
static const struct log_work work = {work_chunk, sizeof(work_chunk)};

/* ---- a digest of a whole log, from memory */

static void
advance(struct log_digest *d, const uint8_t *p, size_t n)
{
	const struct runlog_source source = {-1, p};
	struct err e;

	assert_int_equal(log_digest_advance(d, &source, n, &work, &e), 0);
}

static struct log_digest *
digest_of(
    const struct made_log *l, uint32_t ncommands, const struct log_caps *c)
{
	struct log_digest *d = log_digest_new(ncommands, c);

	advance(d, buf_data(&l->b), buf_len(&l->b));
	return d;
}

/* total bytes of a stream in records of at most record: does it come out as
 * the head, the tail, and what was dropped? */
static void
check_stream(const struct log_stream *s, uint64_t total, size_t cap, int type)
{
	size_t head = total < cap ? (size_t)total : cap;
	size_t rest = (size_t)total - head;
	size_t tail = rest < caps.tail ? rest : caps.tail;

	assert_int_equal(s->bytes, total);
	assert_pattern(&s->head, 0, head, type);
	assert_pattern(&s->tail, total - tail, tail, type);
	assert_int_equal(s->head_len, head);
}

TEST(head_and_tail_are_exact_around_the_caps)
{
	static const size_t records[] = {1, 7, 19, 20, 21, 99, 100, 101, 300};

	for (size_t total = 0; total <= 260; total++) {
		for (size_t i = 0; i < ARRAY_LEN(records); i++) {
			struct log_digest *d;
			struct made_log l;
			size_t left = total;

			begin_log(&l);
			put_started(&l, 0);
			while (left > 0) {
				size_t n =
				    left < records[i] ? left : records[i];

				put_output(&l, RUNLOG_STDOUT, n);
				left -= n;
			}
			put_ended(&l);
			d = digest_of(&l, 1, &caps);
			check_stream(
			    &d->commands[0].out[0], total, 100, RUNLOG_STDOUT);
			assert_false(d->broken);
			assert_int_equal(d->scanned, buf_len(&l.b));
			log_digest_free(d);
			buf_clear(&l.b);
		}
	}
}

/* Two commands, both streams interleaved, with an end. */
static void
make_mixed(struct made_log *l)
{
	begin_log(l);
	put_started(l, 0);
	for (size_t i = 1; i <= 30; i++) {
		put_output(l, RUNLOG_STDOUT, i);
		put_output(l, RUNLOG_STDERR, 31 - i);
	}
	put_ended(l);
	put_started(l, 1);
	put_output(l, RUNLOG_STDERR, 12);
	put_ended(l);
	put_run_ended(l);
}

static void
check_mixed(const struct log_digest *d)
{
	const struct log_command *c = d->commands;

	check_stream(&c[0].out[0], 465, 100, RUNLOG_STDOUT);
	check_stream(&c[0].out[1], 465, 50, RUNLOG_STDERR);
	check_stream(&c[1].out[0], 0, 100, RUNLOG_STDOUT);
	check_stream(&c[1].out[1], 12, 50, RUNLOG_STDERR);
	assert_int_equal(c[0].state, LOG_COMMAND_ENDED);
	assert_int_equal(c[1].state, LOG_COMMAND_ENDED);
	assert_true(c[1].started_us == WHEN_US + RUNLOG_COMMAND_STARTED);
	assert_true(c[1].ended_us == WHEN_US + RUNLOG_COMMAND_ENDED);
	assert_int_equal(c[0].end.exit_code, 3);
	assert_int_equal(c[0].end.stdout_bytes, 465);
	assert_string_equal(c[0].end.text, "why");
	assert_true(d->started_us == WHEN_US + RUNLOG_RUN_STARTED);
	assert_true(d->ended_us == WHEN_US + RUNLOG_RUN_ENDED);
	assert_int_equal(d->end.failed, 1);
	assert_int_equal(d->end.command, 1);
	assert_false(d->broken);
}

TEST(streams_and_commands_are_kept_apart)
{
	struct log_digest *d;
	struct made_log l;

	make_mixed(&l);
	d = digest_of(&l, 2, &caps);
	check_mixed(d);
	log_digest_free(d);
	buf_clear(&l.b);
}

TEST(a_log_that_grows_by_any_step_gives_the_same_digest)
{
	struct made_log l;

	make_mixed(&l);
	for (size_t step = 1; step < 200; step++) {
		struct log_digest *d = log_digest_new(2, &caps);
		size_t n = 0;

		while (n < buf_len(&l.b)) {
			/* Of the exact size, for the sanitizer. */
			uint8_t *copy;

			n = n + step < buf_len(&l.b) ? n + step : buf_len(&l.b);
			copy = xmemdup(buf_data(&l.b), n);
			advance(d, copy, n);
			assert_true(d->scanned <= n);
			free(copy);
		}
		check_mixed(d);
		log_digest_free(d);
	}
	buf_clear(&l.b);
}

TEST(a_file_gives_the_same_digest_whatever_is_read_at_once)
{
	struct made_log l;
	int fd;

	make_mixed(&l);
	fd = file_of_log(&l);
	for (size_t size = 1; size < 700; size++) {
		const struct log_work small = {work_chunk, size};
		const struct runlog_source source = {.fd = fd};
		struct log_digest *d = log_digest_new(2, &caps);
		struct err e;

		assert_int_equal(
		    log_digest_advance(d, &source, buf_len(&l.b), &small, &e),
		    0);
		check_mixed(d);
		log_digest_free(d);
	}
	assert_int_equal(close(fd), 0);
	buf_clear(&l.b);
}

TEST(the_merged_output_is_both_heads_as_they_came)
{
	static const struct log_caps all = {{4, 10}, 20, 12, 0};
	struct log_digest *d;
	struct made_log l;

	begin_log(&l);
	put_started(&l, 0);
	put_record(&l, RUNLOG_STDOUT, "abc", 3);
	put_record(&l, RUNLOG_STDERR, "E", 1);
	put_record(&l, RUNLOG_STDOUT, "def", 3);
	l.bytes[0] = 6;
	l.bytes[1] = 1;
	put_ended(&l);
	put_started(&l, 1);
	put_record(&l, RUNLOG_STDOUT, "second", 6);
	put_record(&l, RUNLOG_STDERR, "more", 4);
	d = digest_of(&l, 2, &all);
	assert_int_equal(buf_len(&d->merged), 12);
	assert_memory_equal(buf_data(&d->merged), "abcEdsecomor", 12);
	log_digest_drop(d);
	assert_int_equal(log_digest_held(d), 0);
	advance(d, buf_data(&l.b), buf_len(&l.b));
	assert_memory_equal(buf_data(&d->merged), "abcEdsecomor", 12);
	log_digest_free(d);
	buf_clear(&l.b);
}

/* ---- logs that are not whole, or none */

TEST(a_record_cut_off_at_the_end_is_left_out)
{
	struct log_digest *d;
	struct made_log l;
	size_t whole;

	begin_log(&l);
	put_started(&l, 0);
	put_output(&l, RUNLOG_STDOUT, 30);
	whole = buf_len(&l.b);
	put_output(&l, RUNLOG_STDOUT, 40);
	for (size_t n = whole; n < buf_len(&l.b); n++) {
		d = log_digest_new(1, &caps);
		advance(d, buf_data(&l.b), n);
		check_stream(&d->commands[0].out[0], 30, 100, RUNLOG_STDOUT);
		assert_int_equal(d->scanned, whole);
		assert_int_equal(d->commands[0].state, LOG_COMMAND_RUNNING);
		assert_int_equal(d->ended_us, 0);
		assert_false(d->broken);
		advance(d, buf_data(&l.b), buf_len(&l.b));
		check_stream(&d->commands[0].out[0], 70, 100, RUNLOG_STDOUT);
		log_digest_free(d);
	}
	buf_clear(&l.b);
}

/* What makes no sense comes behind 30 good bytes of output. */
static void
check_broken(struct made_log *l, size_t good)
{
	struct log_digest *d = digest_of(l, 1, &caps);

	assert_true(d->broken);
	assert_int_equal(d->scanned, good);
	check_stream(&d->commands[0].out[0], 30, 100, RUNLOG_STDOUT);
	assert_int_equal(d->commands[0].state, LOG_COMMAND_RUNNING);
	advance(d, buf_data(&l->b), buf_len(&l->b));
	assert_int_equal(d->scanned, good);
	log_digest_free(d);
	buf_clear(&l->b);
}

TEST(the_first_byte_that_makes_no_sense_is_the_end_for_good)
{
	struct made_log l;
	size_t good;

	for (int how = 0; how < 5; how++) {
		begin_log(&l);
		put_started(&l, 0);
		put_output(&l, RUNLOG_STDOUT, 30);
		good = buf_len(&l.b);
		if (how == 0) { /* no record */
			assert_int_equal(
			    buf_append(&l.b, "0123456789abcdefgh", 18), 0);
		} else if (how == 1) { /* of a command there is not */
			l.command = 1;
			put_output(&l, RUNLOG_STDOUT, 5);
		} else if (how == 2) { /* out of order */
			put_started(&l, 0);
		} else if (how == 3) { /* wrong counts */
			l.bytes[1] = 1;
			put_ended(&l);
		} else {
			put_run_ended(&l);
		}
		put_output(&l, RUNLOG_STDOUT, 5);
		check_broken(&l, good);
	}
}

TEST(a_log_that_cannot_be_read_is_begun_again_later)
{
	struct runlog_source source = {.fd = -1};
	struct log_digest *d;
	struct made_log l;
	struct err e;

	make_mixed(&l);
	d = log_digest_new(2, &caps);
	assert_int_equal(
	    log_digest_advance(d, &source, buf_len(&l.b), &work, &e), ERR_SYS);
	source.fd = file_of_log(&l);
	assert_int_equal(
	    log_digest_advance(d, &source, buf_len(&l.b), &work, &e), 0);
	check_mixed(d);
	log_digest_free(d);
	assert_int_equal(close(source.fd), 0);
	buf_clear(&l.b);
}

/* ---- heads given back, and kept */

TEST(heads_that_were_dropped_are_read_again)
{
	struct made_log l;

	make_mixed(&l);
	for (size_t n = 0; n <= buf_len(&l.b); n += 13) {
		struct log_digest *d = log_digest_new(2, &caps);

		advance(d, buf_data(&l.b), n);
		log_digest_drop(d);
		assert_int_equal(log_digest_held(d), 0);
		advance(d, buf_data(&l.b), buf_len(&l.b));
		check_mixed(d);
		log_digest_drop(d);
		advance(d, buf_data(&l.b), buf_len(&l.b));
		check_mixed(d);
		log_digest_free(d);
	}
	buf_clear(&l.b);
}

/* A head that is scattered over more than is read at once. */
TEST(a_scattered_head_is_read_again_in_slices)
{
	static const struct log_caps wide = {{1000, 1000}, 20, 0, 0};
	struct runlog_source source = {0};
	unsigned int turns = 1;
	struct log_digest *d;
	struct made_log l;
	struct err e;
	int rc;

	begin_log(&l);
	put_started(&l, 0);
	for (int i = 0; i < 10000; i++) {
		put_output(&l, RUNLOG_STDOUT, 1000);
		if (i % 1000 == 0)
			put_output(&l, RUNLOG_STDERR, 10);
	}
	d = digest_of(&l, 1, &wide);
	log_digest_drop(d);
	source.fd = file_of_log(&l);
	while ((rc = log_digest_advance(
		    d, &source, buf_len(&l.b), &work, &e)) == 1)
		turns++;
	assert_int_equal(rc, 0);
	assert_in_range(turns, 2, 4);
	assert_pattern(&d->commands[0].out[0].head, 0, 1000, RUNLOG_STDOUT);
	assert_pattern(&d->commands[0].out[1].head, 0, 100, RUNLOG_STDERR);
	log_digest_free(d);
	assert_int_equal(close(source.fd), 0);
	buf_clear(&l.b);
}

static struct log_digest *
recoded(const struct log_digest *d, uint32_t ncommands, size_t *size)
{
	struct log_digest *got;
	struct buf b;
	struct err e;

	buf_init(&b, LOG_DIGEST_MAX);
	log_digest_encode(d, &b);
	if (size != NULL)
		*size = buf_len(&b);
	for (size_t n = 0; n < buf_len(&b); n++) {
		AUTO(auto_free) uint8_t *copy = xmemdup(buf_data(&b), n);

		assert_int_equal(
		    log_digest_decode(copy, n, ncommands, &d->caps, &got, &e),
		    ERR_PROTO);
	}
	assert_int_equal(log_digest_decode(buf_data(&b), buf_len(&b), ncommands,
			     &d->caps, &got, &e),
	    0);
	buf_clear(&b);
	return got;
}

TEST(a_kept_digest_needs_only_the_heads_of_the_log)
{
	struct log_digest *d, *kept;
	struct made_log l;

	make_mixed(&l);
	d = digest_of(&l, 2, &caps);
	kept = recoded(d, 2, NULL);
	assert_true(kept->scanned == buf_len(&l.b));
	/* What follows is not its business. */
	assert_int_equal(buf_append(&l.b, "garbage", 7), 0);
	advance(kept, buf_data(&l.b), buf_len(&l.b));
	check_mixed(kept);
	assert_true(kept->scanned == buf_len(&l.b) - 7);
	log_digest_free(kept);
	log_digest_free(d);
	buf_clear(&l.b);
}

TEST(a_kept_digest_of_another_log_gives_way_to_the_log)
{
	struct log_digest *d, *kept;
	struct made_log l, other;

	make_mixed(&l);
	begin_log(&other);
	put_started(&other, 0);
	put_output(&other, RUNLOG_STDERR, 5);
	put_output(&other, RUNLOG_STDOUT, 200);
	put_ended(&other);
	d = digest_of(&other, 2, &caps);
	kept = recoded(d, 2, NULL);
	advance(kept, buf_data(&l.b), buf_len(&l.b));
	check_mixed(kept);
	log_digest_free(kept);
	/* A log that is too short for it. */
	kept = recoded(d, 2, NULL);
	advance(kept, buf_data(&other.b), RUNLOG_HEADER_BYTES);
	assert_int_equal(kept->scanned, RUNLOG_HEADER_BYTES);
	assert_int_equal(kept->commands[0].out[0].bytes, 0);
	log_digest_free(kept);
	log_digest_free(d);
	buf_clear(&other.b);
	buf_clear(&l.b);
}

TEST(other_caps_make_a_kept_digest_useless)
{
	static const struct log_caps other = {{100, 51}, 20, 0, 0};
	struct log_digest *d, *got;
	struct made_log l;
	struct buf b;
	struct err e;

	make_mixed(&l);
	d = digest_of(&l, 2, &caps);
	buf_init(&b, LOG_DIGEST_MAX);
	log_digest_encode(d, &b);
	assert_int_equal(
	    log_digest_decode(buf_data(&b), buf_len(&b), 2, &other, &got, &e),
	    ERR_PROTO);
	assert_int_equal(
	    log_digest_decode(buf_data(&b), buf_len(&b), 1, &caps, &got, &e),
	    ERR_PROTO);
	buf_clear(&b);
	log_digest_free(d);
	buf_clear(&l.b);
}

/* Scattered words of stderr in a long stdout: kept as bytes, the rest not. */
TEST(only_a_head_that_is_scattered_is_kept_as_bytes)
{
	static const struct log_caps wide = {{1u << 20, 1u << 20}, 20, 0, 0};
	struct log_digest *d, *kept;
	struct made_log l;
	size_t size;

	begin_log(&l);
	put_started(&l, 0);
	for (int i = 0; i < 100; i++) {
		put_output(&l, RUNLOG_STDOUT, 20000);
		put_output(&l, RUNLOG_STDERR, 10);
	}
	put_ended(&l);
	d = digest_of(&l, 1, &wide);
	kept = recoded(d, 1, &size);
	assert_true(size > 1000 && size < 2000);
	assert_true(kept->commands[0].out[0].absent);
	assert_false(kept->commands[0].out[1].absent);
	advance(kept, buf_data(&l.b), buf_len(&l.b));
	assert_pattern(
	    &kept->commands[0].out[0].head, 0, 1u << 20, RUNLOG_STDOUT);
	assert_pattern(&kept->commands[0].out[1].head, 0, 1000, RUNLOG_STDERR);
	log_digest_free(kept);
	log_digest_free(d);
	buf_clear(&l.b);
}

/* ---- one bound for the heads of all streams */

#define SHARED_COMMANDS 3

/* Long and short streams, in records of n bytes: 0 to 600 of each. */
static void
make_shared(struct made_log *l, size_t n)
{
	static const size_t totals[SHARED_COMMANDS][2] = {
	    {600, 10}, {0, 90}, {300, 600}};

	begin_log(l);
	for (uint8_t i = 0; i < SHARED_COMMANDS; i++) {
		put_started(l, i);
		for (unsigned int k = 0; k < 2; k++)
			while (l->bytes[k] < totals[i][k]) {
				size_t left =
				    totals[i][k] - (size_t)l->bytes[k];

				put_output(l,
				    k == 0 ? RUNLOG_STDOUT : RUNLOG_STDERR,
				    left < n ? left : n);
			}
		put_ended(l);
	}
	put_run_ended(l);
}

static uint32_t
longest_head(const struct log_digest *d)
{
	uint32_t most = 0;

	for (uint32_t i = 0; i < d->ncommands; i++)
		for (unsigned int k = 0; k < 2; k++)
			if (d->commands[i].out[k].head_len > most)
				most = d->commands[i].out[k].head_len;
	return most;
}

/* Whole is what is shorter than the longest; the rest is tail and dropped. */
static void
check_shared(const struct log_digest *d, const struct log_caps *all)
{
	const uint32_t most = longest_head(d);
	size_t sum = 0;

	for (uint32_t i = 0; i < d->ncommands; i++)
		for (unsigned int k = 0; k < 2; k++) {
			const struct log_stream *s = &d->commands[i].out[k];
			uint64_t rest = s->bytes - s->head_len;
			size_t tail = rest < all->tail ? rest : all->tail;
			int type = k == 0 ? RUNLOG_STDOUT : RUNLOG_STDERR;

			assert_true(rest == 0 || s->head_len == most ||
			    s->head_len == all->head[k]);
			assert_pattern(&s->head, 0, s->head_len, type);
			assert_pattern(&s->tail, s->bytes - tail, tail, type);
			sum += s->head_len;
		}
	assert_in_range(sum, all->heads / 2, all->heads);
}

TEST(the_longest_heads_give_way_when_all_are_too_much)
{
	static const size_t records[] = {1, 7, 64, 600};

	for (uint32_t max = 128; max <= 512; max += 64)
		for (size_t i = 0; i < ARRAY_LEN(records); i++) {
			const struct log_caps all = {{400, 400}, 20, 0, max};
			struct log_digest *d, *kept;
			struct made_log l;

			make_shared(&l, records[i]);
			d = digest_of(&l, SHARED_COMMANDS, &all);
			check_shared(d, &all);
			log_digest_drop(d);
			advance(d, buf_data(&l.b), buf_len(&l.b));
			check_shared(d, &all);
			kept = recoded(d, SHARED_COMMANDS, NULL);
			advance(kept, buf_data(&l.b), buf_len(&l.b));
			check_shared(kept, &all);
			log_digest_free(kept);
			log_digest_free(d);
			buf_clear(&l.b);
		}
}

TEST_MAIN(NULL, NULL)
