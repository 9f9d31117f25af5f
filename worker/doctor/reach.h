/*
 * reach.h - by which carrier the agents of new sandboxes would be reached, as
 * far as that is known without a container
 */
#ifndef WORKER_DOCTOR_REACH_H
#define WORKER_DOCTOR_REACH_H

#include "common/base.h"
#include "worker/backend.h"
#include "worker/doctor/finding.h"

struct reach_subject {
	const char *setting;                /* CARRIER */
	const char *runtime;                /* SANDBOX_RUNTIME */
	char *const *runtimes;              /* further ones, then NULL */
	const char *kernel;                 /* of this host, its release */
	const struct backend_facts *engine; /* NULL: it does not answer */
};

/* reach_look - one finding.  Where a worker tries it at its start (trial.h),
 * that is said: the doctor makes no container. */
void reach_look(const struct reach_subject *s, struct findings *out);

#endif
