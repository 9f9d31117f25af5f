/*
 * world.h - what worlds of tests are made of: directories, and the other end
 * of a worker's channel
 */
#ifndef TESTS_UNIT_WORLD_H
#define TESTS_UNIT_WORLD_H

#include <sys/socket.h>
#include <ftw.h>
#include <stdio.h>

#include <event2/event.h>

#include "common/msg/chan.h"
#include "tests/unit/test.h"

static inline int
world_remove_cb(
    const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	(void)type;
	(void)at;
	(void)remove(path);
	return 0;
}

/* world_remove_dir - with all that is in it; links are not followed */
static inline void
world_remove_dir(const char *path)
{
	(void)nftw(path, world_remove_cb, 16, FTW_DEPTH | FTW_PHYS);
}

/* world_chan - a channel of the test's own, whose other end is in *other */
static inline struct ipc_chan *
world_chan(
    struct event_base *base, const struct ipc_ops *ops, void *arg, int *other)
{
	int pair[2];

	assert_int_equal(
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	*other = pair[0];
	return ipc_chan_new(base, pair[1], "test", ops, arg);
}

/* The handler of a message that is taken and has no effect. */
#define WORLD_IGNORES(prefix, name)                                            \
	static inline int prefix##_on_##name(                                  \
	    void *arg, const struct msg_##name *m, struct err *e)              \
	{                                                                      \
		(void)arg;                                                     \
		(void)m;                                                       \
		(void)e;                                                       \
		return 0;                                                      \
	}

#endif
