#include "images/agent/ring.h"

#include <sys/mman.h>

#include "common/exit.h"
#include "common/log.h"
#include "common/xmalloc.h"

#define RING_SMALL 1024
#define RING_MIDDLE 65536

void
ring_init(struct ring *r, size_t max)
{
	memset(r, 0, sizeof(*r));
	r->max = max;
}

static void
mem_free(uint8_t *mem, size_t cap)
{
	if (cap >= RING_MIDDLE)
		(void)munmap(mem, cap);
	else
		free(mem);
}

static uint8_t *
mem_new(size_t cap)
{
	void *p;

	if (cap < RING_MIDDLE)
		return xmalloc(cap);
	p = mmap(NULL, cap, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
	    -1, 0);
	if (p == MAP_FAILED)
		fatal(EXIT_MEMORY, "out of memory for %zu bytes of a log", cap);
	(void)madvise(p, cap, MADV_DONTFORK);
	return p;
}

void
ring_clear(struct ring *r)
{
	mem_free(r->mem, r->cap);
	r->mem = NULL;
	r->cap = 0;
	r->start = r->end;
}

/* The pieces of [off, off + n) in memory of the size cap. */
static int
pieces(uint8_t *mem, size_t cap, uint64_t off, size_t n, struct iovec iov[2])
{
	size_t at = (size_t)(off % cap);
	size_t first = cap - at < n ? cap - at : n;

	iov[0].iov_base = mem + at;
	iov[0].iov_len = first;
	iov[1].iov_base = mem;
	iov[1].iov_len = n - first;
	return first == n ? 1 : 2;
}

static size_t
step_for(const struct ring *r, size_t need)
{
	if (need <= RING_SMALL && RING_SMALL < r->max)
		return RING_SMALL;
	if (need <= RING_MIDDLE && RING_MIDDLE < r->max)
		return RING_MIDDLE;
	return r->max;
}

static void
copy_in(uint8_t *mem, size_t cap, uint64_t off, const uint8_t *p, size_t n)
{
	struct iovec iov[2];

	(void)pieces(mem, cap, off, n, iov);
	memcpy(iov[0].iov_base, p, iov[0].iov_len);
	memcpy(iov[1].iov_base, p + iov[0].iov_len, iov[1].iov_len);
}

/* Space for need bytes from start on; what is there moves along. */
static void
ring_grow(struct ring *r, size_t need)
{
	struct iovec iov[2];
	uint8_t *mem;
	size_t cap;
	int n;

	if (need > r->max)
		fatal(EXIT_BUG, "log ring: %zu bytes of %zu", need, r->max);
	cap = step_for(r, need);
	mem = mem_new(cap);
	if (ring_used(r) > 0) {
		uint64_t off = r->start;

		n = pieces(r->mem, r->cap, r->start, ring_used(r), iov);
		for (int i = 0; i < n; i++) {
			copy_in(mem, cap, off, iov[i].iov_base, iov[i].iov_len);
			off += iov[i].iov_len;
		}
	}
	mem_free(r->mem, r->cap);
	r->mem = mem;
	r->cap = cap;
}

int
ring_view(struct ring *r, uint64_t off, size_t n, struct iovec iov[2])
{
	size_t need = (size_t)(off - r->start) + n;

	if (need > r->cap || r->mem == NULL)
		ring_grow(r, need);
	return pieces(r->mem, r->cap, off, n, iov);
}

void
ring_commit(struct ring *r, size_t n)
{
	r->end += n;
}

void
ring_put(struct ring *r, uint64_t off, const void *p, size_t n)
{
	struct iovec iov[2];

	(void)ring_view(r, off, n, iov);
	copy_in(r->mem, r->cap, off, p, n);
}

void
ring_get(struct ring *r, uint64_t off, void *p, size_t n)
{
	struct iovec iov[2];

	(void)ring_view(r, off, n, iov);
	memcpy(p, iov[0].iov_base, iov[0].iov_len);
	memcpy((uint8_t *)p + iov[0].iov_len, iov[1].iov_base, iov[1].iov_len);
}

void
ring_append(struct ring *r, const void *p, size_t n)
{
	ring_put(r, r->end, p, n);
	r->end += n;
}

void
ring_release(struct ring *r, uint64_t off)
{
	if (off > r->start)
		r->start = off;
}
