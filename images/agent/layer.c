/*
 * layer.c - when to count, and what follows
 *
 *	LOOKING		statvfs each pause_ms while programs run, and once after
 *	   | a quarter of what is left is gone, or COUNT_ANYWAY_MS passed
 *	COUNTING	in slices
 *	   | over what is allowed: LAYER_FULL
 *	SETTLING	a moment later, when what ran is dead: counted again.
 *			That much is allowed from now on, or it is LAYER_LOST
 *
 * Looks are as frequent as it takes to see a fast writer in time: a limit of
 * 128 MiB is looked at every 50 ms, one of 10 GiB each second, and while much
 * is being written every LOOK_MIN_MS.  Where a program follows another, its
 * first look comes after one LOOK_FIRSTth of that; most are over by then.  The
 * look behind an end waits as long after the one before, so that a hundred
 * programs in a row have a few looks, and not a hundred.
 */
#include "images/agent/layer.h"

#include <sys/statvfs.h>
#include <time.h>

#include "common/clock.h"

#define MIB (UINT64_C(1) << 20)
#define LOOK_MIN_MS 10
#define LOOK_MAX_MS 1000
#define LOOK_SMALL_MS 50
#define LOOK_FIRST 16 /* of the longest pause, the first is one in so many */
#define WRITER_BYTES_PER_MS (2 * MIB) /* the fastest, roughly */
#define STEP_MIN_BYTES (4 * MIB)
#define STEP_MIN_INODES 500
#define COUNT_ANYWAY_MS 30000
#define SLICE_US 3000
#define SETTLE_MS 20
/* A change time is the kernel's clock tick, which lags. */
#define TICK_NS INT64_C(1000000000)
#define SLACK_BYTES MIB
#define SLACK_INODES 100
/* Over twice its limit and this much a sandbox is lost. */
#define LOST_BYTES (256 * MIB)
#define LOST_INODES 20000

static int64_t
read_clock_ns(clockid_t id)
{
	struct timespec ts;

	if (clock_gettime(id, &ts) == -1)
		return 0;
	return ts.tv_sec * INT64_C(1000000000) + ts.tv_nsec;
}

static int64_t
wall_offset_ns(void)
{
	return read_clock_ns(CLOCK_REALTIME) - read_clock_ns(CLOCK_BOOTTIME);
}

static bool
is_limited(const struct layer *l)
{
	return l->max.bytes != 0 || l->max.inodes != 0;
}

