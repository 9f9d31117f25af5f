#include "common/turns.h"

#include <time.h>

#include <event2/event.h>

#include "common/clock.h"
#include "common/log.h"

/* The thread's own time costs a system call, the clock none.  Turns that are
 * shorter than this are counted with the next ones, which they make longer by
 * as much at most. */
#define TURN_LOOK_US 1000

static bool excused;
static uint64_t longest_us;

static uint64_t
thread_us(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * 1000000 + (uint64_t)ts.tv_nsec / 1000;
}

static void
turn_took(uint64_t us)
{
	static struct log_limit limit;

	if (excused) {
		excused = false;
		return;
	}
	if (us > longest_us)
		longest_us = us;
	if (us > TURN_MAX_MS * UINT64_C(1000))
		log_warn_limited(&limit,
		    "a turn of the loop took %llu ms, more than %d",
		    (unsigned long long)us / 1000, TURN_MAX_MS);
}

int
turns_run(struct event_base *base)
{
	uint64_t before = thread_us(), after;
	uint64_t looked = clock_mono_us(), now;
	int rc;

	do {
		rc = event_base_loop(base, EVLOOP_ONCE);
		now = clock_mono_us();
		if (now - looked < TURN_LOOK_US && !excused)
			continue;
		after = thread_us();
		turn_took(after - before);
		before = after;
		looked = now;
	} while (rc == 0 && event_base_got_break(base) == 0);
	return rc < 0 ? -1 : 0;
}

void
turns_excuse(void)
{
	excused = true;
}

uint64_t
turns_longest_us(void)
{
	return longest_us;
}
