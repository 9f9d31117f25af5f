/*
 * layer_count.h - what of the container's file system is not its image's
 *
 * All that was made or changed since the sandbox began has a change time
 * behind that, which nobody inside can set; whatever is older belongs to the
 * image.  So a count is a walk over the file system that adds up the blocks
 * and the names of what is younger.  It goes in slices, since a hostile tree
 * may be large, and deep.
 *
 * On overlayfs, what a directory of the image has below it is passed over.
 * Nothing comes into the upper layer unless each directory on the way to it
 * is there first, and one that comes there is changed by it, or made.  So a
 * directory that was last changed before the upper layer was made (which is
 * when its root was) has nothing of the sandbox's below it.
 *
 * It does not see what has no name any more and is still open.
 */
#ifndef AGENT_LAYER_COUNT_H
#define AGENT_LAYER_COUNT_H

#include <dirent.h>
#include <sys/types.h>

#include "common/base.h"

/* Paths of directories that wait to be read. */
#define LAYER_PENDING_BYTES (32u << 20)

struct layer_count { /* layer_count.c writes */
	uint64_t bytes;
	uint64_t inodes;
	uint64_t stop_bytes; /* more is not counted any further */
	uint64_t stop_inodes;
	int64_t since_ns;
	int64_t upper_ns; /* older directories are all the image's */
	int root;         /* -1: none is under way */
	dev_t dev;
	DIR *dir;
	char *dir_path; /* below root */
	char **pending;
	size_t npending;
	size_t pending_cap;
	size_t pending_bytes;
};

void layer_count_init(struct layer_count *c);
/* layer_count_begin - below path, of what changed at since_ns (wall clock) or
 * later.  Drops one that is under way. */
void layer_count_begin(struct layer_count *c, const char *path,
    int64_t since_ns, uint64_t stop_bytes, uint64_t stop_inodes);
bool layer_count_is_running(const struct layer_count *c);
/* layer_count_slice - goes on until that time (clock_mono_us); true: it is
 * whole, or stopped */
bool layer_count_slice(struct layer_count *c, uint64_t until_us);
void layer_count_drop(struct layer_count *c);

#endif
