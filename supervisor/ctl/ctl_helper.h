/*
 * ctl_helper.h - a part of the work that is done as another user
 *
 * What may have been written by somebody who took the front over is read by a
 * process of the front's user, never by root.
 */
#ifndef CTL_HELPER_H
#define CTL_HELPER_H

#include <sys/types.h>

#include "common/base.h"
#include "common/err.h"

struct ctl_helper_user {
	uid_t uid;
	gid_t gid;
};

#define CTL_HELPER_TEXT 4096

/*
 * ctl_helper_run - work(arg) in a process of its own, as that user when we are
 * root and that is somebody else
 *
 * said, of CTL_HELPER_TEXT bytes, is what it leaves for us.  Returns what work
 * returned, with its error; ERR_SYS when it was killed.  SIGHUP, SIGINT and
 * SIGTERM end that process, and not us.
 */
int ctl_helper_run(const struct ctl_helper_user *user,
    int (*work)(char *said, void *arg, struct err *e), void *arg, char *said,
    struct err *e) MUSTCHECK;

#endif
