#include "worker/worker.h"

#include <stdio.h>

#include "common/msg/msg_gen.h"
#include "common/child.h"
#include "common/conf.h"
#include "common/log.h"
#include "worker/sweep.h"

/* That the front asks for at a time, for each worker there is (ENGINE_PLACES);
 * where the others are away, of one worker. */
#define FRONT_OPENINGS 8

/* ---- state */

void
worker_tell_state(struct worker *w)
{
	char text[ERR_TEXT_MAX + 200];

	if (!w->engine_known)
		return;
	(void)snprintf(text, sizeof(text), "%s%s%s", w->engine_detail,
	    w->engine_detail[0] != '\0' && w->disk_waits > 0 ? "; " : "",
	    w->disk_waits > 0 ? w->disk_detail : "");
	if (w->engine_said && w->engine_up)
		msg_send_engine_is(w->front,
		    &(struct msg_engine_is){.name = w->engine_about.name,
			.version = w->engine_about.version,
			.api = w->engine_about.api,
			.runtime = w->engine_about.runtime});
	msg_send_worker_state(w->front,
	    &(struct msg_worker_state){
		.engine_up = w->engine_up, .detail = text, .lack = w->lack});
}

static void
on_state(bool up, const char *detail, void *arg)
{
	struct worker *w = arg;

	w->engine_known = true;
	w->engine_up = up;
	(void)snprintf(
	    w->engine_detail, sizeof(w->engine_detail), "%s", detail);
	worker_tell_state(w);
	if (up)
		boxes_look(w->boxes);
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
	worker_tell_state(w);
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

	if (full)
		w->disk_waits++;
	else
		w->disk_waits--;
	if (full)
		(void)snprintf(
		    w->disk_detail, sizeof(w->disk_detail), "%s", text);
	/* The first to wait and the last: not each in between. */
	if ((full && w->disk_waits == 1) || w->disk_waits == 0)
		worker_tell_state(w);
}

/* ---- counts */

/* Work was finished, work began or ended. */
static void
count(struct worker *w, int done, int active)
{
	w->done += (uint32_t)done;
	w->active += (uint32_t)active;
	if (w->child != NULL)
		child_counts(w->child, w->done, w->active);
}

static void
on_begin(void *arg)
{
	count(arg, 0, 1);
}

static void
on_over(void *arg)
{
	count(arg, 1, -1);
}

static void
on_ready(void *arg)
{
	count(arg, 1, 0);
}

static void
on_full(void *arg)
{
	struct worker *w = arg;

	boxes_pause(w->boxes);
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
	    .on_begin = on_begin,
	    .on_over = on_over,
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
	    .on_ready = on_ready,
	    .on_full = on_full,
	    .arg = w};
	w->boxes = boxes_new(&w->box_host);
	return 0;
}

void
worker_clear(struct worker *w)
{
	sweep_free(w);
	boxes_free(w->boxes);
	policy_clear(&w->policy);
}
