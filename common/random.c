#include "common/random.h"

#include <sys/random.h>
#include <errno.h>
#include <pthread.h>

#include "common/exit.h"
#include "common/log.h"

#define POOL_BYTES 256 /* so many are never cut short once there are any */

static __thread uint8_t pool[POOL_BYTES];
static __thread size_t left; /* of them, at the end */

/* A child has none of what its parent has at hand. */
static void
forget(void)
{
	left = 0;
}

static void
watch_forks(void)
{
	if (pthread_atfork(NULL, NULL, forget) != 0)
		fatal(EXIT_MEMORY, "out of memory");
}

static void
refill(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	ssize_t n;

	(void)pthread_once(&once, watch_forks);
	do
		n = getrandom(pool, sizeof(pool), 0);
	while (n < 0 && errno == EINTR);
	if (n != (ssize_t)sizeof(pool))
		fatal(EXIT_BUG, "getrandom: %s", strerror(errno));
	left = sizeof(pool);
}

void
random_fill(void *out, size_t n)
{
	uint8_t *from;

	if (n > RANDOM_MAX)
		fatal(EXIT_BUG, "%zu random bytes in one call", n);
	if (n > left)
		refill();
	from = pool + sizeof(pool) - left;
	memcpy(out, from, n);
	memset(from, 0, n);
	left -= n;
}
