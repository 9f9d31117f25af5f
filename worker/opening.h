/*
 * opening.h - a box on its way: counted, created, started, inspected
 *
 * The order of these steps, and the undoing of what was made when one of them
 * fails, is here; the backend knows the steps.  The ceilings of the box's
 * tenant and of all tenants are checked first (ceilings.h), against what the
 * engine shows and what is on its way beside it.
 */
#ifndef WORKER_OPENING_H
#define WORKER_OPENING_H

#include <sys/queue.h>

#include "common/base.h"
#include "common/err.h"
#include "worker/backend.h"

struct box_host;
struct box_opening;

/* All of a worker; opening.c's to write.  openings_init first. */
struct openings {
	const struct box_host *host;
	TAILQ_HEAD(, box_opening) all;
	unsigned int n;
	uint64_t nmade; /* openings that ended well */
};

struct box_opened {
	struct backend_container c; /* running, and the box that was wanted */
	uint32_t create_us;
	uint32_t start_us;
};
typedef void (*box_opened_cb)(
    int rc, const struct box_opened *o, const struct err *why, void *arg);

/* openings_init - host is kept by pointer */
void openings_init(struct openings *all, const struct box_host *host);

/* opening_start - a box of the same identity that runs already is taken as it
 * is: an earlier worker made it and its runs go on.  spec was checked by
 * policy_check and is copied, but for literals.  cb comes exactly once, never
 * inside this call. */
struct box_opening *opening_start(struct openings *all,
    const struct backend_spec *spec, box_opened_cb cb, void *arg);
/* opening_abandon - the box is not wanted any more: cb comes as soon as it is
 * safe, and nothing is left behind unless it comes with 0 */
void opening_abandon(struct box_opening *o);

#endif
