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
#include "common/xmalloc.h"
#include "supervisor/store/db.h"
#include "supervisor/store/done.h"
#include "supervisor/store/event_put.h"
#include "supervisor/store/rows_sql_gen.h"
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
	uint64_t newest;
	int rc;

	*out = true;
	if (db_ask_with(
		db, DB_EVENT_NEWEST, STORE_EVENTS_OF_SERVER, &newest, e) != 0)
		return e->code;
	db_call_init(&c, db, DB_EVENT_KIND);
	db_put_uint(&c, STORE_EVENTS_OF_SERVER);
	db_put_uint(&c, newest);
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

struct store_paging {
	struct op op;
	store_events_cb done; /* NULL: canceled */
	void *arg;
	uint64_t tenant, after;
	struct store_events_filter filter; /* points into the next two */
	char *identifier;
	struct uuid run;
	size_t limit;
	size_t bytes;
	struct store_events_page page;
};

bool
store_event_fits(
    const struct store_events_filter *f, const struct store_event *row)
{
	return (f->kinds == 0 ||
		   (f->kinds & (UINT64_C(1) << row->kind)) != 0) &&
	    (f->identifier == NULL ||
		strcmp(f->identifier, row->identifier) == 0) &&
	    (f->run == NULL || uuid_is_equal(f->run, &row->run));
}

/* ---- on the reader's thread */

static int
get_after(struct db *db, struct store_paging *p, struct err *e)
{
	struct db_call c;
	int rc;

	db_call_init(&c, db, DB_EVENT_KIND);
	db_put_uint(&c, p->tenant);
	db_put_uint(&c, p->after);
	rc = db_call_step(&c, e);
	if (rc <= 0)
		return rc;
	(void)db_get_word(&c);
	p->page.after_ms = p->page.scanned_ms = db_get_int(&c);
	db_call_end(&c);
	return 0;
}

/* 1: the page is full. */
static int
take_row(struct store_paging *p, struct db_call *c, struct err *e)
{
	struct store_events_page *page = &p->page;
	struct store_event row;
	bool is_full =
	    page->n == p->limit || p->bytes > STORE_EVENTS_PAGE_BYTES;

	page->has_more = is_full;
	if (is_full)
		return 1;
	if (rows_get_event(c, &row, e) != 0)
		return e->code;
	page->scanned = row.seq;
	page->scanned_ms = row.at_ms;
	if (!store_event_fits(&p->filter, &row)) {
		store_event_clear(&row);
		return 0;
	}
	p->bytes += strlen(row.data) + sizeof(row);
	page->rows = array_grow(page->rows, page->n, sizeof(*page->rows));
	page->rows[page->n++] = row;
	return 0;
}

static int
paging_run(struct db *db, struct op *op, struct err *e)
{
	struct store_paging *p = (struct store_paging *)op;
	size_t scanned = 0;
	struct db_call c;
	int rc;

	p->page.scanned = p->after;
	if (db_ask_with(db, DB_EVENT_OLDEST, p->tenant, &p->page.oldest, e) !=
		0 ||
	    db_ask_with(db, DB_EVENT_NEWEST, p->tenant, &p->page.newest, e) !=
		0 ||
	    get_after(db, p, e) != 0)
		return e->code;
	db_call_init(&c, db, DB_EVENTS_AFTER);
	db_put_uint(&c, p->tenant);
	db_put_uint(&c, p->after);
	while ((rc = db_call_step(&c, e)) == 1) {
		p->page.has_more = scanned++ == STORE_EVENTS_SCAN_MAX;
		rc = p->page.has_more ? 1 : take_row(p, &c, e);
		if (rc != 0)
			break;
	}
	if (rc != 0)
		db_call_end(&c);
	return rc < 0 ? rc : 0;
}

/* ---- on the loop's */

static void
paging_deliver(struct op *op)
{
	struct store_paging *p = (struct store_paging *)op;

	if (p->done != NULL)
		p->done(
		    op->rc, op->rc == 0 ? &p->page : NULL, op_why(op), p->arg);
}

static void
paging_release(struct op *op)
{
	struct store_paging *p = (struct store_paging *)op;

	for (size_t i = 0; i < p->page.n; i++)
		store_event_clear(&p->page.rows[i]);
	free(p->page.rows);
	free(p->identifier);
	free(p);
}

void
store_paging_cancel(struct store_paging *p)
{
	p->done = NULL;
}

struct store_paging *
store_events_read(struct store *s, uint64_t tenant, uint64_t after,
    const struct store_events_filter *f, size_t limit, store_events_cb done,
    void *arg)
{
	struct store_paging *p = xcalloc(1, sizeof(*p));

	p->done = done;
	p->arg = arg;
	p->tenant = tenant;
	p->after = after > INT64_MAX ? INT64_MAX : after;
	p->limit = limit;
	if (f != NULL) {
		p->filter.kinds = f->kinds;
		if (f->identifier != NULL)
			p->filter.identifier = p->identifier =
			    xstrdup(f->identifier);
		if (f->run != NULL) {
			p->run = *f->run;
			p->filter.run = &p->run;
		}
	}
	store_read_submit(
	    s, &p->op, paging_run, paging_deliver, paging_release);
	return p;
}
