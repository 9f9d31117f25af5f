#include "worker/link/pace.h"

/* Beyond this no product below overflows. */
#define RATE_MAX (UINT64_C(1) << 50)

void
pace_init(struct pace *p, uint64_t most, uint64_t now_ms)
{
	p->most = most < RATE_MAX ? most : RATE_MAX;
	p->rate = p->most;
	p->budget = (int64_t)p->rate;
	p->at_ms = now_ms;
}

void
pace_set(struct pace *p, uint64_t rate, uint64_t now_ms)
{
	uint64_t was = p->rate;

	if (rate == 0 || (p->most != 0 && rate > p->most))
		rate = p->most;
	p->rate = rate < RATE_MAX ? rate : RATE_MAX;
	/* What was saved up is not spent at a lower rate. */
	if (was == 0 || p->budget > (int64_t)p->rate) {
		p->budget = (int64_t)p->rate;
		p->at_ms = now_ms;
	}
}

uint64_t
pace_charge(struct pace *p, size_t n, uint64_t now_ms)
{
	int64_t rate = (int64_t)p->rate;
	uint64_t ms = now_ms - p->at_ms;

	if (rate == 0)
		return 0;
	if (ms >= 1000 || p->budget + (int64_t)ms * rate / 1000 > rate)
		p->budget = rate;
	else
		p->budget += (int64_t)ms * rate / 1000;
	p->at_ms = now_ms;
	p->budget -= (int64_t)n;
	if (p->budget >= 0)
		return 0;
	return (uint64_t)(-p->budget) * 1000 / p->rate + 1;
}
