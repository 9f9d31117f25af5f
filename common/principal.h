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

#define PRINCIPAL_TENANT_MAX 40
#define PRINCIPAL_SUBJECT_MAX 64

enum principal_role {
	PRINCIPAL_USER,
	PRINCIPAL_ADMIN,
	PRINCIPAL_METRICS
};

struct principal {
	unsigned int refs;
	uint64_t tenant; /* its number in the database */
	enum principal_role role;
	char tenant_name[PRINCIPAL_TENANT_MAX + 1];
	char subject[PRINCIPAL_SUBJECT_MAX + 1];
};

/* principal_new - with one reference, the caller's; names are copied and must
 * fit (our bug otherwise: the process ends) */
struct principal *principal_new(uint64_t tenant, const char *tenant_name,
    const char *subject, enum principal_role role);
struct principal *principal_ref(struct principal *p);
/* principal_unref - the last reference frees it; NULL is fine */
void principal_unref(struct principal *p);

#endif
