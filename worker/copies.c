#include "worker/copies.h"

#include "common/clock.h"
#include "common/metric.h"
#include "common/timer.h"
#include "common/xmalloc.h"
#include "worker/copy_clock.h"

TAILQ_HEAD(copy_queue, copy_job);

struct copies {
	struct copy_host host;
	struct copy_clock clock; /* since somebody waits */
	struct copy_queue queue;
	struct peer *peer;    /* NULL: away */
	struct copy *copy;    /* under way, or ended and kept; NULL: none */
	struct copy_job *job; /* whose it is */
	bool ended;
	uint64_t began_us;
	struct timer *release;
};

static void
start_next(struct copies *cs)
{
	struct copy_job *job = TAILQ_FIRST(&cs->queue);

	if (cs->copy != NULL || job == NULL)
		return;
	TAILQ_REMOVE(&cs->queue, job, link);
	job->waits = false;
	cs->job = job;
	cs->ended = false;
	cs->began_us = clock_mono_us();
	cs->copy = copy_new(&cs->host, job->task);
	if (cs->peer != NULL)
		copy_attach(cs->copy, cs->peer);
}

static void
release(struct copies *cs)
{
	copy_taken(cs->copy);
	copy_free(cs->copy);
	cs->copy = NULL;
	cs->job = NULL;
	timer_stop(cs->release);
}

static void
release_cb(void *arg)
{
	struct copies *cs = arg;

	release(cs);
	start_next(cs);
}

/* What an agent did not give for one run it would not give for the next.  What
 * is left out stays in the sandbox: a later run's copy lists it. */
static void
end_waiting(struct copies *cs)
{
	struct copy_job *job;

	while ((job = TAILQ_FIRST(&cs->queue)) != NULL) {
		TAILQ_REMOVE(&cs->queue, job, link);
		job->waits = false;
		job->done(job,
		    "artifact extraction: the sandbox took too long to give "
		    "the files of an earlier run, these are left out");
	}
}

static void
end_cb(struct copy *c, void *arg)
{
	struct copies *cs = arg;

	cs->ended = true;
	(void)metric_observe(
	    FAMILY_ARTIFACT_COPY_SECONDS, 0, clock_mono_us() - cs->began_us);
	cs->job->done(cs->job, copy_error(c));
	if (copy_clock_is_late(&cs->clock))
		end_waiting(cs);
	/* Freed later in any case: it is in use up the stack. */
	timer_set_ms(cs->release, copy_files(c) > 0 ? COPIES_COMMIT_MS : 0);
}

struct copies *
copies_new(struct event_base *base, struct ipc_chan **front,
    const struct copy_limits *limits)
{
	struct copies *cs = xcalloc(1, sizeof(*cs));

	TAILQ_INIT(&cs->queue);
	cs->host = (struct copy_host){.base = base,
	    .front = front,
	    .limits = limits,
	    .time_ms = COPY_TIME_MS,
	    .clock = &cs->clock,
	    .on_end = end_cb,
	    .arg = cs};
	cs->release = timer_new(base, release_cb, cs);
	return cs;
}

void
copies_free(struct copies *cs)
{
	struct copy_job *job;

	while ((job = TAILQ_FIRST(&cs->queue)) != NULL) {
		TAILQ_REMOVE(&cs->queue, job, link);
		job->waits = false;
	}
	if (cs->copy != NULL)
		copies_drop(cs, cs->job);
	timer_free(cs->release);
	free(cs);
}

void
copies_add(struct copies *cs, struct copy_job *job)
{
	if (TAILQ_EMPTY(&cs->queue) && (cs->copy == NULL || cs->ended))
		copy_clock_init(&cs->clock, cs->host.limits->late_ms);
	job->waits = true;
	TAILQ_INSERT_TAIL(&cs->queue, job, link);
	start_next(cs);
}

void
copies_drop(struct copies *cs, struct copy_job *job)
{
	if (job->waits)
		TAILQ_REMOVE(&cs->queue, job, link);
	job->waits = false;
	if (cs->job != job)
		return;
	copies_stop(cs, "the run was dropped");
	release(cs);
	start_next(cs);
}

void
copies_stop(struct copies *cs, const char *why)
{
	if (cs->copy != NULL && !cs->ended)
		copy_stop(cs->copy, why);
}

void
copies_attach(struct copies *cs, struct peer *p)
{
	cs->peer = p;
	if (cs->copy != NULL)
		copy_attach(cs->copy, p);
}

void
copies_detach(struct copies *cs)
{
	cs->peer = NULL;
	if (cs->copy != NULL)
		copy_detach(cs->copy);
}

void
copies_on_fd(struct copies *cs, const struct copy_job *job, uint32_t file,
    int fd, const char *refusal)
{
	if (cs->job == job)
		copy_on_fd(cs->copy, file, fd, refusal);
	else if (fd >= 0)
		(void)close(fd);
}
