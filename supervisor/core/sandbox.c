/*
 * sandbox.c - the registry, and what each step of sandbox_step.h does
 *
 * A sandbox begins with sandbox_open: it takes its name, its row goes to the
 * store, and its worker is told to make it when it is its tenant's turn at the
 * engine; a removal waits for its turn as well.  Its runs are sent right behind
 * that; its gate (sched.h) is open whenever they may be.  When the worker goes
 * and comes again, the next one is told all: the sandbox, each run that any
 * worker had (run_resend), and, when those were all, that they were all
 * (SANDBOX_SETTLED), so that it may end what nobody knows.
 *
 * Writes of a row come to disk in their order.  Without a row a sandbox can
 * have no runs: when none could be written, it ends.  A row that is there but
 * behind is what a restart repairs; it is written again until it is right.
 */
#include "supervisor/core/sandbox.h"

#include <ctype.h>

#include "common/clock.h"
#include "common/conf.h"
#include "common/log.h"
#include "common/timer.h"
#include "common/xmalloc.h"
#include "supervisor/core/fleet.h"
#include "supervisor/core/quota_use.h"
#include "supervisor/core/run.h"
#include "supervisor/core/tenants.h"

#define SLUG_MAX 40
#define REMOVE_RETRY_MS 2000
#define SAVE_AGAIN_MS 2000
/* Runs of one sandbox that go at a time: each takes a keeper, a shell and what
 * that starts out of the sandbox's limit of processes. */
#define PIDS_PER_RUN 8
#define HUNG "hung"           /* why one was given up that is there */
#define EXPIRY_SLACK_MS 10000 /* that the database may lag behind, at most */

TAILQ_HEAD(sandbox_list, sandbox);

struct sandboxes {
	struct sandboxes_parts parts;
	struct sandbox_list list;
	struct hashmap ids;
	struct names names;
	uint64_t next_id;
};

/* ---- finding */

struct sandbox *
sandboxes_find(struct sandboxes *all, uint64_t id)
{
	return HASH_OBJECT(
	    hashmap_get_u64(&all->ids, id), struct sandbox, by_id);
}

struct sandbox *
sandbox_find_named(
    struct sandboxes *all, struct tenant_id tenant, const char *identifier)
{
	struct name_hold *h = names_find(&all->names, tenant, identifier);

	return h == NULL ? NULL : HASH_OF(h, struct sandbox, name);
}

uint64_t
sandboxes_live(const struct sandboxes *all)
{
	return all->names.map.count;
}

struct sandbox *
sandboxes_next(const struct sandboxes *all, const struct sandbox *sb)
{
	return sb == NULL ? TAILQ_FIRST(&all->list) : TAILQ_NEXT(sb, link);
}

/* ---- the row of a new one, and why it goes */

/* mcp-sbx-<slug>-<8 hex>, the compatible tools' form; the hex is of the UUID,
 * so that a new generation never waits for the old one's name. */
static char *
container_name(const char *identifier, const struct uuid *uuid)
{
	char slug[SLUG_MAX + 1];
	size_t n = 0;

	for (; identifier[n] != '\0' && n < SLUG_MAX; n++)
		slug[n] = isalnum((unsigned char)identifier[n]) ?
		    (char)tolower((unsigned char)identifier[n]) :
		    '-';
	slug[n] = '\0';
	return xasprintf("mcp-sbx-%s-%02x%02x%02x%02x", slug, uuid->b[0],
	    uuid->b[1], uuid->b[2], uuid->b[3]);
}

static void
row_init(struct store_sandbox *row, const struct sandbox_wish *w, uint64_t id,
    uint32_t generation)
{
	struct uuid uuid;

	uuid_random(&uuid);
	*row = (struct store_sandbox){
	    .id = id,
	    .uuid = uuid,
	    .tenant = w->who->tenant.n,
	    .identifier = xstrdup(w->identifier),
	    .generation = generation,
	    .name = container_name(w->identifier, &uuid),
	    .container_id = xstrdup(""),
	    .image = xstrdup(w->image),
	    .state = SANDBOX_IS_CREATING,
	    .origin = xstrdup(w->origin),
	    .ttl_s = w->ttl_s,
	    .created_ms = clock_wall_ms(),
	};
}

/* The first that was said stays. */
static void
explain(char **to, const char *text)
{
	if (*to == NULL || (*to)[0] == '\0')
		xset_text(to, text);
}

