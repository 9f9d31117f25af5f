#include "images/agent/say.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "common/clock.h"

struct say_entry {
	enum frame_said_level level;
	enum frame_said_what what;
	struct uuid run;
	uint32_t dropped;
	char text[FRAME_SAID_TEXT_MAX + 1];
};

static struct {
	struct say_entry waiting[SAY_WAITING_MAX];
	unsigned int first, n;
	uint32_t dropped;
	/* What may be said, in ms of SAY_EVERY_MS each, as of then. */
	uint64_t allowed_ms, asof_ms;
} say;

/* Whether one more may be said. */
static bool
say_spend(uint64_t now_ms)
{
	const uint64_t most = (uint64_t)SAY_BURST * SAY_EVERY_MS;

	say.allowed_ms += say.asof_ms == 0 ? most : now_ms - say.asof_ms;
	if (say.allowed_ms > most)
		say.allowed_ms = most;
	say.asof_ms = now_ms;
	if (say.allowed_ms < SAY_EVERY_MS || say.n == SAY_WAITING_MAX)
		return false;
	say.allowed_ms -= SAY_EVERY_MS;
	return true;
}

void
say_line(enum frame_said_level level, enum frame_said_what what,
    const struct uuid *run, const char *fmt, ...)
{
	static const struct uuid none;
	const int saved = errno;
	struct say_entry *s;
	va_list args;

	if (!say_spend(clock_mono_ms())) {
		say.dropped += say.dropped < UINT32_MAX;
		return;
	}
	s = &say.waiting[(say.first + say.n++) % SAY_WAITING_MAX];
	s->level = level;
	s->what = what;
	s->run = run != NULL ? *run : none;
	s->dropped = say.dropped;
	say.dropped = 0;
	va_start(args, fmt);
	(void)vsnprintf(s->text, sizeof(s->text), fmt, args);
	va_end(args);
	errno = saved;
}

bool
say_is_waiting(void)
{
	return say.n > 0;
}

void
say_take(struct frame_said *out)
{
	const struct say_entry *s = &say.waiting[say.first];

	*out = (struct frame_said){.level = s->level,
	    .what = s->what,
	    .run = s->run,
	    .dropped = s->dropped,
	    .text = s->text};
	say.first = (say.first + 1) % SAY_WAITING_MAX;
	say.n--;
}
