#include "common/heap.h"

#include <malloc.h>

#define HEAP_BLOCK_MAX (256 << 10) /* larger blocks are mapped */
#define HEAP_FREE_MAX (512 << 10)  /* more at the end goes back */
#define HEAP_START_TICKS 3
#define HEAP_GAPS_MAX (4u << 20) /* more between blocks, too */

/* What is large is mapped, and given back as soon as it is free: left alone,
 * glibc raises the threshold to the largest block that was ever freed, and
 * keeps the holes of later ones. */
void
heap_init(void)
{
	(void)mallopt(M_MMAP_THRESHOLD, HEAP_BLOCK_MAX);
	(void)mallopt(M_TRIM_THRESHOLD, HEAP_FREE_MAX);
}

/* What is given back still counts as free, so only a change is a reason. */
void
heap_tick(void)
{
	static size_t known;       /* free, when it was last given back */
	static unsigned int ticks; /* a start takes much that it needs once */
	size_t now = mallinfo2().fordblks;

	if (now < known)
		known = now;
	if (ticks <= HEAP_START_TICKS)
		ticks++;
	if (ticks != HEAP_START_TICKS && now - known < HEAP_GAPS_MAX)
		return;
	(void)malloc_trim(0);
	known = mallinfo2().fordblks;
}
