/*
 * life.h - one life of one child: start, handshake, pings, end
 *
 * Works by the catalogue in schema/ipc.txt.  A child that says what it may
 * not, or nothing for too long, is killed; whatever it says, the supervisor
 * lives on.  What follows from a death is the crew's business (crew.h).
 */
#ifndef MASTER_LIFE_H
#define MASTER_LIFE_H

#include <sys/types.h>

#include "common/base.h"
#include "common/child.h"
#include "common/conf.h"
#include "common/err.h"
#include "supervisor/master/spawn.h"
#include "supervisor/master/tuning.h"

/* DOWN, or what its control channel is at. */
enum life_state {
	LIFE_DOWN = 0,
	LIFE_STARTED = MSG_CONTROL_STARTED,       /* HELLO is awaited */
	LIFE_CONFIGURED = MSG_CONTROL_CONFIGURED, /* READY is awaited */
	LIFE_READY = MSG_CONTROL_READY
};

/* What the deadline timer stands for. */
enum life_wait {
	LIFE_WAIT_NONE,
	LIFE_WAIT_READY, /* started, not READY */
	LIFE_WAIT_PONG,
	LIFE_WAIT_ABORT, /* SIGABRT was sent */
	LIFE_WAIT_LEAVE, /* should exit by itself */
	LIFE_WAIT_CLOSE, /* reaped; its last words may still be unread */
	LIFE_WAIT_KILL   /* SIGKILL was sent */
};

struct life;
struct life_ops {
	/* HELLO was good: life_configure and what belongs to it. */
	void (*on_hello)(struct life *p, void *arg);
	void (*on_ready)(struct life *p, void *arg);
	/* It leaves pings unanswered for a while, or answers again. */
	void (*on_quiet)(struct life *p, bool quiet, void *arg);
	/* TLS_TAKEN; may be NULL: a worker is not asked. */
	void (*on_tls_taken)(
	    struct life *p, uint32_t number, bool good, void *arg);
	/* Reaped and all it said was read; p is DOWN again. */
	void (*on_exit)(struct life *p, int wait_status, void *arg);
};

struct event_base;
struct timer;
struct life { /* others read, life.c writes */
	enum msg_role role;
	uint32_t index;
	char name[CHILD_NAME_MAX]; /* "front", "worker/1" */
	struct event_base *base;
	const struct tuning *tuning;
	const struct life_ops *ops;
	void *arg;

	enum life_state state;
	pid_t pid; /* 0: reaped or never started */
	struct ipc_chan *chan;
	bool is_closed; /* chan */
	struct timer *deadline;
	struct timer *ping;
	uint64_t began_ms;
	uint64_t asked_ms; /* the oldest ping that is not answered */
	bool quiet;
	bool has_lived; /* this is not its first life */
	enum life_wait wait;
	uint32_t wait_ms;   /* of a wait for the child, as a whole */
	unsigned int looks; /* that are left before it is over */
	int wait_status;
	uint32_t starts;         /* lives so far, this one counted */
	int64_t started_wall_ms; /* of this life; 0: it is down */
	uint32_t done;           /* pieces of work in this life */
	bool has_spoken;         /* its last words */
};

void life_init(struct life *p, struct event_base *base, enum msg_role role,
    uint32_t index, const struct tuning *tuning, const struct life_ops *ops,
    void *arg);
void life_clear(struct life *p); /* of a process that is down */

/* life_start - only when DOWN; s->name and s->arg are filled in here */
int life_start(struct life *p, struct spawn *s, struct err *e) MUSTCHECK;
/* life_configure - CONFIG lines of its role and CONFIG_END.  The first time
 * from on_hello; before HELLO it does nothing (the newest is sent then).
 * Whatever else it is told: msg_send_...(p->chan, ...), NULL when DOWN. */
void life_configure(struct life *p, const struct conf *conf);

/* life_expect_exit - SIGKILL unless it exits by itself within ms */
void life_expect_exit(struct life *p, uint32_t ms);
void life_kill(struct life *p); /* SIGKILL; nothing when it is reaped */
/* life_on_reaped - waitpid returned its pid; on_exit follows */
void life_on_reaped(struct life *p, int wait_status);

#endif
