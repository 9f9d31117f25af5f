#include "supervisor/service/internal.h"

#include <fcntl.h>
#include <stdio.h>

#include "common/clock.h"
#include "common/js.h"
#include "common/log.h"
#include "common/utf8.h"
#include "common/xmalloc.h"

#define CHUNK_BYTES (RUNLOG_HEADER_BYTES + RUNLOG_PAYLOAD_MAX)
#define MERGE_BYTES 49152 /* records of one stream told as one event */
#define ID_ARTIFACTS "artifacts"
#define ID_END "end"

enum follow_stage {
	FOLLOW_LOG,
	FOLLOW_ARTIFACTS,
	FOLLOW_FINAL,
	FOLLOW_OVER
};

struct follow {
	struct service *service;
	const struct follow_ops *ops;
	void *arg;
	struct run *run;      /* live: holds a reference */
	struct store_run row; /* from the database, when not live */
	int fd;               /* its spool, or -1 */
	struct event *later;  /* ready is never called inside follow_open */
	enum follow_stage stage;
	uint64_t offset;
	uint64_t from; /* asked for by Last-Event-ID */
	int rc;
	struct err why;
	bool reading; /* a store_run_get is in flight */
	bool closed;
	bool waiting;
	char *data;
	char id[32];
	char run_id[UUID_TEXT_LEN + 1];
	LIST_ENTRY(follow) link;
};

static const struct store_run *
follow_row(const struct follow *f)
{
	return f->run != NULL ? &f->run->row : &f->row;
}

static struct log_source
follow_log(const struct follow *f)
{
	struct log_source l = {f->fd, f->row.log, f->row.spool_bytes};

	if (f->run != NULL)
		return run_log_source(f->run);
	if (f->row.log != NULL)
		l.length = f->row.log_len;
	else if (f->fd < 0)
		l.length = 0;
	return l;
}

static bool
run_is_over(const struct follow *f)
{
	return f->run == NULL || f->run->phase == RUN_DONE;
}

/* ---- opening */

static int
parse_last_id(struct follow *f, const char *text)
{
	char *end;

	if (text == NULL || text[0] == '\0')
		return 0;
	if (strcmp(text, ID_ARTIFACTS) == 0) {
		f->stage = FOLLOW_FINAL;
		return 0;
	}
	if (strcmp(text, ID_END) == 0) {
		f->stage = FOLLOW_OVER;
		return 0;
	}
	if (strspn(text, "0123456789") != strlen(text) || strlen(text) > 18)
		return ERR_INVAL;
	f->from = strtoull(text, &end, 10);
	return 0;
}

/* An id is the offset behind a record: there the next one begins. */
static int
check_offset(struct follow *f)
{
	struct log_source l = follow_log(f);
	uint8_t head[RUNLOG_HEADER_BYTES];
	struct runlog_header h;

	if (f->from > l.length)
		return ERR_INVAL;
	if (l.length - f->from >= sizeof(head) &&
	    (logview_read(&l, f->from, head, sizeof(head)) != sizeof(head) ||
		runlog_parse_header(head, &h, NULL) != 0))
		return ERR_INVAL;
	f->offset = f->from;
	return 0;
}

/* The callee may close f: what it is told must not be f's. */
static void
follow_ready(struct follow *f)
{
	struct err why;

	if (f->rc == 0 && check_offset(f) != 0)
		f->rc = err_set(&f->why, ERR_INVAL,
		    "Last-Event-ID is not an event of this run");
	why = f->why;
	f->ops->ready(f, f->rc, f->rc == 0 ? NULL : &why, f->arg);
}

static void
follow_later_cb(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	follow_ready(arg);
}

static void
follow_free(struct follow *f)
{
	if (f->run != NULL) {
		LIST_REMOVE(f, link);
		run_unref(f->run);
	}
	if (f->later != NULL)
		event_free(f->later);
	if (f->fd >= 0)
		(void)close(f->fd);
	store_run_clear(&f->row);
	free(f->data);
	f->service->stats.follows--;
	free(f);
}

static void
follow_row_cb(
    int rc, const struct store_run *row, const struct err *why, void *arg)
{
	struct follow *f = arg;

	f->reading = false;
	if (f->closed) {
		follow_free(f);
		return;
	}
	f->rc = rc;
	if (rc != 0) {
		f->why = *why;
	} else {
		store_run_copy(&f->row, row);
		if (row->log == NULL)
			f->fd =
			    store_log_read(f->service->store, &row->uuid, NULL);
	}
	follow_ready(f);
}

static void
follow_soon(struct follow *f)
{
	const struct timeval now = {0, 0};

	f->later = evtimer_new(f->service->base, follow_later_cb, f);
	if (f->later == NULL)
		fatal(71, "out of memory");
	(void)evtimer_add(f->later, &now);
}

