#include "common/leftlist.h"
#include "common/msg/wire.h"
#include "common/runspec.h"
#include "common/xmalloc.h"
#include "tests/unit/test.h"

static struct leftlist got;

static struct leftlist
make_list(void)
{
	return (struct leftlist){.total = 9,
	    .count = 4,
	    .killed = 3,
	    .nprocesses = 2,
	    .processes = {{1, 77, 0, "sleep 600", 9},
		{UINT32_MAX, 1, RUNSPEC_COMMANDS_MAX - 1, "", 0}},
	    .nlogs = 2,
	    .logs = {{1, LEFTLIST_RUNNING, 5, (const uint8_t *)"a\0\xff", 3},
		{0, LEFTLIST_DISK_FULL, INT64_MAX, NULL, 0}}};
}

/* What the decoder says of the list's bytes, which are of the exact size for
 * the sanitizer; got is good until the next call. */
static int
decode_bytes(const uint8_t *p, size_t n)
{
	static uint8_t *copy;
	struct err e = {0};
	int rc;

	free(copy);
	copy = xmemdup(p, n);
	rc = leftlist_decode(copy, n, &got, &e);
	if (rc != 0) {
		assert_int_equal(rc, ERR_PROTO);
		assert_int_equal(e.code, ERR_PROTO);
		assert_true(e.msg[0] != '\0');
	}
	return rc;
}

static int
decode(const struct leftlist *l)
{
	struct buf b;
	int rc;

	buf_init(&b, 1 << 20);
	leftlist_encode(l, &b);
	rc = decode_bytes(buf_data(&b), buf_len(&b));
	buf_clear(&b);
	return rc;
}

TEST(all_of_it_comes_back)
{
	const struct leftlist l = make_list();

	assert_int_equal(decode(&l), 0);
	assert_int_equal(got.total, 9);
	assert_int_equal(got.count, 4);
	assert_int_equal(got.killed, 3);
	assert_int_equal(got.nprocesses, 2);
	assert_int_equal(got.processes[0].id, 1);
	assert_int_equal(got.processes[0].pid, 77);
	assert_int_equal(got.processes[0].ntext, 9);
	assert_memory_equal(got.processes[0].text, "sleep 600", 9);
	assert_int_equal(got.processes[1].id, UINT32_MAX);
	assert_int_equal(got.processes[1].command, RUNSPEC_COMMANDS_MAX - 1);
	assert_int_equal(got.processes[1].ntext, 0);
	assert_int_equal(got.nlogs, 2);
	assert_int_equal(got.logs[0].state, LEFTLIST_RUNNING);
	assert_int_equal(got.logs[0].bytes, 5);
	assert_int_equal(got.logs[0].noutput, 3);
	assert_memory_equal(got.logs[0].output, "a\0\xff", 3);
	assert_int_equal(got.logs[1].state, LEFTLIST_DISK_FULL);
	assert_true(got.logs[1].bytes == INT64_MAX);
}

TEST(nothing_at_all_is_a_list)
{
	const struct leftlist l = {0};

	assert_int_equal(decode(&l), 0);
	assert_int_equal(got.count + got.nprocesses + got.nlogs, 0);
}

TEST(the_largest_fits)
{
	static uint8_t output[LEFTLIST_OUTPUT_MAX];
	char words[LEFTLIST_TEXT_MAX];
	struct leftlist l = {.total = UINT32_MAX,
	    .count = UINT32_MAX,
	    .nprocesses = LEFTLIST_PROCESSES_MAX,
	    .nlogs = LEFTLIST_LOGS_MAX};
	struct buf b;

	memset(words, 'x', sizeof(words));
	for (uint32_t i = 0; i < LEFTLIST_PROCESSES_MAX; i++)
		l.processes[i] = (struct leftlist_process){
		    i + 1, i, 0, words, sizeof(words)};
	for (uint32_t i = 0; i < LEFTLIST_LOGS_MAX; i++) {
		size_t n = sizeof(output) / LEFTLIST_LOGS_MAX;

		l.logs[i] = (struct leftlist_log){
		    0, LEFTLIST_ENDED, n, output + i * n, n};
	}
	buf_init(&b, LEFTLIST_BYTES_MAX);
	leftlist_encode(&l, &b);
	assert_int_equal(decode_bytes(buf_data(&b), buf_len(&b)), 0);
	buf_clear(&b);
}

