#include "supervisor/core/seal.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/rand.h>

#include "common/exit.h"
#include "common/hex.h"
#include "common/log.h"
#include "common/xmalloc.h"

#define ID_BYTES 8
#define NONCE_BYTES 12
#define TAG_BYTES 16
#define HEAD_BYTES (ID_BYTES + NONCE_BYTES)
#define BOUND_MAX 512 /* bytes of what it is for */
#define HEAP_BYTES 16384
#define HEAP_LEAST 64

struct seal_keys {
	struct seal_key {
		uint8_t id[ID_BYTES];
		uint8_t key[SEAL_KEY_BYTES];
	} keys[SEAL_KEYS_MAX];
	size_t n;
};

void
seal_init(void)
{
	/* 2: it could not be locked, the rest holds. */
	if (CRYPTO_secure_malloc_init(HEAP_BYTES, HEAP_LEAST) != 1)
		log_debug("keys are in memory that is not locked");
}

/* ---- keys */

static void
add_key(struct seal_keys *k, const uint8_t key[SEAL_KEY_BYTES])
{
	struct seal_key *to = &k->keys[k->n++];
	uint8_t digest[EVP_MAX_MD_SIZE];

	memcpy(to->key, key, sizeof(to->key));
	if (EVP_Digest(key, SEAL_KEY_BYTES, digest, NULL, EVP_sha256(), NULL) !=
	    1)
		fatal(EXIT_BUG, "no SHA-256");
	memcpy(to->id, digest, sizeof(to->id));
}

static int
parse_line(
    struct seal_keys *k, const char *p, size_t n, size_t line, struct err *e)
{
	char text[HEX_BYTES(SEAL_KEY_BYTES)] = "";
	uint8_t key[SEAL_KEY_BYTES];
	bool is_key;

	if (n > 0 && p[n - 1] == '\r')
		n--;
	if (n == 0 || p[0] == '#')
		return 0;
	if (n == sizeof(text) - 1)
		memcpy(text, p, n);
	is_key = hex_decode(text, key, sizeof(key)) == 0;
	OPENSSL_cleanse(text, sizeof(text));
	if (is_key && k->n < SEAL_KEYS_MAX)
		add_key(k, key);
	OPENSSL_cleanse(key, sizeof(key));
	if (!is_key)
		return err_set(e, ERR_PARSE,
		    "line %zu is no key: want 64 hex digits", line);
	return 0;
}

int
seal_keys_parse(
    const char *text, size_t n, struct seal_keys **out, struct err *e)
{
	struct seal_keys *k = OPENSSL_secure_zalloc(sizeof(*k));
	const char *p = text, *end = text + n;
	int rc = 0;

	if (k == NULL)
		fatal(EXIT_MEMORY, "out of memory");
	for (size_t line = 1; rc == 0 && p < end; line++) {
		const char *nl = memchr(p, '\n', (size_t)(end - p));
		size_t len = (size_t)((nl == NULL ? end : nl) - p);

		rc = parse_line(k, p, len, line, e);
		p += len + 1;
	}
	if (rc == 0 && k->n == 0)
		rc = err_set(e, ERR_PARSE, "there is no key in it");
	if (rc != 0) {
		seal_keys_free(k);
		return rc;
	}
	*out = k;
	return 0;
}

void
seal_keys_free(struct seal_keys *k)
{
	OPENSSL_secure_clear_free(k, sizeof(*k));
}

bool
seal_keys_have_older(const struct seal_keys *k)
{
	return k->n > 1;
}

static const struct seal_key *
key_of(const struct seal_keys *k, const uint8_t *sealed, size_t n)
{
	for (size_t i = 0; k != NULL && n > SEAL_EXTRA_BYTES && i < k->n; i++)
		if (memcmp(k->keys[i].id, sealed, ID_BYTES) == 0)
			return &k->keys[i];
	return NULL;
}

enum seal_state
seal_state_of(const struct seal_keys *k, const uint8_t *sealed, size_t n)
{
	const struct seal_key *key = key_of(k, sealed, n);

	if (key == NULL)
		return SEAL_UNKNOWN;
	return key == &k->keys[0] ? SEAL_CURRENT : SEAL_OLD;
}

/* ---- the cipher */

/* What it is bound to: the key's id, the tenant's number, the name. */
static int
bind_to(EVP_CIPHER_CTX *ctx, const uint8_t id[ID_BYTES],
    const struct seal_for *what)
{
	uint8_t mem[BOUND_MAX];
	size_t n = strlen(what->name);
	int done;

	if (n > sizeof(mem) - ID_BYTES - 8)
		fatal(EXIT_BUG, "sealed under a name of %zu bytes", n);
	memcpy(mem, id, ID_BYTES);
	for (size_t i = 0; i < 8; i++)
		mem[ID_BYTES + i] = (uint8_t)(what->tenant >> (56 - 8 * i));
	memcpy(mem + ID_BYTES + 8, what->name, n);
	return EVP_CipherUpdate(ctx, NULL, &done, mem, (int)(ID_BYTES + 8 + n));
}

