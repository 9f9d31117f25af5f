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
 *	- each run that was acknowledged has ended, for a reason that is true;
 *	- no run ever began twice;
 *	- each run that went to its end has all the files that it left, and
 *	  each blob is counted by as many rows as it says.
 *
 * MODEL_SEED and MODEL_STEPS in the environment repeat, or lengthen, a test.
 */
#include "tests/unit/core/model_world.h"

#define STEPS 6000
#define REST_EVERY 400

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
	if (sb == NULL || core_admit_run(g.core, g.who, sb, &e) != 0)
		return;
	/* Some are so large that they are on disk alone. */
	g.arg = pick(4) == 0 ? m.large : NULL;
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
	uint64_t id;
	int rc;

	if (old == NULL) {
		(void)open_or_null(name);
		return;
	}
	id = old->row.id;
	rc = sandbox_replace(old, 3600, &fresh, &e);
	if (rc != 0 && rc != ERR_BACKEND && rc != ERR_LIMIT)
		fail_msg("restart %s: %s", name, e.msg);
	if (rc != 0)
		return;
	assert_ptr_equal(ground_find(name), fresh);
	box_at(id)->is_unwanted = true;
}

static void
client_delete(const char *name)
{
	struct sandbox *sb = ground_find(name);

	if (sb != NULL) {
		box_at(sb->row.id)->is_unwanted = true;
		sandbox_remove(sb);
	}
	assert_null(ground_find(name));
}

