#include "supervisor/front/jwt.h"

#include <strings.h>

#include <openssl/ecdsa.h>
#include <openssl/err.h>

#include "common/js.h"
#include "common/xmalloc.h"
#include "supervisor/front/base64url.h"

#define HEADER_MAX 2048 /* characters */
#define DEPTH_MAX 16
#define HALF 32 /* bytes of r and of s */

bool
jwt_has_form(const char *text)
{
	const char *dot = strchr(text, '.');

	dot = dot == NULL ? NULL : strchr(dot + 1, '.');
	return dot != NULL && strchr(dot + 1, '.') == NULL;
}

/* ---- its form */

static bool
find_alg(const char *name, enum jwt_alg *out)
{
	static const struct {
		const char *name;
		enum jwt_alg alg;
	} algs[] = {{"RS256", JWT_RS256}, {"ES256", JWT_ES256},
	    {"EdDSA", JWT_EDDSA}, {"Ed25519", JWT_EDDSA}};

	for (size_t i = 0; i < ARRAY_LEN(algs); i++)
		if (strcmp(name, algs[i].name) == 0) {
			*out = algs[i].alg;
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

	if (!base64url_decode(text, n, bytes, &len) ||
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
	    !base64url_decode(
		signature, n, out->signature, &out->signature_len))
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
	BIGNUM *r = BN_bin2bn(t->signature, HALF, NULL);
	BIGNUM *s = BN_bin2bn(t->signature + HALF, HALF, NULL);
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
	if (t->signature_len != (size_t)2 * HALF)
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
