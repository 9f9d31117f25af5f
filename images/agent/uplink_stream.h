/*
 * uplink_stream.h - the byte stream to the worker, whatever carries it
 *
 * A carrier is a table of four functions; everything above it deals in
 * frames.  With uplink_unix the agent connects to a Unix stream socket, with
 * uplink_bridge it waits until a proven bridge is handed over (bridges.h).
 */
#ifndef AGENT_UPLINK_STREAM_H
#define AGENT_UPLINK_STREAM_H

#include <sys/types.h>
#include <sys/uio.h>

#include "common/base.h"
#include "common/err.h"

struct uplink_stream;

struct uplink_carrier {
	/* 0, or ERR_SYS when nobody answers; never waits.  NULL: streams
	 * come by uplink_take alone */
	int (*open)(struct uplink_stream *k, struct err *e);
	/* bytes, 0 at the end, -1 with errno (EAGAIN: none now) */
	ssize_t (*read)(struct uplink_stream *k, void *p, size_t n);
	ssize_t (*write)(
	    struct uplink_stream *k, const struct iovec *iov, int niov);
	void (*close)(struct uplink_stream *k);
};

struct uplink_stream {
	const struct uplink_carrier *carrier;
	const char *address; /* kept by pointer */
	int fd;              /* for the loop; -1: closed */
};

extern const struct uplink_carrier uplink_unix;
extern const struct uplink_carrier uplink_bridge;

#endif
