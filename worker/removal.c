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
    const struct box_identity *id, const char *name,
    const struct backend_handle *h, const struct backend_files *files,
    removal_cb cb, void *arg)
{
	struct removal *r = xcalloc(1, sizeof(*r));

	*r = (struct removal){
	    .backend = backend, .ways = ways, .id = *id, .cb = cb, .arg = arg};
	r->is_seen = h != NULL;
	if (h != NULL)
		r->handle = *h;
	else
		backend_handle_named(&r->handle, name);
	if (files->forget != BACKEND_FORGET_NOTHING &&
	    backend->ops->forget_files != NULL)
		backend->ops->forget_files(backend, id, files, forgot_cb, r);
	else
		remove_box(r);
}