struct follow *
follow_open(struct service *s, const struct principal *p,
    const struct uuid *run, const char *last_event_id,
    const struct follow_ops *ops, void *arg)
{
	struct follow *f = xcalloc(1, sizeof(*f));
	struct run *r = run_by_uuid(s, p->tenant, run);

	f->service = s;
	f->ops = ops;
	f->arg = arg;
	f->fd = -1;
	uuid_format(run, f->run_id);
	s->stats.follows++;
	if (parse_last_id(f, last_event_id) != 0) {
		f->rc = err_set(&f->why, ERR_INVAL,
		    "Last-Event-ID is not an event of this run");
		follow_soon(f);
	} else if (r != NULL && r->spool_fd >= 0) {
		f->run = run_ref(r);
		LIST_INSERT_HEAD(&r->follows, f, link);
		follow_soon(f);
	} else {
		f->reading = true;
		store_run_get(s->store, p->tenant, run, follow_row_cb, f);
	}
	return f;
}

void
follow_close(struct follow *f)
{
	if (f == NULL)
		return;
	f->closed = true;
	if (!f->reading)
		follow_free(f);
}

void
follow_run_changed(struct run *r)
{
	struct follow *f, *next;

	for (f = LIST_FIRST(&r->follows); f != NULL; f = next) {
		next = LIST_NEXT(f, link);
		if (!f->waiting)
			continue;
		f->waiting = false;
		f->ops->wake(f, f->arg);
	}
}

/* ---- events */

static enum follow_result
give(struct follow *f, struct follow_event *ev, const char *name, json_t *o)
{
	free(f->data);
	f->data = js_dump(o);
	json_decref(o);
	ev->name = name;
	ev->id = f->id;
	ev->data = f->data;
	ev->data_len = strlen(f->data);
	return FOLLOW_EVENT;
}

static json_t *
base_object(const struct follow *f)
{
	return json_pack("{s:s}", "run_id", f->run_id);
}

static enum follow_result
give_started(
    struct follow *f, struct follow_event *ev, const struct runlog_header *h)
{
	const struct store_run *row = follow_row(f);
	json_t *o = base_object(f);

	json_object_set_new(o, "identifier", json_string(row->identifier));
	json_object_set_new(
	    o, "sandbox_container_id", json_string(row->container_id));
	json_object_set_new(o, "started_at", view_time(h->wall_us / 1000));
	return give(f, ev, "run_started", o);
}

static enum follow_result
give_command_started(
    struct follow *f, struct follow_event *ev, const struct runlog_header *h)
{
	const struct store_command *c = &follow_row(f)->commands[h->command];
	json_t *o = base_object(f);

	json_object_set_new(o, "index", json_integer(h->command));
	if (c->shell[0] != '\0')
		json_object_set_new(o, "shell", json_string(c->shell));
	if (c->argv_json[0] != '\0')
		json_object_set_new(
		    o, "argv", json_loads(c->argv_json, 0, NULL));
	json_object_set_new(o, "cwd", json_string(c->cwd));
	json_object_set_new(o, "started_at", view_time(h->wall_us / 1000));
	return give(f, ev, "command_started", o);
}

static enum follow_result
give_output(struct follow *f, struct follow_event *ev,
    const struct runlog_header *h, const struct buf *text)
{
	json_t *o = base_object(f);
	bool lossy;

	json_object_set_new(o, "index", json_integer(h->command));
	json_object_set_new(
	    o, "chunk", js_string_bytes(buf_data(text), buf_len(text), &lossy));
	if (lossy)
		json_object_set_new(o, "chunk_base64",
		    js_base64(buf_data(text), buf_len(text)));
	json_object_set_new(o, "truncated", json_false());
	return give(f, ev,
	    h->type == RUNLOG_STDOUT ? "command_stdout" : "command_stderr", o);
}

static enum follow_result
give_command_ended(struct follow *f, struct follow_event *ev,
    const struct runlog_header *h, const struct runlog_end *end)
{
	json_t *o = base_object(f);
	enum command_status status = end->reason == RUNLOG_TIMEOUT ?
	    COMMAND_TIMED_OUT :
	    end->reason == RUNLOG_CANCELED ? COMMAND_CANCELED :
	    end->reason == RUNLOG_EXIT && end->exit_code == 0 ?
					     COMMAND_COMPLETED :
					     COMMAND_FAILED;

	json_object_set_new(o, "index", json_integer(h->command));
	json_object_set_new(o, "exit_code", json_integer(end->exit_code));
	json_object_set_new(
	    o, "status", json_string(command_status_word(status)));
	json_object_set_new(
	    o, "end_reason", json_string(runlog_reason_word(end->reason)));
	json_object_set_new(
	    o, "stdout_bytes", json_integer((json_int_t)end->stdout_bytes));
	json_object_set_new(
	    o, "stderr_bytes", json_integer((json_int_t)end->stderr_bytes));
	json_object_set_new(o, "stdout_truncated", json_false());
	json_object_set_new(o, "stderr_truncated", json_false());
	json_object_set_new(o, "ended_at", view_time(h->wall_us / 1000));
	return give(f, ev, "command_finished", o);
}

/* Take records of the same stream together: small writes of a chatty program
 * are one event. */
static size_t
merge_output(const uint8_t *chunk, size_t n, const struct runlog_header *first,
    struct buf *text)
{
	struct runlog_header h;
	size_t at = 0;

