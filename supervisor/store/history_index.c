/*
 * history_index.c - the thread that keeps the index of runs
 *
 * All its steps are short transactions of both databases: the one that is read
 * first, so that what it says is of one moment, then the index's.  A failure
 * of any closes the index, and all begins again with opening it.
 */
#include "supervisor/store/history_index.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/xmalloc.h"
#include "supervisor/store/db.h"
#include "supervisor/store/history_feed.h"
#include "supervisor/store/history_readers.h"
#include "supervisor/store/history_sql.h"
#include "supervisor/store/history_take.h"
#include "supervisor/store/queue.h"
#include "supervisor/store/spool.h"
#include "supervisor/store/store_int.h"

#define STEP_RUNS 256  /* in a transaction */
#define GATHER_MS 100  /* for more to come, when nobody asks */
#define WAL_MS 200     /* until it is tried again to empty it */
#define REST_MS 600000 /* nothing is to be done */
#define GAPS_MAX 20000
#define GAP_REACH 4096
#define BACKOFF_MIN_MS 100
#define BACKOFF_MAX_MS 60000
#define MERGE_PAGES 256
#define MERGE_SHARE 100 /* one part of so many of the time */
#define SHED_BYTES (256u << 10)
#define SHED_SHARE 10

struct history_index {
	const char *dir;
	struct feed *feed;
	struct history_readers *readers;
	pthread_t thread;
	struct history_take take;
	uint64_t opened;
	int64_t upto;
	bool is_dirty; /* as the file says */
	bool is_merging;
	bool is_late;   /* something was taken out since the merge began */
	bool is_pinned; /* the database is read as of one moment */
	size_t ngaps;
	uint64_t merge_at, merge_spent_ms;
	bool wants_empty_wal;
	bool is_at_rest; /* nothing was to do since it gave up its pages */
	uint64_t shed_at;
	uint64_t backoff_ms;
	atomic_uint_least64_t text_max;
	atomic_uint_least64_t text_bytes;
	atomic_uint_least64_t made_anew;
};

/* ---- transactions */

static int
step_begin(struct history_index *x, struct err *e)
{
	if (!x->is_pinned && db_exec(x->take.from, DB_BEGIN_READ, e) != 0)
		return e->code;
	return db_begin(x->take.to, e);
}

static int
step_end(struct history_index *x, int rc, struct err *e)
{
	struct err ignored;

	if (!x->is_pinned && db_exec(x->take.from, DB_COMMIT, &ignored) != 0)
		db_rollback(x->take.from);
	if (rc == 0)
		rc = history_corpus_flush(&x->take.corpus, x->take.to, e);
	if (rc == 0 && x->take.is_dirty && !x->is_dirty) {
		rc = db_exec_at(x->take.to, DB_INDEX_DIRTY_PUT, 1, e);
		x->is_dirty = rc == 0;
	}
	x->is_late = x->is_late || (x->take.is_dirty && x->is_merging);
	x->take.is_dirty = false;
	if (rc == 0)
		rc = db_exec(x->take.to, DB_COMMIT, e);
	if (rc != 0)
		db_rollback(x->take.to);
	else
		atomic_store(&x->text_bytes, x->take.corpus.bytes);
	return rc != 0 ?
	    rc :
	    readers_bound_wal(x->readers, x->take.to, &x->wants_empty_wal, e);
}

/* ---- what it knows of */

/* Numbers before id that are not there: their rows may yet come. */
static int
note_gaps(struct history_index *x, int64_t id, struct err *e)
{
	int64_t from = x->upto + 1;

	if (id - from > GAP_REACH)
		from = id - GAP_REACH;
	for (; from < id; from++) {
		if (db_exec_at(x->take.to, DB_INDEX_GAP_PUT, from, e) != 0)
			return e->code;
		x->ngaps++;
	}
	if (x->ngaps <= GAPS_MAX)
		return 0;
	x->ngaps = GAP_REACH;
	return db_exec_at(x->take.to, DB_INDEX_GAPS_TRIM, id - GAP_REACH, e);
}

