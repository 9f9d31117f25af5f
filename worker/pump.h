/*
 * pump.h - bytes between an engine's connection and a socket of a pair
 *
 * For a program's standard streams (backend_ops.exec): the asker has the other
 * socket of the pair.  Up is from the engine to the asker, down is the other
 * way; what the engine's format adds to the bytes is the user's.  Whoever does
 * not read is waited for: nothing more is read for it then.
 */
#ifndef WORKER_PUMP_H
#define WORKER_PUMP_H

#include "common/base.h"
#include "common/buf.h"
#include "common/err.h"

struct api_call;
struct event_base;
struct pump;

#define PUMP_PIECE_BYTES 65536 /* at a time */
/* That a piece may grow by on its way down. */
#define PUMP_HEAD_MAX 64

enum pump_end {
	PUMP_ASKER_LEFT, /* it closed its socket */
	PUMP_PEER_ENDED, /* the engine, in order */
	PUMP_PEER_BROKE,
	PUMP_STOPPED /* by up */
};

struct pump_user {
	/* The n bytes at p came from the engine.  What of them is the asker's
	 * is appended to out, at most n bytes, and what the engine is to be
	 * told for them to back, which may have no room.  -1: the last ones;
	 * the asker still gets what is in out. */
	int (*up)(const uint8_t *p, size_t n, struct buf *out, struct buf *back,
	    void *arg);
	/* The n bytes at p came from the asker: what the engine gets is
	 * appended to out, at most n + PUMP_HEAD_MAX bytes.  NULL: as they
	 * are. */
	void (*down)(const uint8_t *p, size_t n, struct buf *out, void *arg);
	/* Nothing moves any more: pump_free, or pump_leave.  Once. */
	void (*ended)(enum pump_end how, void *arg);
	/* After pump_leave, once: pump_free.  May be NULL without. */
	void (*left)(void *arg);
};

/* pump_open - call is a stream (api_answer.stream), and the pump's if 0 is
 * returned; *theirs is the asker's socket, which does not block.  Nothing is
 * called before the next turn of the loop.  user is kept by pointer. */
int pump_open(struct event_base *base, struct api_call *call,
    const struct pump_user *user, void *arg, struct pump **out, int *theirs,
    struct err *e) MUSTCHECK;
/* pump_leave - the asker is gone, or nobody speaks to it any more: its socket
 * is closed.  The engine is told what was left over and then what is in last,
 * and what it says is dropped, until it ends the connection or ms are over.
 * Instead of ended, left is called. */
void pump_leave(struct pump *p, const struct buf *last, uint32_t ms);
/* pump_free - both ends are closed; also inside its callbacks.  NULL is
 * fine. */
void pump_free(struct pump *p);

#endif
