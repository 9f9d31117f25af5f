/* fixture.h - a front, a link and a loop for the worker's unit tests. */
#ifndef TESTS_WORKER_FIXTURE_H
#define TESTS_WORKER_FIXTURE_H

#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <event2/event.h>

#include "common/clock.h"
#include "common/msg/msg_gen.h"
#include "common/runlog.h"
#include "common/xmalloc.h"
#include "worker/link/carrier.h"
#include "worker/link/peer.h"
#include "tests/unit/test.h"

#define FIXTURE_WAIT_MS 20000

/* fixture_loop - until *done, or the test fails */
static inline void
fixture_loop(struct event_base *base, const bool *done)
{
	uint64_t end = clock_mono_ms() + FIXTURE_WAIT_MS;
	struct timeval tv = {0, 5000};

	while (!*done) {
		assert_true(clock_mono_ms() < end);
		(void)event_base_loopexit(base, &tv);
		(void)event_base_loop(base, EVLOOP_ONCE);
	}
}

/* fixture_settle - what was put off until later */
static inline void
fixture_settle(struct event_base *base)
{
	for (int i = 0; i < 10; i++)
		(void)event_base_loop(base, EVLOOP_NONBLOCK);
}

/* ---- the front's end of the job channel */

struct front {
	struct ipc_chan *chan; /* the worker's end */
	int fd;
	uint8_t packet[IPC_MSG_MAX];
};

static inline int
front_on_message(
    struct ipc_chan *c, struct ipc_msg *m, void *arg, struct err *e)
{
	(void)c;
	(void)m;
	(void)arg;
	(void)e;
	return 0;
}

static inline void
front_on_close(struct ipc_chan *c, const struct err *why, void *arg)
{
	(void)c;
	(void)why;
	(void)arg;
}

