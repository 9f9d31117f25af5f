/*
 * tenants.h - who is known here: tenants, their tokens, their quotas
 *
 * All of them in memory, read at the start and kept true by the calls below,
 * which are the only ones that write the database's rows of them.  A change
 * holds at once; its done is told when it is on disk.  A tenant or token that
 * could not be written is as it is all the same, and written again until that
 * succeeds; a quota that could not be is the caller's to set again.
 *
 * There is one tenant without a token at first, "default", for a server on
 * loopback (tenants_is_open).  From the first token, or the first tenant, on,
 * every request wants a token, for good: what was closed is never opened again
 * because somebody revoked or deleted the last one.
 *
 * A token belongs to one tenant, or (admin, metrics) to none.  What ends it
 * (revoked, expired, its tenant disabled or deleted) is told at once to who
 * serves it: tenants_on_ended.
 */
#ifndef CORE_TENANTS_H
#define CORE_TENANTS_H

#include <sys/queue.h>

#include "common/base.h"
#include "common/err.h"
#include "common/hashmap.h"
#include "common/principal.h"
#include "common/quota.h"
#include "common/token.h"
#include "supervisor/store/store.h"

#define TENANTS_MAX 10000
#define TENANT_TOKENS_MAX 256 /* of one tenant, or of none */
#define TENANT_TOKEN_NAME_MAX 100
#define TENANT_DEFAULT_NAME "default"

struct tenants;

/* tenants.c writes it and nobody else does. */
struct tenant {
	struct tenants *all;
	struct store_tenant row;
	struct principal *owner;    /* whose is what goes on without a call */
	int64_t quota[QUOTA_COUNT]; /* that hold now */
	bool quota_is_set[QUOTA_COUNT];
	unsigned int ntokens;
	bool is_unsaved;
	bool is_erasing;
	bool has_ended_runs; /* since tenants_take_ended gave it */
	struct hash_entry by_number;
	struct hash_entry by_name;
	TAILQ_ENTRY(tenant) link;
	TAILQ_ENTRY(tenant) ended_link;
};

/* Likewise. */
struct token {
	struct tenant *tenant; /* NULL: of none */
	struct store_token row;
	struct principal *who;
	bool is_unsaved;
	bool has_ended; /* for good */
	struct hash_entry by_id;
	TAILQ_ENTRY(token) link;
};

static inline struct tenant_id
tenant_id_of(const struct tenant *n)
{
	return (struct tenant_id){n->row.id};
}
static inline bool
tenant_is_usable(const struct tenant *n)
{
	return n->row.disabled_ms == 0 && n->row.deleted_ms == 0;
}

/* ---- life */

int tenants_open(
    struct store *s, struct tenants **out, struct err *e) MUSTCHECK;
void tenants_free(struct tenants *t); /* NULL is fine */
/* tenants_on_ended - cb is told of each principal that may not go on */
void tenants_on_ended(struct tenants *t,
    void (*cb)(const struct principal *who, void *arg), void *arg);
/* tenants_tick - what is over by now is ended, what is not on disk written */
void tenants_tick(struct tenants *t, int64_t wall_ms);

/* ---- who calls */

/* tenants_is_open - there is but the default tenant, and it wants no token */
bool tenants_is_open(const struct tenants *t);

enum tenants_answer {
	TENANTS_KNOWN,
	TENANTS_UNKNOWN, /* made up, wrong, expired, revoked: all alike */
	TENANTS_DISABLED /* good, but its tenant is disabled or being deleted */
};
/* tenants_know - whose token is this?  *out is the directory's: who keeps it
 * takes a reference.  The same work is done for every text. */
enum tenants_answer tenants_know(struct tenants *t, const char *text,
    int64_t wall_ms, struct principal **out);
/* tenants_local - who calls when the server is open */
enum tenants_answer tenants_local(
    const struct tenants *t, struct principal **out);
/* tenants_resident - who calls from where only the operator does: the default
 * tenant's own, with tokens or without, as long as no other tenant was ever
 * made.  The end of the open server does not end them. */
