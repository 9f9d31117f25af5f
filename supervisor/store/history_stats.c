/*
 * history_stats.c - sums over the ended runs of a tenant, by group
 *
 * Durations are counted in buckets, 64 to each doubling, so that a group takes
 * some kilobytes however many runs it has; a percentile is the lowest value of
 * its bucket.
 *
 * What takes longer than HISTORY_SLICE_MS is read in slices, each in a
 * transaction of its own that goes on where the one before has ended (all ways
 * are in the order of places), so that neither another tenant nor a checkpoint
 * waits for all of it.
 */
#include "supervisor/store/history_ask.h"

#include <stdio.h>
#include <time.h>

#include "common/clock.h"
#include "common/hashmap.h"
#include "common/xmalloc.h"
#include "supervisor/store/db.h"
#include "supervisor/store/history_sql.h"
#include "supervisor/store/store_int.h"

#define PIECE_BITS 6
#define PIECE (1u << PIECE_BITS) /* buckets of a doubling */
#define DOUBLINGS 40
#define DAY_MS 86400000
#define LOOK_AT_CLOCK 256

struct group {
	struct hash_entry by_key;
	struct history_sum sum;
	uint32_t *pieces[DOUBLINGS];
};

struct history_stats {
	struct history_asking *a;
	struct hashmap groups;
	struct group *last; /* often the next one's, too */
	struct history_sums *out;
	enum history_way way;
	int64_t last_ms;   /* created, of the last run that was read */
	uint64_t spent_ms; /* in slices that are over */
};

/* The slice at hand. */
struct stats_slice {
	uint64_t began_ms;
	uint64_t end_ms;    /* of the time that all slices have */
	uint64_t enough_ms; /* others have their turn then; 0: not known yet */
	unsigned int seen;
};

/* ---- durations */

/* Below PIECE each its own; then PIECE for each doubling. */
static size_t
bucket_of(int64_t ms)
{
	uint64_t v = ms < 0 ? 0 : (uint64_t)ms;
	unsigned int shift = 0;

	while (v >> shift >= 2 * PIECE)
		shift++;
	if (v < PIECE)
		return v;
	v = (size_t)(shift + 1) * PIECE + (size_t)((v >> shift) - PIECE);
	return v < (size_t)DOUBLINGS * PIECE ? v :
					       (size_t)DOUBLINGS * PIECE - 1;
}

static int64_t
bucket_value(size_t bucket)
{
	size_t shift = bucket / PIECE;

	if (shift == 0)
		return (int64_t)bucket;
	return (int64_t)(PIECE + bucket % PIECE) << (shift - 1);
}

/* The smallest that so many percent of the runs do not exceed. */
static int64_t
percentile(const struct group *g, unsigned int percent)
{
	uint64_t want = (g->sum.runs * percent + 99) / 100, seen = 0;

	for (size_t i = 0; i < (size_t)DOUBLINGS * PIECE; i++) {
		if (g->pieces[i / PIECE] == NULL)
			continue;
		seen += g->pieces[i / PIECE][i % PIECE];
		if (seen >= want)
			return bucket_value(i);
	}
	return 0;
}

/* ---- groups */

static bool
has_key(const struct hash_entry *en, const void *key)
{
	return strcmp(HASH_OF(en, struct group, by_key)->sum.key, key) == 0;
}

/* NULL: there are too many. */
static struct group *
find_group(struct history_stats *s, const char *key)
{
	uint64_t hash;
	struct group *g;

	if (s->last != NULL && strcmp(s->last->sum.key, key) == 0)
		return s->last;
	hash = hashmap_key_text(key);
	g = HASH_OBJECT(
	    hashmap_get(&s->groups, hash, has_key, key), struct group, by_key);
	if (g == NULL) {
		if (s->groups.count >= 2 * (size_t)HISTORY_GROUPS_MAX)
			return NULL;
		g = xcalloc(1, sizeof(*g));
		g->sum.key = xstrdup(key);
		hashmap_put(&s->groups, &g->by_key, hash);
	}
	s->last = g;
	return g;
}

