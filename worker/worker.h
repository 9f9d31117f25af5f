/*
 * worker.h - the process: what its parts share
 */
#ifndef WORKER_WORKER_H
#define WORKER_WORKER_H

#include "common/base.h"
#include "common/err.h"
#include "worker/backend.h"
#include "worker/boxes.h"
#include "worker/policy.h"
#include "worker/room_watch.h"

struct child;
struct conf;
struct event_base;
struct ipc_chan;
struct sweep;
struct trial;

struct worker {
	struct event_base *base;
	struct child *child;    /* NULL in tests */
	struct ipc_chan *front; /* the job channel, NULL: none */
	void (*on_close)(struct worker *w, const struct err *why);
	struct policy policy;
	struct copy_limits limits;
	struct room_watch spool_room;
	struct room_watch artifact_room;
	struct task_host task_host;
	struct box_host box_host; /* main fills in its pointers */
	struct boxes *boxes;
	struct ways ways;
	struct trial *trial; /* NULL: the carrier is not found out by one */
	struct sweep *sweep; /* what the front has listed so far */

	uint32_t done; /* runs and sandboxes, since start */

	bool engine_known;
	bool engine_said; /* it said what it is */
	struct backend_about engine_about;
	bool engine_up;
	char engine_detail[ERR_TEXT_MAX];
	char lack[ERR_TEXT_MAX]; /* what the engine cannot make a box without */
	unsigned int disk_waits; /* runs that wait for room */
	char disk_detail[160];
};

/* worker_init - everything but backend, ways and child; base is
 * kept */
int worker_init(struct worker *w, struct event_base *base,
    const struct conf *conf, struct err *e) MUSTCHECK;
/* worker_clear - what worker_init made; the backend must be gone */
void worker_clear(struct worker *w);

/* worker_attach - a channel to the front; fd is the worker's from now on.
 * A message that cannot be ends the channel; what is only not allowed or not
 * possible is an answer.  on_close: it ended, why NULL or the reason. */
void worker_attach(struct worker *w, int fd,
    void (*on_close)(struct worker *w, const struct err *why));
void worker_detach(struct worker *w);

/* The backend's watch; arg is the worker. */
extern const struct backend_watch worker_watch;

#endif
