/*
 * history_list.c - a page of runs, from the index
 *
 * Each index of the runs is in the order of creation for one value of its
 * column (history_sql.h), so a question with one filter is a walk that stops
 * when the page is full; what else is asked for is looked at on the way.  Of
 * several filters the rarest is the way.  Of durations, which are no one value,
 * the few are collected, and the many are met on a walk through an index that
 * has them beside the place, so it reads no other runs.  In the order of
 * duration or bytes a rare filter's runs are collected and sorted, and a common
 * one's are met soon enough on the walk through all in that order.
 *
 * A page looks for HISTORY_TURN_MS at most, and has little more text than
 * HISTORY_PAGE_BYTES.  What it has then goes out, with a cursor behind the last
 * run that it looked at.
 */
#include "supervisor/store/history_ask.h"

#include "common/clock.h"
#include "common/xmalloc.h"
#include "supervisor/store/db.h"
#include "supervisor/store/history_sql.h"
#include "supervisor/store/history_take.h"
#include "supervisor/store/store_int.h"

#define WORTH_COUNTING 2000
#define WORTH_COLLECTING 5000
#define WORTH_SORTING 5000
#define LOOK_AT_CLOCK 64

struct history_walk {
	struct db *db;
	struct history_asking *a;
	uint64_t until_ms;
	unsigned int nseen;
	size_t bytes;             /* of its texts */
	bool is_full;             /* a run that passes has no room */
	bool is_late;             /* the next page goes on */
	struct history_cursor at; /* the last run that was looked at */
	int64_t last_place;       /* of a file's way: the run may come again */
};

/* ---- parameters */

static int64_t
first_place(const struct history_filter *f)
{
	return f->since_ms <= 0 ? 0 :
	    f->since_ms > HISTORY_CREATED_MAX ?
				  INT64_MAX :
				  f->since_ms << HISTORY_PLACE_BITS;
}

static int64_t
last_place(const struct history_filter *f)
{
	return f->until_ms == 0 ? INT64_MAX :
	    f->until_ms < 0     ? -1 :
	    f->until_ms > HISTORY_CREATED_MAX ?
			      INT64_MAX :
			      (f->until_ms << HISTORY_PLACE_BITS) - 1;
}

static void
put_text(struct db_call *c, const char *text)
{
	if (text == NULL)
		db_put_null(c);
	else
		db_put_text(c, text);
}

static void
put_wanted(struct db_call *c, bool wanted, int64_t v)
{
	if (wanted)
		db_put_int(c, v);
	else
		db_put_null(c);
}

static bool
wants_duration(const struct history_asking *a)
{
	return a->q.filter.min_duration_ms > 0 ||
	    a->q.filter.max_duration_ms > 0;
}

static int64_t
max_duration(const struct history_asking *a)
{
	return a->q.filter.max_duration_ms > 0 ? a->q.filter.max_duration_ms :
						 INT64_MAX;
}

static bool
is_path(const char *artifact)
{
	return strchr(artifact, '/') != NULL;
}

/* Parameters ?5 to ?20 of HISTORY_PASSES, without what the way has seen to,
 * and ?21 of the way. */
static void
put_filter(
    struct db_call *c, const struct history_asking *a, enum history_way way)
{
	const struct history_filter *f = &a->q.filter;
	const char *file = a->artifact;

	put_text(c, a->identifier);
	put_text(c, a->sandbox);
	put_text(c, a->principal);
	put_text(c, a->tool);
	put_text(c, a->language);
	put_wanted(c, f->states != 0, f->states);
	put_wanted(c, f->end_reason != 0, f->end_reason);
	put_wanted(c, f->has_exit_code, f->exit_code);
	/* Sorted by what an end gave, there are ended runs only. */
	put_wanted(c, f->min_duration_ms > 0 || a->q.sort != HISTORY_CREATED,
	    a->q.filter.min_duration_ms);
	put_wanted(c, f->max_duration_ms > 0, f->max_duration_ms);
	put_text(
	    c, file == NULL || is_path(file) || way == WAY_NAME ? NULL : file);
	put_text(
	    c, file == NULL || !is_path(file) || way == WAY_PATH ? NULL : file);
	if (f->digest == NULL || way == WAY_DIGEST)
		db_put_null(c);
	else
		db_put_blob(c, a->digest, sizeof(a->digest));
	put_text(c, way == WAY_TEXT ? NULL : a->words.match);
	db_put_int(c, first_place(f));
	db_put_int(c, last_place(f));
	if (way == WAY_LASTING)
		db_put_int(c, max_duration(a));
}