static void
explain_step(struct store_sandbox *row, enum sandbox_state to,
    enum sandbox_happening what, const struct err *why)
{
	static const char *const reasons[SANDBOX_NHAPPENING] = {
	    [SANDBOX_FAILED] = "failed",
	    [SANDBOX_LOST] = "lost",
	    [SANDBOX_HUNG] = HUNG,
	    [SANDBOX_UNWANTED] = "deleted",
	};

	if (sandbox_state_is_live(to) || reasons[what] == NULL)
		return;
	explain(&row->reason, reasons[what]);
	if (why != NULL)
		explain(&row->why, why->msg);
}

/* ---- life */

static struct sandbox *
sandbox_new(struct sandboxes *all, struct principal *owner)
{
	struct sandbox *sb = xcalloc(1, sizeof(*sb));

	sb->all = all;
	sb->owner = principal_ref(owner);
	bus_init(&sb->bus);
	return sb;
}

/* Its row and its state are set. */
static void
sandbox_enter(struct sandbox *sb)
{
	struct sandboxes *all = sb->all;
	unsigned int limit = sb->row.pids / PIDS_PER_RUN;

	sb->worker = fleet_place(all->parts.fleet, sb->row.id);
	sb->use = quota_use_of(all->parts.uses, sb->owner->tenant);
	sched_queue_init(&sb->use->lane, &sb->queue, limit == 0 ? 1 : limit);
	quota_use_add_sandbox(sb->use, &sb->row);
	hashmap_put(&all->ids, &sb->by_id, hashmap_key_u64(sb->row.id));
	TAILQ_INSERT_TAIL(&all->list, sb, link);
	if (sandbox_state_is_live(sb->state))
		names_take(&all->names, &sb->name, sb->owner->tenant,
		    sb->row.identifier);
}

/* It is in no map but that of names, or the maps go as well. */
static void
sandbox_free(struct sandbox *sb)
{
	struct sandboxes *all = sb->all;

	names_leave(&all->names, &sb->name);
	sched_leave(&sb->turn);
	TAILQ_REMOVE(&all->list, sb, link);
	sched_queue_clear(&sb->queue);
	timer_free(sb->retry);
	timer_free(sb->save_again);
	free(sb->isolation);
	principal_unref(sb->owner);
	store_sandbox_clear(&sb->row);
	free(sb);
}

/* Gone, its last run has left it, and its row says so. */
static void
sandbox_free_if_over(struct sandbox *sb)
{
	if (sb->state == SANDBOX_GONE && sb->pins == 0 && sb->nwrites == 0 &&
	    !sb->is_behind && sched_queue_is_empty(&sb->queue))
		sandbox_free(sb);
}

struct sandboxes *
sandboxes_new(const struct sandboxes_parts *parts)
{
	struct sandboxes *all = xcalloc(1, sizeof(*all));

	all->parts = *parts;
	all->next_id = 1;
	TAILQ_INIT(&all->list);
	return all;
}

void
sandboxes_free(struct sandboxes *all)
{
	struct sandbox *sb;

	if (all == NULL)
		return;
	while ((sb = TAILQ_FIRST(&all->list)) != NULL)
		sandbox_free(sb);
	hashmap_clear(&all->ids);
	names_clear(&all->names);
	free(all);
}

void
sandboxes_set_next_id(struct sandboxes *all, uint64_t id)
{
	all->next_id = id;
}

/* ---- deeds */

static void
sandbox_say(struct sandbox *sb, enum bus_kind kind)
{
	const struct bus_event ev = {.kind = kind,
	    .sandbox = sb,
	    .why = sb->why.code == 0 ? NULL : &sb->why};

	bus_tell(&sb->bus, &ev);
	if (!sb->is_remainder)
		bus_tell(sb->all->parts.bus, &ev);
}

static struct ipc_chan *
sandbox_chan(const struct sandbox *sb)
{
	return fleet_chan(sb->all->parts.fleet, sb->worker);
}

static void sandbox_happen(
    struct sandbox *sb, enum sandbox_happening what, const struct err *why);

static void
open_gate(struct sandbox *sb)
{
	if (sb->is_open && !sb->is_held)
		sched_queue_gate(&sb->queue, SCHED_GATE_OPEN);
}

static bool
is_of_one_name(const struct sandbox *a, const struct sandbox *b)
{
	return a->row.tenant == b->row.tenant &&
	    strcmp(a->row.identifier, b->row.identifier) == 0;
}

static bool
files_outlive(const struct sandboxes *all)
{
	return conf_str(all->parts.conf, CONF_KUBERNETES_VOLUME_CLASS)[0] !=
	    '\0';
}

