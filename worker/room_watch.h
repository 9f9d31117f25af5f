/*
 * room_watch.h - the reserve of a disk that many files are written to
 *
 * The front keeps a part of the disk free for its database (DISK_RESERVE_MB).
 * What a sandbox prints does not pass the front, so whoever writes it looks by
 * himself: each ROOM_WATCH_BYTES, all files together, and each ROOM_WATCH_MS.
 * More than that, and one piece, is never written beyond the reserve unseen.
 */
#ifndef WORKER_ROOM_WATCH_H
#define WORKER_ROOM_WATCH_H

#include "common/base.h"

#define ROOM_WATCH_BYTES (1u << 20)
#define ROOM_WATCH_MS 100

enum room_level {
	ROOM_FREE,
	ROOM_LOW, /* below the reserve */
	ROOM_OUT  /* below half of it */
};

struct room_watch {
	uint64_t reserve_bytes; /* 0, and no inodes: never low */
	uint64_t reserve_inodes;
	uint64_t unseen; /* bytes since the last look */
	uint64_t look_ms;
	enum room_level level;
};

/* room_watch_level - n bytes are about to be written to fd; NULL: ROOM_FREE */
enum room_level room_watch_level(struct room_watch *w, int fd, size_t n);

#endif
