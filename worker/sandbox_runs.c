#include "worker/sandbox_int.h"

#include <sys/stat.h>

#include <event2/event.h>

#include "common/ipc.h"
#include "common/log.h"
#include "common/xmalloc.h"

#define EXIT_MEMORY 71
/* How long the next run's artifacts wait for the front to commit the last
 * ones: until then the agent would list them again. */
#define COMMIT_MS 5000

static void copy_next(struct sandbox *sb);

/* ---- finding */

static struct run *
find_run(struct sandbox *sb, const struct uuid *uuid)
{
	struct run *r;

	if (sb->last != NULL && uuid_is_equal(&sb->last->s.uuid, uuid))
		return sb->last;
	TAILQ_FOREACH (r, &sb->runs, link)
		if (uuid_is_equal(&r->s.uuid, uuid)) {
			sb->last = r;
			return r;
		}
	return NULL;
}

static const struct peer_run *
find_known(const struct peer_hello *h, const struct uuid *uuid)
{
	for (uint32_t i = 0; h != NULL && i < h->nruns; i++)
		if (uuid_is_equal(&h->runs[i].uuid, uuid))
			return &h->runs[i];
	return NULL;
}

/* ---- artifacts, one run at a time */

static void
copy_timer(struct sandbox *sb, uint32_t ms)
{
	struct timeval tv = {
	    (time_t)(ms / 1000), (suseconds_t)(ms % 1000) * 1000};

	(void)evtimer_add(sb->copy_timer, &tv);
}

static void
copy_release(struct sandbox *sb)
{
	artifact_taken(sb->copy);
	artifact_free(sb->copy);
	sb->copy = NULL;
	sb->copy_run = NULL;
	sb->copy_ended = false;
	(void)event_del(sb->copy_timer);
	copy_next(sb);
}

static void
copy_timer_cb(evutil_socket_t fd, short what, void *arg)
{
	struct sandbox *sb = arg;

	(void)fd;
	(void)what;
	if (sb->copy_ended)
		copy_release(sb);
}

static void
copy_end_cb(struct artifact *a, void *arg)
{
	struct sandbox *sb = arg;

	sb->copy_ended = true;
	run_finish(sb->copy_run, artifact_files(a), artifact_error(a));
	/* Freed later in any case: it is in use up the stack. */
	copy_timer(sb, artifact_files(a) > 0 ? COMMIT_MS : 0);
}

static void
copy_next(struct sandbox *sb)
{
	struct run *r = TAILQ_FIRST(&sb->to_copy);

	if (sb->copy != NULL || r == NULL)
		return;
	TAILQ_REMOVE(&sb->to_copy, r, copy_link);
	r->copying = false;
	sb->copy_run = r;
	sb->copy = artifact_new(&sb->copy_host, r->s.id);
	if (sb->state == SANDBOX_UP)
		artifact_attach(sb->copy, sb->peer);
}

static void
complete_cb(struct run *r, void *arg)
{
	struct sandbox *sb = arg;

	if (!run_has_artifacts(r)) {
		run_finish(r, 0, "");
		return;
	}
	r->copying = true;
	TAILQ_INSERT_TAIL(&sb->to_copy, r, copy_link);
	copy_next(sb);
}

void
sandbox_artifact_fd(struct run *r, uint32_t file, int fd, const char *refusal)
{
	struct sandbox *sb = r->arg;

	if (sb->copy_run == r)
		artifact_on_fd(sb->copy, file, fd, refusal);
	else if (fd >= 0)
		(void)close(fd);
}

/* ---- life */

void
sandbox_runs_init(struct sandbox *sb)
{
	TAILQ_INIT(&sb->runs);
	TAILQ_INIT(&sb->to_copy);
	sb->next_request = 1;
	sb->copy_host.base = sb->w->base;
	sb->copy_host.front = &sb->w->front;
	sb->copy_host.limits = &sb->w->limits;
	sb->copy_host.next_request = &sb->next_request;
	sb->copy_host.time_ms = ARTIFACT_TIME_MS;
	sb->copy_host.on_end = copy_end_cb;
	sb->copy_host.arg = sb;
	sb->copy_timer = evtimer_new(sb->w->base, copy_timer_cb, sb);
	if (sb->copy_timer == NULL)
		fatal(EXIT_MEMORY, "no memory for a timer");
}

