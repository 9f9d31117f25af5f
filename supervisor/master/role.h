/*
 * role.h - the children of one kind: how often they may die
 *
 * More deaths than its policy bears (restart.h) throttle it: nobody of the role
 * is started until on_over is called.
 */
#ifndef MASTER_ROLE_H
#define MASTER_ROLE_H

#include "common/base.h"
#include "supervisor/master/restart.h"

struct event_base;
struct role;
struct timer;

typedef void (*role_cb)(struct role *r, void *arg);

/* role.c writes it and nobody else does. */
struct role {
	const char *name;
	const struct restart_policy *policy;
	struct restart_burst burst;
	struct timer *timer; /* set: throttled */
	uint64_t until_ms;
	role_cb on_over;
	void *arg;
};

/* role_init - name and policy are kept.  Cannot fail */
void role_init(struct role *r, struct event_base *base, const char *name,
    const struct restart_policy *policy, role_cb on_over, void *arg);
void role_clear(struct role *r);
/* role_died - true: it is throttled from now on */
bool role_died(struct role *r, uint64_t now_ms) MUSTCHECK;
bool role_is_throttled(const struct role *r);
void role_forget(struct role *r); /* no more starts: on_over is not called */

#endif
