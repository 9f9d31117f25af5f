#include "worker/sandbox_int.h"

#include <stdio.h>

#include <event2/event.h>

#include "common/log.h"
#include "common/xmalloc.h"
#include "worker/later.h"
#include "worker/link/linkdir.h"

/* ---- the object */

static void
free_cb(void *arg)
{
	struct sandbox *sb = arg;

	event_free(sb->timer);
	event_free(sb->copy_timer);
	free(sb->link_dir);
	free(sb->name);
	free(sb);
}

static void
leave_map(struct sandbox *sb)
{
	if (sb->in_map)
		idmap_del(&sb->w->sandboxes, sb->id);
	sb->in_map = false;
}

static void
close_link(struct sandbox *sb)
{
	if (sb->peer != NULL)
		sandbox_runs_detach(sb);
	peer_free(sb->peer);
	sb->peer = NULL;
	sb->hello = NULL;
}

void
sandbox_die(struct sandbox *sb)
{
	leave_map(sb);
	sandbox_runs_clear(sb);
	close_link(sb);
	(void)event_del(sb->timer);
	(void)event_del(sb->copy_timer);
	sb->state = SANDBOX_DEAD;
	if (sb->awaited == 0) /* callers up the stack may still look at it */
		later(sb->w->base, free_cb, sb);
}

void
sandbox_answered(struct sandbox *sb)
{
	if (--sb->awaited == 0 && sb->state == SANDBOX_DEAD)
		later(sb->w->base, free_cb, sb);
}

/* ---- taking the container away */

/* The container is gone (rc 0), or could not be removed. */
static void
gone(struct sandbox *sb, int rc, const char *text)
{
	if (rc == 0)
		linkdirs_remove(sb->w->links, &sb->uuid);
	if (rc != 0 && sb->farewell != SANDBOX_SAY_REMOVED)
		log_warn(
		    "sandbox %s: left to the next sweep: %s", sb->name, text);
	if (sb->farewell == SANDBOX_SAY_LOST)
		report_lost(sb->w->front, sb->id, sb->why);
	else if (sb->farewell == SANDBOX_SAY_REMOVED)
		report_removed(sb->w->front, sb->id, rc, text);
	sandbox_die(sb);
}

static void
removed_cb(int rc, const struct err *why, void *arg)
{
	struct sandbox *sb = arg;

	gone(sb, rc, rc == 0 ? "" : why->msg);
	sandbox_answered(sb);
}

static void
remove_container(struct sandbox *sb)
{
	struct backend *b = sb->w->backend;

	sb->awaited++;
	b->ops->remove(b, sb->container_id, removed_cb, sb);
}

/* One that we never had: only what bears its uuid is its own. */
static void
found_cb(
    int rc, const struct backend_container *c, const struct err *why, void *arg)
{
	struct sandbox *sb = arg;

	if (rc == 0 && c->is_ours && uuid_is_equal(&c->sandbox, &sb->uuid)) {
		memcpy(sb->container_id, c->id, sizeof(sb->container_id));
		remove_container(sb);
	} else if (rc == 0 || rc == ERR_NOTFOUND) {
		gone(sb, 0, "");
	} else {
		gone(sb, rc, why->msg);
	}
	sandbox_answered(sb);
}

static void
remove_by_name(struct sandbox *sb)
{
	struct backend *b = sb->w->backend;

	sb->awaited++;
	b->ops->inspect(b, sb->name, found_cb, sb);
}

/* Runs have ended and the front was told, or will be by gone. */
static void
close_sandbox(struct sandbox *sb)
{
	enum sandbox_state was = sb->state;
	struct backend *b = sb->w->backend;

	sb->state = SANDBOX_CLOSING;
	(void)event_del(sb->timer);
	close_link(sb);
	if (was == SANDBOX_CREATING && sb->open != NULL)
		b->ops->abandon(b, sb->open); /* sandbox_opened_late */
	else if (was == SANDBOX_CREATING)
		gone(sb, 0, "");
	else if (was == SANDBOX_LOOKING)
		remove_by_name(sb);
	else
		remove_container(sb);
}

void
sandbox_opened_late(struct sandbox *sb)
{
	if (sb->container_id[0] != '\0')
		remove_container(sb);
	else
		gone(sb, 0, "");
}

/* ---- why */

void
sandbox_fail(struct sandbox *sb, int code, const char *text)
{
	log_warn("sandbox %s: %s", sb->name, text);
	report_failed(sb->w->front, sb->id, code, text);
	sandbox_runs_end(sb, RUNLOG_START_FAILED, text);
	leave_map(sb);
	sb->farewell = SANDBOX_SAY_NOTHING;
	sb->open = NULL; /* it came to its end, or never began */
	close_sandbox(sb);
}

void
sandbox_lose(struct sandbox *sb, const char *why)
{
	char text[ERR_TEXT_MAX + 32];

	(void)snprintf(sb->why, sizeof(sb->why), "%s", why);
	(void)snprintf(text, sizeof(text), "the sandbox was lost: %s", why);
	log_info("sandbox %s is lost: %s", sb->name, why);
	sandbox_runs_end(sb, RUNLOG_LOST, text);
	if (sb->told_ready) {
		report_lost(sb->w->front, sb->id, why);
		leave_map(sb);
		sb->farewell = SANDBOX_SAY_NOTHING;
	} else {
		/* The front may make it anew under the same uuid: only when
		 * nothing of the old one is left. */
		sb->farewell = SANDBOX_SAY_LOST;
	}
	close_sandbox(sb);
}

void
sandbox_lose_container(struct sandbox *sb, const struct backend_container *c)
{
	char why[64];

	if (c->removing)
		(void)snprintf(
		    why, sizeof(why), "its container was removed from outside");
	else if (c->oom_killed)
		(void)snprintf(why, sizeof(why), "out of memory");
	else
		(void)snprintf(
		    why, sizeof(why), "exited with status %d", c->exit_code);
	sandbox_lose(sb, why);
}

/* ---- SANDBOX_REMOVE */

static void
never_cb(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)arg;
}

static struct sandbox *
bare_sandbox(
    struct worker *w, uint64_t id, const struct uuid *uuid, const char *name)
{
	struct sandbox *sb = xcalloc(1, sizeof(*sb));

	sb->w = w;
	sb->id = id;
	sb->uuid = *uuid;
	sb->name = xstrdup(name);
	sb->timer = event_new(w->base, -1, 0, never_cb, NULL);
	if (sb->timer == NULL)
		fatal(71, "no memory for a timer");
	sandbox_runs_init(sb);
	sb->state = SANDBOX_LOOKING;
	return sb;
}

void
sandbox_remove(
    struct worker *w, uint64_t id, const struct uuid *uuid, const char *name)
{
	struct sandbox *sb = idmap_get(&w->sandboxes, id);

	if (sb == NULL || !uuid_is_equal(&sb->uuid, uuid))
		sb = bare_sandbox(w, id, uuid, name);
	sb->farewell = SANDBOX_SAY_REMOVED;
	if (sb->state == SANDBOX_CLOSING)
		return; /* said when it is gone */
	sandbox_runs_end(sb, RUNLOG_LOST, "the sandbox was removed");
	close_sandbox(sb);
}
