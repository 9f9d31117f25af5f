/* backoff.h - how long to wait before another try */
#ifndef WORKER_KUBERNETES_BACKOFF_H
#define WORKER_KUBERNETES_BACKOFF_H

#include "common/base.h"

#define BACKOFF_MIN_MS 100
#define BACKOFF_MAX_MS 5000

/* backoff_ms - twice as long for each try that failed, from BACKOFF_MIN_MS to
 * BACKOFF_MAX_MS; half of it is chance, so that many who failed together do not
 * come back together */
uint64_t backoff_ms(unsigned int failed);

#endif
