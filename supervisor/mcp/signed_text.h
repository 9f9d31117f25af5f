/*
 * signed_text.h - texts that a client keeps for us, under a MAC of the server
 *
 * base64url of a payload and an HMAC-SHA256 over a domain, the payload and the
 * principal.  The principal is not in the text: for anybody else it is simply
 * none of ours, in the same time as a made-up one.
 */
#ifndef MCP_SIGNED_TEXT_H
#define MCP_SIGNED_TEXT_H

#include "common/base.h"
#include "common/principal.h"

#define SIGNED_MAC_LEN 32

struct text_signer;

/* text_signer_new - key is copied; shorter than SIGNED_MAC_LEN ends the process
 */
struct text_signer *text_signer_new(const uint8_t *key, size_t key_len);
void text_signer_free(struct text_signer *s); /* NULL is fine */

/*
 * signed_text_make - the text of n bytes for who
 *
 *	domain	keeps this use of the key apart from any other
 *	out	(n + SIGNED_MAC_LEN) / 3 * 4 characters and a NUL; n and the MAC
 *		together are a multiple of three, so that a text has no padding
 *		and one spelling
 */
void signed_text_make(const struct text_signer *s, const char *domain,
    const uint8_t *payload, size_t n, const struct principal *who, char *out);
/* signed_text_read - the payload's length; 0: it is none that we made for who.
 * out has room for max bytes, payload and MAC, a multiple of three */
size_t signed_text_read(const struct text_signer *s, const char *domain,
    const char *text, const struct principal *who, uint8_t *out, size_t max);

/* Numbers in payloads: n bytes, most significant first. */
void signed_put(uint8_t *p, size_t n, uint64_t v);
uint64_t signed_get(const uint8_t *p, size_t n);

#endif
