/*
 * model_world.h - an engine with containers, agents in them, and workers that
 * do what the core tells them, a random step at a time
 */
#ifndef UNIT_CORE_MODEL_WORLD_H
#define UNIT_CORE_MODEL_WORLD_H

#include "tests/unit/core/core_ground.h"

#include <sys/stat.h>

#include "tests/unit/test.h"

#define NAMES 4
#define BOXES_MAX 8192
#define RUNS_MAX 16384

enum op { /* that a worker has been asked for, and not done yet */
	OP_NONE,
	OP_CREATE,
	OP_ADOPT,
	OP_REMOVE
};

struct box { /* a container, by its sandbox's number */
	bool is_alive;
	bool is_open; /* its worker has said READY */
	bool is_settled;
	enum op op;
	int worker; /* that was told of it, -1: none */
	/* What may have ended its runs. */
	bool has_died, has_failed, is_unwanted;
};

struct work { /* a run, by its number */
	/* What the agent in box knows, and what is in the log. */
	uint64_t box;
	unsigned int begins;
	bool is_over;
	struct buf log;
	/* What the worker knows. */
	int worker; /* -1: none was told */
	int spool;
	bool is_canceled;
	/* Files that it leaves, of which the worker has offered some. */
	unsigned int nfiles, nasked;
	bool is_asking, is_copying;
	/* What the client knows. */
	bool was_canceled; /* by it */
	struct run *run;   /* a reference; NULL after the core went */
	struct uuid uuid;
	bool is_acked;
};

static struct {
	unsigned int seed;
	struct box boxes[BOXES_MAX];
	struct work works[RUNS_MAX];
	uint64_t nboxes, nworks; /* the highest number seen, and one more */
	bool is_calm;            /* nothing breaks, nobody asks for more */
	unsigned int ended, lost, canceled, failed;
	char large[RUN_ASKED_KEEP_BYTES + 1];
} m;

static const char *const names[NAMES] = {"a", "b", "c", "d"};

static unsigned int
pick(unsigned int n)
{
	return (unsigned int)rand_r(&m.seed) % n;
}

/* ---- workers: what they are told */

static struct box *
box_at(uint64_t id)
{
	assert_true(id < BOXES_MAX);
	if (id >= m.nboxes)
		m.nboxes = id + 1;
	return &m.boxes[id];
}

static struct work *
work_at(uint64_t id)
{
	assert_true(id < RUNS_MAX);
	if (id >= m.nworks)
		m.nworks = id + 1;
	return &m.works[id];
}

static int
worker_of(const void *script)
{
	return (int)((const struct script *)script - g.worker);
}

static int
model_on_open(void *arg, const struct msg_sandbox_open *o, struct err *e)
{
	struct box *b = box_at(o->id);

	(void)e;
	b->op = o->mode == MSG_OPEN_MODE_CREATE ? OP_CREATE : OP_ADOPT;
	b->worker = worker_of(arg);
	b->is_open = false;
	b->is_settled = false;
	return 0;
}

static int
model_on_settled(void *arg, const struct msg_sandbox_settled *s, struct err *e)
{
	(void)arg;
	(void)e;
	box_at(s->id)->is_settled = true;
	return 0;
}

static int
model_on_remove(void *arg, const struct msg_sandbox_remove *r, struct err *e)
{
	struct box *b = box_at(r->id);

	(void)e;
	b->op = OP_REMOVE;
	b->worker = worker_of(arg);
	b->is_open = false;
	return 0;
}

static void
work_drop(struct work *w)
{
	if (w->worker >= 0)
		(void)close(w->spool);
	w->worker = -1;
	w->nasked = 0;
	w->is_asking = false;
	w->is_copying = false;
}

static int
model_on_start(void *arg, struct msg_run_start *s, struct err *e)
{
	struct work *w = work_at(s->id);

	(void)e;
	work_drop(w);
	w->worker = worker_of(arg);
	w->spool = msg_take_fd(&s->spool);
	if (w->begins > 0 && box_at(s->sandbox)->is_settled)
		fail_msg("run %llu is told when all were told",
		    (unsigned long long)s->id);
	if (w->begins == 0)
		w->box = s->sandbox;
	else if (w->box != s->sandbox)
		fail_msg("run %llu began in sandbox %llu and is sent to %llu",
		    (unsigned long long)s->id, (unsigned long long)w->box,
		    (unsigned long long)s->sandbox);
	return 0;
}

static int
model_on_cancel(void *arg, const struct msg_run_cancel *c, struct err *e)
{
	(void)arg;
	(void)e;
	work_at(c->id)->is_canceled = true;
	return 0;
}

/* Names so long that a few of them are a batch. */
static void
work_offer(uint64_t id, struct work *w, struct ipc_chan *chan)
{
	char path[1001];

	(void)snprintf(path, sizeof(path), "%01000u", w->nasked);
	w->is_asking = true;
	msg_send_artifact_open(chan,
	    &(struct msg_artifact_open){.id = id,
		.file = w->nasked,
		.path = {(const uint8_t *)path, sizeof(path) - 1}});
}

