/* open_advisories.h - which of schema/advisories.txt concern this host, while
 * a worker runs */
#ifndef WORKER_DOCTOR_OPEN_ADVISORIES_H
#define WORKER_DOCTOR_OPEN_ADVISORIES_H

#include <jansson.h>

#include "common/base.h"

#define OPEN_ADVISORIES_MAX 24 /* that are named, of each kind */

/* open_advisories - of this kernel and of what the engine's /version names;
 * version is no object: of the kernel alone.  The caller's:
 *
 *	{"open": [CVE...], "unknown": [CVE or component...], "not_shown": n}
 *
 * unknown: a distribution may have mended it, or it is not said which version
 * a component is.  A worker reads no list of packages, so doctor can know more.
 */
json_t *open_advisories(const json_t *version, bool has_profile);

#endif
