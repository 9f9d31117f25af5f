/* audit_ends.h - the two ends of the audit's chain, in the first tenant's row
 */
#ifndef STORE_AUDIT_ENDS_H
#define STORE_AUDIT_ENDS_H

#include "common/base.h"
#include "common/err.h"
#include "supervisor/store/store.h"

struct db;

struct audit_ends {
	struct store_audit_mark head; /* the newest row */
	struct store_audit_mark base; /* the newest that was trimmed */
};
/* ERR_NOTFOUND: they are missing */
int audit_ends_get(
    struct db *db, struct audit_ends *out, struct err *e) MUSTCHECK;
int audit_ends_put(
    struct db *db, const struct audit_ends *ends, struct err *e) MUSTCHECK;

#endif
