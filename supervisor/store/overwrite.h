/*
 * overwrite.h - a file's bytes go to the disk, and its inode stays
 *
 * ext4 without a journal writes a file's inode with each sync behind a write
 * in another tick of the clock, for its mtime: a round trip to the disk of its
 * own.  What takes the place of bytes that are on disk needs no inode.  So the
 * file's pages are written (sync_file_range), and then the disk's cache is
 * flushed, by the sync of a file without a name that has nothing to write.
 *
 * That is enough only where no block is new, and for this file system: the
 * caller knows the first (wal_vfs.c), overwrite_look finds out the second.
 */
#ifndef STORE_OVERWRITE_H
#define STORE_OVERWRITE_H

#include "common/base.h"

struct overwrite;

/* overwrite_look - at the file system of dir, while /sys can be read; before
 * there are threads */
void overwrite_look(const char *dir);
/* overwrite_new - for the file at path; NULL: nobody looked at its file system,
 * or this would not be enough there, or no quicker */
struct overwrite *overwrite_new(const char *path);
void overwrite_free(struct overwrite *o); /* NULL is fine */
/* overwrite_size - of the file, in bytes; 0: it is not known */
uint64_t overwrite_size(const struct overwrite *o);
/* overwrite_sync - 0, or -1: what was written may be lost */
int overwrite_sync(const struct overwrite *o) MUSTCHECK;

#endif
