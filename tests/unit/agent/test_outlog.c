#include "common/log.h"
#include "common/runlog_scan.h"
#include "images/agent/outlog.h"
#include "tests/unit/test.h"

static const struct uuid id = {{1}};

/* What a program printed, n times the byte, as far as it fits one record. */
static void
print(struct outlog *o, struct outlog_stream *s, size_t n, uint8_t byte)
{
	struct iovec iov[2];
	int niov = outlog_space(o, s, n, iov);

	n = 0;
	for (int i = 0; i < niov; i++) {
		memset(iov[i].iov_base, byte, iov[i].iov_len);
		n += iov[i].iov_len;
	}
	outlog_take(o, s, n);
}

static void
put_output(struct outlog *o, size_t n, uint8_t byte)
{
	struct outlog_stream s;

	outlog_stream_begin(&s, RUNLOG_STDOUT, 0);
	print(o, &s, n, byte);
	outlog_flush(o, &s);
}

static void
none_cb(
    const struct runlog_header *h, const uint8_t *record, size_t len, void *arg)
{
	(void)record;
	(void)len;
	(void)h;
	(*(int *)arg)++;
}

TEST(the_records_are_a_good_log)
{
	const struct runlog_run_end run_end = {RUNLOG_EXIT, 0, 1, 0};
	struct runlog_end end = {.reason = RUNLOG_EXIT, .stdout_bytes = 300};
	struct runlog_check check;
	uint8_t bytes[1024];
	struct outlog o;
	struct err e;
	int records = 0;

	outlog_init(&o, &id);
	outlog_put_plain(&o, RUNLOG_RUN_STARTED, 0);
	outlog_put_plain(&o, RUNLOG_COMMAND_STARTED, 0);
	put_output(&o, 300, 'x');
	outlog_put_end(&o, 0, &end);
	outlog_put_run_end(&o, &run_end);
	assert_true(ring_used(&o.flow.ring) <= sizeof(bytes));
	ring_get(&o.flow.ring, 0, bytes, ring_used(&o.flow.ring));
	runlog_check_init(&check, 1);
	assert_int_equal(runlog_check_feed(&check, bytes,
			     ring_used(&o.flow.ring), none_cb, &records, &e),
	    0);
	assert_true(check.ended);
	assert_int_equal(records, 4);
	outlog_clear(&o);
}

TEST(a_full_log_has_room_for_every_end_record)
{
	const struct runlog_run_end run_end = {RUNLOG_EXIT, 0, 0, 0};
	struct runlog_end end = {.reason = RUNLOG_EXIT};
	struct outlog_stream s;
	struct outlog o;

	memset(end.text, 'x', sizeof(end.text) - 1);
	outlog_init(&o, &id);
	outlog_put_plain(&o, RUNLOG_RUN_STARTED, 0);
	outlog_stream_begin(&s, RUNLOG_STDOUT, 0);
	while (outlog_room(&o, &s) > 0) {
		size_t n = outlog_room(&o, &s);

		put_output(&o, n < 60000 ? n : 60000, 'x');
	}
	assert_int_equal(ring_used(&o.flow.ring), FRAME_WINDOW_BYTES);
	for (uint32_t i = 0; i < RUNSPEC_COMMANDS_MAX; i++) {
		outlog_put_plain(&o, RUNLOG_COMMAND_STARTED, i);
		put_output(&o, 3, 'y');
		put_output(&o, 3, 'z');
		outlog_put_end(&o, i, &end);
	}
	outlog_put_run_end(&o, &run_end);
	assert_true(ring_used(&o.flow.ring) <= o.flow.ring.max);
	outlog_clear(&o);
}

TEST(a_character_that_is_cut_is_held_until_its_rest)
{
	static const uint8_t euro[] = {0xe2, 0x82, 0xac};
	struct outlog_stream s;
	struct outlog o;
	uint8_t got[3];

	outlog_init(&o, &id);
	outlog_stream_begin(&s, RUNLOG_STDERR, 0);
	print(&o, &s, 1, euro[0]);
	print(&o, &s, 1, euro[1]);
	assert_int_equal(ring_used(&o.flow.ring), 0);
	print(&o, &s, 1, euro[2]);
	assert_int_equal(ring_used(&o.flow.ring), RUNLOG_HEADER_BYTES + 3);
	ring_get(&o.flow.ring, RUNLOG_HEADER_BYTES, got, sizeof(got));
	assert_memory_equal(got, euro, sizeof(got));
	assert_int_equal(s.bytes, 3);
	print(&o, &s, 1, euro[0]); /* never a character: it comes at the end */
	outlog_flush(&o, &s);
	outlog_flush(&o, &s);
	assert_int_equal(s.bytes, 4);
	outlog_clear(&o);
}

TEST_MAIN(NULL, NULL)
