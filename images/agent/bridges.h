/*
 * bridges.h - the inner door: where bridges come in
 *
 * Listens at an abstract Unix address, which is the sandbox's own as its
 * network namespace is.  Every process of the sandbox can connect there, and
 * none may become the link.  Two things keep the door:
 *
 * A caller must have come in from outside: it has no parent in the sandbox,
 * as the engine's exec starts it.  Others are closed unread, few at a time, so
 * that a loop of connects takes neither the agent's time nor the place of a
 * bridge.
 *
 * Its first frame is KNOCK with the secret, within BRIDGES_KNOCK_MS.  The
 * secret of the first one in the agent's life is kept: nothing of a client's
 * runs before the first link.
 *
 * A proven one is handed over and belongs to the caller from then on.
 */
#ifndef AGENT_BRIDGES_H
#define AGENT_BRIDGES_H

#include <sys/socket.h>
#include <sys/un.h>

#include "common/base.h"
#include "common/buf.h"
#include "common/err.h"
#include "common/msg/frame_gen.h"
#include "images/agent/loop.h"

#define BRIDGES_NAME "mcp-sandboxd-agent" /* behind a NUL */
#define BRIDGES_SECRET_BYTES 32
#define BRIDGES_KNOCK_MS 5000
#define BRIDGES_UNPROVEN_MAX 4 /* beyond it the oldest is closed */

/* Came in from outside, and has not said KNOCK yet. */
struct bridge_caller {
	struct bridges *of;
	int fd; /* -1: free */
	loop_token token;
	uint64_t since_ms;
	uint64_t order;
	struct buf in;
};

struct bridges {
	struct loop *loop;
	/* KNOCK was right; fd is the receiver's, at the byte behind it */
	void (*on_proven)(int fd, void *arg);
	void *arg;
	int fd; /* -1: not open */
	loop_token token;
	struct bridge_caller callers[BRIDGES_UNPROVEN_MAX];
	uint64_t orders;
	bool has_secret;
	uint8_t secret[BRIDGES_SECRET_BYTES];
	uint32_t strangers; /* since window_ms */
	uint64_t window_ms;
	uint64_t reopen_ms;    /* 0: the door is open */
	uint64_t refused;      /* strangers that no line has told of */
	uint64_t next_line_ms; /* when one may */
};

/* bridges_address - the inner socket's; its length */
socklen_t bridges_address(struct sockaddr_un *sa);

void bridges_init(struct bridges *b, struct loop *loop,
    void (*on_proven)(int fd, void *arg), void *arg);
/* bridges_open - ERR_SYS when the kernel refuses, or somebody listens there */
int bridges_open(struct bridges *b, struct err *e) MUSTCHECK;
void bridges_close(struct bridges *b);
/* bridges_admit - one that came in from outside, as a socket that does not
 * block: it is to knock, and b closes it or hands it over */
void bridges_admit(struct bridges *b, int fd);
/* bridges_tick - closes who did not prove itself in time */
void bridges_tick(struct bridges *b, uint64_t now_ms);
uint64_t bridges_next_ms(const struct bridges *b); /* UINT64_MAX: never */

/* bridges_hang_up - closes a bridge's stream, and lets the bridge see it:
 * root of the sandbox may have stopped it, and its engine waits for its end */
void bridges_hang_up(int fd);

#endif
