/*
 * secrets.h - what tenants keep here for their commands and nobody reads again
 *
 * A command's variable whose value is "secret://NAME" is given its tenant's
 * secret of that name, at the moment at which it is sent to its worker and
 * nowhere before: rows, specs on disk, logs and answers have the reference.
 * A run that is sent again is given the secret as it is then; an agent that
 * knows the run does not look at it.
 *
 * Secrets are sealed (seal.h) in the database, and so they are kept in memory,
 * all of them, within the bounds below.  Without the key that sealed it a
 * secret stays where it is and cannot be used: ERR_NO_SECRET_KEY.  Those of an
 * older key that is still there are sealed anew by the first one.
 */
#ifndef CORE_SECRETS_H
#define CORE_SECRETS_H

#include <sys/queue.h>

#include "common/base.h"
#include "common/buf.h"
#include "common/err.h"
#include "common/hashmap.h"
#include "common/principal.h"
#include "supervisor/store/store.h"

#define SECRET_NAME_MAX 64 /* of A-Z a-z 0-9 _ . - */
#define SECRET_BYTES_MAX 65536
#define SECRETS_PER_TENANT 1000
#define SECRETS_TENANT_BYTES (1u << 20) /* SECRET_COST of all */
#define SECRETS_ALL_BYTES (64u << 20)
#define SECRET_COST(bytes) ((bytes) + 256)

struct rekeying;
struct runspec;
struct secrets;
struct secret_owner;

/* secrets.c writes it and nobody else does. */
struct secret {
	struct secret_owner *owner;
	struct store_secret row;
	struct hash_entry by_name;
	TAILQ_ENTRY(secret) link;
};

int secrets_open(
    struct store *s, struct secrets **out, struct err *e) MUSTCHECK;
void secrets_free(struct secrets *ss); /* NULL is fine */
/* secrets_unlock - the lines of SECRETS_KEY_FILE; ERR_PARSE: as without them.
 * What an older one sealed is sealed anew, and counted by k */
int secrets_unlock(struct secrets *ss, const char *text, size_t n,
    struct rekeying *k, struct err *e) MUSTCHECK;
/* secrets_have_older_key - of an unlocked one: the file has more than one */
bool secrets_have_older_key(const struct secrets *ss);

/* secrets_check_name - ERR_INVAL */
int secrets_check_name(const char *name, struct err *e) MUSTCHECK;
struct secret *secrets_find(
    const struct secrets *ss, struct tenant_id tenant, const char *name);
/* secrets_next - by name; NULL: the first, the last */
const struct secret *secrets_next(
    const struct secrets *ss, struct tenant_id tenant, const struct secret *s);
size_t secret_bytes(const struct secret *s); /* of its value */
/* secret_is_usable - its key is here */
bool secret_is_usable(const struct secrets *ss, const struct secret *s);

/* secrets_put - a new one or another value; it holds at once, done says that
 * it is on disk.  ERR_INVAL, ERR_LIMIT, ERR_NO_SECRET_KEY: there is no key */
int secrets_put(struct secrets *ss, struct tenant_id tenant, const char *name,
    const struct span *value, store_done_cb done, void *arg,
    struct err *e) MUSTCHECK;
/* secrets_drop - at once */
void secrets_drop(
    struct secrets *ss, struct secret *s, store_done_cb done, void *arg);
/* secrets_forget - all of a tenant that is erased, here; the store does so by
 * itself */
void secrets_forget(struct secrets *ss, struct tenant_id tenant);

/*
 * secrets_check - may this run of who's be given what it refers to, and could
 * it be, now?
 *
 * The tenant's own principals may (PRINCIPAL_USER).  An administrator sees what
 * a run prints and may say whose run it is, so one that an administrator
 * starts in a tenant's name is given nothing, whatever its text.
 *
 * ERR_POLICY: not this principal; ERR_INVAL: no reference; ERR_NO_SECRET,
 * ERR_NO_SECRET_KEY; ERR_LIMIT: it would be too large.
 */
int secrets_check(const struct secrets *ss, const struct principal *who,
    const struct runspec *spec, struct err *e) MUSTCHECK;
/* secrets_is_reference - a variable's value that names a secret, and is none */
bool secrets_is_reference(const char *value);
/* secrets_are_in - false: there is no reference in an encoded spec */
bool secrets_are_in(const struct span *spec);
/*
 * secrets_fill - the encoded spec with values in place of references
 *
 * A command that cannot be given one says so (RUNSPEC_NO_SECRET).  *out is the
 * caller's to wipe and clear, also on failure, which is a fault of ours.
 */
int secrets_fill(struct secrets *ss, struct tenant_id tenant,
    const struct span *spec, struct buf *out, struct err *e) MUSTCHECK;

#endif
