#include "worker/crowd.h"

#include "common/clock.h"
#include "common/slice.h"

void
crowd_on_end(struct crowd *c, uint64_t asked_us)
{
	uint64_t now, passed;
	bool on;

	if (c == NULL)
		return;
	now = clock_mono_us();
	if (now - asked_us <= CROWD_SHORT_US)
		c->took_us += now - asked_us;
	passed = now - c->since_us;
	if (passed < CROWD_WINDOW_US)
		return;
	on = c->took_us >= (c->is_on ? CROWD_UNTIL : CROWD_FROM) * passed;
	if (on != c->is_on)
		slice_set_batch(on);
	*c = (struct crowd){.since_us = now, .is_on = on};
}
