#include "supervisor/store/history_feed.h"

#include <pthread.h>

#include "common/clock.h"
#include "common/xmalloc.h"
#include "supervisor/store/queue.h"

#define MUCH 256

struct feed {
	/* Of the writer's thread alone: the transaction that is under way. */
	int64_t *open;
	size_t nopen, open_room;
	bool open_is_lost;
	uint64_t touched; /* nopen, and those that it has no room for */

	pthread_mutex_t mutex;
	pthread_cond_t news;    /* for the index */
	pthread_cond_t applied; /* for those who ask */
	int64_t *runs;
	size_t n, room;
	bool is_lost;
	uint64_t waiting, waiting_since_ms; /* rows; n, and dropped ones */
	uint64_t taken, taken_since_ms;     /* by the index, not in it yet */
	unsigned int nasking;
	uint64_t committed; /* marks: so many commits, and one */
	uint64_t reached;
	uint64_t opened, distrusted;
	bool is_held;
	bool is_stopped;
	bool is_nudged;
	char why[FEED_WHY_MAX], in_full[FEED_WHY_MAX];
};

struct feed *
feed_new(void)
{
	struct feed *f = xcalloc(1, sizeof(*f));

	(void)pthread_mutex_init(&f->mutex, NULL);
	queue_cond_init(&f->news);
	queue_cond_init(&f->applied);
	f->committed = 1;
	f->distrusted = UINT64_MAX;
	return f;
}

void
feed_free(struct feed *f)
{
	if (f == NULL)
		return;
	(void)pthread_cond_destroy(&f->news);
	(void)pthread_cond_destroy(&f->applied);
	(void)pthread_mutex_destroy(&f->mutex);
	free(f->open);
	free(f->runs);
	free(f);
}

/* ---- the writer's thread */

static bool
numbers_add(int64_t **p, size_t *n, size_t *room, int64_t run)
{
	if (*n == FEED_MAX)
		return false;
	if (*n == *room) {
		*room = *room == 0 ? 64 : *room * 2;
		*p = xreallocarray(*p, *room, sizeof(**p));
	}
	(*p)[(*n)++] = run;
	return true;
}

void
feed_touched(struct feed *f, int64_t run)
{
	if (f->nopen > 0 && f->open[f->nopen - 1] == run)
		return;
	f->touched++;
	if (!numbers_add(&f->open, &f->nopen, &f->open_room, run))
		f->open_is_lost = true;
}

void
feed_committed(struct feed *f)
{
	bool wake;

	if (f->nopen == 0)
		return;
	(void)pthread_mutex_lock(&f->mutex);
	wake = f->n == 0 || (f->n < MUCH && f->n + f->nopen >= MUCH);
	f->is_lost = f->is_lost || f->open_is_lost;
	for (size_t i = 0; i < f->nopen; i++)
		if (!numbers_add(&f->runs, &f->n, &f->room, f->open[i]))
			f->is_lost = true;
	f->committed++;
	if (f->waiting == 0)
		f->waiting_since_ms = clock_mono_ms();
	f->waiting += f->touched;
	(void)pthread_mutex_unlock(&f->mutex);
	if (wake)
		(void)pthread_cond_signal(&f->news);
	feed_undone(f);
}

void
feed_undone(struct feed *f)
{
	f->nopen = 0;
	f->touched = 0;
	f->open_is_lost = false;
}

/* ---- the index's thread */

bool
feed_wait(struct feed *f, uint64_t ms)
{
	const uint64_t until = clock_mono_us() + ms * 1000;
	bool found;
	int rc = 0;

	(void)pthread_mutex_lock(&f->mutex);
	while (f->n == 0 && !f->is_lost && !f->is_stopped && !f->is_nudged &&
	    f->distrusted != f->opened && rc == 0)
		rc = queue_cond_wait(&f->news, &f->mutex, until);
	f->is_nudged = false;
	found = f->n > 0 || f->is_lost;
	(void)pthread_mutex_unlock(&f->mutex);
	return found;
}

void
feed_nudge(struct feed *f)
{
	(void)pthread_mutex_lock(&f->mutex);
	f->is_nudged = true;
	(void)pthread_cond_signal(&f->news);
	(void)pthread_mutex_unlock(&f->mutex);
}

void
feed_gather(struct feed *f, uint64_t ms)
{
	const uint64_t until = clock_mono_us() + ms * 1000;
	int rc = 0;

	(void)pthread_mutex_lock(&f->mutex);
	while (f->n < MUCH && f->nasking == 0 && !f->is_stopped && rc == 0)
		rc = queue_cond_wait(&f->news, &f->mutex, until);
	(void)pthread_mutex_unlock(&f->mutex);
}

void
feed_pause(struct feed *f, uint64_t ms)
{
	const uint64_t until = clock_mono_us() + ms * 1000;
	int rc = 0;

	(void)pthread_mutex_lock(&f->mutex);
	while (!f->is_stopped && rc == 0)
		rc = queue_cond_wait(&f->news, &f->mutex, until);
	(void)pthread_mutex_unlock(&f->mutex);
}