/* Where files outlive a sandbox, they go with one that is removed: the next of
 * its identifier is not made before, and takes no turn from the removal. */
static bool
has_to_wait(const struct sandbox *sb)
{
	const struct sandbox *old;

	if (sb->state != SANDBOX_NEW || !files_outlive(sb->all))
		return false;
	TAILQ_FOREACH (old, &sb->all->list, link)
		if (old->state == SANDBOX_REMOVING && is_of_one_name(old, sb))
			return true;
	return false;
}

static void
do_ask_turn(struct sandbox *sb)
{
	if (sb->turn.where == SCHED_NOWHERE && !has_to_wait(sb))
		quota_use_ask_engine(sb->use, &sb->turn);
}

/* A removal is over, or goes on later. */
static void
let_next_ask(const struct sandbox *old)
{
	struct sandbox *sb;

	if (!files_outlive(old->all))
		return;
	TAILQ_FOREACH (sb, &old->all->list, link)
		if (sb->state == SANDBOX_NEW && is_of_one_name(old, sb) &&
		    sandbox_chan(sb) != NULL)
			do_ask_turn(sb);
}

/* It was given up, and nobody deleted or replaced it. */
static bool
is_wanted_still(const struct sandbox *sb)
{
	const char *reason = sb->row.reason == NULL ? "" : sb->row.reason;

	return strcmp(reason, HUNG) == 0 ||
	    (reason[0] == '\0' && !sb->is_recorded && !sb->is_remainder);
}

/* In its turn; that of its making, if that has not ended. */
static void
tell_remove(struct sandbox *sb)
{
	msg_send_sandbox_remove(sandbox_chan(sb),
	    &(struct msg_sandbox_remove){.id = sb->row.id,
		.uuid = sb->row.uuid,
		.tenant_name = sb->owner->tenant_name,
		.name = sb->row.name,
		.keeps_files = is_wanted_still(sb),
		.left_by = sb->is_remainder ? sb->row.identifier : ""});
}

static void
send_remove(struct sandbox *sb)
{
	sb->is_remove_due = false;
	if (sb->state != SANDBOX_REMOVING)
		return;
	if (sb->turn.where == SCHED_IS_RUNNING)
		tell_remove(sb);
	else
		do_ask_turn(sb);
}

static void saved_cb(int rc, const struct err *why, void *arg);

static void
sandbox_save(struct sandbox *sb)
{
	sb->saved_expires_ms = sb->row.expires_ms;
	sb->nwrites++;
	store_sandbox_put(sb->all->parts.store, &sb->row, saved_cb, sb);
}

static void
save_again_cb(void *arg)
{
	struct sandbox *sb = arg;

	if (sb->is_behind)
		sandbox_save(sb);
}

static void
save_failed(struct sandbox *sb, const struct err *why)
{
	static struct log_limit limit;
	struct err e = *why;

	log_warn_limited(&limit, "sandbox %s: its row is not on disk: %s",
	    sb->row.name, why->msg);
	if (!sb->is_recorded && sb->nwrites == 1) {
		(void)err_wrap(&e, "the sandbox could not be recorded");
		sandbox_happen(sb, SANDBOX_UNRECORDED, &e);
		return;
	}
	sb->is_behind = true;
	if (sb->save_again == NULL)
		sb->save_again =
		    timer_new(sb->all->parts.base, save_again_cb, sb);
	timer_set_ms(sb->save_again, SAVE_AGAIN_MS);
}

static void
saved_cb(int rc, const struct err *why, void *arg)
{
	struct sandbox *sb = arg;
	struct sched *engine = sb->all->parts.engine;

	if (rc == 0)
		sb->is_recorded = true;
	if (rc != 0)
		save_failed(sb, why);
	else if (sb->nwrites == 1)
		sb->is_behind = false;
	if (--sb->nwrites > 0)
		return;
	if (sb->is_remove_due)
		send_remove(sb);
	if (sb->is_held) {
		sb->is_held = false;
		open_gate(sb);
		sched_turn(sb->all->parts.sched);
	}
	sandbox_free_if_over(sb);
	sched_turn(engine);
}

static void
do_open_gate(struct sandbox *sb)
{
	sb->is_open = true;
	open_gate(sb);
}

static void
do_close_gate(struct sandbox *sb)
{
	sb->is_open = false;
	sched_queue_gate(&sb->queue, SCHED_GATE_SHUT);
}

static void
do_leave_name(struct sandbox *sb)
{
	names_leave(&sb->all->names, &sb->name);
}

