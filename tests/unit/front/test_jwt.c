/* Tokens and keys, good and hostile: RFC 8725 has most of what is tried. */
#include "supervisor/front/jwt.h"

#include "tests/unit/front/jwt_ground.h"

static const char claims[] = "{\"sub\":\"alice\"}";

static struct jwks *
keys(const char *more)
{
	AUTO(auto_free) char *text = ground_jwks(more);
	struct jwks *k;
	struct err e;

	if (jwks_parse(text, strlen(text), &k, &e) != 0)
		fail_msg("%s", e.msg);
	return k;
}

/* NULL: good. */
static const char *
judge(const struct jwks *k, const char *token)
{
	const char *why;
	EVP_PKEY *key;
	struct jwt t;

	why = jwt_parse(token, &t);
	if (why != NULL)
		return why;
	key = jwks_find(k, t.kid, t.alg);
	if (key == NULL)
		return "no key";
	return jwt_verify(&t, key) ? NULL : "wrong";
}

static void
assert_refused(const char *token, const char *why)
{
	struct jwks *k = keys("");
	const char *found = judge(k, token);

	assert_non_null(found);
	assert_non_null(strstr(found, why));
	jwks_free(k);
}

static void
assert_header_refused(const char *header, const char *why)
{
	AUTO(auto_free)
	char *token =
	    token_signed(JWT_RS256, ground_keys[JWT_RS256], header, claims);

	assert_refused(token, why);
}

TEST(a_token_of_each_algorithm_is_good_and_has_its_claims)
{
	struct jwks *k = keys("");

	for (unsigned int alg = 0; alg < JWT_ALGS; alg++) {
		AUTO(auto_free)
		char *token = ground_token((enum jwt_alg)alg, claims);
		struct jwt t;
		json_t *o;

		assert_null(judge(k, token));
		assert_null(jwt_parse(token, &t));
		o = jwt_claims(&t);
		assert_string_equal(
		    json_string_value(json_object_get(o, "sub")), "alice");
		json_decref(o);
	}
	jwks_free(k);
}

TEST(a_changed_part_of_any_kind_is_refused)
{
	struct jwks *k = keys("");

	for (unsigned int alg = 0; alg < JWT_ALGS; alg++) {
		AUTO(auto_free)
		char *token = ground_token((enum jwt_alg)alg, claims);

		for (size_t i = 0; token[i] != '\0'; i++) {
			char was = token[i];

			token[i] = was == 'A' ? 'B' : 'A';
			assert_non_null(judge(k, token));
			token[i] = was;
		}
		assert_null(judge(k, token));
	}
	jwks_free(k);
}

TEST(none_and_macs_are_no_algorithms)
{
	static const char *const algs[] = {"none", "None", "NONE", "HS256",
	    "HS384", "HS512", "RS1", "PS256", "ES256K", "RS256 ", "rs256", ""};

	for (size_t i = 0; i < ARRAY_LEN(algs); i++) {
		AUTO(auto_free)
		char *header = xasprintf("{\"alg\":\"%s\"}", algs[i]);

		assert_header_refused(header, "algorithm");
	}
	assert_header_refused("{}", "algorithm");
	assert_header_refused("{\"alg\":5}", "algorithm");
	assert_header_refused("{\"alg\":[\"RS256\"]}", "algorithm");
	assert_refused("eyJhbGciOiJub25lIn0.e30.", "algorithm");
}

/* The public key as the secret of a MAC: the classic. */
TEST(a_public_key_is_no_secret)
{
	AUTO(auto_free)
	char *jwk = jwk_of(ground_keys[JWT_RS256], "rs", "");
	static const char header[] = "{\"alg\":\"HS256\",\"kid\":\"rs\"}";
	AUTO(auto_free) char *h = base64url(header, strlen(header));
	AUTO(auto_free) char *c = base64url(claims, strlen(claims));
	AUTO(auto_free) char *text = xasprintf("%s.%s", h, c);
	AUTO(auto_free) char *s = NULL;
	AUTO(auto_free) char *token = NULL;
	uint8_t mac[32];
	unsigned int n = sizeof(mac);

	assert_non_null(HMAC(EVP_sha256(), jwk, (int)strlen(jwk),
	    (const uint8_t *)text, strlen(text), mac, &n));
	s = base64url(mac, n);
	token = xasprintf("%s.%s", text, s);
	assert_refused(token, "algorithm");
}

