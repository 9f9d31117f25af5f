/* fuzz_ipc.c - packets from a hostile peer, through a real socket.
 * libs: common */
#include <fcntl.h>
#include <sys/socket.h>

#include <event2/event.h>

#include "common/ipc.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct seen {
	unsigned int messages;
	unsigned int closes;
};

static int
on_message(struct ipc_chan *c, struct ipc_msg *m, void *arg, struct err *e)
{
	struct seen *s = arg;
	struct ipc_out o;
	size_t n;

	if (s->closes != 0 || m->nfds > IPC_FDS_MAX)
		abort();
	s->messages++;
	ipc_out_init(&o, IPC_PONG, m->id);
	ipc_send(c, &o);
	(void)wire_get_u32(&m->in);
	free(wire_get_str(&m->in, 1000));
	if (m->id % 3 == 1) {
		int fd = ipc_msg_take_fd(m);

		if (fd >= 0)
			(void)close(fd);
	}
	(void)wire_get_bytes(&m->in, 1000, &n);
	(void)wire_get_rest(&m->in, &n);
	if (m->id == 77)
		return wire_get_end(&m->in, e);
	return 0;
}

static void
on_close(struct ipc_chan *c, const struct err *why, void *arg)
{
	struct seen *s = arg;

	(void)c;
	if (why->msg[0] == '\0' || s->closes++ != 0)
		abort();
}

static void
send_packet(int to, const uint8_t *p, size_t n, size_t nfds)
{
	static int null = -1;
	union {
		char space[CMSG_SPACE(sizeof(int) * 4)];
		struct cmsghdr align;
	} control = {{0}};
	struct iovec iov = {(void *)(uintptr_t)p, n};
	struct msghdr mh = {.msg_iov = &iov, .msg_iovlen = 1};

	if (null < 0)
		null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (nfds > 0) {
		struct cmsghdr *cm;

		mh.msg_control = control.space;
		mh.msg_controllen = CMSG_SPACE(sizeof(int) * nfds);
		cm = CMSG_FIRSTHDR(&mh);
		cm->cmsg_level = SOL_SOCKET;
		cm->cmsg_type = SCM_RIGHTS;
		cm->cmsg_len = CMSG_LEN(sizeof(int) * nfds);
		for (size_t i = 0; i < nfds; i++)
			memcpy(CMSG_DATA(cm) + i * sizeof(int), &null,
			    sizeof(null));
	}
	(void)sendmsg(to, &mh, MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* A packet is a byte for its descriptors, one for its length, and its
 * bytes. */
int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct ipc_ops ops = {on_message, on_close, NULL};
	static struct event_base *base;
	struct seen s = {0, 0};
	struct ipc_chan *c;
	int fds[2];

	if (base == NULL)
		base = event_base_new();
	if (base == NULL ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) != 0)
		abort();
	c = ipc_chan_new(base, fds[0], "fuzz", &ops, &s);
	while (size >= 3) {
		size_t n = data[1];

		if (n > size - 2)
			n = size - 2;
		send_packet(fds[1], data + 2, n, data[0] & 3);
		data += 2 + n;
		size -= 2 + n;
	}
	(void)close(fds[1]);
	for (int i = 0; i < 100 && s.closes == 0; i++)
		(void)event_base_loop(base, EVLOOP_NONBLOCK);
	if (s.closes != 1)
		abort();
	ipc_chan_free(c);
	return 0;
}
