/* random.h - bytes that nobody guesses */
#ifndef COMMON_RANDOM_H
#define COMMON_RANDOM_H

#include "common/base.h"

#define RANDOM_MAX 256 /* what getrandom(2) gives whole once it gives any */

/* random_fill - n bytes, at most RANDOM_MAX, from getrandom(2) */
void random_fill(void *out, size_t n);

#endif
