/*
 * rekeying.h - secrets that an older key sealed are sealed anew by the first:
 * when may the older key go?
 *
 * Tenants' secrets and webhooks' are counted together, for one key seals both.
 * The log says that the older keys can go when all that is sealed is sealed
 * with the first one, on disk; else how many are not, and that the older keys
 * must stay.  Whoever reads that the keys can go removes them.
 */
#ifndef CORE_REKEYING_H
#define CORE_REKEYING_H

#include "common/base.h"

struct err;

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
 * rekeying_stored_cb and k */
void rekeying_begin(struct rekeying *k);
void rekeying_stored_cb(int rc, const struct err *why, void *arg);
/* rekeying_leave - one cannot be sealed anew; who calls has said why */
void rekeying_leave(struct rekeying *k);
/* rekeying_asked - all were looked at: the log says how it went, now or with
 * the last write
 *	has_older	there are keys behind the first */
void rekeying_asked(struct rekeying *k, bool has_older);
enum rekeying_verdict rekeying_verdict_of(const struct rekeying *k);

#endif
