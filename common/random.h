/*
 * random.h - bytes that nobody guesses, many in one call of the kernel
 *
 * For ids that are asked for with every request.  A key has getrandom(2) by
 * itself: what stands here in advance stands in memory.
 */
#ifndef COMMON_RANDOM_H
#define COMMON_RANDOM_H

#include "common/base.h"

#define RANDOM_MAX 64 /* bytes in one call */

/* random_fill - n bytes, at most RANDOM_MAX, from getrandom(2); each is given
 * out once, in a child after fork as well. */
void random_fill(void *out, size_t n);

#endif
