/*
 * issuer.h - the authorization server's keys: where they are, and again
 *
 *	asked --> metadata (unless OAUTH_JWKS_URL) --> keys --> told
 *	   |                                            next in
 *ISSUER_REFRESH_MS
 *	   \--> told why not; again after ISSUER_AGAIN_MS, twice as long each
 *	        time, up to ISSUER_REFRESH_MS
 *
 * The metadata is where RFC 8414 and OpenID Connect put it, and is the
 * issuer's only if it says so itself.
 */
#ifndef KEYS_ISSUER_H
#define KEYS_ISSUER_H

#include "common/base.h"
#include "common/buf.h"
#include "common/conf.h"
#include "common/err.h"

#define ISSUER_REFRESH_MS 300000
#define ISSUER_AGAIN_MS 1000
#define ISSUER_WANTED_MS 5000 /* between two that were wanted */

struct event_base;
struct issuer;

struct issuer_ops {
	void (*on_keys)(const struct buf *jwks, void *arg);
	void (*on_failed)(const struct err *why, void *arg);
};

/* issuer_new - asks at once; conf is copied from, ops kept */
struct issuer *issuer_new(struct event_base *base, const struct conf *conf,
    const struct issuer_ops *ops, void *arg);
void issuer_free(struct issuer *i);
/* issuer_want - ask now, or as soon as ISSUER_WANTED_MS have passed since the
 * last time */
void issuer_want(struct issuer *i);

#endif
