#include "worker/idmap.h"

#include "common/xmalloc.h"

#define IDMAP_SIZE_MIN 16

/* The front gives numbers out in sequence: spread them (Fibonacci hashing). */
static size_t
idmap_home(const struct idmap *m, uint64_t key)
{
	return (size_t)((key * UINT64_C(0x9e3779b97f4a7c15)) >> 32) &
	    (m->size - 1);
}

/* The slot that has key, or the free one where it would go. */
static size_t
idmap_find(const struct idmap *m, uint64_t key)
{
	size_t i = idmap_home(m, key);

	while (m->slots[i].value != NULL && m->slots[i].key != key)
		i = (i + 1) & (m->size - 1);
	return i;
}

static void
idmap_grow(struct idmap *m)
{
	struct idmap old = *m;

	m->size = old.size == 0 ? IDMAP_SIZE_MIN : old.size * 2;
	m->slots = xcalloc(m->size, sizeof(*m->slots));
	for (size_t i = 0; i < old.size; i++)
		if (old.slots[i].value != NULL)
			m->slots[idmap_find(m, old.slots[i].key)] =
			    old.slots[i];
	free(old.slots);
}

void
idmap_clear(struct idmap *m)
{
	free(m->slots);
	memset(m, 0, sizeof(*m));
}

void *
idmap_get(const struct idmap *m, uint64_t key)
{
	return m->size == 0 ? NULL : m->slots[idmap_find(m, key)].value;
}

void
idmap_put(struct idmap *m, uint64_t key, void *value)
{
	size_t i;

	if (m->used * 2 >= m->size)
		idmap_grow(m);
	i = idmap_find(m, key);
	if (m->slots[i].value == NULL)
		m->used++;
	m->slots[i].key = key;
	m->slots[i].value = value;
}

void
idmap_del(struct idmap *m, uint64_t key)
{
	size_t gap, i, home;

	if (m->size == 0)
		return;
	gap = idmap_find(m, key);
	if (m->slots[gap].value == NULL)
		return;
	m->slots[gap].value = NULL;
	m->used--;
	/* Close the gap: move back what was pushed past it. */
	for (i = (gap + 1) & (m->size - 1); m->slots[i].value != NULL;
	     i = (i + 1) & (m->size - 1)) {
		home = idmap_home(m, m->slots[i].key);
		if (((i - home) & (m->size - 1)) < ((i - gap) & (m->size - 1)))
			continue;
		m->slots[gap] = m->slots[i];
		m->slots[i].value = NULL;
		gap = i;
	}
}

void *
idmap_each(const struct idmap *m, size_t *at)
{
	while (*at < m->size) {
		void *value = m->slots[(*at)++].value;

		if (value != NULL)
			return value;
	}
	return NULL;
}