static void
free_groups(struct history_stats *s)
{
	struct hash_entry *en, *next;

	HASHMAP_FOREACH (en, next, &s->groups) {
		struct group *g = HASH_OF(en, struct group, by_key);

		hashmap_del(&s->groups, en);
		for (size_t i = 0; i < DOUBLINGS; i++)
			free(g->pieces[i]);
		free(g->sum.key);
		free(g);
	}
	hashmap_clear(&s->groups);
}

/* ---- runs */

struct stats_row {
	int64_t created_ms;
	const char *identifier, *tool, *principal;
	int64_t end_reason, state, duration_ms;
	uint64_t cpu_us, output_bytes, artifact_bytes;
};

static void
day_text(int64_t ms, char out[32])
{
	time_t t = (time_t)(ms / DAY_MS * (DAY_MS / 1000));
	struct tm tm;

	if (gmtime_r(&t, &tm) == NULL ||
	    strftime(out, 32, "%Y-%m-%d", &tm) == 0)
		(void)snprintf(out, 32, "%lld", (long long)ms);
}

static const char *
row_key(const struct history_stats *s, const struct stats_row *r, char day[32])
{
	switch (s->a->by) {
	case HISTORY_BY_DAY:
		day_text(r->created_ms, day);
		return day;
	case HISTORY_BY_IDENTIFIER:
		return r->identifier;
	case HISTORY_BY_END_REASON:
		return runlog_reason_word((enum runlog_reason)r->end_reason);
	case HISTORY_BY_TOOL:
		return r->tool;
	case HISTORY_BY_PRINCIPAL:
		return r->principal;
	case HISTORY_BY_STATE:
		break;
	}
	return run_state_word((enum run_state)r->state);
}

static void
add_row(struct history_stats *s, const struct stats_row *r)
{
	char day[32];
	struct group *g = find_group(s, row_key(s, r, day));
	size_t bucket = bucket_of(r->duration_ms);
	uint32_t **piece;

	if (g == NULL) {
		s->out->more_runs++;
		s->out->is_more_unknown = true;
		return;
	}
	g->sum.runs++;
	g->sum.cpu_us += r->cpu_us;
	g->sum.output_bytes += r->output_bytes;
	g->sum.artifact_bytes += r->artifact_bytes;
	piece = &g->pieces[bucket / PIECE];
	if (*piece == NULL)
		*piece = xcalloc(PIECE, sizeof(**piece));
	(*piece)[bucket % PIECE]++;
}

/* Good until the next step. */
static void
get_row(struct db_call *c, struct stats_row *r)
{
	r->created_ms = db_get_int(c);
	r->identifier = db_get_word(c);
	r->end_reason = db_get_int(c);
	r->tool = db_get_word(c);
	r->principal = db_get_word(c);
	r->state = db_get_int(c);
	r->duration_ms = db_get_int(c);
	r->cpu_us = db_get_uint(c);
	r->output_bytes = db_get_uint(c);
	r->artifact_bytes = db_get_uint(c);
}

/* True: the slice is over.  To begin again costs what it took to find the
 * first: a word's beginning is looked up anew.  So a slice takes a multiple of
 * that. */
static bool
take_row(struct history_stats *s, struct stats_slice *l, struct db_call *c)
{
	bool passes = db_get_int(c) != 0;
	int64_t place = db_get_int(c);
	struct stats_row r;
	uint64_t now, twice;

	get_row(c, &r);
	if (passes && !(s->a->has_read && place == s->a->read_to))
		add_row(s, &r);
	s->a->has_read = true;
	s->a->read_to = place;
	s->last_ms = r.created_ms;
	if (l->seen++ == 0) {
		now = clock_mono_ms();
		twice = 2 * (now - l->began_ms);
		l->enough_ms =
		    now + (twice > HISTORY_SLICE_MS ? twice : HISTORY_SLICE_MS);
	}
	if (l->seen % LOOK_AT_CLOCK != 0)
		return false;
	now = clock_mono_ms();
	return now >= l->enough_ms || now >= l->end_ms;
}

/* 1: there are more. */
static int
read_slice(struct history_stats *s, struct stats_slice *l, struct db *db,
    struct err *e)
{
	struct db_call c;
	int rc;

