/*
 * run.c - runs: the registry, and what each step of run_step.h does
 *
 * A run begins with run_create: its row goes to the store, its log is opened,
 * it takes its place in the sandbox's queue.  The scheduler calls run_start at
 * its turn; the worker is told with the descriptor of the log, into which it
 * writes by itself.  The front hears of records but output, and of its length.
 *
 * The end comes from the worker (run_on_ended), or from here when there is
 * none to report it: the sandbox is gone, or the run never began.  Then the log
 * is read, off the loop, for what it had done.  The ending is apart from the
 * row until it is on disk: nobody is told what a crash could forget.
 */
#include "supervisor/core/run.h"

#include <fcntl.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/conf.h"
#include "common/fd.h"
#include "common/log.h"
#include "common/msg/msg_gen.h"
#include "common/timer.h"
#include "common/xmalloc.h"
#include "supervisor/core/fleet.h"
#include "supervisor/core/sandbox.h"
#include "supervisor/core/secrets.h"

#define RETRY_MS 1000
#define RESEND_MS 100
#define FILES_MS 600000 /* to copy them, when its programs are over */
/* A log that cannot be read is tried again this often, then given up. */
#define READS_MAX 60

TAILQ_HEAD(run_list, run);

struct runs {
	struct runs_parts parts;
	struct run_list phases[RUN_NPHASE];
	struct hashmap ids;
	struct hashmap uuids;
	uint64_t next_id;
	uint64_t asked_bytes; /* of all that are not over */
};

/* ---- finding */

static bool
is_overdue(const struct run *r, uint64_t now_ms)
{
	return r->deadline_ms != 0 && r->deadline_ms <= now_ms;
}

static bool
is_uuid(const struct hash_entry *en, const void *key)
{
	const struct run *r = HASH_OF(en, struct run, by_uuid);

	return uuid_is_equal(&r->row.uuid, key);
}

struct run *
runs_find(struct runs *rs, uint64_t id)
{
	return HASH_OBJECT(hashmap_get_u64(&rs->ids, id), struct run, by_id);
}

struct run *
runs_find_uuid(
    struct runs *rs, struct tenant_id tenant, const struct uuid *uuid)
{
	uint64_t h = hashmap_key_owned(tenant.n, uuid);
	struct run *r = HASH_OBJECT(
	    hashmap_get(&rs->uuids, h, is_uuid, uuid), struct run, by_uuid);

	return r == NULL || r->row.tenant != tenant.n ? NULL : r;
}

uint64_t
runs_active(const struct runs *rs)
{
	return rs->ids.count;
}

/* While there is no engine there may be no way to the agents either, nor to
 * another sandbox: afterwards a run has the grace that it has when its worker
 * was away. */
static bool
is_put_off(struct run *r)
{
	if (r->deadline_ms == 0 ||
	    !fleet_has_no_engine(r->runs->parts.fleet, r->worker))
		return false;
	run_set_deadline(r);
	return true;
}

struct run *
runs_overdue(struct runs *rs, uint64_t now_ms)
{
	struct run *r;

	TAILQ_FOREACH (r, &rs->phases[RUN_SENT], link)
		if (r->sandbox->state == SANDBOX_READY && !is_put_off(r) &&
		    is_overdue(r, now_ms))
			return r;
	return NULL;
}

uint64_t
runs_asked_bytes(const struct runs *rs)
{
	return rs->asked_bytes;
}

/* ---- life */

static void
run_set_phase(struct run *r, enum run_phase to)
{
	struct runs *rs = r->runs;

	TAILQ_REMOVE(&rs->phases[r->phase], r, link);
	r->phase = to;
	TAILQ_INSERT_TAIL(&rs->phases[to], r, link);
}

static void run_retry_cb(void *arg);

static struct run *
run_new(struct runs *rs, struct sandbox *sb)
{
	struct run *r = xcalloc(1, sizeof(*r));

	r->runs = rs;
	r->refs = 1; /* the registry's */
	bus_init(&r->bus);
	run_asked_init(&r->asked);
	r->why_text = xstrdup("");
	r->sandbox = sb;
	if (sb != NULL)
		r->worker = sb->worker;
	return r;
}

