#include <stdio.h>

#include "common/buf.h"
#include "common/tenant_lines.h"
#include "common/xmalloc.h"
#include "tests/unit/test.h"

static int
note_cb(char *const *words, size_t n, void *arg, struct err *e)
{
	struct buf *seen = arg;

	if (strcmp(words[0], "bad") == 0)
		return err_set(e, ERR_POLICY, "not that");
	for (size_t i = 0; i < n; i++)
		assert_int_equal(
		    buf_printf(seen, "%s%s", words[i], i + 1 < n ? " " : "\n"),
		    0);
	return 0;
}

static void
assert_lines(const char *text, const char *want, const char *why)
{
	AUTO(auto_free) char *copy = xstrdup(text);
	struct err e = {0};
	struct buf seen;
	int rc;

	buf_init(&seen, 4096);
	rc = tenant_lines_each("/f", copy, note_cb, &seen, &e);
	assert_int_equal(rc, why[0] == '\0' ? 0 : ERR_INVAL);
	assert_string_equal(e.msg, why);
	assert_int_equal(buf_len(&seen), strlen(want));
	assert_memory_equal(buf_data(&seen), want, strlen(want));
	buf_clear(&seen);
}

TEST(words_stand_between_blanks_and_comments_are_left_out)
{
	assert_lines("", "", "");
	assert_lines("a", "a\n", "");
	assert_lines("\n \t\r\n# b c\n\ta  b\t#c\r\ne\r\n\n", "a b\ne\n", "");
}

TEST(what_is_wrong_is_said_with_its_line)
{
	char text[TENANT_LINES_BYTES + 8];

	assert_lines("a\n\nbad\nb", "a\n", "TENANTS_FILE /f line 3: not that");
	(void)snprintf(text, sizeof(text), "%*s", TENANT_LINES_BYTES, "x");
	assert_lines(text, "x\n", "");
	(void)snprintf(text, sizeof(text), "%*s", TENANT_LINES_BYTES + 1, "x");
	assert_lines(
	    text, "", "TENANTS_FILE /f line 1: longer than 1024 bytes");
	memset(text, 0, sizeof(text));
	for (size_t i = 0; i < TENANT_LINES_WORDS + 1; i++)
		memcpy(text + 2 * i, "a ", 2);
	assert_lines(text, "", "TENANTS_FILE /f line 1: more than 64 words");
}

TEST_MAIN(NULL, NULL)
