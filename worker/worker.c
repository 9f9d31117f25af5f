/*
 * Each message of the front is decoded and bounded by code from schema/ipc.txt;
 * here is checked what a list cannot say (names, specs), and then the box or
 * the task is told.  About runs that are not here any more the front may still
 * speak: such words are passed over.
 */
#include "worker/worker.h"

#include <stdio.h>

#include "common/child.h"
#include "common/conf.h"
#include "common/fd.h"
#include "common/log.h"
#include "common/msg/msg_gen.h"
#include "common/runspec.h"
#include "common/xmalloc.h"
#include "worker/sweep.h"
#include "worker/trial.h"

/* That the front asks for at a time, for each worker there is (ENGINE_PLACES);
 * where the others are away, of one worker. */
#define FRONT_OPENINGS 8

/* ---- state */

static void
tell_state(struct worker *w)
{
	char text[ERR_TEXT_MAX + 200];

	if (!w->engine_known || w->front == NULL)
		return;
	(void)snprintf(text, sizeof(text), "%s%s%s", w->engine_detail,
	    w->engine_detail[0] != '\0' && w->disk_waits > 0 ? "; " : "",
	    w->disk_waits > 0 ? w->disk_detail : "");
	if (w->engine_said && w->engine_up)
		msg_send_engine_is(w->front,
		    &(struct msg_engine_is){.name = w->engine_about.name,
			.version = w->engine_about.version,
			.api = w->engine_about.api,
			.runtime = w->engine_about.runtime,
			.runtimes = w->engine_about.runtimes});
	if (w->ways.chosen != NULL)
		msg_send_carrier_is(w->front,
		    &(struct msg_carrier_is){
			.carrier = w->ways.chosen->carrier->ops->name,
			.why = w->ways.why});
	msg_send_worker_state(w->front,
	    &(struct msg_worker_state){
		.engine_up = w->engine_up, .detail = text, .lack = w->lack});
}

/* Before somebody needs it, if that costs no image. */
static void
look_for_carrier(struct worker *w)
{
	if (w->engine_up && w->lack[0] == '\0' && w->trial != NULL)
		trial_look(w->trial);
}

static void
carrier_wanted_cb(void *arg)
{
	struct worker *w = arg;

	if (w->trial != NULL)
		trial_start(w->trial);
}

static void
carrier_chosen_cb(void *arg)
{
	tell_state(arg);
}

static void
on_state(bool up, const char *detail, void *arg)
{
	struct worker *w = arg;

	w->engine_known = true;
	w->engine_up = up;
	(void)snprintf(
	    w->engine_detail, sizeof(w->engine_detail), "%s", detail);
	tell_state(w);
	if (up)
		boxes_look(w->boxes);
	look_for_carrier(w);
}

static void
on_about(const struct backend_about *about, void *arg)
{
	struct worker *w = arg;

	w->engine_said = true;
	w->engine_about = *about;
}

static void
on_lack(const char *text, void *arg)
{
	struct worker *w = arg;

	(void)snprintf(w->lack, sizeof(w->lack), "%s", text);
	tell_state(w);
	look_for_carrier(w);
}

static void
on_change(const struct backend_handle *h, enum backend_change what, void *arg)
{
	struct worker *w = arg;

	boxes_on_change(w->boxes, h, what);
}

const struct backend_watch worker_watch = {.on_state = on_state,
    .on_change = on_change,
    .on_about = on_about,
    .on_lack = on_lack};

static void
on_disk(bool full, const char *text, void *arg)
{
	struct worker *w = arg;

	if (full) {
		w->disk_waits++;
		(void)snprintf(
		    w->disk_detail, sizeof(w->disk_detail), "%s", text);
	} else {
		w->disk_waits--;
	}
	/* The first to wait and the last: not each in between. */
	if ((full && w->disk_waits == 1) || w->disk_waits == 0)
		tell_state(w);
}

/* ---- counts */

/* A run is over, or a sandbox is ready. */
static void
on_done(void *arg)
{
	struct worker *w = arg;

	w->done++;
	if (w->child != NULL)
		child_counts(w->child, w->done);
}

static void
on_full(void *arg)
{
	struct worker *w = arg;

	boxes_pause(w->boxes);
}

/* ---- sandboxes */