/* Its row has its numbers. */
static void
run_enter(struct run *r)
{
	struct runs *rs = r->runs;

	artifacts_init(
	    &r->artifacts, rs->parts.store, rs->parts.base, &r->row, r->log);
	hashmap_put(&rs->ids, &r->by_id, hashmap_key_u64(r->row.id));
	hashmap_put(&rs->uuids, &r->by_uuid,
	    hashmap_key_owned(r->row.tenant, &r->row.uuid));
	rs->asked_bytes += r->row.asked_bytes;
	r->phase = RUN_WAITING;
	TAILQ_INSERT_TAIL(&rs->phases[RUN_WAITING], r, link);
}

struct run *
run_ref(struct run *r)
{
	r->refs++;
	return r;
}

static void
run_free(struct run *r)
{
	struct runs *rs = r->runs;

	TAILQ_REMOVE(&rs->phases[r->phase], r, link);
	log_view_close(r->view);
	artifacts_clear(&r->artifacts);
	store_log_close(r->log);
	timer_free(r->retry);
	run_ending_clear(&r->ending);
	store_run_clear(&r->row);
	free(r->why_text);
	free(r);
}

void
run_unref(struct run *r)
{
	if (--r->refs == 0)
		run_free(r);
}

struct runs *
runs_new(const struct runs_parts *parts)
{
	struct runs *rs = xcalloc(1, sizeof(*rs));

	rs->parts = *parts;
	rs->next_id = 1;
	for (unsigned int i = 0; i < RUN_NPHASE; i++)
		TAILQ_INIT(&rs->phases[i]);
	return rs;
}

void
runs_set_next_id(struct runs *rs, uint64_t id)
{
	rs->next_id = id;
}

static void
run_leave(struct run *r)
{
	hashmap_del(&r->runs->ids, &r->by_id);
	hashmap_del(&r->runs->uuids, &r->by_uuid);
	r->runs->asked_bytes -= r->row.asked_bytes;
	run_unref(r);
}

void
runs_free(struct runs *rs)
{
	struct run *r;

	if (rs == NULL)
		return;
	for (unsigned int i = 0; i < RUN_NPHASE; i++)
		while ((r = TAILQ_FIRST(&rs->phases[i])) != NULL) {
			sched_leave(&r->turn);
			run_free(r);
		}
	hashmap_clear(&rs->ids);
	hashmap_clear(&rs->uuids);
	free(rs);
}

/* ---- telling */

static void
run_tell(struct run *r, const struct bus_event *ev)
{
	r->changes++;
	(void)run_ref(r);
	bus_tell(&r->bus, ev);
	bus_tell(r->runs->parts.bus, ev);
	run_unref(r);
}

static void
run_say(struct run *r, enum bus_kind kind, const struct err *why)
{
	const struct bus_event ev = {
	    .kind = kind, .run = r, .sandbox = r->sandbox, .why = why};

	run_tell(r, &ev);
}

static void
run_say_command(uint32_t command, void *arg)
{
	struct run *r = arg;
	const struct bus_event ev = {
	    .kind = BUS_COMMAND_ENDED, .run = r, .command = command};

	run_tell(r, &ev);
}

/* ---- deeds: to the worker */

struct ipc_chan *
run_chan(const struct run *r)
{
	return fleet_chan(r->runs->parts.fleet, r->worker);
}

static void
do_tell_cancel(struct run *r)
{
	msg_send_run_cancel(run_chan(r),
	    &(struct msg_run_cancel){.id = r->row.id,
		.tenant = r->row.tenant,
		.reason = (uint8_t)r->cancel});
}

static void
run_retry_in(struct run *r, uint64_t ms)
{
	if (r->retry == NULL)
		r->retry = timer_new(r->runs->parts.base, run_retry_cb, r);
	timer_set_ms(r->retry, ms);
}

/* ---- what it was asked to do, when that is only on disk */

static void run_happen(struct run *r, enum run_happening what);

static void
run_let_go(struct run *r)
{
	if (r->recorded == RUN_IS_RECORDED)
		run_asked_let_go(&r->asked, &r->row);
}