	db_set_deadline(db, l->end_ms);
	db_call_init(&c, db, DB_HISTORY_STATS + s->way);
	history_put_way(&c, s->a, s->way);
	while ((rc = db_call_step(&c, e)) == 1) {
		if (take_row(s, l, &c)) {
			db_call_end(&c);
			break;
		}
	}
	db_set_deadline(db, 0);
	return rc;
}

/* 1: it goes on in another one. */
static int
add_rows(struct history_stats *s, struct db *db, struct err *e)
{
	struct stats_slice l = {.began_ms = clock_mono_ms()};
	int rc;

	l.end_ms = l.began_ms + HISTORY_STATS_MS;
	l.end_ms -=
	    s->spent_ms < HISTORY_STATS_MS ? s->spent_ms : HISTORY_STATS_MS;
	rc = read_slice(s, &l, db, e);
	s->spent_ms += clock_mono_ms() - l.began_ms;
	if (rc == 1 && s->spent_ms < HISTORY_STATS_MS)
		return 1;
	if (rc == ERR_LIMIT && atomic_load(&s->a->is_stopped))
		return 1;
	if (rc == 1 || (rc == ERR_LIMIT && s->a->has_read)) {
		s->out->cut_ms = s->last_ms;
		return 0;
	}
	return history_too_long(s->a, rc, e);
}

/* ---- the answer */

static int
compare_days(const void *x, const void *y)
{
	const struct history_sum *a = x, *b = y;

	return strcmp(a->key, b->key);
}

static int
compare_runs(const void *x, const void *y)
{
	const struct history_sum *a = x, *b = y;

	if (a->runs != b->runs)
		return a->runs > b->runs ? -1 : 1;
	return strcmp(a->key, b->key);
}

static void
take_groups(struct history_stats *s)
{
	struct history_sums *out = s->out;
	struct hash_entry *en, *next;

	out->sums = xcalloc(s->groups.count + 1, sizeof(*out->sums));
	HASHMAP_FOREACH (en, next, &s->groups) {
		struct group *g = HASH_OF(en, struct group, by_key);

		g->sum.p50_ms = percentile(g, 50);
		g->sum.p95_ms = percentile(g, 95);
		g->sum.p99_ms = percentile(g, 99);
		out->sums[out->n++] = g->sum;
		g->sum.key = NULL;
	}
	qsort(out->sums, out->n, sizeof(*out->sums), compare_runs);
	while (out->n > HISTORY_GROUPS_MAX) {
		const struct history_sum *last = &out->sums[--out->n];

		out->more_groups++;
		out->more_runs += last->runs;
		free(last->key);
	}
	if (s->a->by == HISTORY_BY_DAY)
		qsort(out->sums, out->n, sizeof(*out->sums), compare_days);
}

void
history_sums_clear(struct history_sums *s)
{
	for (size_t i = 0; i < s->n; i++)
		free(s->sums[i].key);
	free(s->sums);
	*s = (struct history_sums){0};
}

void
history_stats_drop(struct history_stats *s)
{
	if (s == NULL)
		return;
	free_groups(s);
	free(s);
}

/* 1: there is another slice. */
static int
run_slice(struct history_stats *s, struct db *db, struct err *e)
{
	struct history_asking *a = s->a;
	int rc = a->has_read ? 0 : history_choose_way(db, a, &s->way, e);

	if (rc == 0)
		rc = add_rows(s, db, e);
	if (rc == 0)
		rc = history_text_since(db, a, &a->sums.text_since_ms, e);
	if (rc == 0)
		take_groups(s);
	return rc;
}

int
history_stats_run(struct db *db, struct op *op, struct err *e)
{
	struct history_asking *a = (struct history_asking *)op;
	int rc;

	if (a->stats == NULL) {
		a->stats = xcalloc(1, sizeof(*a->stats));
		a->stats->a = a;
		a->stats->out = &a->sums;
	}
	rc = run_slice(a->stats, db, e);
	if (rc == 1 || (rc == ERR_LIMIT && atomic_load(&a->is_stopped)))
		return 1;
	history_stats_drop(a->stats);
	a->stats = NULL;
	return rc;
}
