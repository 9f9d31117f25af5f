/*
 * loop.h - epoll with callbacks
 *
 * A watch is named by a token, never by its descriptor: events of a watch
 * that was removed earlier in the same turn are dropped.  loop_del before
 * every close: a registration outlives close() as long as a child that is
 * still on its way to exec holds the same open file, and would then report
 * a descriptor that is someone else's by now.
 */
#ifndef AGENT_LOOP_H
#define AGENT_LOOP_H

#include "common/base.h"
#include "common/err.h"

#define LOOP_WATCHES_MAX 2048
#define LOOP_REST_US 300

typedef void (*loop_cb)(uint32_t events, void *arg);

struct loop_watch {
	int fd; /* -1: free */
	uint32_t generation;
	uint32_t next_free;
	loop_cb cb;
	void *arg;
};

struct loop {
	int epoll;
	uint32_t first_free;
	bool rests; /* before the next turn */
	struct loop_watch watches[LOOP_WATCHES_MAX];
};

typedef uint64_t loop_token; /* 0: none */

int loop_init(struct loop *l, struct err *e) MUSTCHECK;
/* loop_add - events as for epoll(7), level triggered; 0 when all watches are
 * taken or the kernel refuses */
loop_token loop_add(
    struct loop *l, int fd, uint32_t events, loop_cb cb, void *arg) MUSTCHECK;
void loop_mod(struct loop *l, loop_token token, uint32_t events);
/* loop_del - ends the watch and sets *token to 0; fine on 0 */
void loop_del(struct loop *l, loop_token *token);
/* loop_turn - wait at most timeout_ms (-1: for ever), call back what came */
void loop_turn(struct loop *l, int timeout_ms);
/* loop_rest - the next turn begins LOOP_REST_US later, so that more has come by
 * then; ignored by a turn with timeout 0 */
void loop_rest(struct loop *l);

#endif