/* In a turn of its own: who sends holds its sandbox and its queue. */
static void
give_up(struct run *r)
{
	log_error("run %llu: its spec is not in the database, or damaged",
	    (unsigned long long)r->row.id);
	r->is_unfit = true;
	run_retry_in(r, 0);
}

static void
send_fetched(struct run *r, int rc)
{
	if (rc == ERR_NOTFOUND || (rc == 0 && r->row.spec == NULL))
		give_up(r);
	else if (rc == 0)
		run_happen(r, RUN_WORKER_CAME);
	else
		run_retry_in(r, RETRY_MS);
}

static void
fetched_cb(
    int rc, const struct store_run *row, const struct err *why, void *arg)
{
	struct run *r = arg;

	run_asked_fetched(&r->asked, &r->row, rc == 0 ? row : NULL,
	    r->phase == RUN_SENT ? RUN_ASKED_ALL : RUN_ASKED_TEXTS, why);
	r->is_reread = true;
	if (r->is_due && r->phase == RUN_SENT)
		send_fetched(r, rc);
	if (rc == 0)
		run_let_go(r);
	run_unref(r);
}

static void
run_fetch(struct run *r)
{
	if (run_asked_must_fetch(&r->asked))
		(void)store_run_get(r->runs->parts.store, run_tenant(r),
		    &r->row.uuid, 0, fetched_cb, run_ref(r));
}

bool
run_read(struct run *r, struct run_reader *rd,
    void (*cb)(int rc, const struct err *why, void *arg), void *arg)
{
	if (run_asked_join(&r->asked, rd, cb, arg))
		return true;
	run_fetch(r);
	return false;
}

void
run_read_end(struct run *r, struct run_reader *rd)
{
	run_asked_leave(&r->asked, rd);
	run_let_go(r);
}

/* A descriptor; values are nowhere else when it returns. */
static int
filled_spec(struct secrets *secrets, const struct store_run *row,
    const struct span *spec)
{
	struct buf b;
	struct err e;
	int fd = ERR_INVAL;

	if (secrets_fill(
		secrets, (struct tenant_id){row->tenant}, spec, &b, &e) == 0)
		fd = fd_memfd_sealed("runspec", buf_data(&b), buf_len(&b), &e);
	if (fd < 0)
		log_error("run %llu: its spec: %s", (unsigned long long)row->id,
		    e.msg);
	if (buf_len(&b) > 0)
		explicit_bzero(buf_data(&b), buf_len(&b));
	buf_clear(&b);
	return fd;
}

/* RUN_START; what the spec refers to is filled in on the way.  ERR_SYS: out of
 * descriptors */
static int
tell_start(struct run *r)
{
	struct secrets *secrets = r->runs->parts.secrets;
	const struct store_run *row = &r->row;
	const struct span spec = {row->spec, row->spec_len};
	struct msg_run_start m = {.id = row->id,
	    .tenant = row->tenant,
	    .sandbox = row->sandbox,
	    .uuid = row->uuid,
	    .spool_limit = (uint64_t)conf_int(
		r->runs->parts.conf, CONF_RUN_OUTPUT_MAX_BYTES),
	    .request = row->request_id,
	    .spool = fcntl(store_log_fd(r->log), F_DUPFD_CLOEXEC, 3),
	    .spec_file = -1};

	if (m.spool < 0)
		return ERR_SYS;
	if (secrets != NULL && secrets_are_in(&spec))
		m.spec_file = filled_spec(secrets, row, &spec);
	else if (spec.n > MSG_RUN_START_SPEC_MAX)
		m.spec_file = fd_memfd_sealed("runspec", spec.p, spec.n, NULL);
	else
		m.spec = spec;
	if (m.spec.n == 0 && m.spec_file < 0) {
		(void)close(m.spool);
		return ERR_SYS;
	}
	msg_send_run_start(run_chan(r), &m);
	return 0;
}

