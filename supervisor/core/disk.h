/*
 * disk.h - room for what runs leave: is there any, and who gives some up
 *
 * Below DISK_RESERVE_MB (or DISK_RESERVE_INODES) on the disk of the data or of
 * the artifacts nothing new is admitted, so that the database can go on.
 */
#ifndef CORE_DISK_H
#define CORE_DISK_H

#include "common/base.h"
#include "common/err.h"
#include "supervisor/store/store.h"

struct conf;
struct disk;

/* disk_new - both are kept by pointer */
struct disk *disk_new(const struct conf *conf, struct store *store);
void disk_free(struct disk *d); /* NULL is fine */
/* disk_check - ERR_DISK_FULL, in words for clients, while there is less room
 * than the reserve; looks each time */
int disk_check(const struct disk *d, struct err *e) MUSTCHECK;

#endif
