/*
 * backup.h - all that a server's history is, while it goes on
 *
 *	backup_open	what the database says at one moment, and the logs of
 *			runs that were under way then
 *	backup_copy	the database, into a directory of the backup's own
 *	backup_next	each file that a row of the copy refers to
 *	backup_finish	the copy, when all files are known
 *
 * By another process than the server's, as the user that owns its directory:
 * the server's loop is not concerned.  Its writer is kept waiting for as long
 * as the logs of unfinished runs are opened, some milliseconds.
 *
 * A file that went in between, because its run was deleted or gave up its
 * files, is said to be given up by the copy.  One that is not what its row or
 * its name says (too short, not there, another digest) is damaged: it is left
 * out, and lost in the copy; what the database says is lost is left out, too.
 *Runs that had not ended at that moment end as lost in a server that is begun
 *with the copy: whether they were done afterwards it cannot know, and no
 *program is run twice.  What they were asked to run, environment and all, is
 *not in the copy.
 */
#ifndef STORE_BACKUP_H
#define STORE_BACKUP_H

#include "common/base.h"
#include "common/err.h"

struct backup;

#define BACKUP_NAME_BYTES 160

/* A file of the server's directory; fd is the caller's from now on. */
struct backup_file {
	char name[BACKUP_NAME_BYTES]; /* "spool/ab/...", "artifacts/1/..." */
	int fd;
	uint64_t size;
};

typedef void (*backup_told)(uint64_t done, uint64_t all, void *arg);

/* backup_open - artifacts "": below dir.  ERR_NOTFOUND: there is no database;
 * ERR_CONFLICT: another backup is under way; ERR_WRONG_STATE: the database is
 * of another version than this program */
int backup_open(const char *dir, const char *artifacts, struct backup **out,
    struct err *e) MUSTCHECK;
/* backup_copy - ERR_DISK_FULL: it would leave less than reserve on the disk of
 * the server's directory */
int backup_copy(struct backup *b, uint64_t reserve, backup_told told, void *arg,
    struct err *e) MUSTCHECK;
/* backup_next - 1: *f; 0: there are no more */
int backup_next(
    struct backup *b, struct backup_file *f, struct err *e) MUSTCHECK;
/* backup_finish - the database, checked; its fd is the caller's */
int backup_finish(
    struct backup *b, struct backup_file *f, struct err *e) MUSTCHECK;
uint64_t backup_missing(const struct backup *b); /* files that went */
/* backup_on_damaged - who is told of each damaged file, by its name; inside
 * backup_next.  backup_damaged - how many there were */
typedef void (*backup_damaged_cb)(const char *name, const char *why, void *arg);
void backup_on_damaged(struct backup *b, backup_damaged_cb cb, void *arg);
uint64_t backup_damaged(const struct backup *b);
void backup_close(struct backup *b); /* NULL is fine; leaves nothing behind */

/* backup_sweep - what one that was killed left in dir; if none is made there */
void backup_sweep(const char *dir);

/*
 * backup_check_unpacked - a database out of a backup, in dir, can be this
 * program's: it is whole and not of a newer version
 *
 * instance, of size bytes, is what it says whose it is; "" when nothing.
 */
int backup_check_unpacked(
    const char *dir, char *instance, size_t size, struct err *e) MUSTCHECK;
/* backup_lose_unpacked - it is brought up to this program's version, and says
 * that these artifacts are lost */
struct backup_blob {
	uint64_t tenant;
	uint8_t sha256[32];
};
int backup_lose_unpacked(const char *dir, const struct backup_blob *blobs,
    size_t n, struct err *e) MUSTCHECK;

#endif
