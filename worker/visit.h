/*
 * visit.h - the worker's program without a server: it looks at the engine, or
 * removes what is there, and ends
 *
 * mcp-sandboxd starts it so, with the worker's user and groups; the settings
 * come in the environment.
 */
#ifndef WORKER_VISIT_H
#define WORKER_VISIT_H

#include "common/base.h"

enum purge_consent {
	PURGE_ASK, /* on stdin, when there is something */
	PURGE_YES
};

/* visit_purge_main - "mcp-sandboxd purge", while the lock on DATA_DIR is held:
 * no server runs.  Removes containers of the instance of that id, and
 * DATA_DIR's link directories; what it does it says on stdout.  The exit
 * status: 0 nothing is left, 1 something is, or nobody agreed, 78 the settings
 * are wrong */
int visit_purge_main(const char *id, enum purge_consent consent);

/* visit_check_main - "mcp-sandboxd --check-config": whether workers could start
 * with these settings, and what they would find on the engine; nothing is
 * made, built or pulled.  What would end a worker is said as an error, what it
 * would go on with as a warning.  The exit status: 0, or 78 */
int visit_check_main(void);

#endif