static void
work_copied(uint64_t id, struct work *w, struct ipc_chan *chan)
{
	uint8_t sha256[32];

	memset(sha256, (int)(w->nasked % 7) + 1, sizeof(sha256));
	msg_send_artifact_done(chan,
	    &(struct msg_artifact_done){
		.id = id, .file = w->nasked, .sha256 = sha256});
	w->is_copying = false;
	w->nasked++;
}

static int
model_on_artifact_fd(void *arg, struct msg_artifact_fd *f, struct err *e)
{
	struct script *script = arg;
	struct work *w = work_at(f->id);

	(void)e;
	if (w->worker != worker_of(script) || !w->is_asking ||
	    f->file != w->nasked)
		return 0;
	if (strcmp(f->refusal, "the run is over") == 0)
		return 0; /* it will be forgotten */
	if (f->file_fd < 0)
		fail_msg("run %llu, file %u: %s", (unsigned long long)f->id,
		    f->file, f->refusal);
	w->is_asking = false;
	w->is_copying = true;
	if (!m.is_calm && pick(2) == 0)
		return 0; /* it takes a while */
	work_copied(f->id, w, script->chan);
	if (w->nasked < w->nfiles)
		work_offer(f->id, w, script->chan);
	return 0;
}

static int
model_on_forget(void *arg, const struct msg_run_forget *f, struct err *e)
{
	(void)arg;
	(void)e;
	work_drop(work_at(f->id));
	return 0;
}

static int
model_message_cb(
    struct ipc_chan *c, struct ipc_msg *msg, void *arg, struct err *e)
{
	static const struct msg_front_to_worker handlers = {
	    .on_sandbox_open = model_on_open,
	    .on_sandbox_settled = model_on_settled,
	    .on_sandbox_shares = script_on_sandbox_shares,
	    .on_sandbox_remove = model_on_remove,
	    .on_run_start = model_on_start,
	    .on_run_cancel = model_on_cancel,
	    .on_run_forget = model_on_forget,
	    .on_artifact_fd = model_on_artifact_fd,
	    .on_tenants = script_on_tenants,
	    .on_sweep = script_on_sweep,
	    .on_sweep_end = script_on_sweep_end,
	};

	(void)c;
	return msg_dispatch_front_to_worker(&handlers, msg, arg, e);
}

/* ---- workers: what they do */

static void
turn(unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		(void)event_base_loop(g.base, EVLOOP_NONBLOCK);
}

static struct ipc_chan *
chan_of(int worker)
{
	return worker < 0 ? NULL : g.worker[worker].chan;
}

static void
worker_come(unsigned int i)
{
	static const struct ipc_ops ops = {
	    model_message_cb, script_close_cb, NULL};
	struct script *w = &g.worker[i];
	int other;

	if (w->chan != NULL)
		return;
	w->chan = world_chan(g.base, &ops, w, &other);
	core_attach_worker(g.core, i, other);
	msg_send_worker_state(w->chan,
	    &(struct msg_worker_state){.engine_up = true, .detail = "ok"});
}

/* What it was doing was done, or not. */
static void
worker_forget(int i)
{
	for (uint64_t id = 0; id < m.nworks; id++)
		if (m.works[id].worker == i)
			work_drop(&m.works[id]);
	for (uint64_t id = 0; id < m.nboxes; id++) {
		struct box *b = &m.boxes[id];

		if (b->worker != i)
			continue;
		if (b->op == OP_CREATE)
			b->is_alive = pick(2) == 0;
		if (b->op == OP_REMOVE)
			b->is_alive = b->is_alive && pick(2) == 0;
		b->op = OP_NONE;
		b->worker = -1;
		b->is_open = false;
	}
}

static void
worker_die(unsigned int i)
{
	if (g.worker[i].chan == NULL)
		return;
	ipc_chan_free(g.worker[i].chan);
	g.worker[i].chan = NULL;
	worker_forget((int)i);
}

static void
say_box_lost(uint64_t id, struct ipc_chan *chan)
{
	msg_send_sandbox_lost(
	    chan, &(struct msg_sandbox_lost){.id = id, .why = "gone"});
}

static void
box_answer_open(uint64_t id, struct box *b, struct ipc_chan *chan)
{
	if (b->op == OP_CREATE && !m.is_calm && pick(20) == 0) {
		b->worker = -1;
		b->has_failed = true;
		msg_send_sandbox_failed(chan,
		    &(struct msg_sandbox_failed){
			.id = id, .code = ERR_BACKEND, .text = "no engine"});
		return;
	}
	if (b->op == OP_CREATE)
		b->is_alive = true;
	if (b->is_alive) {
		b->is_open = true;
		msg_send_sandbox_ready(chan,
		    &(struct msg_sandbox_ready){
			.id = id, .container_id = "c0ffee"});
	} else {
		b->worker = -1;
		say_box_lost(id, chan);
	}
}

