/*
 * history.c - questions to the history, and the two lanes that answer them
 *
 * A lane is a thread with a connection of its own to the index, both made when
 * they are first needed: one for pages of lists, which are quick, one for all
 * that may take its time.  A page that was not quick, as words have to be
 * looked for in many runs before one has them all, is begun again on the other.
 * Before a question is answered the lane waits for the index to reach what was
 * committed when the question came.
 *
 * On each lane tenants have turns, and of a tenant no more
 * than some questions wait: another is refused.  One that is canceled leaves
 * the queue; one that is being answered is interrupted.
 */
#include "supervisor/store/history.h"

#include <sys/queue.h>
#include <pthread.h>
#include <stdio.h>

#include "common/clock.h"
#include "common/log.h"
#include "common/xmalloc.h"
#include "supervisor/store/db.h"
#include "supervisor/store/done.h"
#include "supervisor/store/history_ask.h"
#include "supervisor/store/history_feed.h"
#include "supervisor/store/history_index.h"
#include "supervisor/store/history_readers.h"
#include "supervisor/store/queue.h"
#include "supervisor/store/store_int.h"

/* ---- turns
 *
 * Tenants that have questions come round, one question of each at a time, and
 * within a tenant they keep their order.  So whoever asks much waits for
 * himself: before another tenant's first question goes at most one of each.
 */

struct history_turns { /* of a lane */
	pthread_mutex_t mutex;
	pthread_cond_t cond;
	TAILQ_HEAD(tenant_turns, tenant_turn) round;
	bool is_stopped;
};

struct tenant_turn { /* in the round while something of the tenant waits */
	uint64_t tenant;
	struct op *head;
	struct op **tail;
	size_t n;
	TAILQ_ENTRY(tenant_turn) link;
};

static void
turns_init(struct history_turns *t)
{
	TAILQ_INIT(&t->round);
	t->is_stopped = false;
	(void)pthread_mutex_init(&t->mutex, NULL);
	(void)pthread_cond_init(&t->cond, NULL);
}

static void
turns_clear(struct history_turns *t)
{
	struct tenant_turn *turn;

	while ((turn = TAILQ_FIRST(&t->round)) != NULL) {
		TAILQ_REMOVE(&t->round, turn, link);
		op_release_list(turn->head);
		free(turn);
	}
	(void)pthread_cond_destroy(&t->cond);
	(void)pthread_mutex_destroy(&t->mutex);
}

/* All below with the mutex held, but for what locks it. */

static struct tenant_turn *
find_turn(struct history_turns *t, uint64_t tenant)
{
	struct tenant_turn *turn;

	TAILQ_FOREACH (turn, &t->round, link)
		if (turn->tenant == tenant)
			return turn;
	return NULL;
}

static struct tenant_turn *
find_or_add_turn(struct history_turns *t, uint64_t tenant)
{
	struct tenant_turn *turn = find_turn(t, tenant);

	if (turn != NULL)
		return turn;
	turn = xcalloc(1, sizeof(*turn));
	turn->tenant = tenant;
	turn->tail = &turn->head;
	TAILQ_INSERT_TAIL(&t->round, turn, link);
	return turn;
}

/* The op that *at points to; a tenant without another leaves the round. */
static void
unlink_op(struct history_turns *t, struct tenant_turn *turn, struct op **at)
{
	struct op *op = *at;

	*at = op->next;
	if (op->next == NULL)
		turn->tail = at;
	op->next = NULL;
	if (--turn->n > 0)
		return;
	TAILQ_REMOVE(&t->round, turn, link);
	free(turn);
}

/* Behind all of its tenant, of whom so many may wait before; false: there are
 * as many, and it is still the caller's. */
static bool
turns_push(struct history_turns *t, struct history_asking *a, size_t most)
{
	struct tenant_turn *turn;
	bool has_room;

	(void)pthread_mutex_lock(&t->mutex);
	turn = find_turn(t, a->tenant);
	has_room = turn == NULL || turn->n < most;
	if (has_room) {
		turn = find_or_add_turn(t, a->tenant);
		a->op.next = NULL;
		*turn->tail = &a->op;
		turn->tail = &a->op.next;
		turn->n++;
		(void)pthread_cond_signal(&t->cond);
	}
	(void)pthread_mutex_unlock(&t->mutex);
	return has_room;
}

