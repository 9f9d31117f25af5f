#include "worker/jobs.h"

#include <stdio.h>

#include "common/fd.h"
#include "common/ipc.h"
#include "common/log.h"
#include "common/runspec.h"
#include "common/xmalloc.h"
#include "worker/boxes.h"
#include "worker/sweep.h"

/* There is one state of the channel: everything is permitted at any time. */
#define JOBS_OPEN 1u
#define NAME_TEXT_MAX 256
#define REFUSAL_MAX 4096
#define SWEEP_CHUNK_MAX 4000

static void (*jobs_on_close)(struct worker *w, const struct err *why);

/* ---- sandboxes */

static int
open_checked(struct worker *w, struct box_start *s, uint8_t mode, struct err *e)
{
	if (mode > BOX_ADOPT)
		return err_set(e, ERR_PROTO, "mode %u", mode);
	if (!policy_is_name(s->name) ||
	    (s->container_id[0] != '\0' && !policy_is_id(s->container_id)))
		return err_set(e, ERR_PROTO, "sandbox with no good name or id");
	s->mode = (enum box_mode)mode;
	return boxes_open(w->boxes, s, e);
}

static int
on_sandbox_open(void *arg, struct ipc_msg *m, struct err *e)
{
	AUTO(auto_free) char *tenant = NULL;
	AUTO(auto_free) char *identifier = NULL;
	AUTO(auto_free) char *name = NULL;
	AUTO(auto_free) char *image = NULL;
	AUTO(auto_free) char *container = NULL;
	struct box_start s = {.sandbox = m->id};
	uint8_t mode = wire_get_u8(&m->in);

	wire_get_uuid(&m->in, &s.uuid);
	tenant = wire_get_str(&m->in, NAME_TEXT_MAX);
	identifier = wire_get_str(&m->in, NAME_TEXT_MAX);
	s.claim.generation = wire_get_u32(&m->in);
	name = wire_get_str(&m->in, NAME_TEXT_MAX);
	image = wire_get_str(&m->in, NAME_TEXT_MAX);
	container = wire_get_str(&m->in, NAME_TEXT_MAX);
	s.template.memory_bytes = wire_get_u64(&m->in);
	s.template.nano_cpus = wire_get_u64(&m->in);
	s.template.pids = wire_get_u32(&m->in);
	if (wire_get_end(&m->in, e) != 0)
		return ERR_PROTO;
	s.claim.tenant = tenant;
	s.claim.identifier = identifier;
	s.name = name;
	s.template.image = image;
	s.container_id = container;
	return open_checked(arg, &s, mode, e);
}

static int
on_sandbox_settled(void *arg, struct ipc_msg *m, struct err *e)
{
	struct worker *w = arg;

	if (wire_get_end(&m->in, e) != 0)
		return ERR_PROTO;
	boxes_settled(w->boxes, m->id);
	return 0;
}

static int
on_sandbox_remove(void *arg, struct ipc_msg *m, struct err *e)
{
	AUTO(auto_free) char *name = NULL;
	struct worker *w = arg;
	struct uuid uuid;

	wire_get_uuid(&m->in, &uuid);
	name = wire_get_str(&m->in, NAME_TEXT_MAX);
	if (wire_get_end(&m->in, e) != 0)
		return ERR_PROTO;
	if (!policy_is_name(name))
		return err_set(e, ERR_PROTO, "no container name");
	boxes_remove(w->boxes, m->id, &uuid, name);
	return 0;
}

/* ---- runs */

/* The spec is in the message or, when that is empty, in a sealed memfd. */
static int
take_spec(struct task_start *s, struct ipc_msg *m, const uint8_t *bytes,
    size_t n, struct err *e)
{
	AUTO(auto_close) int fd = ipc_msg_take_fd(m);

	if (n > 0 && fd >= 0)
		return err_set(e, ERR_PROTO, "two specs for one run");
	if (n > 0) {
		s->spec = xmemdup(bytes, n);
		s->nspec = n;
		return 0;
	}
	if (fd < 0)
		return err_set(e, ERR_PROTO, "a run without a spec");
	if (fd_read_sealed(fd, RUNSPEC_BYTES_MAX, &s->spec, &s->nspec, e) != 0)
		return ERR_PROTO;
	return 0;
}

static int
check_spec(struct task_start *s, struct err *e)
{
	struct runspec spec;

	if (runspec_decode(s->spec, s->nspec, &spec, e) != 0)
		return ERR_PROTO;
	s->ncommands = spec.ncommands;
	runspec_clear(&spec);
	if (s->spool_limit == 0 || s->spool_limit > POLICY_SPOOL_MAX)
		return err_set(e, ERR_PROTO, "spool limit %llu",
		    (unsigned long long)s->spool_limit);
	return 0;
}

