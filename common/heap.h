/*
 * heap.h - memory that was freed goes back to the kernel
 *
 * malloc keeps what is free between blocks that are in use.  After a burst of
 * work that may be hundreds of megabytes, for good.
 */
#ifndef COMMON_HEAP_H
#define COMMON_HEAP_H

#include "common/base.h"

/* heap_init - before the first allocation of weight */
void heap_init(void);
/* heap_tick - now and then, from the loop: gives back what is free when that
 * is much, and not the same that was given back before; once after the start in
 * any case */
void heap_tick(void);

#endif
