/*
 * history_stats.c - sums over the ended runs of a tenant, by group
 *
 * Durations are counted in buckets, 64 to each doubling, so that a group takes
 * some kilobytes however many runs it has; a percentile is the lowest value of
 * its bucket.
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

struct stats {
	struct history_asking *a;
	struct hashmap groups;
	struct group *last; /* often the next one's, too */
	struct history_sums *out;
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

static void
add_duration(struct group *g, int64_t ms)
{
	size_t bucket = bucket_of(ms);
	uint32_t **piece = &g->pieces[bucket / PIECE];

	if (*piece == NULL)
		*piece = xcalloc(PIECE, sizeof(**piece));
	(*piece)[bucket % PIECE]++;
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
find_group(struct stats *s, const char *key)
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
free_groups(struct stats *s)
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
row_key(const struct stats *s, const struct stats_row *r, char day[32])
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
add_row(struct stats *s, const struct stats_row *r)
{
	char day[32];
	struct group *g = find_group(s, row_key(s, r, day));

	if (g == NULL) {
		s->out->more_runs++;
		s->out->is_more_unknown = true;
		return;
	}
	g->sum.runs++;
	g->sum.cpu_us += r->cpu_us;
	g->sum.output_bytes += r->output_bytes;
	g->sum.artifact_bytes += r->artifact_bytes;
	add_duration(g, r->duration_ms);
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

static int
add_rows(struct stats *s, struct db *db, enum history_way way, struct err *e)
{
	const uint64_t until = clock_mono_ms() + HISTORY_STATS_MS;
	int64_t last = -1, last_ms = 0;
	unsigned int seen = 0;
	struct db_call c;
	int rc;

	db_set_deadline(db, until);
	db_call_init(&c, db, DB_HISTORY_STATS + way);
	history_put_way(&c, s->a, way);
	while ((rc = db_call_step(&c, e)) == 1) {
		bool passes = db_get_int(&c) != 0;
		int64_t place = db_get_int(&c);
		struct stats_row r;

		get_row(&c, &r);
		if (passes && place != last)
			add_row(s, &r);
		last = place;
		last_ms = r.created_ms;
		if (++seen % LOOK_AT_CLOCK != 0 || clock_mono_ms() < until)
			continue;
		s->out->cut_ms = r.created_ms;
		db_call_end(&c);
		break;
	}
	db_set_deadline(db, 0);
	if (rc == ERR_LIMIT && seen > 0) {
		s->out->cut_ms = last_ms;
		return 0;
	}
	rc = history_too_long(s->a, rc, e);
	return rc < 0 ? rc : 0;
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
take_groups(struct stats *s)
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

int
history_stats_run(struct db *db, struct op *op, struct err *e)
{
	struct history_asking *a = (struct history_asking *)op;
	struct stats s = {.a = a, .out = &a->sums};
	enum history_way way;
	int rc = history_choose_way(db, a, &way, e);

	if (rc == 0)
		rc = add_rows(&s, db, way, e);
	if (rc == 0)
		rc = history_text_since(db, a, &a->sums.text_since_ms, e);
	if (rc == 0)
		take_groups(&s);
	free_groups(&s);
	return rc;
}
