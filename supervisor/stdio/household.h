/*
 * household.h - a server of the bridge's own, where it was told of none
 *
 * mcp-sandboxd with BIND=none: no address of it listens (but with STDIO_HTTP),
 * and its admin socket in DATA_DIR is for who started it and for root. DATA_DIR
 * belongs to one server at a time, and its lock says to which: where several
 * bridges have the same one, the first starts the server and all use it; when
 * that bridge ends, so does its server, and the next request of another bridge
 * starts the next. Sandboxes and their runs outlive all of them.
 *
 * The kernel ends the server (SIGTERM) when the bridge is gone, however it
 * went.
 */
#ifndef STDIO_HOUSEHOLD_H
#define STDIO_HOUSEHOLD_H

#include "common/base.h"
#include "common/err.h"

struct event_base;
struct household;

struct household_ops {
	/* A server that this bridge started has ended.  good: it may be started
	 * again, or another has DATA_DIR; else why says what stops it */
	void (*on_end)(bool good, const char *why, void *arg);
};

enum household_listens {
	HOUSEHOLD_SOCKET_ALONE,
	HOUSEHOLD_AS_SET /* BIND and PORT, too */
};

struct household_ask {
	const char *program;  /* mcp-sandboxd; copied */
	char *const *args;    /* its options and settings, the last one NULL */
	const char *data_dir; /* made where it is missing */
	enum household_listens listens;
	const struct household_ops *ops;
	void *arg;
};
/* household_new - args and ops are kept */
int household_new(struct event_base *base, const struct household_ask *ask,
    struct household **out, struct err *e) MUSTCHECK;
/* household_free - the server, if one runs, gets SIGTERM when this process
 * ends */
void household_free(struct household *h); /* NULL is fine */
/* household_socket - the path of its socket for connect(2), as long as h is */
const char *household_socket(const struct household *h);
/* household_wake - start a server, unless one of ours runs or somebody listens
 * there */
void household_wake(struct household *h);
/* household_stop - SIGTERM; false: there is none.  on_end follows */
bool household_stop(struct household *h);

#endif
