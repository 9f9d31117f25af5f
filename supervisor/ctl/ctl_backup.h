/* ctl_backup.h - sandboxctl backup, sandboxctl restore */
#ifndef CTL_BACKUP_H
#define CTL_BACKUP_H

#include "common/base.h"
#include "common/err.h"
#include "supervisor/ctl/ctl_call.h"

/*
 * ctl_backup_make - all of DATA_DIR that a server needs, in one archive, while
 * it goes on
 *
 * What is read is read as the user that owns it, so that whoever took the
 * front over leads root nowhere.  FILE is there when all of it is on disk, and
 * not before; until then it is FILE.partial.
 */
int ctl_backup_make(const struct ctl_call *c, struct err *e);
/*
 * ctl_backup_restore - the same back into DATA_DIR, where no server runs
 *
 * Unpacked and checked beside what is there, by the user it will belong to;
 * then it takes the place of what is there in one step.
 */
int ctl_backup_restore(const struct ctl_call *c, struct err *e);

#endif
