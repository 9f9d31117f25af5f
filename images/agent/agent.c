/*
 * agent.c - what the agent is made of, and its one loop
 *
 * agent_down is the table of all that a worker may say; a channel kind is its
 * OPEN_ frame's row there and a file of its own.  README.md is the map.
 */
#include "images/agent/agent.h"

#include <limits.h>
#include <stdio.h>

#include "common/clock.h"
#include "common/exit.h"
#include "images/agent/answers.h"
#include "images/agent/oom.h"
#include "images/agent/say.h"

#ifndef PACKAGE_VERSION
#define PACKAGE_VERSION "unreleased"
#endif

/* ---- the kinds of channels */

static int
on_open_sequence(void *arg, const struct frame_open_sequence *m, struct err *e)
{
	struct agent *a = arg;

	return seqs_on_open(&a->seqs, m, e);
}

static int
on_open_process(void *arg, const struct frame_open_process *m, struct err *e)
{
	struct agent *a = arg;

	return process_on_open(&a->processes, m, e);
}

static int
on_open_read(void *arg, const struct frame_open_read *m, struct err *e)
{
	struct agent *a = arg;

	return file_read_on_open(&a->files, m, e);
}

static int
on_open_write(void *arg, const struct frame_open_write *m, struct err *e)
{
	struct agent *a = arg;

	return file_write_on_open(&a->files, m, e);
}

static int
on_open_walk(void *arg, const struct frame_open_walk *m, struct err *e)
{
	struct agent *a = arg;

	return walk_on_open(&a->files, m, e);
}

/* ---- what is said on channels, and beside them */

static int
on_data(void *arg, const struct frame_data *m, struct err *e)
{
	struct agent *a = arg;

	return mux_on_data(&a->mux, m, e);
}

static int
on_credit(void *arg, const struct frame_credit *m, struct err *e)
{
	struct agent *a = arg;

	return mux_on_credit(&a->mux, m, e);
}

static int
on_cancel(void *arg, const struct frame_cancel *m, struct err *e)
{
	struct agent *a = arg;

	return mux_on_cancel(&a->mux, m, e);
}

static int
on_stream_end(void *arg, const struct frame_stream_end *m, struct err *e)
{
	struct agent *a = arg;

	return mux_on_stream_end(&a->mux, m, e);
}

static int
on_close(void *arg, const struct frame_close *m, struct err *e)
{
	struct agent *a = arg;

	return mux_on_close(&a->mux, m, e);
}

static int
on_taken(void *arg, const struct frame_taken *m, struct err *e)
{
	struct agent *a = arg;

	return files_on_taken(&a->files, m, e);
}

static int
on_taken_stored(void *arg, const struct frame_taken_stored *m, struct err *e)
{
	struct agent *a = arg;

	return files_on_stored(&a->files, m, e);
}

static int
on_lease(void *arg, const struct frame_lease *m, struct err *e)
{
	struct agent *a = arg;

	(void)e;
	lease_set(&a->lease, m->ms);
	return 0;
}

static int
on_open_ask(void *arg, const struct frame_open_ask *m, struct err *e)
{
	struct agent *a = arg;

	return answers_on_open(&a->mux, &a->procs.remnants, m, e);
}

static int
on_ping(void *arg, const struct frame_ping *m, struct err *e)
{
	struct agent *a = arg;
	const struct frame_pong pong = {
	    .token = m->token, .left = remnants_count(&a->procs.remnants)};

	(void)e;
	uplink_put(&a->uplink, frame_put_pong(&a->uplink.out, &pong));
	uplink_urgent(&a->uplink);
	return 0;
}

/* All frames but WELCOME and KNOCK, the first ones, which uplink and bridges
 * take. */
