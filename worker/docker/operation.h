/* operation.h - which kind of request to the engine a path is, for metrics. */
#ifndef WORKER_DOCKER_OPERATION_H
#define WORKER_DOCKER_OPERATION_H

#include "common/base.h"

/* As the values of the label "operation" stand in schema/metrics.txt. */
enum operation {
	OPERATION_INFO,
	OPERATION_EVENTS,
	OPERATION_LIST,
	OPERATION_INSPECT,
	OPERATION_CREATE,
	OPERATION_START,
	OPERATION_STOP,
	OPERATION_REMOVE,
	OPERATION_UPDATE,
	OPERATION_IMAGE,
	OPERATION_BUILD,
	OPERATION_OTHER
};

/* operation_of - path as the engine gets it, with its version or without */
enum operation operation_of(const char *method, const char *path);
/* operation_ended - counts it; status 0: there was no answer */
void operation_ended(enum operation o, long status, uint64_t us);

#endif
