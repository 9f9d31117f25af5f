#include "supervisor/core/download.h"

#include <unistd.h>

#include "common/uuid.h"
#include "common/xmalloc.h"
#include "supervisor/core/artifacts.h"
#include "supervisor/core/core.h"
#include "supervisor/core/sandbox.h"
#include "supervisor/store/store.h"

struct opening {
	struct store *store;
	struct tenant_id tenant;
	download_cb cb;
	void *arg;
};

static void
row_cb(
    int rc, const struct store_artifact *row, const struct err *why, void *arg)
{
	struct opening *o = arg;
	struct download d = {.fd = -1};
	struct err e;

	if (rc == 0) {
		d.fd = store_blob_read(o->store, o->tenant, row->sha256, &e);
		d.size = row->size;
		d.mtime_ns = row->mtime_ns;
		memcpy(d.sha256, row->sha256, sizeof(d.sha256));
		if (d.fd == ERR_NOTFOUND)
			d.fd = err_set(&e, ERR_GONE,
			    "this artifact was given up for newer runs' "
			    "(HISTORY_MAX_MB, DISK_RESERVE_MB)");
		if (d.fd < 0) {
			rc = d.fd;
			why = &e;
		}
	}
	o->cb(rc, rc == 0 ? &d : NULL, rc == 0 ? NULL : why, o->arg);
	if (d.fd >= 0)
		(void)close(d.fd);
	free(o);
}

void
download_open(struct core *c, const struct principal *who,
    const char *identifier, const char *run, const char *path, download_cb cb,
    void *arg)
{
	bool latest = strcmp(run, "latest") == 0;
	struct opening *o;
	struct uuid uuid;
	struct err e;

	if ((!latest && uuid_parse(run, &uuid) != 0) ||
	    strlen(identifier) > SANDBOX_IDENTIFIER_MAX ||
	    strlen(path) > ARTIFACTS_PATH_MAX) {
		(void)err_set(&e, ERR_NOTFOUND, "no such artifact");
		cb(ERR_NOTFOUND, NULL, &e, arg);
		return;
	}
	o = xcalloc(1, sizeof(*o));
	o->store = core_store(c);
	o->tenant = who->tenant;
	o->cb = cb;
	o->arg = arg;
	store_artifact_get(o->store, who->tenant, identifier,
	    latest ? NULL : &uuid, path, row_cb, o);
}
