/*
 * operation.h - requests to an engine, counted by what they are for
 *
 * Families sandboxd_engine_requests_total and _request_seconds of
 * schema/metrics.txt.
 */
#ifndef WORKER_OPERATION_H
#define WORKER_OPERATION_H

#include "common/base.h"

/* As the values of the label "operation" stand there. */
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
	OPERATION_EXEC,
	OPERATION_IMAGE,
	OPERATION_BUILD,
	OPERATION_OTHER
};

/* A kind of request. */
struct operation_shape {
	const char *method;
	const char *head;  /* of the path */
	const char *tail;  /* of the path, before the query; "": any */
	const char *query; /* a word in it; NULL: any, or none */
	enum operation operation;
};

/* operation_of - the first of the n shapes that fits, or OPERATION_OTHER */
enum operation operation_of(const struct operation_shape *shapes, size_t n,
    const char *method, const char *path);
/* operation_count - one that has ended; status 0: without an answer */
void operation_count(enum operation o, long status, uint64_t us);

#endif
