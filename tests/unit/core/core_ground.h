/*
 * core_ground.h - a real core over a real store, and workers moved by hand
 *
 * Each worker writes down what it is told, in words ("create 1",
 * "start 1", "settled 1"), and says only what the test makes it say.  A core
 * can be taken away and made anew over the same directory, as after a crash.
 */
#ifndef UNIT_CORE_GROUND_H
#define UNIT_CORE_GROUND_H

#include <dirent.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <event2/event.h>
#include <sqlite3.h>

#include "common/clock.h"
#include "common/conf.h"
#include "common/log.h"
#include "common/msg/chan.h"
#include "common/agent_ask.h"
#include "common/msg/msg_gen.h"
#include "common/runlog.h"
#include "common/xmalloc.h"
#include "supervisor/core/core.h"
#include "supervisor/core/run.h"
#include "supervisor/core/sandbox.h"
#include "tests/unit/test.h"
#include "tests/unit/world.h"

#define PATIENCE_MS 20000
#define SCRIPTS 2

struct script { /* one worker */
	struct ipc_chan *chan;
	struct buf told; /* lines */
	int spool;       /* of the run that was started last, -1: none */
	uint64_t length;
	bool is_holding; /* a log goes with the end, not into the spool */
	struct buf held;
	size_t spec_bytes; /* of that run */
	uint64_t asked;    /* the number of the last ASK */
};

struct ground {
	char dir[64];
	struct event_base *base;
	struct conf *conf;
	struct store *store;
	struct core *core;
	struct principal *who;
	enum store_when when;
	const char *arg; /* of the next run's program, and its text */
	struct script worker[SCRIPTS];
};
static struct ground g;

/* ---- what a worker is told */

static inline void
told(struct script *w, const char *what, unsigned long long id)
{
	(void)buf_printf(&w->told, "%s %llu\n", what, id);
}

static inline int
script_on_open(void *arg, const struct msg_sandbox_open *m, struct err *e)
{
	(void)e;
	told(arg, m->mode == MSG_OPEN_MODE_CREATE ? "create" : "adopt", m->id);
	return 0;
}

static inline int
script_on_start(void *arg, struct msg_run_start *m, struct err *e)
{
	struct script *w = arg;

	(void)e;
	told(w, "start", m->id);
	if (w->spool >= 0)
		(void)close(w->spool);
	w->spool = msg_take_fd(&m->spool);
	w->length = 0;
	w->spec_bytes = m->spec_file >= 0 ?
	    (size_t)lseek(m->spec_file, 0, SEEK_END) :
	    m->spec.n;
	return 0;
}

static inline int
script_on_cancel(void *arg, const struct msg_run_cancel *m, struct err *e)
{
	(void)e;
	told(arg, "cancel", m->id);
	return 0;
}

static inline int
script_on_artifact_fd(void *arg, struct msg_artifact_fd *m, struct err *e)
{
	(void)e;
	told(arg, m->file_fd >= 0 ? "file" : "no file", m->id);
	return 0;
}

static inline int
script_on_ask(void *arg, const struct msg_ask *m, struct err *e)
{
	struct script *w = arg;

	(void)e;
	told(w, m->kind == ASK_LEFT_KILL ? "kill" : "list", m->id);
	w->asked = m->ask;
	return 0;
}

#define SCRIPT_NOTES(name, word)                                               \
	static inline int script_on_##name(                                    \
	    void *arg, const struct msg_##name *m, struct err *e)              \
	{                                                                      \
		(void)e;                                                       \
		told(arg, word, m->id);                                        \
		return 0;                                                      \
	}
SCRIPT_NOTES(sandbox_settled, "settled")
SCRIPT_NOTES(sandbox_shares, "shares")
SCRIPT_NOTES(run_forget, "forget")
SCRIPT_NOTES(ask_cancel, "unasked")

static inline int
script_on_sandbox_remove(
    void *arg, const struct msg_sandbox_remove *m, struct err *e)
{
	struct script *w = arg;

	(void)e;
	if (m->left_by[0] == '\0')
		told(w, m->keeps_files ? "give up" : "remove", m->id);
	else
		(void)buf_printf(&w->told, "remove %llu of %s\n",
		    (unsigned long long)m->id, m->left_by);
	return 0;
}

WORLD_IGNORES(script, tenants)
WORLD_IGNORES(script, sweep)
WORLD_IGNORES(script, sweep_end)

