/*
 * oauth.c - keys, tokens that they verify, and whom those are of
 *
 *	token --- verified before? (verified_find)
 *	   |          form, algorithm (jwt.c) -> key (jwt.c) -> signature
 *	   |          -> claims (claims.c) -> verified from now on
 *	   \-> claims -> tenant (tenants.h, each time) -> subject -> principal
 */
#include "supervisor/front/oauth.h"

#include <stdio.h>

#include <openssl/evp.h>

#include "common/clock.h"
#include "common/exit.h"
#include "common/hashmap.h"
#include "common/hex.h"
#include "common/log.h"
#include "common/msg/chan.h"
#include "common/msg/msg_gen.h"
#include "common/timer.h"
#include "common/xmalloc.h"
#include "supervisor/front/jwt.h"

#define PLAIN "oauth:"
#define PLAIN_MAX (PRINCIPAL_SUBJECT_MAX + 1 - (int)sizeof(PLAIN))
#define HASHED "oauth-sha256:"
#define HASH_BYTES 20 /* of the digest of a subject that is no plain word */
#define DIGEST_BYTES 32
#define VERIFIED_MAX 4096

/* A token whose signature was found good, by the digest of its text: no
 * signature is computed twice.  It is good until it expires or the issuer's
 * keys change. */
struct verified_token {
	uint8_t digest[DIGEST_BYTES];
	struct claims claims;
	struct hash_entry by_digest;
	TAILQ_ENTRY(verified_token) link;
};
TAILQ_HEAD(verified_list, verified_token);

/* One who calls: a subject in a tenant, in a role. */
struct bearer {
	struct principal *who;
	char subject[CLAIMS_SUBJECT_MAX + 1];
	int64_t until_ms; /* the last of its tokens that were seen */
	struct hash_entry by_who;
	TAILQ_ENTRY(bearer) link;
};
TAILQ_HEAD(bearer_list, bearer);
TAILQ_HEAD(wait_list, oauth_wait);

struct oauth {
	struct oauth_parts parts;
	char *metadata_url;
	struct ipc_chan *chan; /* NULL: mcp-sandboxd-keys is away */
	struct jwks *jwks;     /* NULL: none came yet */
	struct buf jwks_text;
	struct hashmap verified;
	struct verified_list verified_list; /* the oldest first */
	struct hashmap bearers;
	struct bearer_list list; /* the oldest first */
	struct wait_list waiting;
	size_t nwaiting;
	struct timer *wait_end;
	uint64_t wanted_ms;
	bool is_wanted; /* and no answer came */
};

/* ---- requests that wait for keys */

bool
oauth_wait(struct oauth *o, struct oauth_wait *w)
{
	uint64_t now = clock_mono_ms();

	if (o->nwaiting == OAUTH_WAITING_MAX || o->chan == NULL)
		return false;
	if (!o->is_wanted) {
		if (o->wanted_ms != 0 && now - o->wanted_ms < OAUTH_WANT_MS)
			return false;
		o->wanted_ms = now;
		o->is_wanted = true;
		msg_send_keys_wanted(o->chan, &(struct msg_keys_wanted){0});
		timer_set_ms(o->wait_end, OAUTH_WAIT_MS);
	}
	TAILQ_INSERT_TAIL(&o->waiting, w, link);
	o->nwaiting++;
	return true;
}

void
oauth_wait_cancel(struct oauth *o, struct oauth_wait *w)
{
	TAILQ_REMOVE(&o->waiting, w, link);
	o->nwaiting--;
}

static void
end_waiting(void *arg)
{
	struct oauth *o = arg;
	struct oauth_wait *w;

	timer_stop(o->wait_end);
	o->is_wanted = false;
	while ((w = TAILQ_FIRST(&o->waiting)) != NULL) {
		oauth_wait_cancel(o, w);
		w->go_on(w);
	}
}

/* ---- tokens that were verified */

static void
digest_of(const char *text, uint8_t out[DIGEST_BYTES])
{
	if (EVP_Digest(text, strlen(text), out, NULL, EVP_sha256(), NULL) != 1)
		fatal(EXIT_BUG, "no SHA-256");
}

static bool
is_digest(const struct hash_entry *en, const void *key)
{
	return memcmp(
		   HASH_OF(en, const struct verified_token, by_digest)->digest,
		   key, DIGEST_BYTES) == 0;
}

static struct verified_token *
verified_find(const struct oauth *o, const uint8_t digest[DIGEST_BYTES])
{
	return HASH_OBJECT(
	    hashmap_get(&o->verified, hashmap_key_bytes(digest, DIGEST_BYTES),
		is_digest, digest),
	    struct verified_token, by_digest);
}

