/*
 * fuzz_ipc.c - packets from a hostile peer, through a real socket and into the
 * handlers of every direction in schema/ipc.txt
 * libs: common
 *
 * The first byte of an input chooses a direction, the second the state of the
 * channel.  Then come packets: raw bytes, or a good message of the list with
 * some of its bytes changed.  What a decoder takes must be what the encoder
 * would have written: each message has one encoding, and there is no bound
 * that only one of the two knows.
 */
#include <fcntl.h>
#include <sys/socket.h>

#include <event2/event.h>

#include "common/msg/codec.h"
#include "common/msg/msg_gen.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/common/codec_any.h"

struct seen {
	unsigned int way;
	unsigned int state;
	const struct ipc_msg *now;
	struct span fields; /* of it, before they were read */
	unsigned int closes;
};

/* ---- the receiver */

static void
check_same(const struct seen *s, const void *m)
{
	struct buf b;

	buf_init(&b, IPC_MSG_MAX);
	codec_put(&b, msg_codec(s->now->type), m);
	if (buf_len(&b) != s->fields.n ||
	    (s->fields.n > 0 &&
		memcmp(buf_data(&b), s->fields.p, s->fields.n) != 0))
		abort();
	buf_clear(&b);
}

/* Those of every other message are taken; the rest is closed behind us. */
static void
take_fds(const struct seen *s, void *m)
{
	const struct codec *c = msg_codec(s->now->type);

	for (size_t i = 0; i < c->nfields; i++) {
		const struct codec_field *f = &c->fields[i];
		int fd;

		if (f->kind != CODEC_FD)
			continue;
		if (f->min > 0 && *codec_fd(f, m) < 0)
			abort();
		if (s->now->id % 2 == 0)
			continue;
		fd = msg_take_fd(codec_fd(f, m));
		if (fd >= 0)
			(void)close(fd);
	}
}

#define HANDLER(name, qualifier)                                               \
	static int on_##name(                                                  \
	    void *arg, qualifier struct msg_##name *m, struct err *e)          \
	{                                                                      \
		union {                                                        \
			qualifier struct msg_##name *given;                    \
			void *m;                                               \
		} u = {m};                                                     \
                                                                               \
		check_same(arg, m);                                            \
		take_fds(arg, u.m);                                            \
		return ((struct seen *)arg)->now->id == 77 ?                   \
		    err_set(e, ERR_PROTO, "no") :                              \
		    0;                                                         \
	}
#define ENTRY(name, qualifier) .on_##name = on_##name,

MSG_CHILD_TO_MASTER_EACH(HANDLER)
MSG_MASTER_TO_CHILD_EACH(HANDLER)
MSG_FRONT_TO_WORKER_EACH(HANDLER)
MSG_WORKER_TO_FRONT_EACH(HANDLER)
MSG_FRONT_TO_KEYS_EACH(HANDLER)
MSG_KEYS_TO_FRONT_EACH(HANDLER)
MSG_FRONT_TO_COURIER_EACH(HANDLER)
MSG_COURIER_TO_FRONT_EACH(HANDLER)

static int
dispatch(struct seen *s, struct ipc_msg *m, struct err *e)
{
	static const struct msg_child_to_master to_master = {
	    MSG_CHILD_TO_MASTER_EACH(ENTRY)};
	static const struct msg_master_to_child to_child = {
	    MSG_MASTER_TO_CHILD_EACH(ENTRY)};
	static const struct msg_front_to_worker to_worker = {
	    MSG_FRONT_TO_WORKER_EACH(ENTRY)};
	static const struct msg_worker_to_front to_front = {
	    MSG_WORKER_TO_FRONT_EACH(ENTRY)};
	static const struct msg_front_to_keys to_keys = {
	    MSG_FRONT_TO_KEYS_EACH(ENTRY)};
	static const struct msg_keys_to_front from_keys = {
	    MSG_KEYS_TO_FRONT_EACH(ENTRY)};
	static const struct msg_front_to_courier to_courier = {
	    MSG_FRONT_TO_COURIER_EACH(ENTRY)};
	static const struct msg_courier_to_front from_courier = {
	    MSG_COURIER_TO_FRONT_EACH(ENTRY)};

	switch (s->way) {
	case 0:
		return msg_dispatch_child_to_master(
		    &to_master, s->state, m, s, e);
	case 1:
		return msg_dispatch_master_to_child(
		    &to_child, s->state, m, s, e);
	case 2:
		return msg_dispatch_front_to_worker(&to_worker, m, s, e);
	case 4:
		return msg_dispatch_front_to_keys(&to_keys, m, s, e);
	case 5:
		return msg_dispatch_keys_to_front(&from_keys, m, s, e);
	case 6:
		return msg_dispatch_front_to_courier(&to_courier, m, s, e);
	case 7:
		return msg_dispatch_courier_to_front(&from_courier, m, s, e);
	default:
		return msg_dispatch_worker_to_front(&to_front, m, s, e);
	}
}

