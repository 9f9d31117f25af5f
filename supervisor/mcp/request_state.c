/*
 * request_state.c - requestState, made and read
 *
 *	form 1 | length 2 | expires 5 | SHA-256 of the request 32 | text | zeros
 *
 * bytes in a signed text.  The zeros make the whole a multiple of three.
 */
#include "supervisor/mcp/request_state.h"

#include <stdio.h>

#include <openssl/evp.h>

#include "common/err.h"
#include "common/exit.h"
#include "common/log.h"
#include "common/xmalloc.h"
#include "supervisor/mcp/offer.h"

#define FORM 1
#define DIGEST_LEN 32
#define AT_LENGTH 1
#define AT_EXPIRES 3
#define AT_DIGEST 8
#define AT_TEXT (AT_DIGEST + DIGEST_LEN)
#define TOKEN_MAX ((AT_TEXT + MCP_STATE_MAX + SIGNED_MAC_LEN + 2) / 3 * 3)

/* Keeps this use of the key apart from any other. */
static const char domain[] = "mcp request state 1";

static size_t
payload_len(size_t text)
{
	return (AT_TEXT + text + SIGNED_MAC_LEN + 2) / 3 * 3 - SIGNED_MAC_LEN;
}

/* The order of members, and how a client spells the text of one, are no part of
 * it.  JSON has no line break in it, so no two requests read alike. */
static void
digest_of(const struct request_bound *bound, uint8_t out[DIGEST_LEN])
{
	AUTO(auto_free)
	char *input = bound->input == NULL ?
	    NULL :
	    json_dumps(
		bound->input, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY);
	AUTO(auto_free)
	char *all = xasprintf("%s\n%s\n%s", bound->method, bound->name,
	    input == NULL ? "" : input);

	if (EVP_Digest(all, strlen(all), out, NULL, EVP_sha256(), NULL) != 1)
		fatal(EXIT_BUG, "SHA-256 failed");
}

char *
request_state_make(const struct text_signer *s,
    const struct request_bound *bound, const char *text, int64_t now_s)
{
	size_t len = strnlen(text, MCP_STATE_MAX + 1), n = payload_len(len);
	uint8_t payload[TOKEN_MAX] = {FORM};
	char *out;

	if (len > MCP_STATE_MAX)
		fatal(EXIT_BUG, "a request state of %zu bytes", strlen(text));
	signed_put(payload + AT_LENGTH, 2, len);
	signed_put(
	    payload + AT_EXPIRES, 5, (uint64_t)(now_s + REQUEST_STATE_TTL_S));
	digest_of(bound, payload + AT_DIGEST);
	memcpy(payload + AT_TEXT, text, len);
	out = xcalloc(1, (n + SIGNED_MAC_LEN) / 3 * 4 + 1);
	signed_text_make(s, domain, payload, n, bound->who, out);
	return out;
}

int
request_state_read(const struct text_signer *s,
    const struct request_bound *bound, const char *state, int64_t now_s,
    char **text)
{
	uint8_t payload[TOKEN_MAX], want[DIGEST_LEN];
	size_t n = signed_text_read(
	    s, domain, state, bound->who, payload, sizeof(payload));
	size_t len;

	if (n < AT_TEXT || payload[0] != FORM)
		return ERR_NOTFOUND;
	len = (size_t)signed_get(payload + AT_LENGTH, 2);
	digest_of(bound, want);
	if (payload_len(len) != n ||
	    (int64_t)signed_get(payload + AT_EXPIRES, 5) < now_s ||
	    memcmp(want, payload + AT_DIGEST, DIGEST_LEN) != 0)
		return ERR_NOTFOUND;
	*text = xstrndup((const char *)payload + AT_TEXT, len);
	return 0;
}
