/*
 * jwt.c - an issuer's keys, and the tokens that they have signed
 */
#include "supervisor/front/jwt.h"

#include <stdio.h>
#include <strings.h>

#include <openssl/core_names.h>
#include <openssl/ecdsa.h>
#include <openssl/err.h>
#include <openssl/param_build.h>

#include "common/js.h"
#include "common/xmalloc.h"

#define JWKS_MAX (1 << 16) /* bytes */
#define JWKS_DEPTH_MAX 8
#define PART_MAX 1024 /* characters of a number: 6144 bits */
#define RSA_BITS_MIN 2048
#define RSA_EXPONENT_MAX 4 /* bytes */
#define COORDINATE 32      /* of P-256; bytes of an Ed25519 key, of r and s */
#define HEADER_MAX 2048    /* characters */
#define DEPTH_MAX 16

/* ---- base64url */

static int
digit(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	return c == '-' ? 62 : c == '_' ? 63 : -1;
}

bool
jwt_decode(const char *text, size_t n, uint8_t *out, size_t *out_len)
{
	unsigned int bits = 0, nbits = 0;
	size_t len = 0;

	for (size_t i = 0; i < n; i++) {
		int d = digit(text[i]);

		if (d < 0)
			return false;
		bits = bits << 6 | (unsigned int)d;
		nbits += 6;
		if (nbits < 8)
			continue;
		nbits -= 8;
		out[len++] = (uint8_t)(bits >> nbits);
		bits &= (1u << nbits) - 1;
	}
	*out_len = len;
	return nbits < 6 && bits == 0;
}

/* ---- keys */

struct jwks_key {
	char kid[JWKS_KID_MAX + 1]; /* "": none */
	enum jwt_alg alg;
	EVP_PKEY *pkey;
};

struct jwks {
	struct jwks_key keys[JWKS_KEYS_MAX];
	size_t n;
};

struct part {
	uint8_t p[PART_MAX];
	size_t n;
};

static bool
take_part(const json_t *o, const char *name, struct part *out)
{
	const char *text = js_text(o, name);
	size_t n = strlen(text);

	return n > 0 && n <= PART_MAX && jwt_decode(text, n, out->p, &out->n) &&
	    out->n > 0;
}

/* Keys of each type.  NULL: not a good one. */

static EVP_PKEY *
make_key(const char *type, OSSL_PARAM *params)
{
	EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new_from_name(NULL, type, NULL);
	EVP_PKEY *key = NULL;

	if (ctx == NULL || params == NULL || EVP_PKEY_fromdata_init(ctx) != 1 ||
	    EVP_PKEY_fromdata(ctx, &key, EVP_PKEY_PUBLIC_KEY, params) != 1)
		key = NULL;
	EVP_PKEY_CTX_free(ctx);
	return key;
}

static EVP_PKEY *
rsa_key(const json_t *o)
{
	OSSL_PARAM_BLD *parts = OSSL_PARAM_BLD_new();
	struct part n, e;
	BIGNUM *bn_n = NULL, *bn_e = NULL;
	OSSL_PARAM *params = NULL;
	EVP_PKEY *key = NULL;

	if (take_part(o, "n", &n) && take_part(o, "e", &e) &&
	    e.n <= RSA_EXPONENT_MAX) {
		bn_n = BN_bin2bn(n.p, (int)n.n, NULL);
		bn_e = BN_bin2bn(e.p, (int)e.n, NULL);
	}
	if (parts != NULL && bn_n != NULL && bn_e != NULL &&
	    BN_num_bits(bn_n) >= RSA_BITS_MIN && BN_is_odd(bn_n) &&
	    BN_is_odd(bn_e) && !BN_is_one(bn_e) &&
	    OSSL_PARAM_BLD_push_BN(parts, OSSL_PKEY_PARAM_RSA_N, bn_n) == 1 &&
	    OSSL_PARAM_BLD_push_BN(parts, OSSL_PKEY_PARAM_RSA_E, bn_e) == 1) {
		params = OSSL_PARAM_BLD_to_param(parts);
		key = make_key("RSA", params);
	}
	OSSL_PARAM_free(params);
	BN_free(bn_n);
	BN_free(bn_e);
	OSSL_PARAM_BLD_free(parts);
	return key;
}

/* OpenSSL looks whether the point is on the curve. */
static EVP_PKEY *
p256_key(const json_t *o)
{
	static char group[] = "prime256v1";
	uint8_t point[1 + 2 * COORDINATE] = {4}; /* uncompressed */
	OSSL_PARAM params[] = {OSSL_PARAM_construct_utf8_string(
				   OSSL_PKEY_PARAM_GROUP_NAME, group, 0),
	    OSSL_PARAM_construct_octet_string(
		OSSL_PKEY_PARAM_PUB_KEY, point, sizeof(point)),
	    OSSL_PARAM_construct_end()};
	struct part x, y;

	if (strcmp(js_text(o, "crv"), "P-256") != 0 || !take_part(o, "x", &x) ||
	    !take_part(o, "y", &y) || x.n != COORDINATE || y.n != COORDINATE)
		return NULL;
	memcpy(point + 1, x.p, COORDINATE);
	memcpy(point + 1 + COORDINATE, y.p, COORDINATE);
	return make_key("EC", params);
}

