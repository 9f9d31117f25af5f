/*
 * fuzz_jwt.c - tokens and sets of keys, as anybody may send them
 * libs: front
 *
 * The first line of an input is a token, the rest a set of keys; where that is
 * none, two known ones are taken.
 */
#include "common/conf.h"
#include "supervisor/front/claims.h"
#include "supervisor/front/jwt.h"
#include "tests/fuzz/fuzz.h"

/* Of RFC 7515 and 8037, whose private keys are not here. */
static const char known[] =
    "{\"keys\":["
    "{\"kty\":\"EC\",\"crv\":\"P-256\","
    "\"x\":\"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU\","
    "\"y\":\"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0\"},"
    "{\"kty\":\"OKP\",\"crv\":\"Ed25519\","
    "\"x\":\"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo\"}]}";

static struct jwks *
read_keys(const char *text, size_t n)
{
	struct jwks *k;
	struct err e;

	if (jwks_parse(text, n, &k, &e) == 0) {
		REQUIRE(jwks_count(k) > 0 && jwks_count(k) <= JWKS_KEYS_MAX);
		return k;
	}
	REQUIRE(e.msg[0] != '\0');
	REQUIRE(jwks_parse(known, strlen(known), &k, &e) == 0);
	return k;
}

/* Claims are read as if the signature were good: the parser is what is tried
 * here. */
static void
read_claims(const struct jwt *t)
{
	struct conf *conf = conf_new();
	json_t *o = jwt_claims(t);
	struct claims c;
	const char *why;

	REQUIRE(o == NULL || json_is_object(o));
	if (o != NULL) {
		why = claims_read(conf, o, 1, &c);
		REQUIRE(why != NULL || c.subject[0] != '\0');
	}
	json_decref(o);
	conf_free(conf);
}

static void
try_token(const char *token, const struct jwks *keys)
{
	EVP_PKEY *key;
	struct jwt t;

	if (jwt_parse(token, &t) != NULL)
		return;
	REQUIRE(jwt_has_form(token) && t.alg < JWT_ALGS);
	REQUIRE(t.claims_at <= t.signed_len && t.signed_len < strlen(token));
	REQUIRE(t.signature_len <= JWT_SIGNATURE_MAX);
	read_claims(&t);
	key = jwks_find(keys, t.kid, t.alg);
	if (key != NULL)
		(void)!jwt_verify(&t, key);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO(auto_free) char *text = xstrndup((const char *)data, size);
	char *rest = fuzz_cut_line(text);
	struct jwks *keys;

	keys = rest == NULL ? read_keys("", 0) : read_keys(rest, strlen(rest));
	try_token(text, keys);
	jwks_free(keys);
	return 0;
}
