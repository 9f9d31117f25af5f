/*
 * worker.h - the other end of a job channel, moved by the test
 *
 * The core is the real one; this plays a worker whose sandboxes are always
 * ready and whose runs print and end what and when the test says.
 */
#ifndef TESTS_FRONT_WORKER_H
#define TESTS_FRONT_WORKER_H

#include "tests/unit/http/raw.h"

#include <openssl/sha.h>

#include "common/msg/msg_gen.h"
#include "common/runlog.h"
#include "common/xmalloc.h"
#include "supervisor/core/core.h"
#include "tests/unit/test.h"
#include "tests/unit/world.h"

struct worker {
	struct event_base *base;
	struct ipc_chan *chan;
	int spool; /* of the run, -1: none */
	uint64_t run;
	uint64_t length;
	uint64_t stdout_bytes;
	unsigned int runs;
	bool at_once; /* print said and end, without being asked */
	const char *said;
	int exit_code;
	bool deaf;            /* a run is started but says nothing */
	const char *artifact; /* text of an artifact named artifact_path */
	const char *artifact_path;
};

static inline void
worker_append(struct worker *w, struct buf *record, enum runlog_type type)
{
	assert_int_equal(write(w->spool, buf_data(record), buf_len(record)),
	    buf_len(record));
	w->length += buf_len(record);
	if (type != RUNLOG_STDOUT)
		msg_send_run_record(w->chan,
		    &(struct msg_run_record){.id = w->run,
			.record = {buf_data(record), buf_len(record)}});
	msg_send_run_bytes(w->chan,
	    &(struct msg_run_bytes){.id = w->run, .length = w->length});
	buf_clear(record);
}

static inline void
worker_record(struct worker *w, enum runlog_type type, const void *p, size_t n)
{
	const struct runlog_header h = {
	    .type = type, .length = (uint32_t)n, .wall_us = clock_wall_us()};
	struct buf b = {0};

	runlog_put_header(&b, &h);
	assert_int_equal(buf_append(&b, p, n), 0);
	worker_append(w, &b, type);
}

static inline void
worker_print(struct worker *w, const void *p, size_t n)
{
	w->stdout_bytes += n;
	worker_record(w, RUNLOG_STDOUT, p, n);
}

static inline void
worker_send_ended(struct worker *w)
{
	msg_send_run_ended(w->chan,
	    &(struct msg_run_ended){
		.id = w->run, .reason = RUNLOG_EXIT, .length = w->length});
	(void)close(w->spool);
	w->spool = -1;
}

static inline void
worker_send_artifact(struct worker *w)
{
	const char *path = w->artifact_path;

	msg_send_artifact_open(w->chan,
	    &(struct msg_artifact_open){.id = w->run,
		.size = strlen(w->artifact),
		.mode = 0644,
		.mtime_ns = INT64_C(1700000000) * 1000000000,
		.path = {(const uint8_t *)path, strlen(path)}});
}

static inline void
worker_end(struct worker *w, int exit_code)
{
	const struct runlog_end end = {.reason = RUNLOG_EXIT,
	    .exit_code = exit_code,
	    .stdout_bytes = w->stdout_bytes};
	const struct runlog_run_end run_end = {
	    .reason = RUNLOG_EXIT, .failed = exit_code != 0};
	struct runlog_header h = {.type = RUNLOG_COMMAND_ENDED,
	    .length = (uint32_t)runlog_end_size(&end),
	    .wall_us = clock_wall_us()};
	struct buf b = {0};

	runlog_put_header(&b, &h);
	runlog_put_end(&b, &end);
	worker_append(w, &b, RUNLOG_COMMAND_ENDED);
	h.type = RUNLOG_RUN_ENDED;
	h.length = RUNLOG_RUN_END_BYTES;
	runlog_put_header(&b, &h);
	runlog_put_run_end(&b, &run_end);
	worker_append(w, &b, RUNLOG_RUN_ENDED);
	if (w->artifact != NULL)
		worker_send_artifact(w);
	else
		worker_send_ended(w);
}

