/*
 * Bytes of the log take one way: task_on_log checks place and credit,
 * take_bytes the order of records, and then all of a piece is written to the
 * spool or none of it is believed.  What the disk does not take waits in
 * pending; then nothing is acknowledged, so the agent's credit ends and its
 * program blocks.  What is in the spool is told once a turn (task_flush), not
 * for each piece, or less often when it is much, and then acknowledged.
 *
 * A log that is short and whole within one turn takes another: it is held in
 * memory and goes to the front with RUN_ENDED; the spool stays empty.  Nothing
 * is held beyond its turn.
 *
 * There are two ends: the log's own (RUN_ENDED is its last record), and one
 * from outside (task_end).  tell_end is behind both, once.
 */
#include "worker/task.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include "common/clock.h"
#include "common/exit.h"
#include "common/fd.h"
#include "common/log.h"
#include "common/msg/msg_gen.h"
#include "common/text.h"
#include "common/timer.h"
#include "common/xmalloc.h"
#include "worker/room_watch.h"

/* A log has at most two records per command and two of its own. */
#define RECORDS_MAX (1u << 20)

static struct log_limit task_limit;

static struct ipc_chan *
front_of(const struct task *t)
{
	return *t->host->front;
}

/* ---- life */

/* *length: what an earlier worker has written there. */
static int
check_spool(int fd, uint64_t *length, struct err *e)
{
	int flags = fcntl(fd, F_GETFL);
	struct stat st;

	if (flags == -1 || fstat(fd, &st) == -1)
		return err_set(e, ERR_PROTO, "spool: %s", strerror(errno));
	if (!S_ISREG(st.st_mode))
		return err_set(e, ERR_PROTO, "spool: no regular file");
	if ((flags & O_ACCMODE) != O_RDWR || (flags & O_APPEND) == 0)
		return err_set(
		    e, ERR_PROTO, "spool: not open to read and append");
	*length = (uint64_t)st.st_size;
	return 0;
}

/* It may hold secrets. */
static void
drop_spec(struct task_start *s)
{
	if (s->spec != NULL)
		explicit_bzero(s->spec, s->nspec);
	free(s->spec);
	s->spec = NULL;
	s->nspec = 0;
}

void
task_start_clear(struct task_start *s)
{
	if (s->spool >= 0)
		(void)close(s->spool);
	s->spool = -1;
	drop_spec(s);
}

static void overdue_cb(void *arg);
static void tell_cb(void *arg);

int
task_new(const struct task_host *host, struct task_start *s,
    const struct task_ops *ops, void *arg, struct task **out, struct err *e)
{
	struct task *t;
	uint64_t length;

	if (check_spool(s->spool, &length, e) != 0) {
		task_start_clear(s);
		return ERR_PROTO;
	}
	t = xcalloc(1, sizeof(*t));
	t->host = host;
	t->ops = ops;
	t->arg = arg;
	t->s = *s;
	t->length = length;
	s->spool = -1;
	s->spec = NULL;
	t->overdue = timer_new(host->base, overdue_cb, t);
	t->tell = timer_new(host->base, tell_cb, t);
	runlog_check_init(&t->check, t->s.ncommands);
	buf_init(&t->records, RECORDS_MAX);
	buf_init(&t->pending, FRAME_WINDOW_BYTES);
	buf_init(&t->held, MSG_RUN_ENDED_LOG_MAX);
	*out = t;
	return 0;
}

/* What an ended run needs no more; it may stay for a while. */
static void
task_release(struct task *t)
{
	if (t->retry != NULL) {
		timer_free(t->retry);
		t->retry = NULL;
		t->host->on_disk(false, "", t->host->arg);
	}
	timer_free(t->overdue);
	t->overdue = NULL;
	timer_free(t->tell);
	t->tell = NULL;
	buf_clear(&t->records);
	buf_clear(&t->pending);
	buf_clear(&t->held);
	drop_spec(&t->s);
}

void
task_free(struct task *t)
{
	if (t == NULL)
		return;
	peer_leave(t->chan);
	task_release(t);
	/* Here, and not before its end is told. */
	task_start_clear(&t->s);
	free(t);
}

