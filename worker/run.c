#include "worker/run.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#include <event2/event.h>

#include "common/log.h"
#include "common/xmalloc.h"
#include "worker/report.h"
#include "worker/text.h"

#define EXIT_BUG 70
#define EXIT_MEMORY 71
/* A log has at most two records per command and two of its own. */
#define RECORDS_MAX (1u << 20)

static struct log_limit run_limit;

static struct ipc_chan *
front_of(const struct run *r)
{
	return *r->host->front;
}

/* ---- life */

static int
check_spool(int fd, struct err *e)
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
	return 0;
}

static void
start_clear(struct run_start *s)
{
	if (s->spool >= 0)
		(void)close(s->spool);
	s->spool = -1;
	free(s->spec);
	s->spec = NULL;
	s->nspec = 0;
}

int
run_new(const struct run_host *host, struct run_start *s,
    void (*on_complete)(struct run *, void *), void *arg, struct run **out,
    struct err *e)
{
	struct run *r;

	if (check_spool(s->spool, e) != 0) {
		start_clear(s);
		return ERR_PROTO;
	}
	r = xcalloc(1, sizeof(*r));
	r->host = host;
	r->on_complete = on_complete;
	r->arg = arg;
	r->s = *s;
	s->spool = -1;
	s->spec = NULL;
	runlog_check_init(&r->check, r->s.ncommands);
	buf_init(&r->records, RECORDS_MAX);
	buf_init(&r->pending, FRAME_WINDOW_BYTES);
	*out = r;
	return 0;
}

/* What an ended run needs no more; it may stay for a while. */
static void
run_release(struct run *r)
{
	if (r->retry != NULL) {
		event_free(r->retry);
		r->retry = NULL;
		r->host->on_disk(false, "", r->host->arg);
	}
	buf_clear(&r->records);
	buf_clear(&r->pending);
	start_clear(&r->s);
}

void
run_free(struct run *r)
{
	if (r == NULL)
		return;
	run_release(r);
	free(r);
}

/* ---- the log's records */

static void
record_cb(
    const struct runlog_header *h, const uint8_t *record, size_t n, void *arg)
{
	struct run *r = arg;

	wire_put_u16(&r->records, (uint16_t)n);
	if (buf_append(&r->records, record, n) != 0)
		fatal(EXIT_BUG, "run: records of %zu bytes",
		    buf_len(&r->records));
	if (h->type == RUNLOG_RUN_ENDED &&
	    runlog_parse_run_end(record + RUNLOG_HEADER_BYTES,
		n - RUNLOG_HEADER_BYTES, &r->log_end, NULL) != 0)
		fatal(EXIT_BUG, "run: an end that was checked");
}

static void
tell_front(struct run *r)
{
	if (r->length > r->told)
		report_bytes(front_of(r), r->s.id, r->length);
	r->told = r->length;
	while (buf_len(&r->records) > 0) {
		const uint8_t *p = buf_data(&r->records);
		size_t n = (size_t)(p[0] | p[1] << 8);

		report_record(front_of(r), r->s.id, p + 2, n);
		buf_consume(&r->records, n + 2);
	}
	buf_shrink(&r->records);
}

/* ---- the end */

static void
tell_end(struct run *r, enum runlog_reason reason, const char *text,
    uint32_t files, const char *artifacts_error)
{
	struct report_end end = {.reason = reason,
	    .length = r->length,
	    .text = text,
	    .files = files,
	    .artifacts_error = artifacts_error};

	tell_front(r);
	report_ended(front_of(r), r->s.id, &end);
	r->state = RUN_OVER;
	run_release(r);
	r->host->on_over(r->host->arg);
}

bool
run_has_artifacts(const struct run *r)
{
	return r->log_end.artifacts != 0;
}

void
run_finish(struct run *r, uint32_t files, const char *artifacts_error)
{
	enum runlog_reason reason = (enum runlog_reason)r->log_end.reason;

	if (r->state == RUN_OVER)
		return;
	tell_end(r, r->limited ? RUNLOG_OUTPUT_LIMIT : reason, "", files,
	    artifacts_error);
}

void
run_end(struct run *r, enum runlog_reason reason, const char *text)
{
	if (r->state == RUN_OVER)
		return;
	if (r->check.ended && buf_len(&r->pending) == 0) {
		run_finish(r, 0, run_has_artifacts(r) ? text : "");
		return;
	}
	/* Records behind what could be written are not in the spool. */
	if (buf_len(&r->pending) > 0)
		buf_clear(&r->records);
	tell_end(r, reason, text, 0, "");
}

