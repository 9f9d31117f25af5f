/*
 * advisory.h - schema/advisories.txt, and what of it concerns a version
 */
#ifndef WORKER_DOCTOR_ADVISORY_H
#define WORKER_DOCTOR_ADVISORY_H

#include "common/base.h"
#include "worker/doctor/finding.h"

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
/* advisory_each - the CVE of each that is open, nothing when the version is not
 * known; the text lives until on returns */
void advisory_each(const struct advisory_subject *s,
    void (*on)(const char *cve, void *arg), void *arg);

#endif