static uint64_t
less(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

static uint64_t
larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* ---- what is free below */

static bool
look_below(const struct layer *l, struct layer_use *out)
{
	struct statvfs st;

	if (statvfs(l->root, &st) == -1)
		return false;
	out->bytes = (uint64_t)st.f_bfree * st.f_frsize;
	out->inodes = (uint64_t)st.f_ffree; /* 0: it counts none */
	return true;
}

/* How much free space has to be gone before a count. */
static struct layer_use
step_of(const struct layer *l)
{
	return (struct layer_use){
	    .bytes = larger(
		less(l->allowed.bytes, l->used.bytes) / 4, STEP_MIN_BYTES),
	    .inodes = larger(
		less(l->allowed.inodes, l->used.inodes) / 4, STEP_MIN_INODES)};
}

static uint32_t
longest_pause(const struct layer *l)
{
	uint64_t ms = l->max.bytes / WRITER_BYTES_PER_MS;

	if (l->max.bytes == 0 || ms > LOOK_MAX_MS)
		return LOOK_MAX_MS;
	return ms < LOOK_SMALL_MS ? LOOK_SMALL_MS : (uint32_t)ms;
}

/* So short a time that nobody has written much since. */
static uint64_t
first_pause(const struct layer *l)
{
	return larger(LOOK_MIN_MS, longest_pause(l) / LOOK_FIRST);
}

/* ---- counting */

static struct layer_use
lost_at(const struct layer *l)
{
	return (struct layer_use){.bytes = l->max.bytes == 0 ?
		UINT64_MAX :
		2 * l->max.bytes + LOST_BYTES,
	    .inodes = l->max.inodes == 0 ? UINT64_MAX :
					   2 * l->max.inodes + LOST_INODES};
}

static bool
is_over(const struct layer_count *c, struct layer_use limit)
{
	return c->bytes > limit.bytes || c->inodes > limit.inodes;
}

static void
begin_count(struct layer *l, struct layer_use free_now)
{
	struct layer_use stop = lost_at(l);
	int64_t stepped = wall_offset_ns() - l->boot_offset_ns;

	/* A wall clock that was set back: what is new looks older. */
	layer_count_begin(&l->count, l->root,
	    stepped < 0 ? l->since_ns + stepped : l->since_ns, stop.bytes,
	    stop.inodes);
	l->spare = free_now;
	l->counted_ms = clock_mono_ms();
}

static uint64_t
more(uint64_t used, uint64_t slack, uint64_t max)
{
	return max == 0 ? UINT64_MAX : used + slack;
}

/* The sandbox is counted.  What it has over its limit, and a little more, is
 * allowed from now on, so that a program can look at it and delete it. */
static enum layer_verdict
settle(struct layer *l)
{
	l->settles = false;
	if (is_over(&l->count, lost_at(l)))
		return LAYER_LOST;
	l->allowed = l->max;
	if (l->max.bytes == 0 || l->used.bytes > l->max.bytes)
		l->allowed.bytes =
		    more(l->used.bytes, SLACK_BYTES, l->max.bytes);
	if (l->max.inodes == 0 || l->used.inodes > l->max.inodes)
		l->allowed.inodes =
		    more(l->used.inodes, SLACK_INODES, l->max.inodes);
	return LAYER_FINE;
}

static enum layer_verdict
say_full(struct layer *l, uint64_t now_ms)
{
	layer_count_drop(&l->count);
	l->settles = true;
	l->next_ms = now_ms + SETTLE_MS;
	return LAYER_FULL;
}

static enum layer_verdict
go_on_counting(struct layer *l, uint64_t now_ms, bool busy)
{
	bool whole = layer_count_slice(&l->count, clock_mono_us() + SLICE_US);

	if (busy && !l->settles && is_over(&l->count, l->allowed))
		return say_full(l, now_ms);
	if (!whole)
		return LAYER_FINE;
	l->used.bytes = l->count.bytes;
	l->used.inodes = l->count.inodes;
	/* Half of the time at most goes into counting. */
	now_ms = clock_mono_ms();
	l->next_ms = now_ms + larger(now_ms - l->counted_ms, LOOK_MIN_MS);
	l->pause_ms = LOOK_MIN_MS;
	return settle(l);
}

/* ---- looking */

static void
look(struct layer *l, uint64_t now_ms)
{
	struct layer_use now, step = step_of(l), gone;

	l->owes_look = false;
	if (!look_below(l, &now))
		return;
	l->looked_ms = now_ms;
	l->spare.bytes = larger(l->spare.bytes, now.bytes);
	l->spare.inodes = larger(l->spare.inodes, now.inodes);
	gone.bytes = less(l->spare.bytes, now.bytes);
	gone.inodes = less(l->spare.inodes, now.inodes);
	if (l->settles || gone.bytes >= step.bytes ||
	    gone.inodes >= step.inodes ||
	    now_ms - l->counted_ms >= COUNT_ANYWAY_MS) {
		begin_count(l, now);
		return;
	}
	if (gone.bytes > step.bytes / 4 || gone.inodes > step.inodes / 4)
		l->pause_ms = LOOK_MIN_MS;
	else
		l->pause_ms = l->pause_ms * 2 < longest_pause(l) ?
		    l->pause_ms * 2 :
		    longest_pause(l);
	l->next_ms = now_ms + l->pause_ms;
}

static void
on_begin(struct layer *l, uint64_t now_ms)
{
	l->pause_ms = LOOK_MIN_MS;
	/* A recent look serves for the begin: most programs are over before
	 * the next one. */
	if (now_ms - l->looked_ms < LOOK_MAX_MS && !l->settles && !l->owes_look)
		l->next_ms = now_ms + first_pause(l);
}

static void
on_end(struct layer *l, uint64_t now_ms)
{
	l->owes_look = true;
	l->next_ms =
	    l->settles ? now_ms : larger(now_ms, l->looked_ms + first_pause(l));
}

static bool
is_watched(const struct layer *l)
{
	return is_limited(l) && (l->was_busy || l->settles || l->owes_look);
}

enum layer_verdict
layer_tick(struct layer *l, uint64_t now_ms, bool busy)
{
	bool began = busy && !l->was_busy, ended = l->was_busy && !busy;

	if (!is_limited(l))
		return LAYER_FINE;
	l->was_busy = busy;
	if (layer_count_is_running(&l->count))
		return go_on_counting(l, now_ms, busy);
	if (began)
		on_begin(l, now_ms);
	if (ended)
		on_end(l, now_ms);
	if (now_ms >= l->next_ms && is_watched(l))
		look(l, now_ms);
	return LAYER_FINE;
}

uint64_t
layer_next_ms(const struct layer *l)
{
	if (layer_count_is_running(&l->count))
		return 0;
	return is_watched(l) ? l->next_ms : UINT64_MAX;
}

void
layer_init(struct layer *l, const char *root, struct layer_use max)
{
	memset(l, 0, sizeof(*l));
	l->root = root;
	l->max = max;
	l->allowed.bytes = max.bytes != 0 ? max.bytes : UINT64_MAX;
	l->allowed.inodes = max.inodes != 0 ? max.inodes : UINT64_MAX;
	l->since_ns = read_clock_ns(CLOCK_REALTIME) - TICK_NS;
	l->boot_offset_ns = wall_offset_ns();
	l->counted_ms = clock_mono_ms();
	l->pause_ms = LOOK_MIN_MS;
	layer_count_init(&l->count);
	(void)look_below(l, &l->spare);
}
