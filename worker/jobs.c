/*
 * Each message is decoded and bounded by code from schema/ipc.txt; here is
 * checked what a list cannot say (names, specs), and then the box or the task
 * is told.  About runs that are not here any more the front may still speak:
 * such words are passed over.
 */
#include "worker/jobs.h"

#include <stdio.h>

#include "common/fd.h"
#include "common/log.h"
#include "common/msg/msg_gen.h"
#include "common/runspec.h"
#include "common/xmalloc.h"
#include "worker/box.h"
#include "worker/sweep.h"

static void (*jobs_on_close)(struct worker *w, const struct err *why);

/* ---- sandboxes */

static int
on_sandbox_open(void *arg, const struct msg_sandbox_open *m, struct err *e)
{
	struct worker *w = arg;
	const struct box_start s = {.sandbox = m->id,
	    .tenant = m->tenant,
	    .tenant_name = m->tenant_name,
	    .mode = m->mode,
	    .uuid = m->uuid,
	    .name = m->name,
	    .container_id = m->container_id,
	    .ttl_s = m->ttl_s,
	    .template = {.image = m->image,
		.memory_bytes = m->memory_bytes,
		.nano_cpus = m->nano_cpus,
		.pids = m->pids,
		.cpu_shares = m->cpu_shares,
		.runtime = m->runtime,
		.read_only_root = m->read_only_root},
	    .claim = {
		.identifier = m->identifier, .generation = m->generation}};

	if (!policy_is_name(m->name) ||
	    (m->container_id[0] != '\0' && !policy_is_id(m->container_id)))
		return err_set(e, ERR_PROTO, "no good name or id");
	if (!policy_is_tenant(m->tenant_name))
		return err_set(e, ERR_PROTO, "no tenant name");
	return boxes_open(w->boxes, &s, e);
}

static int
on_sandbox_ttl(void *arg, const struct msg_sandbox_ttl *m, struct err *e)
{
	struct worker *w = arg;

	return boxes_set_ttl(w->boxes, m, e);
}

static int
on_sandbox_shares(void *arg, const struct msg_sandbox_shares *m, struct err *e)
{
	struct worker *w = arg;

	return boxes_set_shares(w->boxes, m, e);
}

static int
on_sandbox_settled(
    void *arg, const struct msg_sandbox_settled *m, struct err *e)
{
	struct worker *w = arg;

	return boxes_settled(w->boxes, m, e);
}

static int
on_sandbox_remove(void *arg, const struct msg_sandbox_remove *m, struct err *e)
{
	struct worker *w = arg;

	if (!policy_is_name(m->name))
		return err_set(e, ERR_PROTO, "no container name");
	/* "": a container without the label. */
	if (m->tenant_name[0] != '\0' && !policy_is_tenant(m->tenant_name))
		return err_set(e, ERR_PROTO, "no tenant name");
	return boxes_remove(w->boxes, m, e);
}

/* ---- runs */

/* The spec is in the message or, when that is empty, in a sealed memfd. */
static int
take_spec(struct task_start *s, const struct msg_run_start *m, struct err *e)
{
	if ((m->spec.n > 0) == (m->spec_file >= 0))
		return err_set(e, ERR_PROTO, "not one spec");
	if (m->spec.n > 0) {
		s->spec = xmemdup(m->spec.p, m->spec.n);
		s->nspec = m->spec.n;
		return 0;
	}
	if (fd_read_sealed(
		m->spec_file, RUNSPEC_BYTES_MAX, &s->spec, &s->nspec, e) != 0)
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
	s->is_root = spec.user == RUNSPEC_USER_ROOT;
	for (uint32_t i = 0; i < spec.ncommands; i++)
		s->limit_ms += spec.commands[i].timeout_ms;
	runspec_clear(&spec);
	if (s->spool_limit == 0 || s->spool_limit > POLICY_SPOOL_MAX)
		return err_set(e, ERR_PROTO, "spool limit %llu",
		    (unsigned long long)s->spool_limit);
	return 0;
}