static int
take_next(struct history_index *x, int64_t id, enum history_trust trust,
    struct err *e)
{
	if (id <= x->upto) {
		if (x->ngaps > 0 &&
		    db_exec_at(x->take.to, DB_INDEX_GAP_DROP, id, e) != 0)
			return e->code;
	} else {
		if (note_gaps(x, id, e) != 0)
			return e->code;
		x->upto = id;
	}
	return history_take_run(&x->take, id, trust, e);
}

static int
take_all(struct history_index *x, const int64_t *ids, size_t n,
    enum history_trust trust, struct err *e)
{
	const uint64_t put = x->take.corpus.put;
	const int64_t upto = x->upto;
	int rc = step_begin(x, e);

	for (size_t i = 0; i < n && rc == 0; i++)
		rc = take_next(x, ids[i], trust, e);
	if (rc == 0 && x->upto != upto)
		rc = db_exec_at(x->take.to, DB_INDEX_UPTO_PUT, x->upto, e);
	/* Twice what came: a bound that was lowered is reached beside them. */
	if (rc == 0)
		rc = history_shed(&x->take, atomic_load(&x->text_max),
		    2 * (x->take.corpus.put - put), e);
	return step_end(x, rc, e);
}

static int
take_in_steps(struct history_index *x, const int64_t *ids, size_t n,
    enum history_trust trust, struct err *e)
{
	int rc = 0;

	for (size_t i = 0; i < n && rc == 0; i += STEP_RUNS) {
		if (feed_is_stopped(x->feed))
			return err_set(e, ERR_WRONG_STATE, "stopped");
		rc = take_all(x, ids + i, n - i < STEP_RUNS ? n - i : STEP_RUNS,
		    trust, e);
	}
	return rc;
}

/* ---- catching up */

struct run_ids {
	int64_t *p;
	size_t n;
};

/* All rows that are left, of so many columns each. */
static int
read_numbers(
    struct db_call *c, unsigned int columns, struct run_ids *out, struct err *e)
{
	int rc;

	*out = (struct run_ids){0};
	while ((rc = db_call_step(c, e)) == 1)
		for (unsigned int i = 0; i < columns; i++) {
			out->p = array_grow(out->p, out->n, sizeof(*out->p));
			out->p[out->n++] = db_get_int(c);
		}
	return rc;
}

static int
take_again(struct history_index *x, enum db_query q, struct err *e)
{
	struct run_ids ids;
	struct db_call c;
	int rc;

	db_call_init(&c, x->take.to, q);
	rc = read_numbers(&c, 1, &ids, e);
	if (q == DB_INDEX_GAPS)
		x->ngaps = ids.n;
	if (rc == 0)
		rc = take_in_steps(x, ids.p, ids.n, HISTORY_KNOWN, e);
	free(ids.p);
	return rc;
}

/* Numbers behind after: bound is how many, or (of DB_INDEX_IDS) the last. */
static int
read_ids(struct db *db, enum db_query q, int64_t after, int64_t bound,
    struct run_ids *out, struct err *e)
{
	struct db_call c;

	db_call_init(&c, db, q);
	db_put_int(&c, after);
	db_put_int(&c, bound);
	return read_numbers(&c, 1, out, e);
}

/* All that the database has behind upto. */
static int
scan(struct history_index *x, struct err *e)
{
	uint64_t done = 0;
	struct run_ids ids;
	int rc;

	do {
		rc = read_ids(
		    x->take.from, DB_SOURCE_IDS, x->upto, STEP_RUNS, &ids, e);
		if (rc == 0)
			rc = take_in_steps(x, ids.p, ids.n, HISTORY_KNOWN, e);
		free(ids.p);
		done += ids.n;
		if (done >= 10000) {
			AUTO(auto_free)
			char *text = xasprintf(
			    "its index is being made from the database, %llu "
			    "runs are done: try again in a while",
			    (unsigned long long)done);

			feed_hold(x->feed, text, text);
		}
	} while (rc == 0 && ids.n == STEP_RUNS);
	return rc;
}