/* ---- the log's records */

/* Level debug: what the agent's log says of a command, as it comes. */
static void
tell_command(const struct task *t, const struct runlog_header *h,
    const uint8_t *payload, size_t n)
{
	char run[UUID_TEXT_LEN + 1], tenant[24], command[8], code[16];
	bool is_end = h->type == RUNLOG_COMMAND_ENDED;
	struct runlog_end end = {.exit_code = 0};
	const struct log_field fields[] = {{"said_by", "agent"},
	    {"tenant", tenant}, {"run", run},
	    {"request", t->s.request[0] != '\0' ? t->s.request : NULL},
	    {"command", command}, {"exit_code", is_end ? code : NULL}};

	if (!is_end && h->type != RUNLOG_COMMAND_STARTED)
		return;
	if (is_end && runlog_parse_end(payload, n, &end, NULL) != 0)
		return;
	uuid_format(&t->s.uuid, run);
	(void)snprintf(
	    tenant, sizeof(tenant), "%llu", (unsigned long long)t->s.tenant);
	(void)snprintf(command, sizeof(command), "%u", h->command);
	(void)snprintf(code, sizeof(code), "%d", end.exit_code);
	log_event(LOG_DEBUG, is_end ? "command ended" : "command started",
	    fields, ARRAY_LEN(fields));
}

static void
record_cb(
    const struct runlog_header *h, const uint8_t *record, size_t n, void *arg)
{
	struct task *t = arg;

	wire_put_u16(&t->records, (uint16_t)n);
	if (buf_append(&t->records, record, n) != 0)
		fatal(EXIT_BUG, "task: records of %zu bytes",
		    buf_len(&t->records));
	if (log_get_level() == LOG_DEBUG)
		tell_command(t, h, record + RUNLOG_HEADER_BYTES,
		    n - RUNLOG_HEADER_BYTES);
	if (h->type == RUNLOG_RUN_ENDED &&
	    runlog_parse_run_end(record + RUNLOG_HEADER_BYTES,
		n - RUNLOG_HEADER_BYTES, &t->log_end, NULL) != 0)
		fatal(EXIT_BUG, "task: an end that was checked");
}

static void
tell_front(struct task *t)
{
	if (t->length > t->told)
		msg_send_run_bytes(front_of(t),
		    &(struct msg_run_bytes){
			.id = t->s.id, .length = t->length});
	t->told = t->length;
	t->told_ms = clock_mono_ms();
	timer_stop(t->tell);
	while (buf_len(&t->records) > 0) {
		const uint8_t *p = buf_data(&t->records);
		size_t n = (size_t)(p[0] | p[1] << 8);

		msg_send_run_record(front_of(t),
		    &(struct msg_run_record){
			.id = t->s.id, .record = {p + 2, n}});
		buf_consume(&t->records, n + 2);
	}
	buf_shrink(&t->records);
}

/* ---- the end */

static void
tell_end(struct task *t, enum runlog_reason reason, const char *text,
    const char *artifacts_error)
{
	tell_front(t);
	t->length += buf_len(&t->held);
	msg_send_run_ended(front_of(t),
	    &(struct msg_run_ended){.id = t->s.id,
		.reason = (uint8_t)reason,
		.length = t->length,
		.log = {buf_data(&t->held), buf_len(&t->held)},
		.text = text,
		.artifacts_error = artifacts_error});
	t->state = TASK_OVER;
	task_release(t);
	t->host->on_over(t->host->arg);
}

bool
task_has_artifacts(const struct task *t)
{
	return t->log_end.artifacts != 0;
}

void
task_finish(struct task *t, const char *artifacts_error)
{
	enum runlog_reason reason = (enum runlog_reason)t->log_end.reason;

	if (t->state == TASK_OVER)
		return;
	tell_end(t, t->stopped != 0 ? (enum runlog_reason)t->stopped : reason,
	    "", artifacts_error);
}