/* One that was taken and is not done: the next of its tenant, when the others
 * have had theirs. */
static void
turns_push_again(struct history_turns *t, struct history_asking *a)
{
	struct tenant_turn *turn;

	(void)pthread_mutex_lock(&t->mutex);
	turn = find_or_add_turn(t, a->tenant);
	a->op.next = turn->head;
	if (turn->head == NULL)
		turn->tail = &a->op.next;
	turn->head = &a->op;
	turn->n++;
	(void)pthread_mutex_unlock(&t->mutex);
}

static struct history_asking *
take_next(struct history_turns *t)
{
	struct tenant_turn *turn = TAILQ_FIRST(&t->round);
	struct op *op;

	if (turn == NULL)
		return NULL;
	op = turn->head;
	TAILQ_REMOVE(&t->round, turn, link);
	TAILQ_INSERT_TAIL(&t->round, turn, link);
	unlink_op(t, turn, &turn->head);
	return (struct history_asking *)op;
}

/* NULL: turns_stop was called. */
static struct history_asking *
turns_take(struct history_turns *t)
{
	struct history_asking *a;

	(void)pthread_mutex_lock(&t->mutex);
	while (TAILQ_EMPTY(&t->round) && !t->is_stopped)
		(void)pthread_cond_wait(&t->cond, &t->mutex);
	a = t->is_stopped ? NULL : take_next(t);
	(void)pthread_mutex_unlock(&t->mutex);
	return a;
}

/* True: it waited, and is the caller's again. */
static bool
turns_drop(struct history_turns *t, const struct history_asking *a)
{
	struct tenant_turn *turn;
	bool is_found = false;
	struct op **at;

	(void)pthread_mutex_lock(&t->mutex);
	turn = find_turn(t, a->tenant);
	at = turn == NULL ? NULL : &turn->head;
	while (at != NULL && *at != NULL && *at != &a->op)
		at = &(*at)->next;
	if (at != NULL && *at != NULL) {
		unlink_op(t, turn, at);
		is_found = true;
	}
	(void)pthread_mutex_unlock(&t->mutex);
	return is_found;
}

static void
turns_stop(struct history_turns *t)
{
	(void)pthread_mutex_lock(&t->mutex);
	t->is_stopped = true;
	(void)pthread_cond_signal(&t->cond);
	(void)pthread_mutex_unlock(&t->mutex);
}

/* ---- lanes */

struct lane {
	struct history *history;
	enum history_lane name;
	bool is_started;
	struct history_turns turns;
	pthread_t thread;
	struct db *index; /* NULL: not open */
	struct log_limit limit;
	struct db *db;   /* the database, for names of sandboxes */
	uint64_t opened; /* which index it is */
};

struct history {
	const char *dir;
	struct feed *feed;
	struct history_readers *readers;
	struct history_index *index;
	struct done *done;
	struct lane lanes[NLANE];
};

/* ---- a lane's thread */

static void
lane_close(struct lane *l)
{
	db_close(l->index);
	l->index = NULL;
}

static int
lane_open(struct lane *l, uint64_t opened, struct err *e)
{
	if (l->index != NULL && l->opened == opened)
		return 0;
	lane_close(l);
	l->opened = opened;
	return db_open(l->history->dir, DB_HISTORY_READER, &l->index, e);
}

/* A sandbox that nobody knows has no runs. */
static int
find_sandbox(struct lane *l, struct history_asking *a, struct err *e)
{
	struct db_call c;
	int rc = 0;

	if (l->db == NULL)
		rc = db_open(l->history->dir, DB_READER, &l->db, e);
	if (rc != 0)
		return rc;
	db_call_init(&c, l->db, DB_SANDBOX_NAME);
	db_put_blob(&c, a->sandbox_uuid.b, sizeof(a->sandbox_uuid.b));
	db_put_uint(&c, a->tenant);
	rc = db_call_step(&c, e);
	if (rc == 1) {
		free(a->sandbox);
		a->sandbox = db_get_text(&c);
		db_call_end(&c);
	}
	return rc < 0 ? rc : 0;
}

