#include <errno.h>
#include <stdio.h>

#include <jansson.h>

#include "common/log.h"
#include "tests/unit/common/forked.h"
#include "tests/unit/test.h"

static void
say_in_text(void)
{
	log_init("worker/0");
	log_info("started %d", 3);
}

TEST(a_line_has_time_level_role_and_pid)
{
	struct forked f;
	unsigned int y, m;
	long pid;
	int end = 0;

	forked_run(&f, say_in_text);
	assert_int_equal(sscanf(f.text,
			     "%4u-%2u-%*2uT%*2u:%*2u:%*2u.%*3uZ info"
			     " worker/0[%ld] started 3\n%n",
			     &y, &m, &pid, &end),
	    3);
	assert_int_equal(end, (int)f.len);
	assert_true(y >= 2024 && m >= 1 && m <= 12 && pid > 1);
}

static const struct log_field fields[] = {
    {"run", "r-1"}, {"left_out", NULL}, {"sandbox", "a\"b\nc"}};

static void
say_event(void)
{
	log_event(LOG_INFO, "run ended", fields, ARRAY_LEN(fields));
}

static void
say_event_in_json(void)
{
	log_set_format(LOG_FORMAT_JSON);
	say_event();
}

static void
say_event_in_logfmt(void)
{
	static const struct log_field odd[] = {{"empty", ""},
	    {"path", "/a/b?c"}, {"equals", "a=b"}, {"quoted", "a \"b\" \\\n"}};

	log_init("front");
	log_set_format(LOG_FORMAT_LOGFMT);
	log_event(LOG_INFO, "run ended", odd, ARRAY_LEN(odd));
	log_info("short");
}

TEST(logfmt_quotes_what_needs_it)
{
	struct forked f;

	forked_run(&f, say_event_in_logfmt);
	assert_memory_equal(f.text, "ts=2", 4);
	assert_non_null(strstr(f.text, " level=info role=front pid="));
	assert_non_null(strstr(f.text,
	    " msg=\"run ended\" empty=\"\" path=/a/b?c equals=\"a=b\""
	    " quoted=\"a \\\"b\\\" \\\\\\\\x0a\"\n"));
	assert_non_null(strstr(f.text, " msg=short\n"));
}

TEST(fields_stand_behind_the_message_or_are_members)
{
	struct forked f;
	json_t *o;

	forked_run(&f, say_event);
	assert_non_null(
	    strstr(f.text, "] run ended run=r-1 sandbox=a\"b\\x0ac\n"));
	forked_run(&f, say_event_in_json);
	o = json_loads(f.text, 0, NULL);
	assert_non_null(o);
	assert_string_equal(
	    json_string_value(json_object_get(o, "msg")), "run ended");
	assert_string_equal(
	    json_string_value(json_object_get(o, "run")), "r-1");
	assert_string_equal(
	    json_string_value(json_object_get(o, "sandbox")), "a\"b\\x0ac");
	assert_null(json_object_get(o, "left_out"));
	json_decref(o);
}

static void
say_long_event(void)
{
	static char value[LOG_LINE_MAX];
	const struct log_field all[] = {{"a", value}, {"b", "c"}};

	memset(value, '\n', sizeof(value) - 1);
	log_set_format(LOG_FORMAT_JSON);
	log_event(LOG_INFO, "long", all, ARRAY_LEN(all));
}

TEST(a_field_without_room_is_left_out)
{
	struct forked f;
	json_t *o;

	forked_run(&f, say_long_event);
	o = json_loads(f.text, 0, NULL);
	assert_non_null(o);
	assert_null(json_object_get(o, "a"));
	assert_non_null(json_object_get(o, "b"));
	json_decref(o);
}

static void
say_forged(void)
{
	log_warn("name \"%s\"", "a\nb\x1b[31m\xc3\xa9\x7f\t\\end");
}

TEST(text_from_outside_cannot_forge_a_line)
{
	struct forked f;

	forked_run(&f, say_forged);
	assert_non_null(strstr(
	    f.text, "name \"a\\x0ab\\x1b[31m\\xc3\\xa9\\x7f\\x09\\end\"\n"));
	assert_ptr_equal(strchr(f.text, '\n'), f.text + f.len - 1);
}

static void
say_forged_in_json(void)
{
	log_init("front");
	log_set_format(LOG_FORMAT_JSON);
	say_forged();
}

