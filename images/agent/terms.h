/*
 * terms.h - what the server tells the agent before any link
 *
 *	agent [-k MASK] [-b BYTES] [-n INODES] [-l 0|1] [-q MS] [socket]
 *
 * They stand in the container's command line, where anybody inside can read
 * them and nobody can change them.  A malformed one ends the agent.
 */
#ifndef AGENT_TERMS_H
#define AGENT_TERMS_H

#include "common/base.h"
#include "common/err.h"
#include "images/agent/layer.h"

struct terms {
	uint64_t withheld; /* -k: capabilities that no command has */
	/* -b, -n: of the container's file system; 0: no limit, or the
	 * engine's */
	struct layer_use disk;
	bool listens;      /* -l: for bridges (bridges.h); socket is not used */
	uint64_t quiet_ms; /* -q: a bridge that brings nothing is given up */
	const char *socket;
};

/* terms_parse - socket is AGENT_SOCKET when none is given, quiet_ms
 * FRAME_BRIDGE_QUIET_MS; what *t points to is argv's.  ERR_INVAL names what is
 * wrong */
int terms_parse(
    struct terms *t, int argc, char **argv, struct err *e) MUSTCHECK;

#endif
