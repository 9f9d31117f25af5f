/*
 * event_feed.c - readers of what happens in a tenant
 *
 * A tenant with readers has a feed: the rows that were read last, up to its
 * tip, for those who are near.  A reader is
 *
 *	RESTING   until event_reader_next
 *	READING   a page of its own is on its way: it is behind the feed's rows
 *	READY     the feed has rows for it: told in its turn
 *	WAITING   there is nothing behind its place; the feed's next rows are
 *		  for it
 *
 * A commit makes the feed dirty.  A dirty feed with readers that wait, when it
 * has told all its rows, reads on from its tip: one read at a time, so that
 * what is committed meanwhile comes together.
 */
#include "supervisor/core/event_feed.h"

#include <sys/queue.h>

#include "common/hashmap.h"
#include "common/timer.h"
#include "common/xmalloc.h"

#define TOLD_IN_A_TURN 32
#define ROWS_MAX STORE_EVENTS_PAGE /* of a feed */

enum event_reader_state {
	EVENT_READER_RESTING,
	EVENT_READER_READING,
	EVENT_READER_READY,
	EVENT_READER_WAITING
};

TAILQ_HEAD(event_readers, event_reader);

struct event_feed {
	struct event_feeds *all;
	uint64_t tenant;
	struct hash_entry by_tenant;
	size_t nreaders;
	struct event_readers ready, waiting;
	struct store_event
	    *rows[ROWS_MAX]; /* one after the other, to the tip */
	size_t nrows;
	bool has_tip;
	struct event_place tip;
	bool is_dirty; /* something was committed since the last read */
	struct store_paging *paging;
	struct timer *turn;        /* for those that are ready */
	struct event_reader *told; /* its on_page is on the stack */
};

struct event_feeds {
	struct event_base *base;
	struct store *store;
	struct hashmap by_tenant;
};

struct event_reader {
	struct event_feed *feed;
	const struct event_reader_ops *ops;
	void *arg;
	enum event_reader_state state;
	struct event_place at;
	struct event_gap gap; /* not told yet */
	bool is_checked;      /* its first place is one of this database */
	bool is_asked;        /* event_reader_next was called, in on_page too */
	struct store_events_filter filter;
	char *identifier;
	struct uuid run;
	struct store_paging *paging;
	TAILQ_ENTRY(event_reader) link; /* while ready or waiting */
};

/* ---- feeds */

static struct event_feed *
find_feed(struct event_feeds *all, uint64_t tenant)
{
	return HASH_OBJECT(hashmap_get_u64(&all->by_tenant, tenant),
	    struct event_feed, by_tenant);
}

static void feed_turn_cb(void *arg);
static void reader_go_on(struct event_reader *r);

static struct event_feed *
feed_of(struct event_feeds *all, uint64_t tenant)
{
	struct event_feed *f = find_feed(all, tenant);

	if (f != NULL)
		return f;
	f = xcalloc(1, sizeof(*f));
	f->all = all;
	f->tenant = tenant;
	TAILQ_INIT(&f->ready);
	TAILQ_INIT(&f->waiting);
	f->turn = timer_new(all->base, feed_turn_cb, f);
	hashmap_put(&all->by_tenant, &f->by_tenant, hashmap_key_u64(tenant));
	return f;
}

static void
drop_row(struct store_event *row)
{
	store_event_clear(row);
	free(row);
}

static void
drop_rows(struct event_feed *f, size_t n)
{
	for (size_t i = 0; i < n; i++)
		drop_row(f->rows[i]);
	f->nrows -= n;
	memmove(f->rows, f->rows + n, f->nrows * sizeof(f->rows[0]));
}

static void
feed_free(struct event_feed *f)
{
	if (f->paging != NULL)
		store_paging_cancel(f->paging);
	drop_rows(f, f->nrows);
	timer_free(f->turn);
	hashmap_del(&f->all->by_tenant, &f->by_tenant);
	free(f);
}

static void feed_look(struct event_feed *f);

static void
events_cb(uint64_t tenant, void *arg)
{
	struct event_feed *f = find_feed(arg, tenant);

	if (f == NULL)
		return;
	f->is_dirty = true;
	feed_look(f);
}

struct event_feeds *
event_feeds_new(struct event_base *base, struct store *store)
{
	struct event_feeds *all = xcalloc(1, sizeof(*all));

	all->base = base;
	all->store = store;
	store_on_events(store, events_cb, all);
	return all;
}

void
event_feeds_free(struct event_feeds *all)
{
	if (all == NULL)
		return;
	store_on_events(all->store, NULL, NULL);
	hashmap_clear(&all->by_tenant);
	free(all);
}

/* ---- a reader's states */

static void
leave(struct event_reader *r)
{
	if (r->state == EVENT_READER_READY)
		TAILQ_REMOVE(&r->feed->ready, r, link);
	if (r->state == EVENT_READER_WAITING)
		TAILQ_REMOVE(&r->feed->waiting, r, link);
	r->state = EVENT_READER_RESTING;
}

