#include "supervisor/service/sandbox_int.h"

#include <stdio.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/xmalloc.h"

#define REMOVE_RETRY_MS 2000

static void
end_runs(struct sandbox *sb, unsigned int reason, int code, const char *text)
{
	struct run *r;

	sb->held = true;
	while ((r = TAILQ_FIRST(&sb->active)) != NULL)
		run_end_here(r, reason, code, text);
	while ((r = TAILQ_FIRST(&sb->waiting)) != NULL)
		run_end_here(r, reason, code, text);
	sb->held = false;
}

/* ---- from the worker */

void
sandbox_on_ready(struct sandbox *sb, const char *container_id)
{
	bool runs_told = sandbox_takes_runs(sb);
	struct run *r;

	if (sb->state != SANDBOX_OPENING)
		return;
	free(sb->row.container_id);
	sb->row.container_id = xstrdup(container_id);
	sandbox_set_state(sb, SANDBOX_READY, SANDBOX_IS_READY);
	if (!sb->was_ready)
		sandbox_touch(sb, 0);
	sb->was_ready = true;
	sandbox_save(sb);
	TAILQ_FOREACH (r, &sb->active, link) {
		free(r->row.container_id);
		r->row.container_id = xstrdup(container_id);
	}
	sandbox_wait_fire(sb, &sb->open_waiters, 0, NULL);
	if (runs_told)
		sandbox_pump(sb);
	else
		sandbox_tell_runs(sb);
}

void
sandbox_on_failed(struct sandbox *sb, int code, const char *text)
{
	struct err e;

	if (sb->state != SANDBOX_OPENING)
		return;
	if (sb->was_ready) { /* an adoption that did not work out */
		sandbox_on_lost(sb, text);
		return;
	}
	(void)err_set(&e, code, "%s", text);
	log_warn("sandbox %s: %s", sb->row.name, text);
	sandbox_bury(sb, SANDBOX_IS_REMOVED);
	sandbox_wait_fire(sb, &sb->open_waiters, code, &e);
	end_runs(sb, RUNLOG_START_FAILED, code, text);
	sandbox_free_if_done(sb);
}

/* Move what was never sent to a fresh sandbox of the same name. */
static void
requeue(struct sandbox *sb)
{
	struct principal p = {.tenant = sb->row.tenant};
	const struct sandbox_request q = {.identifier = sb->row.identifier,
	    .image = sb->row.image,
	    .origin = sb->row.origin,
	    .generation = sb->row.generation + 1,
	    .ttl_s = sb->row.ttl_s};
	struct sandbox *fresh;
	struct run *r;

	if (TAILQ_EMPTY(&sb->waiting) || sb->service->draining)
		return;
	fresh = sandbox_create(sb->service, &p, &q);
	while ((r = TAILQ_FIRST(&sb->waiting)) != NULL) {
		TAILQ_REMOVE(&sb->waiting, r, link);
		TAILQ_INSERT_TAIL(&fresh->waiting, r, link);
		r->sandbox = fresh;
		r->row.sandbox = fresh->row.id;
		free(r->row.sandbox_name);
		r->row.sandbox_name = xstrdup(fresh->row.name);
		store_run_move(fresh->service->store, r->row.id, fresh->row.id,
		    fresh->row.name, NULL, NULL);
	}
	sandbox_pump(fresh);
}

void
sandbox_on_lost(struct sandbox *sb, const char *why)
{
	char text[300];
	struct err e;

	if (sb->state == SANDBOX_DEAD)
		return;
	if (sb->state == SANDBOX_REMOVING) {
		sandbox_on_removed(sb, 0, "");
		return;
	}
	if (sb->adopting && !sb->was_ready) {
		/* It never came to be: now make it, its runs are waiting. */
		struct peer *p = peer_of_sandbox(sb->service, sb->row.id);

		sb->asked_create = false;
		if (p->chan != NULL)
			sandbox_tell(sb);
		return;
	}
	log_info("sandbox %s is lost: %s", sb->row.name, why);
	(void)snprintf(text, sizeof(text), "the sandbox was lost: %.200s", why);
	(void)err_set(&e, ERR_LOST, "%s", text);
	sandbox_bury(sb, SANDBOX_IS_LOST);
	sandbox_wait_fire(sb, &sb->open_waiters, ERR_LOST, &e);
	requeue(sb);
	end_runs(sb, RUNLOG_LOST, ERR_LOST, text);
	sandbox_free_if_done(sb);
}

void
sandbox_remove(struct sandbox *sb)
{
	struct peer *p = peer_of_sandbox(sb->service, sb->row.id);
	struct err e;

	if (sb->state >= SANDBOX_REMOVING)
		return;
	sandbox_leave_names(sb);
	sandbox_set_state(sb, SANDBOX_REMOVING, SANDBOX_IS_REMOVING);
	sandbox_save(sb);
	(void)err_set(&e, ERR_WRONG_STATE, "the sandbox was deleted");
	sandbox_wait_fire(sb, &sb->open_waiters, ERR_WRONG_STATE, &e);
	end_runs(sb, RUNLOG_CANCELED, ERR_WRONG_STATE,
	    "the run was canceled: its sandbox was deleted");
	if (p->chan != NULL)
		sandbox_send_remove(sb, p);
}

void
sandbox_on_removed(struct sandbox *sb, int code, const char *text)
{
	struct err e;

	if (sb->state != SANDBOX_REMOVING)
		return;
	if (code != 0) {
		(void)err_set(&e, code, "%s", text);
		sb->retry_ms = clock_mono_ms() + REMOVE_RETRY_MS;
		sandbox_wait_fire(sb, &sb->gone_waiters, code, &e);
		return;
	}
	if (sb->reaped)
		sb->service->stats.reaper_deletes++;
	sandbox_bury(sb, SANDBOX_IS_REMOVED);
	sandbox_wait_fire(sb, &sb->gone_waiters, 0, NULL);
	sandbox_free_if_done(sb);
}

/* ---- care */

void
sandbox_reap(struct service *s, int64_t wall_ms, uint64_t mono_ms)
{
	struct sandbox *sb, *next;
	struct peer *p;

	for (sb = TAILQ_FIRST(&s->sandboxes); sb != NULL; sb = next) {
		next = TAILQ_NEXT(sb, link);
		p = peer_of_sandbox(s, sb->row.id);
		if (sb->state == SANDBOX_REMOVING && sb->retry_ms != 0 &&
		    mono_ms >= sb->retry_ms && p->chan != NULL) {
			sb->retry_ms = 0;
			sandbox_send_remove(sb, p);
		}
		if (sb->state == SANDBOX_READY && TAILQ_EMPTY(&sb->active) &&
		    TAILQ_EMPTY(&sb->waiting) &&
		    wall_ms >= sb->row.expires_ms) {
			sb->reaped = true;
			sandbox_remove(sb);
		}
	}
}
