/*
 * jwt.h - an authorization server's public keys, and tokens signed by them:
 * RFC 7515 (compact form), 7517, 7518, 8037
 *
 * A key is for one algorithm, by its type: RSA for RS256, P-256 for ES256,
 * Ed25519 for EdDSA.  What a token says of its algorithm only has to agree: it
 * is never "none" and never a MAC.  Keys of other types, for encryption, too
 * weak or malformed are left out.
 *
 * A token is read in three steps, each of which needs the one before: its form
 * and header, its signature by a key that the caller found, and only then its
 * claims.  A key or an address that a header brings with it (jwk, jku, x5c,
 * x5u) is not looked at.  A header that wants something understood (crit) is
 * refused.
 */
#ifndef FRONT_JWT_H
#define FRONT_JWT_H

#include <jansson.h>
#include <openssl/evp.h>

#include "common/base.h"
#include "common/err.h"

#define JWKS_KEYS_MAX 64
#define JWKS_KID_MAX 256

enum jwt_alg {
	JWT_RS256,
	JWT_ES256,
	JWT_EDDSA,
	JWT_ALGS
};

struct jwks;

/* jwks_parse - ERR_PARSE: no set of keys, or none in it that is good here */
int jwks_parse(
    const char *text, size_t n, struct jwks **out, struct err *e) MUSTCHECK;
void jwks_free(struct jwks *k); /* NULL is fine */
size_t jwks_count(const struct jwks *k);
/* jwks_find - the key of that name for that algorithm; kid "": the only one
 * for it.  NULL: there is none, or it is one of several */
EVP_PKEY *jwks_find(const struct jwks *k, const char *kid, enum jwt_alg alg);

#define JWT_MAX 8192 /* bytes of a token */
#define JWT_SIGNATURE_MAX 1024

struct jwt {
	enum jwt_alg alg;
	char kid[JWKS_KID_MAX + 1]; /* "": none */
	const char *text;           /* not ours */
	size_t signed_len;          /* of text */
	size_t claims_at;
	uint8_t signature[JWT_SIGNATURE_MAX];
	size_t signature_len;
};

/* jwt_has_form - two dots: none of this server's own tokens has that */
bool jwt_has_form(const char *text);
/* jwt_parse - text must stay.  NULL, or why not: a text that stays */
const char *jwt_parse(const char *text, struct jwt *out) MUSTCHECK;
bool jwt_verify(const struct jwt *t, EVP_PKEY *key) MUSTCHECK;
/* jwt_claims - of a token whose signature is good; an object, the caller's;
 * NULL: they are none */
json_t *jwt_claims(const struct jwt *t) MUSTCHECK;

/* jwt_decode - RFC 4648, section 5, without padding; n characters into
 * out, which has room for n * 3 / 4. False for any other character, padding, or
 * bits that are not zero at the end: one value has one text. */
bool jwt_decode(
    const char *text, size_t n, uint8_t *out, size_t *out_len) MUSTCHECK;

#endif
