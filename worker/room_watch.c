#include "worker/room_watch.h"

#include "common/clock.h"
#include "common/room.h"

static enum room_level
look(const struct room_watch *w, int fd)
{
	struct room r;

	/* The write itself will say what is wrong. */
	if (room_read(fd, &r) != 0)
		return ROOM_FREE;
	if (room_is_below(&r, w->reserve_bytes / 2, w->reserve_inodes / 2))
		return ROOM_OUT;
	return room_is_below(&r, w->reserve_bytes, w->reserve_inodes) ?
	    ROOM_LOW :
	    ROOM_FREE;
}

enum room_level
room_watch_level(struct room_watch *w, int fd, size_t n)
{
	uint64_t now;

	if (w == NULL || (w->reserve_bytes == 0 && w->reserve_inodes == 0))
		return ROOM_FREE;
	now = clock_mono_ms();
	w->unseen += n;
	if (w->unseen < ROOM_WATCH_BYTES && now < w->look_ms)
		return w->level;
	w->unseen = 0;
	w->look_ms = now + ROOM_WATCH_MS;
	w->level = look(w, fd);
	return w->level;
}
