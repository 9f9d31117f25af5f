/*
 * removal.h - a box is taken away: files that would outlive it, the container,
 * and what is left of the way to its agent on this host
 *
 * The files are first: whoever waits for the container to be gone does not find
 * them then.
 */
#ifndef WORKER_REMOVAL_H
#define WORKER_REMOVAL_H

#include "common/base.h"
#include "worker/backend.h"

struct ways;

/* rc 0: nothing is left; else text says why it is. */
typedef void (*removal_cb)(int rc, const char *text, void *arg);

/* What is removed.  Without a handle (NULL) it is looked for by its name, which
 * may be another's: that is left alone. */
struct removal_wish {
	const struct box_identity *id;
	const char *name;
	const struct backend_handle *handle;
	struct backend_files files;
};
/* removal_start - what is gone already is removed well.  ways is kept by
 * pointer; cb comes exactly once, never inside this call. */
void removal_start(struct backend *backend, const struct ways *ways,
    const struct removal_wish *w, removal_cb cb, void *arg);

#endif
