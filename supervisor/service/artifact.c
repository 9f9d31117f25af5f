#include "supervisor/service/internal.h"

#include <stdio.h>

#include "common/log.h"
#include "common/utf8.h"
#include "common/xmalloc.h"
#include "supervisor/service/args.h"

#define RUN_FILES_MAX 64 /* on their way in at a time, per run */
#define ARTIFACT_PATH_MAX 1024

/* ---- in: from the worker */

static struct run_file *
file_find(struct run *r, uint32_t number)
{
	struct run_file *f;

	STAILQ_FOREACH (f, &r->files, link)
		if (f->number == number)
			return f;
	return NULL;
}

static void
file_free(struct run *r, struct run_file *f)
{
	STAILQ_REMOVE(&r->files, f, run_file, link);
	free(f->row.path);
	free(f);
}

static void
send_fd(struct run *r, struct ipc_chan *chan, uint32_t number, int fd,
    const char *refusal)
{
	msg_send_artifact_fd(chan,
	    &(struct msg_artifact_fd){.id = r->row.id,
		.file = number,
		.refusal = refusal,
		.file_fd = fd});
}

void
artifact_on_open(
    struct run *r, struct ipc_chan *chan, const struct msg_artifact_open *m)
{
	const struct run_file *other;
	uint32_t number = m->file;
	unsigned int n = 0;
	struct run_file *f;
	struct err e;
	int fd;

	STAILQ_FOREACH (other, &r->files, link)
		n++;
	if (n >= RUN_FILES_MAX || file_find(r, number) != NULL) {
		send_fd(r, chan, number, -1, "too many files at a time");
		return;
	}
	if (m->path.n == 0 || m->path.n > ARTIFACT_PATH_MAX ||
	    memchr(m->path.p, '\0', m->path.n) != NULL ||
	    !utf8_is_valid(m->path.p, m->path.n)) {
		send_fd(r, chan, number, -1, "the name is not UTF-8");
		return;
	}
	fd = r->log == NULL ?
	    err_set(&e, ERR_SYS, "the run's files cannot be opened") :
	    store_blob_begin(r->log, number, &e);
	if (fd < 0) {
		send_fd(r, chan, number, -1, e.msg);
		return;
	}
	f = xcalloc(1, sizeof(*f));
	f->number = number;
	f->row.path = xstrndup((const char *)m->path.p, m->path.n);
	f->row.size = m->size;
	f->row.mode = m->mode & 0777;
	f->row.mtime_ns = m->mtime_ns;
	STAILQ_INSERT_TAIL(&r->files, f, link);
	send_fd(r, chan, number, fd, "");
}

static void
row_add(struct run *r, const struct store_artifact *a)
{
	struct store_run *row = &r->row;

	/* The same path again, after a worker was lost in between. */
	for (uint32_t i = 0; i < row->nartifacts; i++) {
		if (strcmp(row->artifacts[i].path, a->path) != 0)
			continue;
		free(row->artifacts[i].path);
		row->artifacts[i] = *a;
		return;
	}
	row->artifacts = xreallocarray(
	    row->artifacts, row->nartifacts + 1, sizeof(*row->artifacts));
	row->artifacts[row->nartifacts++] = *a;
}

void
artifact_on_done(struct run *r, const struct msg_artifact_done *m)
{
	uint32_t number = m->file;
	struct run_file *f = file_find(r, number);
	struct err e;

	if (f == NULL)
		return;
	if (m->code != 0) {
		store_blob_abort(r->log, number);
	} else if (store_blob_commit(
		       r->log, number, r->row.tenant, m->sha256, &e) != 0) {
		log_warn("run %llu: artifact: %s",
		    (unsigned long long)r->row.id, e.msg);
		free(r->row.artifacts_error);
		r->row.artifacts_error = xstrdup(e.msg);
	} else {
		f->row.size = m->size;
		memcpy(f->row.sha256, m->sha256, 32);
		row_add(r, &f->row);
		f->row.path = NULL;
	}
	file_free(r, f);
}

void
artifact_drop_files(struct run *r)
{
	struct run_file *f;

	while ((f = STAILQ_FIRST(&r->files)) != NULL) {
		store_blob_abort(r->log, f->number);
		file_free(r, f);
	}
}

/* ---- out: to a client */

struct open_arg {
	struct service *service;
	uint64_t tenant;
	service_artifact_cb done;
	void *arg;
};

static void
artifact_found_cb(
    int rc, const struct store_artifact *row, const struct err *why, void *arg)
{
	struct open_arg *o = arg;
	struct service_artifact a = {.fd = -1};
	struct err e;

	if (rc != 0) {
		o->done(rc, NULL, why, o->arg);
		free(o);
		return;
	}
	a.fd = store_blob_read(o->service->store, o->tenant, row->sha256, &e);
	a.size = row->size;
	a.mtime_ns = row->mtime_ns;
	a.etag[0] = '"';
	for (size_t i = 0; i < 32; i++)
		(void)snprintf(a.etag + 1 + 2 * i, 3, "%02x", row->sha256[i]);
	memcpy(a.etag + 65, "\"", 2);
	if (a.fd < 0)
		o->done(a.fd, NULL, &e, o->arg);
	else
		o->done(0, &a, NULL, o->arg);
	if (a.fd >= 0)
		(void)close(a.fd);
	free(o);
}

void
service_artifact_open(struct service *s, const struct principal *p,
    const char *identifier, const char *run_text, const char *path,
    service_artifact_cb done, void *arg)
{
	struct open_arg *o;
	struct uuid run;
	struct err e;
	bool latest = strcmp(run_text, "latest") == 0;

	if ((!latest && uuid_parse(run_text, &run) != 0) ||
	    strlen(identifier) > ARGS_IDENTIFIER_MAX ||
	    strlen(path) > ARTIFACT_PATH_MAX) {
		(void)err_set(&e, ERR_NOTFOUND, "no such artifact");
		done(ERR_NOTFOUND, NULL, &e, arg);
		return;
	}
	o = xcalloc(1, sizeof(*o));
	o->service = s;
	o->tenant = p->tenant;
	o->done = done;
	o->arg = arg;
	store_artifact_get(s->store, p->tenant, identifier,
	    latest ? NULL : &run, path, artifact_found_cb, o);
}
