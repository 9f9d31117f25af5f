#include "common/random.h"

#include <sys/random.h>
#include <errno.h>

#include "common/exit.h"
#include "common/log.h"

void
random_fill(void *out, size_t n)
{
	ssize_t got;

	do
		got = getrandom(out, n, 0);
	while (got < 0 && errno == EINTR);
	if (n > RANDOM_MAX || got != (ssize_t)n)
		fatal(
		    EXIT_BUG, "getrandom of %zu bytes: %s", n, strerror(errno));
}
