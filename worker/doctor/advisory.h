/*
 * advisory.h - schema/advisories.txt, and what of it concerns a version
 */
#ifndef WORKER_DOCTOR_ADVISORY_H
#define WORKER_DOCTOR_ADVISORY_H

#include <jansson.h>

#include "common/base.h"
#include "worker/doctor/finding.h"

#define ADVISORY_OPEN_MAX 24 /* that are named, of each kind */

struct advisory_subject {
	const char *component; /* as in the table */
	const char *version;   /* upstream's: 1.1.5; "": not known */
	const char *package;   /* Debian's: 1.1.5+ds1-1+deb12u1; "": none */
	bool patched;          /* by a distribution that does not say how */
	bool has_profile;      /* sandboxes have our seccomp profile */
};

/* advisory_look - one finding about this component, and one for each advisory
 * that is open */
void advisory_look(const struct advisory_subject *s, struct findings *out);
/*
 * advisory_list_open - for a worker that runs: of this kernel and of what the
 * engine's /version names; version is no object: of the kernel alone.  The
 * caller's:
 *
 *	{"open": [CVE...], "unknown": [CVE or component...], "not_shown": n}
 *
 * unknown: a distribution may have mended it, or it is not said which version
 * a component is.  A worker reads no list of packages, so doctor can know more.
 */
json_t *advisory_list_open(const json_t *version, bool has_profile);
/* advisory_part - a component of the engine's /version; NULL: none */
const json_t *advisory_part(const json_t *version, const char *name);

#endif
