#include "supervisor/core/download.h"

#include <sys/stat.h>
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

static int
open_blob(
    const struct opening *o, const struct store_artifact *row, struct err *e)
{
	int fd = row->lost_ms != 0 ?
	    ERR_OUTPUT_LOST :
	    store_blob_read(o->store, o->tenant, row->sha256, e);
	struct stat st;

	if (fd == ERR_NOTFOUND)
		return err_set(e, ERR_GONE,
		    "this artifact was given up for newer runs' "
		    "(HISTORY_MAX_MB, DISK_RESERVE_MB)");
	if (fd >= 0 &&
	    (fstat(fd, &st) != 0 || (uint64_t)st.st_size != row->size)) {
		(void)close(fd);
		fd = ERR_OUTPUT_LOST;
	}
	return fd != ERR_OUTPUT_LOST ?
	    fd :
	    err_set(e, ERR_OUTPUT_LOST,
		"this artifact is lost: the server's disk lost its power, or "
		"failed, before it had all of it: run it again");
}

static void
row_cb(
    int rc, const struct store_artifact *row, const struct err *why, void *arg)
{
	struct opening *o = arg;
	struct download d = {.fd = -1};
	struct err e;

	if (rc == 0) {
		d.fd = open_blob(o, row, &e);
		d.size = row->size;
		d.mtime_ns = row->mtime_ns;
		memcpy(d.sha256, row->sha256, sizeof(d.sha256));
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
