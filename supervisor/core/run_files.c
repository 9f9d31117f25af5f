#include "supervisor/core/run_files.h"

#include "supervisor/core/run.h"

static void
answer_offer(struct run *r, uint32_t number, int fd, const char *refusal)
{
	msg_send_artifact_fd(run_chan(r),
	    &(struct msg_artifact_fd){.id = r->row.id,
		.tenant = r->row.tenant,
		.file = number,
		.refusal = refusal,
		.file_fd = fd});
}

static void
answer_cb(void *arg, uint32_t number, int fd, const struct err *why)
{
	if (fd < 0)
		answer_offer(arg, number, -1, why->msg);
	else
		answer_offer(arg, number, fd, "");
}

void
run_on_artifact_open(struct run *r, const struct msg_artifact_open *m)
{
	const struct artifact_offer offer = {.number = m->file,
	    .size = m->size,
	    .mode = m->mode,
	    .mtime_ns = m->mtime_ns,
	    .path = m->path.p,
	    .path_len = m->path.n};

	if (r->phase == RUN_SENT)
		artifacts_offer(&r->artifacts, &offer, answer_cb, r);
	else
		answer_offer(r, m->file, -1, "the run is over");
}

void
run_on_artifact_done(struct run *r, const struct msg_artifact_done *m)
{
	if (r->phase == RUN_SENT)
		artifacts_done(&r->artifacts, m->file, m->size, m->sha256);
}

void
run_on_artifact_failed(struct run *r, const struct msg_artifact_failed *m)
{
	artifacts_failed(&r->artifacts, m->file);
}