static void
verified_drop(struct oauth *o, struct verified_token *t)
{
	hashmap_del(&o->verified, &t->by_digest);
	TAILQ_REMOVE(&o->verified_list, t, link);
	free(t);
}

static void
verified_clear(struct oauth *o)
{
	struct verified_token *t;

	while ((t = TAILQ_FIRST(&o->verified_list)) != NULL)
		verified_drop(o, t);
}

static const struct claims *
verified_put(struct oauth *o, const char *token, const struct claims *c)
{
	struct verified_token *t = xcalloc(1, sizeof(*t)), *before;

	digest_of(token, t->digest);
	before = verified_find(o, t->digest);
	if (before != NULL) /* expired by another clock */
		verified_drop(o, before);
	if (o->verified.count >= VERIFIED_MAX)
		verified_drop(o, TAILQ_FIRST(&o->verified_list));
	t->claims = *c;
	hashmap_put(&o->verified, &t->by_digest,
	    hashmap_key_bytes(t->digest, DIGEST_BYTES));
	TAILQ_INSERT_TAIL(&o->verified_list, t, link);
	return &t->claims;
}

/* ---- keys */

void
oauth_set_keys(struct oauth *o, const void *jwks, size_t n)
{
	struct jwks *fresh;
	struct err e;

	if (n == buf_len(&o->jwks_text) && n > 0 &&
	    memcmp(jwks, buf_data(&o->jwks_text), n) == 0)
		return;
	if (jwks_parse(jwks, n, &fresh, &e) != 0) {
		log_warn("%s; %s", e.msg,
		    o->jwks == NULL ? "there are none yet" :
				      "those before stay");
		return;
	}
	/* What a key that is gone has signed is good no more. */
	verified_clear(o);
	jwks_free(o->jwks);
	o->jwks = fresh;
	buf_clear(&o->jwks_text);
	(void)!buf_append(&o->jwks_text, jwks, n);
	log_info("the issuer has %zu keys", jwks_count(fresh));
}

static int
on_keys(void *arg, const struct msg_keys *m, struct err *e)
{
	(void)e;
	oauth_set_keys(arg, m->jwks.p, m->jwks.n);
	end_waiting(arg);
	return 0;
}

static int
on_keys_failed(void *arg, const struct msg_keys_failed *m, struct err *e)
{
	(void)e;
	log_debug("no keys: %s", m->why); /* who asked for them has said it */
	end_waiting(arg);
	return 0;
}

static const struct msg_keys_to_front handlers = {
    .on_keys = on_keys, .on_keys_failed = on_keys_failed};

static int
message_cb(struct ipc_chan *c, struct ipc_msg *m, void *arg, struct err *e)
{
	(void)c;
	return msg_dispatch_keys_to_front(&handlers, m, arg, e);
}

static void
close_cb(struct ipc_chan *c, const struct err *why, void *arg)
{
	struct oauth *o = arg;

	if (why->code != 0)
		log_warn("keys: channel closed: %s", why->msg);
	ipc_chan_free(c);
	o->chan = NULL;
	end_waiting(o);
}

static const struct ipc_ops chan_ops = {message_cb, close_cb, NULL};

void
oauth_attach(struct oauth *o, int fd)
{
	ipc_chan_free(o->chan);
	o->chan = ipc_chan_new(o->parts.base, fd, "keys", &chan_ops, o);
	o->is_wanted = true; /* it asks at its start */
	timer_set_ms(o->wait_end, OAUTH_WAIT_MS);
}

bool
oauth_has_keys(const struct oauth *o)
{
	return o->jwks != NULL;
}

/* ---- a token */

const struct claims *
oauth_find(const struct oauth *o, const char *token)
{
	uint8_t digest[DIGEST_BYTES];
	const struct verified_token *t;

	digest_of(token, digest);
	t = verified_find(o, digest);
	return t == NULL || t->claims.until_ms <= clock_wall_ms() ? NULL :
								    &t->claims;
}

static const char *
check(struct oauth *o, const char *token, struct claims *out, bool *later)
{
	json_t *claims;
	const char *why;
	EVP_PKEY *key;
	struct jwt t;

	why = jwt_parse(token, &t);
	if (why != NULL)
		return why;
	key = o->jwks == NULL ? NULL : jwks_find(o->jwks, t.kid, t.alg);
	if (key == NULL) {
		*later = true;
		return "its key is none of the issuer's";
	}
	if (!jwt_verify(&t, key))
		return "its signature is wrong";
	claims = jwt_claims(&t);
	why = claims == NULL ?
	    "its claims are malformed" :
	    claims_read(o->parts.conf, claims, clock_wall_ms(), out);
	json_decref(claims);
	return why;
}

