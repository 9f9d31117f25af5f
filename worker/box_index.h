/*
 * box_index.h - by what a box is found: the front's number of its sandbox, its
 * UUID, and the backend's handle while it runs
 */
#ifndef WORKER_BOX_INDEX_H
#define WORKER_BOX_INDEX_H

#include "common/base.h"
#include "common/hashmap.h"
#include "common/uuid.h"
#include "worker/backend.h"

/* For others to read, for box_index.c to write; {0} is empty. */
struct box_index {
	struct hashmap by_sandbox;
	struct hashmap by_uuid;
	struct hashmap by_handle;
};

/* A box's, and a part of it. */
struct box_place {
	uint64_t sandbox;
	struct uuid uuid;
	struct backend_handle handle; /* a name until the backend showed it */
	bool entered;                 /* found by sandbox and by UUID */
	bool seen;                    /* found by handle */
	struct hash_entry by_sandbox;
	struct hash_entry by_uuid;
	struct hash_entry by_handle;
};

/* box_index_enter - named: an id or a name of its container */
void box_index_enter(struct box_index *ix, struct box_place *p,
    uint64_t sandbox, const struct uuid *uuid, const char *named);
/* box_index_leave - its number and its UUID may be used anew */
void box_index_leave(struct box_index *ix, struct box_place *p);
/* box_index_see - the backend showed it: this is its handle from now on */
void box_index_see(
    struct box_index *ix, struct box_place *p, const struct backend_handle *h);
/* box_index_unsee - changes under its handle are its no more; the handle
 * stays */
void box_index_unsee(struct box_index *ix, struct box_place *p);

/* box_index_by_x - NULL: there is none */
struct box_place *box_index_by_sandbox(
    const struct box_index *ix, uint64_t sandbox);
struct box_place *box_index_by_uuid(
    const struct box_index *ix, const struct uuid *uuid);
struct box_place *box_index_by_handle(
    const struct box_index *ix, const struct backend_handle *h);

/* box_index_each - fn may make that one leave, and no other */
void box_index_each(struct box_index *ix,
    void (*fn)(struct box_place *p, void *arg), void *arg);
void box_index_clear(struct box_index *ix);

#endif
