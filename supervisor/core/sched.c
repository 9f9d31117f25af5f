#include "supervisor/core/sched.h"

#include "common/xmalloc.h"

#define HOUR 1000000000u /* of a lane's clock, by its weight */

TAILQ_HEAD(sched_lanes, sched_lane);

struct sched {
	void (*start)(struct sched_item *item);
	struct sched_lanes ready;
	uint64_t clock; /* of the lane that started something last */
	uint64_t next_number;
	unsigned int nrunning;
	unsigned int places; /* 0: as many as want to */
	bool in_turn;
};

/* ---- the round */

static bool
lane_is_full(const struct sched_lane *lane)
{
	return lane->gate == SCHED_GATE_SHUT ||
	    (lane->limit != 0 && lane->nrunning >= lane->limit);
}

static bool
sched_is_full(const struct sched *s)
{
	return s->places != 0 && s->nrunning >= s->places;
}

static void
lane_look(struct sched_lane *lane)
{
	struct sched *s = lane->sched;
	bool ready = !TAILQ_EMPTY(&lane->ready) && !lane_is_full(lane);

	if (lane->is_ready == ready)
		return;
	lane->is_ready = ready;
	if (!ready) {
		TAILQ_REMOVE(&s->ready, lane, link);
		return;
	}
	if (lane->clock < s->clock)
		lane->clock = s->clock;
	TAILQ_INSERT_TAIL(&s->ready, lane, link);
}

static void
queue_set_ready(struct sched_queue *q, bool ready)
{
	if (q->is_ready == ready)
		return;
	q->is_ready = ready;
	if (ready)
		TAILQ_INSERT_TAIL(&q->lane->ready, q, link);
	else
		TAILQ_REMOVE(&q->lane->ready, q, link);
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

/* What it waits for among its own. */
static enum sched_wait
queue_waits(const struct sched_queue *q)
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
sched_queue_waits(const struct sched_queue *q)
{
	enum sched_wait own = queue_waits(q);

	if (own != SCHED_WAITS_FOR_TURN)
		return own;
	if (q->lane->gate == SCHED_GATE_SHUT)
		return SCHED_WAITS_FOR_DAY;
	if (lane_is_full(q->lane))
		return SCHED_WAITS_FOR_QUOTA;
	return sched_is_full(q->lane->sched) ? SCHED_WAITS_FOR_PLACE : own;
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
	queue_set_ready(q, queue_waits(q) == SCHED_WAITS_FOR_TURN);
	lane_look(q->lane);
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
	if (item->where == SCHED_IS_RUNNING) {
		q->nrunning--;
		q->lane->nrunning--;
		q->lane->sched->nrunning--;
	} else {
		q->nwaiting--;
		q->lane->nwaiting--;
	}
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
	q->lane->nrunning++;
	q->lane->sched->nrunning++;
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
	q->lane->nwaiting++;
}

void
sched_add(struct sched_queue *q, struct sched_item *item, bool wants_lock)
{
	item->wants_lock = wants_lock;
	item->number = q->lane->sched->next_number++;
	item_wait(q, item);
	queue_look(q);
}

void
sched_add_running(
    struct sched_queue *q, struct sched_item *item, bool wants_lock)
{
	item->wants_lock = wants_lock;
	item->number = q->lane->sched->next_number++;
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

/* The one whose clock is behind; of equal ones, who came first.  There are no
 * more than tenants that have something to start and are kept from it. */
static struct sched_lane *
next_lane(const struct sched *s)
{
	struct sched_lane *next = TAILQ_FIRST(&s->ready), *lane;

	TAILQ_FOREACH (lane, &s->ready, link)
		if (lane->clock < next->clock)
			next = lane;
	return sched_is_full(s) ? NULL : next;
}

void
sched_turn(struct sched *s)
{
	struct sched_lane *lane;

	if (s->in_turn)
		return;
	s->in_turn = true;
	while ((lane = next_lane(s)) != NULL) {
		s->clock = lane->clock;
		lane->clock += HOUR / lane->weight;
		queue_start(s, TAILQ_FIRST(&lane->ready));
	}
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
sched_set_places(struct sched *s, unsigned int places)
{
	s->places = places;
}

void
sched_lane_init(struct sched *s, struct sched_lane *lane)
{
	*lane = (struct sched_lane){
	    .sched = s, .weight = 1, .gate = SCHED_GATE_OPEN};
	TAILQ_INIT(&lane->ready);
}

void
sched_lane_clear(struct sched_lane *lane)
{
	lane->limit = 0;
	lane_look(lane);
}

void
sched_lane_set(struct sched_lane *lane, unsigned int limit, unsigned int weight)
{
	lane->limit = limit;
	lane->weight = weight;
	lane_look(lane);
}

void
sched_lane_gate(struct sched_lane *lane, enum sched_gate gate)
{
	lane->gate = gate;
	lane_look(lane);
}

void
sched_queue_init(
    struct sched_lane *lane, struct sched_queue *q, unsigned int limit)
{
	*q = (struct sched_queue){.lane = lane, .limit = limit};
	TAILQ_INIT(&q->waiting);
	TAILQ_INIT(&q->locked);
	TAILQ_INIT(&q->running);
}

void
sched_queue_clear(struct sched_queue *q)
{
	queue_set_ready(q, false);
	lane_look(q->lane);
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