void
task_end(struct task *t, enum runlog_reason reason, const char *text)
{
	if (t->state == TASK_OVER)
		return;
	if (t->check.ended && buf_len(&t->pending) == 0) {
		task_finish(t, task_has_artifacts(t) ? text : "");
		return;
	}
	/* The rest of its log is of no use to anybody. */
	peer_close(t->chan);
	t->chan = NULL;
	/* Records behind what could be written are not in the spool. */
	if (buf_len(&t->pending) > 0)
		buf_clear(&t->records);
	tell_end(t, reason, text, "");
}

void
task_tell(enum log_level level, const char *message, const struct task_start *s,
    const char *error)
{
	char run[UUID_TEXT_LEN + 1];
	const struct log_field fields[] = {{"run", run},
	    {"request", s->request[0] != '\0' ? s->request : NULL},
	    {"error", error}};

	uuid_format(&s->uuid, run);
	log_event(level, message, fields, ARRAY_LEN(fields));
}

static void
task_warn(const struct task *t, const char *text)
{
	if (log_may(&task_limit))
		task_tell(LOG_WARN, "run", &t->s, text);
}

/* The agent lied about this run: it is stopped and no byte more believed. */
static void
task_break(struct task *t, const char *why)
{
	char text[ERR_TEXT_MAX];

	(void)snprintf(
	    text, sizeof(text), "the sandbox sent a broken log: %.300s", why);
	task_warn(t, text);
	task_end(t, RUNLOG_INTERNAL, text);
}

/* ---- writing */

/* As much of p as the disk takes; the rest is pending.  Negative: the spool
 * is broken. */
static int
spool_write(struct task *t, const uint8_t *p, size_t n, size_t *written)
{
	*written = 0;
	while (*written < n) {
		ssize_t k = write(t->s.spool, p + *written, n - *written);

		if (k == -1 && errno == EINTR)
			continue;
		if (k == -1 &&
		    (errno == ENOSPC || errno == EDQUOT || errno == EFBIG))
			return 0;
		if (k == -1)
			return -1;
		*written += (size_t)k;
		t->length += (uint64_t)k;
	}
	return 0;
}

static void
spool_broken(struct task *t)
{
	char text[128];

	(void)snprintf(text, sizeof(text), "the run's log cannot be kept: %s",
	    strerror(errno));
	/* What was checked last is not in the spool. */
	buf_clear(&t->records);
	t->check.ended = false;
	task_end(t, RUNLOG_INTERNAL, text);
}

static void
retry_cb(void *arg)
{
	struct task *t = arg;
	size_t n;

	if (spool_write(t, buf_data(&t->pending), buf_len(&t->pending), &n) !=
	    0) {
		spool_broken(t);
		return;
	}
	buf_consume(&t->pending, n);
	if (buf_len(&t->pending) > 0 && ++t->tries == TASK_DISK_TRIES) {
		if (t->chan != NULL) /* the link may be lost as well */
			peer_cancel(t->chan, RUNLOG_DISK_FULL);
		task_end(t, RUNLOG_DISK_FULL, "");
		return;
	}
	if (buf_len(&t->pending) > 0) {
		timer_set_ms(t->retry, TASK_DISK_RETRY_MS);
		return;
	}
	t->tries = 0;
	buf_shrink(&t->pending);
	timer_free(t->retry);
	t->retry = NULL;
	t->host->on_disk(false, "", t->host->arg);
	task_flush(t);
}

static void
disk_is_full(struct task *t)
{
	char text[160];

	if (t->retry != NULL)
		return;
	(void)snprintf(text, sizeof(text), "no room for the logs of runs: %s",
	    strerror(errno));
	task_warn(t, text);
	t->retry = timer_new(t->host->base, retry_cb, t);
	timer_set_ms(t->retry, TASK_DISK_RETRY_MS);
	t->host->on_disk(true, text, t->host->arg);
}

static void
task_store(struct task *t, const uint8_t *p, size_t n)
{
	size_t written = 0;

	if (buf_len(&t->pending) == 0 && spool_write(t, p, n, &written) != 0) {
		spool_broken(t);
		return;
	}
	if (written == n)
		return;
	/* Its credit bounds it. */
	if (buf_append(&t->pending, p + written, n - written) != 0)
		fatal(EXIT_BUG, "task: %zu bytes are pending",
		    buf_len(&t->pending));
	disk_is_full(t);
}

