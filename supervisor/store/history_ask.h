/*
 * history_ask.h - a question on its way: made on the loop's thread, answered
 * on a lane's (history.c), delivered on the loop's
 */
#ifndef STORE_HISTORY_ASK_H
#define STORE_HISTORY_ASK_H

#include <stdatomic.h>

#include "supervisor/store/history.h"
#include "supervisor/store/history_parse.h"
#include "supervisor/store/op.h"
#include "supervisor/store/sql.h"

/* At most so long a page looks for its lines, and so many runs it weighs. */
#define HISTORY_TURN_MS 250
/* What a page's texts have before it ends: its reader makes JSON of all of them
 * in one turn of its loop. */
#define HISTORY_PAGE_BYTES (1u << 20)
#define HISTORY_COUNT_MS 100
#define HISTORY_COLLECT_MAX 20000
#define HISTORY_STATS_MS 10000
#define HISTORY_SLICE_MS 500 /* of statistics: then others have their turn */
#define HISTORY_PATIENCE_MS 10000 /* on the slow lane, for a first run */

struct db;
struct history_stats;
struct history_asking {
	/* run: answers, from the index alone.  1: there is more to read, in a
	 * transaction of its own, when others have had their turn */
	struct op op;
	struct history *history;
	/* By other threads while a lane reads: nobody wants an answer; it is
	 * to be begun again (history_readers.h), or was canceled. */
	atomic_bool is_canceled;
	atomic_bool is_stopped;
	uint64_t spent_ms; /* with reads that were stopped */
	bool is_patient;   /* on the slow lane */
	uint64_t mark;     /* history_feed.h */
	uint64_t tenant;
	struct history_query q;
	struct history_words words; /* of q.filter.q; match NULL: none */
	/* Copies of the texts of q. */
	char *identifier, *sandbox, *principal, *tool, *language, *artifact;
	uint8_t digest[32];
	/* The sandbox was named by its UUID: it is looked up in the database.
	 */
	bool has_sandbox_uuid;
	struct uuid sandbox_uuid;
	uint64_t question; /* history_parse.h: its hash */
	bool has_cursor;
	struct history_cursor cursor;
	enum history_group by;       /* of statistics */
	struct history_stats *stats; /* between two slices; NULL: none */
	bool has_read; /* on the way, down to and with this place */
	int64_t read_to;
	history_page_cb page_done;
	history_sums_cb sums_done;
	void *arg;
	struct history_page page;
	struct history_sums sums;
};

struct db_call;
/* history_put_way - ?1 to ?4 as well: all that is on the way */
void history_put_way(
    struct db_call *c, const struct history_asking *a, enum history_way way);
/* history_choose_way - that which meets the fewest runs */
int history_choose_way(struct db *db, const struct history_asking *a,
    enum history_way *way, struct err *e) MUSTCHECK;

/* history_text_since - how far back what it looks for can be found; *since_ms
 * as in history_page */
int history_text_since(struct db *db, const struct history_asking *a,
    int64_t *since_ms, struct err *e) MUSTCHECK;

/* history_too_long - of a patient question that met no run in its time */
int history_too_long(const struct history_asking *a, int rc, struct err *e);

int history_list_run(struct db *db, struct op *op, struct err *e) MUSTCHECK;
void history_page_clear(struct history_page *p);
int history_stats_run(struct db *db, struct op *op, struct err *e) MUSTCHECK;
void history_sums_clear(struct history_sums *s);
/* history_stats_drop - of a question that is not gone on with; NULL is fine */
void history_stats_drop(struct history_stats *s);

#endif
