/*
 * child_fixture.h - for the tests of common/child.c
 *
 * The child runs for real in a forked process with its channel on descriptor
 * 3; the test is its supervisor at the other end.  What its callbacks see
 * comes back as lines on a pipe.
 */
#ifndef TESTS_COMMON_CHILD_FIXTURE_H
#define TESTS_COMMON_CHILD_FIXTURE_H

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <event2/event.h>

#include "common/child.h"
#include "common/exit.h"
#include "common/log.h"
#include "tests/unit/test.h"

#define PATIENCE_MS 10000

/* In the child */

static int report_fd = -1;
static struct event_base *child_base;
static struct child *the_child;

static void report(const char *fmt, ...) PRINTF(1, 2);
static inline void
report(const char *fmt, ...)
{
	char line[256];
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(line, sizeof(line) - 1, fmt, ap);
	va_end(ap);
	line[n++] = '\n';
	if (write(report_fd, line, (size_t)n) != n)
		_exit(99);
}

static inline int
child_on_config(
    struct child *c, const struct conf *conf, void *arg, struct err *e)
{
	(void)c;
	(void)arg;
	report("config %s", conf_str(conf, CONF_INSTANCE));
	if (strcmp(conf_str(conf, CONF_INSTANCE), "refuse") == 0)
		return err_set(e, ERR_INVAL, "no database in %s", "/here") !=
			0 ?
		    EXIT_CONFIG :
		    0;
	if (strcmp(conf_str(conf, CONF_INSTANCE), "bad-status") == 0)
		return err_set(e, ERR_SYS, "a code instead of a status");
	return 0;
}

static inline void
child_on_reload(const struct conf *conf, void *arg)
{
	(void)arg;
	report("reload %s %lld %d", conf_str(conf, CONF_INSTANCE),
	    (long long)conf_int(conf, CONF_DRAIN_TIMEOUT_MS),
	    (int)log_get_level());
}

static inline void
child_on_listen(int fd, const char *address, void *arg)
{
	(void)arg;
	report("listen %s", address);
	(void)close(fd);
}

static inline void
child_on_tls_file(enum msg_tls_part part, int fd, void *arg)
{
	(void)arg;
	report("tls file %d %d", (int)part, fd > 2);
	(void)close(fd);
}

static inline int
child_on_tls_end(void *arg)
{
	(void)arg;
	report("tls end");
	return -1;
}

static inline void
child_on_peer(uint32_t index, uint32_t generation, int fd, void *arg)
{
	(void)arg;
	report("peer %u %u", index, generation);
	if (write(fd, "hi", 2) != 2)
		_exit(99);
	(void)close(fd);
}

static inline void
child_on_peer_gone(uint32_t index, uint32_t delay_ms, bool throttled, void *arg)
{
	(void)arg;
	report("gone %u %u %d", index, delay_ms, throttled);
}

/* The number stands for what the test wants to see. */
enum {
	DRAIN_COUNT_ONE = 1,
	DRAIN_DIE = 2,
	DRAIN_LEVEL = 3
};
static inline void
child_on_drain(uint32_t left_ms, void *arg)
{
	(void)arg;
	switch (left_ms) {
	case DRAIN_COUNT_ONE:
		child_counts(the_child, 1);
		break;
	case DRAIN_DIE:
		child_die(the_child, EXIT_BUG, "broke at %d", 42);
	case DRAIN_LEVEL:
		report("level %d", (int)log_get_level());
		break;
	default:
		report("drain %u", left_ms);
	}
}

static const struct child_ops ops = {.on_config = child_on_config,
    .on_reload = child_on_reload,
    .on_tls_file = child_on_tls_file,
    .on_tls_end = child_on_tls_end,
    .on_listen = child_on_listen,
    .on_peer = child_on_peer,
    .on_peer_gone = child_on_peer_gone,
    .on_drain = child_on_drain};

static inline NORETURN void
run_child(enum msg_role role, uint32_t index)
{
	child_base = event_base_new();
	the_child = child_start(child_base, role, index, &ops, NULL);
	(void)event_base_dispatch(child_base);
	_exit(98);
}

/* In the test */

struct fixture {
	struct event_base *base;
	struct ipc_chan *chan;
	int fd; /* of chan */
	pid_t pid;
	int report;
	bool is_closed;
	/* Of what was received: how often, and its number fields. */
	unsigned int seen[IPC_STILL_STARTING + 1];
	uint32_t fields[4];
	char text[512];
};

static inline int
on_message(struct ipc_chan *chan, struct ipc_msg *m, void *arg, struct err *e)
{
	struct fixture *f = arg;
	struct msg_hello hello;
	struct msg_counts counts;
	struct msg_last_words words;
	struct msg_tls_taken taken;
	int rc = 0;

	(void)chan;
	assert_true(m->type < ARRAY_LEN(f->seen));
	f->seen[m->type]++;
	if (m->type == IPC_HELLO && (rc = msg_get_hello(m, &hello, e)) == 0) {
		f->fields[0] = hello.version;
		f->fields[1] = hello.role;
		f->fields[2] = hello.index;
		f->fields[3] = hello.pid;
	} else if (m->type == IPC_COUNTS &&
	    (rc = msg_get_counts(m, &counts, e)) == 0) {
		f->fields[0] = counts.done;
	} else if (m->type == IPC_LAST_WORDS &&
	    (rc = msg_get_last_words(m, &words, e)) == 0) {
		f->fields[0] = words.status;
		(void)snprintf(f->text, sizeof(f->text), "%s", words.reason);
	} else if (m->type == IPC_TLS_TAKEN &&
	    (rc = msg_get_tls_taken(m, &taken, e)) == 0) {
		f->fields[0] = taken.number;
		f->fields[1] = taken.good;
	}
	if (rc != 0)
		fail_msg("%s", e->msg);
	return 0;
}