/* ---- comparing */

/* 1: as many ended runs of each tenant here as there. */
static int
counts_agree(struct history_index *x, struct err *e)
{
	struct run_ids want, have = {0};
	struct db_call c;
	int rc;

	db_call_init(&c, x->take.from, DB_SOURCE_KEPT);
	rc = read_numbers(&c, 2, &want, e);
	if (rc == 0) {
		db_call_init(&c, x->take.to, DB_INDEX_KEPT);
		rc = read_numbers(&c, 2, &have, e);
	}
	if (rc == 0)
		rc = want.n == have.n &&
		    (want.n == 0 ||
			memcmp(want.p, have.p, want.n * sizeof(*want.p)) == 0);
	free(want.p);
	free(have.p);
	return rc;
}

/* What is in one of the two only, of two lists in order. */
static int
sift_lists(struct history_index *x, const struct run_ids *a,
    const struct run_ids *b, struct err *e)
{
	struct run_ids odd = {xcalloc(a->n + b->n + 1, sizeof(int64_t)), 0};
	size_t i = 0, j = 0;
	int rc;

	while (i < a->n || j < b->n) {
		if (i < a->n && j < b->n && a->p[i] == b->p[j]) {
			i++;
			j++;
		} else if (j == b->n || (i < a->n && a->p[i] < b->p[j])) {
			odd.p[odd.n++] = a->p[i++];
		} else {
			odd.p[odd.n++] = b->p[j++];
		}
	}
	rc = take_in_steps(x, odd.p, odd.n, HISTORY_ANEW, e);
	free(odd.p);
	return rc;
}

static int
sift(struct history_index *x, struct err *e)
{
	struct run_ids there, here;
	int64_t after = 0, last;
	int rc;

	log_info("store: the index of runs is compared with the database");
	do {
		rc = read_ids(
		    x->take.from, DB_SOURCE_IDS, after, STEP_RUNS, &there, e);
		last = there.n < STEP_RUNS ? INT64_MAX : there.p[there.n - 1];
		here = (struct run_ids){0};
		if (rc == 0)
			rc = read_ids(
			    x->take.to, DB_INDEX_IDS, after, last, &here, e);
		if (rc == 0)
			rc = sift_lists(x, &there, &here, e);
		free(there.p);
		free(here.p);
		after = last;
	} while (rc == 0 && last != INT64_MAX);
	return rc;
}

static int
look_for_news(struct history_index *x, struct err *e)
{
	int rc = take_again(x, DB_INDEX_UNFINISHED, e);

	if (rc == 0)
		rc = take_again(x, DB_INDEX_GAPS, e);
	return rc == 0 ? scan(x, e) : rc;
}

/* 1: all is as the database has it at one moment; counting takes none that
 * come meanwhile. */
static int
check_counts(struct history_index *x, struct err *e)
{
	struct err ignored;
	int rc = db_exec(x->take.from, DB_BEGIN_READ, e);

	if (rc != 0)
		return rc;
	x->is_pinned = true;
	rc = look_for_news(x, e);
	if (rc == 0)
		rc = counts_agree(x, e);
	x->is_pinned = false;
	if (db_exec(x->take.from, DB_COMMIT, &ignored) != 0)
		db_rollback(x->take.from);
	return rc;
}

static int
catch_up(struct history_index *x, struct err *e)
{
	int rc = look_for_news(x, e);

	if (rc == 0)
		rc = check_counts(x, e);
	return rc != 0 ? (rc < 0 ? rc : 0) : sift(x, e);
}

/* ---- opening */

static void
close_index(struct history_index *x)
{
	db_close(x->take.to);
	x->take.to = NULL;
	db_close(x->take.from);
	x->take.from = NULL;
}

