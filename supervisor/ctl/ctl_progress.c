#include "supervisor/ctl/ctl_progress.h"

#include <stdio.h>
#include <unistd.h>

#include "common/clock.h"

#define PERIOD_MS 200

static uint64_t next_ms;
static bool is_shown;

void
ctl_progress_tell(const char *what, uint64_t done, uint64_t all)
{
	uint64_t now_ms = clock_mono_ms();

	if (now_ms < next_ms || isatty(STDERR_FILENO) != 1)
		return;
	next_ms = now_ms + PERIOD_MS;
	is_shown = true;
	(void)fprintf(
	    stderr, "\r\033[K%s: %llu", what, (unsigned long long)(done >> 20));
	if (all > 0)
		(void)fprintf(
		    stderr, " of %llu", (unsigned long long)(all >> 20));
	(void)fputs(" MiB", stderr);
}

void
ctl_progress_end(void)
{
	if (is_shown)
		(void)fputs("\r\033[K", stderr);
	is_shown = false;
}
