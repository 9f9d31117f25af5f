/*
 * seal.h - bytes that nobody can read or exchange without a key
 *
 * AES-256-GCM with a random nonce.  What is sealed is bound to what it is for:
 * a tenant's number and a name, which must be the same when it is opened.
 *
 *	key's id (8) | nonce (12) | ciphertext | tag (16)
 *
 * A key's id is the beginning of its SHA-256.  The first key seals, all open.
 * Keys are in OpenSSL's secure heap where seal_init could make one: locked,
 * in no core file, overwritten when freed.
 */
#ifndef CORE_SEAL_H
#define CORE_SEAL_H

#include "common/base.h"
#include "common/err.h"

#define SEAL_KEY_BYTES 32
#define SEAL_KEYS_MAX 8
#define SEAL_EXTRA_BYTES (8 + 12 + 16)

struct seal_keys;

struct seal_for {
	uint64_t tenant;
	const char *name;
};

/* seal_init - once, before there are threads */
void seal_init(void);
/* seal_keys_parse - lines of 64 hex digits; empty ones, and those that begin
 * with "#", are none.  ERR_PARSE names the line */
int seal_keys_parse(const char *text, size_t n, struct seal_keys **out,
    struct err *e) MUSTCHECK;
void seal_keys_free(struct seal_keys *k); /* NULL is fine */
/* seal_keys_have_older - there are some behind the first */
bool seal_keys_have_older(const struct seal_keys *k);

/* seal_close - out has room for n + SEAL_EXTRA_BYTES */
void seal_close(const struct seal_keys *k, const struct seal_for *what,
    const void *plain, size_t n, uint8_t *out);
/* seal_open - of n bytes; out has room for n - SEAL_EXTRA_BYTES.
 * ERR_NO_SECRET_KEY: none of these keys, k is NULL, or it was changed, or is
 * of another tenant or name; out is all zeros then */
int seal_open(const struct seal_keys *k, const struct seal_for *what,
    const uint8_t *sealed, size_t n, void *out, struct err *e) MUSTCHECK;
enum seal_state {
	SEAL_CURRENT, /* by the first key */
	SEAL_OLD,     /* by another that is here */
	SEAL_UNKNOWN
};
enum seal_state seal_state_of(
    const struct seal_keys *k, const uint8_t *sealed, size_t n);

/*
 * What an older key sealed is sealed anew by the first: when may the older key
 * go?
 *
 * Tenants' secrets and webhooks' are counted together, for one key seals both.
 * The log says that the older keys can go when all that is sealed is sealed
 * with the first one, on disk; else how many are not, and that the older keys
 * must stay.  Whoever reads that the keys can go removes them.
 */
struct rekeying {       /* zeroed at first; outlives the store's writes */
	size_t waiting; /* sealed anew, not on disk yet */
	size_t anew;    /* sealed anew, on disk */
	size_t left;    /* not with the first key on disk */
	bool has_older; /* the file has more keys than the first */
	bool is_asked;  /* all secrets were looked at */
};

enum rekeying_verdict {
	REKEYING_GOES_ON,
	REKEYING_IDLE, /* no older key, and nothing that wants one */
	REKEYING_DONE, /* the older keys can go */
	REKEYING_LEFT  /* the older keys must stay */
};

/* rekeying_begin - one is sealed anew, and its row given to the store with
 * seal_stored_cb and k */
void rekeying_begin(struct rekeying *k);
void seal_stored_cb(int rc, const struct err *why, void *arg);
/* rekeying_leave - one cannot be sealed anew; who calls has said why */
void rekeying_leave(struct rekeying *k);
/* rekeying_asked - all were looked at: the log says how it went, now or with
 * the last write
 *	has_older	there are keys behind the first */
void rekeying_asked(struct rekeying *k, bool has_older);
enum rekeying_verdict rekeying_verdict_of(const struct rekeying *k);

#endif
