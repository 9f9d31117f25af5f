/*
 * bus.h - who wants to know of something joins its bus and is told
 *
 * A subject (a run, a sandbox, the core as a whole) has a bus; what happens to
 * it is told to each member in the order in which they joined.  The subject
 * knows nothing of its members: answers, followers and counters are alike.
 *
 * A member may leave, and other members may leave or join, while an event is
 * told.  The subject must not be freed meanwhile: who tells keeps it.
 */
#ifndef CORE_BUS_H
#define CORE_BUS_H

#include <sys/queue.h>

#include "common/base.h"
#include "common/err.h"

struct run;
struct sandbox;

enum bus_kind {
	BUS_RUN_RECORDED,   /* its row is on disk */
	BUS_RUN_REFUSED,    /* its row could not be written: why */
	BUS_RUN_SENT,       /* its turn has come */
	BUS_RUN_TOLD,       /* its worker has it, perhaps again */
	BUS_RUN_GREW,       /* its log has more bytes, or a command moved on */
	BUS_COMMAND_ENDED,  /* command: which */
	BUS_RUN_LEFT,       /* it holds its sandbox no more */
	BUS_RUN_END_FAILED, /* over, but the end is not on disk yet: why */
	BUS_RUN_ENDED,      /* its end is on disk */
	BUS_SANDBOX_READY,
	BUS_SANDBOX_FAILED,        /* it never came to be: why */
	BUS_SANDBOX_REMOVE_FAILED, /* still there: why; tried again */
	BUS_SANDBOX_GONE
};

/* An event; everything in it is borrowed until the call returns. */
struct bus_event {
	enum bus_kind kind;
	struct run *run;
	struct sandbox *sandbox;
	uint32_t command;
	const struct err *why; /* NULL where nothing failed */
};

struct bus_member {
	void (*on)(const struct bus_event *ev, void *arg);
	void *arg;
	bool joined;
	TAILQ_ENTRY(bus_member) link;
};
TAILQ_HEAD(bus_members, bus_member);

/* A walk over the members that is under way. */
struct bus_walk {
	struct bus_member *next;
	struct bus_walk *outer;
};

struct bus {
	struct bus_members members;
	struct bus_walk *walks;
};

void bus_init(struct bus *b);
/* bus_join - m is the caller's and stays where it is until bus_leave */
void bus_join(struct bus *b, struct bus_member *m,
    void (*on)(const struct bus_event *ev, void *arg), void *arg);
/* bus_leave - also of one that never joined, or has left */
void bus_leave(struct bus *b, struct bus_member *m);
void bus_tell(struct bus *b, const struct bus_event *ev);

#endif
