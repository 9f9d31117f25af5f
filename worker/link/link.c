#include "worker/link/link.h"

#include "worker/link/carrier.h"

void
link_set_user(struct link *l, const struct link_user *user, void *arg)
{
	l->user = user;
	l->arg = arg;
}

void
link_expect(struct link *l, const struct backend_container *c)
{
	l->ops->expect(l, c);
}

size_t
link_room(const struct link *l)
{
	return buf_room(&l->out);
}

struct buf *
link_out(struct link *l)
{
	return &l->out;
}

void
link_send(struct link *l)
{
	l->ops->send(l);
}

void
link_send_soon(struct link *l)
{
	l->ops->send_soon(l);
}

void
link_drop(struct link *l)
{
	l->ops->drop(l);
}

void
link_hang_up(struct link *l)
{
	l->ops->hang_up(l);
}

void
link_pause(struct link *l)
{
	l->ops->set_reading(l, false);
}

void
link_resume(struct link *l)
{
	l->ops->set_reading(l, true);
}

void
link_pace(struct link *l, uint64_t bytes_per_s)
{
	l->ops->pace(l, bytes_per_s);
}

void
link_free(struct link *l)
{
	if (l != NULL)
		l->ops->free(l);
}