static void
do_touch(struct sandbox *sb)
{
	sb->row.expires_ms = clock_wall_ms() + (int64_t)sb->row.ttl_s * 1000;
}

static void
do_save(struct sandbox *sb)
{
	if (sb->state == SANDBOX_GONE)
		sb->row.ended_ms = clock_wall_ms();
	/* Of one that is gone only what the database has, or may get. */
	if (sb->state != SANDBOX_GONE || sb->is_recorded || sb->nwrites > 0)
		sandbox_save(sb);
}

static void
send_open(struct sandbox *sb, enum msg_open_mode mode)
{
	const struct tenant *n = quota_use_tenant(sb->use);
	const struct store_sandbox *row = &sb->row;

	/* An adopted container keeps the CPU shares that it was created
	 * with, which we do not know. */
	share_begin(&sb->share,
	    mode == MSG_OPEN_MODE_CREATE ? quota_use_cpu_shares(sb->use) : 0);
	msg_send_sandbox_open(sandbox_chan(sb),
	    &(struct msg_sandbox_open){
		.id = row->id,
		.tenant = sb->owner->tenant.n,
		.mode = mode,
		.uuid = row->uuid,
		.tenant_name = sb->owner->tenant_name,
		.identifier = row->identifier,
		.generation = row->generation,
		.name = row->name,
		.image = row->image,
		.container_id = row->container_id,
		.memory_bytes = row->memory_bytes,
		.nano_cpus = row->nano_cpus,
		.pids = row->pids,
		.cpu_shares = sb->share.told.cpu_shares,
		.runtime = n == NULL ? "" : n->row.runtime,
		.read_only_root = n != NULL && n->row.read_only_root,
		.ttl_s = row->ttl_s,
	    });
	sb->is_settled = false;
	sb->is_resent = false;
}

static void
do_tell_create(struct sandbox *sb)
{
	send_open(sb, MSG_OPEN_MODE_CREATE);
}

static void
do_tell_adopt(struct sandbox *sb)
{
	send_open(sb, MSG_OPEN_MODE_ADOPT);
}

/* When its row says so: a front that dies meanwhile would leave a row of a
 * sandbox that is ready, the next would send runs to it, and the engine take
 * it away under them.  A row that cannot be written holds up no removal. */
static void
do_tell_remove(struct sandbox *sb)
{
	sb->is_remove_due = sb->nwrites > 0;
	if (!sb->is_remove_due)
		send_remove(sb);
}

/* ---- its runs: those that were sent are in its queue as running ones, the
 * others wait there (sched.h) */

static struct run *
run_of(struct sched_item *item)
{
	return HASH_OF(item, struct run, turn);
}

/* The worker was told of each that was sent. */
static bool
runs_are_told(const struct sandbox *sb)
{
	struct sched_item *item;

	TAILQ_FOREACH (item, &sb->queue.running, link)
		if (!run_of(item)->is_told)
			return false;
	return true;
}

static void
end_runs(struct sandbox *sb, enum runlog_reason reason)
{
	struct sched_item *item;

	while ((item = sched_queue_first(&sb->queue)) != NULL)
		run_sandbox_gone(
		    run_of(item), reason, sb->why.code, sb->why.msg);
}

/* Of those that wait, what an earlier server may have sent: it may have begun,
 * and with the sandbox the end of its log is lost.  It must not begin again. */
static void
end_doubtful(struct sandbox *sb, struct sched_items *list)
{
	struct sched_item *item, *next;

	for (item = TAILQ_FIRST(list); item != NULL; item = next) {
		next = TAILQ_NEXT(item, link);
		if (run_of(item)->is_doubtful)
			run_sandbox_gone(run_of(item), RUNLOG_LOST,
			    sb->why.code, sb->why.msg);
	}
}

static void
move_run_cb(struct sched_item *item, void *arg)
{
	run_move(run_of(item), arg);
}

/* Lets the worker end what it was not told of, so it has to wait for runs of
 * an earlier front that may have begun and are still queued, and for those
 * whose specs are still fetched. */
static void
sandbox_settle(struct sandbox *sb)
{
	struct ipc_chan *chan = sandbox_chan(sb);

	if (sb->is_settled || chan == NULL || !sb->is_resent ||
	    sb->ndoubtful > 0 || !runs_are_told(sb))
		return;
	sb->is_settled = true;
	msg_send_sandbox_settled(chan,
	    &(struct msg_sandbox_settled){
		.id = sb->row.id, .tenant = sb->owner->tenant.n});
}

