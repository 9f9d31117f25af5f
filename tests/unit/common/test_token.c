#include <openssl/evp.h>

#include "common/token.h"
#include "tests/unit/test.h"

TEST(a_token_is_read_as_it_was_made)
{
	struct token_text made, read;
	char text[TOKEN_TEXT_LEN + 1];

	token_make(&made, text);
	assert_int_equal(strlen(text), TOKEN_TEXT_LEN);
	assert_int_equal(strncmp(text, "mcps_", 5), 0);
	assert_true(token_parse(text, &read));
	assert_string_equal(read.id, made.id);
	assert_true(token_is_id(read.id));
	assert_true(token_digest_is_equal(read.digest, made.digest));
}

TEST(what_is_kept_is_the_sha256_of_the_secret)
{
	struct token_text made;
	char text[TOKEN_TEXT_LEN + 1];
	uint8_t digest[32];
	size_t len = 0;

	token_make(&made, text);
	assert_int_equal(
	    EVP_Q_digest(NULL, "SHA256", NULL, text + 5 + TOKEN_ID_LEN + 1,
		TOKEN_SECRET_LEN, digest, &len),
	    1);
	assert_memory_equal(digest, made.digest, 32);
}

TEST(no_two_tokens_are_alike)
{
	struct token_text a, b;
	char one[TOKEN_TEXT_LEN + 1], other[TOKEN_TEXT_LEN + 1];

	for (int i = 0; i < 1000; i++) {
		token_make(&a, one);
		token_make(&b, other);
		assert_string_not_equal(a.id, b.id);
		assert_false(token_digest_is_equal(a.digest, b.digest));
	}
}

TEST(another_form_is_no_token)
{
	static const char *const bad[] = {"", "mcps_", "mcps__", "Bearer x",
	    "mcps_aaaaaaaaaaaa_", "mcpsXaaaaaaaaaaaa_",
	    "mcps_aaaaaaaaaaa_aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
	    "mcps_aaaaaaaaaaaa-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"};
	struct token_text made, read;
	char text[TOKEN_TEXT_LEN + 2];

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		assert_false(token_parse(bad[i], &read));
		assert_false(token_is_id(read.id));
	}
	/* Each place, with a letter that it may not have. */
	token_make(&made, text);
	for (size_t i = 0; i < TOKEN_TEXT_LEN; i++) {
		char was = text[i];

		text[i] = ' ';
		assert_false(token_parse(text, &read));
		text[i] = was;
	}
	text[TOKEN_TEXT_LEN] = 'a';
	text[TOKEN_TEXT_LEN + 1] = '\0';
	assert_false(token_parse(text, &read));
}

TEST_MAIN(NULL, NULL)
