/* host.h - what this machine is: its kernel, packages, clock and disk. */
#ifndef WORKER_DOCTOR_HOST_H
#define WORKER_DOCTOR_HOST_H

#include "common/base.h"

#define HOST_WORD_MAX 96

struct host_kernel {
	char release[HOST_WORD_MAX]; /* uname -r */
	char version[HOST_WORD_MAX]; /* upstream's: 6.1.140 */
	bool patched; /* a distribution mends it without a new version */
};
void host_kernel(struct host_kernel *out);
/* host_kernel_of - the same of uname's release and version */
void host_kernel_of(
    const char *release, const char *version, struct host_kernel *out);
/* host_package - the version of an installed package of Debian, "" if there
 * is none */
void host_package(const char *name, char out[HOST_WORD_MAX]);
/* host_package_of - the same of what stands in a status file */
void host_package_of(
    const char *status, const char *name, char out[HOST_WORD_MAX]);
/* host_clock_is_synchronized - by the kernel's word */
bool host_clock_is_synchronized(void);

/* host_climb - path becomes that of the directory it is in; false: there is
 * none */
bool host_climb(char *path);

struct host_disk {
	char path[256]; /* what was looked at: it, or what is above it */
	uint64_t free_bytes;
	uint64_t free_inodes; /* UINT64_MAX: they are not counted */
};
/* host_disk - of the file system where path is or will be; false: unknown */
bool host_disk(const char *path, struct host_disk *out);

#endif
