/*
 * identity.h - is the database still the file that was opened?
 *
 * Whoever removes or replaces the database, its WAL or its wal-index below a
 * running server makes all that is committed from then on invisible to the
 * next opening.  SQLite does not look; so this is asked after each commit,
 * before anybody is told of it, and now and then.
 *
 * The kernel tells of what happens to the files themselves (inotify), so after
 * a commit it is asked whether it has told anything, which is one call, not a
 * walk along three paths.  Of what happens to directories on the way nothing is
 * told: all that was committed is in them, wherever they are.
 */
#ifndef STORE_IDENTITY_H
#define STORE_IDENTITY_H

#include "common/base.h"
#include "common/err.h"

struct identity;

/* identity_new - of the files in dir as they are now; the database is open,
 * in WAL mode, and stays open */
int identity_new(
    const char *dir, struct identity **out, struct err *e) MUSTCHECK;
void identity_free(struct identity *id); /* NULL is fine */
/* identity_check - 0, or ERR_DAMAGED and what to do; from any thread */
int identity_check(const struct identity *id, struct err *e) MUSTCHECK;
/* identity_check_told - the same, when the kernel has told anything of the
 * files since the last call; from one thread */
int identity_check_told(const struct identity *id, struct err *e) MUSTCHECK;

#endif
