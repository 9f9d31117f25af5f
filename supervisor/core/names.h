/*
 * names.h - who holds (tenant, identifier)
 *
 * At most one sandbox does, from its beginning until it is not wanted any
 * more: then the name is free at once, though the container is still being
 * removed.  Every call on an identifier finds the holder here or takes the
 * name for a new sandbox in the same turn of the loop, so no two calls can
 * both find it free.
 */
#ifndef CORE_NAMES_H
#define CORE_NAMES_H

#include "common/base.h"
#include "common/hashmap.h"
#include "common/principal.h"

struct names { /* all zeros: nobody holds any */
	struct hashmap map;
};

struct name_hold { /* part of a sandbox */
	struct hash_entry entry;
	struct tenant_id tenant;
	const char *identifier; /* the sandbox's, while it holds the name */
	bool is_held;
};

void names_clear(struct names *n);
/* names_find - the holder's part, or NULL */
struct name_hold *names_find(
    const struct names *n, struct tenant_id tenant, const char *identifier);
/* names_take - the name must be free: find out first */
void names_take(struct names *n, struct name_hold *h, struct tenant_id tenant,
    const char *identifier);
/* names_leave - nothing happens if it holds none */
void names_leave(struct names *n, struct name_hold *h);

#endif
