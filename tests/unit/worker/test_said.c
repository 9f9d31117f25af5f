#include <fcntl.h>
#include <stdio.h>

#include "common/log.h"
#include "tests/unit/common/forked.h"
#include "worker/said.h"
#include "worker/task.h"
#include "tests/unit/test.h"

/* What of an agent's words comes into the log, and how much. */

#define FLOOD 20000

static struct said said;
static const struct task_start run = {.uuid = {{1, 2, 3}}, .request = "req-1"};

static struct frame_said
line_of(const char *text)
{
	return (struct frame_said){.level = FRAME_SAID_LEVEL_WARN,
	    .what = FRAME_SAID_WHAT_DISK_FULL,
	    .run = run.uuid,
	    .text = text};
}

static void
begin(enum log_format format)
{
	log_init("worker/0");
	log_set_format(format);
	said_init(&said, 7, "box");
}

static unsigned int
count(const char *text, const char *what)
{
	unsigned int n = 0;

	for (const char *p = text; (p = strstr(p, what)) != NULL; p++)
		n++;
	return n;
}

static void
say_one(void)
{
	const struct frame_said m = line_of("/ is full");

	begin(LOG_FORMAT_LOGFMT);
	said_take(&said, &m, &run);
}

TEST(a_line_has_its_sandbox_run_and_request)
{
	struct forked f;

	forked_run(&f, say_one);
	assert_non_null(strstr(f.text, " level=warn role=worker/0 "));
	assert_non_null(strstr(f.text,
	    " msg=\"agent saw a full disk\" said_by=agent sandbox=box tenant=7 "
	    "run=01020300-0000-0000-0000-000000000000 request=req-1 "
	    "detail=\"/ is full\"\n"));
}

static void
say_of_another(void)
{
	const struct frame_said m = line_of("x");

	begin(LOG_FORMAT_LOGFMT);
	said_take(&said, &m, NULL);
}

TEST(a_run_of_another_is_not_named)
{
	struct forked f;

	forked_run(&f, say_of_another);
	assert_non_null(strstr(f.text, " said_by=agent "));
	assert_null(strstr(f.text, "run="));
	assert_null(strstr(f.text, "request="));
}

static void
say_hostile(void)
{
	const struct frame_said m =
	    line_of("a\nts=1 level=error\x1b[2J\xff\" msg=\"forged");

	for (enum log_format i = LOG_FORMAT_TEXT; i <= LOG_FORMAT_JSON; i++) {
		begin(i);
		said_take(&said, &m, NULL);
	}
}

TEST(a_hostile_text_forges_no_line)
{
	struct forked f;

	forked_run(&f, say_hostile);
	assert_int_equal(count(f.text, "\n"), 3);
	for (size_t i = 0; i < f.len; i++)
		if (f.text[i] != '\n' &&
		    ((unsigned char)f.text[i] < 0x20 ||
			(unsigned char)f.text[i] > 0x7e))
			fail_msg("byte %d is 0x%02x", (int)i,
			    (unsigned char)f.text[i]);
}

static void
say_much(void)
{
	const struct frame_said m = line_of("again");
	struct frame_said last = line_of("at last");

	begin(LOG_FORMAT_LOGFMT);
	for (unsigned int i = 0; i < FLOOD; i++)
		said_take(&said, &m, &run);
	/* A moment later there is room for one more. */
	said.own.allowed_ms = SAID_EVERY_MS;
	last.dropped = 5;
	said_take(&said, &last, &run);
}

TEST(a_flood_is_cut_and_counted)
{
	const char *p;
	struct forked f;
	unsigned long lines, dropped;

	forked_run(&f, say_much);
	lines = count(f.text, "detail=again");
	/* As many as it may at once, and one for each second that it took. */
	assert_true(lines >= SAID_BURST && lines < SAID_BURST + 60);
	p = strstr(f.text, "detail=\"at last\" dropped=");
	assert_non_null(p);
	dropped = strtoul(p + strlen("detail=\"at last\" dropped="), NULL, 10);
	assert_true(dropped == FLOOD - lines + 5);
}

static void
say_from_many(void)
{
	const struct frame_said m = line_of("again");

	unsigned int shown = 0;
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

	if (null == -1 || dup2(null, STDERR_FILENO) == -1)
		abort();
	for (unsigned int i = 0; i < 1000; i++) {
		begin(LOG_FORMAT_JSON);
		said_take(&said, &m, NULL);
		shown += said.dropped == 0;
	}
	_exit(shown >= SAID_BURST_ALL && shown < 500 ? 0 : 1);
}

TEST(many_sandboxes_together_are_bounded_too)
{
	struct forked f;

	forked_run(&f, say_from_many);
	assert_int_equal(f.status, 0);
}

static void
say_whispers(void)
{
	struct frame_said m = line_of("whisper");

	begin(LOG_FORMAT_LOGFMT);
	m.level = FRAME_SAID_LEVEL_DEBUG;
	for (unsigned int i = 0; i < 1000; i++)
		said_take(&said, &m, NULL);
	m = line_of("aloud");
	said_take(&said, &m, NULL);
}

TEST(what_is_below_the_servers_level_costs_nothing)
{
	struct forked f;

	forked_run(&f, say_whispers);
	assert_int_equal(count(f.text, "\n"), 1);
	assert_non_null(strstr(f.text, "detail=aloud\n"));
}

TEST_MAIN(NULL, NULL)