/* ---- ways */

static bool
is_one_bit(uint32_t v)
{
	return v != 0 && (v & (v - 1)) == 0;
}

static size_t
find_ways(const struct history_asking *a, enum history_way out[HISTORY_NWAY])
{
	const struct history_filter *f = &a->q.filter;
	const bool has[HISTORY_NWAY] = {
	    [WAY_IDENTIFIER] = a->identifier != NULL,
	    [WAY_SANDBOX] = a->sandbox != NULL,
	    [WAY_PRINCIPAL] = a->principal != NULL,
	    [WAY_TOOL] = a->tool != NULL,
	    [WAY_LANGUAGE] = a->language != NULL,
	    [WAY_STATE] = is_one_bit(f->states),
	    [WAY_REASON] = f->end_reason != 0,
	    [WAY_EXIT] = f->has_exit_code,
	    [WAY_NAME] = a->artifact != NULL && !is_path(a->artifact),
	    [WAY_PATH] = a->artifact != NULL && is_path(a->artifact),
	    [WAY_DIGEST] = f->digest != NULL,
	    [WAY_TEXT] = a->words.match != NULL,
	};
	size_t n = 0;

	for (enum history_way w = WAY_TENANT; w < HISTORY_NWAY; w++)
		if (has[w])
			out[n++] = w;
	return n;
}

/* Parameter ?2. */
static void
put_value(struct db_call *c, const struct history_asking *a,
    enum history_way way, int64_t value)
{
	const struct history_filter *f = &a->q.filter;
	const char *const texts[HISTORY_NWAY] = {
	    [WAY_IDENTIFIER] = a->identifier,
	    [WAY_SANDBOX] = a->sandbox,
	    [WAY_PRINCIPAL] = a->principal,
	    [WAY_TOOL] = a->tool,
	    [WAY_LANGUAGE] = a->language,
	    [WAY_NAME] = a->artifact,
	    [WAY_PATH] = a->artifact,
	    [WAY_TEXT] = a->words.match,
	};

	if (texts[way] != NULL)
		db_put_text(c, texts[way]);
	else if (way == WAY_STATE)
		db_put_int(c, __builtin_ctz(f->states)); /* one bit */
	else if (way == WAY_REASON)
		db_put_int(c, f->end_reason);
	else if (way == WAY_EXIT)
		db_put_int(c, f->exit_code);
	else if (way == WAY_DIGEST)
		db_put_blob(c, a->digest, sizeof(a->digest));
	else if (way == WAY_LASTING)
		db_put_int(c, f->min_duration_ms);
	else
		db_put_int(c, value);
}

/* Parameters ?1 to ?4 of what counts or collects, and ?5: so many. */
static void
put_whole_way(struct db_call *c, const struct history_asking *a,
    enum history_way way, int64_t limit)
{
	db_put_uint(c, a->tenant);
	put_value(c, a, way, a->q.filter.min_duration_ms);
	db_put_int(c, last_place(&a->q.filter));
	db_put_int(c, first_place(&a->q.filter));
	db_put_int(c, limit);
	if (way == WAY_DURATION || way == WAY_BYTES)
		db_put_int(c, max_duration(a));
}

/* 1: it took too long, and is as good as too many. */
static int
count_way(struct db *db, const struct history_asking *a, enum history_way way,
    int64_t limit, int64_t *n, struct err *e)
{
	struct db_call c;
	int rc;

	db_call_init(&c, db, DB_HISTORY_COUNT + way);
	put_whole_way(&c, a, way, limit);
	rc = db_call_step(&c, e);
	if (rc == ERR_LIMIT) {
		*n = limit;
		return 1;
	}
	if (rc < 0)
		return rc;
	*n = db_get_int(&c);
	db_call_end(&c);
	return 0;
}