static int
lane_read(struct lane *l, struct history_asking *a, struct err *e)
{
	struct err ignored;
	int rc;

	rc = db_exec(l->index, DB_BEGIN_READ, e);
	if (rc != 0)
		return rc;
	db_set_cancel(l->index, &a->is_stopped);
	rc = a->op.run(l->index, &a->op, e);
	db_set_cancel(l->index, NULL);
	if (db_exec(l->index, DB_COMMIT, &ignored) != 0)
		db_rollback(l->index);
	return rc;
}

static int
lane_ask(struct lane *l, struct history_asking *a, struct err *e)
{
	uint64_t began_ms;
	int rc;

	if (a->has_sandbox_uuid && find_sandbox(l, a, e) != 0)
		return e->code;
	readers_begin(l->history->readers, l->name, &a->is_stopped);
	began_ms = clock_mono_ms();
	rc = lane_read(l, a, e);
	readers_end(l->history->readers, l->name);
	if (!atomic_load(&a->is_stopped))
		return rc;
	atomic_store(&a->is_stopped, atomic_load(&a->is_canceled));
	if (rc != ERR_LIMIT)
		return rc;
	history_page_clear(&a->page);
	a->spent_ms += clock_mono_ms() - began_ms;
	return 1;
}

/* Nothing that is wrong with the index is wrong with the database. */
static void
lane_answer(struct lane *l, struct history_asking *a)
{
	struct feed *feed = l->history->feed;
	struct err why = {0};
	uint64_t opened;
	int rc = feed_reach(feed, a->mark, HISTORY_WAIT_MS, &opened, &why);

	if (rc == 0) {
		rc = lane_open(l, opened, &why);
		if (rc == 0)
			rc = lane_ask(l, a, &why);
		if (rc == ERR_DAMAGED)
			feed_distrust(feed, opened);
		if (rc == 1 || (rc == ERR_LIMIT && !a->is_patient) ||
		    atomic_load(&a->is_canceled)) {
			a->op.rc = rc;
			return;
		}
		if (rc != 0)
			lane_close(l);
		if (rc != 0 && rc != ERR_INVAL) {
			log_warn_limited(
			    &l->limit, "store: no history: %s", why.msg);
			rc = err_set(&why, ERR_BACKEND,
			    "history is not available: " HISTORY_SEE_LOG);
		}
	}
	a->op.rc = rc;
	a->op.why = why;
}

/* Of its tenant so many may wait: one more is refused. */
static void
lane_push(struct lane *l, struct history_asking *a, size_t most)
{
	if (turns_push(&l->turns, a, most))
		return;
	a->op.rc = err_set(&a->op.why, ERR_LIMIT,
	    "limit reached: %zu questions of this tenant to its history wait "
	    "already: ask again when they are answered, or end some",
	    most);
	done_push(l->history->done, &a->op);
}

/* What takes its time is not for the lane of those that are quick. */
static void
lane_hand_over(struct lane *l, struct history_asking *a)
{
	history_page_clear(&a->page);
	a->is_patient = true;
	a->op.rc = 0;
	lane_push(&l->history->lanes[LANE_SLOW], a, HISTORY_WAITING_MAX);
}

static void
lane_turn(struct lane *l, struct history_asking *a)
{
	bool is_wanted;

	if (a->op.rc == 0 && !atomic_load(&a->is_canceled))
		lane_answer(l, a);
	is_wanted = !atomic_load(&a->is_canceled);
	if (is_wanted && a->op.rc == 1) {
		a->op.rc = 0;
		turns_push_again(&l->turns, a);
	} else if (is_wanted && a->op.rc == ERR_LIMIT) {
		lane_hand_over(l, a);
	} else {
		done_push(l->history->done, &a->op);
	}
}

static void *
lane_main(void *arg)
{
	struct history_asking *a;
	struct lane *l = arg;

	while ((a = turns_take(&l->turns)) != NULL)
		lane_turn(l, a);
	lane_close(l);
	db_close(l->db);
	return NULL;
}

static int
lane_start(struct lane *l, struct err *e)
{
	if (!l->is_started && queue_thread(&l->thread, lane_main, l, e) != 0)
		return e->code;
	l->is_started = true;
	return 0;
}

