#include "supervisor/mcp/base64.h"

#include "common/err.h"
#include "tests/unit/test.h"

TEST(bytes_come_back_as_they_were)
{
	static const uint8_t bytes[] = {0, 1, 0xfb, 0xff, 'x'};

	for (size_t len = 0; len <= sizeof(bytes); len++) {
		AUTO(auto_free) char *text = base64_write(bytes, len);
		AUTO(auto_free) uint8_t *again = NULL;
		size_t n = 99;

		assert_int_equal(base64_read(text, &again, &n), 0);
		assert_int_equal(n, len);
		assert_memory_equal(again, bytes, len);
	}
}

TEST(it_is_the_usual_alphabet)
{
	AUTO(auto_free) char *text = base64_write("\xfb\xff\xbfhi", 5);

	assert_string_equal(text, "+/+/aGk=");
}

TEST(there_is_one_spelling_only)
{
	static const char *const texts[] = {"a", "ab=", "aGk",
	    "aGl=", "aGk= ", " aGk=   ", "aG\nk=", "-_-_",
	    "====", "a===", "aGk=aGk=", "aGk=\n"};

	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		uint8_t *bytes = NULL;
		size_t n;

		assert_int_equal(base64_read(texts[i], &bytes, &n), ERR_INVAL);
		assert_null(bytes);
	}
}

TEST_MAIN(NULL, NULL)
