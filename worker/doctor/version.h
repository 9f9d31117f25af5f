/*
 * version.h - which of two versions is newer
 *
 * Upstream's are numbers with dots before anything else; Debian's are ordered
 * as deb-version(7) says: digits as numbers, "~" before the end, letters
 * before other signs.
 */
#ifndef WORKER_DOCTOR_VERSION_H
#define WORKER_DOCTOR_VERSION_H

#include "common/base.h"

/* version_compare - < 0, 0, > 0, by deb-version(7), without epochs */
int version_compare(const char *a, const char *b);
/* version_upstream - what stands before what a distribution added: "1.1.5" of
 * "1.1.5+ds1-1+deb12u1", "1.0.0~rc93" of "v1.0.0-rc93"; cut to size */
void version_upstream(const char *version, char *out, size_t size);
/* version_is_debians - its marks are in it */
bool version_is_debians(const char *version);
/* version_is_fixed - fixed has the first good version of each branch (the
 * first two numbers) with commas between; one of a branch that is not there
 * is good when it is newer than all of them */
bool version_is_fixed(const char *version, const char *fixed);
/* version_is_packaged_fixed - the same for Debian's packages: of each release
 * (deb12, deb11) the first good one */
bool version_is_packaged_fixed(const char *version, const char *fixed);

#endif