static const struct frame_down agent_down = {
    .on_open_sequence = on_open_sequence,
    .on_open_process = on_open_process,
    .on_open_read = on_open_read,
    .on_open_write = on_open_write,
    .on_open_walk = on_open_walk,
    .on_open_ask = on_open_ask,
    .on_data = on_data,
    .on_credit = on_credit,
    .on_cancel = on_cancel,
    .on_stream_end = on_stream_end,
    .on_close = on_close,
    .on_taken = on_taken,
    .on_taken_stored = on_taken_stored,
    .on_ping = on_ping,
    .on_lease = on_lease,
};

static int
agent_on_frame(struct frame *f, void *arg, struct err *e)
{
	return frame_dispatch_down(&agent_down, f, arg, e);
}

/* ---- what it says of itself */

static void
put_said(struct agent *a, const struct frame_said *m)
{
	uplink_put(&a->uplink, frame_put_said(&a->uplink.out, m));
}

/* Leaves in the hello's write.  A reconnect is a debug line only. */
static void
tell_started(struct agent *a)
{
	char text[FRAME_SAID_TEXT_MAX + 1];
	const struct frame_said m = {
	    .level = a->was_up ? FRAME_SAID_LEVEL_DEBUG : FRAME_SAID_LEVEL_INFO,
	    .what = FRAME_SAID_WHAT_STARTED,
	    .text = text};

	(void)snprintf(text, sizeof(text), "version %s, link %d",
	    PACKAGE_VERSION, FRAME_VERSION);
	put_said(a, &m);
}

/* Lines are sent when a worker has answered: it may refuse the link before. */
static void
tell_lines(struct agent *a)
{
	struct frame_said m;

	if (!uplink_is_up(&a->uplink))
		return;
	a->was_up = true;
	while (say_is_waiting() && uplink_has_room(&a->uplink)) {
		say_take(&m);
		put_said(a, &m);
	}
}

/* OOM kills that no command has logged: they hit what was left behind. */
static void
watch_memory(void)
{
	uint64_t killed = oom_take_news();

	if (killed > 0)
		say_line(FRAME_SAID_LEVEL_WARN, FRAME_SAID_WHAT_OUT_OF_MEMORY,
		    NULL, "%llu processes since it was last looked at",
		    (unsigned long long)killed);
}

/* ---- the link comes and goes */

static void
agent_on_open(void *arg)
{
	struct agent *a = arg;
	const struct frame_hello hello = {.version = FRAME_VERSION,
	    .boot = a->boot,
	    .runs = seqs_kept(&a->seqs)};
	const struct frame_hello_end end = {
	    .left = remnants_count(&a->procs.remnants)};

	uplink_put(&a->uplink, frame_put_hello(&a->uplink.out, &hello));
	seqs_hello(&a->seqs);
	uplink_put(&a->uplink, frame_put_hello_end(&a->uplink.out, &end));
	tell_started(a);
}

static void
agent_on_lost(void *arg)
{
	struct agent *a = arg;

	mux_on_lost(&a->mux);
}

static const struct uplink_ops agent_uplink_ops = {
    agent_on_open, agent_on_frame, agent_on_lost};

static void
agent_on_bridge(int fd, void *arg)
{
	struct agent *a = arg;

	uplink_take(&a->uplink, fd);
}

/* ---- life */

/* The link's way, in or out. */
static int
agent_open_way(struct agent *a, const struct terms *t, struct err *e)
{
	uplink_init(&a->uplink, &a->loop, t->socket, &agent_uplink_ops, a);
	bridges_init(&a->bridges, &a->loop, agent_on_bridge, a);
	if (!t->listens)
		return 0;
	uplink_await(&a->uplink, t->quiet_ms);
	return bridges_open(&a->bridges, e);
}

int
agent_init(struct agent *a, const struct terms *t, struct err *e)
{
	uuid_random(&a->boot);
	if (loop_init(&a->loop, e) != 0)
		return e->code;
	if (agent_open_way(a, t, e) != 0)
		return e->code;
	mux_init(&a->mux, &a->uplink);
	if (procs_init(&a->procs, &a->loop, e) != 0)
		return e->code;
	seqs_init(&a->seqs, &a->mux, &a->procs);
	processes_init(&a->processes, &a->mux, &a->procs);
	files_init(&a->files, &a->mux);
	layer_init(&a->layer, "/", t->disk);
	lease_init(&a->lease);
	if (reap_init(&a->reaper, &a->loop, &a->procs, e) != 0)
		return e->code;
	/* A first keeper now, while PID 1 is small and holds nothing of a run.
	 */
	keepers_prepare(&a->procs.keepers);
	return 0;
}

