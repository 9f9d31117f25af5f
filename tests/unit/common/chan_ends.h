/* chan_ends.h - two ends of a channel, and what each of them saw. */
#ifndef TESTS_CHAN_ENDS_H
#define TESTS_CHAN_ENDS_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <event2/event.h>

#include "common/msg/chan.h"
#include "common/msg/codec.h"
#include "tests/unit/test.h"

/* One end of a channel and what it saw. */
struct end {
	struct ipc_chan *c;
	uint64_t next_id; /* messages come with ids 0, 1, 2... */
	unsigned int closes;
	struct err why;
	unsigned int drains;
	int fds[4];
	unsigned int nfds;
	uint64_t free_at;  /* free the channel at the message of this id */
	uint64_t error_at; /* refuse that one */
	uint64_t take_at;  /* take the descriptors of that one */
	bool free_in_close;
	bool free_in_drain;
	bool reply; /* send a message back for each */
};

static struct event_base *base;

/* A message as large as a test wants it, with descriptors or none. */
struct test_message {
	uint64_t id;
	struct span padding;
	int fds[2];
};
static const struct codec_field test_fields[] = {
    {"padding", offsetof(struct test_message, padding), CODEC_REST, 0, 0},
    {"one", offsetof(struct test_message, fds[0]), CODEC_FD, 0, 0},
    {"two", offsetof(struct test_message, fds[1]), CODEC_FD, 0, 0},
};
static const struct codec test_codec = {.type = 7,
    .name = "TEST",
    .has_id = true,
    .size = sizeof(struct test_message),
    .fields = test_fields,
    .nfields = ARRAY_LEN(test_fields)};

static inline void
send_fds(struct end *x, uint64_t id, int one, int two)
{
	ipc_chan_send(x->c, &test_codec,
	    &(struct test_message){.id = id, .fds = {one, two}});
}

static inline void
send_message(struct end *x, uint64_t id, size_t padding)
{
	static uint8_t bytes[IPC_MSG_MAX];

	assert_true(padding <= sizeof(bytes));
	memset(bytes, (int)id, padding);
	ipc_chan_send(x->c, &test_codec,
	    &(struct test_message){.id = id, .padding = {bytes, padding}});
}

static inline int
open_null(void)
{
	return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static inline int
on_message(struct ipc_chan *c, struct ipc_msg *m, void *arg, struct err *e)
{
	struct end *x = arg;

	assert_ptr_equal(c, x->c);
	assert_true(m->id == x->next_id);
	assert_int_equal(x->closes, 0);
	x->next_id++;
	if (m->id == x->take_at) {
		memcpy(x->fds, m->fds, sizeof(m->fds));
		x->nfds = m->nfds;
		m->nfds = 0;
	}
	if (x->reply)
		send_message(x, m->id, 0);
	if (m->id == x->free_at) {
		ipc_chan_free(c);
		x->c = NULL;
		assert_false(ipc_chan_is_full(c));
	}
	if (m->id == x->error_at)
		return err_set(e, ERR_PROTO, "not like this");
	return 0;
}

static inline void
on_close(struct ipc_chan *c, const struct err *why, void *arg)
{
	struct end *x = arg;

	x->closes++;
	x->why = *why;
	send_message(x, 0, 0); /* too late, and no harm */
	if (x->free_in_close) {
		ipc_chan_free(c);
		x->c = NULL;
	}
}

static inline void
on_drain(struct ipc_chan *c, void *arg)
{
	struct end *x = arg;

	assert_false(ipc_chan_is_full(c));
	x->drains++;
	if (x->free_in_drain) {
		ipc_chan_free(c);
		x->c = NULL;
	}
}

static const struct ipc_ops ops = {on_message, on_close, on_drain};

static inline void
end_open(struct end *x, int fd)
{
	memset(x, 0, sizeof(*x));
	x->free_at = x->error_at = x->take_at = UINT64_MAX;
	x->c = ipc_chan_new(base, fd, "test", &ops, x);
}

static inline void
make_pair(int fds[2])
{
	assert_int_equal(
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
}

static inline void
make_ends(struct end *a, struct end *b)
{
	int fds[2];

	make_pair(fds);
	end_open(a, fds[0]);
	end_open(b, fds[1]);
}

static inline void
free_ends(struct end *a, struct end *b)
{
	ipc_chan_free(a->c);
	ipc_chan_free(b->c);
}

static inline void
timed_out_cb(int fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	*(bool *)arg = true;
}

/* Turn the loop until the condition holds; a test that waits for ever would
 * say nothing, so half a minute is its end. */
#define WAIT_FOR(condition)                                                    \
	do {                                                                   \
		const struct timeval limit = {30, 0};                          \
		bool late = false;                                             \
		struct event *t = evtimer_new(base, timed_out_cb, &late);      \
                                                                               \
		(void)evtimer_add(t, &limit);                                  \
		while (!(condition) && !late)                                  \
			(void)event_base_loop(base, EVLOOP_ONCE);              \
		event_free(t);                                                 \
		assert_true(condition);                                        \
	} while (0)

static inline unsigned int
count_open_fds(void)
{
	unsigned int n = 0;
	DIR *d = opendir("/proc/self/fd");

	assert_non_null(d);
	while (readdir(d) != NULL)
		n++;
	(void)closedir(d);
	return n;
}

static inline int
make_base(void **state)
{
	(void)state;
	base = event_base_new();
	return base != NULL ? 0 : -1;
}

static inline int
free_base(void **state)
{
	(void)state;
	event_base_free(base);
	return 0;
}

#endif