static inline int
script_message_cb(
    struct ipc_chan *c, struct ipc_msg *m, void *arg, struct err *e)
{
	static const struct msg_front_to_worker handlers = {
	    .on_sandbox_open = script_on_open,
	    .on_sandbox_settled = script_on_sandbox_settled,
	    .on_sandbox_shares = script_on_sandbox_shares,
	    .on_sandbox_remove = script_on_sandbox_remove,
	    .on_run_start = script_on_start,
	    .on_run_cancel = script_on_cancel,
	    .on_run_forget = script_on_run_forget,
	    .on_ask = script_on_ask,
	    .on_ask_cancel = script_on_ask_cancel,
	    .on_artifact_fd = script_on_artifact_fd,
	    .on_tenants = script_on_tenants,
	    .on_sweep = script_on_sweep,
	    .on_sweep_end = script_on_sweep_end,
	};

	(void)c;
	return msg_dispatch_front_to_worker(&handlers, m, arg, e);
}

static inline void
script_close_cb(struct ipc_chan *c, const struct err *why, void *arg)
{
	struct script *w = arg;

	(void)why;
	ipc_chan_free(c);
	w->chan = NULL;
}

/* ---- the loop */

#define ground_wait_until(condition)                                           \
	do {                                                                   \
		uint64_t ground_until = clock_mono_ms() + PATIENCE_MS;         \
		while (!(condition) && clock_mono_ms() < ground_until)         \
			(void)event_base_loop(g.base, EVLOOP_ONCE);            \
		assert_true(condition);                                        \
	} while (0)

static inline const char *
ground_told(unsigned int i)
{
	static char text[4096];
	const struct buf *b = &g.worker[i].told;
	size_t n = buf_len(b);

	assert_true(n < sizeof(text));
	if (n > 0)
		memcpy(text, buf_data(b), n);
	text[n] = '\0';
	return text;
}

static inline bool
was_told(unsigned int i, const char *line)
{
	const char *text = ground_told(i), *at = strstr(text, line);
	size_t n = strlen(line);

	for (; at != NULL; at = strstr(at + 1, line))
		if ((at == text || at[-1] == '\n') && at[n] == '\n')
			return true;
	return false;
}

static inline void
expect_told(unsigned int i, const char *line)
{
	uint64_t until = clock_mono_ms() + PATIENCE_MS;

	while (!was_told(i, line) && clock_mono_ms() < until)
		(void)event_base_loop(g.base, EVLOOP_ONCE);
	if (!was_told(i, line))
		fail_msg("worker %u was not told \"%s\" but: %s", i, line,
		    ground_told(i));
}

static inline void
forget_told(unsigned int i)
{
	buf_consume(&g.worker[i].told, buf_len(&g.worker[i].told));
}

/* Everything that is on its way has arrived: the channel keeps its order, so
 * an answer to what is said now comes behind it. */
static inline void
ground_settle(unsigned int i)
{
	msg_send_worker_state(g.worker[i].chan,
	    &(struct msg_worker_state){.engine_up = true, .detail = "ok"});
	for (int k = 0; k < 20; k++)
		(void)event_base_loop(g.base, EVLOOP_NONBLOCK);
}

/* ---- workers */

static inline void
ground_worker(unsigned int i)
{
	static const struct ipc_ops ops = {
	    script_message_cb, script_close_cb, NULL};
	struct script *w = &g.worker[i];
	int other;

	w->chan = world_chan(g.base, &ops, w, &other);
	core_attach_worker(g.core, i, other);
	ground_settle(i);
}

/* It dies: its end of the channel is closed. */
static inline void
ground_kill_worker(unsigned int i)
{
	struct script *w = &g.worker[i];

	ipc_chan_free(w->chan);
	w->chan = NULL;
	if (w->spool >= 0)
		(void)close(w->spool);
	w->spool = -1;
	for (int k = 0; k < 20; k++)
		(void)event_base_loop(g.base, EVLOOP_NONBLOCK);
}

static inline void
say_ready(unsigned int i, uint64_t sandbox)
{
	msg_send_sandbox_ready(g.worker[i].chan,
	    &(struct msg_sandbox_ready){
		.id = sandbox, .container_id = "c0ffee"});
	ground_settle(i);
}

static inline void
say_lost(unsigned int i, uint64_t sandbox)
{
	msg_send_sandbox_lost(g.worker[i].chan,
	    &(struct msg_sandbox_lost){.id = sandbox, .why = "gone"});
	ground_settle(i);
}

static inline void
say_failed(unsigned int i, uint64_t sandbox, int code)
{
	msg_send_sandbox_failed(g.worker[i].chan,
	    &(struct msg_sandbox_failed){
		.id = sandbox, .code = code, .text = "no such image"});
	ground_settle(i);
}

static inline void
say_removed(unsigned int i, uint64_t sandbox, int code)
{
	msg_send_sandbox_removed(g.worker[i].chan,
	    &(struct msg_sandbox_removed){
		.id = sandbox, .code = code, .text = "busy"});
	ground_settle(i);
}