static int
on_run_start(void *arg, struct msg_run_start *m, struct err *e)
{
	struct worker *w = arg;
	struct task_start s = {.id = m->id,
	    .tenant = m->tenant,
	    .uuid = m->uuid,
	    .spool_limit = m->spool_limit,
	    .spool = msg_take_fd(&m->spool)};

	(void)snprintf(s.request, sizeof(s.request), "%s", m->request);
	if (take_spec(&s, m, e) != 0 || check_spec(&s, e) != 0) {
		task_start_clear(&s);
		return ERR_PROTO;
	}
	task_tell(LOG_DEBUG, "run started", &s, NULL);
	return boxes_start_task(w->boxes, m->sandbox, &s, e);
}

static int
on_run_cancel(void *arg, const struct msg_run_cancel *m, struct err *e)
{
	struct worker *w = arg;
	struct tasks_item *it;

	if (boxes_find_task(w->boxes, m->id, m->tenant, &it, e) != 0)
		return ERR_PROTO;
	if (it != NULL)
		tasks_item_cancel(it, (enum runlog_reason)m->reason);
	return 0;
}

static int
on_run_forget(void *arg, const struct msg_run_forget *m, struct err *e)
{
	struct worker *w = arg;
	struct tasks_item *it;

	if (boxes_find_task(w->boxes, m->id, m->tenant, &it, e) != 0)
		return ERR_PROTO;
	if (it != NULL)
		tasks_item_forget(it);
	return 0;
}

static int
on_artifact_fd(void *arg, struct msg_artifact_fd *m, struct err *e)
{
	struct worker *w = arg;
	struct tasks_item *it;

	if (boxes_find_task(w->boxes, m->id, m->tenant, &it, e) != 0)
		return ERR_PROTO;
	if (it != NULL)
		tasks_item_fd(
		    it, m->file, msg_take_fd(&m->file_fd), m->refusal);
	return 0;
}

static int
on_ask(void *arg, const struct msg_ask *m, struct err *e)
{
	struct worker *w = arg;
	struct box_asks *asks;

	if (boxes_find_asks(w->boxes, m->id, m->tenant, &asks, e) != 0)
		return ERR_PROTO;
	if (asks != NULL)
		return box_asks_start(asks, m, e);
	msg_send_answer(w->front,
	    &(struct msg_answer){
		.id = m->id, .ask = m->ask, .end = MSG_ASK_END_GONE});
	return 0;
}

static int
on_ask_cancel(void *arg, const struct msg_ask_cancel *m, struct err *e)
{
	struct worker *w = arg;
	struct box_asks *asks;

	if (boxes_find_asks(w->boxes, m->id, m->tenant, &asks, e) != 0)
		return ERR_PROTO;
	if (asks != NULL)
		box_asks_cancel(asks, m->ask);
	return 0;
}

/* ---- sweep */

static int
on_sweep(void *arg, const struct msg_sweep *m, struct err *e)
{
	size_t count = m->uuids.n / sizeof(struct uuid);

	if (m->uuids.n % sizeof(struct uuid) != 0)
		return err_set(
		    e, ERR_PROTO, "%zu bytes are no UUIDs", m->uuids.n);
	return sweep_list(arg, m->uuids.p, (uint32_t)count, e);
}

static int
on_sweep_end(void *arg, const struct msg_sweep_end *m, struct err *e)
{
	(void)e;
	sweep_run(arg,
	    &(struct sweep_wish){.asof_ms = m->asof_wall_ms,
		.keep_ms = m->keep_ms,
		.only_look = m->only_look});
	return 0;
}

/* ---- the channel */

static const struct msg_front_to_worker handlers = {
    .on_sandbox_open = on_sandbox_open,
    .on_sandbox_settled = on_sandbox_settled,
    .on_sandbox_ttl = on_sandbox_ttl,
    .on_sandbox_shares = on_sandbox_shares,
    .on_sandbox_remove = on_sandbox_remove,
    .on_run_start = on_run_start,
    .on_run_cancel = on_run_cancel,
    .on_run_forget = on_run_forget,
    .on_ask = on_ask,
    .on_ask_cancel = on_ask_cancel,
    .on_artifact_fd = on_artifact_fd,
    .on_sweep = on_sweep,
    .on_sweep_end = on_sweep_end,
};

static int
message_cb(struct ipc_chan *c, struct ipc_msg *m, void *arg, struct err *e)
{
	(void)c;
	return msg_dispatch_front_to_worker(&handlers, m, arg, e);
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
