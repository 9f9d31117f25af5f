/*
 * runs.h - all runs of this sandbox: start once per key, find, acknowledge
 *
 * A key in the journal is never started again.  At most RUNS_LIVE_MAX runs
 * are live, and at most RUNS_KEPT_BYTES of ended runs' logs wait for their
 * acknowledgement; beyond either, RUN_START is refused.
 */
#ifndef AGENT_RUNS_H
#define AGENT_RUNS_H

#include "common/base.h"
#include "common/err.h"
#include "common/wire.h"
#include "images/agent/journal.h"
#include "images/agent/loop.h"
#include "images/agent/run.h"
#include "images/agent/uplink.h"

#define RUNS_LIVE_MAX 256
#define RUNS_KEPT_BYTES (64u << 20)
#define RUNS_WHY_MAX 255 /* text of a refusal */

struct runs {
	struct loop *loop;
	struct uplink *uplink;
	int report_fd;
	loop_token report_token;
	uint32_t nlive;
	struct run *live[RUNS_LIVE_MAX];
	size_t kept_bytes; /* memory of ended runs' logs */
	struct keepers keepers;
	bool left_orphans; /* a keeper could not kill all in time */
	struct journal journal;
};

/* runs_init - makes the pipe of the keepers' reports; KEEPER_REPORT_FD must
 * be open (on anything) and is replaced */
int runs_init(struct runs *rs, struct loop *loop, struct uplink *uplink,
    struct err *e) MUSTCHECK;
/* runs_hello - HELLO_RUN for each run whose log is kept; how many there are
 * is runs_kept */
uint32_t runs_kept(const struct runs *rs);
void runs_hello(struct runs *rs);
void runs_on_close(struct runs *rs); /* the link is lost */

/* Frames from the worker; not 0 when one is malformed. */
int runs_on_start(struct runs *rs, struct wire_in *in, struct err *e) MUSTCHECK;
int runs_on_ack(struct runs *rs, struct wire_in *in, struct err *e) MUSTCHECK;
int runs_on_cancel(
    struct runs *rs, struct wire_in *in, struct err *e) MUSTCHECK;
int runs_on_forget(
    struct runs *rs, struct wire_in *in, struct err *e) MUSTCHECK;

void runs_read_reports(struct runs *rs);
/* runs_by_keeper - the live run that pid works for, or NULL */
struct run *runs_by_keeper(const struct runs *rs, pid_t pid);
void runs_on_keeper_lost(
    struct runs *rs, struct run *r, enum keepers_loss loss);
void runs_on_orphans_gone(struct runs *rs);
void runs_tick(struct runs *rs, uint64_t now_ms);
uint64_t runs_next_ms(const struct runs *rs);
/* runs_kill_all - at the agent's end */
void runs_kill_all(struct runs *rs);

#endif