/* A record into the log of the run that was started last, and told. */
static inline void
say_record(unsigned int i, uint64_t run, enum runlog_type type, const void *p,
    size_t n)
{
	struct script *w = &g.worker[i];
	const struct runlog_header h = {
	    .type = type, .length = (uint32_t)n, .wall_us = clock_wall_us()};
	struct buf b = {0};

	runlog_put_header(&b, &h);
	assert_int_equal(buf_append(&b, p, n), 0);
	if (w->is_holding)
		assert_int_equal(
		    buf_append(&w->held, buf_data(&b), buf_len(&b)), 0);
	else
		assert_int_equal(
		    write(w->spool, buf_data(&b), buf_len(&b)), buf_len(&b));
	w->length += buf_len(&b);
	if (type != RUNLOG_STDOUT)
		msg_send_run_record(w->chan,
		    &(struct msg_run_record){
			.id = run, .record = {buf_data(&b), buf_len(&b)}});
	if (!w->is_holding)
		msg_send_run_bytes(w->chan,
		    &(struct msg_run_bytes){.id = run, .length = w->length});
	buf_clear(&b);
}

static inline void
say_begun(unsigned int i, uint64_t run)
{
	say_record(i, run, RUNLOG_RUN_STARTED, "", 0);
	say_record(i, run, RUNLOG_COMMAND_STARTED, "", 0);
	ground_settle(i);
}

static inline void
say_command_ended(unsigned int i, uint64_t run, int exit_code)
{
	const struct runlog_end end = {
	    .reason = RUNLOG_EXIT, .exit_code = exit_code};
	const struct runlog_run_end run_end = {
	    .reason = RUNLOG_EXIT, .failed = exit_code != 0};
	struct buf b = {0};

	runlog_put_end(&b, &end);
	say_record(i, run, RUNLOG_COMMAND_ENDED, buf_data(&b), buf_len(&b));
	buf_clear(&b);
	runlog_put_run_end(&b, &run_end);
	say_record(i, run, RUNLOG_RUN_ENDED, buf_data(&b), buf_len(&b));
	buf_clear(&b);
}

static inline void
say_ended(unsigned int i, uint64_t run, enum runlog_reason reason)
{
	struct script *w = &g.worker[i];

	msg_send_run_ended(w->chan,
	    &(struct msg_run_ended){.id = run,
		.reason = (uint8_t)reason,
		.length = w->length,
		.log = {buf_data(&w->held), buf_len(&w->held)}});
	buf_clear(&w->held);
	ground_settle(i);
}

/* ---- calls */

static inline struct sandbox *
ground_find(const char *identifier)
{
	return sandbox_find_named(
	    core_sandboxes(g.core), g.who->tenant, identifier);
}

static inline struct sandbox *
ground_open(const char *identifier)
{
	struct sandbox *sb = NULL;
	struct err e;

	if (sandbox_open(core_sandboxes(g.core),
		&(struct sandbox_wish){.who = g.who,
		    .identifier = identifier,
		    .image = "image",
		    .origin = "run",
		    .ttl_s = 3600},
		&sb, &e) != 0)
		fail_msg("%s", e.msg);
	return sb;
}

/* A run of one command, with a reference that need not be given back; its row
 * is written at g.when. */
static inline struct run *
ground_run_of(struct sandbox *sb, bool lock, uint32_t timeout_ms)
{
	struct run_wish w = {.tool = "test", .lock = lock, .when = g.when};
	struct runspec_command *c;
	struct run *r;
	struct err e;

	uuid_random(&w.uuid);
	w.spec.flags = lock ? RUNSPEC_LOCK : 0;
	w.spec.ncommands = 1;
	w.spec.commands = c = xcalloc(1, sizeof(*c));
	c->argv = xcalloc(3, sizeof(*c->argv));
	c->argv[c->argc++] = xstrdup("true");
	if (g.arg != NULL)
		c->argv[c->argc++] = xstrdup(g.arg);
	c->cwd = xstrdup("/");
	c->timeout_ms = timeout_ms;
	c->deny = xstrdup("");
	w.commands = xcalloc(1, sizeof(*w.commands));
	w.commands[0].timeout_ms = timeout_ms;
	run_asked_fill_texts(&w.commands[0], c);
	if (run_create(core_runs(g.core), sb, &w, &r, &e) != 0)
		fail_msg("%s", e.msg);
	run_wish_clear(&w);
	core_turn(g.core);
	return run_ref(r);
}

static inline struct run *
ground_run(struct sandbox *sb, bool lock)
{
	return ground_run_of(sb, lock, 1000);
}

static inline void
ground_wait_over(struct run *r)
{
	ground_wait_until(r->phase == RUN_OVER);
}

/* ---- life */

