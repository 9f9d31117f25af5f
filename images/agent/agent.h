/*
 * agent.h - the whole agent: one loop over the link, the keepers' reports,
 * signals, the programs' output, deadlines and file requests
 */
#ifndef AGENT_AGENT_H
#define AGENT_AGENT_H

#include "common/base.h"
#include "common/err.h"
#include "common/uuid.h"
#include "images/agent/bridges.h"
#include "images/agent/files.h"
#include "images/agent/layer.h"
#include "images/agent/lease.h"
#include "images/agent/loop.h"
#include "images/agent/mux.h"
#include "images/agent/process.h"
#include "images/agent/procs.h"
#include "images/agent/reap.h"
#include "images/agent/seqs.h"
#include "images/agent/terms.h"
#include "images/agent/uplink.h"

#define AGENT_SOCKET FRAME_DIR_IN_SANDBOX "/sock"

struct agent {
	struct uuid boot;
	struct loop loop;
	struct uplink uplink;
	struct bridges bridges;
	struct mux mux;
	struct procs procs;
	struct seqs seqs;
	struct processes processes;
	struct files files;
	struct layer layer;
	struct lease lease;
	struct reaper reaper;
	bool was_up; /* a worker has answered once */
};

/* agent_init - what *t points to is kept */
int agent_init(struct agent *a, const struct terms *t, struct err *e) MUSTCHECK;
/* agent_run - until SIGTERM, or the sandbox cannot go on; the exit status */
int agent_run(struct agent *a);

#endif
