/* link: -Wl,--wrap=fd_pread_all */
#include "common/fd.h"
#include "common/runlog_scan.h"
#include "common/xmalloc.h"
#include "tests/unit/test.h"

#define WHEN_US INT64_C(1795201200123456)

/* What a walk of put_log says, a letter per step: see note(). */
#define LOG_STEPS "Hr Hr Hooooo Hoo H Hoooo He Hx"

static void
put(struct buf *b, enum runlog_type type, const void *p, size_t n)
{
	const struct runlog_header h = {type, 0, (uint32_t)n, WHEN_US};

	runlog_put_header(b, &h);
	assert_int_equal(buf_append(b, p, n), 0);
}

static void
put_log(struct buf *b)
{
	const struct runlog_end end = {.reason = RUNLOG_EXIT, .text = "why"};
	const struct runlog_run_end run_end = {.reason = RUNLOG_EXIT};
	struct buf payload = {0};

	buf_init(b, 0);
	put(b, RUNLOG_RUN_STARTED, "", 0);
	put(b, RUNLOG_COMMAND_STARTED, "", 0);
	put(b, RUNLOG_STDOUT, "hello", 5);
	put(b, RUNLOG_STDERR, "oh", 2);
	put(b, RUNLOG_STDOUT, "", 0);
	put(b, RUNLOG_STDOUT, "\xa7\1\2\3", 4);
	runlog_put_end(&payload, &end);
	put(b, RUNLOG_COMMAND_ENDED, buf_data(&payload), buf_len(&payload));
	buf_clear(&payload);
	runlog_put_run_end(&payload, &run_end);
	put(b, RUNLOG_RUN_ENDED, buf_data(&payload), buf_len(&payload));
	buf_clear(&payload);
}

struct seen {
	char steps[128];
	struct buf output;
	uint64_t at; /* of the last header */
};

static void
note(struct seen *s, const struct runlog_scan *scan, int step,
    const struct runlog_piece *piece)
{
	size_t n = strlen(s->steps);
	char letter = 'r';

	assert_true(n + piece->n + 2 < sizeof(s->steps));
	if (step == RUNLOG_HEADER) {
		assert_int_equal(scan->offset, scan->at + RUNLOG_HEADER_BYTES);
		assert_true(n == 0 || scan->at > s->at);
		s->at = scan->at;
		(void)strcat(s->steps, n == 0 ? "H" : " H");
		return;
	}
	assert_int_equal(scan->at, s->at);
	if (step == RUNLOG_OUTPUT) {
		assert_true(piece->n > 0);
		memset(s->steps + n, 'o', piece->n);
		assert_int_equal(buf_append(&s->output, piece->p, piece->n), 0);
		return;
	}
	assert_int_equal(step, RUNLOG_RECORD);
	assert_int_equal(piece->n, scan->header.length);
	if (scan->header.type == RUNLOG_COMMAND_ENDED)
		letter = 'e';
	else if (scan->header.type == RUNLOG_RUN_ENDED)
		letter = 'x';
	s->steps[n] = letter;
}

static void
check_seen(struct seen *s)
{
	assert_string_equal(s->steps, LOG_STEPS);
	assert_int_equal(buf_len(&s->output), 11);
	assert_memory_equal(buf_data(&s->output), "hellooh\xa7\1\2\3", 11);
	buf_clear(&s->output);
}

/* One piece of the exact size: the sanitizer sees a byte too many. */
static int
feed(struct runlog_scan *scan, const uint8_t *from, size_t n, struct seen *s)
{
	AUTO(auto_free) uint8_t *copy = xmemdup(from, n);
	const uint8_t *p = copy;
	struct runlog_piece piece = {0};
	struct err e;
	int step;

	while (
	    (step = runlog_scan_next(scan, &p, &n, &piece, &e)) > RUNLOG_MORE) {
		note(s, scan, step, &piece);
		piece.n = 0;
	}
	if (step == RUNLOG_MORE)
		assert_int_equal(n, 0);
	return step;
}

TEST(a_log_cut_at_any_two_bytes_gives_the_same_steps)
{
	struct runlog_scan scan;
	struct buf b;

	put_log(&b);
	for (size_t i = 0; i <= buf_len(&b); i++) {
		for (size_t j = i; j <= buf_len(&b); j++) {
			struct seen s = {.steps = ""};

			runlog_scan_init(&scan, 0);
			assert_int_equal(feed(&scan, buf_data(&b), i, &s), 0);
			assert_int_equal(
			    feed(&scan, buf_data(&b) + i, j - i, &s), 0);
			assert_int_equal(
			    feed(&scan, buf_data(&b) + j, buf_len(&b) - j, &s),
			    0);
			assert_int_equal(scan.offset, buf_len(&b));
			assert_int_equal(scan.at, buf_len(&b));
			check_seen(&s);
		}
	}
	buf_clear(&b);
}