TEST(no_beginning_of_it_is_one)
{
	const struct leftlist l = make_list();
	static const uint8_t more;
	struct buf b;

	buf_init(&b, LEFTLIST_BYTES_MAX);
	leftlist_encode(&l, &b);
	for (size_t n = 0; n < buf_len(&b); n++)
		assert_int_equal(decode_bytes(buf_data(&b), n), ERR_PROTO);
	assert_int_equal(buf_append(&b, &more, 1), 0);
	assert_int_equal(decode_bytes(buf_data(&b), buf_len(&b)), ERR_PROTO);
	buf_clear(&b);
}

/* Counts before there is anything that they count. */
TEST(counts_that_lie_are_refused)
{
	static const uint32_t many[] = {
	    LEFTLIST_PROCESSES_MAX + 1, 1u << 31, UINT32_MAX};

	for (size_t i = 0; i < ARRAY_LEN(many); i++)
		for (int logs = 0; logs < 2; logs++) {
			struct buf b;

			buf_init(&b, LEFTLIST_BYTES_MAX);
			wire_put_u32(&b, UINT32_MAX);
			wire_put_u32(&b, UINT32_MAX);
			wire_put_u32(&b, 0);
			wire_put_u32(&b, logs ? 0 : many[i]);
			if (logs)
				wire_put_u32(&b, many[i]);
			assert_int_equal(
			    decode_bytes(buf_data(&b), buf_len(&b)), ERR_PROTO);
			buf_clear(&b);
		}
}

/* One way each to spoil a good list; false: there is no such way. */
static bool
spoil(struct leftlist *l, int how)
{
	static const uint8_t output[LEFTLIST_OUTPUT_MAX + 1];
	static char text[LEFTLIST_TEXT_MAX + 1];

	switch (how) {
	case 0: /* more of a run than in all */
		l->total = l->count - 1;
		return true;
	case 1: /* more told than live */
		l->count = l->nprocesses - 1;
		return true;
	case 2:
		l->processes[1].id = 0;
		return true;
	case 3: /* of no command */
		l->processes[0].command = RUNSPEC_COMMANDS_MAX;
		return true;
	case 4:
		l->processes[0].text = "sl\x1b[31mp6";
		return true;
	case 5:
		l->processes[0].text = "sleep\0" /* no octal */ "600";
		return true;
	case 6: /* no UTF-8 */
		l->processes[0].text = "sleep \xc3(0";
		return true;
	case 7: /* too long */
		memset(text, 'x', sizeof(text));
		l->processes[0].text = text;
		l->processes[0].ntext = sizeof(text);
		return true;
	case 8:
		l->logs[0].command = RUNSPEC_COMMANDS_MAX;
		return true;
	case 9:
		l->logs[1].state = LEFTLIST_STATES;
		return true;
	case 10: /* more kept than came */
		l->logs[0].bytes = l->logs[0].noutput - 1;
		return true;
	case 11: /* more came than can */
		l->logs[1].bytes = (uint64_t)INT64_MAX + 1;
		return true;
	case 12: /* too long */
		l->logs[1].output = output;
		l->logs[1].noutput = sizeof(output);
		return true;
	default:
		return false;
	}
}

TEST(each_field_is_checked)
{
	struct leftlist l = make_list();

	for (int how = 0; spoil(&l, how); how++, l = make_list())
		if (decode(&l) == 0)
			fail_msg("spoiled list %d was believed", how);
}

TEST(a_question_comes_back_and_has_one_length)
{
	const struct leftlist_ask ask = {.run = {{1, 2, 3}}, .process = 7};
	struct leftlist_ask back;
	struct buf b;
	struct err e;

	buf_init(&b, 0);
	leftlist_encode_ask(&ask, &b);
	wire_put_u8(&b, 0);
	for (size_t n = 0; n <= buf_len(&b); n++)
		assert_int_equal(leftlist_decode_ask(
				     (struct span){buf_data(&b), n}, &back, &e),
		    n == 20 ? 0 : ERR_PROTO);
	assert_int_equal(
	    leftlist_decode_ask((struct span){buf_data(&b), 20}, &back, &e), 0);
	assert_memory_equal(&back.run, &ask.run, sizeof(ask.run));
	assert_int_equal(back.process, 7);
	buf_clear(&b);
}

TEST_MAIN(NULL, NULL)
