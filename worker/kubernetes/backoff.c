#include "worker/kubernetes/backoff.h"

#include "common/random.h"

#define DOUBLINGS_MAX 6 /* more reach BACKOFF_MAX_MS in any case */

uint64_t
backoff_ms(unsigned int failed)
{
	unsigned int doublings =
	    failed < DOUBLINGS_MAX ? failed : DOUBLINGS_MAX;
	uint64_t ms = (uint64_t)BACKOFF_MIN_MS << doublings;
	uint16_t chance;

	if (ms > BACKOFF_MAX_MS)
		ms = BACKOFF_MAX_MS;
	random_fill(&chance, sizeof(chance));
	return ms / 2 + chance % (ms / 2 + 1);
}