TEST(a_record_that_is_not_whole_is_where_the_next_walk_begins)
{
	struct runlog_scan scan;
	struct buf b;

	put_log(&b);
	for (size_t n = 0; n <= buf_len(&b); n++) {
		struct seen s = {.steps = ""};

		runlog_scan_init(&scan, 0);
		assert_int_equal(feed(&scan, buf_data(&b), n, &s), 0);
		assert_true(scan.at <= n);
		if (scan.at < n) /* the header of it may have been seen */
			assert_int_equal(
			    ((const uint8_t *)buf_data(&b))[scan.at],
			    RUNLOG_MAGIC);
		buf_clear(&s.output);
	}
	buf_clear(&b);
}

TEST(the_first_byte_that_is_no_record_is_refused)
{
	struct seen s = {.steps = ""};
	struct runlog_scan scan;
	struct buf b;

	buf_init(&b, 0);
	put(&b, RUNLOG_STDOUT, "good", 4);
	runlog_scan_init(&scan, 0);
	assert_int_equal(feed(&scan, buf_data(&b), buf_len(&b), &s), 0);
	assert_int_equal(feed(&scan, (const uint8_t *)"x", 1, &s), ERR_PROTO);
	assert_int_equal(scan.at, buf_len(&b));
	assert_string_equal(s.steps, "Hoooo");
	buf_clear(&s.output);
	buf_clear(&b);
}

static int
file_of(const struct buf *b)
{
	struct err e;
	int fd = fd_memfd_sealed("log", buf_data(b), buf_len(b), &e);

	assert_true(fd >= 0);
	return fd;
}

TEST(a_walk_over_a_file_or_memory_is_the_same_as_feeding)
{
	struct runlog_piece piece = {0};
	struct runlog_scan scan;
	struct runlog_walk w;
	uint8_t chunk[64];
	struct buf b;
	struct err e;
	int fd, step;

	put_log(&b);
	fd = file_of(&b);
	for (size_t size = 0; size <= sizeof(chunk); size++) {
		const struct runlog_source source = {
		    fd, size == 0 ? buf_data(&b) : NULL};
		struct seen s = {.steps = ""};

		runlog_scan_init(&scan, 0);
		runlog_walk_init(&w, &scan, &source, buf_len(&b), chunk, size);
		while ((step = runlog_walk_next(&w, &piece, &e)) > 0) {
			note(&s, &scan, step, &piece);
			piece.n = 0;
		}
		assert_int_equal(step, RUNLOG_MORE);
		assert_int_equal(w.nread, size == 0 ? 0 : buf_len(&b));
		check_seen(&s);
	}
	assert_int_equal(close(fd), 0);
	buf_clear(&b);
}

TEST(a_walk_is_fed_on_where_the_file_ended)
{
	struct runlog_piece piece = {0};
	struct runlog_scan scan;
	struct runlog_walk w;
	uint8_t chunk[7];
	struct buf b;
	struct err e;
	int fd, step;

	put_log(&b);
	fd = file_of(&b);
	for (size_t upto = 0; upto <= buf_len(&b); upto++) {
		const struct runlog_source source = {.fd = fd};
		struct seen s = {.steps = ""};

		runlog_scan_init(&scan, 0);
		runlog_walk_init(
		    &w, &scan, &source, upto, chunk, sizeof(chunk));
		while ((step = runlog_walk_next(&w, &piece, &e)) > 0) {
			note(&s, &scan, step, &piece);
			piece.n = 0;
		}
		assert_int_equal(step, RUNLOG_MORE);
		assert_int_equal(scan.offset, upto);
		assert_int_equal(
		    feed(&scan, buf_data(&b) + upto, buf_len(&b) - upto, &s),
		    0);
		check_seen(&s);
	}
	assert_int_equal(close(fd), 0);
	buf_clear(&b);
}