/* What was held goes to the spool after all. */
static void
task_spill(struct task *t)
{
	struct buf held = t->held;

	if (buf_len(&held) == 0)
		return;
	buf_init(&t->held, MSG_RUN_ENDED_LOG_MAX);
	task_store(t, buf_data(&held), buf_len(&held)); /* may end it */
	buf_clear(&held);
}

/* All of a log so far: it may be a short one that ends in this turn. */
static bool
task_hold(struct task *t, const uint8_t *p, size_t n)
{
	return t->length == 0 && buf_len(&t->pending) == 0 &&
	    buf_append(&t->held, p, n) == 0;
}

/* ---- from the agent */

static int
on_known(bool fresh, void *arg, struct err *e)
{
	struct task *t = arg;

	if (t->state != TASK_ASKED)
		return err_set(e, ERR_PROTO, "a run that is known already");
	if (fresh && (t->length > 0 || t->known))
		return err_set(
		    e, ERR_PROTO, "a run was started that had begun before");
	t->state = TASK_GOING;
	t->known = true;
	drop_spec(&t->s); /* the agent has it for its life */
	return 0;
}

/* Before the log is whole it can only be a refusal, or a log that the agent
 * has not kept. */
static void
on_close(int code, const char *why, void *arg)
{
	char clean[FRAME_CLOSE_TEXT_MAX + 1], text[ERR_TEXT_MAX];
	struct task *t = arg;

	(void)code;
	t->chan = NULL;
	if (t->state > TASK_GOING)
		return;
	text_clean(clean, sizeof(clean), why, strlen(why));
	(void)snprintf(
	    text, sizeof(text), "the sandbox refused the run: %s", clean);
	task_end(t,
	    t->length == 0 && !t->known ? RUNLOG_START_FAILED : RUNLOG_LOST,
	    text);
}

static void
on_lost(void *arg)
{
	struct task *t = arg;

	t->chan = NULL;
}

/* The run is stopped, its last words are still taken. */
static void
task_stop(struct task *t, enum runlog_reason reason, uint64_t most)
{
	if (t->stopped == 0) {
		t->stopped = (uint8_t)reason;
		t->most = most;
		peer_cancel(t->chan, reason);
	}
}

/* How long its log may become with so much room on the disk. */
static uint64_t
disk_limit(const struct task *t, enum room_level room)
{
	switch (room) {
	case ROOM_LOW:
		return TASK_LOW_BYTES;
	case ROOM_OUT:
		return TASK_OUT_BYTES;
	default:
		return t->s.spool_limit;
	}
}

/* Whether its log may have n bytes more. */
static bool
has_place(struct task *t, size_t n)
{
	enum room_level room = room_watch_level(t->host->room, t->s.spool, n);
	uint64_t end = t->check.scan.offset + n;

	if (end > t->s.spool_limit)
		task_stop(t, RUNLOG_OUTPUT_LIMIT,
		    t->s.spool_limit + TASK_MARGIN_BYTES);
	if (end > disk_limit(t, room))
		task_stop(t, RUNLOG_DISK_FULL,
		    room == ROOM_OUT ? 0 : end + TASK_MARGIN_BYTES);
	if (t->stopped == 0 ||
	    (end <= t->most && (room != ROOM_OUT || end <= TASK_OUT_BYTES)))
		return true;
	task_end(t, (enum runlog_reason)t->stopped, "");
	return false;
}

/* Nothing of a piece that is wrong anywhere is kept. */
static void
take_bytes(struct task *t, const uint8_t *p, size_t n)
{
	const struct runlog_check before = t->check;
	const size_t nrecords = buf_len(&t->records);
	struct err e;

	if (runlog_check_feed(&t->check, p, n, record_cb, t, &e) == 0) {
		if (task_hold(t, p, n))
			return;
		task_spill(t);
		if (t->state != TASK_OVER)
			task_store(t, p, n);
		return;
	}
	t->check = before;
	buf_truncate(&t->records, nrecords);
	task_break(t, e.msg);
}

