/*
 * passage.h - whether front and workers, as users of their own, can get to
 * DATA_DIR
 *
 * A directory on the way that is shut for such a user (root's home has mode
 * 700 on Debian) would end each life of that child.  It is asked before there
 * is one, by a process that becomes the user: so modes, groups, access lists
 * and security modules count, as they will.
 */
#ifndef MASTER_PASSAGE_H
#define MASTER_PASSAGE_H

#include "common/base.h"
#include "common/err.h"
#include "supervisor/master/users.h"

/* passage_check - the users of front and workers can pass to data_dir, which
 * need not be there yet; 0, ERR_POLICY with the user, the directory that is
 * shut and what to do, or ERR_SYS.  0 also for a path that leads nowhere, of
 * which datadir_open says more */
int passage_check(
    const struct users *u, const char *data_dir, struct err *e) MUSTCHECK;

#endif
