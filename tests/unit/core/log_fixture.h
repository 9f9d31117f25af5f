/*
 * log_fixture.h - logs of runs made up for tests
 *
 * A made log goes into a buffer and, on request, into a file that the caller
 * closes.  Texts of output are cut from one endless, never repeating enough
 * pattern, so that a byte in the wrong place is seen.
 */
#ifndef UNIT_CORE_LOG_FIXTURE_H
#define UNIT_CORE_LOG_FIXTURE_H

#include "common/buf.h"
#include "common/fd.h"
#include "common/runlog.h"
#include "common/xmalloc.h"
#include "tests/unit/test.h"

#define WHEN_US INT64_C(1795201200123456)

struct made_log {
	struct buf b;
	uint64_t bytes[2]; /* of the command at hand */
	uint8_t command;
};

/* Byte number i of a stream. */
static inline uint8_t
pattern(uint64_t i, int type)
{
	return (uint8_t)((i * 2654435761u >> 16) + i + (uint64_t)type * 101);
}

static inline void
put_record(struct made_log *l, enum runlog_type type, const void *p, size_t n)
{
	const struct runlog_header h = {
	    type, l->command, (uint32_t)n, WHEN_US + type};

	runlog_put_header(&l->b, &h);
	assert_int_equal(buf_append(&l->b, p, n), 0);
}

static inline void
put_output(struct made_log *l, enum runlog_type type, size_t n)
{
	const struct runlog_header h = {
	    type, l->command, (uint32_t)n, WHEN_US + type};
	uint64_t *at = &l->bytes[type == RUNLOG_STDERR];
	uint8_t *p;

	runlog_put_header(&l->b, &h);
	p = buf_reserve(&l->b, n);
	assert_non_null(p);
	for (size_t i = 0; i < n; i++)
		p[i] = pattern((*at)++, (int)type);
	buf_commit(&l->b, n);
}

static inline void
put_started(struct made_log *l, uint8_t command)
{
	l->command = command;
	l->bytes[0] = l->bytes[1] = 0;
	put_record(l, RUNLOG_COMMAND_STARTED, "", 0);
}

static inline void
put_ended(struct made_log *l)
{
	const struct runlog_end end = {.reason = RUNLOG_EXIT,
	    .exit_code = 3,
	    .stdout_bytes = l->bytes[0],
	    .stderr_bytes = l->bytes[1],
	    .wall_us = 77,
	    .text = "why"};
	struct buf b = {0};

	runlog_put_end(&b, &end);
	put_record(l, RUNLOG_COMMAND_ENDED, buf_data(&b), buf_len(&b));
	buf_clear(&b);
}

static inline void
put_run_ended(struct made_log *l)
{
	const struct runlog_run_end end = {
	    .reason = RUNLOG_EXIT, .failed = 1, .command = l->command};
	struct buf b = {0};

	runlog_put_run_end(&b, &end);
	put_record(l, RUNLOG_RUN_ENDED, buf_data(&b), buf_len(&b));
	buf_clear(&b);
}

static inline void
begin_log(struct made_log *l)
{
	memset(l, 0, sizeof(*l));
	put_record(l, RUNLOG_RUN_STARTED, "", 0);
}

/* A file with the log in it, that can grow. */
static inline int
file_of_log(const struct made_log *l)
{
	char path[] = "/tmp/test_log.XXXXXX";
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(
	    fd_write_all(fd, buf_data(&l->b), buf_len(&l->b), NULL), 0);
	return fd;
}

/* n bytes of a stream from its byte number from on. */
static inline void
assert_pattern(const struct buf *b, uint64_t from, size_t n, int type)
{
	const uint8_t *p = buf_data(b);

	assert_int_equal(buf_len(b), n);
	for (size_t i = 0; i < n; i++)
		if (p[i] != pattern(from + i, type))
			fail_msg("byte %zu of %zu is wrong", i, n);
}

#endif
