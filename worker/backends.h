/*
 * backends.h - the backend that SANDBOX_BACKEND names
 *
 * The one place that knows which backends there are.
 */
#ifndef WORKER_BACKENDS_H
#define WORKER_BACKENDS_H

#include "worker/backend.h"

struct conf;
struct event_base;

/* What a backend is opened with, beside the configuration.  policy, watch and
 * arg are kept by pointer. */
struct backend_start {
	struct event_base *base;
	const char *instance_id; /* by which our boxes are known; "": none is */
	unsigned int index;      /* of this worker, among its server's */
	const char *agent; /* the program's path, for prepared images; NULL */
	const struct policy *policy;
	const struct backend_watch *watch;
	void *arg;
};

/* backend_open_configured - ERR_INVAL: a setting is wrong, and which */
int backend_open_configured(const struct conf *conf,
    const struct backend_start *start, struct backend **out,
    struct err *e) MUSTCHECK;
/* backend_ask_facts - asked once and waited for, without a backend that is
 * open.  ERR_BACKEND when none answers. */
int backend_ask_facts(const struct conf *conf, struct backend_facts *out,
    struct err *e) MUSTCHECK;

#endif