/* In ms, how long the loop may wait for events; -1: for ever. */
static int
agent_timeout(const struct agent *a, bool more_files)
{
	uint64_t next = procs_next_ms(&a->procs), now;
	int link = uplink_next_ms(&a->uplink);
	int ms = -1;

	if (seqs_is_busy(&a->seqs) || processes_is_busy(&a->processes) ||
	    (more_files && uplink_has_room(&a->uplink)))
		return 0;
	if (remnants_next_ms(&a->procs.remnants) < next)
		next = remnants_next_ms(&a->procs.remnants);
	if (reap_next_ms(&a->reaper) < next)
		next = reap_next_ms(&a->reaper);
	if (layer_next_ms(&a->layer) < next)
		next = layer_next_ms(&a->layer);
	if (lease_next_ms(&a->lease) < next)
		next = lease_next_ms(&a->lease);
	if (bridges_next_ms(&a->bridges) < next)
		next = bridges_next_ms(&a->bridges);
	if (next != UINT64_MAX) {
		now = clock_mono_ms();
		next = next > now ? next - now : 0;
		ms = next < INT_MAX ? (int)next : INT_MAX;
	}
	if (link >= 0 && (ms == -1 || link < ms))
		ms = link;
	return ms;
}

/* False: the sandbox goes. */
static bool
watch_layer(struct agent *a, uint64_t now_ms)
{
	bool writes =
	    a->procs.nlive > 0 || !remnants_is_empty(&a->procs.remnants);

	switch (layer_tick(&a->layer, now_ms, writes)) {
	case LAYER_FINE:
		return true;
	case LAYER_FULL:
		say_line(FRAME_SAID_LEVEL_WARN, FRAME_SAID_WHAT_DISK_FULL, NULL,
		    "all that runs is ended: %s", LAYER_FULL_TEXT);
		seqs_cancel_all(&a->seqs, RUNLOG_DISK_FULL, LAYER_FULL_TEXT);
		processes_cancel_all(&a->processes, RUNLOG_DISK_FULL);
		remnants_kill_all(&a->procs.remnants, LEFTLIST_DISK_FULL);
		return true;
	case LAYER_LOST:
		say_line(FRAME_SAID_LEVEL_WARN, FRAME_SAID_WHAT_DISK_FULL, NULL,
		    "far over its limits: the sandbox ends");
		break;
	}
	return false;
}

static bool
watch_lease(struct agent *a, uint64_t now_ms)
{
	return lease_tick(&a->lease, now_ms,
	    uplink_is_up(&a->uplink) || a->procs.nlive > 0 ? LEASE_HELD :
							     LEASE_RUNS);
}

int
agent_run(struct agent *a)
{
	bool more_files = false, fits = true, wanted = true;

	while (!a->reaper.quit && fits && wanted) {
		uint64_t now;

		loop_turn(&a->loop, agent_timeout(a, more_files));
		now = clock_mono_ms();
		reap_tick(&a->reaper, now);
		procs_tick(&a->procs, now);
		remnants_tick(&a->procs.remnants, now);
		seqs_tick(&a->seqs);
		processes_tick(&a->processes);
		fits = watch_layer(a, now);
		wanted = watch_lease(a, now);
		watch_memory();
		bridges_tick(&a->bridges, now);
		uplink_tick(&a->uplink, now);
		more_files = files_work(&a->files);
		tell_lines(a);
		uplink_flush(&a->uplink);
	}
	reap_shutdown(&a->reaper);
	if (!wanted)
		return EXIT_ABANDONED;
	return fits ? 0 : EXIT_SPACE;
}