static EVP_PKEY *
ed25519_key(const json_t *o)
{
	struct part x;

	if (strcmp(js_text(o, "crv"), "Ed25519") != 0 ||
	    !take_part(o, "x", &x) || x.n != COORDINATE)
		return NULL;
	return EVP_PKEY_new_raw_public_key(
	    EVP_PKEY_ED25519, NULL, x.p, COORDINATE);
}

static const struct jwk_kind {
	const char *kty;
	const char *alg;
	const char *alg_too; /* RFC 9864 */
	enum jwt_alg is;
	EVP_PKEY *(*make)(const json_t *o);
} kinds[] = {{"RSA", "RS256", "RS256", JWT_RS256, rsa_key},
    {"EC", "ES256", "ES256", JWT_ES256, p256_key},
    {"OKP", "EdDSA", "Ed25519", JWT_EDDSA, ed25519_key}};

static bool
is_for_signatures(const json_t *o, const struct jwk_kind *kind)
{
	const json_t *use = json_object_get(o, "use");
	const json_t *ops = json_object_get(o, "key_ops");
	const json_t *alg = json_object_get(o, "alg");
	const json_t *op;
	bool can = ops == NULL;
	size_t i;

	json_array_foreach (ops, i, op)
		can |= json_is_string(op) &&
		    strcmp(json_string_value(op), "verify") == 0;
	if (use != NULL && strcmp(js_text(o, "use"), "sig") != 0)
		return false;
	return can &&
	    (alg == NULL || strcmp(js_text(o, "alg"), kind->alg) == 0 ||
		strcmp(js_text(o, "alg"), kind->alg_too) == 0);
}

static void
add_key(struct jwks *k, const json_t *o)
{
	const char *kid = js_text(o, "kid");
	struct jwks_key *key = &k->keys[k->n];

	if (strlen(kid) > JWKS_KID_MAX)
		return;
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		const struct jwk_kind *kind = &kinds[i];

		if (strcmp(js_text(o, "kty"), kind->kty) != 0 ||
		    !is_for_signatures(o, kind))
			continue;
		key->pkey = kind->make(o);
		key->alg = kind->is;
		(void)snprintf(key->kid, sizeof(key->kid), "%s", kid);
		k->n += key->pkey != NULL;
	}
}

int
jwks_parse(const char *text, size_t n, struct jwks **out, struct err *e)
{
	AUTO(auto_json) json_t *o = NULL;
	const json_t *list, *item;
	struct jwks *k;
	size_t i;

	if (js_parse(text, n, JWKS_MAX, JWKS_DEPTH_MAX, &o, e) != 0)
		return err_wrap(e, "the issuer's keys");
	list = json_object_get(o, "keys");
	if (!json_is_array(list))
		return err_set(e, ERR_PARSE,
		    "the issuer's keys: there is no list \"keys\"");
	k = xcalloc(1, sizeof(*k));
	json_array_foreach (list, i, item)
		if (k->n < JWKS_KEYS_MAX)
			add_key(k, item);
	ERR_clear_error(); /* TLS looks there */
	if (k->n == 0) {
		jwks_free(k);
		return err_set(e, ERR_PARSE,
		    "the issuer's keys: none of %zu is for RS256, ES256 or "
		    "EdDSA with Ed25519",
		    json_array_size(list));
	}
	*out = k;
	return 0;
}

void
jwks_free(struct jwks *k)
{
	if (k == NULL)
		return;
	for (size_t i = 0; i < k->n; i++)
		EVP_PKEY_free(k->keys[i].pkey);
	free(k);
}

size_t
jwks_count(const struct jwks *k)
{
	return k->n;
}

EVP_PKEY *
jwks_find(const struct jwks *k, const char *kid, enum jwt_alg alg)
{
	EVP_PKEY *found = NULL;

	for (size_t i = 0; i < k->n; i++) {
		const struct jwks_key *key = &k->keys[i];

		if (key->alg != alg ||
		    (kid[0] != '\0' && strcmp(key->kid, kid) != 0))
			continue;
		if (found != NULL)
			return NULL;
		found = key->pkey;
	}
	return found;
}

/* ---- a token's form */

bool
jwt_has_form(const char *text)
{
	const char *dot = strchr(text, '.');

	dot = dot == NULL ? NULL : strchr(dot + 1, '.');
	return dot != NULL && strchr(dot + 1, '.') == NULL;
}