void
history_put_way(
    struct db_call *c, const struct history_asking *a, enum history_way way)
{
	db_put_uint(c, a->tenant);
	put_value(c, a, way, 0);
	db_put_int(c, a->has_read ? a->read_to - 1 : last_place(&a->q.filter));
	db_put_int(c, first_place(&a->q.filter));
	put_filter(c, a, way);
}

/* ---- lines */

void
history_page_clear(struct history_page *p)
{
	for (size_t i = 0; i < p->n; i++)
		history_line_clear(&p->lines[i]);
	free(p->lines);
	*p = (struct history_page){0};
}

/* As HISTORY_LINE names them. */
static void
get_line(struct db_call *c, struct history_line *l)
{
	db_get_bytes(c, l->uuid.b, sizeof(l->uuid.b));
	l->identifier = db_get_text(c);
	l->sandbox_name = db_get_text(c);
	l->principal = db_get_text(c);
	l->client = db_get_text(c);
	l->tool = db_get_text(c);
	l->language = db_get_text(c);
	l->state = (enum run_state)db_get_int(c);
	l->end_reason = (enum runlog_reason)db_get_int(c);
	l->exit_code = (int32_t)db_get_int(c);
	l->error = db_get_text(c);
	l->created_ms = db_get_int(c);
	l->started_ms = db_get_int(c);
	l->ended_ms = db_get_int(c);
	l->duration_ms = db_get_int(c);
	l->stdout_bytes = db_get_uint(c);
	l->stderr_bytes = db_get_uint(c);
	l->artifacts = db_get_u32(c);
	l->artifact_bytes = db_get_uint(c);
	l->cpu_us = db_get_uint(c);
	l->memory_peak_bytes = db_get_uint(c);
	l->command = db_get_text(c);
}

/* The row at hand; false: the page ends before it. */
static bool
take_row(
    struct history_walk *w, struct db_call *c, const struct history_cursor *key)
{
	struct history_page *p = &w->a->page;
	bool passes = db_get_int(c) != 0;
	struct history_cursor at;

	at.place = db_get_int(c);
	at.value = db_get_int(c);
	if (key != NULL)
		at = *key;
	passes = passes && at.place != w->last_place;
	if (passes && p->n == w->a->q.limit) {
		w->is_full = true;
		return false;
	}
	w->at = at;
	w->last_place = at.place;
	if (passes) {
		p->lines = array_grow(p->lines, p->n, sizeof(*p->lines));
		get_line(c, &p->lines[p->n]);
		w->bytes += strlen(p->lines[p->n].command) +
		    strlen(p->lines[p->n].error);
		p->n++;
	}
	if (++w->nseen % LOOK_AT_CLOCK == 0)
		w->is_late = clock_mono_ms() >= w->until_ms;
	if (w->bytes >= HISTORY_PAGE_BYTES)
		w->is_late = true;
	return !w->is_late;
}

/* From and to are ?3 and ?4. */
static int
walk_way(struct history_walk *w, enum history_way way, int64_t value,
    int64_t from, int64_t to, struct err *e)
{
	const unsigned int before = w->nseen;
	struct db_call c;
	int rc;

	db_call_init(&c, w->db,
	    (w->a->q.order == HISTORY_ASCENDING ? DB_HISTORY_UP :
						  DB_HISTORY_DOWN) +
		way);
	db_put_uint(&c, w->a->tenant);
	put_value(&c, w->a, way, value);
	db_put_int(&c, from);
	db_put_int(&c, to);
	put_filter(&c, w->a, way);
	while ((rc = db_call_step(&c, e)) == 1)
		if (!take_row(w, &c, NULL))
			break;
	if (rc == 1)
		db_call_end(&c);
	/* Where none was seen there is no place to go on from. */
	if (rc == ERR_LIMIT && w->nseen != before) {
		w->is_late = true;
		return 0;
	}
	return rc < 0 ? rc : 0;
}

/* By place: behind the cursor, when it is on this way. */
static int
walk_places(
    struct history_walk *w, enum history_way way, int64_t value, struct err *e)
{
	const struct history_asking *a = w->a;
	int64_t first = first_place(&a->q.filter);
	int64_t last = last_place(&a->q.filter);

