/*
 * ancestry.h - who could exchange what a path leads to
 *
 * Each directory on the way, the last one included, must belong to root or to
 * owner, and nobody else may write there.  A directory where everybody may
 * make names is fine if it is root's and sticky, such as /tmp: what exists in
 * it is renamed by its owner alone.  Group 0 counts as root.
 */
#ifndef MASTER_ANCESTRY_H
#define MASTER_ANCESTRY_H

#include <sys/types.h>

#include "common/base.h"
#include "common/err.h"

/* ancestry_check - path is absolute and has no links (realpath).  ERR_POLICY
 * names the first directory that somebody else could change, and whose it
 * is; ERR_SYS when one cannot be looked at. */
int ancestry_check(const char *path, uid_t owner, struct err *e) MUSTCHECK;

#endif