static EVP_CIPHER_CTX *
new_cipher(const struct seal_key *key, const uint8_t *nonce, int encrypts,
    const struct seal_for *what)
{
	EVP_CIPHER_CTX *ctx = EVP_CIPHER_CTX_new();

	if (ctx == NULL ||
	    EVP_CipherInit_ex2(
		ctx, EVP_aes_256_gcm(), key->key, nonce, encrypts, NULL) != 1 ||
	    bind_to(ctx, key->id, what) != 1)
		fatal(EXIT_BUG, "no AES-256-GCM");
	return ctx;
}

void
seal_close(const struct seal_keys *k, const struct seal_for *what,
    const void *plain, size_t n, uint8_t *out)
{
	const struct seal_key *key = &k->keys[0];
	uint8_t *nonce = out + ID_BYTES, *body = out + HEAD_BYTES;
	EVP_CIPHER_CTX *ctx;
	int done, rest;

	memcpy(out, key->id, ID_BYTES);
	if (RAND_bytes(nonce, NONCE_BYTES) != 1)
		fatal(EXIT_BUG, "no random bytes");
	ctx = new_cipher(key, nonce, 1, what);
	if (EVP_CipherUpdate(ctx, body, &done, plain, (int)n) != 1 ||
	    EVP_CipherFinal_ex(ctx, body + done, &rest) != 1 ||
	    EVP_CIPHER_CTX_ctrl(
		ctx, EVP_CTRL_AEAD_GET_TAG, TAG_BYTES, body + n) != 1)
		fatal(EXIT_BUG, "AES-256-GCM failed");
	EVP_CIPHER_CTX_free(ctx);
}

int
seal_open(const struct seal_keys *k, const struct seal_for *what,
    const uint8_t *sealed, size_t n, void *out, struct err *e)
{
	const struct seal_key *key = key_of(k, sealed, n);
	uint8_t tag[TAG_BYTES];
	EVP_CIPHER_CTX *ctx;
	int done, rest, good;
	size_t len;

	if (key == NULL)
		return err_set(e, ERR_NO_SECRET_KEY,
		    "secret %s is sealed with a key that SECRETS_KEY_FILE "
		    "does not have: put that key back, or set the secret anew",
		    what->name);
	len = n - SEAL_EXTRA_BYTES;
	memcpy(tag, sealed + n - TAG_BYTES, TAG_BYTES);
	ctx = new_cipher(key, sealed + ID_BYTES, 0, what);
	good = EVP_CipherUpdate(
		   ctx, out, &done, sealed + HEAD_BYTES, (int)len) == 1 &&
	    EVP_CIPHER_CTX_ctrl(ctx, EVP_CTRL_AEAD_SET_TAG, TAG_BYTES, tag) ==
		1 &&
	    EVP_CipherFinal_ex(ctx, (uint8_t *)out + done, &rest) == 1;
	EVP_CIPHER_CTX_free(ctx);
	if (good)
		return 0;
	OPENSSL_cleanse(out, len);
	return err_set(e, ERR_NO_SECRET_KEY,
	    "secret %s was changed in the database: set it anew", what->name);
}

/* ---- when may an older key go */

enum rekeying_verdict
rekeying_verdict_of(const struct rekeying *k)
{
	if (!k->is_asked || k->waiting > 0)
		return REKEYING_GOES_ON;
	if (k->left > 0)
		return REKEYING_LEFT;
	return k->has_older ? REKEYING_DONE : REKEYING_IDLE;
}

static void
say(const struct rekeying *k)
{
	switch (rekeying_verdict_of(k)) {
	case REKEYING_GOES_ON:
	case REKEYING_IDLE:
		return;
	case REKEYING_DONE:
		log_info("%zu secrets are sealed anew with the first key of "
			 "SECRETS_KEY_FILE, and none is left with another: the "
			 "older keys can go",
		    k->anew);
		return;
	case REKEYING_LEFT:
		log_warn("%zu secrets are not sealed with the first key of "
			 "SECRETS_KEY_FILE: keep the older keys; the log says "
			 "why, for each or how many; mend that, or set these "
			 "secrets anew or delete them, and start again",
		    k->left);
		return;
	}
}

void
rekeying_begin(struct rekeying *k)
{
	k->waiting++;
}

void
seal_stored_cb(int rc, const struct err *why, void *arg)
{
	struct rekeying *k = arg;

	k->waiting--;
	if (rc == 0) {
		k->anew++;
	} else {
		k->left++;
		log_warn("a secret is not on disk as it was sealed anew: %s",
		    why->msg);
	}
	say(k);
}

void
rekeying_leave(struct rekeying *k)
{
	k->left++;
}

void
rekeying_asked(struct rekeying *k, bool has_older)
{
	k->is_asked = true;
	k->has_older = has_older;
	say(k);
}
