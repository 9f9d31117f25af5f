/* download.h - a file that a run left, for its tenant's clients */
#ifndef CORE_DOWNLOAD_H
#define CORE_DOWNLOAD_H

#include "common/base.h"
#include "common/err.h"
#include "common/principal.h"

struct core;

struct download {
	int fd; /* the callback's to take: set it to -1 */
	uint64_t size;
	int64_t mtime_ns;
	uint8_t sha256[32];
};
/* rc 0 with d, or ERR_NOTFOUND, ERR_GONE (it gave room), ERR_OUTPUT_LOST,
 * ERR_DB, ERR_SYS with why. */
typedef void (*download_cb)(
    int rc, struct download *d, const struct err *why, void *arg);

/* download_open - cb comes later, once, perhaps inside when nothing can be
 * meant by these texts.  run: a UUID, or "latest": the newest run of the
 * identifier that left this path */
void download_open(struct core *c, const struct principal *who,
    const char *identifier, const char *run, const char *path, download_cb cb,
    void *arg);

#endif