const struct claims *
oauth_verify(struct oauth *o, const char *token, const char **why, bool *later)
{
	struct claims c;

	*later = false;
	*why = check(o, token, &c, later);
	return *why == NULL ? verified_put(o, token, &c) : NULL;
}

/* ---- whose it is */

/* A name that stands in lists and logs: the subject, if that is a plain word,
 * else of its digest.  Neither can be a token's id, nor each other. */
static void
name_subject(const char *subject, char out[PRINCIPAL_SUBJECT_MAX + 1])
{
	uint8_t digest[DIGEST_BYTES];
	char hex[HEX_BYTES(HASH_BYTES)];
	bool is_plain = strlen(subject) <= PLAIN_MAX;

	for (const char *p = subject; *p != '\0'; p++)
		is_plain &= *p > ' ' && *p < 0x7f;
	if (is_plain) {
		(void)snprintf(out, PRINCIPAL_SUBJECT_MAX + 1, PLAIN "%.*s",
		    PLAIN_MAX, subject);
		return;
	}
	digest_of(subject, digest);
	hex_encode(digest, HASH_BYTES, hex);
	(void)snprintf(out, PRINCIPAL_SUBJECT_MAX + 1, HASHED "%s", hex);
}

struct bearer_key {
	struct tenant_id tenant;
	enum principal_role role;
	const char *name;
};

static uint64_t
hash_of(const struct bearer_key *k)
{
	return hashmap_key_named(
	    k->tenant.n * PRINCIPAL_ROLE_COUNT + k->role, k->name);
}

static bool
is_bearer(const struct hash_entry *en, const void *key)
{
	const struct principal *who =
	    HASH_OF(en, const struct bearer, by_who)->who;
	const struct bearer_key *k = key;

	return tenant_id_is_equal(who->tenant, k->tenant) &&
	    who->role == k->role && strcmp(who->subject, k->name) == 0;
}

static struct bearer *
find_bearer(const struct oauth *o, const struct bearer_key *k)
{
	return HASH_OBJECT(hashmap_get(&o->bearers, hash_of(k), is_bearer, k),
	    struct bearer, by_who);
}

static void
bearer_leave(struct oauth *o, struct bearer *b)
{
	hashmap_del(&o->bearers, &b->by_who);
	TAILQ_REMOVE(&o->list, b, link);
	principal_unref(b->who);
	free(b);
}

static void
bearer_end(struct oauth *o, struct bearer *b)
{
	if (o->parts.on_ended != NULL)
		o->parts.on_ended(b->who, o->parts.arg);
	bearer_leave(o, b);
}

static struct bearer *
bearer_enter(struct oauth *o, const struct bearer_key *k,
    const struct claims *c, const struct tenant *n)
{
	struct bearer *b = xcalloc(1, sizeof(*b));

	if (o->bearers.count >= OAUTH_SUBJECTS_MAX)
		bearer_end(o, TAILQ_FIRST(&o->list));
	b->who = principal_new(
	    k->tenant, n == NULL ? "" : n->row.name, k->name, k->role);
	memcpy(b->subject, c->subject, sizeof(b->subject));
	hashmap_put(&o->bearers, &b->by_who, hash_of(k));
	TAILQ_INSERT_TAIL(&o->list, b, link);
	return b;
}

static void
tell(struct oauth *o, const char *what, const struct bearer *b,
    const struct act *origin)
{
	struct act a = *origin;

	a.what = what;
	a.who = b->who;
	a.tenant = b->who->tenant_name;
	a.subject = b->subject;
	a.detail = conf_str(o->parts.conf, CONF_OAUTH_ISSUER);
	acts_tell(o->parts.acts, &a, NULL, NULL);
}

/* NULL: none, and *answer says why. */
static struct tenant *
find_tenant(struct oauth *o, const struct claims *c, enum oauth_answer *answer,
    bool *is_new)
{
	static struct log_limit limit;
	struct tenant *n = tenants_find_name(o->parts.tenants, c->tenant);
	struct err e;

	*is_new = false;
	*answer = OAUTH_NO_TENANT;
	if (n == NULL && conf_bool(o->parts.conf, CONF_OAUTH_TENANT_CREATE)) {
		if (tenant_add(
			o->parts.tenants, c->tenant, NULL, NULL, &n, &e) != 0) {
			log_warn_limited(
			    &limit, "OAUTH_TENANT_CREATE: %s", e.msg);
			return NULL;
		}
		*is_new = true;
	}
	if (n != NULL)
		*answer = tenant_is_usable(n) ? OAUTH_KNOWN : OAUTH_DISABLED;
	return *answer == OAUTH_KNOWN ? n : NULL;
}

