#include <fcntl.h>

#include "common/buf.h"
#include "common/conf.h"
#include "common/fd.h"
#include "tests/unit/test.h"

/* Assignments as one text: key(value)key(value)... */
static int
gather_cb(const char *key, const char *value, void *arg, struct err *e)
{
	if (strcmp(key, "REFUSED") == 0)
		return err_set(e, ERR_INVAL, "%s is refused", key);
	assert_int_equal(buf_printf(arg, "%s(%s)", key, value), 0);
	return 0;
}

static void
check_file(const char *text, const char *want)
{
	struct err e = {0};
	struct buf b;

	buf_init(&b, 0);
	if (conf_file_parse(text, strlen(text), "f", gather_cb, &b, &e) != 0)
		fail_msg("%s", e.msg);
	assert_int_equal(buf_append(&b, "", 1), 0);
	assert_string_equal((char *)buf_data(&b), want);
	buf_clear(&b);
}

static void
check_bad(const char *text, int code, const char *why)
{
	struct err e = {0};
	struct buf b;

	buf_init(&b, 0);
	assert_int_equal(
	    conf_file_parse(text, strlen(text), "f", gather_cb, &b, &e), code);
	assert_string_equal(e.msg, why);
	buf_clear(&b);
}

TEST(lines_comments_and_blanks)
{
	check_file("", "");
	check_file("A=1", "A(1)");
	check_file("A=1\nB=2\n", "A(1)B(2)");
	check_file("# A=1\n ; B=2\n\n\t\nC=3", "C(3)");
	check_file("  A =  one two \t\r\nB=\n", "A(one two)B()");
	check_file("A=x # no comment", "A(x # no comment)");
	check_file("A=a=b", "A(a=b)");
}

TEST(quotes)
{
	check_file("A=\" one \"\nB=' two '", "A( one )B( two )");
	check_file("A='a\\b\"c'", "A(a\\b\"c)");
	check_file("A=\"a\\\"b\\\\c\\$d\\bx\"", "A(a\"b\\c$d\\bx)");
	check_file("A=a\"b c\"'d'  ", "A(ab cd)");
	check_file("A='two\nlines'\nB=1", "A(two\nlines)B(1)");
	check_file("A=''\nB=\"\"", "A()B()");
}

TEST(backslashes_outside_quotes)
{
	check_file("A=one\\\ntwo\nB=1", "A(onetwo)B(1)");
	check_file("A=a\\ \nB=\\\\b", "A(a )B(\\b)");
	check_file("A=\"a\\\nb\"", "A(ab)");
	check_file("A=x\\", "A(x)");
}

TEST(errors_name_file_and_line)
{
	check_bad(
	    "A=1\n\nnonsense\n", ERR_PARSE, "f:3: want KEY=value or a comment");
	check_bad("=1", ERR_PARSE, "f:1: the key before = is missing");
	check_bad("A=1\nB='x\ny", ERR_PARSE, "f:2: the closing ' is missing");
	check_bad("A=\"x", ERR_PARSE, "f:1: the closing \" is missing");
	check_bad("A='1\n2'\nREFUSED=1", ERR_INVAL, "f:3: REFUSED is refused");
}

TEST(a_nul_byte_is_no_text)
{
	struct err e;

	assert_int_equal(
	    conf_file_parse("A=1\0B", 5, "f", gather_cb, NULL, &e), ERR_PARSE);
}

static int
load(struct conf *c, const char *text, struct err *e)
{
	char path[] = "/tmp/test_conf_file.XXXXXX";
	int fd = mkostemp(path, O_CLOEXEC), rc;

	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, text, strlen(text), e), 0);
	(void)close(fd);
	rc = conf_load_file(c, path, e);
	(void)unlink(path);
	return rc;
}

TEST(a_file_sets_keys)
{
	struct conf *c = conf_new();
	struct err e;

	assert_int_equal(load(c,
			     "PORT=9\nWORKERS=\n"
			     "TOOL_DESC_GET_RUN_APPEND='a\nb'\n",
			     &e),
	    0);
	assert_int_equal(conf_int(c, CONF_PORT), 9);
	assert_int_equal(conf_int(c, CONF_WORKERS), 2); /* empty: not set */
	assert_string_equal(conf_extra(c, "TOOL_DESC_GET_RUN_APPEND"), "a\nb");
	conf_free(c);
}

TEST(a_file_with_an_unknown_key_or_a_wrong_value_is_refused)
{
	struct conf *c = conf_new();
	struct err e;

	assert_int_equal(load(c, "\nPORTS=9\n", &e), ERR_NOTFOUND);
	assert_non_null(strstr(e.msg, ":2: PORTS is no configuration key"));
	assert_int_equal(load(c, "PORT=x\n", &e), ERR_INVAL);
	assert_non_null(strstr(e.msg, ":1: PORT is \"x\", want"));
	assert_int_equal(conf_load_file(c, "/nowhere/conf", &e), ERR_NOTFOUND);
	assert_non_null(strstr(e.msg, "/nowhere/conf"));
	conf_free(c);
}

TEST_MAIN(NULL, NULL)