TEST(the_key_says_the_algorithm)
{
	AUTO(auto_free)
	char *wrong = token_signed(JWT_RS256, ground_keys[JWT_RS256],
	    "{\"alg\":\"ES256\",\"kid\":\"rs\"}", claims);
	AUTO(auto_free)
	char *other = token_signed(JWT_ES256, ground_keys[JWT_ES256],
	    "{\"alg\":\"ES256\",\"kid\":\"ed\"}", claims);

	assert_refused(wrong, "no key");
	assert_refused(other, "no key");
}

TEST(keys_that_a_token_brings_are_not_looked_at)
{
	EVP_PKEY *mine = EVP_PKEY_Q_keygen(NULL, NULL, "RSA", (size_t)2048);
	AUTO(auto_free) char *jwk = jwk_of(mine, "rs", "");
	AUTO(auto_free)
	char *header = xasprintf("{\"alg\":\"RS256\",\"kid\":\"rs\",\"jwk\":%s,"
				 "\"jku\":\"https://evil.example/\",\"x5u\":"
				 "\"https://evil.example/\",\"x5c\":[\"AA\"]}",
	    jwk);
	AUTO(auto_free)
	char *token = token_signed(JWT_RS256, mine, header, claims);

	assert_refused(token, "wrong");
	EVP_PKEY_free(mine);
}

TEST(names_of_keys_that_are_twisted)
{
	char *long_kid = xcalloc(1, JWKS_KID_MAX + 2);
	char *header;

	memset(long_kid, 'k', JWKS_KID_MAX + 1);
	header = xasprintf("{\"alg\":\"RS256\",\"kid\":\"%s\"}", long_kid);
	assert_header_refused(header, "kid");
	free(header);
	free(long_kid);
	assert_header_refused("{\"alg\":\"RS256\",\"kid\":\"\"}", "kid");
	assert_header_refused("{\"alg\":\"RS256\",\"kid\":7}", "kid");
	assert_header_refused("{\"alg\":\"RS256\",\"kid\":[\"rs\"]}", "kid");
	assert_header_refused(
	    "{\"alg\":\"RS256\",\"kid\":\"../rs\"}", "no key");
	assert_header_refused("{\"alg\":\"RS256\",\"kid\":\"RS\"}", "no key");
	assert_header_refused(
	    "{\"alg\":\"RS256\",\"kid\":\"rs\\u0000\"}", "malformed");
}

/* Two of one name, or without a name where there are several: none. */
TEST(without_a_name_only_a_single_key_is_meant)
{
	AUTO(auto_free)
	char *token = token_signed(JWT_RS256, ground_keys[JWT_RS256],
	    "{\"alg\":\"RS256\",\"typ\":\"JWT\"}", claims);
	EVP_PKEY *more = EVP_PKEY_Q_keygen(NULL, NULL, "RSA", (size_t)2048);
	AUTO(auto_free) char *jwk = jwk_of(more, "rs", "");
	AUTO(auto_free) char *text = xasprintf(",%s", jwk);
	AUTO(auto_free) char *named = ground_token(JWT_RS256, claims);
	struct jwks *one = keys(""), *two = keys(text);

	assert_null(judge(one, token));
	assert_string_equal(judge(two, token), "no key");
	assert_string_equal(judge(two, named), "no key");
	jwks_free(one);
	jwks_free(two);
	EVP_PKEY_free(more);
}