	if (a->has_cursor && a->q.order == HISTORY_DESCENDING &&
	    a->cursor.place <= last)
		last = a->cursor.place - 1;
	if (a->has_cursor && a->q.order == HISTORY_ASCENDING &&
	    a->cursor.place >= first && a->cursor.place < INT64_MAX)
		first = a->cursor.place + 1;
	return walk_way(w, way, value, last, first, e);
}

/* By value: first those that have the cursor's, behind it. */
static int
walk_values(struct history_walk *w, struct err *e)
{
	const struct history_asking *a = w->a;
	bool of_duration = a->q.sort == HISTORY_DURATION;
	int64_t min = of_duration ? a->q.filter.min_duration_ms : 0;
	int64_t max = of_duration ? max_duration(a) : INT64_MAX;
	enum history_way way = of_duration ? WAY_DURATION : WAY_BYTES;
	int rc = 0;

	if (a->has_cursor)
		rc =
		    walk_places(w, of_duration ? WAY_DURATION_IS : WAY_BYTES_IS,
			a->cursor.value, e);
	if (rc != 0 || w->is_full || w->is_late)
		return rc;
	if (a->q.order == HISTORY_DESCENDING)
		return walk_way(w, way, 0,
		    a->has_cursor       ? a->cursor.value :
			max < INT64_MAX ? max + 1 :
					  max,
		    min, e);
	return walk_way(
	    w, way, 0, a->has_cursor ? a->cursor.value : min - 1, max, e);
}

/* ---- collecting */

struct history_keys {
	struct history_cursor *p;
	size_t n;
};

static int
compare_keys(const void *x, const void *y)
{
	const struct history_cursor *a = x, *b = y;

	if (a->value != b->value)
		return a->value < b->value ? -1 : 1;
	return (a->place > b->place) - (a->place < b->place);
}

/* 1: there are more than limit, or it took too long. */
static int
read_keys(struct history_walk *w, enum history_way way, size_t limit,
    struct history_keys *out, struct err *e)
{
	const enum history_sort sort = w->a->q.sort;
	struct db_call c;
	int rc;

	db_call_init(&c, w->db, DB_HISTORY_KEYS + way);
	put_whole_way(&c, w->a, way, (int64_t)limit + 1);
	while ((rc = db_call_step(&c, e)) == 1) {
		struct history_cursor k = {.place = db_get_int(&c)};
		int64_t duration = db_get_int(&c), bytes = db_get_int(&c);

		if (out->n == limit) {
			db_call_end(&c);
			return 1;
		}
		k.value = sort == HISTORY_DURATION ? duration :
		    sort == HISTORY_BYTES          ? bytes :
						     0;
		out->p = array_grow(out->p, out->n, sizeof(*out->p));
		out->p[out->n++] = k;
	}
	return rc == ERR_LIMIT ? 1 : rc;
}

static int
take_key(
    struct history_walk *w, const struct history_cursor *key, struct err *e)
{
	struct db_call c;
	int rc;

	db_call_init(&c, w->db, DB_HISTORY_LINE);
	db_put_uint(&c, w->a->tenant);
	db_put_int(&c, key->place);
	db_put_null(&c);
	db_put_null(&c);
	put_filter(&c, w->a, WAY_TENANT);
	rc = db_call_step(&c, e);
	if (rc != 1)
		return rc;
	rc = take_row(w, &c, key);
	db_call_end(&c);
	return rc;
}

static int
take_keys(
    struct history_walk *w, const struct history_keys *keys, struct err *e)
{
	const struct history_asking *a = w->a;
	bool down = a->q.order == HISTORY_DESCENDING;
	int rc = 1;

	for (size_t i = 0; i < keys->n && rc == 1; i++) {
		const struct history_cursor *k =
		    &keys->p[down ? keys->n - 1 - i : i];
		int side = a->has_cursor ? compare_keys(k, &a->cursor) :
		    down                 ? -1 :
					   1;

		if (down ? side < 0 : side > 0)
			rc = take_key(w, k, e);
	}
	return rc < 0 ? rc : 0;
}

/* 1: there are more than limit, not this way. */
static int
collect(
    struct history_walk *w, enum history_way way, size_t limit, struct err *e)
{
	struct history_keys keys = {0};
	int rc = read_keys(w, way, limit, &keys, e);