static void
do_resend(struct sandbox *sb)
{
	struct sched_item *item, *next;

	for (item = TAILQ_FIRST(&sb->queue.running); item != NULL;
	     item = next) {
		next = TAILQ_NEXT(item, link);
		run_resend(run_of(item));
	}
	sb->is_resent = true;
	sandbox_settle(sb);
}

static void
do_say_ready(struct sandbox *sb)
{
	struct sched_item *item;

	TAILQ_FOREACH (item, &sb->queue.running, link) {
		run_set_container(run_of(item), sb->row.container_id);
		run_set_deadline(run_of(item));
		if (sb->has_old_files)
			run_set_old_files(run_of(item));
	}
	sandbox_say(sb, BUS_SANDBOX_READY);
}

static void
do_say_failed(struct sandbox *sb)
{
	sandbox_say(sb, BUS_SANDBOX_FAILED);
}

static struct sandbox *sandbox_make(
    struct sandboxes *all, const struct sandbox_wish *w, uint32_t generation);

/* What was never sent goes to a fresh sandbox of the same name.  None of it
 * begins there before that is written: a front that dies first leaves rows by
 * which they wait here, and they would begin here as well. */
static void
do_requeue(struct sandbox *sb)
{
	const struct sandbox_wish w = {.who = sb->owner,
	    .identifier = sb->row.identifier,
	    .image = sb->row.image,
	    .origin = sb->row.origin,
	    .ttl_s = sb->row.ttl_s};
	struct sandbox *to;

	end_doubtful(sb, &sb->queue.waiting);
	end_doubtful(sb, &sb->queue.locked);
	if (sb->queue.nwaiting == 0)
		return;
	to = sandbox_make(sb->all, &w, sb->row.generation + 1);
	to->is_held = true;
	sched_queue_gate(&to->queue, SCHED_GATE_SHUT);
	sched_move_waiting(&sb->queue, &to->queue, move_run_cb, to);
	sandbox_save(to); /* behind the moves */
}

static void
do_end_lost(struct sandbox *sb)
{
	end_runs(sb, RUNLOG_LOST);
}

static void
do_end_failed(struct sandbox *sb)
{
	end_runs(sb, RUNLOG_START_FAILED);
}

static void
do_end_canceled(struct sandbox *sb)
{
	(void)err_set(&sb->why, ERR_WRONG_STATE,
	    "the run was canceled: its sandbox was deleted");
	end_runs(sb, RUNLOG_CANCELED);
}

static void sandbox_retry_cb(void *arg);

static void
do_retry_later(struct sandbox *sb)
{
	if (sb->retry == NULL)
		sb->retry =
		    timer_new(sb->all->parts.base, sandbox_retry_cb, sb);
	timer_set_ms(sb->retry, REMOVE_RETRY_MS);
}

static void
do_say_stuck(struct sandbox *sb)
{
	sandbox_say(sb, BUS_SANDBOX_REMOVE_FAILED);
}

static void
do_say_gone(struct sandbox *sb)
{
	sandbox_say(sb, BUS_SANDBOX_GONE);
}

/* ---- steps */

static const struct {
	enum sandbox_deed deed;
	void (*act)(struct sandbox *sb);
} acts[] = {
    {SANDBOX_DO_CLOSE_GATE, do_close_gate},
    {SANDBOX_DO_LEAVE_NAME, do_leave_name},
    {SANDBOX_DO_TOUCH, do_touch},
    {SANDBOX_DO_SAVE, do_save},
    {SANDBOX_DO_TELL_CREATE, do_tell_create},
    {SANDBOX_DO_TELL_ADOPT, do_tell_adopt},
    {SANDBOX_DO_TELL_REMOVE, do_tell_remove},
    {SANDBOX_DO_RESEND, do_resend},
    {SANDBOX_DO_OPEN_GATE, do_open_gate},
    {SANDBOX_DO_SAY_READY, do_say_ready},
    {SANDBOX_DO_SAY_FAILED, do_say_failed},
    {SANDBOX_DO_REQUEUE, do_requeue},
    {SANDBOX_DO_END_LOST, do_end_lost},
    {SANDBOX_DO_END_FAILED, do_end_failed},
    {SANDBOX_DO_END_CANCELED, do_end_canceled},
    {SANDBOX_DO_RETRY_LATER, do_retry_later},
    {SANDBOX_DO_SAY_STUCK, do_say_stuck},
    {SANDBOX_DO_SAY_GONE, do_say_gone},
    {SANDBOX_DO_ASK_TURN, do_ask_turn},
};

