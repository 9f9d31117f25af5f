/*
 * pod_settings.h - the settings that Pods are made by
 *
 * Words that the API server would refuse in each Pod are refused here, at the
 * start; so are settings of sandboxes that no Pod can keep.
 */
#ifndef WORKER_KUBERNETES_POD_SETTINGS_H
#define WORKER_KUBERNETES_POD_SETTINGS_H

#include "common/base.h"
#include "common/conf.h"
#include "common/err.h"

#define POD_PREFIX_MAX 253 /* a subdomain of RFC 1123 */

enum pod_host_users {
	POD_HOST_USERS_AUTO, /* not said */
	POD_HOST_USERS_TRUE,
	POD_HOST_USERS_FALSE
};

/* What becomes of the NetworkPolicy of sandboxes (network.h). */
enum pod_network_rule {
	POD_NETWORK_MAKE,
	POD_NETWORK_CHECK,
	POD_NETWORK_LEAVE /* it is others' to make, by any name */
};

struct pod_settings {
	/* With POD_NAMESPACE_TENANT or without (pod_namespace.h); "": as the
	 * cluster's context says. */
	char *ns;
	char *container;
	char *prefix;      /* of labels, without the "/" */
	char *agent_image; /* that has POD_AGENT_PROGRAM (pod_body.h) */
	bool is_restricted;
	uint32_t user; /* of restricted Pods; 0: not said */
	enum pod_host_users host_users;
	char **node_selector; /* NAME=VALUE; NULL-terminated, as the next */
	char **pull_secrets;
	char *pull_policy;
	uint32_t pending_ms;
	enum pod_network_rule network_rule;
	bool may_be_unenforced; /* nobody tries whether it is */
	char *volume_class;     /* "": no volume */
	uint64_t volume_bytes;
	int64_t volume_keep_ms; /* that nobody uses; 0: not at all */
};

/* pod_settings_init - ERR_INVAL names the setting; *s is to be cleared all the
 * same */
int pod_settings_init(
    struct pod_settings *s, const struct conf *c, struct err *e) MUSTCHECK;
void pod_settings_clear(struct pod_settings *s);

#endif