/* ---- life */

struct history *
history_new(const char *dir, struct done *done)
{
	struct history *h = xcalloc(1, sizeof(*h));

	h->dir = dir;
	h->done = done;
	h->feed = feed_new();
	h->readers = readers_new();
	for (size_t i = 0; i < NLANE; i++) {
		h->lanes[i].history = h;
		h->lanes[i].name = (enum history_lane)i;
		turns_init(&h->lanes[i].turns);
	}
	return h;
}

struct feed *
history_feed(struct history *h)
{
	return h->feed;
}

int
history_start(struct history *h, struct spool *spool, struct err *e)
{
	return history_index_start(
	    h->dir, spool, h->feed, h->readers, &h->index, e);
}

void
history_stop(struct history *h)
{
	if (h == NULL)
		return;
	feed_stop(h->feed);
	for (size_t i = 0; i < NLANE; i++) {
		struct lane *l = &h->lanes[i];

		turns_stop(&l->turns);
		if (l->is_started)
			(void)pthread_join(l->thread, NULL);
	}
	/* A lane that ended may have handed something to the other. */
	for (size_t i = 0; i < NLANE; i++)
		turns_clear(&h->lanes[i].turns);
	if (h->index != NULL)
		history_index_stop(h->index);
	h->index = NULL;
}

void
history_free(struct history *h)
{
	if (h == NULL)
		return;
	feed_free(h->feed);
	readers_free(h->readers);
	free(h);
}

void
history_state(struct store *s, struct history_state *out)
{
	struct feed_lag lag;

	feed_lag(s->history->feed, &lag);
	out->is_available = !lag.is_held;
	out->lag_rows = lag.rows;
	out->lag_ms = lag.oldest_ms;
	(void)snprintf(out->why, sizeof(out->why), "%s", lag.why);
	out->made_anew = history_index_made_anew(s->history->index);
	out->text_bytes = history_index_text_bytes(s->history->index);
}

void
history_bound(struct store *s, uint64_t text_bytes)
{
	history_index_bound(
	    s->history->index, text_bytes == 0 ? UINT64_MAX : text_bytes);
}

/* ---- asking */

static void
asking_release(struct op *op)
{
	struct history_asking *a = (struct history_asking *)op;

	history_page_clear(&a->page);
	history_sums_clear(&a->sums);
	history_stats_drop(a->stats);
	free(a->words.match);
	free(a->identifier);
	free(a->sandbox);
	free(a->principal);
	free(a->tool);
	free(a->language);
	free(a->artifact);
	free(a);
}

static void
page_deliver(struct op *op)
{
	struct history_asking *a = (struct history_asking *)op;

	if (!atomic_load(&a->is_canceled))
		a->page_done(
		    op->rc, op->rc == 0 ? &a->page : NULL, op_why(op), a->arg);
}

static void
sums_deliver(struct op *op)
{
	struct history_asking *a = (struct history_asking *)op;

	if (!atomic_load(&a->is_canceled))
		a->sums_done(
		    op->rc, op->rc == 0 ? &a->sums : NULL, op_why(op), a->arg);
}

static char *
copy_text(const char *text)
{
	return text == NULL ? NULL : xstrdup(text);
}

static void
copy_filter(struct history_asking *a, const struct history_filter *f)
{
	const uint32_t unfinished =
	    1u << RUN_STATE_QUEUED | 1u << RUN_STATE_RUNNING;

	a->identifier = copy_text(f->identifier);
	a->sandbox = copy_text(f->sandbox);
	a->principal = copy_text(f->principal);
	a->tool = copy_text(f->tool);
	a->language = copy_text(f->language);
	a->artifact = copy_text(f->artifact);
	if (f->digest != NULL) {
		memcpy(a->digest, f->digest, sizeof(a->digest));
		a->q.filter.digest = a->digest;
	}
	/* The database has these for queued. */
	if ((f->states & unfinished) != 0)
		a->q.filter.states =
		    (f->states & ~unfinished) | 1u << RUN_STATE_QUEUED;
	a->has_sandbox_uuid =
	    f->sandbox != NULL && uuid_parse(f->sandbox, &a->sandbox_uuid) == 0;
}