static void
client_cancel(void)
{
	struct work *w;

	if (m.nworks == 0)
		return;
	w = &m.works[pick((unsigned int)m.nworks)];
	if (w->run == NULL)
		return;
	w->was_canceled = true;
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

/* What has no row never was: its numbers are given anew, and its containers
 * are the sweep's. */
static void
forget_unwritten(void)
{
	struct store_snapshot snap;
	struct err e;

	assert_int_equal(store_snapshot(g.store, NULL, &snap, &e), 0);
	for (; m.nboxes > snap.next_sandbox; m.nboxes--)
		m.boxes[m.nboxes - 1] = (struct box){.worker = -1};
	for (; m.nworks > snap.next_run; m.nworks--) {
		buf_clear(&m.works[m.nworks - 1].log);
		m.works[m.nworks - 1] = (struct work){.worker = -1};
	}
	store_snapshot_clear(&snap);
}

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
	if (pick(2) == 0)
		ground_crash_core();
	else
		ground_stop_core();
	ground_start_core();
	forget_unwritten();
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
	if (sb->state == SANDBOX_READY && pick(3) == 0) {
		box_at(sb->row.id)->has_died = true;
		sandbox_on_hung(sb);
	} else if (sb->row.id < m.nboxes) {
		box_die(sb->row.id);
	}
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
	else if (what < 360)
		some_box_dies();
	else if (what < 370)
		worker_die(pick(SCRIPTS));
	else if (what < 400)
		worker_come(pick(SCRIPTS));
	else if (what < 405)
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
	const struct sandbox *sb = NULL;

	for (uint64_t id = 0; id < m.nboxes; id++)
		if (m.boxes[id].op != OP_NONE)
			return false;
	while ((sb = sandboxes_next(core_sandboxes(g.core), sb)) != NULL)
		if (sb->nwrites > 0 ||
		    (sb->state != SANDBOX_READY && sb->state != SANDBOX_GONE))
			return false;
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

static unsigned int
check_box(const struct sandbox *sb)
{
	if (sb->state == SANDBOX_GONE)
		return 0;
	assert_int_equal(sb->state, SANDBOX_READY);
	assert_ptr_equal(ground_find(sb->row.identifier), sb);
	assert_true(sb->row.id < m.nboxes);
	assert_true(m.boxes[sb->row.id].is_alive);
	assert_true(m.boxes[sb->row.id].is_settled);
	return 1;
}

static void
check_boxes(void)
{
	unsigned int wanted = 0, alive = 0;
	const struct sandbox *box = NULL;
	struct store_snapshot snap;
	struct err e;

	while ((box = sandboxes_next(core_sandboxes(g.core), box)) != NULL)
		wanted += check_box(box);
	for (uint64_t id = 0; id < m.nboxes; id++)
		alive += m.boxes[id].is_alive;
	assert_int_equal(alive, wanted);
	assert_int_equal(store_snapshot(g.store, NULL, &snap, &e), 0);
	assert_int_equal(snap.nruns, 0);
	for (size_t i = 0; i < snap.nsandboxes; i++) {
		const struct sandbox *sb = sandboxes_find(
		    core_sandboxes(g.core), snap.sandboxes[i].id);

		assert_non_null(sb);
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
	uint64_t sandbox;
	uint32_t nfiles;
	char text[256];
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
		d->sandbox = row->sandbox;
		d->nfiles = row->artifacts_total;
		(void)snprintf(d->text, sizeof(d->text), "%.255s",
		    row->error == NULL ? "" : row->error);
	}
}

/* Whether what ended it had happened. */
static bool
is_true(const struct work *w, const struct ended *d)
{
	const struct box *b = box_at(d->sandbox);

	switch (d->reason) {
	case RUNLOG_LOST:
		return b->has_died;
	case RUNLOG_START_FAILED:
		return b->has_failed || b->is_unwanted;
	case RUNLOG_CANCELED: /* one that hung is removed */
		return b->is_unwanted || w->was_canceled || b->has_died;
	default:
		return d->reason != 0 && d->reason != RUNLOG_INTERNAL;
	}
}

/* Its sandbox went between its end and that of its files. */
static bool
is_cut(const struct work *w, const struct ended *d)
{
	const struct box *b = box_at(d->sandbox);

	return b->has_died || b->is_unwanted || w->was_canceled;
}

static void
check_blobs(void)
{
	sqlite3 *db = ground_lock();
	sqlite3_stmt *st;

	assert_int_equal(
	    sqlite3_prepare_v2(db,
		"SELECT count(*) FROM blob WHERE refs <> (SELECT count(*)"
		" FROM artifact WHERE artifact.sha256 = blob.sha256)",
		-1, &st, NULL),
	    SQLITE_OK);
	assert_int_equal(sqlite3_step(st), SQLITE_ROW);
	assert_int_equal(sqlite3_column_int(st, 0), 0);
	assert_int_equal(sqlite3_finalize(st), SQLITE_OK);
	(void)sqlite3_close(db);
}

static void
check_work(uint64_t id, struct work *w)
{
	struct ended d = {0};

	if (!w->is_acked)
		return;
	store_run_get(g.store, g.who->tenant, &w->uuid, 0, ended_cb, &d);
	ground_wait_until(d.is_told);
	if (d.rc != 0 || !is_true(w, &d))
		fail_msg("run %llu: rc %d, state %s, reason %d: %s",
		    (unsigned long long)id, d.rc, run_state_word(d.state),
		    d.reason, d.text);
	if (d.state == RUN_STATE_COMPLETED)
		assert_int_equal(w->begins, 1);
	if (d.state == RUN_STATE_COMPLETED && w->is_over &&
	    d.nfiles != w->nfiles && !is_cut(w, &d))
		fail_msg("run %llu has %u files of %u", (unsigned long long)id,
		    d.nfiles, w->nfiles);
	assert_true(d.nfiles <= w->nfiles);
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
	check_blobs();
}

static unsigned int
from_environment(const char *name, unsigned int otherwise)
{
	const char *text = getenv(name);

	return text == NULL ? otherwise : (unsigned int)strtoul(text, NULL, 10);
}

TEST(whatever_comes_together_leaves_one_container_or_none)
{
	unsigned int seed =
	    from_environment("MODEL_SEED", (unsigned int)clock_wall_us());
	unsigned int steps = from_environment("MODEL_STEPS", STEPS);

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
	memset(m.large, 'x', sizeof(m.large) - 1);
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

TEST_MAIN(set_up, tear_down)