static void
become_ready(struct event_reader *r)
{
	leave(r);
	r->state = EVENT_READER_READY;
	TAILQ_INSERT_TAIL(&r->feed->ready, r, link);
	if (!timer_is_set(r->feed->turn))
		timer_set_ms(r->feed->turn, 0);
}

static void
become_waiting(struct event_reader *r)
{
	struct event_feed *f = r->feed;

	leave(r);
	r->state = EVENT_READER_WAITING;
	TAILQ_INSERT_TAIL(&f->waiting, r, link);
	if (!f->has_tip) {
		f->has_tip = true;
		f->tip = r->at;
	}
	if (r->at.seq > f->tip.seq) /* it has seen more than the feed */
		f->is_dirty = true;
	feed_look(f);
}

/* Whether what follows its place is among the feed's rows. */
static bool
has_next(const struct event_feed *f, const struct event_place *at)
{
	return f->nrows > 0 && at->seq + 1 >= f->rows[0]->seq &&
	    at->seq < f->tip.seq;
}

static void reader_read(struct event_reader *r);

static void
reader_go_on(struct event_reader *r)
{
	const struct event_feed *f = r->feed;
	/* A gap is to be told, if nothing else is. */
	bool is_near = r->is_checked && r->gap.from == 0;

	if (is_near && has_next(f, &r->at))
		become_ready(r);
	else if (is_near && f->has_tip && r->at.seq >= f->tip.seq)
		become_waiting(r);
	else
		reader_read(r);
}

/* ---- telling */

static void
feed_hold(struct event_feed *f)
{
	f->nreaders++;
}

static void
feed_drop(struct event_feed *f)
{
	if (--f->nreaders == 0)
		feed_free(f);
}

/* Behind what is not told any more. */
static struct event_place
behind_gap(const struct event_reader *r)
{
	if (r->gap.from == 0 || r->gap.is_restored)
		return r->at;
	return (struct event_place){r->gap.to, 0};
}

/* rows[0] to rows[n - 1] are behind its place and fit; end is the place behind
 * all that was looked at. */
static void
tell(struct event_reader *r, const struct store_event *const *rows, size_t n,
    const struct event_place *end)
{
	const struct event_page page = {rows, n, r->gap};
	const struct event_place before = behind_gap(r);
	struct event_feed *f = r->feed;
	size_t took;

	r->gap = (struct event_gap){0};
	r->is_asked = false;
	r->state = EVENT_READER_RESTING;
	feed_hold(f);
	f->told = r;
	took = r->ops->on_page(r, &page, r->arg);
	if (f->told == r) { /* it is still there */
		f->told = NULL;
		if (took >= n)
			r->at = end->seq > before.seq ? *end : before;
		else
			r->at = took == 0 ?
			    before :
			    (struct event_place){
				rows[took - 1]->seq, rows[took - 1]->at_ms};
		if (r->is_asked)
			reader_go_on(r);
	}
	feed_drop(f);
}

/* From the feed's rows. */
static void
tell_ready(struct event_reader *r)
{
	const struct event_feed *f = r->feed;
	const struct store_event *rows[ROWS_MAX];
	size_t n = 0;

	leave(r);
	if (!has_next(f, &r->at)) {
		reader_go_on(r); /* others came in between */
		return;
	}
	for (size_t i = 0; i < f->nrows; i++)
		if (f->rows[i]->seq > r->at.seq &&
		    store_event_fits(&r->filter, f->rows[i]))
			rows[n++] = f->rows[i];
	if (n > 0) {
		tell(r, rows, n, &f->tip);
		return;
	}
	r->at = f->tip;
	reader_go_on(r);
}

static void
feed_turn_cb(void *arg)
{
	struct event_feed *f = arg;
	struct event_reader *r;

	feed_hold(f);
	for (size_t i = 0; i < TOLD_IN_A_TURN; i++) {
		r = TAILQ_FIRST(&f->ready);
		if (r == NULL)
			break;
		tell_ready(r);
	}
	if (!TAILQ_EMPTY(&f->ready))
		timer_set_ms(f->turn, 0);
	feed_look(f);
	feed_drop(f);
}

/* ---- the feed reads on */

static void
take_rows(struct event_feed *f, const struct store_events_page *page)
{
	if (page->n == 0)
		return;
	if (page->rows[0].seq != f->tip.seq + 1)
		drop_rows(f, f->nrows); /* trimmed meanwhile */
	if (f->nrows + page->n > ROWS_MAX)
		drop_rows(f, f->nrows + page->n - ROWS_MAX);
	for (size_t i = 0; i < page->n; i++) {
		struct store_event *row = xcalloc(1, sizeof(*row));

		store_event_copy(row, &page->rows[i]);
		f->rows[f->nrows++] = row;
		f->tip = (struct event_place){row->seq, row->at_ms};
	}
}

