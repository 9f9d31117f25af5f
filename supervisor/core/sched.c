#include "supervisor/core/sched.h"

#include "common/xmalloc.h"

TAILQ_HEAD(sched_queues, sched_queue);

struct sched {
	void (*start)(struct sched_item *item);
	struct sched_queues ready;
	uint64_t next_number;
	bool in_turn;
};

/* ---- the round */

static void
queue_set_ready(struct sched_queue *q, bool ready)
{
	struct sched *s = q->sched;

	if (q->is_ready == ready)
		return;
	q->is_ready = ready;
	if (ready)
		TAILQ_INSERT_TAIL(&s->ready, q, link);
	else
		TAILQ_REMOVE(&s->ready, q, link);
}

/* The next to go, whatever else stands in its way. */
static struct sched_item *
queue_head(const struct sched_queue *q)
{
	struct sched_item *free = TAILQ_FIRST(&q->waiting);
	struct sched_item *locked = TAILQ_FIRST(&q->locked);

	if (locked == NULL || (q->lock_holder != NULL && free != NULL))
		return free;
	if (free == NULL || q->lock_holder == NULL)
		return free == NULL || locked->number < free->number ? locked :
								       free;
	return free;
}

enum sched_wait
sched_queue_waits(const struct sched_queue *q)
{
	const struct sched_item *head = queue_head(q);

	if (head == NULL)
		return SCHED_NOTHING_WAITS;
	if (q->gate == SCHED_GATE_SHUT)
		return SCHED_WAITS_FOR_SANDBOX;
	if (q->nrunning >= q->limit)
		return SCHED_WAITS_FOR_RUNS;
	if (head->wants_lock && q->lock_holder != NULL)
		return SCHED_WAITS_FOR_LOCK;
	return SCHED_WAITS_FOR_TURN;
}

enum sched_wait
sched_item_waits(const struct sched_item *item)
{
	return item->where == SCHED_IN_QUEUE ? sched_queue_waits(item->queue) :
					       SCHED_NOTHING_WAITS;
}

static void
queue_look(struct sched_queue *q)
{
	queue_set_ready(q, sched_queue_waits(q) == SCHED_WAITS_FOR_TURN);
}

/* ---- lists */

static struct sched_items *
list_of(struct sched_item *item)
{
	struct sched_queue *q = item->queue;

	if (item->where == SCHED_IS_RUNNING)
		return &q->running;
	return item->wants_lock ? &q->locked : &q->waiting;
}

static void
item_leave_list(struct sched_item *item)
{
	struct sched_queue *q = item->queue;

	TAILQ_REMOVE(list_of(item), item, link);
	if (item->where == SCHED_IS_RUNNING)
		q->nrunning--;
	else
		q->nwaiting--;
	if (q->lock_holder == item)
		q->lock_holder = NULL;
	item->where = SCHED_NOWHERE;
}

static void
item_run(struct sched_queue *q, struct sched_item *item)
{
	item->queue = q;
	item->where = SCHED_IS_RUNNING;
	TAILQ_INSERT_TAIL(&q->running, item, link);
	q->nrunning++;
	if (item->wants_lock && q->lock_holder == NULL)
		q->lock_holder = item;
}

static void
item_wait(struct sched_queue *q, struct sched_item *item)
{
	item->queue = q;
	item->where = SCHED_IN_QUEUE;
	TAILQ_INSERT_TAIL(list_of(item), item, link);
	q->nwaiting++;
}

void
sched_add(struct sched_queue *q, struct sched_item *item, bool wants_lock)
{
	item->wants_lock = wants_lock;
	item->number = q->sched->next_number++;
	item_wait(q, item);
	queue_look(q);
}

void
sched_add_running(
    struct sched_queue *q, struct sched_item *item, bool wants_lock)
{
	item->wants_lock = wants_lock;
	item->number = q->sched->next_number++;
	item_run(q, item);
	queue_look(q);
}

void
sched_leave(struct sched_item *item)
{
	if (item->where == SCHED_NOWHERE)
		return;
	item_leave_list(item);
	queue_look(item->queue);
	item->queue = NULL;
}

static void
move_list(struct sched_items *from, struct sched_queue *to,
    void (*each)(struct sched_item *item, void *arg), void *arg)
{
	struct sched_item *item;

	while ((item = TAILQ_FIRST(from)) != NULL) {
		item_leave_list(item);
		sched_add(to, item, item->wants_lock);
		each(item, arg);
	}
}

void
sched_move_waiting(struct sched_queue *from, struct sched_queue *to,
    void (*each)(struct sched_item *item, void *arg), void *arg)
{
	struct sched_item *item, *free, *locked;

	/* In the order in which they came. */
	while ((free = TAILQ_FIRST(&from->waiting)) != NULL &&
	    (locked = TAILQ_FIRST(&from->locked)) != NULL) {
		item = free->number < locked->number ? free : locked;
		item_leave_list(item);
		sched_add(to, item, item->wants_lock);
		each(item, arg);
	}
	move_list(&from->waiting, to, each, arg);
	move_list(&from->locked, to, each, arg);
	queue_look(from);
}

/* ---- one turn of the scheduler */

/* One item of a queue that is ready. */
static void
queue_start(struct sched *s, struct sched_queue *q)
{
	struct sched_item *item = queue_head(q);

	item_leave_list(item);
	item_run(q, item);
	/* Behind the others, if it has more. */
	queue_set_ready(q, false);
	queue_look(q);
	s->start(item);
}

void
sched_turn(struct sched *s)
{
	struct sched_queue *q;

	if (s->in_turn)
		return;
	s->in_turn = true;
	while ((q = TAILQ_FIRST(&s->ready)) != NULL)
		queue_start(s, q);
	s->in_turn = false;
}

/* ---- life */

struct sched *
sched_new(void (*start)(struct sched_item *item))
{
	struct sched *s = xcalloc(1, sizeof(*s));

	s->start = start;
	TAILQ_INIT(&s->ready);
	return s;
}

void
sched_free(struct sched *s)
{
	free(s);
}

void
sched_queue_init(struct sched *s, struct sched_queue *q, unsigned int limit)
{
	*q = (struct sched_queue){.sched = s, .limit = limit};
	TAILQ_INIT(&q->waiting);
	TAILQ_INIT(&q->locked);
	TAILQ_INIT(&q->running);
}

void
sched_queue_clear(struct sched_queue *q)
{
	queue_set_ready(q, false);
}

void
sched_queue_gate(struct sched_queue *q, enum sched_gate gate)
{
	q->gate = gate;
	queue_look(q);
}

unsigned int
sched_queue_count(const struct sched_queue *q)
{
	return q->nwaiting + q->nrunning;
}

bool
sched_queue_is_empty(const struct sched_queue *q)
{
	return sched_queue_count(q) == 0;
}

struct sched_item *
sched_queue_first(const struct sched_queue *q)
{
	struct sched_item *item = TAILQ_FIRST(&q->running);

	return item != NULL ? item : queue_head(q);
}