static int
on_data(const uint8_t *p, size_t n, void *arg, struct err *e)
{
	struct task *t = arg;

	if (t->state == TASK_ASKED)
		return err_set(e, ERR_PROTO, "the log of a run not known yet");
	if (t->state > TASK_GOING)
		return err_set(e, ERR_PROTO, "bytes behind a log's end");
	if (has_place(t, n))
		take_bytes(t, p, n);
	return 0;
}

static const struct peer_chan_ops task_chan_ops = {.on_known = on_known,
    .on_data = on_data,
    .on_close = on_close,
    .on_lost = on_lost};

/* A little is freed with what follows, or with the log.  Who writes a lot is
 * told twice a window: each time wakes its agent. */
static bool
is_ack_due(const struct task *t, uint64_t fresh)
{
	uint64_t most = TASK_UNACKED_MAX;

	if (fresh >= TASK_ACK_BYTES / 4 && !t->check.ended)
		most = TASK_ACK_BYTES;
	return t->length - t->acked > most;
}

/* Each message wakes the front, and who follows the run's log.  A record is
 * told at once, and so is what comes after a pause. */
static bool
is_tell_due(const struct task *t)
{
	return buf_len(&t->records) > 0 ||
	    clock_mono_ms() - t->told_ms >= TASK_TELL_MS;
}

static void
tell_cb(void *arg)
{
	struct task *t = arg;

	/* What is pending is told when it is in the spool. */
	if (buf_len(&t->pending) == 0)
		tell_front(t);
}

void
task_flush(struct task *t)
{
	uint64_t fresh;

	if (!t->check.ended || task_has_artifacts(t))
		task_spill(t);
	if (t->state == TASK_OVER || buf_len(&t->pending) > 0)
		return;
	fresh = t->length - t->turn;
	t->turn = t->length;
	if (is_tell_due(t))
		tell_front(t);
	else if (t->length > t->told && !timer_is_set(t->tell))
		timer_set_ms(t->tell, TASK_TELL_MS);
	if (t->chan != NULL && is_ack_due(t, fresh)) {
		peer_take(t->chan, t->length);
		t->acked = t->length;
	}
	if (t->check.ended && t->state != TASK_COMPLETE) {
		t->state = TASK_COMPLETE;
		timer_stop(t->overdue);
		t->ops->on_complete(t, t->arg);
	}
}

/* ---- an agent that does not end it */

static bool
is_read(const struct task *t)
{
	struct ipc_chan *front = front_of(t);

	return buf_len(&t->pending) == 0 &&
	    (front == NULL || !ipc_chan_is_full(front));
}

/* What is late may be here already and unread, for want of disk or of a front
 * that listens, or because this process was stopped. */
static void
overdue_cb(void *arg)
{
	struct task *t = arg;

	/* Nobody can reach the agent: whether it comes again in time is its
	 * box's to see, and what it has done meanwhile it tells then. */
	if (t->peer == NULL) {
		t->overdue_away = true;
		return;
	}
	if (!is_read(t) || !t->overdue_once) {
		t->overdue_once = is_read(t);
		timer_set_ms(t->overdue, TASK_OVERDUE_AGAIN_MS);
		return;
	}
	task_end(t,
	    t->cancel != 0 ? (enum runlog_reason)t->cancel : RUNLOG_TIMEOUT,
	    "the sandbox's agent did not end the run in time");
	t->ops->on_overdue(t, t->arg);
}

/* ---- to the agent */

void
task_send(struct task *t)
{
	if (t->state != TASK_WAITING || t->peer == NULL ||
	    !peer_has_room(t->peer, t->s.nspec))
		return;
	if (!timer_is_set(t->overdue) && !t->overdue_away)
		timer_set_ms(t->overdue, t->s.limit_ms + t->host->grace_ms);
	t->state = TASK_ASKED;
	t->acked = t->check.scan.offset;
	t->chan = peer_open_sequence(t->peer,
	    (struct frame_open_sequence){.run = t->s.uuid,
		.from = t->acked,
		.spec = {t->s.spec, t->known ? 0 : t->s.nspec}},
	    &task_chan_ops, t);
	if (t->cancel != 0)
		peer_cancel(t->chan, (enum runlog_reason)t->cancel);
	else if (t->stopped != 0)
		peer_cancel(t->chan, (enum runlog_reason)t->stopped);
}

