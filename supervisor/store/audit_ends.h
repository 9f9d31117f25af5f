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
/* As this connection wrote them last: db_audit_ends. */
struct audit_ends_kept {
	bool is_known;
	struct audit_ends ends;
};
/* audit_ends_anew - some of a transaction was undone, or others have written */
void audit_ends_anew(struct db *db);
/* audit_ends_at_hand - of the connection that writes, in its transaction: not
 * asked for when it wrote them itself; ERR_NOTFOUND */
int audit_ends_at_hand(
    struct db *db, struct audit_ends *out, struct err *e) MUSTCHECK;
/* ERR_NOTFOUND: they are missing */
int audit_ends_get(
    struct db *db, struct audit_ends *out, struct err *e) MUSTCHECK;
int audit_ends_put(
    struct db *db, const struct audit_ends *ends, struct err *e) MUSTCHECK;

#endif
