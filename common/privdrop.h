/*
 * privdrop.h - become another user for good
 *
 * A process started as root looks its user up before it forks, adds the
 * groups the work needs, and applies it in the child between fork and exec.
 * What privdrop_apply returns 0 for cannot be undone: it has tried.
 */
#ifndef COMMON_PRIVDROP_H
#define COMMON_PRIVDROP_H

#include <linux/capability.h>
#include <sys/types.h>

#include "common/base.h"
#include "common/err.h"

#define PRIVDROP_NAME_MAX 63
#define PRIVDROP_GROUPS_MAX 8

struct privdrop_user {
	char name[PRIVDROP_NAME_MAX + 1];
	uid_t uid;
	gid_t gid;
	gid_t groups[PRIVDROP_GROUPS_MAX]; /* supplementary, without gid */
	size_t ngroups;
};

/* privdrop_lookup - a user of the passwd database, with no supplementary
 * groups.  ERR_NOTFOUND when there is none, ERR_INVAL for a name that is too
 * long or a user whose uid or gid is 0: that would drop nothing. */
int privdrop_lookup(
    const char *name, struct privdrop_user *u, struct err *e) MUSTCHECK;
/* privdrop_add_group - one more supplementary group; a group that is there
 * already is not added twice.  ERR_LIMIT when the table is full. */
int privdrop_add_group(
    struct privdrop_user *u, gid_t gid, struct err *e) MUSTCHECK;
/* privdrop_may_change - root has the capabilities that privdrop_apply needs;
 * else ERR_POLICY, which says what to do */
int privdrop_may_change(struct err *e) MUSTCHECK;
/*
 * privdrop_apply - take the user's groups, gid and uid, and prove it
 *
 * Proof: all three uids and gids are the new ones, uid 0 and gid 0 cannot be
 * taken back, no capability is left.  ERR_SYS otherwise; the process must
 * then end, for it may stand half way.
 */
int privdrop_apply(const struct privdrop_user *u, struct err *e) MUSTCHECK;

#define PRIVDROP_CAP(number) (UINT64_C(1) << (number))
/*
 * privdrop_bound - no program that is executed from now on has more than these
 * capabilities
 *
 * Needs CAP_SETPCAP; without it does nothing, for then no-new-privileges and
 * privdrop_keep must do.
 */
int privdrop_bound(uint64_t capabilities, struct err *e) MUSTCHECK;
/* privdrop_keep - have none but these, of those that there are, nor hand any
 * on.  Cannot be undone.  ERR_SYS, and proven as privdrop_apply is. */
int privdrop_keep(uint64_t capabilities, struct err *e) MUSTCHECK;

#endif