	if (rc == 0 && keys.n > 0) {
		qsort(keys.p, keys.n, sizeof(*keys.p), compare_keys);
		rc = take_keys(w, &keys, e);
	}
	free(keys.p);
	return rc;
}

/* ---- which way */

/* The rarest of them, and how often it is, as far as it was counted. */
static int
choose(const struct history_walk *w, const enum history_way *ways, size_t n,
    int64_t enough, enum history_way *way, int64_t *least, struct err *e)
{
	*least = INT64_MAX;
	for (size_t i = 0; i < n; i++) {
		int64_t found;

		if (count_way(w->db, w->a, ways[i], enough, &found, e) < 0)
			return e->code;
		if (found < *least) {
			*least = found;
			*way = ways[i];
		}
	}
	return 0;
}

/* Rare durations are collected, others are met soon enough. */
static int
page_by_duration(struct history_walk *w, struct err *e)
{
	int64_t found;
	int rc = count_way(
	    w->db, w->a, WAY_DURATION, WORTH_COLLECTING + 1, &found, e);

	if (rc == 0 && found <= WORTH_COLLECTING)
		rc = collect(w, WAY_DURATION, WORTH_COLLECTING, e);
	else if (rc == 0)
		rc = 1;
	return rc == 1 ? walk_places(w, WAY_LASTING, 0, e) : rc;
}

static int
page_by_time(
    struct history_walk *w, enum history_way *ways, size_t n, struct err *e)
{
	enum history_way way = n > 0 ? ways[0] : WAY_TENANT;
	int64_t least = INT64_MAX, lasting = INT64_MAX;
	bool has_duration = wants_duration(w->a);
	int rc = 0;

	if (n == 0 && has_duration)
		return page_by_duration(w, e);
	if (n > 1 || (n > 0 && has_duration))
		rc = choose(w, ways, n, WORTH_COUNTING, &way, &least, e);
	if (rc == 0 && n > 0 && has_duration)
		rc = count_way(
		    w->db, w->a, WAY_DURATION, WORTH_COUNTING, &lasting, e);
	if (rc >= 0 && lasting < least) {
		rc = collect(w, WAY_DURATION, HISTORY_COLLECT_MAX, e);
		if (rc != 1)
			return rc;
		rc = 0;
	}
	return rc >= 0 ? walk_places(w, way, 0, e) : rc;
}

static int
page_by_value(
    struct history_walk *w, enum history_way *ways, size_t n, struct err *e)
{
	enum history_way way = WAY_TENANT;
	int64_t least = INT64_MAX;
	int rc;

	if (n > 0 &&
	    choose(w, ways, n, WORTH_SORTING + 1, &way, &least, e) != 0)
		return e->code;
	if (least <= WORTH_SORTING) {
		rc = collect(w, way, HISTORY_COLLECT_MAX, e);
		if (rc != 1)
			return rc;
	}
	return walk_values(w, e);
}

int
history_choose_way(struct db *db, const struct history_asking *a,
    enum history_way *way, struct err *e)
{
	struct history_walk w = {
	    .db = db, .a = (struct history_asking *)(uintptr_t)a};
	enum history_way ways[HISTORY_NWAY];
	size_t n = find_ways(a, ways);
	int64_t least;

	*way = n > 0 ? ways[0] : wants_duration(a) ? WAY_LASTING : WAY_TENANT;
	return n > 1 ?
	    choose(&w, ways, n, HISTORY_COLLECT_MAX, way, &least, e) :
	    0;
}

/* ---- totals */

/* One by one, as far as time allows. */
static int
count_slowly(const struct history_walk *w, enum history_way way, struct err *e)
{
	const uint64_t until = clock_mono_ms() + HISTORY_COUNT_MS;
	struct history_page *p = &w->a->page;
	int64_t last = -1;
	unsigned int seen = 0;
	struct db_call c;
	int rc;

	db_call_init(&c, w->db, DB_HISTORY_DOWN + way);
	history_put_way(&c, w->a, way);
	while ((rc = db_call_step(&c, e)) == 1) {
		bool passes = db_get_int(&c) != 0;
		int64_t place = db_get_int(&c);

		p->total += passes && place != last;
		last = place;
		if (p->total > HISTORY_COUNT_MAX ||
		    (++seen % LOOK_AT_CLOCK == 0 && clock_mono_ms() >= until))
			break;
	}
	p->is_at_least = rc == 1 || rc == ERR_LIMIT;
	if (rc == 1)
		db_call_end(&c);
	return p->is_at_least || rc == 0 ? 0 : rc;
}

