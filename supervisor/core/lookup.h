/*
 * lookup.h - a run by its id, whether it goes on or has ended long ago
 *
 * What belongs to another tenant is not found, in the same words as what never
 * was.
 */
#ifndef CORE_LOOKUP_H
#define CORE_LOOKUP_H

#include "common/base.h"
#include "common/err.h"
#include "common/principal.h"
#include "common/uuid.h"
#include "supervisor/core/logs.h"
#include "supervisor/store/store.h"

struct core;
struct lookup;
struct run;

/* What was found; valid until the lookup is closed. */
struct lookup_found {
	struct run *run; /* NULL: it has ended */
	const struct store_run *row;
	struct log_view *view;
};
/* rc 0 with f, or ERR_NOTFOUND, ERR_DB, ERR_LIMIT, ERR_SYS (its log cannot be
 * opened) with why. */
typedef void (*lookup_cb)(
    int rc, const struct lookup_found *f, const struct err *why, void *arg);

/* lookup_check_output - ERR_GONE: its log was evicted (store.h);
 * ERR_OUTPUT_LOST: it is short, or not there */
int lookup_check_output(const struct lookup_found *f, struct err *e) MUSTCHECK;
/* lookup_open - cb comes later, never inside; then *f stays until
 * lookup_close, which may be called at any time
 *
 *	artifacts_from	where the row's page of artifacts is to begin */
struct lookup *lookup_open(struct core *c, const struct principal *who,
    const struct uuid *run, uint32_t artifacts_from, lookup_cb cb, void *arg);
/* lookup_open_merged - the digest of its log has both outputs as they came
 * (log_digest.h), as that of who waits for execute_code; a long log is walked
 * for it */
struct lookup *lookup_open_merged(struct core *c, const struct principal *who,
    const struct uuid *run, lookup_cb cb, void *arg);
void lookup_close(struct lookup *l); /* NULL too */

#endif
