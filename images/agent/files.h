/*
 * files.h - WALK and READ: the worker looks at the sandbox's files
 *
 * Requests are served in turn, a slice each, between the runs' events, and
 * only while the link's queue is short.  FILE_DATA carries offsets in the
 * file; FILE_END's size is the number of bytes (READ) or entries (WALK) sent.
 * An aborted request ends with ECANCELED.  All of them end with the link; what
 * is taken stays known.
 */
#ifndef AGENT_FILES_H
#define AGENT_FILES_H

#include <sys/queue.h>

#include "common/base.h"
#include "common/err.h"
#include "common/msg/wire.h"
#include "images/agent/taken.h"
#include "images/agent/uplink.h"

#define FILES_ACTIVE_MAX 64
#define FILES_WALKS_KEPT 8
#define FILES_READ_BYTES 131072u

struct files_request;
TAILQ_HEAD(files_list, files_request);

struct files {
	struct uplink *uplink;
	uint32_t nactive;
	uint32_t nkept;             /* walks that have ended */
	struct files_list requests; /* next to be served first */
	struct taken taken;
};

void files_init(struct files *f, struct uplink *uplink);
void files_on_close(struct files *f);
/* files_work - one slice of each request that may go on; true when there is
 * more to do at once */
bool files_work(struct files *f);

/* Frames from the worker; not 0 when one is malformed. */
int files_on_walk(struct files *f, struct wire_in *in, struct err *e) MUSTCHECK;
int files_on_walk_taken(
    struct files *f, struct wire_in *in, struct err *e) MUSTCHECK;
int files_on_read(struct files *f, struct wire_in *in, struct err *e) MUSTCHECK;
int files_on_read_ack(
    struct files *f, struct wire_in *in, struct err *e) MUSTCHECK;
int files_on_abort(
    struct files *f, struct wire_in *in, struct err *e) MUSTCHECK;

#endif
