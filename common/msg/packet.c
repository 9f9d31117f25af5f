/*
 * packet.c - in and out of a packet
 *
 * In: ipc_msg_parse believes nothing but the size of the packet; ipc_msg_get
 * hands descriptors out to the members of the struct only after every field
 * was found good, so that on failure they are still the message's.
 *
 * Out: the room of a message is known before it is written, so its header is
 * written once, complete.
 */
#include "common/msg/packet.h"

#include "common/exit.h"
#include "common/log.h"
#include "common/msg/codec.h"

#define IPC_KEEP_BYTES 4096

/* ---- in */

int
ipc_msg_parse(struct ipc_msg *m, const uint8_t *p, size_t n, unsigned int nfds,
    size_t *size, struct err *e)
{
	struct wire_in in;
	uint32_t length;
	uint16_t type, said;
	uint64_t id;

	if (n < IPC_HEADER_BYTES)
		return err_set(e, ERR_PROTO, "packet of %zu bytes", n);
	wire_in_init(&in, p, n);
	type = wire_get_u16(&in);
	said = wire_get_u16(&in);
	length = wire_get_u32(&in);
	id = wire_get_u64(&in);
	if (length < IPC_HEADER_BYTES || length > n)
		return err_set(e, ERR_PROTO, "message %u of %zu bytes says %u",
		    type, n, length);
	if (said != nfds)
		return err_set(e, ERR_PROTO,
		    "message %u with %u descriptors says %u", type, nfds, said);
	m->type = type;
	m->id = id;
	in.left = length - IPC_HEADER_BYTES;
	m->in = in;
	*size = length;
	return 0;
}

/* The descriptors go to their members in order; of those that may be missing
 * there is one, the last. */
static int
msg_give_fds(struct ipc_msg *m, const struct codec *c, void *to, struct err *e)
{
	unsigned int least = 0, most = 0, next = 0;

	for (size_t i = 0; i < c->nfields; i++) {
		if (c->fields[i].kind != CODEC_FD)
			continue;
		most++;
		least += c->fields[i].min > 0;
	}
	if (m->nfds < least || m->nfds > most)
		return err_set(
		    e, ERR_PROTO, "%s: %u descriptors", c->name, m->nfds);
	for (size_t i = 0; i < c->nfields && next < m->nfds; i++)
		if (c->fields[i].kind == CODEC_FD)
			*codec_fd(&c->fields[i], to) = m->fds[next++];
	m->nfds = 0;
	return 0;
}

int
ipc_msg_get(struct ipc_msg *m, const struct codec *c, void *to, struct err *e)
{
	if (m->type != c->type)
		return err_set(
		    e, ERR_PROTO, "%s: has type %u", c->name, m->type);
	if (c->has_id)
		memcpy(to, &m->id, sizeof(m->id));
	else if (m->id != 0)
		return err_set(e, ERR_PROTO, "%s: has an id", c->name);
	if (codec_get(&m->in, c, to, e) != 0)
		return ERR_PROTO;
	return msg_give_fds(m, c, to, e);
}

static void
close_fds(const int *fds, unsigned int *n)
{
	while (*n > 0)
		(void)close(fds[--*n]);
}

void
ipc_msg_close_fds(struct ipc_msg *m)
{
	close_fds(m->fds, &m->nfds);
}

/* ---- out */

void
ipc_out_init(struct ipc_out *o)
{
	memset(o, 0, sizeof(*o));
	buf_init(&o->b, IPC_MSG_MAX);
}

/* The descriptors of *m, of which 0 or less is none: a 0 was never set. */
static unsigned int
out_find_fds(const struct codec *c, const void *m, int fds[IPC_FDS_MAX])
{
	unsigned int n = 0;

	for (size_t i = 0; i < c->nfields; i++) {
		const struct codec_field *f = &c->fields[i];
		int fd;

		if (f->kind != CODEC_FD)
			continue;
		memcpy(&fd, (const uint8_t *)m + f->offset, sizeof(fd));
		if (fd > 0 && n < IPC_FDS_MAX)
			fds[n++] = fd;
		else if (fd > 0 || f->min > 0)
			fatal(EXIT_BUG, "%s: %s is %d, as number %u", c->name,
			    f->name, fd, n);
	}
	return n;
}

bool
ipc_out_may_share(const struct ipc_out *o, const struct codec *c, const void *m)
{
	int fds[IPC_FDS_MAX];

	return buf_len(&o->b) == 0 ||
	    (codec_size(c, m) + IPC_HEADER_BYTES <= buf_room(&o->b) &&
		out_find_fds(c, m, fds) == 0);
}

void
ipc_out_put(struct ipc_out *o, const struct codec *c, const void *m)
{
	size_t n = codec_size(c, m) + IPC_HEADER_BYTES;
	uint64_t id = 0;

	if (c->has_id)
		memcpy(&id, m, sizeof(id));
	if (buf_reserve(&o->b, n) == NULL || o->nfds > 0)
		fatal(EXIT_BUG, "%s: %zu bytes do not fit", c->name, n);
	o->nfds = out_find_fds(c, m, o->fds);
	wire_put_u16(&o->b, c->type);
	wire_put_u16(&o->b, (uint16_t)o->nfds);
	wire_put_u32(&o->b, (uint32_t)n);
	wire_put_u64(&o->b, id);
	codec_put(&o->b, c, m);
}

void
packet_drop(const struct codec *c, const void *m)
{
	int fds[IPC_FDS_MAX];
	unsigned int n = out_find_fds(c, m, fds);

	close_fds(fds, &n);
}

void
ipc_out_reset(struct ipc_out *o)
{
	close_fds(o->fds, &o->nfds);
	if (o->b.cap > IPC_KEEP_BYTES)
		buf_clear(&o->b);
	else
		buf_consume(&o->b, buf_len(&o->b));
}

void
ipc_out_clear(struct ipc_out *o)
{
	close_fds(o->fds, &o->nfds);
	buf_clear(&o->b);
}
