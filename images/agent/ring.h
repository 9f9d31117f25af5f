/*
 * ring.h - a run's log as far as it is not acknowledged yet
 *
 * Bytes have offsets in the whole log; the ring holds [start, end).  Memory
 * grows in three steps up to max, so that a short run costs a kilobyte.  The
 * large steps are kept out of forked children (MADV_DONTFORK): a fork of the
 * agent must not copy the page tables of megabytes of output.
 */
#ifndef AGENT_RING_H
#define AGENT_RING_H

#include <sys/uio.h>

#include "common/base.h"

struct ring {
	uint8_t *mem;
	size_t cap;
	size_t max;
	uint64_t start;
	uint64_t end;
};

void ring_init(struct ring *r, size_t max);
void ring_clear(struct ring *r); /* frees; the offsets stay */
static inline size_t
ring_used(const struct ring *r)
{
	return (size_t)(r->end - r->start);
}
static inline size_t
ring_room(const struct ring *r)
{
	return r->max - ring_used(r);
}
/* ring_append - n <= ring_room */
void ring_append(struct ring *r, const void *p, size_t n);
/* ring_view - where the bytes [off, off + n) live, in one or two pieces;
 * start <= off and off + n <= start + max.  Beyond end it is space to write
 * in, which ring_commit then takes in.  Returns the number of pieces. */
int ring_view(struct ring *r, uint64_t off, size_t n, struct iovec iov[2]);
void ring_commit(struct ring *r, size_t n);
/* ring_put, ring_get - copy to or from [off, off + n), as for ring_view */
void ring_put(struct ring *r, uint64_t off, const void *p, size_t n);
void ring_get(struct ring *r, uint64_t off, void *p, size_t n);
/* ring_release - forget all before off; off <= end */
void ring_release(struct ring *r, uint64_t off);

#endif
