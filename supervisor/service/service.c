#include "supervisor/service/internal.h"

#include <stdio.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/xmalloc.h"
#include "supervisor/service/args.h"
#include "supervisor/service/tools.h"

#define TICK_MS 200
#define SWEEP_FIRST_MS 10000
#define SWEEP_EVERY_MS 30000
#define TRIM_EVERY 100
#define SWEEP_UUIDS 2000 /* in one message */

const double service_histogram_bounds[11] = {
    0.001, 0.0025, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 30, 120};

/* ---- counting */

void
service_count_command(
    struct service *s, enum command_status status, int64_t duration_ms)
{
	struct service_histogram *h = &s->stats.command_seconds;
	double seconds = (double)(duration_ms < 0 ? 0 : duration_ms) / 1000;
	size_t i = 0;

	if (status == COMMAND_COMPLETED)
		s->stats.commands_completed++;
	else if (status == COMMAND_TIMED_OUT)
		s->stats.commands_timed_out++;
	else
		s->stats.commands_failed++;
	while (i < ARRAY_LEN(service_histogram_bounds) &&
	    seconds > service_histogram_bounds[i])
		i++;
	h->bucket[i]++;
	h->count++;
	h->sum += seconds;
}

void
service_stats(const struct service *s, struct service_stats *out)
{
	const struct sandbox *sb;

	*out = s->stats;
	out->active_runs = s->nruns;
	out->active_sandboxes = 0;
	TAILQ_FOREACH (sb, &s->sandboxes, link)
		if (sb->state <= SANDBOX_READY)
			out->active_sandboxes++;
	out->workers_total = s->npeers;
	out->workers_ready = 0;
	for (uint32_t i = 0; i < s->npeers; i++)
		if (s->peers[i].chan != NULL && s->peers[i].engine_up)
			out->workers_ready++;
}

bool
service_is_ready(const struct service *s, char *text, size_t size)
{
	struct err e;

	if (s->draining) {
		(void)snprintf(text, size, "shutting down");
		return false;
	}
	for (uint32_t i = 0; i < s->npeers; i++) {
		if (!s->peers[i].engine_known && s->peers[i].chan != NULL) {
			(void)snprintf(
			    text, size, "worker %u looks for the engine", i);
			return false;
		}
		if (peer_check(&s->peers[i], &e) != 0) {
			(void)snprintf(text, size, "%s", e.msg);
			return false;
		}
	}
	(void)snprintf(text, size, "ready");
	return true;
}

/* ---- care */

static void
sweep_flush(struct ipc_chan *chan, struct buf *uuids)
{
	msg_send_sweep(chan,
	    &(struct msg_sweep){.uuids = {buf_data(uuids), buf_len(uuids)}});
	buf_consume(uuids, buf_len(uuids));
}

/* Tell one worker what should exist; it removes what should not. */
static void
service_sweep(struct service *s)
{
	const struct sandbox *sb;
	struct ipc_chan *chan = NULL;
	struct buf uuids = {0};

	for (uint32_t i = 0; i < s->npeers && chan == NULL; i++)
		if (s->peers[i].engine_up)
			chan = s->peers[i].chan;
	if (chan == NULL)
		return;
	TAILQ_FOREACH (sb, &s->sandboxes, link) {
		if (sb->state == SANDBOX_DEAD)
			continue;
		if (buf_append(&uuids, sb->row.uuid.b, 16) != 0)
			break;
		if (buf_len(&uuids) == SWEEP_UUIDS * sizeof(struct uuid))
			sweep_flush(chan, &uuids);
	}
	sweep_flush(chan, &uuids);
	buf_clear(&uuids);
	msg_send_sweep_end(
	    chan, &(struct msg_sweep_end){.asof_wall_ms = clock_wall_ms()});
}

static void
tick_cb(evutil_socket_t fd, short what, void *arg)
{
	struct service *s = arg;
	uint64_t now = clock_mono_ms();

	(void)fd;
	(void)what;
	if (now >= s->next_reap_ms) {
		sandbox_reap(s, clock_wall_ms(), now);
		s->next_reap_ms =
		    now + (uint64_t)conf_int(s->conf, CONF_REAPER_INTERVAL_MS);
	}
	if (now >= s->next_sweep_ms) {
		service_sweep(s);
		s->next_sweep_ms = now + SWEEP_EVERY_MS;
	}
	if (s->ended_since_trim >= TRIM_EVERY) {
		s->ended_since_trim = 0;
		store_trim(s->store, STORE_TENANT_DEFAULT,
		    (uint64_t)conf_int(s->conf, CONF_MAX_RUNS), NULL, NULL);
	}
}

