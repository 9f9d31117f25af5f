#include "images/agent/lease.h"

void
lease_init(struct lease *l)
{
	*l = (struct lease){.ms = LEASE_FIRST_MS};
}

void
lease_set(struct lease *l, uint64_t ms)
{
	l->ms = ms;
}

bool
lease_tick(struct lease *l, uint64_t now_ms, enum lease_state state)
{
	if (state == LEASE_HELD) {
		l->since_ms = 0;
		return true;
	}
	if (l->since_ms == 0)
		l->since_ms = now_ms;
	return now_ms - l->since_ms < l->ms;
}

uint64_t
lease_next_ms(const struct lease *l)
{
	return l->since_ms == 0 ? UINT64_MAX : l->since_ms + l->ms;
}
