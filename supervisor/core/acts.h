/*
 * acts.h - what was done to the server, and by whom: one place to hear of it
 *
 * Administration, what is refused at the door, and the beginning and end of
 * what runs is told here and nowhere else; it becomes rows of the audit, a
 * chain in the database (store.h).  What is rare becomes a line of the log,
 * too, and so does each run that ended (LOG_RUNS).  No secret is ever part of
 * an act: of a call's arguments it has a digest.
 *
 * What is refused is counted: the first of an address, tenant and reason is
 * told at once, what follows within ACTS_PERIOD_MS as one, with how many there
 * were.  Refusals for a quota are told by their count only.  Beyond
 * ACTS_REFUSALS_MAX of them all others are "*" together; strangers cannot take
 * the places of tenants.
 */
#ifndef CORE_ACTS_H
#define CORE_ACTS_H

#include "common/base.h"
#include "common/principal.h"
#include "supervisor/core/bus.h"
#include "supervisor/store/store.h"

#define ACTS_PERIOD_MS 60000
#define ACTS_REFUSALS_MAX 64
#define ACTS_TEXT_MAX 200 /* bytes of a text that are kept */

struct acts;
struct conf;
struct event_base;

struct act {
	const char *what; /* "tenant.add" "token.revoke" "auth.failure" */
	const struct principal *who; /* NULL: nobody who is known */
	const char *origin;          /* an address; NULL: the server itself */
	const char *request_id;      /* NULL: none */
	const char *tenant;          /* it is about, NULL: none */
	const char *subject;         /* a token's id, a quota; NULL: none */
	const char *detail;          /* NULL: none */
	const uint8_t *digest;       /* SHA-256 of the arguments; NULL: none */
};

/* acts_new - also of the sandboxes and runs that end, from the core's bus */
struct acts *acts_new(struct event_base *base, const struct conf *conf,
    struct store *store, struct bus *bus);
void acts_free(struct acts *t); /* NULL is fine; flushes */
/* acts_tell - done is called when it is on disk, or is not */
void acts_tell(
    struct acts *t, const struct act *a, store_done_cb done, void *arg);
/* acts_note - one of many: it is on disk soon, and not in the log */
void acts_note(struct acts *t, const struct act *a);
/* acts_refused - a->detail is static text */
void acts_refused(struct acts *t, const struct act *a);
/* acts_count - the same, but not before the period is over */
void acts_count(struct acts *t, const struct act *a);
/* acts_flush - what was counted until now */
void acts_flush(struct acts *t);

#endif
