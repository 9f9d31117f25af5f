#include "worker/removal.h"

#include "common/xmalloc.h"

struct removal {
	struct backend *backend;
	struct carrier *carrier;
	struct box_identity box;
	backend_done_cb cb;
	void *arg;
};

static void
removed_cb(int rc, const struct err *why, void *arg)
{
	struct removal *r = arg;

	if (rc == 0)
		r->carrier->ops->forget(r->carrier, &r->box.uuid);
	r->cb(rc, why, r->arg);
	free(r);
}

static void
seen_cb(
    int rc, const struct backend_container *c, const struct err *why, void *arg)
{
	struct removal *r = arg;

	if (rc == 0 && backend_is_box(c, &r->box))
		r->backend->ops->remove(r->backend, &c->handle, removed_cb, r);
	else if (rc == 0 || rc == ERR_NOTFOUND)
		removed_cb(0, NULL, r);
	else
		removed_cb(rc, why, r);
}

void
removal_start(struct backend *b, struct carrier *c,
    const struct box_identity *box, const struct backend_handle *h,
    enum removal_sight sight, backend_done_cb cb, void *arg)
{
	struct removal *r = xcalloc(1, sizeof(*r));

	*r = (struct removal){b, c, *box, cb, arg};
	if (sight == REMOVAL_SEEN)
		b->ops->remove(b, h, removed_cb, r);
	else
		b->ops->inspect(b, h, seen_cb, r);
}
