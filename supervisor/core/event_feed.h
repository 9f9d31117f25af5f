/*
 * event_feed.h - readers of what happens in a tenant, at their own pace
 *
 * A reader is told a page of events when it asks, as soon as there is one: of
 * the past, which is read from the database a page at a time, then of what is
 * committed.  A reader that does not ask costs a position.  Those at the newest
 * event share one read for each commit (or for several), however many they
 * are, and are told a few in each turn of the loop.
 */
#ifndef CORE_EVENT_FEED_H
#define CORE_EVENT_FEED_H

#include "common/base.h"
#include "common/err.h"
#include "supervisor/store/event_log.h"

struct event_base;
struct event_feeds;
struct event_reader;

/* event_feeds_new - the only one that asks for store_on_events */
struct event_feeds *event_feeds_new(
    struct event_base *base, struct store *store);
void event_feeds_free(struct event_feeds *all); /* without readers; or NULL */

/* A place behind an event. */
struct event_place {
	uint64_t seq;  /* EVENT_PLACE_NOW: behind the newest there is */
	int64_t at_ms; /* when that one was; 0: not known */
};
#define EVENT_PLACE_NOW UINT64_MAX

/* What cannot be told any more, or is told again. */
struct event_gap {
	uint64_t from, to; /* numbers; from is 0: there is none */
	/* The database is an older copy: there, these numbers are not, or not
	 * yet, what they were to the reader. */
	bool is_restored;
};

/* For on_page.  Everything is borrowed until it returns. */
struct event_page {
	const struct store_event *const *rows;
	size_t n;             /* 0: there is a gap, and no more yet */
	struct event_gap gap; /* before the rows */
};

struct event_reader_ops {
	/* Comes once for each event_reader_next, later.  Returns how many it
	 * took of the rows: the next page begins behind these.  It may close r,
	 * or ask for the next page. */
	size_t (*on_page)(
	    struct event_reader *r, const struct event_page *page, void *arg);
	/* EVENT_PLACE_NOW is known; r stays.  NULL: nobody wants to know. */
	void (*on_place)(struct event_reader *r, void *arg);
	/* The database could not be read; event_reader_next tries again. */
	void (*on_failed)(
	    struct event_reader *r, const struct err *why, void *arg);
};

/* event_reader_open - filter is copied, NULL: all; ops is kept */
struct event_reader *event_reader_open(struct event_feeds *all, uint64_t tenant,
    const struct event_place *after, const struct store_events_filter *filter,
    const struct event_reader_ops *ops, void *arg);
void event_reader_close(struct event_reader *r); /* NULL is fine */
/* event_reader_next - one more page, please; once until on_page comes */
void event_reader_next(struct event_reader *r);
/* event_reader_at - how far it is: behind what was taken, and what did not
 * fit the filter.  seq may be EVENT_PLACE_NOW before the first look */
struct event_place event_reader_at(const struct event_reader *r);

#endif
