#include "supervisor/core/seal.h"
#include "tests/unit/test.h"

#define KEY_A "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
#define KEY_B "ffeeddccbbaa99887766554433221100FFEEDDCCBBAA99887766554433221100"
#define LINES KEY_A "\nx\n"
#define LONG KEY_A "0"
#define INDENTED " " KEY_A
#define VALUE "hunter2"
#define SEALED_BYTES (sizeof(VALUE) - 1 + SEAL_EXTRA_BYTES)

static const struct seal_for what = {7, "name"};

static struct seal_keys *
keys(const char *text)
{
	struct seal_keys *k = NULL;
	struct err e;

	if (seal_keys_parse(text, strlen(text), &k, &e) != 0)
		fail_msg("%s", e.msg);
	return k;
}

static int
opens(const struct seal_keys *k, const struct seal_for *of,
    const uint8_t *sealed, size_t n)
{
	char out[sizeof(VALUE)] = "";
	struct err e;
	int rc = seal_open(k, of, sealed, n, out, &e);

	assert_true(rc == 0 || rc == ERR_NO_SECRET_KEY);
	assert_string_equal(out, rc == 0 ? VALUE : "");
	return rc;
}

TEST(what_is_sealed_is_opened_by_the_same_key)
{
	struct seal_keys *k = keys(KEY_A "\n");
	uint8_t one[SEALED_BYTES], two[SEALED_BYTES];

	seal_close(k, &what, VALUE, strlen(VALUE), one);
	seal_close(k, &what, VALUE, strlen(VALUE), two);
	assert_int_equal(opens(k, &what, one, sizeof(one)), 0);
	assert_memory_not_equal(one + 8, two + 8, sizeof(one) - 8);
	assert_null(memmem(one, sizeof(one), VALUE, strlen(VALUE)));
	seal_keys_free(k);
}

TEST(another_tenants_and_another_names_place_is_told)
{
	static const struct seal_for others[] = {
	    {8, "name"}, {7, "nama"}, {7, "name2"}, {7, ""}, {0, "name"}};
	struct seal_keys *k = keys(KEY_A);
	uint8_t sealed[SEALED_BYTES];

	seal_close(k, &what, VALUE, strlen(VALUE), sealed);
	for (size_t i = 0; i < ARRAY_LEN(others); i++)
		assert_int_equal(opens(k, &others[i], sealed, sizeof(sealed)),
		    ERR_NO_SECRET_KEY);
	seal_keys_free(k);
}

TEST(a_change_of_any_bit_and_any_length_is_told)
{
	struct seal_keys *k = keys(KEY_A);
	uint8_t sealed[SEALED_BYTES];

	seal_close(k, &what, VALUE, strlen(VALUE), sealed);
	for (size_t i = 0; i < 8 * sizeof(sealed); i++) {
		sealed[i / 8] ^= (uint8_t)(1u << i % 8);
		assert_int_equal(
		    opens(k, &what, sealed, sizeof(sealed)), ERR_NO_SECRET_KEY);
		sealed[i / 8] ^= (uint8_t)(1u << i % 8);
	}
	for (size_t n = 0; n < sizeof(sealed); n++)
		assert_int_equal(opens(k, &what, sealed, n), ERR_NO_SECRET_KEY);
	assert_int_equal(opens(k, &what, sealed, sizeof(sealed)), 0);
	seal_keys_free(k);
}

TEST(the_first_key_seals_and_all_open)
{
	struct seal_keys *a = keys(KEY_A), *b = keys(KEY_B);
	struct seal_keys *both = keys("# new\r\n" KEY_B "\r\n\n" KEY_A);
	uint8_t old[SEALED_BYTES], new[SEALED_BYTES];

	seal_close(a, &what, VALUE, strlen(VALUE), old);
	seal_close(both, &what, VALUE, strlen(VALUE), new);
	assert_int_equal(seal_state_of(both, old, sizeof(old)), SEAL_OLD);
	assert_int_equal(seal_state_of(both, new, sizeof(new)), SEAL_CURRENT);
	assert_int_equal(seal_state_of(a, new, sizeof(new)), SEAL_UNKNOWN);
	assert_int_equal(seal_state_of(NULL, old, sizeof(old)), SEAL_UNKNOWN);
	assert_int_equal(opens(both, &what, old, sizeof(old)), 0);
	assert_int_equal(opens(b, &what, new, sizeof(new)), 0);
	assert_int_equal(opens(b, &what, old, sizeof(old)), ERR_NO_SECRET_KEY);
	assert_int_equal(
	    opens(NULL, &what, old, sizeof(old)), ERR_NO_SECRET_KEY);
	seal_keys_free(a);
	seal_keys_free(b);
	seal_keys_free(both);
}

TEST(what_is_no_key_is_named_by_its_line)
{
	static const char *const bad[] = {
	    "", "\n\n", "# none\n", "x", LONG, LINES, INDENTED};
	struct seal_keys *k = NULL;
	struct err e;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_int_equal(
		    seal_keys_parse(bad[i], strlen(bad[i]), &k, &e), ERR_PARSE);
	assert_null(k);
	assert_int_equal(
	    seal_keys_parse(bad[5], strlen(bad[5]), &k, &e), ERR_PARSE);
	assert_non_null(strstr(e.msg, "line 2"));
	assert_null(strstr(e.msg, "0001"));
}

int
main(void)
{
	seal_init();
	return tests_run(NULL, NULL, NULL, NULL);
}
