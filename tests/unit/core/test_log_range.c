/* Bytes of a log's output by their place, against the same cut by hand. */
#include "supervisor/core/log_read.h"
#include "tests/unit/core/log_fixture.h"
#include "tests/unit/test.h"

#define NCOMMANDS 3
#define NRECORDS 24

/* What was put into a log, in its order. */
struct known {
	struct made_log log;
	struct {
		uint32_t command;
		enum log_range_stream stream;
		size_t from, n; /* of the stream of its command */
	} records[NCOMMANDS * NRECORDS];
	size_t n;
};

static void
put_known(struct known *k, uint32_t command, enum runlog_type type, size_t n)
{
	const size_t at = k->n++;

	k->records[at].command = command;
	k->records[at].stream =
	    type == RUNLOG_STDOUT ? LOG_RANGE_STDOUT : LOG_RANGE_STDERR;
	k->records[at].from = k->log.bytes[type == RUNLOG_STDERR];
	k->records[at].n = n;
	put_output(&k->log, type, n);
}

static void
make_known(struct known *k)
{
	memset(k, 0, sizeof(*k));
	begin_log(&k->log);
	for (uint8_t c = 0; c < NCOMMANDS; c++) {
		put_started(&k->log, c);
		for (size_t i = 0; i < NRECORDS; i++)
			put_known(k, c,
			    i % 3 == 1 ? RUNLOG_STDERR : RUNLOG_STDOUT,
			    1 + (i * 7 + c) % 19);
		put_ended(&k->log);
	}
	put_run_ended(&k->log);
}

/* All that a question without bounds would have. */
static void
cut_by_hand(
    const struct known *k, const struct log_range *wish, struct buf *out)
{
	for (size_t i = 0; i < k->n; i++) {
		const int type = k->records[i].stream == LOG_RANGE_STDOUT ?
		    RUNLOG_STDOUT :
		    RUNLOG_STDERR;

		if ((wish->command != LOG_RANGE_ALL &&
			wish->command != k->records[i].command) ||
		    (wish->streams & k->records[i].stream) == 0)
			continue;
		for (size_t j = 0; j < k->records[i].n; j++) {
			const uint8_t byte =
			    pattern(k->records[i].from + j, type);

			assert_int_equal(buf_append(out, &byte, 1), 0);
		}
	}
}

static void
read_range(struct log_range *r, const struct made_log *l, uint64_t upto,
    size_t chunk_size)
{
	static uint8_t chunk[LOG_WORK_BYTES];
	const struct log_work work = {chunk, chunk_size};
	const int fd = file_of_log(l);
	const struct runlog_source source = {fd, NULL};
	struct err e;
	int rc;

	log_range_init(r);
	while ((rc = log_range_advance(r, &source, upto, &work, &e)) == 1)
		continue;
	assert_int_equal(rc, 0);
	assert_int_equal(close(fd), 0);
}

static void
check_range(const struct known *k, const struct log_range *wish, size_t chunk)
{
	struct log_range r = *wish;
	struct buf all = {0};
	size_t from, n;

	cut_by_hand(k, wish, &all);
	read_range(&r, &k->log, buf_len(&k->log.b), chunk);
	from =
	    wish->offset < buf_len(&all) ? (size_t)wish->offset : buf_len(&all);
	n = buf_len(&all) - from < wish->max ? buf_len(&all) - from : wish->max;
	assert_int_equal(r.total, buf_len(&all));
	assert_int_equal(buf_len(&r.bytes), n);
	if (n > 0)
		assert_memory_equal(buf_data(&r.bytes),
		    (const uint8_t *)buf_data(&all) + from, n);
	assert_false(r.is_broken);
	buf_clear(&all);
	log_range_clear(&r);
}

TEST(each_range_has_its_bytes)
{
	static const uint32_t commands[] = {LOG_RANGE_ALL, 0, 2, 7};
	static const size_t maxima[] = {1, 18, 64, 1000};
	struct known k;

	make_known(&k);
	for (int streams = LOG_RANGE_STDOUT; streams <= LOG_RANGE_BOTH;
	     streams++)
		for (size_t c = 0; c < ARRAY_LEN(commands); c++)
			for (size_t m = 0; m < ARRAY_LEN(maxima); m++)
				for (uint64_t at = 0; at < 900; at += 13)
					check_range(&k,
					    &(struct log_range){
						.command = commands[c],
						.streams =
						    (enum log_range_stream)
							streams,
						.offset = at,
						.max = maxima[m]},
					    LOG_WORK_BYTES);
	buf_clear(&k.log.b);
}