/* One thing that a worker was asked for is done. */
static bool
box_step(uint64_t id)
{
	struct box *b = &m.boxes[id];
	struct ipc_chan *chan = chan_of(b->worker);
	enum op op = b->op;

	if (op == OP_NONE || chan == NULL)
		return false;
	if (op == OP_REMOVE) {
		b->is_alive = false;
		b->worker = -1;
		msg_send_sandbox_removed(
		    chan, &(struct msg_sandbox_removed){.id = id, .text = ""});
	} else {
		box_answer_open(id, b, chan);
	}
	b->op = OP_NONE;
	return true;
}

static void
box_die(uint64_t id)
{
	struct box *b = &m.boxes[id];

	if (!b->is_alive || b->op != OP_NONE)
		return;
	b->is_alive = false;
	b->has_died = true;
	if (b->is_open)
		say_box_lost(id, chan_of(b->worker));
	b->is_open = false;
}

/* ---- runs in the containers */

static void
put_record(struct work *w, enum runlog_type type, const void *p, size_t n)
{
	const struct runlog_header h = {
	    .type = type, .length = (uint32_t)n, .wall_us = clock_wall_us()};

	runlog_put_header(&w->log, &h);
	assert_int_equal(buf_append(&w->log, p, n), 0);
}

static void
work_write(struct work *w)
{
	struct stat st;

	assert_int_equal(fstat(w->spool, &st), 0);
	for (size_t at = (size_t)st.st_size; at < buf_len(&w->log);) {
		ssize_t n = write(
		    w->spool, buf_data(&w->log) + at, buf_len(&w->log) - at);

		assert_true(n > 0);
		at += (size_t)n;
	}
}

/* All of it is in memory, and nothing in the spool: it can go with the end. */
static bool
work_holds(const struct work *w)
{
	struct stat st;

	assert_int_equal(fstat(w->spool, &st), 0);
	return w->is_over && w->nfiles == 0 && st.st_size == 0 && pick(2) == 0;
}

/* All records, as a worker says them again after it has read the log. */
static void
work_tell(uint64_t id, struct work *w, struct ipc_chan *chan, bool holds)
{
	const uint8_t *p = buf_data(&w->log);
	size_t at = 0;

	while (at < buf_len(&w->log)) {
		struct runlog_header h;
		size_t n;

		assert_int_equal(runlog_parse_header(p + at, &h, NULL), 0);
		n = RUNLOG_HEADER_BYTES + h.length;
		msg_send_run_record(chan,
		    &(struct msg_run_record){.id = id, .record = {p + at, n}});
		at += n;
	}
	if (!holds)
		msg_send_run_bytes(
		    chan, &(struct msg_run_bytes){.id = id, .length = at});
}

static void
work_begin(uint64_t id, struct work *w)
{
	if (w->begins++ > 0)
		fail_msg("run %llu began twice", (unsigned long long)id);
	put_record(w, RUNLOG_RUN_STARTED, "", 0);
	put_record(w, RUNLOG_COMMAND_STARTED, "", 0);
}

static void
work_finish(struct work *w)
{
	enum runlog_reason reason =
	    w->is_canceled ? RUNLOG_CANCELED : RUNLOG_EXIT;
	const struct runlog_end end = {.reason = (uint8_t)reason};
	const struct runlog_run_end run_end = {.reason = (uint8_t)reason};
	struct buf b = {0};

	runlog_put_end(&b, &end);
	put_record(w, RUNLOG_COMMAND_ENDED, buf_data(&b), buf_len(&b));
	buf_clear(&b);
	runlog_put_run_end(&b, &run_end);
	put_record(w, RUNLOG_RUN_ENDED, buf_data(&b), buf_len(&b));
	buf_clear(&b);
	w->is_over = true;
	w->nfiles = pick(2) == 0 ? pick(60) : 0;
}

/* A run goes on by a step, if its worker and its container are there.  What
 * the worker had written and not told when it died is in the log alone. */
static bool
work_step(uint64_t id)
{
	struct work *w = &m.works[id];
	struct ipc_chan *chan = chan_of(w->worker);
	struct box *b = &m.boxes[w->box];
	bool holds;

	if (chan == NULL || !b->is_open || !b->is_alive)
		return false;
	if (w->begins > 0 && !w->is_over)
		work_finish(w);
	if (w->begins == 0)
		work_begin(id, w);
	if (w->begins == 1 && !w->is_over && pick(3) == 0)
		work_finish(w); /* within one turn */
	if (!m.is_calm && pick(3) == 0)
		return true; /* the worker has not heard of it yet */
	holds = work_holds(w);
	if (!holds)
		work_write(w);
	if (w->is_over && w->nasked < w->nfiles) {
		if (w->is_copying)
			work_copied(id, w, chan);
		else if (!w->is_asking)
			work_offer(id, w, chan);
		return true;
	}
	if (!m.is_calm && pick(8) == 0)
		return true;
	work_tell(id, w, chan, holds);
	if (w->is_over)
		msg_send_run_ended(chan,
		    &(struct msg_run_ended){.id = id,
			.reason =
			    w->is_canceled ? RUNLOG_CANCELED : RUNLOG_EXIT,
			.length = buf_len(&w->log),
			.log = {
			    buf_data(&w->log), holds ? buf_len(&w->log) : 0}});
	return true;
}

#endif