static bool
find_alg(const char *name, enum jwt_alg *out)
{
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if (strcmp(name, kinds[i].alg) == 0 ||
		    strcmp(name, kinds[i].alg_too) == 0) {
			*out = kinds[i].is;
			return true;
		}
	return false;
}

/* RFC 9068, section 2.1; many servers say "JWT". */
static bool
is_type(const char *typ)
{
	return strcasecmp(typ, "at+jwt") == 0 ||
	    strcasecmp(typ, "application/at+jwt") == 0 ||
	    strcasecmp(typ, "JWT") == 0;
}

static const char *
read_header(const json_t *o, struct jwt *out)
{
	const json_t *kid = json_object_get(o, "kid");

	if (!json_is_object(o))
		return "its header is no object";
	if (!find_alg(js_text(o, "alg"), &out->alg))
		return "its algorithm is none of RS256, ES256, EdDSA";
	if (json_object_get(o, "typ") != NULL && !is_type(js_text(o, "typ")))
		return "it is of another type than at+jwt or JWT";
	if (json_object_get(o, "crit") != NULL)
		return "its header has crit";
	if (kid != NULL &&
	    (!json_is_string(kid) || json_string_length(kid) == 0 ||
		json_string_length(kid) > JWKS_KID_MAX))
		return "its kid is no name of a key";
	(void)snprintf(out->kid, sizeof(out->kid), "%s", js_text(o, "kid"));
	return NULL;
}

static json_t *
decode_object(const char *text, size_t n)
{
	AUTO(auto_free) uint8_t *bytes = xmalloc(n + 1);
	json_t *o = NULL;
	struct err e;
	size_t len;

	if (!jwt_decode(text, n, bytes, &len) ||
	    js_parse((const char *)bytes, len, JWT_MAX, DEPTH_MAX, &o, &e) != 0)
		return NULL;
	return o;
}

const char *
jwt_parse(const char *text, struct jwt *out)
{
	AUTO(auto_json) json_t *header = NULL;
	const char *claims, *signature;
	size_t header_len, n = strlen(text);

	memset(out, 0, sizeof(*out));
	if (n > JWT_MAX)
		return "it is longer than a token may be";
	if (!jwt_has_form(text))
		return "it has not three parts";
	claims = strchr(text, '.') + 1;
	signature = strchr(claims, '.') + 1;
	header_len = (size_t)(claims - text) - 1;
	out->text = text;
	out->claims_at = header_len + 1;
	out->signed_len = (size_t)(signature - text) - 1;
	n -= out->signed_len + 1;
	if (header_len > HEADER_MAX || n > JWT_SIGNATURE_MAX ||
	    !jwt_decode(signature, n, out->signature, &out->signature_len))
		return "it is malformed";
	header = decode_object(text, header_len);
	return header == NULL ? "its header is malformed" :
				read_header(header, out);
}

/* ---- its signature */

/* RFC 7518, section 3.4: r and s as they are; OpenSSL wants ASN.1. */
static int
signature_to_der(const struct jwt *t, uint8_t **der)
{
	ECDSA_SIG *pair = ECDSA_SIG_new();
	BIGNUM *r = BN_bin2bn(t->signature, COORDINATE, NULL);
	BIGNUM *s = BN_bin2bn(t->signature + COORDINATE, COORDINATE, NULL);
	int n = 0;

	if (pair != NULL && r != NULL && s != NULL &&
	    ECDSA_SIG_set0(pair, r, s) == 1) {
		r = s = NULL;
		n = i2d_ECDSA_SIG(pair, der);
	}
	BN_free(r);
	BN_free(s);
	ECDSA_SIG_free(pair);
	return n;
}

static bool
verify_raw(
    const struct jwt *t, EVP_PKEY *key, const uint8_t *signature, size_t n)
{
	const EVP_MD *md = t->alg == JWT_EDDSA ? NULL : EVP_sha256();
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	bool good = ctx != NULL &&
	    EVP_DigestVerifyInit(ctx, NULL, md, NULL, key) == 1 &&
	    EVP_DigestVerify(ctx, signature, n, (const uint8_t *)t->text,
		t->signed_len) == 1;

	EVP_MD_CTX_free(ctx);
	ERR_clear_error(); /* TLS looks there */
	return good;
}

bool
jwt_verify(const struct jwt *t, EVP_PKEY *key)
{
	uint8_t *der = NULL;
	bool good;
	int n;

	if (t->alg != JWT_ES256)
		return verify_raw(t, key, t->signature, t->signature_len);
	if (t->signature_len != (size_t)2 * COORDINATE)
		return false;
	n = signature_to_der(t, &der);
	good = n > 0 && verify_raw(t, key, der, (size_t)n);
	OPENSSL_free(der);
	return good;
}

json_t *
jwt_claims(const struct jwt *t)
{
	json_t *o =
	    decode_object(t->text + t->claims_at, t->signed_len - t->claims_at);

	if (json_is_object(o))
		return o;
	json_decref(o);
	return NULL;
}
