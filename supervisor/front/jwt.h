/*
 * jwt.h - a token with a signature: RFC 7515 (compact form), 7518, 8037
 *
 * Three steps, each of which needs the one before: its form and header, its
 * signature by a key that the caller found, and only then its claims.
 *
 * The algorithm is one of enum jwt_alg, never "none" and never a MAC; it must
 * be that of the key (jwks.h).  A key or an address that a header brings with
 * it (jwk, jku, x5c, x5u) is not looked at.  A header that wants something
 * understood (crit) is refused.
 */
#ifndef FRONT_JWT_H
#define FRONT_JWT_H

#include <jansson.h>

#include "supervisor/front/jwks.h"

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

#endif