static void
feed_page_cb(int rc, const struct store_events_page *page,
    const struct err *why, void *arg)
{
	struct event_feed *f = arg;
	struct event_reader *r, *next;

	f->paging = NULL;
	(void)why;
	/* Those that wait read for themselves then, and are told why not; where
	 * the next tip will be, nobody knows. */
	if (rc != 0) {
		drop_rows(f, f->nrows);
		f->has_tip = false;
	} else {
		take_rows(f, page);
		f->is_dirty = f->is_dirty || page->has_more;
	}
	for (r = TAILQ_FIRST(&f->waiting); r != NULL; r = next) {
		next = TAILQ_NEXT(r, link);
		if (rc != 0) {
			leave(r);
			reader_read(r);
		} else if (r->at.seq < f->tip.seq) {
			become_ready(r);
		}
	}
	feed_look(f);
}

static void
feed_look(struct event_feed *f)
{
	if (!f->is_dirty || f->paging != NULL || !f->has_tip ||
	    TAILQ_EMPTY(&f->waiting) || !TAILQ_EMPTY(&f->ready))
		return;
	f->is_dirty = false;
	f->paging = store_events_read(f->all->store, f->tenant, f->tip.seq,
	    NULL, STORE_EVENTS_PAGE, feed_page_cb, f);
}

/* ---- a reader reads for itself */

/* The first place is the client's: it may be of another copy of the database,
 * or one that was trimmed. */
static void
check_place(struct event_reader *r, const struct store_events_page *page)
{
	r->is_checked = true;
	if (r->at.seq > page->newest)
		r->gap = (struct event_gap){page->newest + 1, r->at.seq, true};
	else if (r->at.at_ms != 0 && page->after_ms != 0 &&
	    r->at.at_ms != page->after_ms)
		r->gap = (struct event_gap){page->oldest, r->at.seq, true};
	else
		return;
	r->at = (struct event_place){r->gap.from - 1, 0};
}

/* Whether page is what follows its place: it may have become another one. */
static bool
is_place_good(struct event_reader *r, const struct store_events_page *page)
{
	if (r->is_checked)
		return true;
	if (r->at.seq != EVENT_PLACE_NOW) {
		check_place(r, page);
		return r->gap.from == 0;
	}
	r->is_checked = true;
	r->at = (struct event_place){page->newest, 0};
	if (r->ops->on_place != NULL)
		r->ops->on_place(r, r->arg);
	return false;
}

static void
take_page(struct event_reader *r, const struct store_events_page *page)
{
	const struct event_place end = {page->scanned, page->scanned_ms};
	const struct store_event *rows[STORE_EVENTS_PAGE];

	if (!is_place_good(r, page)) {
		reader_go_on(r);
		return;
	}
	if (r->gap.from == 0 && page->oldest > r->at.seq + 1)
		r->gap =
		    (struct event_gap){r->at.seq + 1, page->oldest - 1, false};
	for (size_t i = 0; i < page->n; i++)
		rows[i] = &page->rows[i];
	if (page->n > 0 || r->gap.from != 0) {
		tell(r, rows, page->n, &end);
		return;
	}
	if (page->scanned > r->at.seq)
		r->at = end;
	if (page->has_more)
		reader_read(r);
	else if (r->feed->has_tip && r->at.seq < r->feed->tip.seq)
		reader_go_on(r);
	else
		become_waiting(r);
}

static void
reader_page_cb(int rc, const struct store_events_page *page,
    const struct err *why, void *arg)
{
	struct event_reader *r = arg;

	r->paging = NULL;
	r->state = EVENT_READER_RESTING;
	if (rc != 0)
		r->ops->on_failed(r, why, r->arg);
	else
		take_page(r, page);
}

static void
reader_read(struct event_reader *r)
{
	r->state = EVENT_READER_READING;
	r->paging = store_events_read(r->feed->all->store, r->feed->tenant,
	    r->at.seq, &r->filter, STORE_EVENTS_PAGE, reader_page_cb, r);
}

/* ---- life */

struct event_reader *
event_reader_open(struct event_feeds *all, uint64_t tenant,
    const struct event_place *after, const struct store_events_filter *filter,
    const struct event_reader_ops *ops, void *arg)
{
	struct event_reader *r = xcalloc(1, sizeof(*r));

	r->feed = feed_of(all, tenant);
	r->feed->nreaders++;
	r->ops = ops;
	r->arg = arg;
	r->at = *after;
	if (filter == NULL)
		return r;
	r->filter.kinds = filter->kinds;
	if (filter->identifier != NULL)
		r->filter.identifier = r->identifier =
		    xstrdup(filter->identifier);
	if (filter->run != NULL) {
		r->run = *filter->run;
		r->filter.run = &r->run;
	}
	return r;
}

void
event_reader_close(struct event_reader *r)
{
	if (r == NULL)
		return;
	leave(r);
	if (r->paging != NULL)
		store_paging_cancel(r->paging);
	if (r->feed->told == r)
		r->feed->told = NULL;
	feed_drop(r->feed);
	free(r->identifier);
	free(r);
}

void
event_reader_next(struct event_reader *r)
{
	r->is_asked = true;
	if (r->feed->told != r)
		reader_go_on(r);
}

struct event_place
event_reader_at(const struct event_reader *r)
{
	return r->at;
}
