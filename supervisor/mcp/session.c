/*
 * session.c - session ids that carry their session
 *
 *	form 1 | revision 4 | time 5 | random 18 | said | HMAC-SHA256 32
 *
 * bytes, as base64url.  What the client said is nothing in form 1; in form 2
 * the length of its name in a byte, the name, and zeros until the whole is a
 * multiple of three, so that it has one spelling only; in form 3 the same
 * behind a byte that says what the client can, and the name may be empty.
 *
 * Nothing is kept for a session that lives.  Those that were ended early are
 * remembered, oldest first out, until they would have expired.
 */
#include "supervisor/mcp/session.h"

#include <stdio.h>
#include <sys/queue.h>

#include <openssl/evp.h>
#include <openssl/rand.h>

#include "common/err.h"
#include "common/exit.h"
#include "common/hashmap.h"
#include "common/hex.h"
#include "common/log.h"
#include "common/xmalloc.h"
#include "supervisor/mcp/signed_text.h"

#define FORM_BARE 1
#define FORM_CLIENT 2
#define FORM_CAN 3
#define BARE_LEN 28 /* form 1, revision 4, time 5, random 18 */
#define TOKEN_MAX (SESSION_TEXT_MAX / 4 * 3)
#define AT_REVISION 1
#define AT_TIME 5
#define AT_ID 10
#define AT_SAID BARE_LEN

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
	struct text_signer *signer;
	uint32_t ttl_s;
	struct ended_order order;
	struct hashmap by_id;
};

struct session_keeper *
session_keeper_new(const uint8_t *key, size_t key_len, uint32_t ttl_s)
{
	struct session_keeper *k = xcalloc(1, sizeof(*k));

	k->ttl_s = ttl_s;
	TAILQ_INIT(&k->order);
	k->signer = text_signer_new(key, key_len);
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
	text_signer_free(k->signer);
	free(k);
}

const struct text_signer *
session_signer(const struct session_keeper *k)
{
	return k->signer;
}

/* Where the length of the client's name stands. */
static size_t
name_at(uint8_t form)
{
	return form == FORM_CAN ? AT_SAID + 1 : AT_SAID;
}

/* Of a payload, by its form and the length of the name in it; 0: none is so. */
static size_t
payload_len(uint8_t form, size_t name)
{
	if (form == FORM_BARE)
		return BARE_LEN;
	if ((form != FORM_CLIENT && form != FORM_CAN) ||
	    (form == FORM_CLIENT && name == 0) || name > CALL_CLIENT_MAX)
		return 0;
	return (name_at(form) + 1 + name + SIGNED_MAC_LEN + 2) / 3 * 3 -
	    SIGNED_MAC_LEN;
}

void
session_issue(struct session_keeper *k, const struct era_revision *rev,
    const struct principal *who, const struct session_said *said, int64_t now_s,
    char out[SESSION_TEXT_MAX + 1])
{
	size_t name = strnlen(said->client, CALL_CLIENT_MAX);
	uint8_t form = said->client_can != 0 ? FORM_CAN :
	    name == 0                        ? FORM_BARE :
					       FORM_CLIENT;
	uint8_t token[TOKEN_MAX] = {0};

	token[0] = form;
	signed_put(token + AT_REVISION, 4, rev->number);
	signed_put(token + AT_TIME, 5, (uint64_t)now_s);
	if (RAND_bytes(token + AT_ID, SESSION_ID_LEN) != 1)
		fatal(EXIT_BUG, "no random bytes for a session id");
	if (form == FORM_CAN)
		token[AT_SAID] = (uint8_t)said->client_can;
	if (form != FORM_BARE) {
		token[name_at(form)] = (uint8_t)name;
		memcpy(token + name_at(form) + 1, said->client, name);
	}
	signed_text_make(
	    k->signer, domain, token, payload_len(form, name), who, out);
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
	uint8_t token[TOKEN_MAX] = {0};
	size_t n = signed_text_read(
	    k->signer, domain, text, who, token, sizeof(token));
	struct session s = {0};

	if (n < BARE_LEN ||
	    payload_len(token[0], token[name_at(token[0])]) != n)
		return ERR_NOTFOUND;
	/* From here on it is what we once wrote. */
	memcpy(s.id, token + AT_ID, SESSION_ID_LEN);
	if (token[0] != FORM_BARE)
		memcpy(s.client, token + name_at(token[0]) + 1,
		    token[name_at(token[0])]);
	if (token[0] == FORM_CAN)
		s.client_can = token[AT_SAID];
	s.issued_s = (int64_t)signed_get(token + AT_TIME, 5);
	s.rev = era_find_number((uint32_t)signed_get(token + AT_REVISION, 4));
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

bool
session_has_ended(const struct session_keeper *k, const struct session *s)
{
	return is_ended(k, s->id);
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

void
session_of_request(struct session *out, const struct era_revision *rev,
    const char *client, unsigned int client_can)
{
	static uint64_t last;

	*out = (struct session){.rev = rev, .client_can = client_can};
	last++;
	memcpy(out->id, &last, sizeof(last));
	(void)snprintf(out->client, sizeof(out->client), "%s", client);
}