	while (n - at >= RUNLOG_HEADER_BYTES &&
	    runlog_parse_header(chunk + at, &h, NULL) == 0 &&
	    h.type == first->type && h.command == first->command &&
	    n - at - RUNLOG_HEADER_BYTES >= h.length) {
		if (at > 0 && buf_len(text) + h.length > MERGE_BYTES)
			break;
		if (buf_append(
			text, chunk + at + RUNLOG_HEADER_BYTES, h.length) != 0)
			break;
		at += RUNLOG_HEADER_BYTES + h.length;
	}
	return at;
}

static void
advance(struct follow *f, size_t n)
{
	f->offset += n;
	(void)snprintf(
	    f->id, sizeof(f->id), "%llu", (unsigned long long)f->offset);
}

/* One event from whole records at the head of chunk; FOLLOW_WAIT: none. */
static enum follow_result
event_from(
    struct follow *f, struct follow_event *ev, const uint8_t *chunk, size_t n)
{
	enum follow_result res;
	struct runlog_header h;
	struct runlog_end end;
	struct buf text = {0};

	if (runlog_parse_header(chunk, &h, NULL) != 0 ||
	    h.command >= follow_row(f)->ncommands)
		return FOLLOW_ERROR;
	if (n - RUNLOG_HEADER_BYTES < h.length)
		return FOLLOW_WAIT;
	if (h.type == RUNLOG_STDOUT || h.type == RUNLOG_STDERR) {
		advance(f, merge_output(chunk, n, &h, &text));
		res = give_output(f, ev, &h, &text);
		buf_clear(&text);
		return res;
	}
	advance(f, RUNLOG_HEADER_BYTES + h.length);
	chunk += RUNLOG_HEADER_BYTES;
	if (h.type == RUNLOG_RUN_STARTED)
		return give_started(f, ev, &h);
	if (h.type == RUNLOG_COMMAND_STARTED)
		return give_command_started(f, ev, &h);
	if (h.type == RUNLOG_COMMAND_ENDED &&
	    runlog_parse_end(chunk, h.length, &end, NULL) == 0)
		return give_command_ended(f, ev, &h, &end);
	return follow_next(f, ev); /* RUN_ENDED is told by the last event */
}

static enum follow_result
log_next(struct follow *f, struct follow_event *ev)
{
	AUTO(auto_free) uint8_t *chunk = NULL;
	struct log_source l = follow_log(f);
	uint64_t left = l.length - f->offset;
	size_t n = left < CHUNK_BYTES ? (size_t)left : CHUNK_BYTES;
	enum follow_result res = FOLLOW_WAIT;

	if (n >= RUNLOG_HEADER_BYTES) {
		chunk = xmalloc(n);
		n = logview_read(&l, f->offset, chunk, n);
		if (n >= RUNLOG_HEADER_BYTES)
			res = event_from(f, ev, chunk, n);
	}
	if (res == FOLLOW_EVENT || res == FOLLOW_END)
		return res;
	if (!run_is_over(f) && res == FOLLOW_WAIT) {
		f->waiting = true;
		return FOLLOW_WAIT;
	}
	/* Over.  A record that was cut off by a loss, or makes no sense, is
	 * where the log ends. */
	f->stage = FOLLOW_ARTIFACTS;
	return follow_next(f, ev);
}

static enum follow_result
give_artifacts(struct follow *f, struct follow_event *ev)
{
	json_t *o = base_object(f);

	(void)snprintf(f->id, sizeof(f->id), "%s", ID_ARTIFACTS);
	json_object_set_new(
	    o, "count", json_integer(follow_row(f)->nartifacts));
	f->stage = FOLLOW_FINAL;
	return give(f, ev, "artifacts_extracted", o);
}

static enum follow_result
give_final(struct follow *f, struct follow_event *ev)
{
	const struct store_run *row = follow_row(f);
	bool good = row->state == RUN_STATE_COMPLETED;
	json_t *o = base_object(f);

	(void)snprintf(f->id, sizeof(f->id), "%s", ID_END);
	json_object_set_new(o, "ended_at", view_time(row->ended_ms));
	json_object_set_new(
	    o, "state", json_string(run_state_word(row->state)));
	json_object_set_new(
	    o, "end_reason", json_string(runlog_reason_word(row->end_reason)));
	if (!good)
		json_object_set_new(o, "error",
		    js_string_bytes(row->error, strlen(row->error), NULL));
	f->stage = FOLLOW_OVER;
	return give(f, ev, good ? "run_finished" : "run_failed", o);
}

enum follow_result
follow_next(struct follow *f, struct follow_event *ev)
{
	switch (f->stage) {
	case FOLLOW_LOG:
		return log_next(f, ev);
	case FOLLOW_ARTIFACTS:
		return give_artifacts(f, ev);
	case FOLLOW_FINAL:
		if (!run_is_over(f)) {
			f->waiting = true;
			return FOLLOW_WAIT;
		}
		return give_final(f, ev);
	default:
		return FOLLOW_END;
	}
}