/* The agent lied about this run: it is stopped and no byte more believed. */
static void
run_break(struct run *r, const char *why)
{
	char text[ERR_TEXT_MAX];

	(void)snprintf(
	    text, sizeof(text), "the sandbox sent a broken log: %.300s", why);
	log_warn_limited(
	    &run_limit, "run %llu: %s", (unsigned long long)r->s.id, text);
	if (r->peer != NULL)
		peer_run_cancel(r->peer, &r->s.uuid, RUNLOG_INTERNAL);
	run_end(r, RUNLOG_INTERNAL, text);
}

/* ---- writing */

/* As much of p as the disk takes; the rest is pending.  Negative: the spool
 * is broken. */
static int
spool_write(struct run *r, const uint8_t *p, size_t n, size_t *written)
{
	*written = 0;
	while (*written < n) {
		ssize_t k = write(r->s.spool, p + *written, n - *written);

		if (k == -1 && errno == EINTR)
			continue;
		if (k == -1 &&
		    (errno == ENOSPC || errno == EDQUOT || errno == EFBIG))
			return 0;
		if (k == -1)
			return -1;
		*written += (size_t)k;
		r->length += (uint64_t)k;
	}
	return 0;
}

static void
spool_broken(struct run *r)
{
	char text[128];

	(void)snprintf(text, sizeof(text), "the run's log cannot be kept: %s",
	    strerror(errno));
	if (r->peer != NULL)
		peer_run_cancel(r->peer, &r->s.uuid, RUNLOG_INTERNAL);
	/* What was checked last is not in the spool. */
	buf_clear(&r->records);
	r->check.ended = false;
	run_end(r, RUNLOG_INTERNAL, text);
}

static void
retry_later(struct run *r)
{
	static const struct timeval tv = {0, RUN_DISK_RETRY_MS * 1000};

	(void)evtimer_add(r->retry, &tv);
}

static void
retry_cb(evutil_socket_t fd, short what, void *arg)
{
	struct run *r = arg;
	size_t n;

	(void)fd;
	(void)what;
	if (spool_write(r, buf_data(&r->pending), buf_len(&r->pending), &n) !=
	    0) {
		spool_broken(r);
		return;
	}
	buf_consume(&r->pending, n);
	if (buf_len(&r->pending) > 0) {
		retry_later(r);
		return;
	}
	buf_shrink(&r->pending);
	event_free(r->retry);
	r->retry = NULL;
	r->host->on_disk(false, "", r->host->arg);
	run_flush(r);
}

static void
disk_is_full(struct run *r)
{
	char text[160];

	if (r->retry != NULL)
		return;
	(void)snprintf(text, sizeof(text),
	    "no room for the logs of runs: %s; runs wait until there is",
	    strerror(errno));
	log_warn_limited(
	    &run_limit, "run %llu: %s", (unsigned long long)r->s.id, text);
	r->retry = evtimer_new(r->host->base, retry_cb, r);
	if (r->retry == NULL)
		fatal(EXIT_MEMORY, "no memory for a timer");
	retry_later(r);
	r->host->on_disk(true, text, r->host->arg);
}

static void
run_store(struct run *r, const uint8_t *p, size_t n)
{
	size_t written = 0;

	if (buf_len(&r->pending) == 0 && spool_write(r, p, n, &written) != 0) {
		spool_broken(r);
		return;
	}
	if (written == n)
		return;
	/* Its credit bounds it. */
	if (buf_append(&r->pending, p + written, n - written) != 0)
		fatal(EXIT_BUG, "run: %zu bytes are pending",
		    buf_len(&r->pending));
	disk_is_full(r);
}

/* ---- from the agent */

int
run_on_known(struct run *r, bool fresh, struct err *e)
{
	if (r->state != RUN_ASKED)
		return 0; /* ended here meanwhile */
	if (fresh && (r->length > 0 || r->known))
		return err_set(
		    e, ERR_PROTO, "a run was started that had begun before");
	r->state = RUN_GOING;
	r->known = true;
	free(r->s.spec); /* the agent has it for its life */
	r->s.spec = NULL;
	r->s.nspec = 0;
	return 0;
}

void
run_on_refused(struct run *r, const char *why)
{
	char clean[PEER_WHY_MAX + 1], text[ERR_TEXT_MAX];

	if (r->state != RUN_ASKED)
		return;
	text_clean(clean, sizeof(clean), why, strlen(why));
	(void)snprintf(
	    text, sizeof(text), "the sandbox refused the run: %s", clean);
	run_end(r,
	    r->length == 0 && !r->known ? RUNLOG_START_FAILED : RUNLOG_LOST,
	    text);
}

/* Over the limit: the run is stopped, its last words are still taken. */
static bool
is_within_limit(struct run *r, size_t n)
{
	uint64_t end = r->check.scan.offset + n;

	if (end <= r->s.spool_limit)
		return true;
	if (!r->limited) {
		r->limited = true;
		if (r->peer != NULL)
			peer_run_cancel(
			    r->peer, &r->s.uuid, RUNLOG_OUTPUT_LIMIT);
	}
	if (end <= r->s.spool_limit + RUN_MARGIN_BYTES)
		return true;
	run_end(r, RUNLOG_OUTPUT_LIMIT, "");
	return false;
}

