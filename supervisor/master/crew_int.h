/*
 * crew_int.h - what crew.c and crew_tell.c share: the places and their roles
 */
#ifndef MASTER_CREW_INT_H
#define MASTER_CREW_INT_H

#include <event2/event.h>

#include "common/child.h"
#include "supervisor/master/crew.h"
#include "supervisor/master/life.h"
#include "supervisor/master/restart.h"
#include "supervisor/master/role.h"

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
	struct life life;
	struct restart restart;
	struct event *timer; /* the next start */
	uint64_t due_ms;     /* when that is */
	/* Of its newest channel with the present front, 0: none yet. */
	uint32_t peer_generation;
	enum slot_channel channel;
	enum slot_note note;
	enum slot_use use;
	bool was_ready; /* in any of its lives */
};

struct crew {
	struct event_base *base;
	const struct crew_setup *setup;
	const struct crew_ops *ops;
	void *arg;
	enum crew_state state;
	int status;
	int64_t started_wall_ms;
	const struct conf *conf;
	uint32_t peer_generation; /* the newest */
	struct tlsfiles tls_offer;
	uint32_t tls_number; /* of the newest offer */
	enum {
		CREW_NOT_YET,
		CREW_WAS_READY
	} was_ready;
	struct role roles[CHILD_ROLES];
	struct event *stop_timer;
	uint32_t nslots;
	/* The front, the workers, the envoys. */
	struct slot slots[CREW_WORKERS_MAX + CHILD_ROLES - 1];
};

static inline struct slot *
slot_front(struct crew *c)
{
	return &c->slots[0];
}

static inline struct role *
slot_role(struct slot *s)
{
	return &s->crew->roles[s->life.role];
}

/* crew_tell.c: */
/* crew_tell_member - the front, if it can hear, is told how it stands with
 * that place; crew_tell_all - with all, and with the supervisor: to a front
 * that is new */
void crew_tell_member(struct slot *s);
void crew_tell_all(struct crew *c);

#endif
