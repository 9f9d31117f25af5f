/*
 * pod_isolation.h - how a Pod is held, by what the cluster shows of it
 *
 * The same members as an engine's (worker/docker/isolation.h): what was found,
 * not what was asked for, and bounded in the same way.
 */
#ifndef WORKER_KUBERNETES_POD_ISOLATION_H
#define WORKER_KUBERNETES_POD_ISOLATION_H

#include <jansson.h>

#include "common/base.h"
#include "worker/backend.h"

/* pod_isolation_write - one JSON object; container: the name of the one that
 * counts; network: a word for it */
void pod_isolation_write(const json_t *pod, const char *container,
    const char *network, char out[BACKEND_ISOLATION_MAX + 1]);

/* pod_quantity - of the API, such as "500m", "64Mi" or "2": thousandths of it;
 * 0: it is none, or too large */
uint64_t pod_quantity(const char *s);

#endif
