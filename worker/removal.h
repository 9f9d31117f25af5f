/*
 * removal.h - a box is taken away, and what its carrier keeps of it
 *
 * Of one that is not seen by this worker only the name is known, and under
 * that name may be another's: then it is looked at first, and left alone
 * unless it bears the uuid.  A box that is gone already is removed well.
 */
#ifndef WORKER_REMOVAL_H
#define WORKER_REMOVAL_H

#include "common/base.h"
#include "common/err.h"
#include "common/uuid.h"
#include "worker/backend.h"
#include "worker/link/carrier.h"

enum removal_sight {
	REMOVAL_SEEN,  /* the handle is that box's for certain */
	REMOVAL_UNSEEN /* look whether it is */
};

/* removal_start - cb once, never inside this call; negative with why when the
 * box is still there */
void removal_start(struct backend *b, struct carrier *c,
    const struct box_identity *box, const struct backend_handle *h,
    enum removal_sight sight, backend_done_cb cb, void *arg);

#endif