TEST(output_that_is_skipped_is_not_read)
{
	static uint8_t chunk[65536], payload[RUNLOG_PAYLOAD_MAX];
	struct runlog_piece piece;
	struct runlog_source source = {0};
	struct runlog_scan scan;
	struct runlog_walk w;
	unsigned int headers = 0;
	struct buf b;
	struct err e;
	int step;

	buf_init(&b, 0);
	for (int i = 0; i < 64; i++)
		put(&b, RUNLOG_STDOUT, payload, sizeof(payload));
	source.fd = file_of(&b);
	runlog_scan_init(&scan, 0);
	runlog_walk_init(&w, &scan, &source, buf_len(&b), chunk, sizeof(chunk));
	while ((step = runlog_walk_next(&w, &piece, &e)) > 0) {
		assert_int_equal(step, RUNLOG_HEADER);
		headers++;
		runlog_walk_skip(&w, UINT32_MAX);
	}
	assert_int_equal(step, RUNLOG_MORE);
	assert_int_equal(headers, 64);
	assert_true(w.nread < buf_len(&b) / 4);
	assert_int_equal(close(source.fd), 0);
	buf_clear(&b);
}

ssize_t __real_fd_pread_all(
    int fd, void *p, size_t n, uint64_t off, struct err *e);
ssize_t __wrap_fd_pread_all(
    int fd, void *p, size_t n, uint64_t off, struct err *e);
static uint64_t nread;

ssize_t
__wrap_fd_pread_all(int fd, void *p, size_t n, uint64_t off, struct err *e)
{
	nread += n;
	return __real_fd_pread_all(fd, p, n, off, e);
}

TEST(the_order_in_a_file_is_checked_without_its_output)
{
	static const uint8_t payload[RUNLOG_PAYLOAD_MAX];
	struct runlog_check c;
	struct buf b;
	struct err e;
	int fd;

	buf_init(&b, 0);
	put(&b, RUNLOG_RUN_STARTED, "", 0);
	put(&b, RUNLOG_COMMAND_STARTED, "", 0);
	for (int i = 0; i < 64; i++)
		put(&b, RUNLOG_STDOUT, payload, sizeof(payload));
	fd = file_of(&b);
	for (size_t upto = buf_len(&b) - 70000; upto <= buf_len(&b);
	     upto += 7) {
		runlog_check_init(&c, 1);
		nread = 0;
		assert_int_equal(
		    runlog_check_file(&c, fd, upto, NULL, NULL, &e), 0);
		assert_true(nread < upto / 4);
		assert_int_equal(c.scan.offset, upto);
		assert_int_equal(runlog_check_feed(&c, buf_data(&b) + upto,
				     buf_len(&b) - upto, NULL, NULL, &e),
		    0);
		assert_int_equal(c.bytes[0], 64 * sizeof(payload));
	}
	assert_int_equal(close(fd), 0);
	put(&b, RUNLOG_RUN_STARTED, "", 0);
	fd = file_of(&b);
	runlog_check_init(&c, 1);
	assert_int_equal(
	    runlog_check_file(&c, fd, buf_len(&b), NULL, NULL, &e), ERR_PROTO);
	assert_int_equal(close(fd), 0);
	buf_clear(&b);
}

TEST(a_byte_behind_the_end_of_a_run_in_a_file_is_refused)
{
	struct runlog_check c;
	struct buf b;
	struct err e;
	int fd;

	buf_init(&b, 0);
	put(&b, RUNLOG_RUN_STARTED, "", 0);
	put(&b, RUNLOG_RUN_ENDED, "\1\0\0\0\0", RUNLOG_RUN_END_BYTES);
	assert_int_equal(buf_append(&b, "\xa7", 1), 0);
	fd = file_of(&b);
	runlog_check_init(&c, 1);
	assert_int_equal(
	    runlog_check_file(&c, fd, buf_len(&b) - 1, NULL, NULL, &e), 0);
	assert_true(c.ended);
	assert_int_equal(
	    runlog_check_file(&c, fd, buf_len(&b), NULL, NULL, &e), ERR_PROTO);
	assert_int_equal(close(fd), 0);
	buf_clear(&b);
}

TEST(a_file_that_became_shorter_is_an_error)
{
	struct runlog_piece piece;
	struct runlog_source source = {0};
	struct runlog_scan scan;
	struct runlog_walk w;
	uint8_t chunk[64];
	struct buf b;
	struct err e;
	int step;

	put_log(&b);
	source.fd = file_of(&b);
	runlog_scan_init(&scan, 0);
	runlog_walk_init(
	    &w, &scan, &source, buf_len(&b) + 1, chunk, sizeof(chunk));
	while ((step = runlog_walk_next(&w, &piece, &e)) > 0)
		;
	assert_int_equal(step, ERR_SYS);
	assert_string_equal(e.msg, "log: shorter than it was");
	assert_int_equal(close(source.fd), 0);
	buf_clear(&b);
}

TEST_MAIN(NULL, NULL)
