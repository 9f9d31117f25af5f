#include "supervisor/service/sandbox_int.h"

/* Runs of one sandbox that execute at a time: each takes a keeper, a shell
 * and what that starts out of the sandbox's limit of processes. */
#define PIDS_PER_RUN 8

/* ---- to the worker */

static void
send_open(struct sandbox *sb, struct peer *p)
{
	const struct store_sandbox *row = &sb->row;

	sb->adopting = sb->was_ready || sb->asked_create;
	sb->asked_create = true;
	msg_send_sandbox_open(p->chan,
	    &(struct msg_sandbox_open){.id = row->id,
		.mode =
		    sb->adopting ? MSG_OPEN_MODE_ADOPT : MSG_OPEN_MODE_CREATE,
		.uuid = row->uuid,
		.tenant = "default",
		.identifier = row->identifier,
		.generation = row->generation,
		.name = row->name,
		.image = row->image,
		.container_id = row->container_id,
		.memory_bytes = row->memory_bytes,
		.nano_cpus = row->nano_cpus,
		.pids = row->pids});
}

void
sandbox_send_remove(struct sandbox *sb, struct peer *p)
{
	msg_send_sandbox_remove(p->chan,
	    &(struct msg_sandbox_remove){
		.id = sb->row.id, .uuid = sb->row.uuid, .name = sb->row.name});
}

/* SETTLED lets the worker cancel what it was not told of, so it has to wait
 * for runs of an earlier front that may have begun and are still queued. */
static void
settle(struct sandbox *sb)
{
	struct peer *p = peer_of_sandbox(sb->service, sb->row.id);

	if (sb->settled || p->chan == NULL || !TAILQ_EMPTY(&sb->waiting))
		return;
	sb->settled = true;
	msg_send_sandbox_settled(
	    p->chan, &(struct msg_sandbox_settled){.id = sb->row.id});
}

/* Whether its runs may go to the worker: not while it is being looked for
 * after a crash and perhaps never came to be. */
bool
sandbox_takes_runs(const struct sandbox *sb)
{
	return sb->told && sb->state <= SANDBOX_READY &&
	    (sb->was_ready || !sb->adopting);
}

void
sandbox_tell_runs(struct sandbox *sb)
{
	struct run *r, *next;

	for (r = TAILQ_FIRST(&sb->active); r != NULL; r = next) {
		next = TAILQ_NEXT(r, link);
		run_send(r);
	}
	sandbox_pump(sb);
}

/* All that a fresh worker must know of this sandbox, in order: the sandbox,
 * each run that another worker had, and that this was all. */
void
sandbox_tell(struct sandbox *sb)
{
	struct peer *p = peer_of_sandbox(sb->service, sb->row.id);

	sb->told = p->chan != NULL;
	sb->settled = false;
	if (p->chan == NULL || sb->state == SANDBOX_DEAD)
		return;
	if (sb->state == SANDBOX_REMOVING) {
		sandbox_send_remove(sb, p);
		return;
	}
	sb->state = SANDBOX_OPENING;
	send_open(sb, p);
	if (sandbox_takes_runs(sb))
		sandbox_tell_runs(sb);
}

static struct run *
next_to_send(struct sandbox *sb)
{
	struct run *r;

	TAILQ_FOREACH (r, &sb->waiting, link)
		if (!r->lock || sb->lock_holder == NULL)
			return r;
	return NULL;
}

static void
activate(struct sandbox *sb, struct run *r)
{
	if (r->lock)
		sb->lock_holder = r;
	TAILQ_REMOVE(&sb->waiting, r, link);
	TAILQ_INSERT_TAIL(&sb->active, r, link);
	r->was_active = true;
	sb->nactive++;
}

void
sandbox_pump(struct sandbox *sb)
{
	unsigned int limit = sb->row.pids / PIDS_PER_RUN;
	struct run *r;

	if (limit == 0)
		limit = 1;
	if (!sandbox_takes_runs(sb))
		return;
	while (sb->nactive < limit && (r = next_to_send(sb)) != NULL) {
		activate(sb, r);
		run_send(r);
	}
	settle(sb);
}

void
sandbox_restore_active(struct sandbox *sb, struct run *r)
{
	if (!r->lock || sb->lock_holder == NULL)
		activate(sb, r);
}

void
sandbox_run_left(struct sandbox *sb, struct run *r)
{
	if (r->phase != RUN_ENDING)
		return;
	if (r->was_active) {
		TAILQ_REMOVE(&sb->active, r, link);
		sb->nactive--;
	} else {
		TAILQ_REMOVE(&sb->waiting, r, link);
	}
	if (sb->lock_holder == r)
		sb->lock_holder = NULL;
	if (sb->state <= SANDBOX_READY) {
		sandbox_touch(sb, 0);
		sandbox_pump(sb);
	}
	sandbox_free_if_done(sb);
}
