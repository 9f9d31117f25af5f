#include "worker/removal.h"

#include "common/xmalloc.h"
#include "worker/link/ways.h"

struct removal {
	struct backend *backend;
	const struct ways *ways;
	struct box_identity id;
	struct backend_handle handle;
	bool is_seen; /* the handle is of a container that was there */
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

/* The container, by its handle or by its name. */
static void
remove_box(struct removal *r)
{
	if (r->is_seen)
		r->backend->ops->remove(r->backend, &r->handle, removal_end, r);
	else
		r->backend->ops->inspect(r->backend, &r->handle, seen_cb, r);
}

static void
forgot_cb(int rc, const struct err *why, void *arg)
{
	struct removal *r = arg;

	if (rc == 0)
		remove_box(r);
	else
		removal_end(rc, why, r);
}

void
removal_start(struct backend *backend, const struct ways *ways,
    const struct removal_wish *w, removal_cb cb, void *arg)
{
	struct removal *r = xcalloc(1, sizeof(*r));

	*r = (struct removal){.backend = backend,
	    .ways = ways,
	    .id = *w->id,
	    .is_seen = w->handle != NULL,
	    .cb = cb,
	    .arg = arg};
	if (r->is_seen) {
		r->handle = *w->handle;
	} else {
		backend_handle_named(&r->handle, w->name);
		backend_handle_set_tenant(&r->handle, w->id->tenant);
	}
	if (w->files.forget != BACKEND_FORGET_NOTHING &&
	    backend->ops->forget_files != NULL)
		backend->ops->forget_files(
		    backend, w->id, &w->files, forgot_cb, r);
	else
		remove_box(r);
}