/* Only while its worker is there; that the start came through is known. */
static void
do_send(struct run *r)
{
	static struct log_limit limit;

	r->is_told = false;
	if (run_chan(r) == NULL)
		return; /* all is said again when it comes */
	if (r->is_unfit)
		return;
	r->is_due = r->row.spec == NULL;
	if (r->is_due) {
		run_fetch(r); /* and then again */
		return;
	}
	if (r->is_reread && !run_asked_is_fit(&r->row)) {
		give_up(r);
		return;
	}
	if (tell_start(r) != 0) {
		log_warn_limited(&limit,
		    "out of descriptors: raise the "
		    "server's limit of open files");
		run_retry_in(r, RESEND_MS);
		return;
	}
	if (r->cancel != 0)
		do_tell_cancel(r);
	run_let_go(r);
	r->is_told = true;
	run_say(r, BUS_RUN_TOLD, NULL);
}

static void
do_forget(struct run *r)
{
	struct ipc_chan *chan = run_chan(r);

	if (chan == NULL)
		return;
	/* The run's answer goes first, and the next one's start. */
	ipc_chan_late(chan, true);
	msg_send_run_forget(chan,
	    &(struct msg_run_forget){.id = r->row.id, .tenant = r->row.tenant});
	ipc_chan_late(chan, false);
}

/* ---- deeds: the end */

/* It had ended by itself, and only its files are missing. */
static void
end_by_log(struct run *r)
{
	r->why = r->log_end.end.reason;
	xset_text(&r->why_text, "");
	r->fail_code = 0;
	if (r->log_end.end.artifacts && !artifacts_has_error(&r->artifacts))
		artifacts_fail(&r->artifacts,
		    "the sandbox was gone before the artifacts were copied");
}

/* Of a log without an end; after a loss it is all there is. */
static void
take_cut_log(struct run *r, const struct log_digest *d)
{
	run_row_take_digest(&r->row, &r->log_end, d, run_say_command, r);
	/* What is behind its last whole record is nothing that can be read. */
	r->length = d->scanned;
	if (r->is_lost && r->log_end.has_end)
		end_by_log(r);
	if (r->row.started_ms != 0)
		r->fail_code = 0;
}

/* Without its log a lost run would end with less than it did. */
static bool
read_again(struct run *r, int rc, const struct err *why)
{
	log_warn("run %llu: %s", (unsigned long long)r->row.id, why->msg);
	if ((rc != ERR_SYS && rc != ERR_LIMIT) || ++r->nreads >= READS_MAX)
		return false;
	run_retry_in(r, RETRY_MS);
	return true;
}

static void
run_digest_cb(
    int rc, const struct log_digest *d, const struct err *why, void *arg)
{
	struct run *r = arg;

	if (rc != 0) {
		if (read_again(r, rc, why))
			return;
	} else {
		if (r->is_lost || !r->log_end.has_end)
			take_cut_log(r, d);
		if (r->length > LOG_DIGEST_FROM_BYTES)
			run_row_keep_digest(&r->row, d);
	}
	run_happen(r, RUN_LOG_READ);
}

static void
do_read_log(struct run *r)
{
	r->length = store_log_length(r->log);
	log_view_digest(run_view(r), r->length, run_digest_cb, r, NULL);
}

static void
do_leave_sandbox(struct run *r)
{
	struct sandbox *sb = r->sandbox;
	const struct bus_event ev = {
	    .kind = BUS_RUN_LEFT, .run = r, .sandbox = sb};

	sched_leave(&r->turn);
	if (sb == NULL)
		return;
	r->sandbox = NULL;
	run_tell(r, &ev); /* sb may be gone */
	r->is_doubtful = false;
}

/* The spec has served: it may hold secrets. */
static void
do_finish(struct run *r)
{
	run_row_end(&r->row, &r->log_end, r->why, r->why_text, run_say_command,
	    r, &r->ending);
	if (artifacts_has_error(&r->artifacts)) {
		free(r->ending.artifacts_error);
		r->ending.artifacts_error = artifacts_take_error(&r->artifacts);
	}
	run_asked_drop_spec(&r->row);
}

static void
listed_cb(void *arg)
{
	run_happen(arg, RUN_STORED);
}

