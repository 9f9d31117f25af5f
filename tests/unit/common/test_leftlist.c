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

static void
spoil_more_of_a_run_than_in_all(struct leftlist *l)
{
	l->total = l->count - 1;
}

static void
spoil_more_told_than_live(struct leftlist *l)
{
	l->count = l->nprocesses - 1;
}

static void
spoil_number_0(struct leftlist *l)
{
	l->processes[1].id = 0;
}

static void
spoil_process_of_no_command(struct leftlist *l)
{
	l->processes[0].command = RUNSPEC_COMMANDS_MAX;
}

static void
spoil_text_with_escape(struct leftlist *l)
{
	l->processes[0].text = "sl\x1b[31mp6";
}

static void
spoil_text_with_nul(struct leftlist *l)
{
	l->processes[0].text = "sleep\0" /* no octal */ "600";
}

static void
spoil_text_no_utf8(struct leftlist *l)
{
	l->processes[0].text = "sleep \xc3(0";
}

static void
spoil_text_too_long(struct leftlist *l)
{
	static char text[LEFTLIST_TEXT_MAX + 1];

	memset(text, 'x', sizeof(text));
	l->processes[0].text = text;
	l->processes[0].ntext = sizeof(text);
}

static void
spoil_log_of_no_command(struct leftlist *l)
{
	l->logs[0].command = RUNSPEC_COMMANDS_MAX;
}

static void
spoil_log_in_no_state(struct leftlist *l)
{
	l->logs[1].state = LEFTLIST_STATES;
}

static void
spoil_more_kept_than_came(struct leftlist *l)
{
	l->logs[0].bytes = l->logs[0].noutput - 1;
}

static void
spoil_more_came_than_can(struct leftlist *l)
{
	l->logs[1].bytes = (uint64_t)INT64_MAX + 1;
}

static void
spoil_output_too_long(struct leftlist *l)
{
	static const uint8_t output[LEFTLIST_OUTPUT_MAX + 1];

	l->logs[1].output = output;
	l->logs[1].noutput = sizeof(output);
}

TEST(each_field_is_checked)
{
	static void (*const spoil[])(struct leftlist *) = {
	    spoil_more_of_a_run_than_in_all,
	    spoil_more_told_than_live,
	    spoil_number_0,
	    spoil_process_of_no_command,
	    spoil_text_with_escape,
	    spoil_text_with_nul,
	    spoil_text_no_utf8,
	    spoil_text_too_long,
	    spoil_log_of_no_command,
	    spoil_log_in_no_state,
	    spoil_more_kept_than_came,
	    spoil_more_came_than_can,
	    spoil_output_too_long,
	};

	for (size_t i = 0; i < ARRAY_LEN(spoil); i++) {
		struct leftlist l = make_list();

		spoil[i](&l);
		if (decode(&l) == 0)
			fail_msg("spoiled list %zu was believed", i);
	}
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
