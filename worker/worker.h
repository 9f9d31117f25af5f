/*
 * worker.h - the process: what its parts share
 */
#ifndef WORKER_WORKER_H
#define WORKER_WORKER_H

#include "common/base.h"
#include "common/err.h"
#include "worker/artifact.h"
#include "worker/backend.h"
#include "worker/idmap.h"
#include "worker/policy.h"
#include "worker/run.h"

struct child;
struct conf;
struct event_base;
struct ipc_chan;
struct linkdirs;
struct sweep;

struct worker {
	struct event_base *base;
	struct child *child;    /* NULL in tests */
	struct ipc_chan *front; /* the job channel, NULL: none yet */
	struct policy policy;
	struct artifact_limits limits;
	struct backend *backend;
	struct linkdirs *links;
	struct run_host run_host;
	struct idmap sandboxes; /* by the front's numbers */
	struct idmap runs;
	struct sweep *sweep; /* what the front has listed so far */

	uint32_t done;   /* runs and sandboxes, since start */
	uint32_t active; /* runs that are not over */

	bool engine_known;
	bool engine_up;
	bool runtime_ok;
	char engine_detail[ERR_TEXT_MAX];
	unsigned int disk_waits; /* runs that wait for room */
	char disk_detail[160];
};

/* worker_init - everything but backend, links and child; base is kept */
int worker_init(struct worker *w, struct event_base *base,
    const struct conf *conf, struct err *e) MUSTCHECK;
/* worker_clear - what worker_init made; no sandbox may be left */
void worker_clear(struct worker *w);

/* worker_count - work was finished, work began or ended */
void worker_count(struct worker *w, int done, int active);
/* worker_tell_state - WORKER_STATE, once the engine was asked */
void worker_tell_state(struct worker *w);
/* worker_pause - the front's channel is full: no more from agents; and again */
void worker_pause(struct worker *w);
void worker_resume(struct worker *w);

/* The backend's watch; arg is the worker. */
extern const struct backend_watch worker_watch;

#endif