/* why (NULL: nothing failed) is what is told. */
static void
sandbox_happen(
    struct sandbox *sb, enum sandbox_happening what, const struct err *why)
{
	const enum sandbox_state from = sb->state;
	struct sandbox_move m = sandbox_step(from, what);
	struct sched *engine = sb->all->parts.engine;

	if (m.to == sb->state && m.deeds == SANDBOX_DO_NOTHING)
		return;
	log_debug("sandbox %s: from %s to %s", sb->row.name,
	    sandbox_state_name(sb->state), sandbox_state_name(m.to));
	sb->state = m.to;
	if (m.to == SANDBOX_GONE) { /* it may stay for its row's sake */
		hashmap_del(&sb->all->ids, &sb->by_id);
		quota_use_drop_sandbox(sb->use, &sb->row);
	}
	sb->why = why != NULL ? *why : (struct err){0};
	explain_step(&sb->row, m.to, what, why);
	if (m.deeds & SANDBOX_DO_SAVE)
		sb->row.state = m.word;
	sb->pins++;
	for (size_t i = 0; i < ARRAY_LEN(acts); i++)
		if (m.deeds & acts[i].deed)
			acts[i].act(sb);
	sb->pins--;
	if (sb->state != SANDBOX_NEW && sb->state != SANDBOX_CREATING &&
	    sb->state != SANDBOX_REMOVING)
		sched_leave(&sb->turn);
	if (from == SANDBOX_REMOVING && sb->state != SANDBOX_REMOVING)
		let_next_ask(sb);
	sandbox_free_if_over(sb);
	sched_turn(engine);
}

void
sandbox_on_turn(struct sandbox *sb)
{
	if (sandbox_chan(sb) == NULL)
		sched_leave(&sb->turn); /* it is asked for anew */
	else if (sb->state == SANDBOX_REMOVING)
		tell_remove(sb);
	else
		sandbox_happen(sb, SANDBOX_TURN_CAME, NULL);
}

static void
sandbox_retry_cb(void *arg)
{
	struct sandbox *sb = arg;

	if (sandbox_chan(sb) != NULL)
		sandbox_happen(sb, SANDBOX_RETRY, NULL);
}

/* ---- making */

static struct sandbox *
sandbox_draft(
    struct sandboxes *all, const struct sandbox_wish *w, uint32_t generation)
{
	struct sandbox *sb = sandbox_new(all, w->who);

	row_init(&sb->row, w, all->next_id++, generation);
	quota_use_limit_sandbox(
	    quota_use_of(all->parts.uses, w->who->tenant), &sb->row);
	do_touch(sb);
	return sb;
}

static void
sandbox_begin(struct sandbox *sb)
{
	sandbox_enter(sb);
	sandbox_save(sb);
	if (sandbox_chan(sb) != NULL)
		sandbox_happen(sb, SANDBOX_WORKER_CAME, NULL);
}

static struct sandbox *
sandbox_make(
    struct sandboxes *all, const struct sandbox_wish *w, uint32_t generation)
{
	struct sandbox *sb = sandbox_draft(all, w, generation);

	sb->state = SANDBOX_NEW;
	sandbox_begin(sb);
	return sb;
}

/* Before there is a row of it: the worker that is to make it can, by the
 * runtime that its tenant has. */
static int
check_worker(
    const struct sandboxes *all, const struct principal *who, struct err *e)
{
	const struct tenant *n =
	    quota_use_tenant(quota_use_of(all->parts.uses, who->tenant));
	struct fleet *fleet = all->parts.fleet;
	uint32_t worker = fleet_place(fleet, all->next_id);
	int rc = fleet_check(fleet, worker, e);

	if (rc != 0 || n == NULL)
		return rc;
	return fleet_check_runtime(fleet, worker, n->row.runtime, e);
}

int
sandbox_open(struct sandboxes *all, const struct sandbox_wish *w,
    struct sandbox **out, struct err *e)
{
	uint64_t n = all->ids.count;

	if (n >= (uint64_t)conf_int(all->parts.conf, CONF_MAX_SANDBOXES))
		return err_set(e, ERR_LIMIT,
		    "limit reached: %llu sandboxes exist (MAX_SANDBOXES): "
		    "delete one with delete_sandbox",
		    (unsigned long long)n);
	if (check_worker(all, w->who, e) != 0)
		return e->code;
	*out = sandbox_make(all, w, 1);
	return 0;
}

