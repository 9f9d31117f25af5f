/*
 * crew_int.h - what crew.c (who lives) and crew_end.c (who died, and the end
 * of all) share.  No other file includes it.
 */
#ifndef MASTER_CREW_INT_H
#define MASTER_CREW_INT_H

#include "supervisor/master/crew.h"
#include "supervisor/master/proc.h"

enum crew_state {
	CREW_RUNNING,
	CREW_STOPPING_FRONT,
	CREW_STOPPING_WORKERS,
	CREW_ENDED
};

/* Why a worker that exits with 0 may do so. */
enum slot_note {
	SLOT_NONE,
	SLOT_ORPHAN,     /* its front is gone: it should exit */
	SLOT_UNEXPLAINED /* it exited; is its front about to be reaped? */
};

enum slot_use {
	SLOT_USED,
	SLOT_REFUSED
};
enum slot_channel {
	SLOT_ALONE,
	SLOT_PAIRED
}; /* in its present life */

struct slot { /* a place in the crew; one life after the other is in it */
	struct crew *crew;
	struct proc proc;
	struct restart restart;
	struct event *timer; /* the next start */
	uint64_t due_ms;     /* when that is */
	/* Of its newest channel with the present front, 0: none yet. */
	uint32_t peer_generation;
	enum slot_channel channel;
	enum slot_note note;
	enum slot_use use;
};

struct role {
	struct crew *crew;
	enum msg_role role;
	const char *name;
	const struct restart_policy *policy;
	struct restart_burst burst;
	struct event *timer; /* pending: throttled */
	uint64_t until_ms;
};

struct crew {
	struct event_base *base;
	const struct crew_setup *setup;
	const struct crew_ops *ops;
	void *arg;
	enum crew_state state;
	int status;
	const struct conf *conf;
	uint32_t peer_generation; /* the newest */
	enum {
		CREW_NOT_YET,
		CREW_WAS_READY
	} was_ready;
	struct role roles[2];
	struct event *stop_timer;
	uint32_t nslots;
	struct slot slots[CREW_WORKERS_MAX + 1]; /* the front, the workers */
};

static inline struct slot *
slot_front(struct crew *c)
{
	return &c->slots[0];
}

static inline struct role *
slot_role(struct slot *s)
{
	return &s->crew->roles[s->proc.role == MSG_ROLE_FRONT ? 0 : 1];
}

/* crew.c */
void crew_timer_set(struct event *timer, uint32_t ms);
bool role_is_throttled(const struct role *r);
/* slot_schedule - its next start in ms */
void slot_schedule(struct slot *s, uint32_t ms);
/* slot_tell_gone - tell the front that this worker is away, and how long */
void slot_tell_gone(struct slot *s);

/* crew_end.c */
/* slot_died - a death is counted, and the next start is set: by the slot's
 * timer, or by the role's when that is throttled */
void slot_died(struct slot *s, const char *how);
/* slot_on_exit - a life is over: what follows for it and the others */
void slot_on_exit(struct slot *s, int wait_status);
void crew_role_cb(int fd, short what, void *arg); /* not throttled now */
void crew_stop_cb(int fd, short what, void *arg); /* has waited enough */

#endif