static void
drop_run(struct sandbox *sb, struct run *r)
{
	if (r->copying)
		TAILQ_REMOVE(&sb->to_copy, r, copy_link);
	if (sb->copy_run == r) {
		if (!sb->copy_ended)
			artifact_stop(sb->copy, "the run was dropped");
		copy_release(sb);
	}
	if (sb->last == r)
		sb->last = NULL;
	TAILQ_REMOVE(&sb->runs, r, link);
	sb->nruns--;
	idmap_del(&sb->w->runs, r->s.id);
	run_free(r);
}

void
sandbox_runs_clear(struct sandbox *sb)
{
	struct run *r;

	while ((r = TAILQ_FIRST(&sb->to_copy)) != NULL) {
		TAILQ_REMOVE(&sb->to_copy, r, copy_link);
		r->copying = false;
	}
	while ((r = TAILQ_FIRST(&sb->runs)) != NULL)
		drop_run(sb, r);
}

void
sandbox_runs_end(
    struct sandbox *sb, enum runlog_reason reason, const char *text)
{
	struct run *r;

	if (sb->copy != NULL && !sb->copy_ended)
		artifact_stop(
		    sb->copy, "the sandbox was gone before all was copied");
	TAILQ_FOREACH (r, &sb->runs, link)
		run_end(r,
		    r->cancel != 0 ? (enum runlog_reason)r->cancel : reason,
		    text);
}

/* ---- the link comes and goes */

/*
 * A run that nobody wants any more: stopped, and its log taken until it is at
 * its end, or the agent would keep it for ever (a live run cannot be
 * forgotten).  sandbox_on_run_log does the rest.
 */
static void
discard(struct sandbox *sb, const struct peer_run *known)
{
	if (known->ended) {
		peer_run_forget(sb->peer, &known->uuid);
		return;
	}
	peer_run_start(sb->peer, &known->uuid, known->from, NULL, 0);
	peer_run_cancel(sb->peer, &known->uuid, RUNLOG_CANCELED);
}

void
sandbox_drop_unknown(struct sandbox *sb)
{
	if (!sb->settled || sb->state != SANDBOX_UP)
		return;
	for (uint32_t i = 0; i < sb->hello->nruns; i++) {
		const struct peer_run *known = &sb->hello->runs[i];

		if (find_run(sb, &known->uuid) == NULL)
			discard(sb, known);
	}
}

static void
attach(struct sandbox *sb, struct run *r)
{
	const struct peer_run *known = find_known(sb->hello, &r->s.uuid);

	run_attach(r, sb->peer, known);
	if (known != NULL && r->state == RUN_OVER)
		discard(sb, known);
}

void
sandbox_runs_attach(struct sandbox *sb, const struct peer_hello *h)
{
	struct run *r;

	(void)h;
	TAILQ_FOREACH (r, &sb->runs, link)
		attach(sb, r);
	if (sb->copy != NULL)
		artifact_attach(sb->copy, sb->peer);
	sandbox_drop_unknown(sb);
}

void
sandbox_runs_detach(struct sandbox *sb)
{
	struct run *r;

	TAILQ_FOREACH (r, &sb->runs, link)
		run_detach(r);
	if (sb->copy != NULL)
		artifact_detach(sb->copy);
}

void
sandbox_settled(struct sandbox *sb)
{
	sb->settled = true;
	sandbox_drop_unknown(sb);
}

/* ---- from the front */

static void
refuse(struct worker *w, struct run_start *s, enum runlog_reason reason,
    const char *text)
{
	struct report_end end = {
	    .reason = reason, .text = text, .artifacts_error = ""};
	struct stat st;

	if (fstat(s->spool, &st) == 0)
		end.length = (uint64_t)st.st_size;
	(void)close(s->spool);
	free(s->spec);
	report_ended(w->front, s->id, &end);
}

int
sandbox_start_run(
    struct worker *w, struct sandbox *sb, struct run_start *s, struct err *e)
{
	struct run *r;