static int
create(struct history_index *x, struct err *e)
{
	int rc = db_begin(x->take.to, e);
	AUTO(auto_free)
	char *version = xasprintf("PRAGMA user_version = %d", HISTORY_VERSION);

	if (rc == 0)
		rc = db_exec_text(x->take.to, HISTORY_SCHEMA, e);
	if (rc == 0)
		rc = db_exec_text(x->take.to, version, e);
	if (rc == 0)
		rc = db_exec(x->take.to, DB_COMMIT, e);
	if (rc != 0)
		db_rollback(x->take.to);
	return rc;
}

static int
read_state(struct history_index *x, struct err *e)
{
	struct db_call c;
	int rc;

	db_call_init(&c, x->take.to, DB_INDEX_STATE);
	rc = db_call_step(&c, e);
	if (rc < 0)
		return rc;
	if (rc == 0)
		return err_set(e, ERR_DAMAGED, "no state");
	x->upto = db_get_int(&c);
	x->is_dirty = db_get_int(&c) != 0;
	db_call_end(&c);
	x->take.is_dirty = false;
	if (history_corpus_load(&x->take.corpus, x->take.to, e) != 0)
		return e->code;
	atomic_store(&x->text_bytes, x->take.corpus.bytes);
	return 0;
}

/* 1: it may be the index of this database; a backup that was put in its place
 * has not given out as many numbers, or has given them to others. */
static int
is_of_this(struct history_index *x, struct err *e)
{
	struct db_call c;
	uint8_t uuid[16], there[16];
	int64_t id;
	int rc = db_exec_int(x->take.from, DB_NEXT_RUN, &id, e);

	if (rc != 0 || id <= x->upto)
		return rc;
	db_call_init(&c, x->take.to, DB_INDEX_NEWEST);
	rc = db_call_step(&c, e);
	if (rc != 1)
		return rc < 0 ? rc : 1;
	id = db_get_int(&c);
	db_get_bytes(&c, uuid, sizeof(uuid));
	db_call_end(&c);
	db_call_init(&c, x->take.from, DB_SOURCE_UUID);
	db_put_int(&c, id);
	rc = db_call_step(&c, e);
	if (rc != 1)
		return rc < 0 ? rc : 1;
	db_get_bytes(&c, there, sizeof(there));
	db_call_end(&c);
	return memcmp(uuid, there, sizeof(uuid)) == 0;
}

static int
open_files(struct history_index *x, struct err *e)
{
	int64_t version, tables;
	int rc = db_open(x->dir, DB_READER, &x->take.from, e);

	if (rc == 0)
		rc = db_open(x->dir, DB_HISTORY_WRITER, &x->take.to, e);
	if (rc == 0)
		rc = db_use_wal(x->take.to, e);
	if (rc == 0)
		rc = db_exec_int(x->take.to, DB_GET_VERSION, &version, e);
	if (rc == 0)
		rc = db_exec_int(x->take.to, DB_GET_TABLES, &tables, e);
	if (rc != 0)
		return rc;
	if (version == 0 && tables == 0)
		rc = create(x, e);
	else if (version != HISTORY_VERSION)
		return err_set(e, ERR_DAMAGED, "of another version");
	if (rc == 0)
		rc = read_state(x, e);
	if (rc == 0) {
		rc = is_of_this(x, e);
		rc = rc == 0 ? err_set(e, ERR_DAMAGED, "of another database") :
		    rc < 0   ? rc :
			       0;
	}
	return rc;
}

/* It is an index of what the database has: nothing is lost by this. */
static int
remove_files(struct history_index *x, struct err *e)
{
	static const char *const suffixes[] = {"", "-wal", "-shm"};

	for (size_t i = 0; i < ARRAY_LEN(suffixes); i++) {
		AUTO(auto_free)
		char *path =
		    xasprintf("%s/" DB_HISTORY_FILE "%s", x->dir, suffixes[i]);

		if (unlink(path) == -1 && errno != ENOENT)
			return err_set(e, ERR_DB, "%s cannot be removed: %s",
			    path, strerror(errno));
	}
	return 0;
}

