#include "supervisor/master/restart.h"

#include <stdio.h>
#include <sys/wait.h>

#include "common/exit.h"

enum restart_end
restart_read_status(int wait_status)
{
	if (!WIFEXITED(wait_status))
		return RESTART_DIED;
	switch (WEXITSTATUS(wait_status)) {
	case 0:
		return RESTART_LEFT;
	case EXIT_PRIVILEGE:
	case EXIT_CONFIG:
		return RESTART_REFUSED;
	default:
		return RESTART_DIED;
	}
}

void
restart_describe(int wait_status, char out[RESTART_TEXT_MAX])
{
	if (WIFSIGNALED(wait_status))
		(void)snprintf(out, RESTART_TEXT_MAX, "signal %d (%s)",
		    WTERMSIG(wait_status), strsignal(WTERMSIG(wait_status)));
	else
		(void)snprintf(out, RESTART_TEXT_MAX, "exit status %d",
		    WEXITSTATUS(wait_status));
}

uint32_t
restart_next(const struct restart_policy *p, struct restart *r, uint64_t now_ms,
    uint32_t done)
{
	uint64_t ready_ms = r->ready_ms;
	uint64_t delay;

	r->ready_ms = 0;
	if (done > 0 || (ready_ms != 0 && now_ms - ready_ms >= p->healthy_ms)) {
		r->failures = 0;
		return 0;
	}
	if (r->failures < 31) /* keeps the shift defined */
		r->failures++;
	delay = (uint64_t)p->first_ms << (r->failures - 1);
	return delay < p->max_ms ? (uint32_t)delay : p->max_ms;
}

static uint32_t
count_since(const struct restart_burst *b, uint64_t since_ms)
{
	uint32_t n = 0;

	for (uint32_t i = 1; i <= b->count; i++) {
		uint32_t at =
		    (b->next + RESTART_BURST_MAX - i) % RESTART_BURST_MAX;

		if (b->deaths[at] < since_ms)
			break;
		n++;
	}
	return n;
}

uint32_t
restart_burst_add(
    const struct restart_policy *p, struct restart_burst *b, uint64_t now_ms)
{
	uint64_t since_ms = now_ms > p->window_ms ? now_ms - p->window_ms : 0;

	b->deaths[b->next] = now_ms;
	b->next = (b->next + 1) % RESTART_BURST_MAX;
	if (b->count < RESTART_BURST_MAX)
		b->count++;
	if (count_since(b, since_ms) <= p->burst)
		return 0;
	b->count = 0;
	return p->throttle_ms;
}