/* Nothing of a piece that is wrong anywhere is kept. */
static void
take_bytes(struct run *r, const uint8_t *p, size_t n)
{
	const struct runlog_check before = r->check;
	const size_t nrecords = buf_len(&r->records);
	struct err e;

	if (runlog_check_feed(&r->check, p, n, record_cb, r, &e) == 0) {
		run_store(r, p, n);
		return;
	}
	r->check = before;
	r->records.end -= buf_len(&r->records) - nrecords;
	run_break(r, e.msg);
}

void
run_on_log(struct run *r, uint64_t offset, const uint8_t *p, size_t n)
{
	struct err e;

	if (r->state != RUN_GOING) {
		/* Ended here: let the agent's buffer run empty and go. */
		if (r->peer != NULL) {
			peer_run_ack(r->peer, &r->s.uuid, offset + n);
			peer_run_forget(r->peer, &r->s.uuid);
		}
		return;
	}
	if (offset != r->check.scan.offset) {
		(void)err_set(&e, ERR_PROTO, "bytes from %llu, want %llu",
		    (unsigned long long)offset,
		    (unsigned long long)r->check.scan.offset);
		run_break(r, e.msg);
	} else if (offset + n > r->acked + FRAME_WINDOW_BYTES) {
		run_break(r, "bytes beyond its credit");
	} else if (is_within_limit(r, n)) {
		take_bytes(r, p, n);
	}
}

void
run_flush(struct run *r)
{
	if (r->state == RUN_OVER || buf_len(&r->pending) > 0)
		return;
	tell_front(r);
	/* The end of a short log is forgotten soon, which frees as much. */
	if (r->peer != NULL && r->length > r->acked &&
	    (!r->check.ended || r->length - r->acked > RUN_UNACKED_MAX)) {
		peer_run_ack(r->peer, &r->s.uuid, r->length);
		r->acked = r->length;
	}
	if (r->check.ended && r->state != RUN_COMPLETE) {
		r->state = RUN_COMPLETE;
		r->on_complete(r, r->arg);
	}
}

/* ---- to the agent */

void
run_send(struct run *r)
{
	if (r->state != RUN_WAITING || r->peer == NULL ||
	    !peer_has_room(r->peer, r->s.nspec))
		return;
	r->state = RUN_ASKED;
	r->acked = r->check.scan.offset;
	peer_run_start(r->peer, &r->s.uuid, r->acked, r->s.spec,
	    r->known ? 0 : r->s.nspec);
	if (r->cancel != 0)
		peer_run_cancel(
		    r->peer, &r->s.uuid, (enum runlog_reason)r->cancel);
	else if (r->limited)
		peer_run_cancel(r->peer, &r->s.uuid, RUNLOG_OUTPUT_LIMIT);
}

void
run_attach(struct run *r, struct peer *p, const struct peer_run *known)
{
	r->peer = p;
	if (r->state >= RUN_COMPLETE)
		return;
	r->state = RUN_WAITING;
	if (known != NULL && known->from > r->check.scan.offset) {
		run_end(r, RUNLOG_LOST,
		    "the sandbox does not keep all of the run's log");
		return;
	}
	if (known == NULL && (r->check.scan.offset > 0 || r->known)) {
		run_end(r, RUNLOG_LOST,
		    "the sandbox does not know the run any more");
		return;
	}
	if (known == NULL && r->cancel != 0) { /* it never began */
		run_end(r, (enum runlog_reason)r->cancel, "");
		return;
	}
	if (known != NULL)
		r->known = true;
	run_send(r);
}

void
run_detach(struct run *r)
{
	r->peer = NULL;
	if (r->state < RUN_COMPLETE)
		r->state = RUN_WAITING;
}

void
run_cancel(struct run *r, enum runlog_reason reason)
{
	if (r->cancel != 0 || r->state >= RUN_COMPLETE)
		return;
	r->cancel = (uint8_t)reason;
	if (r->peer != NULL && r->state != RUN_WAITING)
		peer_run_cancel(r->peer, &r->s.uuid, reason);
}

/* ---- what the spool has */

void
run_begin(struct run *r)
{
	char text[ERR_TEXT_MAX];
	struct stat st;
	struct err e;

	if (fstat(r->s.spool, &st) == -1 || st.st_size == 0)
		return;
	r->length = (uint64_t)st.st_size;
	if (runlog_check_file(
		&r->check, r->s.spool, r->length, record_cb, r, &e) != 0) {
		(void)snprintf(text, sizeof(text),
		    "the run's log on disk is damaged: %.300s", e.msg);
		run_end(r, RUNLOG_INTERNAL, text);
		return;
	}
	r->acked = r->length;
	run_flush(r);
}
