/*
 * link.h - the byte stream to the worker, whatever carries it
 *
 * A carrier is a table of five functions; everything above it deals in
 * frames.  The only one so far is link_unix: the agent connects to a Unix
 * stream socket.
 */
#ifndef AGENT_LINK_H
#define AGENT_LINK_H

#include <sys/types.h>
#include <sys/uio.h>

#include "common/base.h"
#include "common/err.h"

struct link;

struct link_carrier {
	/* 0, or ERR_SYS when nobody answers; never waits */
	int (*open)(struct link *k, struct err *e);
	/* bytes, 0 at the end, -1 with errno (EAGAIN: none now) */
	ssize_t (*read)(struct link *k, void *p, size_t n);
	ssize_t (*write)(struct link *k, const struct iovec *iov, int niov);
	void (*close)(struct link *k);
};

struct link {
	const struct link_carrier *carrier;
	const char *address; /* kept by pointer */
	int fd;              /* for the loop; -1: closed */
};

extern const struct link_carrier link_unix;

#endif