static void
end_stored_cb(int rc, const struct err *why, void *arg)
{
	struct run *r = arg;

	if (rc == 0) {
		artifacts_list(&r->artifacts, listed_cb, r);
	} else {
		static struct log_limit limit;
		struct err e = *why;

		log_warn_limited(&limit,
		    "run %llu: the end is not on disk yet: %s",
		    (unsigned long long)r->row.id, why->msg);
		(void)err_wrap(&e,
		    "the run ended but is not recorded yet, ask for its "
		    "status later");
		run_say(r, BUS_RUN_END_FAILED, &e);
		run_happen(r, RUN_STORE_FAILED);
	}
	run_unref(r);
}

static void
do_store(struct run *r)
{
	struct store_run row;

	if (r->recorded == RUN_WAS_REFUSED) {
		run_happen(r, RUN_STORED);
		return;
	}
	row = run_row_ended(&r->row, &r->ending);
	row.spool_bytes = r->length;
	artifacts_lend(&r->artifacts, &row);
	store_run_end(
	    r->runs->parts.store, &row, r->log, end_stored_cb, run_ref(r));
}

static void
do_store_later(struct run *r)
{
	run_retry_in(r, RETRY_MS);
}

/* A full disk, or a descriptor, may be there again. */
static void
run_retry_cb(void *arg)
{
	struct run *r = arg;

	if (r->phase == RUN_STORING)
		do_store(r);
	else if (r->phase == RUN_READING)
		do_read_log(r);
	else if (r->phase == RUN_SENT && r->is_unfit)
		run_sandbox_gone(r, RUNLOG_INTERNAL, ERR_DB,
		    "what the run was asked to do cannot be read from the "
		    "database any more: start it again");
	else if (r->phase == RUN_SENT)
		run_happen(r, RUN_WORKER_CAME);
}

/* What is on disk is what everybody may see from now on. */
static void
do_say_ended(struct run *r)
{
	run_row_close(&r->row, &r->ending);
	r->row.spool_bytes = r->length;
	artifacts_take(&r->artifacts, &r->row);
	run_say(r, BUS_RUN_ENDED, NULL);
}

/* ---- steps */

static const struct {
	enum run_deed deed;
	void (*act)(struct run *r);
} acts[] = {
    {RUN_DO_SEND, do_send},
    {RUN_DO_TELL_CANCEL, do_tell_cancel},
    {RUN_DO_LEAVE_SANDBOX, do_leave_sandbox},
    {RUN_DO_READ_LOG, do_read_log},
    {RUN_DO_FINISH, do_finish},
    {RUN_DO_STORE, do_store},
    {RUN_DO_STORE_LATER, do_store_later},
    {RUN_DO_FORGET, do_forget},
    {RUN_DO_SAY_ENDED, do_say_ended},
    {RUN_DO_LEAVE, run_leave},
};

static void
run_happen(struct run *r, enum run_happening what)
{
	struct run_move m = run_step(r->phase, what);

	if (m.to != r->phase) {
		log_debug("run %llu: from %s to %s",
		    (unsigned long long)r->row.id, run_phase_name(r->phase),
		    run_phase_name(m.to));
		run_set_phase(r, m.to);
	}
	(void)run_ref(r);
	for (size_t i = 0; i < ARRAY_LEN(acts); i++)
		if (m.deeds & acts[i].deed)
			acts[i].act(r);
	run_unref(r);
}

/* ---- making */

static void
recorded_cb(int rc, const struct err *why, void *arg)
{
	struct run *r = arg;
	struct err e;

	/* What ended its sandbox is why it could not be written either. */
	if (rc != 0 && r->fail_code != 0) {
		(void)err_set(&e, r->fail_code, "%s", r->why_text);
		why = &e;
	}
	r->recorded = rc == 0 ? RUN_IS_RECORDED : RUN_WAS_REFUSED;
	run_say(r, rc == 0 ? BUS_RUN_RECORDED : BUS_RUN_REFUSED, why);
	if (rc != 0)
		run_cancel(r, RUNLOG_INTERNAL); /* never acknowledged */
	else
		run_let_go(r);
	run_unref(r);
}

int
run_create(struct runs *rs, struct sandbox *sb, struct run_wish *w,
    struct run **out, struct err *e)
{
	struct store_log *log;
	uint8_t *spec;
	struct run *r;
	size_t n;