TEST(an_offset_beyond_all_numbers_has_nothing)
{
	struct known k;

	make_known(&k);
	check_range(&k,
	    &(struct log_range){.command = LOG_RANGE_ALL,
		.streams = LOG_RANGE_BOTH,
		.offset = INT64_MAX,
		.max = 100},
	    LOG_WORK_BYTES);
	buf_clear(&k.log.b);
}

/* A log that is still written: up to any byte of it there is as much as has
 * come, and never more. */
TEST(a_log_that_grows_has_what_has_come)
{
	uint64_t before = 0;
	struct known k;
	struct buf all = {0};
	const struct log_range wish = {
	    .command = LOG_RANGE_ALL, .streams = LOG_RANGE_BOTH, .max = 4096};

	make_known(&k);
	cut_by_hand(&k, &wish, &all);
	for (uint64_t upto = 0; upto <= buf_len(&k.log.b); upto++) {
		struct log_range r = wish;

		read_range(&r, &k.log, upto, LOG_WORK_BYTES);
		assert_in_range(r.total, before, before + 1);
		assert_int_equal(buf_len(&r.bytes), r.total);
		if (r.total > 0)
			assert_memory_equal(buf_data(&r.bytes), buf_data(&all),
			    (size_t)r.total);
		before = r.total;
		log_range_clear(&r);
	}
	assert_int_equal(before, buf_len(&all));
	buf_clear(&all);
	buf_clear(&k.log.b);
}

/* What its commands say they wrote, and the log does not have. */
TEST(what_did_not_come_is_claimed)
{
	struct made_log l;
	struct log_range r = {
	    .command = LOG_RANGE_ALL, .streams = LOG_RANGE_STDOUT, .max = 100};

	begin_log(&l);
	put_started(&l, 0);
	put_output(&l, RUNLOG_STDOUT, 10);
	l.bytes[0] += 32;
	l.bytes[1] += 5;
	put_ended(&l);
	read_range(&r, &l, buf_len(&l.b), LOG_WORK_BYTES);
	assert_int_equal(r.total, 10);
	assert_int_equal(r.claimed, 42);
	log_range_clear(&r);
	buf_clear(&l.b);
}

TEST(what_is_no_record_ends_it)
{
	struct made_log l;
	struct log_range r = {
	    .command = LOG_RANGE_ALL, .streams = LOG_RANGE_BOTH, .max = 100};
	uint8_t rubbish[64];

	memset(rubbish, 0xff, sizeof(rubbish));
	begin_log(&l);
	put_started(&l, 0);
	put_output(&l, RUNLOG_STDOUT, 10);
	assert_int_equal(buf_append(&l.b, rubbish, sizeof(rubbish)), 0);
	put_output(&l, RUNLOG_STDOUT, 10);
	read_range(&r, &l, buf_len(&l.b), LOG_WORK_BYTES);
	assert_true(r.is_broken);
	assert_int_equal(r.total, 10);
	assert_int_equal(buf_len(&r.bytes), 10);
	log_range_clear(&r);
	buf_clear(&l.b);
}

/* A log above a slice is read in several, and none is read twice. */
TEST(a_long_log_is_read_in_slices)
{
	const size_t piece = 60000, pieces = 3 * LOG_SLICE_BYTES / piece + 1;
	struct made_log l;
	struct log_range r = {.command = LOG_RANGE_ALL,
	    .streams = LOG_RANGE_STDOUT,
	    .offset = (pieces - 1) * piece - 7,
	    .max = LOG_RANGE_BYTES_MAX};

	begin_log(&l);
	put_started(&l, 0);
	for (size_t i = 0; i < pieces; i++)
		put_output(&l, RUNLOG_STDOUT, piece);
	put_ended(&l);
	read_range(&r, &l, buf_len(&l.b), LOG_WORK_BYTES);
	assert_int_equal(r.total, pieces * piece);
	assert_pattern(&r.bytes, r.offset, piece + 7, RUNLOG_STDOUT);
	log_range_clear(&r);
	r = (struct log_range){.command = LOG_RANGE_ALL,
	    .streams = LOG_RANGE_STDOUT,
	    .max = UINT32_MAX};
	read_range(&r, &l, buf_len(&l.b), LOG_WORK_BYTES);
	assert_int_equal(r.total, pieces * piece);
	assert_pattern(&r.bytes, 0, LOG_RANGE_BYTES_MAX, RUNLOG_STDOUT);
	log_range_clear(&r);
	buf_clear(&l.b);
}

TEST_MAIN(NULL, NULL)
