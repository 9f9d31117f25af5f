/*
 * images.h - pictures that a run left, for the result of its call
 *
 * The first small ones: of which name and size are those of a picture, and
 * whose bytes say so (picture.h).  They are read by a thread from the stored
 * artifacts, after the run's end.
 */
#ifndef TOOLS_IMAGES_H
#define TOOLS_IMAGES_H

#include "common/base.h"
#include "common/principal.h"
#include "supervisor/store/store.h"

#define IMAGES_MAX 4
#define IMAGES_BYTES_MAX (1u << 20) /* of all, before they are base64 */
#define IMAGES_LOOKED_AT 8          /* files of a run that may be pictures */

struct core;
struct images;

struct images_item {
	char *name;       /* its path below /artifacts */
	const char *type; /* image/png, say */
	uint8_t *data;
	size_t n;
};

/* images_read - NULL: there is nothing to read.  Else cb is called once, never
 * inside, and then they are there, perhaps none.  row is looked at only in
 * this call. */
struct images *images_read(struct core *core, struct tenant_id tenant,
    const struct store_run *row, void (*cb)(void *arg), void *arg);
size_t images_count(const struct images *images); /* NULL: 0 */
const struct images_item *images_get(const struct images *images, size_t i);
/* images_free - at any time, and cb is not called any more; NULL is fine */
void images_free(struct images *images);

#endif
