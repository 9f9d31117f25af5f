#include "common/ipc.h"

#include "common/ipc_wire.h"
#include "common/log.h"

#define EXIT_BUG 70
/* Where in the header what is known only at the end stands. */
#define IPC_AT_NFDS 2
#define IPC_AT_LENGTH 4

void
ipc_out_init(struct ipc_out *o, enum ipc_type type, uint64_t id)
{
	memset(o, 0, sizeof(*o));
	buf_init(&o->b, IPC_MSG_MAX);
	wire_put_u16(&o->b, (uint16_t)type);
	wire_put_u16(&o->b, 0);
	wire_put_u32(&o->b, 0);
	wire_put_u64(&o->b, id);
}

void
ipc_out_add_fd(struct ipc_out *o, int fd)
{
	if (fd < 0 || o->nfds == IPC_FDS_MAX)
		fatal(EXIT_BUG, "ipc_out_add_fd: descriptor %d as number %u",
		    fd, o->nfds);
	o->fds[o->nfds++] = fd;
}

void
ipc_out_seal(struct ipc_out *o)
{
	uint8_t *p = buf_data(&o->b);
	size_t n = buf_len(&o->b);

	p[IPC_AT_NFDS] = (uint8_t)o->nfds;
	for (size_t i = 0; i < 4; i++)
		p[IPC_AT_LENGTH + i] = (uint8_t)(n >> 8 * i);
}

void
ipc_out_clear(struct ipc_out *o)
{
	for (unsigned int i = 0; i < o->nfds; i++)
		(void)close(o->fds[i]);
	o->nfds = 0;
	buf_clear(&o->b);
}

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
	if (strcmp(ipc_type_name(type), "?") == 0)
		return err_set(e, ERR_PROTO, "unknown message type %u", type);
	if (length < IPC_HEADER_BYTES || length > n)
		return err_set(e, ERR_PROTO, "%s of %zu bytes says %u",
		    ipc_type_name(type), n, length);
	if (said != nfds)
		return err_set(e, ERR_PROTO, "%s with %u descriptors says %u",
		    ipc_type_name(type), nfds, said);
	m->type = (enum ipc_type)type;
	m->id = id;
	in.left = length - IPC_HEADER_BYTES;
	m->in = in;
	*size = length;
	return 0;
}

int
ipc_msg_take_fd(struct ipc_msg *m)
{
	int fd;

	if (m->nfds == 0)
		return -1;
	fd = m->fds[0];
	m->nfds--;
	memmove(m->fds, m->fds + 1, m->nfds * sizeof(*m->fds));
	return fd;
}

void
ipc_msg_close_fds(struct ipc_msg *m)
{
	int fd;

	while ((fd = ipc_msg_take_fd(m)) >= 0)
		(void)close(fd);
}

int
ipc_dispatch(const struct ipc_route *routes, unsigned int state,
    struct ipc_msg *m, void *arg, struct err *e)
{
	const struct ipc_route *r = routes;

	while (r->type != IPC_NONE && r->type != m->type)
		r++;
	if (r->type == IPC_NONE)
		return err_set(e, ERR_PROTO, "%s is not for this process",
		    ipc_type_name(m->type));
	if ((r->states & state) == 0)
		return err_set(e, ERR_PROTO, "%s is not permitted now",
		    ipc_type_name(m->type));
	if (m->nfds > r->nfds_max)
		return err_set(e, ERR_PROTO, "%s with %u descriptors, limit %u",
		    ipc_type_name(m->type), m->nfds, r->nfds_max);
	return r->on(arg, m, e);
}
