/*
 * disk.h - room for what runs leave: is there any, and who gives some up
 *
 * Below DISK_RESERVE_MB (or DISK_RESERVE_INODES) on the disk of the data or of
 * the artifacts nothing new is admitted, and workers end what prints
 * (worker/room_watch.h), so that the database can go on.  Before it comes to
 * that, below twice the reserve, and beyond the HISTORY_ quotas, the oldest
 * ended runs give up their files.
 */
#ifndef CORE_DISK_H
#define CORE_DISK_H

#include "common/base.h"
#include "common/err.h"
#include "supervisor/store/store.h"

struct bus;
struct conf;
struct disk;

/* disk_new - all are kept by pointer */
struct disk *disk_new(
    const struct conf *conf, struct store *store, struct bus *bus);
void disk_free(struct disk *d); /* before the bus; NULL is fine */
/* disk_check - ERR_DISK_FULL, in words for clients, while there is less room
 * than the reserve; looks each time, but for 20 ms after there was twice as
 * much */
int disk_check(struct disk *d, struct err *e) MUSTCHECK;
/* disk_tick - a few times a second: evict, if there is a reason */
void disk_tick(struct disk *d, uint64_t now_ms);
/* disk_count_again - files went without an eviction */
void disk_count_again(struct disk *d);
/* disk_usage - what ended runs have, as of a moment ago */
struct store_usage disk_usage(const struct disk *d);

#endif