static int
on_sandbox_open(void *arg, const struct msg_sandbox_open *m, struct err *e)
{
	struct worker *w = arg;
	const struct backend *b = w->box_host.backend;
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
	    (m->container_id[0] != '\0' && !b->ops->is_id(m->container_id)))
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
	const struct policy_claim left = {.identifier = m->left_by};
	struct worker *w = arg;

	if (!policy_is_name(m->name))
		return err_set(e, ERR_PROTO, "no container name");
	/* "": a container without the label. */
	if (m->tenant_name[0] != '\0' && !policy_is_tenant(m->tenant_name))
		return err_set(e, ERR_PROTO, "no tenant name");
	if (m->left_by[0] != '\0' && policy_check_claim(&left, e) != 0)
		return ERR_PROTO;
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

/* Each name ends in a NUL. */
static int
on_tenants(void *arg, const struct msg_tenants *m, struct err *e)
{
	const struct worker *w = arg;
	struct backend *b = w->box_host.backend;
	const char *at = (const char *)m->names.p;
	const char *end = at + m->names.n;

	if (m->names.n > 0 && end[-1] != '\0')
		return err_set(e, ERR_PROTO, "a name of a tenant is cut");
	for (; at < end; at += strlen(at) + 1) {
		if (!policy_is_tenant(at))
			return err_set(e, ERR_PROTO, "no tenant name");
		if (b->ops->name_tenant != NULL)
			b->ops->name_tenant(b, at);
	}
	return 0;
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
    .on_tenants = on_tenants,
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
	struct worker *w = arg;

	(void)c;
	w->on_close(w, why);
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
worker_attach(struct worker *w, int fd,
    void (*on_close)(struct worker *, const struct err *))
{
	worker_detach(w);
	w->on_close = on_close;
	w->front = ipc_chan_new(w->base, fd, "front", &ops, w);
	tell_state(w);
}

void
worker_detach(struct worker *w)
{
	ipc_chan_free(w->front);
	w->front = NULL;
}

/* ---- life */

int
worker_init(struct worker *w, struct event_base *base, const struct conf *c,
    struct err *e)
{
	memset(w, 0, sizeof(*w));
	if (policy_init(&w->policy, c, e) != 0)
		return ERR_INVAL;
	w->base = base;
	w->limits.total_bytes =
	    (uint64_t)conf_int(c, CONF_ARTIFACTS_MAX_EXTRACT_BYTES);
	w->limits.file_bytes =
	    (uint64_t)conf_int(c, CONF_ARTIFACTS_MAX_EXTRACT_FILE_BYTES);
	w->limits.files =
	    (uint32_t)conf_int(c, CONF_ARTIFACTS_MAX_EXTRACT_FILES);
	/* As for a run's end; the front's own deadline is the last one. */
	w->limits.late_ms = (uint32_t)conf_int(c, CONF_RUN_GRACE_MS) / 2;
	w->spool_room = w->artifact_room = (struct room_watch){
	    .reserve_bytes = (uint64_t)conf_int(c, CONF_DISK_RESERVE_MB) << 20,
	    .reserve_inodes = (uint64_t)conf_int(c, CONF_DISK_RESERVE_INODES)};
	w->limits.room = &w->artifact_room;
	w->task_host = (struct task_host){.base = base,
	    .grace_ms = w->limits.late_ms,
	    .front = &w->front,
	    .room = &w->spool_room,
	    .on_disk = on_disk,
	    .on_over = on_done,
	    .arg = w};
	w->box_host = (struct box_host){.base = base,
	    .grace_s = (uint32_t)conf_int(c, CONF_SANDBOX_GRACE_SECONDS),
	    .ping_ms = (uint32_t)conf_int(c, CONF_AGENT_PING_MS),
	    .openings_max =
		2 * FRONT_OPENINGS * (unsigned int)conf_int(c, CONF_WORKERS),
	    .output_bytes_s = (uint64_t)conf_int(c, CONF_SANDBOX_OUTPUT_MB_S)
		<< 20,
	    .front = &w->front,
	    .policy = &w->policy,
	    .task = &w->task_host,
	    .limits = &w->limits,
	    .on_ready = on_done,
	    .on_full = on_full,
	    .arg = w};
	w->boxes = boxes_new(&w->box_host);
	ways_init(&w->ways, base, carrier_wanted_cb, carrier_chosen_cb, w);
	w->box_host.ways = &w->ways;
	return 0;
}

void
worker_clear(struct worker *w)
{
	sweep_free(w);
	boxes_free(w->boxes);
	policy_clear(&w->policy);
}