static int
count_all(
    struct history_walk *w, enum history_way *ways, size_t n, struct err *e)
{
	const struct history_asking *a = w->a;
	struct history_page *p = &w->a->page;
	enum history_way way = WAY_TENANT;
	bool is_plain = a->q.sort == HISTORY_CREATED &&
	    (a->q.filter.states == 0 || is_one_bit(a->q.filter.states));
	int64_t total;
	int rc = 0;

	p->has_total = true;
	if (n > 0)
		way = ways[0];
	if (n == 0 && wants_duration(a))
		way = WAY_DURATION;
	is_plain = is_plain && n + wants_duration(a) <= 1;
	if (is_plain) {
		rc = count_way(
		    w->db, w->a, way, HISTORY_COUNT_MAX + 1, &total, e);
		if (rc == 0)
			p->total = (uint64_t)total;
		p->is_at_least = rc == 1;
	} else {
		if (n > 1)
			rc = choose(
			    w, ways, n, HISTORY_COUNT_MAX, &way, &total, e);
		if (rc == 0)
			rc = count_slowly(
			    w, way == WAY_DURATION ? WAY_LASTING : way, e);
	}
	if (p->total > HISTORY_COUNT_MAX) {
		p->total = HISTORY_COUNT_MAX;
		p->is_at_least = true;
	}
	if (p->is_at_least && p->total < p->n)
		p->total = p->n;
	return rc < 0 ? rc : 0;
}

/* ---- a page */

int
history_text_since(struct db *db, const struct history_asking *a,
    int64_t *since_ms, struct err *e)
{
	*since_ms = 0;
	if (a->words.match == NULL)
		return 0;
	return history_corpus_reach(db, a->tenant, first_place(&a->q.filter),
	    last_place(&a->q.filter), since_ms, e);
}

/* How long a patient question may still read for its first run, in ms. */
static uint64_t
patience_of(const struct history_asking *a)
{
	return a->spent_ms < HISTORY_PATIENCE_MS ?
	    HISTORY_PATIENCE_MS - a->spent_ms :
	    0;
}

int
history_too_long(const struct history_asking *a, int rc, struct err *e)
{
	if (rc != ERR_LIMIT || !a->is_patient || a->words.match == NULL ||
	    atomic_load(&a->is_stopped))
		return rc;
	return err_set(e, ERR_INVAL,
	    "q: to look for this takes more than %d s: take rarer words, or "
	    "fewer",
	    HISTORY_PATIENCE_MS / 1000);
}

int
history_list_run(struct db *db, struct op *op, struct err *e)
{
	struct history_asking *a = (struct history_asking *)op;
	struct history_walk w = {.db = db, .a = a, .last_place = -1};
	enum history_way ways[HISTORY_NWAY];
	size_t n = find_ways(a, ways);
	int rc;

	w.until_ms = clock_mono_ms() + HISTORY_TURN_MS;
	db_set_deadline(
	    db, a->is_patient ? clock_mono_ms() + patience_of(a) : w.until_ms);
	rc = a->q.sort == HISTORY_CREATED ? page_by_time(&w, ways, n, e) :
					    page_by_value(&w, ways, n, e);
	if (rc == 0 && (w.is_full || w.is_late))
		history_cursor_format(&w.at, a->question, a->page.next);
	db_set_deadline(db, clock_mono_ms() + HISTORY_COUNT_MS);
	if (rc == 0 && a->q.total == HISTORY_TOTAL)
		rc = count_all(&w, ways, n, e);
	db_set_deadline(db, 0);
	rc = history_too_long(a, rc, e);
	if (rc == 0)
		rc = history_text_since(db, a, &a->page.text_since_ms, e);
	if (rc == 0 && a->page.text_since_ms != 0)
		a->page.is_at_least = a->page.has_total;
	return rc;
}
