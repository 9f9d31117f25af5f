#include "worker/worker.h"

#include <stdio.h>

#include "common/child.h"
#include "common/conf.h"
#include "common/ipc.h"
#include "common/log.h"
#include "worker/report.h"
#include "worker/sandbox.h"
#include "worker/sweep.h"

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
	report_state(w->front, w->engine_up, text, w->runtime_ok);
}

static void
on_state(bool up, const char *detail, bool runtime_ok, void *arg)
{
	struct worker *w = arg;

	w->engine_known = true;
	w->engine_up = up;
	w->runtime_ok = runtime_ok;
	(void)snprintf(
	    w->engine_detail, sizeof(w->engine_detail), "%s", detail);
	worker_tell_state(w);
	if (up)
		sandbox_look_all(w);
}

static void
on_change(
    const char *id, enum backend_change what, int32_t exit_code, void *arg)
{
	sandbox_on_change(arg, id, what, exit_code);
}

const struct backend_watch worker_watch = {on_state, on_change};

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

void
worker_count(struct worker *w, int done, int active)
{
	w->done += (uint32_t)done;
	w->active += (uint32_t)active;
	if (w->child != NULL)
		child_counts(w->child, w->done, w->active);
}

static void
on_over(void *arg)
{
	worker_count(arg, 1, -1);
}

/* ---- flow */

void
worker_pause(struct worker *w)
{
	sandbox_set_reading(w, false);
}

void
worker_resume(struct worker *w)
{
	sandbox_set_reading(w, true);
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
	w->runtime_ok = true;
	w->run_host.base = base;
	w->run_host.front = &w->front;
	w->run_host.on_disk = on_disk;
	w->run_host.on_over = on_over;
	w->run_host.arg = w;
	return 0;
}

void
worker_clear(struct worker *w)
{
	sweep_free(w);
	idmap_clear(&w->sandboxes);
	idmap_clear(&w->runs);
	policy_clear(&w->policy);
}