int
sandbox_replace(
    struct sandbox *old, uint32_t ttl_s, struct sandbox **out, struct err *e)
{
	const struct sandbox_wish w = {.who = old->owner,
	    .identifier = old->row.identifier,
	    .image = old->row.image,
	    .origin = "run",
	    .ttl_s = ttl_s};
	uint64_t n = old->all->ids.count;

	/* Sandboxes being removed do not count, up to twice MAX_SANDBOXES in
	 * all. */
	if (n >=
	    2 * (uint64_t)conf_int(old->all->parts.conf, CONF_MAX_SANDBOXES))
		return err_set(e, ERR_LIMIT,
		    "limit reached: %llu sandboxes exist or are being removed "
		    "(twice MAX_SANDBOXES): try again when some are gone",
		    (unsigned long long)n);
	if (check_worker(old->all, old->owner, e) != 0)
		return e->code;
	old->pins++;
	explain(&old->row.reason, "replaced");
	sandbox_remove(old);
	*out = sandbox_make(old->all, &w, old->row.generation + 1);
	old->pins--;
	sandbox_free_if_over(old);
	return 0;
}

struct sandbox *
sandbox_remainder(
    struct sandboxes *all, struct principal *owner, const char *identifier)
{
	const struct sandbox_wish w = {.who = owner,
	    .identifier = identifier,
	    .image = "",
	    .origin = "",
	    .ttl_s = 1};
	struct sandbox *sb;

	if (!files_outlive(all))
		return NULL;
	sb = sandbox_draft(all, &w, 0);
	sb->is_remainder = true;
	sb->state = SANDBOX_LEAVING;
	sandbox_enter(sb);
	if (sandbox_chan(sb) != NULL)
		sandbox_happen(sb, SANDBOX_WORKER_CAME, NULL);
	return sb;
}

void
sandbox_restore(struct sandboxes *all, struct principal *owner,
    const struct store_sandbox *row)
{
	struct sandbox *sb = sandbox_new(all, owner);

	store_sandbox_copy(&sb->row, row);
	sb->is_recorded = true;
	sb->saved_expires_ms = row->expires_ms;
	if (row->state == SANDBOX_IS_REMOVING)
		sb->state = SANDBOX_LEAVING;
	else if (row->state == SANDBOX_IS_READY)
		sb->state = SANDBOX_AWAY;
	else
		sb->state = SANDBOX_DOUBTFUL;
	sandbox_enter(sb);
}

void
sandbox_adopt(struct sandboxes *all, struct principal *owner,
    const struct store_sandbox *row)
{
	const struct sandbox_wish w = {.who = owner,
	    .identifier = row->identifier,
	    .image = row->image,
	    .origin = row->origin,
	    .ttl_s =
		(uint32_t)conf_int(all->parts.conf, CONF_DEFAULT_TTL_SECONDS)};
	struct sandbox *sb = sandbox_draft(all, &w, row->generation);

	sb->row.uuid = row->uuid;
	xset_text(&sb->row.name, row->name);
	xset_text(&sb->row.container_id, row->container_id);
	sb->row.created_ms = row->created_ms;
	sb->row.state = SANDBOX_IS_READY;
	sb->state = SANDBOX_AWAY;
	sandbox_begin(sb);
}

/* ---- what happens to it */

/* How far the expiry in the database may lag behind the true one. */
static int64_t
save_slack_ms(const struct sandbox *sb)
{
	int64_t slack = (int64_t)sb->row.ttl_s * 100;

	return slack > EXPIRY_SLACK_MS ? EXPIRY_SLACK_MS : slack;
}

void
sandbox_touch(struct sandbox *sb, uint32_t ttl_s)
{
	if (ttl_s != 0 && ttl_s != sb->row.ttl_s) {
		sb->row.ttl_s = ttl_s;
		msg_send_sandbox_ttl(sandbox_chan(sb),
		    &(struct msg_sandbox_ttl){.id = sb->row.id,
			.tenant = sb->owner->tenant.n,
			.ttl_s = ttl_s});
	}
	do_touch(sb);
	if (sb->row.expires_ms - sb->saved_expires_ms > save_slack_ms(sb) ||
	    sb->row.expires_ms < sb->saved_expires_ms)
		sandbox_save(sb);
}

void
sandbox_remove(struct sandbox *sb)
{
	struct err e;

	(void)err_set(&e, ERR_WRONG_STATE, "the sandbox was deleted");
	sandbox_happen(sb, SANDBOX_UNWANTED, &e);
}

