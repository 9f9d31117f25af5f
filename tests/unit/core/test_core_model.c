/*
 * test_core_model.c - the core against a model of all that is below it
 *
 * A model engine has containers, each with an agent that knows which runs it
 * ever began; model workers do what the core tells them, but at random moments,
 * and die; containers die; clients run, restart, initialize, delete and cancel
 * on a few identifiers, all at once; and the core itself goes and comes again
 * over its database.  Every so often everything is left to come to rest, and
 * then core, database and engine must agree:
 *
 *	- an identifier has one sandbox that is up, or none;
 *	- the engine has the containers of these, and no other;
 *	- each run that was acknowledged has ended, with a reason that is typed;
 *	- no run ever began twice.
 *
 * MODEL_SEED and MODEL_STEPS in the environment repeat, or lengthen, a test.
 */
#include "tests/unit/core/core_ground.h"

#include <sys/stat.h>

#define NAMES 4
#define BOXES_MAX 8192
#define RUNS_MAX 16384
#define STEPS 6000
#define REST_EVERY 400

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
	/* What the client knows. */
	struct run *run; /* a reference; NULL after the core went */
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
}

static int
model_on_start(void *arg, struct msg_run_start *s, struct err *e)
{
	struct work *w = work_at(s->id);

	(void)e;
	work_drop(w);
	w->worker = worker_of(arg);
	w->spool = msg_take_fd(&s->spool);
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
	    .on_sandbox_remove = model_on_remove,
	    .on_run_start = model_on_start,
	    .on_run_cancel = model_on_cancel,
	    .on_run_forget = model_on_forget,
	    .on_artifact_fd = script_on_artifact_fd,
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
	int pair[2];

	if (w->chan != NULL)
		return;
	assert_int_equal(
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	w->chan = ipc_chan_new(g.base, pair[1], "model", &ops, w);
	core_attach_worker(g.core, i, pair[0]);
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

/* All records, as a worker says them again after it has read the log. */
static void
work_tell(uint64_t id, struct work *w, struct ipc_chan *chan)
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
}

/* A run goes on by a step, if its worker and its container are there.  What
 * the worker had written and not told when it died is in the log alone. */
static bool
work_step(uint64_t id)
{
	struct work *w = &m.works[id];
	struct ipc_chan *chan = chan_of(w->worker);
	struct box *b = &m.boxes[w->box];

	if (chan == NULL || !b->is_open || !b->is_alive)
		return false;
	if (w->begins == 0)
		work_begin(id, w);
	else if (!w->is_over)
		work_finish(w);
	work_write(w);
	if (!m.is_calm && pick(8) == 0)
		return true;
	work_tell(id, w, chan);
	if (w->is_over)
		msg_send_run_ended(chan,
		    &(struct msg_run_ended){.id = id,
			.reason =
			    w->is_canceled ? RUNLOG_CANCELED : RUNLOG_EXIT,
			.length = buf_len(&w->log)});
	return true;
}

/* ---- clients */

static struct sandbox *
open_or_null(const char *name)
{
	struct sandbox *sb;
	struct err e;
	int rc = sandbox_open(core_sandboxes(g.core),
	    &(struct sandbox_wish){.who = g.who,
		.identifier = name,
		.image = "image",
		.origin = "run",
		.ttl_s = 3600},
	    &sb, &e);

	if (rc == 0)
		return sb;
	if (rc != ERR_BACKEND && rc != ERR_LIMIT)
		fail_msg("open %s: %s", name, e.msg);
	return NULL;
}

static void
client_run(const char *name)
{
	struct sandbox *sb = ground_find(name);
	struct work *w;
	struct err e;
	struct run *r;

	if (sb == NULL)
		sb = open_or_null(name);
	if (sb == NULL || core_admit_run(g.core, sb, &e) != 0)
		return;
	r = ground_run_of(sb, pick(4) == 0, 3600000);
	w = work_at(r->row.id);
	w->run = r;
	w->uuid = r->row.uuid;
}

static void
client_restart(const char *name)
{
	struct sandbox *old = ground_find(name), *fresh;
	struct err e;
	int rc;

	if (old == NULL) {
		(void)open_or_null(name);
		return;
	}
	rc = sandbox_replace(old, 3600, &fresh, &e);
	if (rc != 0 && rc != ERR_BACKEND && rc != ERR_LIMIT)
		fail_msg("restart %s: %s", name, e.msg);
	if (rc == 0)
		assert_ptr_equal(ground_find(name), fresh);
}

static void
client_delete(const char *name)
{
	struct sandbox *sb = ground_find(name);

	if (sb != NULL)
		sandbox_remove(sb);
	assert_null(ground_find(name));
}

static void
client_cancel(void)
{
	struct work *w;

	if (m.nworks == 0)
		return;
	w = &m.works[pick((unsigned int)m.nworks)];
	if (w->run != NULL)
		run_cancel(w->run, RUNLOG_CANCELED);
}

static void
clients_look(void)
{
	for (uint64_t id = 0; id < m.nworks; id++) {
		struct work *w = &m.works[id];

		if (w->run == NULL)
			continue;
		w->is_acked =
		    w->is_acked || w->run->recorded == RUN_IS_RECORDED;
		if (w->run->phase != RUN_OVER)
			continue;
		run_unref(w->run);
		w->run = NULL;
	}
}

/* ---- the core goes, and comes again */

static void
core_crash(void)
{
	clients_look();
	for (uint64_t id = 0; id < m.nworks; id++) {
		if (m.works[id].run != NULL)
			run_unref(m.works[id].run);
		m.works[id].run = NULL;
	}
	for (unsigned int i = 0; i < SCRIPTS; i++)
		worker_die(i);
	ground_stop_core();
	ground_start_core();
}

/* ---- one step */

static bool
any_box_step(void)
{
	uint64_t at = m.nboxes == 0 ? 0 : pick((unsigned int)m.nboxes);

	for (uint64_t k = 0; k < m.nboxes; k++)
		if (box_step((at + k) % m.nboxes))
			return true;
	return false;
}

static bool
any_work_step(void)
{
	uint64_t at = m.nworks == 0 ? 0 : pick((unsigned int)m.nworks);

	for (uint64_t k = 0; k < m.nworks; k++)
		if (work_step((at + k) % m.nworks))
			return true;
	return false;
}

static void
some_box_dies(void)
{
	struct sandbox *sb = ground_find(names[pick(NAMES)]);

	if (sb == NULL)
		return;
	if (sb->state == SANDBOX_READY && pick(3) == 0)
		sandbox_on_hung(sb);
	else if (sb->row.id < m.nboxes)
		box_die(sb->row.id);
}

static void
model_step(void)
{
	const char *name = names[pick(NAMES)];
	unsigned int what = pick(1000);

	if (what < 250)
		client_run(name);
	else if (what < 290)
		client_restart(name);
	else if (what < 320)
		client_delete(name);
	else if (what < 340)
		client_cancel();
	else if (what < 350)
		some_box_dies();
	else if (what < 360)
		worker_die(pick(SCRIPTS));
	else if (what < 400)
		worker_come(pick(SCRIPTS));
	else if (what < 403)
		core_crash();
	else if (what < 600)
		(void)any_box_step();
	else
		(void)any_work_step();
	core_turn(g.core);
	turn(1 + pick(3));
	clients_look();
}

/* ---- at rest, all agree */

static bool
is_at_rest(void)
{
	for (uint64_t id = 0; id < m.nboxes; id++)
		if (m.boxes[id].op != OP_NONE)
			return false;
	for (int i = 0; i < NAMES; i++) {
		const struct sandbox *sb = ground_find(names[i]);

		if (sb != NULL && (sb->state != SANDBOX_READY || sb->nwrites))
			return false;
	}
	return runs_active(core_runs(g.core)) == 0;
}

static void
come_to_rest(void)
{
	uint64_t until = clock_mono_ms() + PATIENCE_MS;

	m.is_calm = true;
	while (!is_at_rest()) {
		for (unsigned int i = 0; i < SCRIPTS; i++)
			worker_come(i);
		while (any_box_step())
			;
		for (uint64_t id = 0; id < m.nworks; id++)
			(void)work_step(id);
		turn(2);
		clients_look();
		if (clock_mono_ms() > until)
			fail_msg("no rest: %llu runs are active",
			    (unsigned long long)runs_active(core_runs(g.core)));
	}
	m.is_calm = false;
}

static void
count_box(const struct sandbox *sb, void *arg)
{
	unsigned int *n = arg;

	if (sb->state == SANDBOX_GONE)
		return;
	(*n)++;
	assert_int_equal(sb->state, SANDBOX_READY);
	assert_ptr_equal(ground_find(sb->row.identifier), sb);
	assert_true(sb->row.id < m.nboxes);
	assert_true(m.boxes[sb->row.id].is_alive);
	assert_true(m.boxes[sb->row.id].is_settled);
}

static void
check_boxes(void)
{
	unsigned int wanted = 0, alive = 0;
	struct store_snapshot snap;
	struct err e;

	sandboxes_each(core_sandboxes(g.core), count_box, &wanted);
	for (uint64_t id = 0; id < m.nboxes; id++)
		alive += m.boxes[id].is_alive;
	assert_int_equal(alive, wanted);
	assert_int_equal(store_snapshot(g.store, &snap, &e), 0);
	assert_int_equal(snap.nruns, 0);
	for (size_t i = 0; i < snap.nsandboxes; i++) {
		const struct sandbox *sb = sandboxes_find(
		    core_sandboxes(g.core), snap.sandboxes[i].id);

		/* Its end may be on its way to the disk. */
		if (sb == NULL)
			continue;
		assert_int_equal(snap.sandboxes[i].state, SANDBOX_IS_READY);
		wanted--;
	}
	assert_int_equal(wanted, 0);
	store_snapshot_clear(&snap);
}

struct ended {
	bool is_told;
	int rc;
	enum run_state state;
	enum runlog_reason reason;
};

static void
ended_cb(int rc, const struct store_run *row, const struct err *why, void *arg)
{
	struct ended *d = arg;

	(void)why;
	d->is_told = true;
	d->rc = rc;
	if (row != NULL) {
		d->state = row->state;
		d->reason = row->end_reason;
	}
}

static void
check_work(uint64_t id, struct work *w)
{
	struct ended d = {0};

	if (!w->is_acked)
		return;
	store_run_get(g.store, g.who->tenant, &w->uuid, ended_cb, &d);
	ground_wait_until(d.is_told);
	if (d.rc != 0 || d.reason == 0 || d.reason == RUNLOG_INTERNAL)
		fail_msg("run %llu: rc %d, state %s, reason %d",
		    (unsigned long long)id, d.rc, run_state_word(d.state),
		    d.reason);
	if (d.state == RUN_STATE_COMPLETED)
		assert_int_equal(w->begins, 1);
	m.ended++;
	m.lost += d.reason == RUNLOG_LOST;
	m.canceled += d.reason == RUNLOG_CANCELED;
	m.failed += d.reason == RUNLOG_START_FAILED;
	w->is_acked = false; /* looked at */
}

static void
check_all(void)
{
	check_boxes();
	for (uint64_t id = 0; id < m.nworks; id++)
		check_work(id, &m.works[id]);
}

static unsigned int
from_environment(const char *name, unsigned int otherwise)
{
	const char *text = getenv(name);

	return text == NULL ? otherwise : (unsigned int)strtoul(text, NULL, 10);
}

static void
test_whatever_comes_together_leaves_one_container_or_none(void **state)
{
	unsigned int seed =
	    from_environment("MODEL_SEED", (unsigned int)clock_wall_us());
	unsigned int steps = from_environment("MODEL_STEPS", STEPS);

	(void)state;
	print_message("MODEL_SEED=%u\n", seed);
	m.seed = seed;
	for (unsigned int i = 0; i < steps; i++) {
		model_step();
		if (i % REST_EVERY != REST_EVERY - 1)
			continue;
		come_to_rest();
		check_all();
	}
	come_to_rest();
	check_all();
	print_message("%llu sandboxes, %u runs ended: %u lost, %u canceled, "
		      "%u could not start\n",
	    (unsigned long long)m.nboxes, m.ended, m.lost, m.canceled,
	    m.failed);
	assert_true(m.ended > steps / 20);
}

static int
set_up(void **state)
{
	struct err e;

	(void)state;
	for (unsigned int i = 0; i < BOXES_MAX; i++)
		m.boxes[i].worker = -1;
	for (unsigned int i = 0; i < RUNS_MAX; i++)
		m.works[i].worker = -1;
	ground_open_all("2");
	return conf_set(g.conf, "RUN_GRACE_MS", "3600000", &e);
}

static int
tear_down(void **state)
{
	for (uint64_t id = 0; id < m.nworks; id++) {
		work_drop(&m.works[id]);
		if (m.works[id].run != NULL)
			run_unref(m.works[id].run);
		buf_clear(&m.works[id].log);
	}
	return ground_tear_down(state);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(
		test_whatever_comes_together_leaves_one_container_or_none,
		set_up, tear_down),
	};

	return cmocka_run_group_tests_name("core_model", tests, NULL, NULL);
}
