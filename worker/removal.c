#include "worker/removal.h"

#include "common/xmalloc.h"
#include "worker/link/ways.h"

struct removal {
	struct backend *backend;
	const struct ways *ways;
	struct box_identity id;
	removal_cb cb;
	void *arg;
};

static void
removal_end(int rc, const struct err *why, void *arg)
{
	struct removal *r = arg;

	if (rc == 0)
		ways_forget(r->ways, &r->id.uuid);
	r->cb(rc, rc == 0 ? "" : why->msg, r->arg);
	free(r);
}

static void
seen_cb(
    int rc, const struct backend_container *c, const struct err *why, void *arg)
{
	struct removal *r = arg;

	if (rc == 0 && backend_is_box(c, &r->id))
		r->backend->ops->remove(r->backend, &c->handle, removal_end, r);
	else if (rc == 0 || rc == ERR_NOTFOUND)
		removal_end(0, NULL, r);
	else
		removal_end(rc, why, r);
}

void
removal_start(struct backend *backend, const struct ways *ways,
    const struct box_identity *id, const char *name,
    const struct backend_handle *h, removal_cb cb, void *arg)
{
	struct removal *r = xcalloc(1, sizeof(*r));
	struct backend_handle named;

	*r = (struct removal){
	    .backend = backend, .ways = ways, .id = *id, .cb = cb, .arg = arg};
	if (h != NULL) {
		backend->ops->remove(backend, h, removal_end, r);
		return;
	}
	backend_handle_named(&named, name);
	backend->ops->inspect(backend, &named, seen_cb, r);
}
