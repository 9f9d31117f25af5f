/*
 * event_log.h - what happened, in order: written by the store, read in pages
 *
 * Each tenant has its own numbers, from 1 on and without a gap; tenant 0 is
 * the server itself.  What kinds there are, and what each tells, is in
 * schema/events.txt.
 *
 * What a row says is written in that row's transaction (event_put.h): of runs
 * and sandboxes an event is there if and only if it happened, once, whenever
 * the process is killed.  What no row says is noted: store_event_note.
 *
 * Bounded: of each tenant the newest STORE_EVENTS_KEEP are kept, or as many as
 * its quota "events" says, and up to EVENT_TRIM_EVERY more.  The newest one
 * always stays, whatever trims: it says which number is next.
 */
#ifndef STORE_EVENT_LOG_H
#define STORE_EVENT_LOG_H

#include "supervisor/store/store.h"

#define STORE_EVENTS_KEEP 10000
#define STORE_EVENTS_PAGE 128               /* rows */
#define STORE_EVENTS_PAGE_BYTES (64u << 10) /* of their data, and one more */
#define STORE_EVENTS_SCAN_MAX 2000          /* rows looked at for a page */
#define STORE_EVENT_DATA_MAX 4096
#define STORE_EVENTS_OF_SERVER 0 /* the tenant */

/*
 * store_event_note - something that no row says: goes with the next write, or
 * soon, and is tried again when it could not be written
 *
 *	row	copied; seq is the store's to give.  data: a JSON object, or ""
 *	times	STORE_EVENT_ONCE: not when the run has one of this kind already
 *		(what is told again after a restart)
 */
enum store_event_times {
	STORE_EVENT_ALWAYS,
	STORE_EVENT_ONCE
};
void store_event_note(struct store *s, const struct store_event *row,
    enum store_event_times times);
/* store_event_tell - the same, of what has no run: data is made of what is set
 */
struct store_news {
	uint64_t tenant; /* 0: of the server */
	enum event_kind kind;
	bool has_worker;
	uint32_t worker;
	const char *error; /* NULL: none */
	const char *quota; /* NULL: none; else times */
	uint64_t times;
	int64_t failed_ms;   /* 0: none */
	const char *webhook; /* NULL: none */
	uint64_t lost;       /* 0: not told */
};
void store_event_tell(struct store *s, const struct store_news *news);
/* store_event_began - server.started; whether the one before said that it
 * stopped is looked up */
void store_event_began(struct store *s, const char *version);
/* store_run_started - the first command of an unfinished run began.  While the
 * run's begin is held, it is told with that; not at all if the end comes first,
 * which says it, too */
void store_run_started(
    struct store *s, const struct store_run *row, enum store_event_times times);

/* store_on_events - cb is told, on the loop's thread, of each tenant of which
 * events are on disk now; several at once may be told as one.  NULL: nobody */
void store_on_events(
    struct store *s, void (*cb)(uint64_t tenant, void *arg), void *arg);

struct store_events_filter {
	uint64_t kinds;         /* 1 << enum event_kind, OR-ed; 0: all */
	const char *identifier; /* of runs and sandboxes; NULL: all */
	const struct uuid *run; /* NULL: all */
};
/* store_event_fits - whether the filter lets it through */
bool store_event_fits(
    const struct store_events_filter *f, const struct store_event *row);

/* Ascending, those of one tenant behind a number. */
struct store_events_page {
	struct store_event *rows;
	size_t n;
	uint64_t scanned;        /* the number that was looked at last: what
				  * after is next */
	int64_t scanned_ms;      /* when that was; 0: not known */
	bool has_more;           /* behind that */
	uint64_t oldest, newest; /* of the tenant, that are kept; 0: none */
	int64_t after_ms; /* when the one numbered after was; 0: not known */
};
/* rc 0, or why not; the page is freed after done returns.  done comes once,
 * later, unless the store is closed first, or store_paging_cancel was called */
typedef void (*store_events_cb)(int rc, const struct store_events_page *page,
    const struct err *why, void *arg);
struct store_paging;
/* store_events_read - filter (copied; NULL: all) */
struct store_paging *store_events_read(struct store *s, uint64_t tenant,
    uint64_t after, const struct store_events_filter *f, size_t limit,
    store_events_cb done, void *arg);
void store_paging_cancel(struct store_paging *p);

#endif
