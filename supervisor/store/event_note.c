/*
 * event_note.c - events that no row tells are on their way
 *
 * Those that come one after another are one op, which goes with the next write
 * (writer.h, riders), so that they cost no commit of their own.  What could
 * not be written is tried again, as long as there is room for it here.
 */
#include "supervisor/store/event_log.h"

#include "common/clock.h"
#include "common/js.h"
#include "common/log.h"
#include "supervisor/store/db.h"
#include "supervisor/store/done.h"
#include "supervisor/store/event_put.h"
#include "supervisor/store/store_int.h"
#include "supervisor/store/writer.h"

#define BEHIND_MAX 1000   /* that could not be written yet */
#define OP_EVENTS_MAX 256 /* more go in the next op */

struct noted_event {
	struct store_event row;
	enum store_event_times times;
	bool is_begin; /* whether the one before was an end is to be told */
};

struct note_op {
	struct op op;
	struct store *store;
	struct noted_event *events;
	size_t n;
};

/* ---- on the writer's thread */

static int
was_stopped(struct db *db, bool *out, struct err *e)
{
	enum event_kind kind = EVENT_SERVER_STOPPED;
	struct db_call c;
	int64_t newest;
	int rc;

	*out = true;
	db_call_init(&c, db, DB_EVENT_NEWEST);
	db_put_uint(&c, STORE_EVENTS_OF_SERVER);
	rc = db_call_step(&c, e);
	if (rc <= 0)
		return rc;
	newest = db_get_int(&c);
	db_call_end(&c);
	db_call_init(&c, db, DB_EVENT_KIND);
	db_put_uint(&c, STORE_EVENTS_OF_SERVER);
	db_put_int(&c, newest);
	rc = db_call_step(&c, e);
	if (rc <= 0)
		return rc;
	*out = event_kind_parse(db_get_word(&c), &kind) == 0 &&
	    kind == EVENT_SERVER_STOPPED;
	db_call_end(&c);
	return 0;
}

static int
put_begin(
    struct db *db, struct op *op, const struct store_event *row, struct err *e)
{
	struct store_event begin = *row; /* borrowed */
	AUTO(auto_json) json_t *o = NULL;
	bool clean;
	int rc;

	if (was_stopped(db, &clean, e) != 0)
		return e->code;
	o = json_pack("{s:s, s:b}", "version", row->data, "clean", clean);
	begin.data = js_dump(o);
	rc = event_put(db, op, &begin, e);
	free(begin.data);
	return rc;
}

static int
note_run(struct db *db, struct op *op, struct err *e)
{
	struct note_op *o = (struct note_op *)op;
	int rc = 0;

	for (size_t i = 0; i < o->n && rc == 0; i++) {
		struct noted_event *n = &o->events[i];

		if (n->is_begin)
			rc = put_begin(db, op, &n->row, e);
		else if (n->times == STORE_EVENT_ONCE)
			rc = event_put_once(db, op, &n->row, e);
		else
			rc = event_put(db, op, &n->row, e);
	}
	op->has_events = false; /* of several tenants: note_deliver tells */
	return rc;
}

/* ---- on the loop's */

static void put(struct store *s, struct noted_event *from);

static void
try_again(struct note_op *o)
{
	static struct log_limit limit;
	struct store *s = o->store;
	size_t n = 0;

	for (size_t i = 0; i < o->n; i++)
		if (s->events_behind < BEHIND_MAX && o->op.rc != ERR_DAMAGED)
			put(s, &o->events[i]);
		else
			n++;
	log_warn_limited(&limit, "events: not written: %s%s", o->op.why.msg,
	    n > 0 ? "; some are lost" : "");
}

static void
note_deliver(struct op *op)
{
	struct note_op *o = (struct note_op *)op;
	struct store *s = o->store;

	s->events_behind -= o->n;
	if (op->rc != 0) {
		try_again(o);
		return;
	}
	for (size_t i = 0; i < o->n && s->on_events != NULL; i++)
		s->on_events(o->events[i].row.tenant, s->on_events_arg);
}

static void
note_release(struct op *op)
{
	struct note_op *o = (struct note_op *)op;

	for (size_t i = 0; i < o->n; i++)
		store_event_clear(&o->events[i].row);
	free(o->events);
	free(o);
}

static struct note_op *
new_op(struct store *s)
{
	struct note_op *o = xcalloc(1, sizeof(*o));

	o->op.run = note_run;
	o->op.deliver = note_deliver;
	o->op.release = note_release;
	o->op.again = true;
	o->op.bytes = sizeof(*o);
	o->store = s;
	return o;
}

/* The row is taken. */
static void
put(struct store *s, struct noted_event *from)
{
	struct note_op *o =
	    (struct note_op *)writer_rider(s->writer, WRITER_SEAT_EVENTS);

	if (o == NULL) {
		o = new_op(s);
		writer_ride(s->writer, WRITER_SEAT_EVENTS, &o->op);
	}
	o->events = array_grow(o->events, o->n, sizeof(*o->events));
	o->events[o->n++] = *from;
	o->op.bytes += sizeof(*from) + 256;
	from->row = (struct store_event){0};
	s->events_behind++;
	if (o->n == OP_EVENTS_MAX)
		writer_send_riders(s->writer);
}

void
store_event_note(struct store *s, const struct store_event *row,
    enum store_event_times times)
{
	struct noted_event event = {.times = times};

	store_event_copy(&event.row, row);
	put(s, &event);
}

void
store_event_tell(struct store *s, const struct store_news *news)
{
	struct noted_event event = {.times = STORE_EVENT_ALWAYS};

	event_of_news(news, &event.row);
	put(s, &event);
}

void
store_event_began(struct store *s, const char *version)
{
	struct noted_event event = {.is_begin = true};

	event.row = (struct store_event){.tenant = STORE_EVENTS_OF_SERVER,
	    .at_ms = clock_wall_ms(),
	    .kind = EVENT_SERVER_STARTED,
	    .identifier = xstrdup(""),
	    .data = xstrdup(version)};
	put(s, &event);
}

void
store_on_events(
    struct store *s, void (*cb)(uint64_t tenant, void *arg), void *arg)
{
	s->on_events = cb;
	s->on_events_arg = arg;
	done_on_events(s->done, cb, arg);
}
