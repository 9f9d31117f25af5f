/*
 * network_body.h - the NetworkPolicy of sandboxes, and the Pods that try it
 *
 * The policy selects the label POD_LABEL_NETWORK, which sandboxes without a
 * network bear and one of the Pods that try, and lets nothing in or out.
 */
#ifndef WORKER_KUBERNETES_NETWORK_BODY_H
#define WORKER_KUBERNETES_NETWORK_BODY_H

#include <jansson.h>

#include "common/base.h"
#include "common/err.h"
#include "worker/kubernetes/pod_settings.h"

#define NETWORK_POLICY "mcp-sandboxd-no-network"
#define NETWORK_CONTAINER "trial"

enum network_part {
	NETWORK_LISTENER,
	NETWORK_FREE,   /* reaches it */
	NETWORK_BARRED, /* is under the policy */
	NETWORK_PARTS
};

/* network_policy_body - the caller frees */
char *network_policy_body(const char *prefix);
/* network_policy_check - ERR_POLICY: it lets something through, or is not of
 * our label; the text says which */
int network_policy_check(
    const json_t *policy, const char *prefix, struct err *e) MUSTCHECK;

struct network_pod {
	const struct pod_settings *settings;
	const char *id;   /* of the instance */
	const char *name; /* of the Pod */
	enum network_part part;
	const char *address;    /* of the listener; NULL for itself */
	const char *owner_name; /* likewise: the listener, with which they go */
	const char *owner_uid;
};
/* network_pod_body - the caller frees */
char *network_pod_body(const struct network_pod *p);
/* network_pod_address - of one that runs; false: it has none yet */
bool network_pod_address(const json_t *pod, char *out, size_t size) MUSTCHECK;

#endif
