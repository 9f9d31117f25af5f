/*
 * box_map.h - where a box is found: by who uses it, by what it is, and by how
 * the backend calls it
 *
 * The three have lives of their own.  The identity is the box's for ever; the
 * sandbox that uses it is a claim; the handle is known when the backend has
 * shown the box.
 */
#ifndef WORKER_BOX_MAP_H
#define WORKER_BOX_MAP_H

#include "common/base.h"
#include "common/hashmap.h"
#include "worker/backend.h"

/* Zeroed is empty; box_map_clear frees the tables. */
struct box_map {
	struct hashmap by_sandbox;
	struct hashmap by_uuid;
	struct hashmap by_handle;
};

/* A box's place in it, embedded in the box.  sandbox, tenant and id are the
 * caller's to set before box_map_enter and stay as they are, the rest is
 * box_map.c's. */
struct box_place {
	uint64_t sandbox; /* the front's number, as its tenant's */
	uint64_t tenant;
	struct box_identity id;
	struct backend_handle handle;
	bool entered; /* in the first two maps */
	bool seen;    /* in the third */
	struct hash_entry by_sandbox;
	struct hash_entry by_uuid;
	struct hash_entry by_handle;
};

void box_map_clear(struct box_map *m);
void box_map_enter(struct box_map *m, struct box_place *p);
/* box_map_leave - its number and its UUID may be used anew; nothing if it is
 * not there */
void box_map_leave(struct box_map *m, struct box_place *p);
/* box_map_see - the backend showed it: this is its handle from now on, and
 * changes under it are its */
void box_map_see(
    struct box_map *m, struct box_place *p, const struct backend_handle *h);
/* box_map_unsee - changes are its no more; the handle stays */
void box_map_unsee(struct box_map *m, struct box_place *p);

/* NULL: none. */
struct box_place *box_map_by_sandbox(const struct box_map *m, uint64_t sandbox);
struct box_place *box_map_by_uuid(
    const struct box_map *m, const struct uuid *uuid);
struct box_place *box_map_by_handle(
    const struct box_map *m, const struct backend_handle *h);
/* box_map_each - of all that are entered; fn may let it leave, no other */
void box_map_each(
    struct box_map *m, void (*fn)(struct box_place *p, void *arg), void *arg);

#endif
