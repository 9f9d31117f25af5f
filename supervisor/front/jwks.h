/*
 * jwks.h - an authorization server's public keys, RFC 7517 and 8037
 *
 * A key is for one algorithm, by its type: RSA for RS256, P-256 for ES256,
 * Ed25519 for EdDSA.  What a token says of its algorithm only has to agree.
 * Keys of other types, for encryption, too weak or malformed are left out.
 */
#ifndef FRONT_JWKS_H
#define FRONT_JWKS_H

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

#endif
