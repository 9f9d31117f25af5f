#include "worker/docker/processors.h"

#include <stdio.h>

bool
processors_own(cpu_set_t *out)
{
	return sched_getaffinity(0, sizeof(*out), out) == 0;
}

/* The n of them from the first on. */
static void
choose(const cpu_set_t *of, unsigned int first, unsigned int n, cpu_set_t *out)
{
	unsigned int all = (unsigned int)CPU_COUNT(of), at = 0;

	CPU_ZERO(out);
	for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, of))
			continue;
		if ((at + all - first) % all < n)
			CPU_SET(cpu, out);
		at++;
	}
}

bool
processors_text(const cpu_set_t *of, unsigned int first, unsigned int n,
    char out[PROCESSORS_TEXT_MAX])
{
	unsigned int all = (unsigned int)CPU_COUNT(of);
	size_t len = 0;
	cpu_set_t set;

	if (n == 0) {
		first = 0;
		n = all;
	}
	if (all == 0 || first >= all || n > all)
		return false;
	choose(of, first, n, &set);
	for (size_t from = 0; from < CPU_SETSIZE; from++) {
		size_t to = from;

		if (!CPU_ISSET(from, &set))
			continue;
		while (to + 1 < CPU_SETSIZE && CPU_ISSET(to + 1, &set))
			to++;
		len += (size_t)snprintf(out + len, PROCESSORS_TEXT_MAX - len,
		    to > from ? "%s%zu-%zu" : "%s%zu", len > 0 ? "," : "", from,
		    to);
		if (len >= PROCESSORS_TEXT_MAX)
			return false;
		from = to;
	}
	return true;
}