static int
open_index(struct history_index *x, struct err *e)
{
	int rc = open_files(x, e);

	if (rc != ERR_DAMAGED)
		return rc;
	close_index(x);
	log_warn("store: the index of runs is made anew: %s", e->msg);
	atomic_fetch_add(&x->made_anew, 1);
	rc = remove_files(x, e);
	return rc == 0 ? open_files(x, e) : rc;
}

/* ---- when there is nothing else to do */

/* Pieces of FTS5 into one, some at a time: what was taken out before the first
 * of these steps is gone then. */
static int
merge(struct history_index *x, struct err *e)
{
	const uint64_t before = clock_mono_ms();
	int64_t changes;
	int rc = db_begin(x->take.to, e);

	changes = db_changes(x->take.to);
	if (rc == 0)
		rc = db_exec_at(x->take.to, DB_INDEX_WORDS_MERGE,
		    x->is_merging ? MERGE_PAGES : -MERGE_PAGES, e);
	x->is_late = x->is_late && x->is_merging;
	x->is_merging = true;
	/* FTS5: one change, of its own, when there was nothing to merge. */
	if (rc == 0 && db_changes(x->take.to) - changes < 2) {
		rc = db_exec_at(x->take.to, DB_INDEX_DIRTY_PUT, x->is_late, e);
		x->is_merging = false;
		x->is_dirty = x->is_late;
		x->wants_empty_wal = true;
	}
	if (rc == 0)
		rc = db_exec(x->take.to, DB_COMMIT, e);
	if (rc != 0)
		db_rollback(x->take.to);
	x->merge_spent_ms += clock_mono_ms() - before;
	if (!x->is_merging) {
		x->merge_at = clock_mono_ms() + MERGE_SHARE * x->merge_spent_ms;
		x->merge_spent_ms = 0;
	}
	return rc;
}

static bool
has_too_much(const struct history_index *x)
{
	return x->take.corpus.bytes > atomic_load(&x->text_max);
}

static int
shed(struct history_index *x, struct err *e)
{
	const uint64_t before = clock_mono_ms();
	int rc = step_begin(x, e);

	if (rc == 0)
		rc = history_shed(
		    &x->take, atomic_load(&x->text_max), SHED_BYTES, e);
	rc = step_end(x, rc, e);
	x->shed_at =
	    clock_mono_ms() + SHED_SHARE * (clock_mono_ms() - before + 1);
	return rc;
}

static int
tidy_up(struct history_index *x, struct err *e)
{
	if (has_too_much(x) && clock_mono_ms() >= x->shed_at)
		return shed(x, e);
	if (x->is_dirty && (x->is_merging || clock_mono_ms() >= x->merge_at))
		return merge(x, e);
	if (!x->is_at_rest) {
		db_rest(x->take.from);
		db_rest(x->take.to);
		x->is_at_rest = true;
	}
	if (!x->wants_empty_wal)
		return 0;
	return readers_empty_wal(
	    x->readers, x->take.to, &x->wants_empty_wal, e);
}

static uint64_t
idle_ms(const struct history_index *x)
{
	const uint64_t now = clock_mono_ms();
	uint64_t ms = REST_MS;

	if (has_too_much(x))
		return x->shed_at > now ? x->shed_at - now : 1;
	if (x->is_dirty && x->is_merging)
		return 1;
	if (x->is_dirty && x->merge_at <= now)
		return 50;
	if (x->is_dirty && x->merge_at - now < ms)
		ms = x->merge_at - now;
	return x->wants_empty_wal && ms > WAL_MS ? WAL_MS : ms;
}

/* ---- following */

