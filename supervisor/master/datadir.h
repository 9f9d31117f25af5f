/*
 * datadir.h - DATA_DIR: there, owned by whom it should be, and ours alone
 *
 *	DATA_DIR	root's, mode 0711: front and workers pass through
 *	DATA_DIR/front	the front's, mode 0700
 *	DATA_DIR/links	the workers', mode 0711
 *
 * Started by an ordinary user, all are that user's.
 */
#ifndef MASTER_DATADIR_H
#define MASTER_DATADIR_H

#include "common/base.h"
#include "common/err.h"
#include "supervisor/master/users.h"

struct datadir {
	int lock_fd;        /* holds the lock for as long as it is open */
	char *path;         /* absolute, without links */
	bool has_artifacts; /* datadir_look: the front will have them there */
};

/*
 * datadir_open - lock, make what is missing, set owners and modes, move what
 * lies as in the layout of old
 *
 * artifacts is ARTIFACTS_DIR, "" when it is not set.  ERR_CONFLICT when
 * another server holds the lock (for FD_LOCK_PATIENCE_MS), ERR_POLICY when
 * somebody else than root could exchange a directory on the way although front
 * and workers are users of their own, else ERR_SYS or ERR_INVAL.  What is
 * inside a directory whose owner had to be changed keeps its owners; a warning
 * says so.  *d is changed only on success.
 */
int datadir_open(const char *path, const char *artifacts, const struct users *u,
    struct datadir *d, struct err *e) MUSTCHECK;
/* datadir_lock - only that, and only where there is one: ERR_NOTFOUND,
 * ERR_CONFLICT, ERR_SYS */
int datadir_lock(const char *path, struct datadir *d, struct err *e) MUSTCHECK;
/*
 * datadir_look - the checks of datadir_open; nothing is made or changed
 *
 * *d has the path, and lock_fd, without the lock, or -1 where there is no such
 * directory yet; this also with ERR_CONFLICT: another server holds it.
 */
int datadir_look(const char *path, const char *artifacts, const struct users *u,
    struct datadir *d, struct err *e) MUSTCHECK;
void datadir_close(struct datadir *d);
/* datadir_instance - a name derived from an absolute path, the same at each
 * start: "d" and 16 hexadecimal digits */
#define DATADIR_INSTANCE_MAX 18
void datadir_instance(const char *path, char out[DATADIR_INSTANCE_MAX]);

#endif