/* Texts of the question are its asker's: what the lanes use is copied. */
static struct history_asking *
asking_new(struct store *s, struct tenant_id tenant,
    const struct history_query *q, size_t limit_max)
{
	struct history_asking *a = xcalloc(1, sizeof(*a));
	struct op *op = &a->op;
	struct history_filter *f = &a->q.filter;

	op->release = asking_release;
	a->history = s->history;
	a->mark = feed_mark(s->history->feed);
	a->tenant = tenant.n;
	a->q = *q;
	if (a->q.limit > limit_max)
		a->q.limit = limit_max;
	a->question = history_question_hash(tenant, q);
	copy_filter(a, &q->filter);
	if (f->q != NULL)
		op->rc = history_parse_q(f->q, tenant, &a->words, &op->why);
	f->identifier = a->identifier;
	f->principal = a->principal;
	f->tool = a->tool;
	f->language = a->language;
	f->artifact = a->artifact;
	f->sandbox = NULL;
	f->q = NULL;
	a->q.cursor = NULL;
	return a;
}

static void
submit(struct history_asking *a, enum history_lane lane, size_t most)
{
	struct history *h = a->history;
	struct lane *l = &h->lanes[lane];
	struct err e;

	a->is_patient = lane == LANE_SLOW;
	/* The slow one as well: questions come to it from the quick one. */
	if (lane_start(&h->lanes[LANE_SLOW], &e) != 0 || lane_start(l, &e) != 0)
		a->op.rc = err_set(&a->op.why, ERR_BACKEND,
		    "history is not available: %s", e.msg);
	if (a->op.rc == 0)
		lane_push(l, a, most);
	else
		done_push(h->done, &a->op);
}

/* What is wrong with it is said before it could wait. */
static void
prepare_page(struct history_asking *a, const struct history_query *q)
{
	struct op *op = &a->op;

	op->run = history_list_run;
	op->deliver = page_deliver;
	if (op->rc == 0 && q->limit == 0)
		op->rc = err_set(
		    &op->why, ERR_INVAL, "limit: it has to be at least 1");
	a->has_cursor = op->rc == 0 && q->cursor != NULL;
	if (a->has_cursor)
		op->rc = history_cursor_parse(
		    q->cursor, a->question, &a->cursor, &op->why);
}

struct history_asking *
history_list(struct store *s, struct tenant_id tenant,
    const struct history_query *q, history_page_cb done, void *arg)
{
	struct history_asking *a = asking_new(s, tenant, q, HISTORY_LIMIT_MAX);

	a->page_done = done;
	a->arg = arg;
	prepare_page(a, q);
	if (a->words.has_prefix)
		submit(a, LANE_SLOW, HISTORY_WAITING_MAX);
	else
		submit(a, LANE_QUICK, HISTORY_WAITING_QUICK_MAX);
	return a;
}

struct history_asking *
history_export(struct store *s, struct tenant_id tenant,
    const struct history_query *q, history_page_cb done, void *arg)
{
	struct history_asking *a = asking_new(s, tenant, q, HISTORY_EXPORT_MAX);

	a->page_done = done;
	a->arg = arg;
	prepare_page(a, q);
	submit(a, LANE_SLOW, SIZE_MAX);
	return a;
}

struct history_asking *
history_stats(struct store *s, struct tenant_id tenant,
    const struct history_filter *f, enum history_group by, history_sums_cb done,
    void *arg)
{
	const struct history_query q = {.filter = *f, .limit = 1};
	struct history_asking *a = asking_new(s, tenant, &q, 1);

	a->op.run = history_stats_run;
	a->op.deliver = sums_deliver;
	a->by = by;
	a->sums_done = done;
	a->arg = arg;
	submit(a, LANE_SLOW, HISTORY_WAITING_MAX);
	return a;
}

void
history_cancel(struct history_asking *a)
{
	struct history *h = a->history;

	atomic_store(&a->is_canceled, true);
	atomic_store(&a->is_stopped, true);
	for (size_t i = 0; i < NLANE; i++)
		if (turns_drop(&h->lanes[i].turns, a)) {
			done_push(h->done, &a->op);
			return;
		}
}