static inline void
ground_start_core(void)
{
	struct core_parts parts = {
	    .base = g.base, .conf = g.conf, .instance = "i"};
	struct err e;

	assert_int_equal(store_open(g.base, g.dir, NULL, &g.store, &e), 0);
	parts.store = g.store;
	assert_int_equal(core_new(&parts, &g.core, &e), 0);
	if (core_recover(g.core, &e) != 0)
		fail_msg("%s", e.msg);
}

/* As a crash, but for what is queued for the database.  Runs go with it,
 * whoever has a reference. */
static inline void
ground_stop_core(void)
{
	for (unsigned int i = 0; i < SCRIPTS; i++) {
		ipc_chan_free(g.worker[i].chan);
		g.worker[i].chan = NULL;
		if (g.worker[i].spool >= 0)
			(void)close(g.worker[i].spool);
		g.worker[i].spool = -1;
	}
	core_free(g.core);
	store_close(g.store);
	g.core = NULL;
	for (int k = 0; k < 3; k++) /* libevent frees a turn later */
		(void)event_base_loop(g.base, EVLOOP_NONBLOCK);
}

static inline struct run *
ground_restart(const struct uuid *run)
{
	struct run *r;

	ground_stop_core();
	ground_start_core();
	r = runs_find_uuid(core_runs(g.core), g.who->tenant, run);
	assert_non_null(r);
	return run_ref(r);
}

static inline void
ground_copy_file(const char *from, const char *to)
{
	static char bytes[1 << 16];
	FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");
	size_t n;

	assert_non_null(in);
	assert_non_null(out);
	while ((n = fread(bytes, 1, sizeof(bytes), in)) > 0)
		assert_int_equal(fwrite(bytes, 1, n, out), n);
	assert_int_equal(fclose(out), 0);
	(void)fclose(in);
}

/* The database's files as they are; others by a second name, without what
 * SQLite makes anew. */
static inline void
ground_copy_dir(const char *from, const char *to)
{
	DIR *d = opendir(from);
	const struct dirent *entry;
	char old[512], new[512];

	assert_non_null(d);
	assert_int_equal(mkdir(to, 0700), 0);
	while ((entry = readdir(d)) != NULL) {
		const char *name = entry->d_name;

		(void)snprintf(old, sizeof(old), "%.200s/%.255s", from, name);
		(void)snprintf(new, sizeof(new), "%.200s/%.255s", to, name);
		if (name[0] == '.' || strstr(name, ".db-shm") != NULL)
			continue;
		if (entry->d_type == DT_DIR)
			ground_copy_dir(old, new);
		else if (strstr(name, ".db") != NULL)
			ground_copy_file(old, new);
		else /* it may go at any time */
			(void)!link(old, new);
	}
	(void)closedir(d);
}

/* Nobody else commits until it is closed. */
static inline sqlite3 *
ground_lock(void)
{
	char path[128];
	sqlite3 *db;

	(void)snprintf(path, sizeof(path), "%s/mcp-sandboxd.db", g.dir);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	(void)sqlite3_busy_timeout(db, PATIENCE_MS);
	assert_int_equal(
	    sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
	return db;
}

/* As a crash: what is not committed yet never will be. */
static inline void
ground_crash_core(void)
{
	char copy[128];
	sqlite3 *db = ground_lock();

	(void)snprintf(copy, sizeof(copy), "%s.copy", g.dir);
	ground_copy_dir(g.dir, copy);
	(void)sqlite3_close(db);
	ground_stop_core();
	world_remove_dir(g.dir);
	assert_int_equal(rename(copy, g.dir), 0);
}

static inline int
ground_open_all(const char *workers)
{
	struct err e;

	g = (struct ground){.base = event_base_new()};
	(void)snprintf(g.dir, sizeof(g.dir), "/tmp/test-core-XXXXXX");
	assert_non_null(mkdtemp(g.dir));
	g.conf = conf_new();
	assert_int_equal(conf_set(g.conf, "WORKERS", workers, &e), 0);
	log_set_level(LOG_ERROR);
	g.who = principal_new((struct tenant_id){STORE_TENANT_DEFAULT},
	    "default", "test", PRINCIPAL_USER);
	for (unsigned int i = 0; i < SCRIPTS; i++)
		g.worker[i].spool = -1;
	ground_start_core();
	return 0;
}

static inline int
ground_set_up(void **state)
{
	(void)state;
	ground_open_all("1");
	ground_worker(0);
	return 0;
}

static inline int
ground_set_up_alone(void **state) /* no worker is there yet */
{
	(void)state;
	return ground_open_all("1");
}

static inline int
ground_tear_down(void **state)
{
	(void)state;
	ground_stop_core();
	for (unsigned int i = 0; i < SCRIPTS; i++)
		buf_clear(&g.worker[i].told);
	principal_unref(g.who);
	conf_free(g.conf);
	event_base_free(g.base);
	world_remove_dir(g.dir);
	return 0;
}

#endif
