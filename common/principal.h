/*
 * principal.h - who calls: a tenant, a subject within it, and a role
 *
 * Whoever checks a request finds or makes the principal once; every call, and
 * what goes on after the call (a sandbox, a run), holds a reference.  Its
 * fields never change, so a copy is never needed.
 */
#ifndef COMMON_PRINCIPAL_H
#define COMMON_PRINCIPAL_H

#include "common/base.h"
#include "common/words_gen.h"

#define PRINCIPAL_TENANT_MAX 40
#define PRINCIPAL_SUBJECT_MAX 64
/* The subject of the one without a token. */
#define PRINCIPAL_LOCAL "local"

/* A tenant's number in the database, of a type of its own: who asks for what
 * belongs to a tenant cannot give a run's number, or none, in its place.  It
 * comes from a principal or from the list of tenants.  0: of no tenant. */
struct tenant_id {
	uint64_t n;
};

static inline bool
tenant_id_is_equal(struct tenant_id a, struct tenant_id b)
{
	return a.n == b.n;
}

struct principal {
	unsigned int refs;
	struct tenant_id tenant;
	enum principal_role role;
	char tenant_name[PRINCIPAL_TENANT_MAX + 1];
	/* The id of its token, PRINCIPAL_LOCAL for the one without, "socket"
	 * for who came by the admin socket. */
	char subject[PRINCIPAL_SUBJECT_MAX + 1];
};

/* principal_is_same - the same subject of the same tenant, be it of another
 * object or with another role */
static inline bool
principal_is_same(const struct principal *a, const struct principal *b)
{
	return tenant_id_is_equal(a->tenant, b->tenant) &&
	    strcmp(a->subject, b->subject) == 0;
}

/* principal_new - with one reference, the caller's; names are copied and must
 * fit (our bug otherwise: the process ends) */
struct principal *principal_new(struct tenant_id tenant,
    const char *tenant_name, const char *subject, enum principal_role role);
struct principal *principal_ref(struct principal *p);
/* principal_unref - the last reference frees it; NULL is fine */
void principal_unref(struct principal *p);

#endif
