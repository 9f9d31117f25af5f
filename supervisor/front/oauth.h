/*
 * oauth.h - this server as an OAuth 2.1 resource server
 *
 * Beside its own tokens it takes JWTs of one authorization server
 * (OAUTH_ISSUER).  What a token says becomes a principal: its scopes roles, a
 * claim its tenant, its subject the name.  Tokens of one subject, tenant and
 * role share the principal, so that a client that renewed its token goes on
 * with its session.
 *
 * Keys come from mcp-sandboxd-keys (supervisor/keys), and are kept while the
 * issuer is away.  A token that names a key which is not there makes that ask
 * again, not more often than each OAUTH_WANT_MS, and its request may wait for
 * the answer.
 */
#ifndef FRONT_OAUTH_H
#define FRONT_OAUTH_H

#include <sys/queue.h>

#include "common/conf.h"
#include "supervisor/core/acts.h"
#include "supervisor/core/tenants.h"
#include "supervisor/front/claims.h"

#define OAUTH_WELL_KNOWN "/.well-known/oauth-protected-resource"
#define OAUTH_WANT_MS 5000
#define OAUTH_WAIT_MS 8000
#define OAUTH_WAITING_MAX 64
#define OAUTH_SUBJECTS_MAX 10000 /* whose streams end when their tokens do */

struct event_base;
struct oauth;

struct oauth_parts {
	struct event_base *base;
	const struct conf *conf; /* kept, as all of these */
	struct tenants *tenants;
	struct acts *acts;
	/* He may not go on: his tokens have expired, his tenant is disabled. */
	void (*on_ended)(const struct principal *who, void *arg);
	void *arg;
};

/* oauth_new - NULL where there is no OAUTH_ISSUER */
struct oauth *oauth_new(const struct oauth_parts *parts);
void oauth_free(struct oauth *o); /* NULL is fine */
/* oauth_attach - the channel to mcp-sandboxd-keys, ours; a newer one replaces
 * it.  Tests give keys by oauth_set_keys */
void oauth_attach(struct oauth *o, int fd);
void oauth_set_keys(struct oauth *o, const void *jwks, size_t n);
void oauth_tick(struct oauth *o); /* once a second */

/* ---- a request's token */

/* oauth_find - its claims, if it was verified before; or NULL */
const struct claims *oauth_find(const struct oauth *o, const char *token);
/* oauth_verify - its claims; or NULL and *why, a text that stays.  *later: its
 * key, or any, may be there soon (oauth_wait) */
const struct claims *oauth_verify(
    struct oauth *o, const char *token, const char **why, bool *later);

enum oauth_answer {
	OAUTH_KNOWN,
	OAUTH_NO_SCOPE,
	OAUTH_NO_TENANT, /* it names none, or none that is there */
	OAUTH_DISABLED
};
/* oauth_know - as whom its bearer does what is for one of these roles (1 <<
 * enum principal_role); *out is ours.  origin and request_id: for the audit */
enum oauth_answer oauth_know(struct oauth *o, const struct claims *c,
    unsigned int roles, const struct act *origin, struct principal **out);

/* A request that waits for keys; part of what its owner keeps. */
struct oauth_wait {
	TAILQ_ENTRY(oauth_wait) link;
	void (*go_on)(
	    struct oauth_wait *w); /* they are there, or do not come */
};
/* oauth_wait - false: too many do, or it was asked for them just now */
bool oauth_wait(struct oauth *o, struct oauth_wait *w);
void oauth_wait_cancel(struct oauth *o, struct oauth_wait *w);

/* ---- what others are told */

/* oauth_subject - the subject in full of a principal of ours, and until when
 * its tokens are good; NULL: it is none of ours */
const char *oauth_subject(
    const struct oauth *o, const struct principal *who, int64_t *until_ms);
/* oauth_metadata_url - of the protected resource's metadata, RFC 9728 */
const char *oauth_metadata_url(const struct oauth *o);
const char *oauth_resource(const struct oauth *o);
bool oauth_has_keys(const struct oauth *o);

#endif