TEST(what_a_header_wants_understood_is_refused)
{
	assert_header_refused("{\"alg\":\"RS256\",\"kid\":\"rs\",\"crit\":"
			      "[\"b64\"],\"b64\":false}",
	    "crit");
	assert_header_refused(
	    "{\"alg\":\"RS256\",\"typ\":\"dpop+jwt\"}", "type");
	assert_header_refused("{\"alg\":\"RS256\",\"typ\":1}", "type");
	assert_header_refused(
	    "{\"alg\":\"none\",\"alg\":\"RS256\",\"kid\":\"rs\"}", "malformed");
	assert_header_refused("[\"RS256\"]", "no object");
	assert_header_refused("\"RS256\"", "header");
	assert_header_refused(
	    "[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]", "malformed");
}

TEST(forms_that_are_none)
{
	static const char *const forms[] = {"", ".", "..", "...", "a", "a.b",
	    "a.b.c.d", "a.b.c.d.e", "e30.e30.=", "e30=.e30.", "e3 0.e30.",
	    "e30.e30.A", "e30.e30.AB", "e31.e30.", "e30\xff.e30.",
	    "mcps_aaaaaaaaaaaa_b"};
	AUTO(auto_free) char *good = ground_token(JWT_ES256, claims);
	AUTO(auto_free) char *padded = xasprintf("%s=", good);
	AUTO(auto_free) char *more = xasprintf("%s ", good);
	char *large = xmalloc(JWT_MAX + 2);
	struct jwt t;

	for (size_t i = 0; i < ARRAY_LEN(forms); i++)
		assert_non_null(jwt_parse(forms[i], &t));
	assert_non_null(jwt_parse(padded, &t));
	assert_non_null(jwt_parse(more, &t));
	memset(large, 'a', JWT_MAX + 1);
	large[JWT_MAX + 1] = '\0';
	large[4] = large[8] = '.';
	assert_non_null(strstr(jwt_parse(large, &t), "longer"));
	free(large);
}

/* ES256 is r and s of 32 bytes each, never ASN.1, never zero. */
TEST(signatures_of_another_length_are_wrong)
{
	AUTO(auto_free) char *good = ground_token(JWT_ES256, claims);
	size_t at = (size_t)(strrchr(good, '.') - good) + 1;
	AUTO(auto_free) char *zeros = xstrdup(good);
	AUTO(auto_free) char *shorter = xstrdup(good);
	AUTO(auto_free) char *rsa = ground_token(JWT_RS256, claims);

	memset(zeros + at, 'A', strlen(zeros + at));
	assert_refused(zeros, "wrong");
	shorter[at + 84] = '\0';
	assert_refused(shorter, "wrong");
	shorter[at] = '\0';
	assert_refused(shorter, "wrong");
	*strrchr(rsa, '.') = '\0';
	{
		AUTO(auto_free) char *bare = xasprintf("%s.", rsa);

		assert_refused(bare, "wrong");
	}
}

static void
assert_no_keys(const char *text)
{
	struct jwks *k;
	struct err e;

	assert_int_equal(jwks_parse(text, strlen(text), &k, &e), ERR_PARSE);
	assert_true(e.msg[0] != '\0');
}

static void
assert_no_key(const char *jwk)
{
	AUTO(auto_free) char *text = xasprintf("{\"keys\":[%s]}", jwk);

	assert_no_keys(text);
}

TEST(sets_of_keys_that_are_none)
{
	static const char *const texts[] = {"", "{}", "[]", "{\"keys\":{}}",
	    "{\"keys\":[]}", "{\"keys\":[1,null,\"a\",[]]}", "<html>",
	    "{\"keys\":[{}],\"keys\":[{}]}"};

	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		assert_no_keys(texts[i]);
}