	if (run_wish_encode(w, &spec, &n, e) != 0)
		return e->code;
	if (store_log_open(rs->parts.store, &w->uuid, &log, e) != 0) {
		free(spec);
		return e->code;
	}
	r = run_new(rs, sb);
	run_row_begin(&r->row, w, rs->next_id++, &sb->row, rs->parts.conf);
	r->row.spec = spec;
	r->row.spec_len = n;
	run_asked_note(&r->row);
	r->made_us = clock_mono_us();
	r->log = log;
	r->merge = w->merge;
	run_enter(r);
	store_run_begin(
	    rs->parts.store, &r->row, log, w->when, recorded_cb, run_ref(r));
	sched_add(&sb->queue, &r->turn, w->lock);
	*out = r;
	return 0;
}

/* Whether it had begun shows in its log. */
static void
restore_place(struct run *r)
{
	bool lock = r->row.wants_lock;

	r->length = store_log_length(r->log);
	if (r->length > 0) {
		sched_add_running(&r->sandbox->queue, &r->turn, lock);
		run_set_phase(r, RUN_SENT);
	} else {
		r->is_doubtful = true;
		sched_add(&r->sandbox->queue, &r->turn, lock);
	}
}

int
run_restore(struct runs *rs, struct sandbox *sb, const struct run_fate *fate,
    const struct store_run *row, struct run **out, struct err *e)
{
	struct store_log *log;
	struct run *r;

	if (store_log_reopen(rs->parts.store, &row->uuid, &log, e) != 0)
		return e->code;
	r = run_new(rs, sb);
	store_run_copy(&r->row, row);
	run_asked_restored(&r->asked, &r->row);
	r->is_reread = true;
	r->merge = r->row.language[0] != '\0' ? RUN_MERGED : RUN_APART;
	r->recorded = RUN_IS_RECORDED;
	r->log = log;
	run_enter(r);
	artifacts_restored(&r->artifacts);
	*out = r;
	if (sb != NULL) {
		restore_place(r);
		return 0;
	}
	run_set_phase(r, RUN_SENT); /* perhaps: its log says */
	run_sandbox_gone(r, fate->reason, fate->code, fate->text);
	return 0;
}

struct log_view *
run_view(struct run *r)
{
	const struct log_caps caps = run_wish_caps(&r->row, r->merge);

	if (r->view == NULL)
		r->view = log_view_open_run(
		    r->runs->parts.logs, r->log, r->row.ncommands, &caps);
	return r->view;
}

/* ---- what happens to it */

void
run_record(struct run *r)
{
	store_run_hurry(r->runs->parts.store, r->row.id);
}

void
run_cancel(struct run *r, enum runlog_reason reason)
{
	if (r->phase > RUN_SENT)
		return;
	r->cancel = reason;
	if (r->phase == RUN_WAITING) {
		r->why = reason;
		r->fail_code = ERR_WRONG_STATE;
	}
	run_happen(r, RUN_CANCEL);
}

void
run_start(struct run *r)
{
	r->worker = r->sandbox->worker;
	r->sent_wall_us = clock_wall_us();
	r->row.sent_ms = r->sent_wall_us / 1000;
	run_happen(r, RUN_ITS_TURN);
	if (r->sandbox->state == SANDBOX_READY)
		run_set_deadline(r);
	run_say(r, BUS_RUN_SENT, NULL);
	r->is_doubtful = false;
}

void
run_set_deadline(struct run *r)
{
	uint64_t at = clock_mono_ms() +
	    (uint64_t)conf_int(r->runs->parts.conf, CONF_RUN_GRACE_MS);

	if (r->deadline_ms == 0)
		for (uint32_t i = 0; i < r->row.ncommands; i++)
			at += r->row.commands[i].timeout_ms;
	if (at > r->deadline_ms)
		r->deadline_ms = at;
}

void
run_resend(struct run *r)
{
	store_log_share(r->log); /* the one before may not be dead yet */
	artifacts_begin_anew(&r->artifacts);
	r->worker = r->sandbox->worker;
	run_happen(r, RUN_WORKER_CAME);
}

