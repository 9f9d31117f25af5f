/*
 * session.c - session ids that carry their session
 *
 *	form 1 | revision 4 | time 5 | random 18 | client | HMAC-SHA256 32
 *
 * bytes, as base64url.  Of form 1 there is no client; of form 2 it is its
 * length in a byte, its text, and zeros until the whole is a multiple of three,
 * so that it has one spelling only.
 *
 * Nothing is kept for a session that lives.  Those that were ended early are
 * remembered, oldest first out, until they would have expired.
 */
#include "supervisor/mcp/session.h"

#include <sys/queue.h>

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <openssl/rand.h>

#include "common/err.h"
#include "common/exit.h"
#include "common/hashmap.h"
#include "common/hex.h"
#include "common/log.h"
#include "common/xmalloc.h"

#define FORM_BARE 1
#define FORM_CLIENT 2
#define MAC_LEN 32
#define BARE_LEN 28 /* form 1, revision 4, time 5, random 18 */
#define TOKEN_MIN (BARE_LEN + MAC_LEN)
#define TOKEN_MAX (SESSION_TEXT_MAX / 4 * 3)
#define AT_REVISION 1
#define AT_TIME 5
#define AT_ID 10
#define AT_CLIENT (BARE_LEN + 1)

/* Keeps this use of the key apart from any other. */
static const char domain[] = "mcp session 1";

struct ended {
	TAILQ_ENTRY(ended) order; /* by the time they ended */
	struct hash_entry by_id;
	int64_t expires_s;
	uint8_t id[SESSION_ID_LEN];
};
TAILQ_HEAD(ended_order, ended);

struct session_keeper {
	EVP_MAC *mac;
	EVP_MAC_CTX *keyed; /* begun anew for each use */
	uint32_t ttl_s;
	struct ended_order order;
	struct hashmap by_id;
};

static void
put_be(uint8_t *p, size_t n, uint64_t v)
{
	while (n-- > 0) {
		p[n] = (uint8_t)(v & 0xff);
		v >>= 8;
	}
}

static uint64_t
get_be(const uint8_t *p, size_t n)
{
	uint64_t v = 0;

	for (size_t i = 0; i < n; i++)
		v = v << 8 | p[i];
	return v;
}

struct session_keeper *
session_keeper_new(const uint8_t *key, size_t key_len, uint32_t ttl_s)
{
	struct session_keeper *k = xcalloc(1, sizeof(*k));
	char digest[] = "SHA256";
	OSSL_PARAM params[] = {
	    OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
	    OSSL_PARAM_construct_end()};

	if (key_len < MAC_LEN)
		fatal(
		    70, "session key of %zu bytes, want %d", key_len, MAC_LEN);
	k->ttl_s = ttl_s;
	TAILQ_INIT(&k->order);
	k->mac = EVP_MAC_fetch(NULL, "HMAC", NULL);
	k->keyed = k->mac == NULL ? NULL : EVP_MAC_CTX_new(k->mac);
	if (k->keyed == NULL ||
	    EVP_MAC_init(k->keyed, key, key_len, params) != 1)
		fatal(EXIT_BUG, "OpenSSL has no HMAC-SHA256");
	return k;
}

void
session_keeper_free(struct session_keeper *k)
{
	struct ended *s;

	if (k == NULL)
		return;
	while ((s = TAILQ_FIRST(&k->order)) != NULL) {
		TAILQ_REMOVE(&k->order, s, order);
		free(s);
	}
	hashmap_clear(&k->by_id);
	EVP_MAC_CTX_free(k->keyed);
	EVP_MAC_free(k->mac);
	free(k);
}

static void
mac(const struct session_keeper *k, const uint8_t *payload, size_t n,
    const struct principal *who, uint8_t out[MAC_LEN])
{
	EVP_MAC_CTX *ctx = k->keyed;
	size_t len = 0;

	/* The payload says its length by what is at its beginning, and the
	 * tenant's name goes in with its end, so that no two principals read
	 * alike. */
	if (EVP_MAC_init(ctx, NULL, 0, NULL) != 1 ||
	    EVP_MAC_update(
		ctx, (const unsigned char *)domain, sizeof(domain)) != 1 ||
	    EVP_MAC_update(ctx, payload, n) != 1 ||
	    EVP_MAC_update(ctx, (const unsigned char *)who->tenant_name,
		strlen(who->tenant_name) + 1) != 1 ||
	    EVP_MAC_update(ctx, (const unsigned char *)who->subject,
		strlen(who->subject)) != 1 ||
	    EVP_MAC_final(ctx, out, &len, MAC_LEN) != 1 || len != MAC_LEN)
		fatal(EXIT_BUG, "HMAC-SHA256 failed");
}

/* Of a payload; 0: there is none of that form. */
static size_t
payload_len(uint8_t form, size_t client)
{
	if (form == FORM_BARE)
		return BARE_LEN;
	if (form != FORM_CLIENT || client == 0 || client > CALL_CLIENT_MAX)
		return 0;
	return (AT_CLIENT + client + MAC_LEN + 2) / 3 * 3 - MAC_LEN;
}

