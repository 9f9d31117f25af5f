#include "supervisor/front/jwks.h"

#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/param_build.h>

#include "common/js.h"
#include "common/xmalloc.h"
#include "supervisor/front/base64url.h"

#define JWKS_MAX (1 << 16) /* bytes */
#define DEPTH_MAX 8
#define PART_MAX 1024 /* characters of a number: 6144 bits */
#define RSA_BITS_MIN 2048
#define RSA_EXPONENT_MAX 4 /* bytes */
#define COORDINATE 32      /* of P-256; bytes of an Ed25519 key */

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

	return n > 0 && n <= PART_MAX &&
	    base64url_decode(text, n, out->p, &out->n) && out->n > 0;
}

/* ---- keys of each type.  NULL: not a good one */

static EVP_PKEY *
make_key(const char *type, OSSL_PARAM_BLD *parts)
{
	EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new_from_name(NULL, type, NULL);
	OSSL_PARAM *params = OSSL_PARAM_BLD_to_param(parts);
	EVP_PKEY *key = NULL;

	if (ctx == NULL || params == NULL || EVP_PKEY_fromdata_init(ctx) != 1 ||
	    EVP_PKEY_fromdata(ctx, &key, EVP_PKEY_PUBLIC_KEY, params) != 1)
		key = NULL;
	OSSL_PARAM_free(params);
	EVP_PKEY_CTX_free(ctx);
	return key;
}

static EVP_PKEY *
rsa_key(const json_t *o)
{
	OSSL_PARAM_BLD *parts = OSSL_PARAM_BLD_new();
	struct part n, e;
	BIGNUM *bn_n = NULL, *bn_e = NULL;
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
	    OSSL_PARAM_BLD_push_BN(parts, OSSL_PKEY_PARAM_RSA_E, bn_e) == 1)
		key = make_key("RSA", parts);
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
	OSSL_PARAM_BLD *parts = OSSL_PARAM_BLD_new();
	uint8_t point[1 + 2 * COORDINATE] = {4}; /* uncompressed */
	struct part x, y;
	EVP_PKEY *key = NULL;

	if (parts == NULL || strcmp(js_text(o, "crv"), "P-256") != 0 ||
	    !take_part(o, "x", &x) || !take_part(o, "y", &y) ||
	    x.n != COORDINATE || y.n != COORDINATE) {
		OSSL_PARAM_BLD_free(parts);
		return NULL;
	}
	memcpy(point + 1, x.p, COORDINATE);
	memcpy(point + 1 + COORDINATE, y.p, COORDINATE);
	if (OSSL_PARAM_BLD_push_utf8_string(
		parts, OSSL_PKEY_PARAM_GROUP_NAME, group, 0) == 1 &&
	    OSSL_PARAM_BLD_push_octet_string(
		parts, OSSL_PKEY_PARAM_PUB_KEY, point, sizeof(point)) == 1)
		key = make_key("EC", parts);
	OSSL_PARAM_BLD_free(parts);
	return key;
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

static const struct kind {
	const char *kty;
	const char *alg;
	const char *alg_too; /* RFC 9864 */
	enum jwt_alg is;
	EVP_PKEY *(*make)(const json_t *o);
} kinds[] = {{"RSA", "RS256", "RS256", JWT_RS256, rsa_key},
    {"EC", "ES256", "ES256", JWT_ES256, p256_key},
    {"OKP", "EdDSA", "Ed25519", JWT_EDDSA, ed25519_key}};

/* ---- the set */

static bool
is_for_signatures(const json_t *o, const struct kind *kind)
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
		const struct kind *kind = &kinds[i];

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

	if (js_parse(text, n, JWKS_MAX, DEPTH_MAX, &o, e) != 0)
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