static int
on_message(struct ipc_chan *c, struct ipc_msg *m, void *arg, struct err *e)
{
	struct seen *s = arg;

	if (s->closes != 0 || m->nfds > IPC_FDS_MAX)
		abort();
	s->now = m;
	s->fields = (struct span){m->in.p, m->in.left};
	msg_send_run_bytes(c, &(struct msg_run_bytes){.id = m->id});
	return dispatch(s, m, e);
}

static void
on_close(struct ipc_chan *c, const struct err *why, void *arg)
{
	struct seen *s = arg;

	(void)c;
	if (why->msg[0] == '\0' || s->closes++ != 0)
		abort();
}

/* ---- the peer */

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

/* A message of the list, as its sender would write it but for the bytes that
 * edits, pairs of place and value, change. */
static void
send_edited(int to, uint8_t type, uint8_t seed, size_t nfds,
    const uint8_t *edits, size_t nedits)
{
	static uint8_t pool[1 << 18];
	struct any any = {.pool = pool, .size = sizeof(pool), .seed = seed};
	const struct codec *c = msg_codec(type);
	struct buf b;
	uint8_t *p;

	if (c == NULL)
		return;
	any_fill(&any, c);
	buf_init(&b, IPC_MSG_MAX);
	wire_put_u16(&b, type);
	wire_put_u16(&b, (uint16_t)nfds);
	wire_put_u32(&b, (uint32_t)(IPC_HEADER_BYTES + codec_size(c, any.m)));
	wire_put_u64(&b, c->has_id ? seed : 0);
	codec_put(&b, c, any.m);
	p = buf_data(&b);
	for (size_t i = 0; i + 1 < nedits; i += 2)
		p[edits[i] % buf_len(&b)] = edits[i + 1];
	send_packet(to, p, buf_len(&b), nfds);
	buf_clear(&b);
}

/* A packet is a byte for its descriptors and kind, one for its length, and
 * that many bytes. */
static void
send_all(int to, const uint8_t *data, size_t size)
{
	while (size >= 3) {
		size_t n = data[1], nfds = data[0] & 3;

		if (n > size - 2)
			n = size - 2;
		if ((data[0] & 4) != 0 && n >= 2)
			send_edited(
			    to, data[2], data[3], nfds, data + 4, n - 2);
		else
			send_packet(to, data + 2, n, nfds);
		data += 2 + n;
		size -= 2 + n;
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct ipc_ops ops = {on_message, on_close, NULL};
	static struct event_base *base;
	struct seen s = {0};
	struct ipc_chan *c;
	int fds[2];

	if (size < 2)
		return 0;
	s.way = data[0] & 7;
	s.state = data[1];
	if (base == NULL)
		base = event_base_new();
	if (base == NULL ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) != 0)
		abort();
	c = ipc_chan_new(base, fds[0], "fuzz", &ops, &s);
	send_all(fds[1], data + 2, size - 2);
	(void)close(fds[1]);
	for (int i = 0; i < 100 && s.closes == 0; i++)
		(void)event_base_loop(base, EVLOOP_NONBLOCK);
	REQUIRE(s.closes == 1);
	ipc_chan_free(c);
	return 0;
}
