#include "supervisor/core/disk.h"

#include "common/conf.h"
#include "common/xmalloc.h"

struct disk {
	const struct conf *conf;
	struct store *store;
};

struct disk *
disk_new(const struct conf *conf, struct store *store)
{
	struct disk *d = xcalloc(1, sizeof(*d));

	d->conf = conf;
	d->store = store;
	return d;
}

void
disk_free(struct disk *d)
{
	free(d);
}

/* ---- is there any */

static uint64_t
reserve_bytes(const struct disk *d)
{
	return (uint64_t)conf_int(d->conf, CONF_DISK_RESERVE_MB) << 20;
}

static uint64_t
reserve_inodes(const struct disk *d)
{
	return (uint64_t)conf_int(d->conf, CONF_DISK_RESERVE_INODES);
}

static int
room_check(
    const struct disk *d, const struct room *r, const char *what, struct err *e)
{
	if (r->bytes < reserve_bytes(d))
		return err_set(e, ERR_DISK_FULL,
		    "the server's disk is full: %llu MiB are free for %s, and "
		    "%llu MiB stay in reserve (DISK_RESERVE_MB): delete old "
		    "runs, or free space there",
		    (unsigned long long)(r->bytes >> 20), what,
		    (unsigned long long)(reserve_bytes(d) >> 20));
	if (r->inodes < reserve_inodes(d))
		return err_set(e, ERR_DISK_FULL,
		    "the server's disk is full: %llu inodes are free for %s, "
		    "and %llu stay in reserve (DISK_RESERVE_INODES): delete "
		    "old runs, or files there",
		    (unsigned long long)r->inodes, what,
		    (unsigned long long)reserve_inodes(d));
	return 0;
}

int
disk_check(const struct disk *d, struct err *e)
{
	struct store_room room;

	store_room(d->store, &room);
	if (room_check(d, &room.data, "DATA_DIR", e) != 0)
		return e->code;
	return room_check(d, &room.artifacts, "ARTIFACTS_DIR", e);
}
