/*
 * sandbox.h - one sandbox: its container, its agent, its runs
 *
 *	CREATING	the backend makes it
 *	LOOKING		it should be there: the backend is asked whether it is
 *	GREETING	it runs; its agent is awaited (HELLO within 10 s)
 *	UP		the agent is on the link
 *	AWAY		the link was lost: is it still running?
 *	CLOSING		the container is being removed
 *
 * The front hears of it exactly once: READY or FAILED or LOST, after READY
 * perhaps LOST, after a SANDBOX_REMOVE always REMOVED.  An engine that is away
 * loses nothing: a sandbox whose agent is there goes on, and none is given up
 * before the engine has said that it is gone.
 */
#ifndef WORKER_SANDBOX_H
#define WORKER_SANDBOX_H

#include "common/base.h"
#include "common/err.h"
#include "common/uuid.h"
#include "worker/backend.h"
#include "worker/run.h"
#include "worker/worker.h"

#define SANDBOX_HELLO_MS 10000
#define SANDBOX_AWAY_MS 30000 /* running without a link: given up */
#define SANDBOX_RUNS_MAX 4096 /* told of, not forgotten yet */

struct sandbox;

enum sandbox_mode {
	SANDBOX_CREATE = 0,
	SANDBOX_ADOPT = 1
};

struct sandbox_start {
	uint64_t id;
	enum sandbox_mode mode;
	struct uuid uuid;
	uint32_t generation;
	struct policy_ask ask;    /* strings are copied */
	const char *container_id; /* "" : by name */
};

/* sandbox_open - the id must be free; everything else is told to the front */
void sandbox_open(struct worker *w, const struct sandbox_start *s);
/* sandbox_remove - SANDBOX_REMOVE, for any sandbox there ever was */
void sandbox_remove(
    struct worker *w, uint64_t id, const struct uuid *uuid, const char *name);
void sandbox_settled(struct sandbox *sb);

/* sandbox_start_run - takes *s.  A run of an unknown sandbox (sb NULL) ends as
 * lost.  ERR_PROTO when the front's message cannot be. */
int sandbox_start_run(struct worker *w, struct sandbox *sb, struct run_start *s,
    struct err *e) MUSTCHECK;
void sandbox_cancel_run(struct run *r, enum runlog_reason reason);
void sandbox_forget_run(struct worker *w, struct run *r);
/* sandbox_artifact_fd - for the copy under way of that run */
void sandbox_artifact_fd(
    struct run *r, uint32_t file, int fd, const char *refusal);

/* From the backend's watch. */
void sandbox_on_change(struct worker *w, const char *container_id,
    enum backend_change what, int32_t exit_code);
/* sandbox_look_all - the engine is there: ask now for what waited to be asked
 */
void sandbox_look_all(struct worker *w);
/* sandbox_set_reading - all links on or off */
void sandbox_set_reading(struct worker *w, bool on);
/* sandbox_is_busy - true while one is being made or taken away */
bool sandbox_is_busy(const struct worker *w);

#endif
