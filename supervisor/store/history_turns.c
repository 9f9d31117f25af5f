#include "supervisor/store/history_turns.h"

#include "common/xmalloc.h"
#include "supervisor/store/history_ask.h"

struct tenant_turn { /* in the round while something of the tenant waits */
	uint64_t tenant;
	struct op *head;
	struct op **tail;
	size_t n;
	TAILQ_ENTRY(tenant_turn) link;
};

void
history_turns_init(struct history_turns *t)
{
	TAILQ_INIT(&t->round);
	t->is_stopped = false;
	(void)pthread_mutex_init(&t->mutex, NULL);
	(void)pthread_cond_init(&t->cond, NULL);
}

void
history_turns_clear(struct history_turns *t)
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

bool
history_turns_push(
    struct history_turns *t, struct history_asking *a, size_t most)
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

void
history_turns_push_again(struct history_turns *t, struct history_asking *a)
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

struct history_asking *
history_turns_take(struct history_turns *t)
{
	struct history_asking *a;

	(void)pthread_mutex_lock(&t->mutex);
	while (TAILQ_EMPTY(&t->round) && !t->is_stopped)
		(void)pthread_cond_wait(&t->cond, &t->mutex);
	a = t->is_stopped ? NULL : take_next(t);
	(void)pthread_mutex_unlock(&t->mutex);
	return a;
}

bool
history_turns_drop(struct history_turns *t, const struct history_asking *a)
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

void
history_turns_stop(struct history_turns *t)
{
	(void)pthread_mutex_lock(&t->mutex);
	t->is_stopped = true;
	(void)pthread_cond_signal(&t->cond);
	(void)pthread_mutex_unlock(&t->mutex);
}
