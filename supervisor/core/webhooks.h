/*
 * webhooks.h - whom tenants want told of their events
 *
 * A webhook is a URL, the kinds of events it is told of, and a secret that
 * what it is sent is signed with, by Standard Webhooks (webhook-signature v1).
 * It is told them in their order, each until it is taken.  Its place among its
 * tenant's events is a column of its row: what is behind that is the queue.  So
 * it may be told one twice, by the same id, and none is forgotten.
 *
 * What is not taken is tried again after WEBHOOK_FIRST_MS, then after twice as
 * long each time, up to WEBHOOK_MAX_MS.  When the waiting comes to what
 * WEBHOOK_KEEP_SECONDS says, events that are as old are lost to it.  How long
 * was waited is counted, not read from a clock: one that is set loses nothing.
 *
 * All are in memory, their secrets sealed (seal.h).
 */
#ifndef CORE_WEBHOOKS_H
#define CORE_WEBHOOKS_H

#include <sys/queue.h>

#include "common/base.h"
#include "common/err.h"
#include "common/event_kinds_gen.h"
#include "common/principal.h"
#include "common/uuid.h"
#include "supervisor/store/store.h"

#define WEBHOOK_SECRET_BYTES 32
#define WEBHOOK_SECRET_PREFIX "whsec_"
#define WEBHOOK_SECRET_TEXT_MAX 64 /* of it as a text, with its NUL */
#define WEBHOOK_SIGNATURE_MAX 64
#define WEBHOOK_FIRST_MS 1000
#define WEBHOOK_MAX_MS 3600000
#define WEBHOOK_TELL_MS 60000
#define WEBHOOK_WHY_MAX 300
#define WEBHOOK_KINDS_DEFAULT "run.ended,sandbox.removed,sandbox.lost"

struct rekeying;
struct webhooks;

/* webhooks.c writes it and nobody else does. */
struct webhook {
	struct webhooks *all;
	struct store_webhook row;
	uint64_t told_ms; /* when it was told that events are lost; 0: never */
	TAILQ_ENTRY(webhook) link;
};

/* Told inside the calls here. */
struct webhooks_ops {
	/* It is there, or is another one: sent from its place on, if it is
	 * enabled. */
	void (*on_changed)(struct webhook *w, void *arg);
	void (*on_gone)(struct webhook *w, void *arg); /* freed after it */
};

int webhooks_open(
    struct store *s, struct webhooks **out, struct err *e) MUSTCHECK;
/* webhooks_unlock - as secrets_unlock */
int webhooks_unlock(struct webhooks *all, const char *text, size_t n,
    struct rekeying *k, struct err *e) MUSTCHECK;
/* webhooks_on_change - from now on; those that are there are told at once */
void webhooks_on_change(
    struct webhooks *all, const struct webhooks_ops *ops, void *arg);

/* webhooks_next - of a tenant, the oldest first; NULL: the first, the last */
struct webhook *webhooks_next(
    const struct webhooks *all, struct tenant_id tenant, struct webhook *w);
struct webhook *webhooks_find(const struct webhooks *all,
    struct tenant_id tenant, const struct uuid *uuid);
size_t webhooks_count(const struct webhooks *all, struct tenant_id tenant);
/* webhooks_forget - all of a tenant that is erased; the store does so itself */
void webhooks_forget(struct webhooks *all, struct tenant_id tenant);

/* webhook_parse_kinds - words with commas between; ERR_INVAL names what is
 * none, or none of a tenant's */
int webhook_parse_kinds(
    const char *words, uint64_t *kinds, struct err *e) MUSTCHECK;

struct webhook_wish { /* NULL: as it is */
	const char *url;
	const char *kinds;
	const bool *enabled;
	bool wants_secret; /* a new one */
	uint64_t seq;      /* of the newest event: where one begins that is */
	int64_t seq_ms;    /* new, or enabled again */
};
/*
 * webhook_make - a new one; secret is given this once
 *
 * url and kinds were checked.  ERR_NO_SECRET_KEY: there is no key to seal with.
 */
int webhook_make(struct webhooks *all, struct tenant_id tenant,
    const struct webhook_wish *wish, char secret[WEBHOOK_SECRET_TEXT_MAX],
    struct webhook **out, struct err *e) MUSTCHECK;
int webhook_change(struct webhook *w, const struct webhook_wish *wish,
    char secret[WEBHOOK_SECRET_TEXT_MAX], struct err *e) MUSTCHECK;
/* webhook_save - as it is now; for who waits for that */
void webhook_save(struct webhook *w, store_done_cb done, void *arg);
void webhook_drop(struct webhook *w, store_done_cb done, void *arg);

/* webhook_sign - the value of webhook-signature; ERR_NO_SECRET_KEY */
int webhook_sign(const struct webhook *w, const char *id, int64_t timestamp_s,
    const struct span *body, char out[WEBHOOK_SIGNATURE_MAX],
    struct err *e) MUSTCHECK;

/* webhook_taken - an event was; written soon */
void webhook_taken(struct webhook *w, uint64_t seq, int64_t at_ms);
/* webhook_skip - all before seq, which are not there any more */
void webhook_skip(struct webhook *w, uint64_t seq, uint64_t count);
enum webhook_verdict {
	WEBHOOK_AGAIN, /* row.next_ms, in *delay_ms */
	WEBHOOK_LOST,  /* it is done with: the next one, in *delay_ms */
};
/* webhook_failed - the event of that place was not taken; after_s: what the
 * receiver asks for, 0: nothing */
struct webhook_failure {
	uint64_t seq;
	int64_t at_ms;
	uint32_t after_s;
	const char *why;
};
enum webhook_verdict webhook_failed(struct webhook *w,
    const struct webhook_failure *f, uint64_t keep_ms, uint64_t *delay_ms);
/* webhook_is_past - it has been failing for so long that an event of then is
 * lost untried */
bool webhook_is_past(
    const struct webhook *w, int64_t at_ms, uint64_t keep_ms, int64_t now_ms);
/* webhook_tell_lost - an event: some are lost to it; not more often than each
 * WEBHOOK_TELL_MS */
void webhook_tell_lost(struct webhook *w);
/* webhook_disable - the server does, for this reason; and an event */
void webhook_disable(struct webhook *w, const char *why);

/* webhook_delay_ms - pure: how long to wait after so many failures, of which
 * between half and all is waited, as dice (0..UINT32_MAX) fall */
uint64_t webhook_delay_ms(uint32_t attempts, uint32_t dice);
/* webhook_rest_ms - of a delay that began before a restart: never more than it
 * was, whatever the clock says */
uint64_t webhook_rest_ms(const struct store_webhook *row, int64_t now_ms);

#endif
