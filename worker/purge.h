/*
 * purge.h - remove what an instance left on the engine
 *
 * mcp-sandboxd starts its worker's program so ("mcp-sandboxd purge"), with the
 * worker's user and groups, while it holds the lock on DATA_DIR: no server
 * runs.  The settings come in the environment.
 */
#ifndef WORKER_PURGE_H
#define WORKER_PURGE_H

#include "common/base.h"

enum purge_consent {
	PURGE_ASK, /* on stdin, when there is something */
	PURGE_YES
};

/* purge_main - containers of the instance of that id, and DATA_DIR's link
 * directories; what it does it says on stdout.  The exit status: 0 nothing is
 * left, 1 something is, or nobody agreed, 78 the settings are wrong */
int purge_main(const char *id, enum purge_consent consent);

#endif