void
sandbox_on_up(struct sandbox *sb, const char *container_id)
{
	if (sandbox_state_is_live(sb->state))
		xset_text(&sb->row.container_id, container_id);
	sandbox_happen(sb, SANDBOX_IS_UP, NULL);
}

void
sandbox_on_failed(struct sandbox *sb, int code, const char *text)
{
	struct err e;

	log_warn("sandbox %s: %s", sb->row.name, text);
	if (sb->state == SANDBOX_ADOPTING)
		(void)err_set(
		    &e, ERR_LOST, "the sandbox was lost: %.200s", text);
	else
		(void)err_set(&e, code, "%s", text);
	sandbox_happen(sb, SANDBOX_FAILED, &e);
}

void
sandbox_on_lost(struct sandbox *sb, const char *why)
{
	struct err e;

	if (sandbox_state_is_live(sb->state) && sb->state != SANDBOX_LOOKING)
		log_info("sandbox %s is lost: %s", sb->row.name, why);
	(void)err_set(&e, ERR_LOST, "the sandbox was lost: %.200s", why);
	sandbox_happen(sb, SANDBOX_LOST, &e);
}

void
sandbox_on_hung(struct sandbox *sb)
{
	struct err e;

	log_warn("sandbox %s: its agent does not answer: it is replaced",
	    sb->row.name);
	(void)err_set(
	    &e, ERR_LOST, "the sandbox was lost: its agent did not answer");
	sandbox_happen(sb, SANDBOX_HUNG, &e);
}

void
sandbox_on_removed(struct sandbox *sb, int code, const char *text)
{
	struct err e;

	if (code == 0) {
		sandbox_happen(sb, SANDBOX_REMOVED, NULL);
		return;
	}
	(void)err_set(&e, code, "%s", text);
	sandbox_happen(sb, SANDBOX_REMOVE_FAILED, &e);
}

void
sandbox_add_doubtful(struct sandbox *sb)
{
	sb->ndoubtful++;
}

void
sandbox_drop_doubtful(struct sandbox *sb)
{
	if (--sb->ndoubtful == 0)
		sandbox_settle(sb);
}

void
sandbox_on_run_told(struct sandbox *sb)
{
	sandbox_settle(sb);
}

void
sandbox_on_run_left(struct sandbox *sb)
{
	sandbox_settle(sb);
	if (sandbox_state_is_live(sb->state))
		sandbox_touch(sb, 0);
	sandbox_free_if_over(sb);
}

/* ---- what happens to many */

void
sandboxes_reap(struct sandboxes *all, int64_t wall_ms)
{
	struct sandbox *sb, *next;

	for (sb = TAILQ_FIRST(&all->list); sb != NULL; sb = next) {
		next = TAILQ_NEXT(sb, link);
		if (sb->state != SANDBOX_READY ||
		    !sched_queue_is_empty(&sb->queue) ||
		    wall_ms < sb->row.expires_ms)
			continue;
		sb->is_expired = true;
		explain(&sb->row.reason, "expired");
		sandbox_remove(sb);
	}
}

static void
tell_shares(struct sandbox *sb, const struct share *s)
{
	msg_send_sandbox_shares(sandbox_chan(sb),
	    &(struct msg_sandbox_shares){.id = sb->row.id,
		.tenant = sb->row.tenant,
		.cpu_shares = s->cpu_shares,
		.nano_cpus = s->nano_cpus,
		.first_cpu = s->first_cpu,
		.cpus = s->cpus,
		.output_bytes_s = s->output_bytes_s});
}

void
sandboxes_share(struct sandboxes *all)
{
	unsigned int told = 0;
	struct sandbox *sb;
	struct share now;

	TAILQ_FOREACH (sb, &all->list, link) {
		share_tick(&sb->share, sb->use,
		    sb->queue.nrunning > 0 || sb->left > 0);
		if (sb->state == SANDBOX_READY && told < SHARES_PER_TICK &&
		    share_is_due(&sb->share, sb->use, all->parts.conf,
			sb->row.nano_cpus, &now)) {
			tell_shares(sb, &now);
			told++;
		}
	}
}

void
sandbox_on_worker(
    struct sandboxes *all, uint32_t worker, enum sandbox_happening what)
{
	struct sandbox *sb, *next;

	for (sb = TAILQ_FIRST(&all->list); sb != NULL; sb = next) {
		next = TAILQ_NEXT(sb, link);
		if (sb->worker == worker)
			sandbox_happen(sb, what, NULL);
	}
}
