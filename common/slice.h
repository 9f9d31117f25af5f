/*
 * slice.h - get a processor soon after waking
 *
 * The kernel's scheduler (EEVDF, since Linux 6.12) lets a process that wakes
 * interrupt one that asked for longer slices than it did; otherwise it waits
 * until the other's slice is over, which may be a tick.  Shares stay as they
 * are: a short slice is no more of the processor, it is sooner.  Needs no
 * privilege.  Older kernels have no such wish and take no notice.
 */
#ifndef COMMON_SLICE_H
#define COMMON_SLICE_H

#include "common/base.h"

#define SLICE_SHORT_NS 100000 /* the shortest there is */

enum slice_heirs {
	SLICE_INHERITED, /* by threads and processes made from now on */
	SLICE_OWN        /* these begin with the kernel's */
};

/* slice_shorten - of the calling thread.  What fails is left as it was. */
void slice_shorten(enum slice_heirs heirs);

#endif
