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
on_worker_state(void *arg, struct ipc_msg *m, struct err *e)
{
	struct peer *p = arg;
	uint8_t engine = wire_get_u8(&m->in);
	AUTO(auto_free) char *detail = wire_get_str(&m->in, 4096);

	(void)wire_get_u8(&m->in); /* runtime_ok: for people, in detail */
	if (wire_get_end(&m->in, e) != 0)
		return ERR_PROTO;
	p->engine_up = engine != 0;
	p->engine_known = true;
	copy_text(p->detail, sizeof(p->detail), detail);
	return 0;
}

static int
on_sandbox_ready(void *arg, struct ipc_msg *m, struct err *e)
{
	struct peer *p = arg;
	AUTO(auto_free) char *container = wire_get_str(&m->in, 128);
	struct sandbox *sb = sandbox_by_id(p->service, m->id);
	uint32_t create_us = wire_get_u32(&m->in);
	uint32_t start_us = wire_get_u32(&m->in);
	uint32_t hello_us = wire_get_u32(&m->in);

	if (wire_get_end(&m->in, e) != 0)
		return ERR_PROTO;
	log_debug("sandbox %llu ready: create %u us, start %u us, hello %u us",
	    (unsigned long long)m->id, create_us, start_us, hello_us);
	if (sb != NULL)
		sandbox_on_ready(sb, container);
	return 0;
}

static int
on_sandbox_failed(void *arg, struct ipc_msg *m, struct err *e)
{
	struct peer *p = arg;
	int32_t code = wire_get_i32(&m->in);
	AUTO(auto_free) char *text = wire_get_str(&m->in, 4096);
	struct sandbox *sb = sandbox_by_id(p->service, m->id);

	if (wire_get_end(&m->in, e) != 0)
		return ERR_PROTO;
	if (code >= 0)
		return err_set(e, ERR_PROTO, "failed with code %d", code);
	if (sb != NULL)
		sandbox_on_failed(sb, code, text);
	return 0;
}

static int
on_sandbox_lost(void *arg, struct ipc_msg *m, struct err *e)
{
	struct peer *p = arg;
	AUTO(auto_free) char *why = wire_get_str(&m->in, 4096);
	struct sandbox *sb = sandbox_by_id(p->service, m->id);

	if (wire_get_end(&m->in, e) != 0)
		return ERR_PROTO;
	if (sb != NULL)
		sandbox_on_lost(sb, why);
	return 0;
}

static int
on_sandbox_removed(void *arg, struct ipc_msg *m, struct err *e)
{
	struct peer *p = arg;
	int32_t code = wire_get_i32(&m->in);
	AUTO(auto_free) char *text = wire_get_str(&m->in, 4096);
	struct sandbox *sb = sandbox_by_id(p->service, m->id);

	if (wire_get_end(&m->in, e) != 0)
		return ERR_PROTO;
	if (sb != NULL)
		sandbox_on_removed(sb, code, text);
	return 0;
}

static int
on_run_bytes(void *arg, struct ipc_msg *m, struct err *e)
{
	struct peer *p = arg;
	uint64_t length = wire_get_u64(&m->in);
	struct run *r = run_by_id(p->service, m->id);

	if (wire_get_end(&m->in, e) != 0)
		return ERR_PROTO;
	if (r != NULL)
		run_on_bytes(r, length);
	return 0;
}

static int
on_run_record(void *arg, struct ipc_msg *m, struct err *e)
{
	struct peer *p = arg;
	size_t n;
	const uint8_t *record = wire_get_bytes(&m->in, 1024, &n);
	struct run *r = run_by_id(p->service, m->id);

	if (wire_get_end(&m->in, e) != 0)
		return ERR_PROTO;
	return r == NULL ? 0 : run_on_record(r, record, n, e);
}

static int
on_run_ended(void *arg, struct ipc_msg *m, struct err *e)
{
	struct peer *p = arg;
	uint8_t reason = wire_get_u8(&m->in);
	uint64_t length = wire_get_u64(&m->in);
	AUTO(auto_free) char *text = wire_get_str(&m->in, 4096);
	uint32_t files = wire_get_u32(&m->in);
	AUTO(auto_free) char *failed = wire_get_str(&m->in, 4096);
	struct run *r = run_by_id(p->service, m->id);

	(void)files; /* the rows say it */
	if (wire_get_end(&m->in, e) != 0)
		return ERR_PROTO;
	if (reason < RUNLOG_EXIT || reason > RUNLOG_INTERNAL)
		return err_set(e, ERR_PROTO, "end reason %u", reason);
	if (r == NULL)
		return 0;
	run_on_bytes(r, length);
	run_on_ended(r, reason, text, failed);
	return 0;
}

static int
on_artifact_open(void *arg, struct ipc_msg *m, struct err *e)
{
	struct peer *p = arg;
	struct artifact_offer offer;
	struct run *r = run_by_id(p->service, m->id);

	offer.number = wire_get_u32(&m->in);
	offer.size = wire_get_u64(&m->in);
	offer.mode = wire_get_u32(&m->in);
	offer.mtime_ns = wire_get_i64(&m->in);
	offer.path = wire_get_bytes(&m->in, 4096, &offer.path_len);
	if (wire_get_end(&m->in, e) != 0)
		return ERR_PROTO;
	if (r != NULL)
		artifact_on_open(r, p->chan, &offer);
	return 0;
}

static int
on_artifact_done(void *arg, struct ipc_msg *m, struct err *e)
{
	struct peer *p = arg;
	uint32_t file = wire_get_u32(&m->in);
	int32_t code = wire_get_i32(&m->in);
	uint64_t size = wire_get_u64(&m->in);
	size_t n;
	const uint8_t *sha256 = wire_get_bytes(&m->in, 32, &n);
	struct run *r = run_by_id(p->service, m->id);

	if (wire_get_end(&m->in, e) != 0)
		return ERR_PROTO;
	if (r != NULL)
		artifact_on_done(r, file, code, size, sha256, n);
	return 0;
}

static int
on_swept(void *arg, struct ipc_msg *m, struct err *e)
{
	uint32_t found = wire_get_u32(&m->in);
	uint32_t removed = wire_get_u32(&m->in);

	(void)arg;
	if (wire_get_end(&m->in, e) != 0)
		return ERR_PROTO;
	if (removed > 0)
		log_info("sweep: %u objects on the engine, %u leftovers "
			 "removed",
		    found, removed);
	return 0;
}

static const struct ipc_route peer_routes[] = {
    {IPC_WORKER_STATE, 1, 0, on_worker_state},
    {IPC_SANDBOX_READY, 1, 0, on_sandbox_ready},
    {IPC_SANDBOX_FAILED, 1, 0, on_sandbox_failed},
    {IPC_SANDBOX_LOST, 1, 0, on_sandbox_lost},
    {IPC_SANDBOX_REMOVED, 1, 0, on_sandbox_removed},
    {IPC_RUN_BYTES, 1, 0, on_run_bytes},
    {IPC_RUN_RECORD, 1, 0, on_run_record},
    {IPC_RUN_ENDED, 1, 0, on_run_ended},
    {IPC_ARTIFACT_OPEN, 1, 0, on_artifact_open},
    {IPC_ARTIFACT_DONE, 1, 0, on_artifact_done},
    {IPC_SWEPT, 1, 0, on_swept},
    {IPC_NONE, 0, 0, NULL},
};

static int
peer_message_cb(struct ipc_chan *c, struct ipc_msg *m, void *arg, struct err *e)
{
	(void)c;
	return ipc_dispatch(peer_routes, 1, m, arg, e);
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
