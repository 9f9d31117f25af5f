/*
 * disks.h - which disks a directory's file system is on
 *
 * By the kernel's word (/proc/self/mountinfo, /sys/dev/block): from the file
 * system's device to the disk that it is a partition of, to those that it is
 * made of (LVM, RAID, encryption), to those below a file that it is a loop
 * over.  A file system in memory is on none.  What the kernel does not tell of
 * (a network, ZFS, another container's layers) is not known.
 */
#ifndef WORKER_DISKS_H
#define WORKER_DISKS_H

#include <sys/types.h>

#include "common/base.h"

#define DISKS_MAX 16
#define DISKS_NODE_MAX 64

struct disks {
	bool is_known; /* all of them are here */
	unsigned int n;
	dev_t all[DISKS_MAX];
	/* The device that the file system's requests go to first, "/dev/sda":
	 * a whole one, never a partition.  "": there is none, or not one. */
	char node[DISKS_NODE_MAX];
};

/* disks_below - path: or, where it is not there or may not be looked at, what
 * is above it */
void disks_below(const char *path, struct disks *out);

enum disks_shared {
	DISKS_APART,
	DISKS_SHARED,
	DISKS_UNKNOWN
};
/* disks_shared - do requests for the one wait behind those for the other? */
enum disks_shared disks_shared(const struct disks *a, const struct disks *b);

#endif