enum tenants_answer tenants_resident(
    const struct tenants *t, struct principal **out);

/* ---- looking */

struct tenant *tenants_find(const struct tenants *t, struct tenant_id id);
struct tenant *tenants_find_name(const struct tenants *t, const char *name);
struct token *tenants_find_token(const struct tenants *t, const char *id);
/* tenants_quota - what holds for it; the default for one that is gone */
int64_t tenants_quota(
    const struct tenants *t, struct tenant_id id, enum quota_key key);
/* In the order in which they were made; NULL: the first, the last. */
struct tenant *tenants_next(const struct tenants *t, const struct tenant *n);
struct token *tenants_next_token(
    const struct tenants *t, const struct token *k);
/* tenants_count - tenants beside the default one, and tokens, that
 * somebody could call by */
void tenants_count(const struct tenants *t, size_t *ntenants, size_t *ntokens);

/* ---- changing.  done may be NULL. */

/* tenants_check_name - whether a tenant may be called so; ERR_INVAL */
int tenants_check_name(const char *name, struct err *e) MUSTCHECK;
/* tenant_add - ERR_INVAL: no name for a tenant (want a letter or digit, then
 * letters, digits, ".", "_" and "-", at most 40); ERR_CONFLICT: there is one,
 * or it is still being deleted; ERR_LIMIT */
int tenant_add(struct tenants *t, const char *name, store_done_cb done,
    void *arg, struct tenant **out, struct err *e) MUSTCHECK;
enum tenant_use {
	TENANT_ENABLED,
	TENANT_DISABLED
};
void tenant_use(
    struct tenant *n, enum tenant_use use, store_done_cb done, void *arg);
/* tenant_grant - value must be good (quota_check) */
void tenant_grant(struct tenant *n, enum quota_key key, int64_t value,
    store_done_cb done, void *arg);
/* tenant_ungrant - the default holds again */
void tenant_ungrant(
    struct tenant *n, enum quota_key key, store_done_cb done, void *arg);
/* tenant_rule - how its next sandboxes are made; runtime "": as all others */
void tenant_rule(struct tenant *n, const char *runtime, bool read_only_root,
    store_done_cb done, void *arg);
/* tenant_delete - nobody may call for it from now on; it is there until
 * tenant_erase found nothing left.  ERR_INVAL: the default tenant stays */
int tenant_delete(
    struct tenant *n, store_done_cb done, void *arg, struct err *e) MUSTCHECK;
/* tenant_erase - if runs or sandboxes are left, it stays and is tried again
 * by the caller; else n is gone soon */
void tenant_erase(struct tenant *n);

struct token_wish {
	enum principal_role role;
	const char *name;
	int64_t expires_ms; /* 0: never */
};
struct token_made {
	struct token *token;
	char text[TOKEN_TEXT_LEN + 1]; /* the one time it is to be had */
};
/* tenants_add_token - n NULL: of no tenant.  ERR_INVAL: name, expiry, a user's
 * without a tenant; ERR_LIMIT */
int tenants_add_token(struct tenants *t, struct tenant *n,
    const struct token_wish *w, store_done_cb done, void *arg,
    struct token_made *out, struct err *e) MUSTCHECK;
/* tenants_import_token - one whose digest is known; ERR_CONFLICT: there
 * is one of this id with another digest, tenant or role.  The same again does
 * nothing: one that was revoked stays so. */
int tenants_import_token(struct tenants *t, struct tenant *n,
    const struct token_wish *w, const struct token_text *of,
    struct err *e) MUSTCHECK;
/* token_revoke - at once; the second time only done is told */
void token_revoke(
    struct tenants *t, struct token *k, store_done_cb done, void *arg);

/* ---- for the core's clock */

/* tenants_note_ended - a run of it ended: its history may be too long */
void tenants_note_ended(struct tenants *t, struct tenant_id id);
/* tenants_take_ended - one of those, once; or NULL */
struct tenant *tenants_take_ended(struct tenants *t);

#endif