static int
follow_once(struct history_index *x, struct err *e)
{
	struct feed_news news;
	int rc;

	if (!feed_wait(x->feed, idle_ms(x)))
		return feed_is_stopped(x->feed) ? 0 : tidy_up(x, e);
	x->is_at_rest = false;
	feed_gather(x->feed, GATHER_MS);
	feed_take(x->feed, &news);
	rc = take_in_steps(x, news.runs, news.n, HISTORY_ANEW, e);
	free(news.runs);
	if (rc == 0 && news.is_lost)
		rc = catch_up(x, e);
	if (rc == 0) {
		feed_go(x->feed, x->opened);
		feed_applied(x->feed, news.mark);
		x->wants_empty_wal = x->wants_empty_wal || x->is_dirty;
	}
	return rc;
}

static int
follow(struct history_index *x, struct err *e)
{
	struct feed_news news;
	int rc;

	/* What is written from now on is told; all before is looked for. */
	feed_take(x->feed, &news);
	free(news.runs);
	rc = catch_up(x, e);
	if (rc != 0)
		return rc;
	x->opened++;
	feed_go(x->feed, x->opened);
	feed_applied(x->feed, news.mark);
	x->backoff_ms = 0;
	while (rc == 0 && !feed_is_stopped(x->feed)) {
		rc = follow_once(x, e);
		if (rc == 0 && feed_is_distrusted(x->feed, x->opened))
			rc = err_set(e, ERR_DAMAGED, "damaged");
	}
	return rc;
}

/* Found damaged while it was open, it has to be made anew; anything else may
 * be better the next time. */
static void
fail(struct history_index *x, int rc, struct err *why)
{
	struct err e;

	close_index(x);
	x->is_merging = false;
	if (rc == ERR_DAMAGED) {
		log_warn("store: the index of runs is made anew: %s", why->msg);
		atomic_fetch_add(&x->made_anew, 1);
		feed_hold(x->feed,
		    "its index was damaged and is made anew: try again in a "
		    "while",
		    why->msg);
		if (remove_files(x, &e) == 0 && x->backoff_ms == 0) {
			x->backoff_ms = BACKOFF_MIN_MS;
			return;
		}
	}
	log_warn("store: no index of runs for now: %s", why->msg);
	feed_hold(x->feed, HISTORY_SEE_LOG, why->msg);
	x->backoff_ms = x->backoff_ms == 0 ? BACKOFF_MIN_MS : 2 * x->backoff_ms;
	if (x->backoff_ms > BACKOFF_MAX_MS)
		x->backoff_ms = BACKOFF_MAX_MS;
	feed_pause(x->feed, x->backoff_ms);
}

static void *
index_main(void *arg)
{
	struct history_index *x = arg;
	struct err e;
	int rc;

	while (!feed_is_stopped(x->feed)) {
		rc = open_index(x, &e);
		if (rc == 0)
			rc = follow(x, &e);
		if (rc != 0 && !feed_is_stopped(x->feed))
			fail(x, rc, &e);
	}
	close_index(x);
	return NULL;
}

/* ---- life */

int
history_index_start(const char *dir, struct spool *spool, struct feed *feed,
    struct history_readers *readers, struct history_index **out, struct err *e)
{
	struct history_index *x = xcalloc(1, sizeof(*x));
	int rc;

	x->dir = dir;
	x->feed = feed;
	x->readers = readers;
	x->take.spool = spool;
	atomic_store(&x->text_max, UINT64_MAX);
	rc = queue_thread(&x->thread, index_main, x, e);
	if (rc != 0) {
		free(x);
		return rc;
	}
	*out = x;
	return 0;
}

void
history_index_stop(struct history_index *x)
{
	(void)pthread_join(x->thread, NULL);
	free(x);
}

uint64_t
history_index_made_anew(const struct history_index *x)
{
	return atomic_load(&x->made_anew);
}

void
history_index_bound(struct history_index *x, uint64_t text_bytes)
{
	if (atomic_exchange(&x->text_max, text_bytes) != text_bytes)
		feed_nudge(x->feed);
}

uint64_t
history_index_text_bytes(const struct history_index *x)
{
	return atomic_load(&x->text_bytes);
}
