/* jwt_ground.h - an issuer of this test's own: keys by OpenSSL, tokens signed
 * by them, rightly and wrongly. */
#ifndef TESTS_FRONT_JWT_GROUND_H
#define TESTS_FRONT_JWT_GROUND_H

#include <stdio.h>

#include <openssl/core_names.h>
#include <openssl/ecdsa.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "common/buf.h"
#include "common/xmalloc.h"
#include "supervisor/front/jwt.h"
#include "tests/unit/test.h"

/* ---- text */

static inline char *
base64url(const void *p, size_t n)
{
	char *out = xmalloc((n + 2) / 3 * 4 + 1);
	int len = EVP_EncodeBlock((unsigned char *)out, p, (int)n);

	while (len > 0 && out[len - 1] == '=')
		out[--len] = '\0';
	for (char *c = out; *c != '\0'; c++)
		*c = *c == '+' ? '-' : *c == '/' ? '_' : *c;
	return out;
}

/* ---- keys */

static EVP_PKEY *ground_keys[JWT_ALGS];

static inline void
ground_make_keys(void)
{
	if (ground_keys[0] != NULL)
		return;
	ground_keys[JWT_RS256] =
	    EVP_PKEY_Q_keygen(NULL, NULL, "RSA", (size_t)2048);
	ground_keys[JWT_ES256] = EVP_PKEY_Q_keygen(NULL, NULL, "EC", "P-256");
	ground_keys[JWT_EDDSA] = EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
}

static inline void
ground_free_keys(void)
{
	for (size_t i = 0; i < JWT_ALGS; i++)
		EVP_PKEY_free(ground_keys[i]);
}

static inline char *
number_of(const EVP_PKEY *key, const char *name, int width)
{
	BIGNUM *n = NULL;
	uint8_t bytes[1024];
	int len;

	assert_int_equal(EVP_PKEY_get_bn_param(key, name, &n), 1);
	len = width != 0 ? width : BN_num_bytes(n);
	assert_int_equal(BN_bn2binpad(n, bytes, len), len);
	BN_free(n);
	return base64url(bytes, (size_t)len);
}

/* more: further members, ",\"use\":\"sig\"" */
static inline char *
jwk_of(const EVP_PKEY *key, const char *kid, const char *more)
{
	AUTO(auto_free) char *a = NULL;
	AUTO(auto_free) char *b = NULL;
	uint8_t raw[32];
	size_t n = sizeof(raw);

	switch (EVP_PKEY_get_base_id(key)) {
	case EVP_PKEY_RSA:
		a = number_of(key, OSSL_PKEY_PARAM_RSA_N, 0);
		b = number_of(key, OSSL_PKEY_PARAM_RSA_E, 0);
		return xasprintf("{\"kty\":\"RSA\",\"kid\":\"%s\",\"n\":\"%s\","
				 "\"e\":\"%s\"%s}",
		    kid, a, b, more);
	case EVP_PKEY_EC:
		a = number_of(key, OSSL_PKEY_PARAM_EC_PUB_X, 32);
		b = number_of(key, OSSL_PKEY_PARAM_EC_PUB_Y, 32);
		return xasprintf("{\"kty\":\"EC\",\"crv\":\"P-256\",\"kid\":"
				 "\"%s\",\"x\":\"%s\",\"y\":\"%s\"%s}",
		    kid, a, b, more);
	default:
		assert_int_equal(EVP_PKEY_get_raw_public_key(key, raw, &n), 1);
		a = base64url(raw, n);
		return xasprintf("{\"kty\":\"OKP\",\"crv\":\"Ed25519\","
				 "\"kid\":\"%s\",\"x\":\"%s\"%s}",
		    kid, a, more);
	}
}

/* All three, by the names "rs", "es", "ed"; more: further keys, ",{...}" */
static inline char *
ground_jwks(const char *more)
{
	AUTO(auto_free) char *rs = jwk_of(ground_keys[JWT_RS256], "rs", "");
	AUTO(auto_free) char *es = jwk_of(ground_keys[JWT_ES256], "es", "");
	AUTO(auto_free) char *ed = jwk_of(ground_keys[JWT_EDDSA], "ed", "");

	return xasprintf("{\"keys\":[%s,%s,%s%s]}", rs, es, ed, more);
}

/* ---- tokens */

static inline size_t
ecdsa_raw(const uint8_t *der, size_t n, uint8_t out[64])
{
	const uint8_t *p = der;
	ECDSA_SIG *pair = d2i_ECDSA_SIG(NULL, &p, (long)n);
	const BIGNUM *r, *s;

	assert_non_null(pair);
	ECDSA_SIG_get0(pair, &r, &s);
	assert_int_equal(BN_bn2binpad(r, out, 32), 32);
	assert_int_equal(BN_bn2binpad(s, out + 32, 32), 32);
	ECDSA_SIG_free(pair);
	return 64;
}

static inline char *
token_signed(
    enum jwt_alg alg, EVP_PKEY *key, const char *header, const char *claims)
{
	AUTO(auto_free) char *h = base64url(header, strlen(header));
	AUTO(auto_free) char *c = base64url(claims, strlen(claims));
	AUTO(auto_free) char *text = xasprintf("%s.%s", h, c);
	AUTO(auto_free) char *s = NULL;
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	uint8_t sig[1024], raw[64];
	size_t n = sizeof(sig);

	assert_int_equal(EVP_DigestSignInit(ctx, NULL,
			     alg == JWT_EDDSA ? NULL : EVP_sha256(), NULL, key),
	    1);
	assert_int_equal(
	    EVP_DigestSign(ctx, sig, &n, (const uint8_t *)text, strlen(text)),
	    1);
	EVP_MD_CTX_free(ctx);
	s = alg == JWT_ES256 ? base64url(raw, ecdsa_raw(sig, n, raw)) :
			       base64url(sig, n);
	return xasprintf("%s.%s", text, s);
}

static inline char *
ground_token(enum jwt_alg alg, const char *claims)
{
	static const char *const headers[JWT_ALGS] = {
	    [JWT_RS256] = "{\"alg\":\"RS256\",\"kid\":\"rs\"}",
	    [JWT_ES256] = "{\"alg\":\"ES256\",\"kid\":\"es\"}",
	    [JWT_EDDSA] = "{\"alg\":\"EdDSA\",\"kid\":\"ed\"}"};

	return token_signed(alg, ground_keys[alg], headers[alg], claims);
}

#endif
