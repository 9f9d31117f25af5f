#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include <event2/buffer.h>

#include "common/buf.h"
#include "common/runlog.h"
#include "common/xmalloc.h"
#include "supervisor/front/run_events.h"

#define AT 1000 /* the offset of the first record */

static void
put(struct buf *b, enum runlog_type type, uint16_t command, const char *p,
    size_t n)
{
	const struct runlog_header h = {type, command, (uint32_t)n, 1};

	runlog_put_header(b, &h);
	assert_int_equal(buf_append(b, p, n), 0);
}

/* The events of b, each as "ID NAME CHUNK;". */
static char *
told(const struct buf *b)
{
	char none[] = "", name[] = "a";
	struct store_command commands[2] = {
	    {.shell = none, .argv_json = none, .cwd = name},
	    {.shell = none, .argv_json = none, .cwd = name}};
	const struct store_run row = {.identifier = name,
	    .container_id = none,
	    .commands = commands,
	    .ncommands = 2};
	const struct log_records records = {
	    buf_data(b), buf_len(b), AT + buf_len(b)};
	struct evbuffer *out = evbuffer_new();
	char *text = xstrdup(""), *line, *more, *chunk;

	run_events_add(out, &row, &records);
	while ((line = evbuffer_readln(out, NULL, EVBUFFER_EOL_LF)) != NULL) {
		more = NULL;
		if (strncmp(line, "id: ", 4) == 0)
			more = xasprintf("%s%s", text, line + 4);
		else if (strncmp(line, "event: ", 7) == 0)
			more = xasprintf("%s %s", text, line + 7);
		else if ((chunk = strstr(line, "\"chunk\":\"")) != NULL)
			more = xasprintf("%s %.*s;", text,
			    (int)strcspn(chunk + 9, "\""), chunk + 9);
		else if (line[0] == 'd')
			more = xasprintf("%s;", text);
		if (more != NULL) {
			free(text);
			text = more;
		}
		free(line);
	}
	evbuffer_free(out);
	return text;
}

static void
assert_told(struct buf *b, const char *want)
{
	AUTO(auto_free) char *text = told(b);

	assert_string_equal(text, want);
	buf_clear(b);
}

static void
test_records_of_one_stream_are_one_event_behind_the_last(void **state)
{
	struct buf b = {0};

	(void)state;
	put(&b, RUNLOG_RUN_STARTED, 0, "", 0);
	put(&b, RUNLOG_COMMAND_STARTED, 0, "", 0);
	put(&b, RUNLOG_STDOUT, 0, "ab", 2);
	put(&b, RUNLOG_STDOUT, 0, "", 0);
	put(&b, RUNLOG_STDOUT, 0, "c", 1);
	put(&b, RUNLOG_STDERR, 0, "E", 1);
	put(&b, RUNLOG_STDOUT, 0, "d", 1);
	put(&b, RUNLOG_STDOUT, 1, "e", 1);
	put(&b, RUNLOG_COMMAND_STARTED, 1, "", 0);
	put(&b, RUNLOG_STDERR, 1, "", 0);
	assert_told(&b,
	    "1016 run_started;1032 command_started;"
	    "1083 command_stdout abc;1100 command_stderr E;"
	    "1117 command_stdout d;1134 command_stdout e;"
	    "1150 command_started;1166 command_stderr ;");
}

/* 48 KiB are told at once; a longer record stays one event. */
static void
test_what_is_taken_together_has_a_limit(void **state)
{
	AUTO(auto_free) char *x = xcalloc(1, 50001), *want = NULL;
	struct buf b = {0};

	(void)state;
	memset(x, 'x', 50000);
	put(&b, RUNLOG_STDOUT, 0, x, 49152 - 1);
	put(&b, RUNLOG_STDOUT, 0, "y", 1);
	put(&b, RUNLOG_STDOUT, 0, "z", 1);
	put(&b, RUNLOG_STDOUT, 0, x, 50000);
	put(&b, RUNLOG_STDOUT, 0, "z", 1);
	want = xasprintf("%d command_stdout %.*sy;%d command_stdout z;"
			 "%d command_stdout %s;%d command_stdout z;",
	    AT + 49152 + 32, 49152 - 1, x, AT + 49153 + 48, AT + 99153 + 64, x,
	    AT + 99154 + 80);
	assert_told(&b, want);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(
		test_records_of_one_stream_are_one_event_behind_the_last),
	    cmocka_unit_test(test_what_is_taken_together_has_a_limit),
	};

	return cmocka_run_group_tests_name("run_events", tests, NULL, NULL);
}