/* ---- life */

struct service *
service_new(struct event_base *base, struct conf *conf, struct store *store)
{
	const struct timeval tick = {0, TICK_MS * 1000};
	struct service *s = xcalloc(1, sizeof(*s));

	s->base = base;
	s->conf = conf;
	s->store = store;
	TAILQ_INIT(&s->sandboxes);
	TAILQ_INIT(&s->runs);
	s->npeers = (uint32_t)conf_int(conf, CONF_WORKERS);
	for (uint32_t i = 0; i < s->npeers; i++) {
		s->peers[i].service = s;
		s->peers[i].index = i;
	}
	s->next_sweep_ms = clock_mono_ms() + SWEEP_FIRST_MS;
	s->tick = event_new(base, -1, EV_PERSIST, tick_cb, s);
	if (s->tick == NULL)
		fatal(71, "out of memory");
	(void)event_add(s->tick, &tick);
	return s;
}

void
service_free(struct service *s)
{
	if (s == NULL)
		return;
	event_free(s->tick);
	run_free_all(s);
	sandbox_free_all(s);
	for (uint32_t i = 0; i < s->npeers; i++)
		ipc_chan_free(s->peers[i].chan);
	languages_free(s);
	denylist_free(s->denylist);
	free(s);
}

int
service_recover(struct service *s, struct err *e)
{
	struct store_snapshot snap;
	struct store_counts counts;
	struct denylist *deny;
	struct sandbox *sb;
	struct run *r;

	if (languages_load(s, e) != 0 || denylist_new(s->conf, &deny, e) != 0)
		return e->code;
	s->denylist = deny;
	if (store_counts(s->store, &counts, e) != 0 ||
	    store_snapshot(s->store, &snap, e) != 0)
		return e->code;
	s->stats.runs_completed = counts.runs_completed;
	s->stats.runs_failed = counts.runs_failed;
	s->stats.runs_canceled = counts.runs_canceled;
	s->stats.commands_completed = counts.commands_completed;
	s->stats.commands_failed = counts.commands_failed;
	s->stats.commands_timed_out = counts.commands_timed_out;
	s->next_sandbox = snap.next_sandbox;
	s->next_run = snap.next_run;
	for (size_t i = 0; i < snap.nsandboxes; i++)
		(void)sandbox_restore(s, &snap.sandboxes[i]);
	for (size_t i = 0; i < snap.nruns; i++) {
		sb = sandbox_by_id(s, snap.runs[i].sandbox);
		if (sb != NULL && sb->state >= SANDBOX_REMOVING)
			sb = NULL;
		r = run_restore(s, sb, &snap.runs[i]);
		if (sb == NULL)
			run_end_here(r, RUNLOG_LOST, ERR_LOST,
			    "the sandbox was lost while the server was down");
	}
	if (snap.nsandboxes > 0 || snap.nruns > 0)
		log_info("recovering %zu sandboxes, %zu unfinished runs",
		    snap.nsandboxes, snap.nruns);
	store_snapshot_clear(&snap);
	return 0;
}

void
service_reload(struct service *s)
{
	struct denylist *deny;
	struct err e;

	if (denylist_new(s->conf, &deny, &e) != 0) {
		log_warn("%s: the old patterns stay", e.msg);
		return;
	}
	denylist_free(s->denylist);
	s->denylist = deny;
}

/* ---- drain */

static void
idle_check(struct service *s)
{
	void (*on_idle)(void *) = s->on_idle;

	if (!s->draining || s->callers > 0 || on_idle == NULL)
		return;
	s->on_idle = NULL;
	on_idle(s->idle_arg);
}

void
service_caller_done(struct service *s)
{
	s->callers--;
	idle_check(s);
}

void
service_drain(struct service *s, void (*on_idle)(void *), void *arg)
{
	s->draining = true;
	s->on_idle = on_idle;
	s->idle_arg = arg;
	idle_check(s);
}

/* ---- workers */

void
service_worker_attach(struct service *s, uint32_t index, int fd)
{
	if (index >= s->npeers) {
		(void)close(fd);
		return;
	}
	peer_attach(s, index, fd);
}

void
service_worker_gone(
    struct service *s, uint32_t index, uint32_t delay_ms, bool throttled)
{
	if (index >= s->npeers)
		return;
	log_warn("worker %u is gone: back in %u ms", index, delay_ms);
	peer_lost(s, &s->peers[index]);
	s->peers[index].throttled = throttled;
}