static int
compare_numbers(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

void
feed_take(struct feed *f, struct feed_news *out)
{
	size_t n = 0;

	(void)pthread_mutex_lock(&f->mutex);
	*out = (struct feed_news){
	    f->runs, f->n, f->is_lost, f->nasking > 0, f->committed};
	f->runs = NULL;
	f->n = 0;
	f->room = 0;
	f->is_lost = false;
	if (f->taken == 0)
		f->taken_since_ms = f->waiting_since_ms;
	f->taken += f->waiting;
	f->waiting = 0;
	(void)pthread_mutex_unlock(&f->mutex);
	if (out->n == 0)
		return;
	qsort(out->runs, out->n, sizeof(*out->runs), compare_numbers);
	for (size_t i = 0; i < out->n; i++)
		if (n == 0 || out->runs[n - 1] != out->runs[i])
			out->runs[n++] = out->runs[i];
	out->n = n;
}

void
feed_applied(struct feed *f, uint64_t mark)
{
	(void)pthread_mutex_lock(&f->mutex);
	f->reached = mark;
	f->taken = 0;
	(void)pthread_cond_broadcast(&f->applied);
	(void)pthread_mutex_unlock(&f->mutex);
}

void
feed_hold(struct feed *f, const char *why, const char *in_full)
{
	(void)pthread_mutex_lock(&f->mutex);
	f->is_held = true;
	f->why[0] = '\0';
	(void)strncat(f->why, why, sizeof(f->why) - 1);
	f->in_full[0] = '\0';
	(void)strncat(f->in_full, in_full, sizeof(f->in_full) - 1);
	(void)pthread_cond_broadcast(&f->applied);
	(void)pthread_mutex_unlock(&f->mutex);
}

void
feed_go(struct feed *f, uint64_t opened)
{
	(void)pthread_mutex_lock(&f->mutex);
	f->is_held = false;
	f->opened = opened;
	(void)pthread_mutex_unlock(&f->mutex);
}

/* ---- who asks */

uint64_t
feed_mark(struct feed *f)
{
	uint64_t mark;

	(void)pthread_mutex_lock(&f->mutex);
	mark = f->committed;
	(void)pthread_mutex_unlock(&f->mutex);
	return mark;
}

int
feed_reach(
    struct feed *f, uint64_t mark, uint64_t ms, uint64_t *opened, struct err *e)
{
	const uint64_t until = clock_mono_us() + ms * 1000;
	int rc = 0;

	(void)pthread_mutex_lock(&f->mutex);
	if (f->nasking++ == 0)
		(void)pthread_cond_signal(&f->news);
	while (f->reached < mark && !f->is_held && !f->is_stopped && rc == 0)
		rc = queue_cond_wait(&f->applied, &f->mutex, until);
	f->nasking--;
	*opened = f->opened;
	rc = 0;
	if (f->is_held)
		rc = err_set(
		    e, ERR_BACKEND, "history is not available: %s", f->why);
	else if (f->reached < mark)
		rc = err_set(e, ERR_BACKEND,
		    "history is not available: its index is %zu runs behind: "
		    "try again in a moment",
		    f->n);
	(void)pthread_mutex_unlock(&f->mutex);
	return rc;
}

void
feed_distrust(struct feed *f, uint64_t opened)
{
	(void)pthread_mutex_lock(&f->mutex);
	f->distrusted = opened;
	(void)pthread_cond_signal(&f->news);
	(void)pthread_mutex_unlock(&f->mutex);
}

bool
feed_is_distrusted(struct feed *f, uint64_t opened)
{
	bool is;

	(void)pthread_mutex_lock(&f->mutex);
	is = f->distrusted == opened;
	(void)pthread_mutex_unlock(&f->mutex);
	return is;
}

void
feed_lag(struct feed *f, struct feed_lag *out)
{
	const uint64_t now = clock_mono_ms();
	uint64_t since = now;

	*out = (struct feed_lag){.why = ""};
	(void)pthread_mutex_lock(&f->mutex);
	out->rows = f->taken + f->waiting;
	out->is_held = f->is_held;
	if (f->is_held)
		memcpy(out->why, f->in_full, sizeof(out->why));
	if (f->taken > 0)
		since = f->taken_since_ms;
	else if (f->waiting > 0)
		since = f->waiting_since_ms;
	(void)pthread_mutex_unlock(&f->mutex);
	out->oldest_ms = now > since ? now - since : 0;
}

void
feed_stop(struct feed *f)
{
	(void)pthread_mutex_lock(&f->mutex);
	f->is_stopped = true;
	(void)pthread_cond_signal(&f->news);
	(void)pthread_cond_broadcast(&f->applied);
	(void)pthread_mutex_unlock(&f->mutex);
}

bool
feed_is_stopped(struct feed *f)
{
	bool stopped;

	(void)pthread_mutex_lock(&f->mutex);
	stopped = f->is_stopped;
	(void)pthread_mutex_unlock(&f->mutex);
	return stopped;
}
