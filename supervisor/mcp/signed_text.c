#include "supervisor/mcp/signed_text.h"

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/params.h>

#include "common/exit.h"
#include "common/log.h"
#include "common/xmalloc.h"

struct text_signer {
	EVP_MAC *mac;
	EVP_MAC_CTX *keyed; /* begun anew for each use */
};

void
signed_put(uint8_t *p, size_t n, uint64_t v)
{
	while (n-- > 0) {
		p[n] = (uint8_t)(v & 0xff);
		v >>= 8;
	}
}

uint64_t
signed_get(const uint8_t *p, size_t n)
{
	uint64_t v = 0;

	for (size_t i = 0; i < n; i++)
		v = v << 8 | p[i];
	return v;
}

struct text_signer *
text_signer_new(const uint8_t *key, size_t key_len)
{
	struct text_signer *s = xcalloc(1, sizeof(*s));
	char digest[] = "SHA256";
	OSSL_PARAM params[] = {
	    OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
	    OSSL_PARAM_construct_end()};

	if (key_len < SIGNED_MAC_LEN)
		fatal(EXIT_BUG, "session key of %zu bytes, want %d", key_len,
		    SIGNED_MAC_LEN);
	s->mac = EVP_MAC_fetch(NULL, "HMAC", NULL);
	s->keyed = s->mac == NULL ? NULL : EVP_MAC_CTX_new(s->mac);
	if (s->keyed == NULL ||
	    EVP_MAC_init(s->keyed, key, key_len, params) != 1)
		fatal(EXIT_BUG, "OpenSSL has no HMAC-SHA256");
	return s;
}

void
text_signer_free(struct text_signer *s)
{
	if (s == NULL)
		return;
	EVP_MAC_CTX_free(s->keyed);
	EVP_MAC_free(s->mac);
	free(s);
}

/* The payload says its length by what is at its beginning, and the tenant's
 * name goes in with its end, so that no two principals read alike. */
static void
signed_text_mac(const struct text_signer *s, const char *domain,
    const uint8_t *payload, size_t n, const struct principal *who,
    uint8_t out[SIGNED_MAC_LEN])
{
	EVP_MAC_CTX *ctx = s->keyed;
	size_t len = 0;

	if (EVP_MAC_init(ctx, NULL, 0, NULL) != 1 ||
	    EVP_MAC_update(
		ctx, (const unsigned char *)domain, strlen(domain) + 1) != 1 ||
	    EVP_MAC_update(ctx, payload, n) != 1 ||
	    EVP_MAC_update(ctx, (const unsigned char *)who->tenant_name,
		strlen(who->tenant_name) + 1) != 1 ||
	    EVP_MAC_update(ctx, (const unsigned char *)who->subject,
		strlen(who->subject)) != 1 ||
	    EVP_MAC_final(ctx, out, &len, SIGNED_MAC_LEN) != 1 ||
	    len != SIGNED_MAC_LEN)
		fatal(EXIT_BUG, "HMAC-SHA256 failed");
}

static char *
encode(char *out, const uint8_t *p, size_t n)
{
	char *end = out + EVP_EncodeBlock((unsigned char *)out, p, (int)n);

	for (char *c = out; c < end; c++)
		*c = (char)(*c == '+' ? '-' : *c == '/' ? '_' : *c);
	return end;
}

#define BLOCK 48 /* bytes encoded at once: a multiple of three */

void
signed_text_make(const struct text_signer *s, const char *domain,
    const uint8_t *payload, size_t n, const struct principal *who, char *out)
{
	uint8_t block[BLOCK], mac[SIGNED_MAC_LEN];
	size_t all = n + SIGNED_MAC_LEN, have = 0;

	signed_text_mac(s, domain, payload, n, who, mac);
	for (size_t i = 0; i < all; i++) {
		block[have++] = i < n ? payload[i] : mac[i - n];
		if (have == BLOCK || i + 1 == all) {
			out = encode(out, block, have);
			have = 0;
		}
	}
}

/* Four characters to three bytes; false: other characters are among them. */
static bool
decode(const char *text, size_t len, uint8_t *out)
{
	static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				       "abcdefghijklmnopqrstuvwxyz"
				       "0123456789-_";
	unsigned char four[4];

	if (strspn(text, alphabet) != len)
		return false;
	for (size_t i = 0; i < len; i += 4) {
		for (size_t k = 0; k < 4; k++)
			four[k] = (unsigned char)(text[i + k] == '-' ? '+' :
				text[i + k] == '_'                   ? '/' :
						     text[i + k]);
		if (EVP_DecodeBlock(out + i / 4 * 3, four, 4) != 3)
			return false;
	}
	return true;
}

size_t
signed_text_read(const struct text_signer *s, const char *domain,
    const char *text, const struct principal *who, uint8_t *out, size_t max)
{
	size_t len = strnlen(text, max / 3 * 4 + 1), n;
	uint8_t want[SIGNED_MAC_LEN];

	if (len % 4 != 0 || len / 4 * 3 > max ||
	    len / 4 * 3 <= SIGNED_MAC_LEN || !decode(text, len, out))
		return 0;
	n = len / 4 * 3 - SIGNED_MAC_LEN;
	signed_text_mac(s, domain, out, n, who, want);
	return CRYPTO_memcmp(want, out + n, SIGNED_MAC_LEN) == 0 ? n : 0;
}
