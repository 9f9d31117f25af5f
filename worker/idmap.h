/*
 * idmap.h - from a number to an object
 *
 * Keys are the front's numbers of sandboxes and runs.  Values are never NULL
 * and stay their owner's.
 */
#ifndef WORKER_IDMAP_H
#define WORKER_IDMAP_H

#include "common/base.h"

struct idmap_slot {
	uint64_t key;
	void *value; /* NULL: free */
};
struct idmap {
	struct idmap_slot *slots;
	size_t size; /* a power of two, or 0 */
	size_t used;
};

void idmap_clear(struct idmap *m); /* frees; a zeroed one is empty */
void *idmap_get(const struct idmap *m, uint64_t key);
void idmap_put(struct idmap *m, uint64_t key, void *value); /* or replace */
void idmap_del(struct idmap *m, uint64_t key);
/* idmap_each - the value at *at or behind it; begin with *at = 0; NULL at the
 * end.  The map must not change meanwhile. */
void *idmap_each(const struct idmap *m, size_t *at);

#endif