	if (sb == NULL || sb->state >= SANDBOX_CLOSING) {
		refuse(w, s, RUNLOG_LOST, "the sandbox is gone");
		return 0;
	}
	if (sb->nruns >= SANDBOX_RUNS_MAX) {
		refuse(
		    w, s, RUNLOG_START_FAILED, "too many runs in this sandbox");
		return 0;
	}
	if (run_new(&w->run_host, s, complete_cb, sb, &r, e) != 0)
		return ERR_PROTO;
	TAILQ_INSERT_TAIL(&sb->runs, r, link);
	sb->nruns++;
	idmap_put(&w->runs, r->s.id, r);
	worker_count(w, 0, 1);
	run_begin(r);
	if (sb->state == SANDBOX_UP)
		attach(sb, r);
	return 0;
}

void
sandbox_cancel_run(struct run *r, enum runlog_reason reason)
{
	const struct sandbox *sb = r->arg;

	/* Before its sandbox ever was, nothing of it can have begun. */
	if (sb->mode == SANDBOX_CREATE && !sb->told_ready)
		run_end(r, reason, "");
	else
		run_cancel(r, reason);
}

void
sandbox_forget_run(struct worker *w, struct run *r)
{
	struct sandbox *sb = r->arg;

	(void)w;
	if (r->state != RUN_OVER) /* the front gave it up by itself */
		run_end(r, RUNLOG_CANCELED, "");
	if (sb->state == SANDBOX_UP)
		peer_run_forget(sb->peer, &r->s.uuid);
	drop_run(sb, r);
}

/* ---- from the agent */

int
sandbox_on_run_known(const struct uuid *uuid, bool fresh, uint64_t length,
    void *arg, struct err *e)
{
	struct run *r = find_run(arg, uuid);

	(void)length;
	return r == NULL ? 0 : run_on_known(r, fresh, e);
}

int
sandbox_on_run_refused(
    const struct uuid *uuid, const char *why, void *arg, struct err *e)
{
	struct run *r = find_run(arg, uuid);

	(void)e;
	if (r != NULL)
		run_on_refused(r, why);
	return 0;
}

int
sandbox_on_run_log(const struct uuid *uuid, uint64_t offset, const uint8_t *p,
    size_t n, void *arg, struct err *e)
{
	struct sandbox *sb = arg;
	struct run *r = find_run(sb, uuid);

	(void)e;
	if (r != NULL) {
		run_on_log(r, offset, p, n);
		return 0;
	}
	/* Nobody's: taken, so that it comes to its end, and forgotten. */
	peer_run_ack(sb->peer, uuid, offset + n);
	peer_run_forget(sb->peer, uuid);
	return 0;
}

int
sandbox_on_file_entry(
    uint32_t request, const struct peer_entry *f, void *arg, struct err *e)
{
	struct sandbox *sb = arg;

	return sb->copy == NULL ? 0 :
				  artifact_on_entry(sb->copy, request, f, e);
}

int
sandbox_on_file_data(uint32_t request, uint64_t offset, const uint8_t *p,
    size_t n, void *arg, struct err *e)
{
	struct sandbox *sb = arg;

	return sb->copy == NULL ?
	    0 :
	    artifact_on_data(sb->copy, request, offset, p, n, e);
}

int
sandbox_on_file_end(
    uint32_t request, int32_t error, uint64_t size, void *arg, struct err *e)
{
	struct sandbox *sb = arg;

	(void)size;
	return sb->copy == NULL ? 0 :
				  artifact_on_end(sb->copy, request, error, e);
}

void
sandbox_on_turn(void *arg)
{
	struct sandbox *sb = arg;
	struct ipc_chan *front = sb->w->front;
	struct run *r;

	/* A short run is told in one packet. */
	if (front != NULL)
		ipc_cork(front);
	TAILQ_FOREACH (r, &sb->runs, link)
		run_flush(r);
	if (front != NULL)
		ipc_uncork(front);
	/* What agents say becomes messages to the front: no more of it than
	 * the front takes. */
	if (front != NULL && ipc_chan_is_full(front))
		worker_pause(sb->w);
}

void
sandbox_on_drain(void *arg)
{
	struct sandbox *sb = arg;
	struct run *r;

	TAILQ_FOREACH (r, &sb->runs, link)
		run_send(r);
}
