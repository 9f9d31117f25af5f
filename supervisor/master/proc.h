/*
 * proc.h - one life of one child: start, handshake, pings, end
 *
 * Works by the catalogue in schema/ipc.txt.  A child that says what it may
 * not, or nothing for too long, is killed; whatever it says, the supervisor
 * lives on.  What follows from a death is the crew's business (crew.h).
 */
#ifndef MASTER_PROC_H
#define MASTER_PROC_H

#include <sys/types.h>

#include "common/base.h"
#include "common/conf.h"
#include "common/err.h"
#include "common/msg/msg_gen.h"
#include "supervisor/master/spawn.h"
#include "supervisor/master/tuning.h"

/* DOWN, or what its control channel is at. */
enum proc_state {
	PROC_DOWN = 0,
	PROC_STARTED = MSG_CONTROL_STARTED,       /* HELLO is awaited */
	PROC_CONFIGURED = MSG_CONTROL_CONFIGURED, /* READY is awaited */
	PROC_READY = MSG_CONTROL_READY
};

/* What the deadline timer stands for. */
enum proc_wait {
	PROC_WAIT_NONE,
	PROC_WAIT_READY, /* started, not READY */
	PROC_WAIT_PONG,
	PROC_WAIT_ABORT, /* SIGABRT was sent */
	PROC_WAIT_LEAVE, /* should exit by itself */
	PROC_WAIT_CLOSE, /* reaped; its last words may still be unread */
	PROC_WAIT_KILL   /* SIGKILL was sent */
};

struct proc;
struct proc_ops {
	/* HELLO was good: proc_configure and what belongs to it. */
	void (*on_hello)(struct proc *p, void *arg);
	void (*on_ready)(struct proc *p, void *arg);
	/* Reaped and all it said was read; p is DOWN again. */
	void (*on_exit)(struct proc *p, int wait_status, void *arg);
};

struct event;
struct event_base;
struct proc { /* others read, proc.c writes */
	enum msg_role role;
	uint32_t index;
	char name[24]; /* "front", "worker/1" */
	struct event_base *base;
	const struct tuning *tuning;
	const struct proc_ops *ops;
	void *arg;

	enum proc_state state;
	pid_t pid; /* 0: reaped or never started */
	struct ipc_chan *chan;
	enum {
		PROC_OPEN,
		PROC_CLOSED
	} link; /* of chan */
	struct event *deadline;
	struct event *ping;
	enum proc_wait wait;
	uint32_t wait_ms;   /* of a wait for the child, as a whole */
	unsigned int looks; /* that are left before it is over */
	int wait_status;
	uint32_t done;   /* pieces of work in this life */
	uint32_t active; /* in progress */
	enum {
		PROC_QUIET,
		PROC_SPOKE
	} last_words;
};

void proc_init(struct proc *p, struct event_base *base, enum msg_role role,
    uint32_t index, const struct tuning *tuning, const struct proc_ops *ops,
    void *arg);
void proc_clear(struct proc *p); /* of a process that is down */

/* proc_start - only when DOWN; s->name and s->arg are filled in here */
int proc_start(struct proc *p, struct spawn *s, struct err *e) MUSTCHECK;
/* proc_configure - CONFIG lines of its role and CONFIG_END.  The first time
 * from on_hello; before HELLO it does nothing (the newest is sent then).
 * Whatever else it is told: msg_send_...(p->chan, ...), NULL when DOWN. */
void proc_configure(struct proc *p, const struct conf *conf);

/* proc_expect_exit - SIGKILL unless it exits by itself within ms */
void proc_expect_exit(struct proc *p, uint32_t ms);
void proc_kill(struct proc *p); /* SIGKILL; nothing when it is reaped */
/* proc_on_reaped - waitpid returned its pid; on_exit follows */
void proc_on_reaped(struct proc *p, int wait_status);

#endif
