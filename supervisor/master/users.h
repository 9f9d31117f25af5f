/*
 * users.h - as whom the children run
 *
 * Started as root, the front and the workers run as RUN_AS_FRONT and
 * RUN_AS_WORKER, which must exist; with an empty value, as root.  So do the
 * envoys (common/envoy.h) that are wanted, as RUN_AS_KEYS and RUN_AS_COURIER.
 * Started by an ordinary user, all run as that.
 */
#ifndef MASTER_USERS_H
#define MASTER_USERS_H

#include "common/base.h"
#include "common/child.h"
#include "common/conf.h"
#include "common/privdrop.h"

struct users {
	/* By enum msg_role; with uid 0, and named root, as we are. */
	struct privdrop_user of[CHILD_ROLES];
	char *docker_host;
};

/* users_resolve - look the users up; says in the log which mode it is, and what
 * of the separation does not hold in it.  ERR_NOTFOUND for a user that is
 * missing, ERR_INVAL for one that is both or is root: nothing runs as root that
 * was meant not to.  ERR_POLICY for a front that may open the engine's
 * socket. */
int users_resolve(
    const struct conf *conf, struct users *u, struct err *e) MUSTCHECK;
void users_clear(struct users *u);
/* users_are_wanted - whether the settings want such a child at all */
bool users_are_wanted(const struct conf *conf, enum msg_role role);
/* users_conf_of - which settings such a child is given */
enum conf_who users_conf_of(enum msg_role role);
/* users_are_apart - whether the front is another user than the workers, and
 * neither is the user that everything belongs to */
bool users_are_apart(const struct users *u);
/*
 * users_find - the user for a new child; false, and *out is left alone: as we
 * are
 *
 * A worker gets the group of each engine socket there is now: an engine that
 * was installed later counts from the next start on.
 */
bool users_find(
    const struct users *u, enum msg_role role, struct privdrop_user *out);

#endif