static inline void
front_init(struct front *f, struct event_base *base)
{
	static const struct ipc_ops ops = {
	    front_on_message, front_on_close, NULL};
	int fds[2];

	assert_int_equal(
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
	f->chan = ipc_chan_new(base, fds[0], "front", &ops, f);
	f->fd = fds[1];
}

static inline void
front_clear(struct front *f)
{
	ipc_chan_free(f->chan);
	(void)close(f->fd);
}

/* front_next - the next message, which must be of this type */
static inline struct ipc_msg
front_next(struct front *f, enum ipc_type type)
{
	ssize_t n = recv(f->fd, f->packet, sizeof(f->packet), MSG_DONTWAIT);
	struct ipc_msg m = {0};
	size_t size;
	struct err e;

	assert_true(n > 0);
	assert_int_equal(
	    ipc_msg_parse(&m, f->packet, (size_t)n, 0, &size, &e), 0);
	assert_int_equal(size, n);
	assert_string_equal(ipc_type_name(m.type), ipc_type_name(type));
	return m;
}

static inline void
front_expect_nothing(struct front *f)
{
	assert_int_equal(
	    recv(f->fd, f->packet, sizeof(f->packet), MSG_DONTWAIT), -1);
}

/* ---- a link that keeps what is sent */

/* A real one, and a stream whose agent is the test.  To the link all is one
 * long turn, so that frames stay in link_out. */
struct fake_link {
	struct link *l;
	int fd; /* the agent's end of the stream; -1: none */
};

static inline void
fake_link_take(struct fake_link *k, struct link *l)
{
	*k = (struct fake_link){l, -1};
	l->in_turn = true;
}

static inline void
fake_link_init(struct fake_link *k, struct event_base *base)
{
	fake_link_take(k, link_new(base, 0));
}

/* fake_link_clear - the agent's end, when the link is freed */
static inline void
fake_link_clear(struct fake_link *k)
{
	if (k->fd != -1)
		(void)close(k->fd);
	k->fd = -1;
}

static inline void
fake_link_open(struct fake_link *k)
{
	int fds[2];

	fake_link_clear(k);
	assert_int_equal(
	    socketpair(
		AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds),
	    0);
	k->fd = fds[1];
	link_begin(k->l, fds[0]);
}

/* fake_link_say - the frames in b come from the agent; the first bad one's
 * result */
static inline int
fake_link_say(struct fake_link *k, struct buf *b, struct err *e)
{
	struct frame f;
	int rc = 0;

	while (rc == 0 && buf_len(b) > 0) {
		assert_int_equal(frame_next(b, FRAME_UP_MAX, &f, e), 1);
		rc = k->l->user->on_frame(&f, k->l->arg, e);
		buf_consume(b, f.size);
	}
	buf_clear(b);
	return rc;
}

/* fake_link_greet_as - opens it and says HELLO without runs */
static inline void
fake_link_greet_as(struct fake_link *k, uint8_t life)
{
	const struct frame_hello hello = {
	    .version = FRAME_VERSION, .boot = {{life}}};
	const struct frame_hello_end end = {0};
	struct buf b;
	struct err e;

	buf_init(&b, 0);
	fake_link_open(k);
	assert_int_equal(frame_put_hello(&b, &hello), 0);
	assert_int_equal(frame_put_hello_end(&b, &end), 0);
	assert_int_equal(fake_link_say(k, &b, &e), 0);
}

static inline void
fake_link_greet(struct fake_link *k)
{
	fake_link_greet_as(k, 1);
}

/* fake_link_lose - the stream is gone */
static inline void
fake_link_lose(struct fake_link *k)
{
	struct link *l = k->l;

	link_hang_up(l);
	while (l->fd != -1)
		(void)event_base_loop(l->base, EVLOOP_NONBLOCK);
}

/* What an agent says on a channel: 0, or ERR_PROTO. */
static inline int
fake_link_data(
    struct fake_link *k, uint32_t chan, uint64_t at, const void *p, size_t n)
{
	const struct frame_data m = {
	    .chan = chan, .offset = at, .bytes = {p, n}};
	struct buf b;
	struct err e;

	buf_init(&b, 0);
	assert_int_equal(frame_put_data(&b, &m), 0);
	return fake_link_say(k, &b, &e);
}

static inline int
fake_link_known(struct fake_link *k, uint32_t chan, bool fresh)
{
	const struct frame_known m = {.chan = chan, .fresh = fresh};
	struct buf b;
	struct err e;

	buf_init(&b, 0);
	assert_int_equal(frame_put_known(&b, &m), 0);
	return fake_link_say(k, &b, &e);
}

static inline int
fake_link_close(struct fake_link *k, uint32_t chan, int code, const char *text)
{
	const struct frame_close m = {.chan = chan, .code = code, .text = text};
	struct buf b;
	struct err e;

	buf_init(&b, 0);
	assert_int_equal(frame_put_close(&b, &m), 0);
	return fake_link_say(k, &b, &e);
}

/* fake_link_sent - the next frame the worker sent, which must be of this
 * type; in is good until the next call */
static inline struct wire_in
fake_link_sent(struct fake_link *k, enum frame_type type)
{
	static uint8_t *kept;
	struct wire_in in;
	struct frame f;
	struct err e;

	assert_int_equal(frame_next(link_out(k->l), FRAME_DOWN_MAX, &f, &e), 1);
	assert_string_equal(frame_type_name(f.type), frame_type_name(type));
	free(kept);
	kept = xmemdup(f.in.p, f.in.left);
	wire_in_init(&in, kept, f.in.left);
	buf_consume(link_out(k->l), f.size);
	if (buf_len(link_out(k->l)) == 0)
		buf_clear(link_out(k->l));
	return in;
}

/* fake_link_sent_chan - the same, of which the channel's number is told */
static inline uint32_t
fake_link_sent_chan(struct fake_link *k, enum frame_type type)
{
	struct wire_in in = fake_link_sent(k, type);

	return wire_get_u32(&in);
}

/* fake_link_sent_credit - the next frame is CREDIT; how far it was taken */
static inline uint64_t
fake_link_sent_credit(struct fake_link *k)
{
	struct wire_in in = fake_link_sent(k, FRAME_CREDIT);

	(void)wire_get_u32(&in);
	assert_int_equal(wire_get_u8(&in), 0);
	return wire_get_u64(&in);
}

static inline void
fake_link_sent_nothing(struct fake_link *k)
{
	assert_int_equal(buf_len(link_out(k->l)), 0);
}

/* ---- a run's log */

static inline void
log_plain(struct buf *b, enum runlog_type type, unsigned int command)
{
	struct runlog_header h = {
	    .type = type, .command = (uint16_t)command, .wall_us = 1000};

	runlog_put_header(b, &h);
}

static inline void
log_output(struct buf *b, const char *text)
{
	struct runlog_header h = {.type = RUNLOG_STDOUT,
	    .length = (uint32_t)strlen(text),
	    .wall_us = 1000};

	runlog_put_header(b, &h);
	assert_int_equal(buf_append(b, text, strlen(text)), 0);
}

static inline void
log_command_end(struct buf *b, uint64_t stdout_bytes)
{
	struct runlog_end end = {
	    .reason = RUNLOG_EXIT, .stdout_bytes = stdout_bytes};
	struct runlog_header h = {.type = RUNLOG_COMMAND_ENDED,
	    .length = (uint32_t)runlog_end_size(&end),
	    .wall_us = 1000};

	runlog_put_header(b, &h);
	runlog_put_end(b, &end);
}

static inline void
log_run_end(struct buf *b, enum runlog_reason reason, bool artifacts)
{
	struct runlog_run_end end = {
	    .reason = (uint8_t)reason, .artifacts = artifacts};
	struct runlog_header h = {.type = RUNLOG_RUN_ENDED,
	    .length = RUNLOG_RUN_END_BYTES,
	    .wall_us = 1000};

	runlog_put_header(b, &h);
	runlog_put_run_end(b, &end);
}

/* log_whole - of a run of one command that printed text */
static inline void
log_whole(struct buf *b, const char *text, bool artifacts)
{
	log_plain(b, RUNLOG_RUN_STARTED, 0);
	log_plain(b, RUNLOG_COMMAND_STARTED, 0);
	log_output(b, text);
	log_command_end(b, strlen(text));
	log_run_end(b, RUNLOG_EXIT, artifacts);
}

#endif
