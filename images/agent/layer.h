/*
 * layer.h - the limit of a sandbox's file system, where the engine has none
 *
 * While programs run, the free space of the file system below is looked at,
 * which costs nothing; it is the host's, so all it says is that somebody has
 * written.  When as much is gone as could matter, what this sandbox has is
 * counted (layer_count.h).
 *
 *	LAYER_FULL	over its limit: what runs must end
 *	LAYER_LOST	so far over it that the sandbox must go
 *
 * A sandbox that is still over its limit after that may run programs that
 * delete files; a program that adds to it is ended again.
 */
#ifndef AGENT_LAYER_H
#define AGENT_LAYER_H

#include "common/base.h"
#include "images/agent/layer_count.h"

#define LAYER_FULL_TEXT                                                        \
	"the sandbox's file system is full (SANDBOX_DISK_MB, "                 \
	"SANDBOX_DISK_INODES): delete files in it"

enum layer_verdict {
	LAYER_FINE,
	LAYER_FULL,
	LAYER_LOST
};

struct layer_use {
	uint64_t bytes;
	uint64_t inodes;
};

struct layer { /* layer.c writes */
	const char *root;
	struct layer_use max;     /* 0: no such limit */
	struct layer_use allowed; /* max, or what it had when it was over */
	struct layer_use used;    /* when it was counted last */
	struct layer_use spare;   /* most that was free below since then */
	struct layer_count count;
	int64_t since_ns;
	int64_t boot_offset_ns; /* wall clock, less the one nobody sets */
	uint64_t next_ms;       /* when to look again */
	uint64_t looked_ms;
	uint64_t counted_ms;
	uint32_t pause_ms;
	bool was_busy;
	bool owes_look; /* since the end of what ran */
	bool settles;   /* LAYER_FULL was said: how much is it now? */
};

/* layer_init - root is kept by pointer; what is older than now is the image's.
 * Limits of 0 are none. */
void layer_init(struct layer *l, const char *root, struct layer_use max);
/* layer_tick - once a turn; busy: programs run.  A count takes some
 * milliseconds of several turns. */
enum layer_verdict layer_tick(struct layer *l, uint64_t now_ms, bool busy);
/* layer_next_ms - when it is due, UINT64_MAX: not before programs run */
uint64_t layer_next_ms(const struct layer *l);

#endif