void
task_attach(struct task *t, struct peer *p, const struct peer_run *known)
{
	t->peer = p;
	if (t->state >= TASK_COMPLETE)
		return;
	if (t->overdue_away)
		timer_set_ms(t->overdue, t->host->grace_ms);
	t->overdue_away = false;
	t->state = TASK_WAITING;
	if (known != NULL && known->from > t->check.scan.offset) {
		task_end(t, RUNLOG_LOST,
		    "the sandbox does not keep all of the run's log");
		return;
	}
	if (known == NULL && (t->check.scan.offset > 0 || t->known)) {
		task_end(t, RUNLOG_LOST,
		    "the sandbox does not know the run any more");
		return;
	}
	if (known == NULL && t->cancel != 0) { /* it never began */
		task_end(t, (enum runlog_reason)t->cancel, "");
		return;
	}
	if (known != NULL)
		t->known = true;
	task_send(t);
}

void
task_detach(struct task *t)
{
	t->peer = NULL;
	peer_leave(t->chan);
	t->chan = NULL;
	if (t->state < TASK_COMPLETE)
		t->state = TASK_WAITING;
	/* This turn's end may be long in coming. */
	task_spill(t);
}

void
task_cancel(struct task *t, enum runlog_reason reason)
{
	if (t->cancel != 0 || t->state >= TASK_COMPLETE)
		return;
	t->cancel = (uint8_t)reason;
	if (timer_is_set(t->overdue))
		timer_set_ms(t->overdue, t->host->grace_ms);
	if (t->chan != NULL)
		peer_cancel(t->chan, reason);
}

void
task_forget(struct task *t)
{
	if (t->chan != NULL && t->check.ended)
		peer_forget(t->chan);
	else if (t->chan != NULL)
		peer_close(t->chan);
	else if (t->peer != NULL)
		peer_discard(t->peer, &t->s.uuid, t->length);
	t->chan = NULL;
}

/* ---- what the spool has */

/* Blocks that a file system gave it and did not write before the power went
 * are taken off; what was there had been told.  So it is not begun anew,
 * and an agent that does not keep it any more has lost it. */
static int
cut_zeros(struct task *t, struct err *e)
{
	uint64_t good =
	    t->check.ended ? t->check.scan.offset : t->check.scan.at;
	char text[128];

	if (t->length - good > TASK_ZEROS_MAX ||
	    !fd_is_zero(t->s.spool, good, t->length))
		return e->code;
	if (ftruncate(t->s.spool, (off_t)good) == -1)
		return err_set(e, ERR_SYS, "cut: %s", strerror(errno));
	(void)snprintf(text, sizeof(text),
	    "its log on disk had %llu zeros behind its last record, they are "
	    "cut off",
	    (unsigned long long)(t->length - good));
	task_warn(t, text);
	buf_clear(&t->records);
	runlog_check_init(&t->check, t->s.ncommands);
	t->length = good;
	t->known = true;
	return good == 0 ? 0 :
			   runlog_check_file(&t->check, t->s.spool, t->length,
			       record_cb, t, e);
}

void
task_begin(struct task *t)
{
	char text[ERR_TEXT_MAX];
	struct err e;
	int rc;

	if (t->length == 0)
		return;
	rc = runlog_check_file(
	    &t->check, t->s.spool, t->length, record_cb, t, &e);
	if (rc == ERR_PROTO)
		rc = cut_zeros(t, &e);
	if (rc != 0) {
		(void)snprintf(text, sizeof(text),
		    "the run's log on disk is damaged: %.300s", e.msg);
		task_end(t, RUNLOG_INTERNAL, text);
		return;
	}
	t->acked = t->length;
	task_flush(t);
}
