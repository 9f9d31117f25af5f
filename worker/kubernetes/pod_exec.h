/*
 * pod_exec.h - a program in a Pod, and its standard streams as one socket
 *
 * backend_ops.exec for Pods: the API's exec by WebSocket (exec_stream.h).
 * The program's standard error is words for a person, and no data.  A program
 * outlives its stream: all that a stream's end does is to end its standard
 * input.
 */
#ifndef WORKER_KUBERNETES_POD_EXEC_H
#define WORKER_KUBERNETES_POD_EXEC_H

#include <sys/queue.h>

#include "worker/backend.h"

struct cluster;
struct event_base;
struct pod_exec; /* backend.h's backend_exec */

/* All that are under way. */
struct pod_execs {
	struct event_base *base;
	struct cluster *cluster;
	const char *namespace;
	const char *container; /* of the Pods' containers */
	TAILQ_HEAD(, pod_exec) all;
};

/* pod_execs_init - keeps what it is given by pointer */
void pod_execs_init(struct pod_execs *all, struct event_base *base,
    struct cluster *cluster, const char *namespace, const char *container);
/* pod_execs_clear - streams end, also those that only say good-bye; before
 * cluster_free, which tells those that wait for its answer */
void pod_execs_clear(struct pod_execs *all);

/* pod_exec_start - as backend_ops.exec, in the Pod of that name; but that the
 * program has the container's user */
struct backend_exec *pod_exec_start(struct pod_execs *all, const char *pod,
    const char *const *command, const struct backend_exec_user *user,
    void *arg);
/* pod_exec_cancel - as backend_ops.exec_cancel */
void pod_exec_cancel(struct backend_exec *exec);

#endif