/* Administration and metrics are of no tenant, unless the token names one. */
enum oauth_answer
oauth_know(struct oauth *o, const struct claims *c, unsigned int roles,
    const struct act *origin, struct principal **out)
{
	char name[PRINCIPAL_SUBJECT_MAX + 1];
	struct bearer_key key = {.name = name};
	enum oauth_answer answer;
	struct tenant *n = NULL;
	bool is_new = false;
	struct bearer *b;

	roles &= c->roles;
	if (roles == 0)
		return OAUTH_NO_SCOPE;
	if (c->tenant[0] == '\0')
		roles &= ~(1u << PRINCIPAL_USER);
	if (roles == 0)
		return OAUTH_NO_TENANT;
	while ((roles & 1u << key.role) == 0)
		key.role++;
	if (c->tenant[0] != '\0') {
		n = find_tenant(o, c, &answer, &is_new);
		if (n == NULL)
			return answer;
		key.tenant = tenant_id_of(n);
	}
	name_subject(c->subject, name);
	b = find_bearer(o, &key);
	if (b == NULL) {
		b = bearer_enter(o, &key, c, n);
		if (is_new)
			tell(o, "tenant.add", b, origin);
		tell(o, "auth.oauth", b, origin);
	}
	if (c->until_ms > b->until_ms)
		b->until_ms = c->until_ms;
	*out = b->who;
	return OAUTH_KNOWN;
}

static bool
may_go_on(const struct oauth *o, const struct bearer *b, int64_t now_ms)
{
	const struct tenant *n;

	if (b->until_ms <= now_ms)
		return false;
	if (b->who->tenant.n == 0)
		return true;
	n = tenants_find(o->parts.tenants, b->who->tenant);
	return n != NULL && tenant_is_usable(n);
}

void
oauth_tick(struct oauth *o)
{
	int64_t now_ms = clock_wall_ms();
	struct bearer *b, *next;

	for (b = TAILQ_FIRST(&o->list); b != NULL; b = next) {
		next = TAILQ_NEXT(b, link);
		if (!may_go_on(o, b, now_ms))
			bearer_end(o, b);
	}
}

/* ---- what others are told */

const char *
oauth_subject(
    const struct oauth *o, const struct principal *who, int64_t *until_ms)
{
	const struct bearer_key key = {who->tenant, who->role, who->subject};
	const struct bearer *b = find_bearer(o, &key);

	if (b == NULL)
		return NULL;
	*until_ms = b->until_ms;
	return b->subject;
}

const char *
oauth_resource(const struct oauth *o)
{
	const char *url = conf_str(o->parts.conf, CONF_OAUTH_RESOURCE);

	return url[0] != '\0' ? url :
				conf_str(o->parts.conf, CONF_OAUTH_AUDIENCE);
}

const char *
oauth_metadata_url(const struct oauth *o)
{
	return o->metadata_url;
}

/* RFC 9728, section 3.1: the well-known part goes before the path. */
static char *
make_metadata_url(const char *resource)
{
	const char *host = strstr(resource, "://") + 3;
	const char *path = host + strcspn(host, "/");
	bool is_root = strcmp(path, "/") == 0;

	return xasprintf("%.*s" OAUTH_WELL_KNOWN "%s", (int)(path - resource),
	    resource, is_root ? "" : path);
}

/* ---- life */

struct oauth *
oauth_new(const struct oauth_parts *parts)
{
	struct oauth *o;

	if (conf_str(parts->conf, CONF_OAUTH_ISSUER)[0] == '\0')
		return NULL;
	o = xcalloc(1, sizeof(*o));
	o->parts = *parts;
	o->metadata_url = make_metadata_url(oauth_resource(o));
	o->wait_end = timer_new(parts->base, end_waiting, o);
	buf_init(&o->jwks_text, 0);
	TAILQ_INIT(&o->verified_list);
	TAILQ_INIT(&o->list);
	TAILQ_INIT(&o->waiting);
	return o;
}

void
oauth_free(struct oauth *o)
{
	struct bearer *b;

	if (o == NULL)
		return;
	ipc_chan_free(o->chan);
	timer_free(o->wait_end);
	while ((b = TAILQ_FIRST(&o->list)) != NULL)
		bearer_leave(o, b);
	hashmap_clear(&o->bearers);
	verified_clear(o);
	hashmap_clear(&o->verified);
	jwks_free(o->jwks);
	buf_clear(&o->jwks_text);
	free(o->metadata_url);
	free(o);
}