TEST(keys_for_other_uses_and_malformed_ones_are_left_out)
{
	static const char *const bad[] = {
	    "{\"kty\":\"oct\",\"k\":\"c2VjcmV0\",\"alg\":\"HS256\"}",
	    "{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"AA\",\"y\":\"AA\"}",
	    /* Not on the curve. */
	    ("{\"kty\":\"EC\",\"crv\":\"P-256\","
	     "\"x\":\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAE\","
	     "\"y\":\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAE\"}"),
	    "{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":\"AAAA\"}",
	    ("{\"kty\":\"OKP\",\"crv\":\"X25519\","
	     "\"x\":\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\"}"),
	    "{\"kty\":\"RSA\",\"n\":\"AQAB\",\"e\":\"AQAB\"}"};
	static const char *const uses[] = {",\"use\":\"enc\"", ",\"use\":1",
	    ",\"alg\":\"RSA-OAEP\"", ",\"alg\":\"HS256\"", ",\"alg\":\"ES256\"",
	    ",\"key_ops\":[\"encrypt\"]"};

	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_no_key(bad[i]);
	for (size_t i = 0; i < ARRAY_LEN(uses); i++) {
		AUTO(auto_free)
		char *jwk = jwk_of(ground_keys[JWT_RS256], "a", uses[i]);

		assert_no_key(jwk);
	}
}

TEST(a_weak_key_is_left_out)
{
	EVP_PKEY *weak = EVP_PKEY_Q_keygen(NULL, NULL, "RSA", (size_t)1024);
	AUTO(auto_free) char *jwk = jwk_of(weak, "weak", "");
	AUTO(auto_free)
	char *n = number_of(ground_keys[JWT_RS256], OSSL_PKEY_PARAM_RSA_N, 0);
	AUTO(auto_free)
	char *one = xasprintf("{\"kty\":\"RSA\",\"n\":\"%s\",\"e\":\"AQ\"}", n);
	AUTO(auto_free)
	char *even =
	    xasprintf("{\"kty\":\"RSA\",\"n\":\"%s\",\"e\":\"BA\"}", n);

	assert_no_key(jwk);
	assert_no_key(one);
	assert_no_key(even);
	EVP_PKEY_free(weak);
}

TEST(more_keys_than_a_set_holds)
{
	struct buf b;
	struct jwks *k;
	struct err e;

	buf_init(&b, 0);
	assert_int_equal(buf_printf(&b, "{\"keys\":["), 0);
	for (int i = 0; i < JWKS_KEYS_MAX + 10; i++) {
		AUTO(auto_free) char *kid = xasprintf("k%d", i);
		AUTO(auto_free)
		char *jwk = jwk_of(ground_keys[JWT_EDDSA], kid, "");

		assert_int_equal(
		    buf_printf(&b, "%s%s", i == 0 ? "" : ",", jwk), 0);
	}
	assert_int_equal(buf_printf(&b, "]}"), 0);
	assert_int_equal(
	    jwks_parse((const char *)buf_data(&b), buf_len(&b), &k, &e), 0);
	assert_int_equal(jwks_count(k), JWKS_KEYS_MAX);
	assert_non_null(jwks_find(k, "k0", JWT_EDDSA));
	jwks_free(k);
	buf_clear(&b);
}

TEST(base64url_has_one_text_for_a_value)
{
	uint8_t out[8];
	size_t n;

	assert_true(jwt_decode("-_8", 3, out, &n));
	assert_int_equal(n, 2);
	assert_int_equal(out[0], 0xfb);
	assert_int_equal(out[1], 0xff);
	assert_true(jwt_decode("", 0, out, &n));
	assert_int_equal(n, 0);
	assert_false(jwt_decode("-_9", 3, out, &n));
	assert_false(jwt_decode("A", 1, out, &n));
	assert_false(jwt_decode("AAAAA", 5, out, &n));
	assert_false(jwt_decode("+/8", 3, out, &n));
	assert_false(jwt_decode("AA==", 4, out, &n));
	assert_false(jwt_decode("A A", 3, out, &n));
}

int
main(void)
{
	int failed;

	ground_make_keys();
	failed = tests_run(NULL, NULL, NULL, NULL);
	ground_free_keys();
	return failed;
}
