#include "supervisor/core/run_files.h"

#include "supervisor/core/run.h"

void
run_on_artifact_open(struct run *r, const struct msg_artifact_open *m)
{
	const struct artifact_offer offer = {.number = m->file,
	    .size = m->size,
	    .mode = m->mode,
	    .mtime_ns = m->mtime_ns,
	    .path = m->path.p,
	    .path_len = m->path.n};
	struct msg_artifact_fd answer = {.id = r->row.id,
	    .tenant = r->row.tenant,
	    .file = m->file,
	    .refusal = "",
	    .file_fd = -1};
	struct ipc_chan *chan = run_chan(r);
	struct err e;

	answer.file_fd = r->phase == RUN_SENT ?
	    artifacts_begin(&r->artifacts, &offer, &e) :
	    err_set(&e, ERR_WRONG_STATE, "the run is over");
	if (answer.file_fd < 0) {
		answer.file_fd = -1;
		answer.refusal = e.msg;
	}
	msg_send_artifact_fd(chan, &answer);
}

void
run_on_artifact_done(struct run *r, const struct msg_artifact_done *m)
{
	artifacts_done(&r->artifacts, m->file, m->size, m->sha256);
}

void
run_on_artifact_failed(struct run *r, const struct msg_artifact_failed *m)
{
	artifacts_failed(&r->artifacts, m->file);
}
