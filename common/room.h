/* room.h - how much room a file system has for us. */
#ifndef COMMON_ROOM_H
#define COMMON_ROOM_H

#include "common/base.h"

struct room {
	uint64_t bytes; /* UINT64_MAX: no limit is known */
	uint64_t inodes;
};

/* room_read - of the file system that fd is on, as users other than root have
 * it; 0, or -1 with errno */
int room_read(int fd, struct room *out) MUSTCHECK;
/* room_is_below - less than either is free */
static inline bool
room_is_below(const struct room *r, uint64_t bytes, uint64_t inodes)
{
	return r->bytes < bytes || r->inodes < inodes;
}

#endif
