/* task_fixture.h - a run with a front, an agent's link and a spool. */
#ifndef TESTS_WORKER_TASK_FIXTURE_H
#define TESTS_WORKER_TASK_FIXTURE_H

#include "tests/unit/worker/ends.h"

#include "worker/task.h"
#include "tests/unit/test.h"

struct fixture {
	struct task_host host;
	struct task *task;
	int spool;
	uint32_t chan; /* the sequence's number */
	unsigned int completed;
	unsigned int over;
	bool overdue;
	bool disk_full;
	uint64_t limit_ms;
};
static struct fixture fix;
static const struct uuid run_uuid = {{7}};
static const struct peer_run known_from_start = {.uuid = {{7}}, .length = 1};

static inline void
on_disk(bool full, const char *text, void *arg)
{
	(void)text;
	(void)arg;
	fix.disk_full = full;
}

static inline void
on_over(void *arg)
{
	(void)arg;
	fix.over++;
}

static inline void
on_complete(struct task *t, void *arg)
{
	(void)arg;
	fix.completed++;
	if (!task_has_artifacts(t))
		task_finish(t, "");
}

static inline void
on_overdue(struct task *t, void *arg)
{
	(void)t;
	(void)arg;
	fix.overdue = true;
}

static const struct task_ops task_ops = {on_complete, on_overdue};

static inline void
on_down(void)
{
	if (fix.task != NULL)
		task_detach(fix.task);
}

static inline void
new_task(uint64_t limit)
{
	struct task_start s = {.id = 42,
	    .uuid = run_uuid,
	    .spool_limit = limit,
	    .spool = fcntl(fix.spool, F_DUPFD_CLOEXEC, 3),
	    .spec = xmemdup("spec", 4),
	    .nspec = 4,
	    .ncommands = 1,
	    .limit_ms = fix.limit_ms};
	struct err e;

	assert_int_equal(
	    task_new(&fix.host, &s, &task_ops, NULL, &fix.task, &e), 0);
}

static inline int
setup(void **state)
{
	char path[] = "/tmp/worker-test-spool-XXXXXX";
	int fd = mkostemp(path, O_APPEND | O_CLOEXEC);

	(void)state;
	memset(&fix, 0, sizeof(fix));
	assert_true(fd >= 0);
	(void)unlink(path);
	fix.spool = fd;
	ends_open(NULL, on_down);
	ends_greet();
	fix.limit_ms = 3600000;
	fix.host.grace_ms = 20;
	fix.host.base = ends.base;
	fix.host.front = &ends.front.chan;
	fix.host.on_disk = on_disk;
	fix.host.on_over = on_over;
	return 0;
}

static inline int
teardown(void **state)
{
	(void)state;
	task_free(fix.task);
	ends_close();
	(void)close(fix.spool);
	return 0;
}

/* attach - the agent is asked for it */
static inline void
attach(const struct peer_run *known)
{
	task_attach(fix.task, ends.peer, known);
	fix.chan = fake_link_sent_chan(&ends.link, FRAME_OPEN_SEQUENCE);
}

/* reconnect - the link was lost; here is the next, and the task is on it */
static inline void
reconnect(void)
{
	fake_link_lose(&ends.link);
	ends_greet();
	attach(&known_from_start);
}

static inline void
begin(uint64_t limit)
{
	new_task(limit);
	task_begin(fix.task);
	attach(NULL);
	assert_int_equal(fake_link_known(&ends.link, fix.chan, true), 0);
}

static inline int
try_log(uint64_t offset, struct buf *b)
{
	int rc = fake_link_data(
	    &ends.link, fix.chan, offset, buf_data(b), buf_len(b));

	buf_clear(b);
	return rc;
}

static inline void
say_log(uint64_t offset, struct buf *b)
{
	assert_int_equal(try_log(offset, b), 0);
}

/* begin_log - a run that has begun, and the first records of its log in b */
static inline void
begin_log(struct buf *b)
{
	begin(1 << 20);
	buf_init(b, 0);
	log_plain(b, RUNLOG_RUN_STARTED, 0);
	log_plain(b, RUNLOG_COMMAND_STARTED, 0);
}

/* say_whole - a run, and all of its log in one piece */
static inline void
say_whole(bool artifacts)
{
	struct buf b;

	begin(1 << 20);
	buf_init(&b, 0);
	log_whole(&b, "hello", artifacts);
	say_log(0, &b);
}

static inline uint64_t
spool_length(void)
{
	struct stat st;

	assert_int_equal(fstat(fix.spool, &st), 0);
	return (uint64_t)st.st_size;
}

/* RUN_ENDED is next, with this reason; its text for more. */
static inline char *
expect_end(enum runlog_reason reason)
{
	struct ipc_msg in = front_next(&ends.front, IPC_RUN_ENDED);
	struct msg_run_ended m;
	struct err e;

	assert_int_equal(msg_get_run_ended(&in, &m, &e), 0);
	assert_int_equal(m.id, 42);
	assert_string_equal(
	    runlog_reason_word(m.reason), runlog_reason_word(reason));
	assert_int_equal(fix.over, 1);
	return xstrdup(m.text);
}

static inline void
expect_bytes(uint64_t length)
{
	struct ipc_msg in = front_next(&ends.front, IPC_RUN_BYTES);
	struct msg_run_bytes m;
	struct err e;

	assert_int_equal(msg_get_run_bytes(&in, &m, &e), 0);
	assert_int_equal(m.length, length);
}

/* A log that goes on and on, in records of 64 KiB. */
static inline uint64_t
say_much(uint64_t bytes, bool acknowledge)
{
	uint8_t zeros[RUNLOG_PAYLOAD_MAX] = {0};
	struct runlog_header h = {
	    .type = RUNLOG_STDOUT, .length = sizeof(zeros), .wall_us = 1};
	struct buf b;
	uint64_t at = 0;

	buf_init(&b, 0);
	log_plain(&b, RUNLOG_RUN_STARTED, 0);
	log_plain(&b, RUNLOG_COMMAND_STARTED, 0);
	while (at < bytes && fix.over == 0) {
		size_t n;

		runlog_put_header(&b, &h);
		assert_int_equal(buf_append(&b, zeros, sizeof(zeros)), 0);
		n = buf_len(&b);
		say_log(at, &b);
		at += n;
		if (acknowledge && fix.over == 0)
			task_flush(fix.task);
	}
	buf_clear(&b);
	return at;
}

static inline void
skip_to_end(enum runlog_reason reason)
{
	ssize_t n;

	/* The last packet is the end. */
	do {
		n = recv(ends.front.fd, ends.front.packet, 2,
		    MSG_DONTWAIT | MSG_PEEK);
		assert_true(n == 2);
		if (ends.front.packet[0] == IPC_RUN_ENDED)
			break;
		(void)recv(ends.front.fd, ends.front.packet, IPC_MSG_MAX,
		    MSG_DONTWAIT);
	} while (true);
	free(expect_end(reason));
}

#endif