static inline int
worker_on_run_start(void *arg, struct msg_run_start *m, struct err *e)
{
	struct worker *w = arg;

	(void)e;
	w->run = m->id;
	w->spool = msg_take_fd(&m->spool);
	w->length = 0;
	w->stdout_bytes = 0;
	w->runs++;
	if (w->deaf)
		return 0;
	worker_record(w, RUNLOG_RUN_STARTED, "", 0);
	worker_record(w, RUNLOG_COMMAND_STARTED, "", 0);
	if (!w->at_once)
		return 0;
	worker_print(w, w->said, strlen(w->said));
	worker_end(w, w->exit_code);
	return 0;
}

static inline int
worker_on_artifact_fd(void *arg, struct msg_artifact_fd *m, struct err *e)
{
	struct worker *w = arg;
	size_t n = strlen(w->artifact);
	uint8_t digest[SHA256_DIGEST_LENGTH];

	(void)e;
	assert_true(m->file_fd >= 0);
	assert_int_equal(write(m->file_fd, w->artifact, n), n);
	(void)SHA256((const unsigned char *)w->artifact, n, digest);
	msg_send_artifact_done(w->chan,
	    &(struct msg_artifact_done){
		.id = w->run, .size = n, .sha256 = digest});
	worker_send_ended(w);
	return 0;
}

static inline int
worker_on_sandbox_open(
    void *arg, const struct msg_sandbox_open *m, struct err *e)
{
	struct worker *w = arg;

	(void)e;
	msg_send_sandbox_ready(w->chan,
	    &(struct msg_sandbox_ready){.id = m->id, .container_id = "c0ffee"});
	return 0;
}

static inline int
worker_on_sandbox_remove(
    void *arg, const struct msg_sandbox_remove *m, struct err *e)
{
	struct worker *w = arg;

	(void)e;
	msg_send_sandbox_removed(
	    w->chan, &(struct msg_sandbox_removed){.id = m->id});
	return 0;
}

/* What it is told and does nothing about. */
WORLD_IGNORES(worker, sandbox_settled)
WORLD_IGNORES(worker, sandbox_shares)
WORLD_IGNORES(worker, run_cancel)
WORLD_IGNORES(worker, run_forget)
WORLD_IGNORES(worker, tenants)
WORLD_IGNORES(worker, sweep)
WORLD_IGNORES(worker, sweep_end)

static inline int
worker_message_cb(
    struct ipc_chan *c, struct ipc_msg *m, void *arg, struct err *e)
{
	static const struct msg_front_to_worker handlers = {
	    .on_sandbox_open = worker_on_sandbox_open,
	    .on_sandbox_settled = worker_on_sandbox_settled,
	    .on_sandbox_shares = worker_on_sandbox_shares,
	    .on_sandbox_remove = worker_on_sandbox_remove,
	    .on_run_start = worker_on_run_start,
	    .on_run_cancel = worker_on_run_cancel,
	    .on_run_forget = worker_on_run_forget,
	    .on_artifact_fd = worker_on_artifact_fd,
	    .on_tenants = worker_on_tenants,
	    .on_sweep = worker_on_sweep,
	    .on_sweep_end = worker_on_sweep_end,
	};

	(void)c;
	return msg_dispatch_front_to_worker(&handlers, m, arg, e);
}

static inline void
worker_close_cb(struct ipc_chan *c, const struct err *why, void *arg)
{
	struct worker *w = arg;

	(void)why;
	ipc_chan_free(c);
	w->chan = NULL;
}

static inline void
worker_open(struct worker *w, struct event_base *base, struct core *core)
{
	static const struct ipc_ops ops = {
	    worker_message_cb, worker_close_cb, NULL};
	int other;

	*w = (struct worker){.base = base, .spool = -1};
	w->chan = world_chan(base, &ops, w, &other);
	core_attach_worker(core, 0, other);
	msg_send_worker_state(
	    w->chan, &(struct msg_worker_state){.engine_up = true});
}

static inline void
worker_close(struct worker *w)
{
	if (w->spool >= 0)
		(void)close(w->spool);
	ipc_chan_free(w->chan);
}

#endif
