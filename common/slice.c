#include "common/slice.h"

#include <errno.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#define FLAG_RESET_ON_FORK 1 /* SCHED_FLAG_RESET_ON_FORK of linux/sched.h */

/* struct sched_attr of linux/sched/types.h, first version; libc has none. */
struct slice_attr {
	uint32_t size;
	uint32_t policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime; /* of SCHED_OTHER: the slice */
	uint64_t deadline;
	uint64_t period;
};

void
slice_shorten(enum slice_heirs heirs)
{
	struct slice_attr a = {.size = sizeof(a)};

	/* Its niceness is asked for because it would be set, too. */
	if (syscall(SYS_sched_getattr, 0, &a, sizeof(a), 0) == -1 ||
	    a.policy != SCHED_OTHER)
		return;
	a.runtime = SLICE_SHORT_NS;
	a.flags = heirs == SLICE_OWN ? FLAG_RESET_ON_FORK : 0;
	if (syscall(SYS_sched_setattr, 0, &a, 0) == -1) {
		/* then it waits its turn */
	}
}