void
run_sandbox_gone(
    struct run *r, enum runlog_reason reason, int code, const char *text)
{
	if (r->phase > RUN_SENT)
		return;
	if (reason == RUNLOG_LOST && is_overdue(r, clock_mono_ms())) {
		reason = RUNLOG_TIMEOUT;
		text = "the run is over its limits and its agent does not "
		       "answer: its sandbox was replaced";
	}
	r->why = reason;
	xset_text(&r->why_text, text);
	r->fail_code = code;
	r->is_lost = true;
	if (r->phase == RUN_SENT) /* its worker may still be writing */
		store_log_share(r->log);
	run_happen(r, RUN_SANDBOX_GONE);
}

void
run_move(struct run *r, struct sandbox *to)
{
	r->sandbox = to;
	r->worker = to->worker;
	r->row.sandbox = to->row.id;
	xset_text(&r->row.sandbox_name, to->row.name);
	r->changes++;
	store_run_move(r->runs->parts.store, r->row.id, to->row.id,
	    to->row.name, NULL, NULL);
}

void
run_set_container(struct run *r, const char *container_id)
{
	xset_text(&r->row.container_id, container_id);
	r->changes++;
}

void
run_on_bytes(struct run *r, uint64_t length)
{
	if (r->phase != RUN_SENT || length <= r->length)
		return;
	r->length = length;
	run_say(r, BUS_RUN_GREW, NULL);
}

int
run_on_record(struct run *r, const struct span *record, struct err *e)
{
	struct runlog_header h;

	if (run_row_parse(record, &h, e) != 0)
		return e->code;
	if (r->phase == RUN_SENT &&
	    run_row_take(
		&r->row, &r->log_end, &h, record->p + RUNLOG_HEADER_BYTES))
		run_say_command(h.command, r);
	r->changes++;
	if (r->log_end.has_end && r->deadline_ms != 0 && !r->is_for_files) {
		r->is_for_files = true;
		r->deadline_ms = clock_mono_ms() + FILES_MS;
	}
	return 0;
}

int
run_on_ended(struct run *r, const struct msg_run_ended *m, struct err *e)
{
	if (r->phase != RUN_SENT)
		return 0;
	if (m->log.n > 0 && (r->length != 0 || m->log.n != m->length))
		return err_set(e, ERR_PROTO, "a log in two places");
	store_log_hold(r->log, m->log.p, m->log.n, r->view != NULL);
	run_on_bytes(r, m->length);
	r->why = m->reason;
	xset_text(&r->why_text, m->text);
	if (m->artifacts_error[0] != '\0')
		artifacts_fail(&r->artifacts, m->artifacts_error);
	run_happen(r,
	    r->length > LOG_DIGEST_FROM_BYTES ? RUN_WORKER_ENDED_LONG :
						RUN_WORKER_ENDED);
	return 0;
}

/* ---- its files */

static void
answer_cb(void *arg, uint32_t number, int fd, const struct err *why)
{
	const struct run *r = arg;

	msg_send_artifact_fd(run_chan(r),
	    &(struct msg_artifact_fd){.id = r->row.id,
		.tenant = r->row.tenant,
		.file = number,
		.refusal = fd < 0 ? why->msg : "",
		.file_fd = fd < 0 ? -1 : fd});
}

void
run_on_artifact_open(struct run *r, const struct msg_artifact_open *m)
{
	const struct artifact_offer offer = {.number = m->file,
	    .size = m->size,
	    .mode = m->mode,
	    .mtime_ns = m->mtime_ns,
	    .path = m->path.p,
	    .path_len = m->path.n};
	struct err e;

	if (r->phase == RUN_SENT) {
		artifacts_offer(&r->artifacts, &offer, answer_cb, r);
		return;
	}
	answer_cb(
	    r, m->file, err_set(&e, ERR_WRONG_STATE, "the run is over"), &e);
}

void
run_on_artifact_done(struct run *r, const struct msg_artifact_done *m)
{
	if (r->phase == RUN_SENT)
		artifacts_done(&r->artifacts, m->file, m->size, m->sha256);
}

void
run_on_artifact_failed(struct run *r, const struct msg_artifact_failed *m)
{
	artifacts_failed(&r->artifacts, m->file);
}