static int
on_run_start(void *arg, struct ipc_msg *m, struct err *e)
{
	struct task_start s = {.id = m->id, .spool = -1};
	struct worker *w = arg;
	const uint8_t *bytes;
	uint64_t sandbox = wire_get_u64(&m->in);
	size_t n;

	wire_get_uuid(&m->in, &s.uuid);
	s.spool_limit = wire_get_u64(&m->in);
	(void)wire_get_u64(&m->in); /* have: the spool itself says it */
	bytes = wire_get_bytes(&m->in, IPC_MSG_MAX, &n);
	if (wire_get_end(&m->in, e) != 0)
		return ERR_PROTO;
	s.spool = ipc_msg_take_fd(m);
	if (s.spool < 0)
		return err_set(e, ERR_PROTO, "a run without a spool");
	if (take_spec(&s, m, bytes, n, e) != 0 || check_spec(&s, e) != 0) {
		task_start_clear(&s);
		return ERR_PROTO;
	}
	return boxes_start_task(w->boxes, sandbox, &s, e);
}

static int
on_run_cancel(void *arg, struct ipc_msg *m, struct err *e)
{
	struct worker *w = arg;
	struct tasks_item *it = boxes_find_task(w->boxes, m->id);
	uint8_t reason = wire_get_u8(&m->in);

	if (wire_get_end(&m->in, e) != 0)
		return ERR_PROTO;
	/* What a run can be made to end as; exits it has to do by itself. */
	if (reason <= RUNLOG_SIGNAL || reason > RUNLOG_INTERNAL)
		return err_set(e, ERR_PROTO, "cancel with reason %u", reason);
	if (it != NULL)
		tasks_item_cancel(it, (enum runlog_reason)reason);
	return 0;
}

static int
on_run_forget(void *arg, struct ipc_msg *m, struct err *e)
{
	struct worker *w = arg;
	struct tasks_item *it = boxes_find_task(w->boxes, m->id);

	if (wire_get_end(&m->in, e) != 0)
		return ERR_PROTO;
	if (it != NULL)
		tasks_item_forget(it);
	return 0;
}

static int
on_artifact_fd(void *arg, struct ipc_msg *m, struct err *e)
{
	struct worker *w = arg;
	struct tasks_item *it = boxes_find_task(w->boxes, m->id);
	uint32_t file = wire_get_u32(&m->in);
	AUTO(auto_free) char *refusal = wire_get_str(&m->in, REFUSAL_MAX);

	if (wire_get_end(&m->in, e) != 0)
		return ERR_PROTO;
	if (it != NULL)
		tasks_item_fd(it, file, ipc_msg_take_fd(m), refusal);
	return 0;
}

/* ---- sweep */

static int
on_sweep(void *arg, struct ipc_msg *m, struct err *e)
{
	uint32_t count = wire_get_u32(&m->in);
	const uint8_t *uuids;
	size_t n;

	uuids = wire_get_bytes(&m->in, SWEEP_CHUNK_MAX * 16, &n);
	if (wire_get_end(&m->in, e) != 0)
		return ERR_PROTO;
	if (n != (size_t)count * 16)
		return err_set(e, ERR_PROTO, "%u uuids in %zu bytes", count, n);
	return sweep_list(arg, uuids, count, e);
}

static int
on_sweep_end(void *arg, struct ipc_msg *m, struct err *e)
{
	int64_t asof_ms = wire_get_i64(&m->in);

	if (wire_get_end(&m->in, e) != 0)
		return ERR_PROTO;
	if (asof_ms < 0)
		return err_set(e, ERR_PROTO, "sweep before 1970");
	sweep_run(arg, asof_ms);
	return 0;
}

/* ---- the channel */

static const struct ipc_route routes[] = {
    {IPC_SANDBOX_OPEN, JOBS_OPEN, 0, on_sandbox_open},
    {IPC_SANDBOX_SETTLED, JOBS_OPEN, 0, on_sandbox_settled},
    {IPC_SANDBOX_REMOVE, JOBS_OPEN, 0, on_sandbox_remove},
    {IPC_RUN_START, JOBS_OPEN, 2, on_run_start},
    {IPC_RUN_CANCEL, JOBS_OPEN, 0, on_run_cancel},
    {IPC_RUN_FORGET, JOBS_OPEN, 0, on_run_forget},
    {IPC_ARTIFACT_FD, JOBS_OPEN, 1, on_artifact_fd},
    {IPC_SWEEP, JOBS_OPEN, 0, on_sweep},
    {IPC_SWEEP_END, JOBS_OPEN, 0, on_sweep_end},
    {IPC_NONE, 0, 0, NULL},
};

static int
message_cb(struct ipc_chan *c, struct ipc_msg *m, void *arg, struct err *e)
{
	(void)c;
	return ipc_dispatch(routes, JOBS_OPEN, m, arg, e);
}

static void
close_cb(struct ipc_chan *c, const struct err *why, void *arg)
{
	(void)c;
	jobs_on_close(arg, why);
}

static void
drain_cb(struct ipc_chan *c, void *arg)
{
	struct worker *w = arg;

	(void)c;
	boxes_resume(w->boxes);
}

static const struct ipc_ops ops = {message_cb, close_cb, drain_cb};

void
jobs_attach(struct worker *w, int fd,
    void (*on_close)(struct worker *, const struct err *))
{
	jobs_detach(w);
	jobs_on_close = on_close;
	w->front = ipc_chan_new(w->base, fd, "front", &ops, w);
	worker_tell_state(w);
}

void
jobs_detach(struct worker *w)
{
	ipc_chan_free(w->front);
	w->front = NULL;
}
