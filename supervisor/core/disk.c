#include "supervisor/core/disk.h"

#include "common/clock.h"
#include "common/conf.h"
#include "common/log.h"
#include "common/xmalloc.h"
#include "supervisor/core/bus.h"
#include "supervisor/core/run.h"
#include "supervisor/store/history.h"

/* When it is low and nobody had more to give. */
#define AGAIN_MS 5000

struct disk {
	const struct conf *conf;
	struct store *store;
	struct bus *bus;
	struct bus_member member;
	struct store_usage usage;
	bool is_due;      /* runs ended with files, or went with them */
	bool has_rows;    /* runs ended */
	uint64_t rows_ms; /* when they are looked at */
	bool is_evicting;
	bool is_in_vain; /* the last time nothing was freed */
	uint64_t again_ms;
	uint64_t ample_until_ms; /* there was twice the reserve, just now */
};

#define ROWS_MS 5000 /* between two looks at what rows have */
#define AMPLE_MS 20  /* nobody fills a reserve in such a time */

static void
on_bus(const struct bus_event *ev, void *arg)
{
	struct disk *d = arg;

	if (ev->kind == BUS_RUN_ENDED)
		d->has_rows = true;
	if (ev->kind == BUS_RUN_ENDED &&
	    (ev->run->row.spool_bytes > STORE_INLINE_MAX ||
		ev->run->row.artifacts_total > 0))
		d->is_due = true;
}

struct disk *
disk_new(const struct conf *conf, struct store *store, struct bus *bus)
{
	struct disk *d = xcalloc(1, sizeof(*d));

	d->conf = conf;
	d->store = store;
	d->bus = bus;
	d->is_due = true;
	bus_join(bus, &d->member, on_bus, d);
	return d;
}

void
disk_free(struct disk *d)
{
	if (d == NULL)
		return;
	bus_leave(d->bus, &d->member);
	free(d);
}

void
disk_count_again(struct disk *d)
{
	d->is_due = true;
}

struct store_usage
disk_usage(const struct disk *d)
{
	return d->usage;
}

/* ---- what there is */

static void
owe(struct room *r, uint64_t bytes)
{
	r->bytes -= bytes < r->bytes ? bytes : r->bytes;
}

/* What the WAL holds is no free room (supervisor/store/checkpoint.h). */
static void
look(const struct disk *d, struct store_room *out)
{
	store_room(d->store, out);
	owe(&out->data, out->owed_bytes);
	if (!out->is_apart)
		owe(&out->artifacts, out->owed_bytes);
}

/* ---- is it enough */

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

static bool
is_ample(const struct disk *d, const struct room *r)
{
	return r->bytes / 2 >= reserve_bytes(d) &&
	    r->inodes / 2 >= reserve_inodes(d);
}

int
disk_check(struct disk *d, struct err *e)
{
	const uint64_t now = clock_mono_ms();
	struct store_room room;

	if (now < d->ample_until_ms)
		return 0;
	look(d, &room);
	if (is_ample(d, &room.data) && is_ample(d, &room.artifacts))
		d->ample_until_ms = now + AMPLE_MS;
	if (room_check(d, &room.data, "DATA_DIR", e) != 0)
		return e->code;
	return room_check(d, &room.artifacts, "ARTIFACTS_DIR", e);
}

/* ---- who gives some up */

static uint64_t
missing(uint64_t is, uint64_t want)
{
	return is < want ? want - is : 0;
}

static void
wish_for_room(const struct disk *d, const struct room *r, struct store_quota *q)
{
	uint64_t bytes = missing(r->bytes, 2 * reserve_bytes(d));
	uint64_t files = missing(r->inodes, 2 * reserve_inodes(d));

	if (q->bytes < bytes)
		q->bytes = bytes;
	if (q->files < files)
		q->files = files;
}

static bool
is_wish(const struct store_quota *q)
{
	return q->bytes > 0 || q->files > 0;
}

static struct store_quota
quota(const struct disk *d, enum conf_key mb, enum conf_key files)
{
	return (struct store_quota){
	    .bytes = (uint64_t)conf_int(d->conf, mb) << 20,
	    .files = (uint64_t)conf_int(d->conf, files)};
}

static void
evicted_cb(
    int rc, const struct store_evicted *what, const struct err *why, void *arg)
{
	static struct log_limit limit;
	struct disk *d = arg;

	d->is_evicting = false;
	if (rc != 0) {
		d->is_in_vain = true;
		log_warn_limited(
		    &limit, "history is not evicted: %s", why->msg);
		return;
	}
	d->is_in_vain = what->files + what->forgotten == 0;
	d->usage = what->usage;
	if (what->runs > 0)
		log_info("the oldest %llu runs with files gave them up: "
			 "%llu files, %llu MiB",
		    (unsigned long long)what->runs,
		    (unsigned long long)what->files,
		    (unsigned long long)(what->bytes >> 20));
	if (what->forgotten > 0)
		log_info("the oldest %llu runs are forgotten: their rows had "
			 "%llu MiB, and the disk is short of room or all rows "
			 "have more than HISTORY_ROWS_MB",
		    (unsigned long long)what->forgotten,
		    (unsigned long long)(what->row_bytes >> 20));
}

/* Rows that have less than the reserve are not what fills the disk: they stay,
 * whoever does. */
static void
wish_for_rows(
    const struct disk *d, const struct room *r, struct store_evict_wish *w)
{
	w->rows = (uint64_t)conf_int(d->conf, CONF_HISTORY_ROWS_MB) << 20;
	w->free_rows = missing(r->bytes, 2 * reserve_bytes(d));
	w->least_rows = reserve_bytes(d);
}

static bool
rows_are_due(struct disk *d, uint64_t now_ms)
{
	if (!d->has_rows || now_ms < d->rows_ms)
		return false;
	d->has_rows = false;
	d->rows_ms = now_ms + ROWS_MS;
	return true;
}

void
disk_tick(struct disk *d, uint64_t now_ms)
{
	struct store_evict_wish wish = {
	    .tenant = quota(
		d, CONF_HISTORY_TENANT_MAX_MB, CONF_HISTORY_TENANT_MAX_FILES),
	    .all = quota(d, CONF_HISTORY_MAX_MB, CONF_HISTORY_MAX_FILES)};
	struct store_room room;
	bool is_low;

	history_bound(
	    d->store, (uint64_t)conf_int(d->conf, CONF_HISTORY_TEXT_MB) << 20);
	if (d->is_evicting)
		return;
	look(d, &room);
	wish_for_room(
	    d, &room.data, room.is_apart ? &wish.free_logs : &wish.free);
	wish_for_room(
	    d, &room.artifacts, room.is_apart ? &wish.free_blobs : &wish.free);
	wish_for_rows(d, &room.data, &wish);
	is_low = is_wish(&wish.free) || is_wish(&wish.free_logs) ||
	    is_wish(&wish.free_blobs);
	if (!d->is_due && !rows_are_due(d, now_ms) &&
	    !(is_low && (!d->is_in_vain || now_ms >= d->again_ms)))
		return;
	d->is_due = false;
	d->is_evicting = true;
	d->again_ms = now_ms + AGAIN_MS;
	store_evict(d->store, &wish, evicted_cb, d);
}
