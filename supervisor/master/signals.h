/*
 * signals.h - signals as events of the loop, by signalfd
 *
 * The signals we act on stay blocked for good (a child unblocks them), so
 * nothing of ours runs inside a signal handler.
 */
#ifndef MASTER_SIGNALS_H
#define MASTER_SIGNALS_H

#include "common/base.h"
#include "common/err.h"

/* SIGHUP comes from a person, or from the kernel when the terminal we were
 * started in is closed. */
enum signals_origin {
	SIGNALS_SENT,
	SIGNALS_KERNEL
};
typedef void (*signals_cb)(int sig, enum signals_origin origin, void *arg);

struct signals;
struct event_base;
/* signals_open - SIGTERM, SIGINT, SIGHUP and SIGCHLD go to cb; SIGPIPE is
 * ignored */
int signals_open(struct event_base *base, signals_cb cb, void *arg,
    struct signals **out, struct err *e) MUSTCHECK;
void signals_close(struct signals *s);

#endif