void
session_issue(struct session_keeper *k, const struct era_revision *rev,
    const struct principal *who, const char *client, int64_t now_s,
    char out[SESSION_TEXT_MAX + 1])
{
	size_t nclient = strnlen(client, CALL_CLIENT_MAX);
	uint8_t form = nclient == 0 ? FORM_BARE : FORM_CLIENT;
	size_t n = payload_len(form, nclient);
	uint8_t token[TOKEN_MAX] = {0};

	token[0] = form;
	put_be(token + AT_REVISION, 4, rev->number);
	put_be(token + AT_TIME, 5, (uint64_t)now_s);
	if (RAND_bytes(token + AT_ID, SESSION_ID_LEN) != 1)
		fatal(EXIT_BUG, "no random bytes for a session id");
	if (nclient > 0) {
		token[BARE_LEN] = (uint8_t)nclient;
		memcpy(token + AT_CLIENT, client, nclient);
	}
	mac(k, token, n, who, token + n);
	/* A multiple of three: no padding, one spelling only. */
	(void)EVP_EncodeBlock((unsigned char *)out, token, (int)(n + MAC_LEN));
	for (char *p = out; *p != '\0'; p++)
		*p = (char)(*p == '+' ? '-' : *p == '/' ? '_' : *p);
}

/* The token's length, or 0: it is none. */
static size_t
decode(const char *text, uint8_t token[TOKEN_MAX])
{
	static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
				       "abcdefghijklmnopqrstuvwxyz"
				       "0123456789-_";
	unsigned char plain[SESSION_TEXT_MAX];
	size_t len = strnlen(text, SESSION_TEXT_MAX + 1);

	if (len > SESSION_TEXT_MAX || len % 4 != 0 || len / 4 * 3 < TOKEN_MIN ||
	    strspn(text, alphabet) != len)
		return 0;
	for (size_t i = 0; i < len; i++)
		plain[i] = (unsigned char)(text[i] == '-' ? '+' :
			text[i] == '_'                    ? '/' :
							    text[i]);
	if (EVP_DecodeBlock(token, plain, (int)len) != (int)(len / 4 * 3) ||
	    payload_len(token[0], token[BARE_LEN]) + MAC_LEN != len / 4 * 3)
		return 0;
	return len / 4 * 3;
}

static bool
is_id(const struct hash_entry *en, const void *key)
{
	const struct ended *s = HASH_OF(en, const struct ended, by_id);

	return memcmp(s->id, key, SESSION_ID_LEN) == 0;
}

static uint64_t
hash_of(const uint8_t *id)
{
	return hashmap_key_bytes(id, SESSION_ID_LEN);
}

static bool
is_ended(const struct session_keeper *k, const uint8_t *id)
{
	return hashmap_get(&k->by_id, hash_of(id), is_id, id) != NULL;
}

static void
session_name(const struct session *s, char out[SESSION_NAME_LEN + 1])
{
	uint8_t digest[32];

	static EVP_MD *sha256; /* to look for it costs as much as to use it */

	if (sha256 == NULL)
		sha256 = EVP_MD_fetch(NULL, "SHA256", NULL);
	if (sha256 == NULL ||
	    EVP_Digest(s->id, sizeof(s->id), digest, NULL, sha256, NULL) != 1)
		fatal(EXIT_BUG, "SHA-256 failed");
	hex_encode(digest, SESSION_NAME_LEN / 2, out);
}

int
session_open(struct session_keeper *k, const char *text,
    const struct principal *who, int64_t now_s, struct session *out)
{
	uint8_t token[TOKEN_MAX], want[MAC_LEN];
	size_t n = decode(text, token);
	struct session s = {0};

	if (n == 0)
		return ERR_NOTFOUND;
	n -= MAC_LEN;
	mac(k, token, n, who, want);
	if (CRYPTO_memcmp(want, token + n, MAC_LEN) != 0)
		return ERR_NOTFOUND;
	/* From here on it is what we once wrote. */
	memcpy(s.id, token + AT_ID, SESSION_ID_LEN);
	if (token[0] == FORM_CLIENT)
		memcpy(s.client, token + AT_CLIENT, token[BARE_LEN]);
	s.issued_s = (int64_t)get_be(token + AT_TIME, 5);
	s.rev = era_find_number((uint32_t)get_be(token + AT_REVISION, 4));
	if (s.rev == NULL || now_s - s.issued_s > (int64_t)k->ttl_s ||
	    is_ended(k, s.id))
		return ERR_NOTFOUND;
	session_name(&s, s.name);
	*out = s;
	return 0;
}

static void
forget_first(struct session_keeper *k)
{
	struct ended *s = TAILQ_FIRST(&k->order);

	TAILQ_REMOVE(&k->order, s, order);
	hashmap_del(&k->by_id, &s->by_id);
	free(s);
}

void
session_end(struct session_keeper *k, const struct session *s, int64_t now_s)
{
	struct ended *done;

	if (is_ended(k, s->id))
		return;
	while ((done = TAILQ_FIRST(&k->order)) != NULL &&
	    (done->expires_s < now_s || k->by_id.count >= SESSION_ENDED_MAX))
		forget_first(k);
	done = xcalloc(1, sizeof(*done));
	memcpy(done->id, s->id, SESSION_ID_LEN);
	done->expires_s = s->issued_s + (int64_t)k->ttl_s;
	TAILQ_INSERT_TAIL(&k->order, done, order);
	hashmap_put(&k->by_id, &done->by_id, hash_of(done->id));
}