TEST(the_json_form_is_json_and_says_the_same)
{
	struct forked f;
	json_t *j;

	forked_run(&f, say_forged_in_json);
	assert_ptr_equal(strchr(f.text, '\n'), f.text + f.len - 1);
	j = json_loads(f.text, 0, NULL);
	assert_non_null(j);
	assert_string_equal(
	    json_string_value(json_object_get(j, "level")), "warn");
	assert_string_equal(
	    json_string_value(json_object_get(j, "role")), "front");
	assert_true(json_is_integer(json_object_get(j, "pid")));
	assert_true(json_is_string(json_object_get(j, "ts")));
	assert_string_equal(json_string_value(json_object_get(j, "msg")),
	    "name \"a\\x0ab\\x1b[31m\\xc3\\xa9\\x7f\\x09\\end\"");
	json_decref(j);
}

static void
say_too_much(void)
{
	char text[2 * LOG_LINE_MAX];

	memset(text, '"', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	log_info("%s", text);
	log_set_format(LOG_FORMAT_JSON);
	log_info("%s", text);
}

TEST(a_long_line_is_cut_and_the_json_form_stays_whole)
{
	struct forked f;
	char *second;
	json_t *j;

	forked_run(&f, say_too_much);
	second = strchr(f.text, '\n');
	assert_non_null(second);
	second++;
	assert_true(second - f.text <= LOG_LINE_MAX);
	assert_memory_equal(second - 4, "...\n", 4);
	assert_true(strlen(second) <= LOG_LINE_MAX);
	j = json_loads(second, 0, NULL);
	assert_non_null(j);
	json_decref(j);
}

static void
say_at_each_level(void)
{
	for (int l = LOG_ERROR; l <= LOG_DEBUG; l++) {
		log_set_level((enum log_level)l);
		log_error("E%d", l);
		log_warn("W%d", l);
		log_info("I%d", l);
		log_debug("D%d", l);
	}
}

TEST(a_level_lets_itself_and_worse_through)
{
	static const char want[] = "EEWEWIEWID";
	struct forked f;
	char *line, *save = NULL;
	size_t i = 0;

	forked_run(&f, say_at_each_level);
	for (line = strtok_r(f.text, "\n", &save); line != NULL;
	     line = strtok_r(NULL, "\n", &save)) {
		assert_true(i < strlen(want));
		assert_int_equal(line[strlen(line) - 2], want[i]);
		i++;
	}
	assert_int_equal(i, strlen(want));
}

static void
keep_errno(void)
{
	errno = ENOTTY;
	log_error("something");
	if (errno != ENOTTY)
		_exit(1);
	/* Also when the line itself cannot be written. */
	(void)close(STDERR_FILENO);
	log_error("something");
	if (errno != ENOTTY)
		_exit(2);
}

TEST(errno_survives)
{
	struct forked f;

	forked_run(&f, keep_errno);
	assert_int_equal(f.status, 0);
}

static void
die(void)
{
	log_set_level(LOG_ERROR);
	fatal(78, "no %s", "way");
}

TEST(fatal_says_why_and_exits_with_its_status)
{
	struct forked f;

	forked_run(&f, die);
	assert_int_equal(f.status, 78);
	assert_non_null(strstr(f.text, " error -["));
	assert_non_null(strstr(f.text, "] no way\n"));
}

static void
flood(void)
{
	struct log_limit l = {0, 0};

	for (int i = 0; i < 25; i++)
		log_warn_limited(&l, "flood %d", i);
	l.since_ms -= 10000; /* as if ten seconds had passed */
	log_warn_limited(&l, "flood again");
}

TEST(a_flood_is_ten_lines_and_then_a_count)
{
	struct forked f;

	forked_run(&f, flood);
	assert_non_null(strstr(f.text, "flood 9\n"));
	assert_null(strstr(f.text, "flood 10"));
	assert_null(strstr(f.text, "flood 24"));
	assert_non_null(
	    strstr(f.text, "15 lines like the next one were left out\n"));
	assert_non_null(strstr(f.text, "flood again\n"));
}

TEST(levels_have_names)
{
	assert_int_equal(log_parse_level("error"), LOG_ERROR);
	assert_int_equal(log_parse_level("debug"), LOG_DEBUG);
	assert_int_equal(log_parse_level("DEBUG"), -1);
	assert_int_equal(log_parse_level(""), -1);
	log_set_level(LOG_WARN);
	assert_int_equal(log_get_level(), LOG_WARN);
}

TEST_MAIN(NULL, NULL)
