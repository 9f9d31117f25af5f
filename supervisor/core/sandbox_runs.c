#include "supervisor/core/sandbox_runs.h"

#include "supervisor/core/run.h"
#include "supervisor/core/sandbox.h"
#include "supervisor/core/sched.h"

static struct run *
run_of(struct sched_item *item)
{
	return HASH_OF(item, struct run, turn);
}

bool
sandbox_runs_are_told(const struct sched_queue *q)
{
	struct sched_item *item;

	TAILQ_FOREACH (item, &q->running, link)
		if (!run_of(item)->is_told)
			return false;
	return true;
}

void
sandbox_runs_resend(struct sched_queue *q)
{
	struct sched_item *item, *next;

	for (item = TAILQ_FIRST(&q->running); item != NULL; item = next) {
		next = TAILQ_NEXT(item, link);
		run_resend(run_of(item));
	}
}

void
sandbox_runs_begin(struct sched_queue *q, const char *container_id)
{
	struct sched_item *item;

	TAILQ_FOREACH (item, &q->running, link) {
		run_set_container(run_of(item), container_id);
		run_set_deadline(run_of(item));
	}
}

void
sandbox_runs_end(
    struct sched_queue *q, enum runlog_reason reason, const struct err *why)
{
	struct sched_item *item;

	while ((item = sched_queue_first(q)) != NULL)
		run_sandbox_gone(run_of(item), reason, why->code, why->msg);
}

static void
end_doubtful(struct sched_items *list, const struct err *why)
{
	struct sched_item *item, *next;

	for (item = TAILQ_FIRST(list); item != NULL; item = next) {
		next = TAILQ_NEXT(item, link);
		if (run_of(item)->is_doubtful)
			run_sandbox_gone(
			    run_of(item), RUNLOG_LOST, why->code, why->msg);
	}
}

void
sandbox_runs_end_doubtful(struct sched_queue *q, const struct err *why)
{
	end_doubtful(&q->waiting, why);
	end_doubtful(&q->locked, why);
}

static void
move_run(struct sched_item *item, void *arg)
{
	run_move(run_of(item), arg);
}

uint64_t
sandbox_runs_spool_bytes(const struct sched_queue *q)
{
	const struct sched_item *item;
	uint64_t sum = 0;

	TAILQ_FOREACH (item, &q->running, link)
		sum += HASH_OF(item, struct run, turn)->length;
	return sum;
}

void
sandbox_runs_move(struct sched_queue *from, struct sandbox *to)
{
	sched_move_waiting(from, &to->queue, move_run, to);
}
