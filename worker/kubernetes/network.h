/*
 * network.h - whether sandboxes have no network, found out by trying
 *
 * An API server takes NetworkPolicies whether the cluster's network enforces
 * them or not, so one that is there proves nothing.  A trial makes three Pods
 * of the agent's program: one listens, one that no policy selects reaches it,
 * and one under the policy must not.
 *
 *	the policy is there, or is made -> the listener runs -> who is free
 *	has reached it -> who is barred has not -> the listener runs still
 *	-> all are removed -> the verdict
 *
 * Whatever goes wrong on the way is "not known", never "closed".
 */
#ifndef WORKER_KUBERNETES_NETWORK_H
#define WORKER_KUBERNETES_NETWORK_H

#include "common/base.h"
#include "worker/kubernetes/pod_settings.h"

struct cluster;
struct event_base;
struct network_trial;

enum network_verdict {
	NETWORK_UNKNOWN,
	NETWORK_CLOSED, /* it was seen: the policy holds */
	NETWORK_OPEN    /* a Pod under it reached another, or there is none */
};

/* All borrowed, for as long as the trial. */
struct network_setup {
	struct event_base *base;
	struct cluster *cluster;
	const char *ns;
	const char *id; /* of the instance */
	const struct pod_settings *settings;
};

/* why: for people; of NETWORK_CLOSED "" */
typedef void (*network_cb)(
    enum network_verdict verdict, const char *why, void *arg);
/* network_trial_start - cb once, never inside this call, unless cancelled */
struct network_trial *network_trial_start(
    const struct network_setup *setup, network_cb cb, void *arg);
/* network_trial_cancel - what it made ends by itself, and is removed by the
 * next one of the instance */
void network_trial_cancel(struct network_trial *t);

#endif
