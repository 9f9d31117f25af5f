#include "common/frame.h"
#include "images/agent/agent.h"
#include "images/agent/terms.h"
#include "tests/unit/test.h"

#define WORDS_MAX 16

/* Of words with a space between two; what t points to lives until the next. */
static int
parse(struct terms *t, const char *line)
{
	static char program[] = "agent", text[128];
	char *words[WORDS_MAX] = {program}, *next = text;
	struct err e;
	int n = 1;

	assert_true(strlen(line) < sizeof(text));
	strcpy(text, line);
	while (next != NULL && *line != '\0' && n < WORDS_MAX)
		words[n++] = strsep(&next, " ");
	return terms_parse(t, n, words, &e);
}

TEST(without_any_it_connects_where_it_always_did)
{
	struct terms t;

	assert_int_equal(parse(&t, ""), 0);
	assert_string_equal(t.socket, AGENT_SOCKET);
	assert_false(t.listens);
	assert_int_equal(t.quiet_ms, FRAME_BRIDGE_QUIET_MS);
	assert_int_equal(t.withheld, 0);
}

TEST(each_option_has_its_value)
{
	struct terms t;

	assert_int_equal(parse(&t, "-k a0 -b 1000 -n 7 -l 1 -q 500 /there"), 0);
	assert_int_equal(t.withheld, 0xa0);
	assert_int_equal(t.disk.bytes, 1000);
	assert_int_equal(t.disk.inodes, 7);
	assert_true(t.listens);
	assert_int_equal(t.quiet_ms, 500);
	assert_string_equal(t.socket, "/there");
	assert_int_equal(parse(&t, "-l 0"), 0);
	assert_false(t.listens);
}

TEST(what_is_no_value_is_refused)
{
	struct terms t;

	assert_int_equal(parse(&t, "-l 2"), ERR_INVAL);
	assert_int_equal(parse(&t, "-l 10"), ERR_INVAL);
	assert_int_equal(parse(&t, "-l "), ERR_INVAL);
	assert_int_equal(parse(&t, "-q 0"), ERR_INVAL);
	assert_int_equal(parse(&t, "-q -1"), ERR_INVAL);
	assert_int_equal(parse(&t, "-q 1s"), ERR_INVAL);
	assert_int_equal(parse(&t, "-k xyz"), ERR_INVAL);
	assert_int_equal(parse(&t, "-z 1"), ERR_INVAL);
	assert_int_equal(parse(&t, "-l"), ERR_INVAL);
	assert_int_equal(parse(&t, "a b"), ERR_INVAL);
}

TEST_MAIN(NULL, NULL)
