/* ctl_audit.h - sandboxctl audit list, audit verify */
#ifndef CTL_AUDIT_H
#define CTL_AUDIT_H

#include "common/base.h"
#include "common/err.h"
#include "supervisor/ctl/ctl_options.h"
#include "supervisor/ctl/ctl_request.h"

/* ctl_audit_list - the newest rows, by words KEY=VALUE */
int ctl_audit_list(const struct ctl_options *o, struct ctl_link *l,
    char *const *words, int n, struct err *e) MUSTCHECK;
/*
 * ctl_audit_verify - the whole chain, piece by piece
 *
 * With two words, a number and a hash (of a line of the log, or of an earlier
 * verify): that row must still be the one with this hash; with --head some row
 * must have it.  --offline: of DATA_DIR's database, and no server is asked.
 * ERR_WRONG_STATE names the first row that is wrong.
 */
int ctl_audit_verify(const struct ctl_options *o, char *const *words, int n,
    struct err *e) MUSTCHECK;

#endif
