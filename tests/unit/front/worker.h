/*
 * worker.h - the other end of a job channel, moved by the test
 *
 * The service is the real one; this plays a worker whose sandboxes are always
 * ready and whose runs print and end what and when the test says.
 */
#ifndef TESTS_FRONT_WORKER_H
#define TESTS_FRONT_WORKER_H

#include "tests/unit/http/raw.h"

#include <openssl/sha.h>

#include "common/ipc.h"
#include "common/runlog.h"
#include "common/xmalloc.h"
#include "supervisor/service/service.h"

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
worker_send_text(
    struct worker *w, enum ipc_type type, uint64_t id, const char *text)
{
	struct ipc_out o;

	ipc_out_init(&o, type, id);
	if (type == IPC_WORKER_STATE)
		wire_put_u8(&o.b, 1);
	if (type == IPC_SANDBOX_REMOVED)
		wire_put_i32(&o.b, 0);
	wire_put_str(&o.b, text);
	if (type == IPC_WORKER_STATE)
		wire_put_u8(&o.b, 1);
	for (int i = 0; type == IPC_SANDBOX_READY && i < 3; i++)
		wire_put_u32(&o.b, 1);
	ipc_send(w->chan, &o);
}

static inline void
worker_append(struct worker *w, struct buf *record, enum runlog_type type)
{
	struct ipc_out o;

	assert_int_equal(write(w->spool, buf_data(record), buf_len(record)),
	    buf_len(record));
	w->length += buf_len(record);
	if (type != RUNLOG_STDOUT) {
		ipc_out_init(&o, IPC_RUN_RECORD, w->run);
		wire_put_bytes(&o.b, buf_data(record), buf_len(record));
		ipc_send(w->chan, &o);
	}
	ipc_out_init(&o, IPC_RUN_BYTES, w->run);
	wire_put_u64(&o.b, w->length);
	ipc_send(w->chan, &o);
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
	struct ipc_out o;

	ipc_out_init(&o, IPC_RUN_ENDED, w->run);
	wire_put_u8(&o.b, RUNLOG_EXIT);
	wire_put_u64(&o.b, w->length);
	wire_put_str(&o.b, "");
	wire_put_u32(&o.b, w->artifact != NULL);
	wire_put_str(&o.b, "");
	ipc_send(w->chan, &o);
	(void)close(w->spool);
	w->spool = -1;
}

static inline void
worker_send_artifact(struct worker *w)
{
	const char *path = w->artifact_path;
	struct ipc_out o;

	ipc_out_init(&o, IPC_ARTIFACT_OPEN, w->run);
	wire_put_u32(&o.b, 0);
	wire_put_u64(&o.b, strlen(w->artifact));
	wire_put_u32(&o.b, 0644);
	wire_put_i64(&o.b, INT64_C(1700000000) * 1000000000);
	wire_put_bytes(&o.b, path, strlen(path));
	ipc_send(w->chan, &o);
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

static inline void
worker_on_run(struct worker *w, struct ipc_msg *m)
{
	w->run = m->id;
	w->spool = ipc_msg_take_fd(m);
	w->length = 0;
	w->stdout_bytes = 0;
	w->runs++;
	if (w->deaf)
		return;
	worker_record(w, RUNLOG_RUN_STARTED, "", 0);
	worker_record(w, RUNLOG_COMMAND_STARTED, "", 0);
	if (!w->at_once)
		return;
	worker_print(w, w->said, strlen(w->said));
	worker_end(w, w->exit_code);
}

static inline void
worker_on_artifact_fd(struct worker *w, struct ipc_msg *m)
{
	int fd = ipc_msg_take_fd(m);
	size_t n = strlen(w->artifact);
	uint8_t digest[SHA256_DIGEST_LENGTH];
	struct ipc_out o;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, w->artifact, n), n);
	(void)close(fd);
	(void)SHA256((const unsigned char *)w->artifact, n, digest);
	ipc_out_init(&o, IPC_ARTIFACT_DONE, w->run);
	wire_put_u32(&o.b, 0);
	wire_put_i32(&o.b, 0);
	wire_put_u64(&o.b, n);
	wire_put_bytes(&o.b, digest, sizeof(digest));
	ipc_send(w->chan, &o);
	worker_send_ended(w);
}

static inline int
worker_message_cb(
    struct ipc_chan *c, struct ipc_msg *m, void *arg, struct err *e)
{
	struct worker *w = arg;

	(void)c;
	(void)e;
	if (m->type == IPC_SANDBOX_OPEN)
		worker_send_text(w, IPC_SANDBOX_READY, m->id, "c0ffee");
	else if (m->type == IPC_SANDBOX_REMOVE)
		worker_send_text(w, IPC_SANDBOX_REMOVED, m->id, "");
	else if (m->type == IPC_RUN_START)
		worker_on_run(w, m);
	else if (m->type == IPC_ARTIFACT_FD)
		worker_on_artifact_fd(w, m);
	return 0;
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
worker_open(struct worker *w, struct event_base *base, struct service *service)
{
	static const struct ipc_ops ops = {
	    worker_message_cb, worker_close_cb, NULL};
	int pair[2];

	*w = (struct worker){.base = base, .spool = -1};
	assert_int_equal(
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	w->chan = ipc_chan_new(base, pair[1], "test", &ops, w);
	service_worker_attach(service, 0, pair[0]);
	worker_send_text(w, IPC_WORKER_STATE, 0, "");
}

static inline void
worker_close(struct worker *w)
{
	if (w->spool >= 0)
		(void)close(w->spool);
	ipc_chan_free(w->chan);
}

#endif