static inline void
on_close(struct ipc_chan *chan, const struct err *why, void *arg)
{
	struct fixture *f = arg;

	(void)chan;
	(void)why;
	f->is_closed = true;
}

static const struct ipc_ops test_ops = {
    .on_message = on_message, .on_close = on_close};

static inline void
start(struct fixture *f, enum msg_role role, uint32_t index)
{
	int channel[2], reports[2];

	memset(f, 0, sizeof(*f));
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, channel), 0);
	assert_int_equal(pipe(reports), 0);
	f->pid = fork();
	assert_true(f->pid >= 0);
	if (f->pid == 0) {
		report_fd = dup2(reports[1], 20);
		if (dup2(channel[1], CHILD_CTL_FD) == -1)
			_exit(97);
		for (int fd = CHILD_CTL_FD + 1; fd < 20; fd++)
			(void)close(fd);
		run_child(role, index);
	}
	(void)close(channel[1]);
	(void)close(reports[1]);
	f->report = reports[0];
	f->base = event_base_new();
	f->fd = channel[0];
	f->chan = ipc_chan_new(f->base, channel[0], "child", &test_ops, f);
}

static inline void
stop(struct fixture *f)
{
	ipc_chan_free(f->chan);
	event_base_free(f->base);
	(void)close(f->report);
}

static inline int
wait_exit(struct fixture *f)
{
	int status;

	assert_int_equal(waitpid(f->pid, &status, 0), f->pid);
	return status;
}

static inline void
give_up_cb(int fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)arg;
	fail_msg("the child did not do it in %d ms", PATIENCE_MS);
}

/* Until the child has said this so often. */
static inline void
wait_seen(struct fixture *f, enum ipc_type type, unsigned int times)
{
	static const struct timeval patience = {.tv_sec = PATIENCE_MS / 1000};
	struct event *give_up = evtimer_new(f->base, give_up_cb, NULL);

	assert_int_equal(event_add(give_up, &patience), 0);
	while (f->seen[type] < times) {
		assert_false(f->is_closed);
		assert_int_equal(event_base_loop(f->base, EVLOOP_ONCE), 0);
	}
	event_free(give_up);
}

static inline void
expect_report(struct fixture *f, const char *want)
{
	char line[256];
	size_t n = 0;
	struct pollfd p = {.fd = f->report, .events = POLLIN};

	do {
		assert_int_equal(poll(&p, 1, PATIENCE_MS), 1);
		assert_int_equal(read(f->report, &line[n], 1), 1);
	} while (line[n++] != '\n');
	line[n - 1] = '\0';
	assert_string_equal(line, want);
}

static inline void
send_config(struct fixture *f, const char *key, const char *value)
{
	msg_send_config(
	    f->chan, &(struct msg_config){.key = key, .value = value});
}

static inline void
send_config_end(struct fixture *f)
{
	msg_send_config_end(f->chan, &(struct msg_config_end){0});
}

static inline void
send_drain(struct fixture *f, uint32_t left_ms)
{
	msg_send_drain(f->chan, &(struct msg_drain){.left_ms = left_ms});
}

static inline void
send_gone(struct fixture *f, uint32_t index, uint32_t generation,
    uint32_t delay_ms, bool throttled)
{
	msg_send_peer_gone(f->chan,
	    &(struct msg_peer_gone){.index = index,
		.generation = generation,
		.delay_ms = delay_ms,
		.throttled = throttled});
}

/* Returns our end of the new channel. */
static inline int
send_peer(struct fixture *f, uint32_t index, uint32_t generation)
{
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds), 0);
	msg_send_peer(f->chan,
	    &(struct msg_peer){
		.index = index, .generation = generation, .channel = fds[1]});
	return fds[0];
}

/* A message of type that is these bytes: what no sender would say. */
static inline void
send_raw(int fd, unsigned int type, const void *fields, size_t n)
{
	struct buf b;

	buf_init(&b, 0);
	wire_put_u16(&b, (uint16_t)type);
	wire_put_u16(&b, 0);
	wire_put_u32(&b, (uint32_t)(IPC_HEADER_BYTES + n));
	wire_put_u64(&b, 0);
	assert_int_equal(buf_append(&b, fields, n), 0);
	assert_int_equal(
	    send(fd, buf_data(&b), buf_len(&b), 0), (ssize_t)buf_len(&b));
	buf_clear(&b);
}

static inline void
start_ready(struct fixture *f, enum msg_role role)
{
	start(f, role, 0);
	wait_seen(f, IPC_HELLO, 1);
	send_config(f, "INSTANCE", "here");
	send_config_end(f);
	wait_seen(f, IPC_READY, 1);
	expect_report(f, "config here");
}

#endif
