/*
 * history_turns.h - questions that wait for a lane: a turn per tenant
 *
 * Tenants that have questions come round, one question of each at a time, and
 * within a tenant they keep their order.  So whoever asks much waits for
 * himself: before another tenant's first question goes at most one of each.
 *
 * Any thread may call all of them.
 */
#ifndef STORE_HISTORY_TURNS_H
#define STORE_HISTORY_TURNS_H

#include <sys/queue.h>
#include <pthread.h>

#include "common/base.h"

struct history_asking;
struct tenant_turn;

struct history_turns { /* for history_turns.c */
	pthread_mutex_t mutex;
	pthread_cond_t cond;
	TAILQ_HEAD(tenant_turns, tenant_turn) round;
	bool is_stopped;
};

void history_turns_init(struct history_turns *t);
void history_turns_clear(struct history_turns *t); /* releases what waits */
/* history_turns_push - behind all of its tenant, of whom so many may wait
 * before; false: there are as many, and it is still the caller's */
bool history_turns_push(
    struct history_turns *t, struct history_asking *a, size_t most) MUSTCHECK;
/* history_turns_push_again - one that was taken and is not done: the next of
 * its tenant, when the others have had theirs */
void history_turns_push_again(
    struct history_turns *t, struct history_asking *a);
/* history_turns_take - the next; waits for one.  NULL: history_turns_stop was
 * called */
struct history_asking *history_turns_take(struct history_turns *t);
/* history_turns_drop - true: it waited, and is the caller's again */
bool history_turns_drop(
    struct history_turns *t, const struct history_asking *a) MUSTCHECK;
void history_turns_stop(struct history_turns *t);

#endif
