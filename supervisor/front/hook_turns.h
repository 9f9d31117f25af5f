/*
 * hook_turns.h - whose request to a webhook is sent next
 *
 * Of a tenant HOOK_TURNS_PER_TENANT are under way at a time, and of these
 * HOOK_TURNS_PER_HOST to one host: who does not answer delays its own tenant
 * and nobody else.  Tenants take turns, and so do the hosts of each.  Where few
 * places are free, who has some under way gets no more than half as many as
 * are, so that one is left for who has none.
 *
 * What it costs to find the next does not depend on how many wait.
 */
#ifndef FRONT_HOOK_TURNS_H
#define FRONT_HOOK_TURNS_H

#include <sys/queue.h>

#include "common/base.h"

#define HOOK_TURNS_PER_HOST 4
#define HOOK_TURNS_PER_TENANT 8

struct hook_target;
struct hook_turns;

/* Embedded in what is sent; hook_turns.c writes it and nobody else does. */
struct hook_turn {
	struct hook_target *target; /* NULL: neither waits nor is under way */
	bool is_sent;
	TAILQ_ENTRY(hook_turn) link; /* while it waits */
};

struct hook_turns *hook_turns_new(void);
void hook_turns_free(struct hook_turns *all); /* none are in it; NULL is fine */

/* hook_turns_wait - behind those of its tenant and host; host is copied */
void hook_turns_wait(struct hook_turns *all, struct hook_turn *t,
    uint64_t tenant, const char *host);
/* hook_turns_next - the next of those that wait, which is under way from now
 * on; free_places: how many more could be.  NULL: none may be */
struct hook_turn *hook_turns_next(struct hook_turns *all, size_t free_places);
/* hook_turns_take - under way at once, before those that wait; false: it may
 * not be */
bool hook_turns_take(struct hook_turns *all, struct hook_turn *t,
    uint64_t tenant, const char *host, size_t free_places) MUSTCHECK;
/* hook_turns_leave - it is over, or waits no more; one that is in nothing is
 * fine */
void hook_turns_leave(struct hook_turns *all, struct hook_turn *t);

#endif
