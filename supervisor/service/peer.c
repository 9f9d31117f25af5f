#include "supervisor/service/internal.h"

#include <stdio.h>

#include "common/log.h"

struct peer *
peer_of_sandbox(struct service *s, uint64_t sandbox)
{
	return &s->peers[sandbox % s->npeers];
}

int
peer_check(const struct peer *p, struct err *e)
{
	if (p->chan == NULL)
		return err_set(e, ERR_BACKEND, "%s",
		    p->throttled ?
			"the worker for this sandbox keeps failing and is "
			"paused: see the server's log" :
			"the worker for this sandbox is starting: try again");
	if (p->engine_known && !p->engine_up)
		return err_set(e, ERR_BACKEND, "%s", p->detail);
	return 0;
}

/* ---- messages */

static void
copy_text(char *to, size_t size, const char *from)
{
	(void)snprintf(to, size, "%s", from == NULL ? "" : from);
}

static int
on_worker_state(void *arg, const struct msg_worker_state *m, struct err *e)
{
	struct peer *p = arg;

	(void)e;
	p->engine_up = m->engine_up;
	p->engine_known = true;
	copy_text(p->detail, sizeof(p->detail), m->detail);
	return 0;
}

static int
on_sandbox_ready(void *arg, const struct msg_sandbox_ready *m, struct err *e)
{
	struct peer *p = arg;
	struct sandbox *sb = sandbox_by_id(p->service, m->id);

	(void)e;
	if (sb != NULL)
		sandbox_on_ready(sb, m->container_id);
	return 0;
}

static int
on_sandbox_failed(void *arg, const struct msg_sandbox_failed *m, struct err *e)
{
	struct peer *p = arg;
	struct sandbox *sb = sandbox_by_id(p->service, m->id);

	(void)e;
	if (sb != NULL)
		sandbox_on_failed(sb, m->code, m->text);
	return 0;
}

static int
on_sandbox_lost(void *arg, const struct msg_sandbox_lost *m, struct err *e)
{
	struct peer *p = arg;
	struct sandbox *sb = sandbox_by_id(p->service, m->id);

	(void)e;
	if (sb != NULL)
		sandbox_on_lost(sb, m->why);
	return 0;
}

static int
on_sandbox_removed(
    void *arg, const struct msg_sandbox_removed *m, struct err *e)
{
	struct peer *p = arg;
	struct sandbox *sb = sandbox_by_id(p->service, m->id);

	(void)e;
	if (sb != NULL)
		sandbox_on_removed(sb, m->code, m->text);
	return 0;
}

static int
on_run_bytes(void *arg, const struct msg_run_bytes *m, struct err *e)
{
	struct peer *p = arg;
	struct run *r = run_by_id(p->service, m->id);

	(void)e;
	if (r != NULL)
		run_on_bytes(r, m->length);
	return 0;
}

static int
on_run_record(void *arg, const struct msg_run_record *m, struct err *e)
{
	struct peer *p = arg;
	struct run *r = run_by_id(p->service, m->id);

	return r == NULL ? 0 : run_on_record(r, m->record.p, m->record.n, e);
}

static int
on_run_ended(void *arg, const struct msg_run_ended *m, struct err *e)
{
	struct peer *p = arg;
	struct run *r = run_by_id(p->service, m->id);

	(void)e;
	if (r == NULL)
		return 0;
	run_on_bytes(r, m->length);
	run_on_ended(r, m->reason, m->text, m->artifacts_error);
	return 0;
}

static int
on_artifact_open(void *arg, const struct msg_artifact_open *m, struct err *e)
{
	struct peer *p = arg;
	struct run *r = run_by_id(p->service, m->id);

	(void)e;
	if (r != NULL)
		artifact_on_open(r, p->chan, m);
	return 0;
}

static int
on_artifact_done(void *arg, const struct msg_artifact_done *m, struct err *e)
{
	struct peer *p = arg;
	struct run *r = run_by_id(p->service, m->id);

	(void)e;
	if (r != NULL)
		artifact_on_done(r, m);
	return 0;
}

static int
on_swept(void *arg, const struct msg_swept *m, struct err *e)
{
	(void)arg;
	(void)e;
	if (m->removed > 0)
		log_info("sweep: %u objects on the engine, %u leftovers "
			 "removed",
		    m->found, m->removed);
	return 0;
}

static const struct msg_worker_to_front peer_handlers = {
    .on_worker_state = on_worker_state,
    .on_sandbox_ready = on_sandbox_ready,
    .on_sandbox_failed = on_sandbox_failed,
    .on_sandbox_lost = on_sandbox_lost,
    .on_sandbox_removed = on_sandbox_removed,
    .on_run_bytes = on_run_bytes,
    .on_run_record = on_run_record,
    .on_run_ended = on_run_ended,
    .on_artifact_open = on_artifact_open,
    .on_artifact_done = on_artifact_done,
    .on_swept = on_swept,
};

static int
peer_message_cb(struct ipc_chan *c, struct ipc_msg *m, void *arg, struct err *e)
{
	(void)c;
	return msg_dispatch_worker_to_front(&peer_handlers, m, arg, e);
}

static void
peer_close_cb(struct ipc_chan *c, const struct err *why, void *arg)
{
	struct peer *p = arg;

	(void)c;
	log_warn("worker %u: channel closed: %s", p->index, why->msg);
	peer_lost(p->service, p);
}

static const struct ipc_ops peer_ops = {peer_message_cb, peer_close_cb, NULL};

/* ---- coming and going */

void
peer_lost(struct service *s, struct peer *p)
{
	struct sandbox *sb;

	if (p->chan == NULL)
		return;
	ipc_chan_free(p->chan);
	p->chan = NULL;
	p->engine_known = false;
	s->stats.worker_restarts++;
	TAILQ_FOREACH (sb, &s->sandboxes, link) {
		if (peer_of_sandbox(s, sb->row.id) != p)
			continue;
		sb->told = false;
		if (sb->state == SANDBOX_READY)
			sb->state = SANDBOX_OPENING;
	}
}

void
peer_attach(struct service *s, uint32_t index, int fd)
{
	struct peer *p = &s->peers[index];
	struct sandbox *sb, *next;
	char name[32];

	peer_lost(s, p);
	(void)snprintf(name, sizeof(name), "worker %u", index);
	p->chan = ipc_chan_new(s->base, fd, name, &peer_ops, p);
	p->throttled = false;
	for (sb = TAILQ_FIRST(&s->sandboxes); sb != NULL; sb = next) {
		next = TAILQ_NEXT(sb, link);
		if (peer_of_sandbox(s, sb->row.id) == p)
			sandbox_tell(sb);
	}
}
