/*
 * kubernetes.h - a backend over the API of a Kubernetes cluster: a box is a Pod
 *
 * Lists the instance's Pods and follows them, says what is missing there
 * (rights, a NetworkPolicy), and turns backend.h's wishes into requests.
 */
#ifndef WORKER_KUBERNETES_KUBERNETES_H
#define WORKER_KUBERNETES_KUBERNETES_H

#include "common/base.h"
#include "common/err.h"
#include "worker/backend.h"

struct backend_start;
struct conf;

/* kubernetes_open - as backends.h says; forks (cluster.h) */
int kubernetes_open(const struct conf *conf, const struct backend_start *start,
    struct backend **out, struct err *e) MUSTCHECK;
/* kubernetes_ask_facts - as backends.h says */
int kubernetes_ask_facts(const struct conf *conf, struct backend_facts *out,
    struct err *e) MUSTCHECK;

#endif
