/*
 * pod_body.h - what a Pod is to be
 *
 * The only place that writes a Pod's JSON.  Nothing in it comes from a client
 * but words that policy_check has let through.  What a sandbox may be is the
 * policy's (policy.h), what its agent needs the carrier's (backend_wishes), and
 * what belongs to the cluster the settings': nothing here decides.
 *
 *	Pod
 *	  init container agent	copies the agent's program out of the server's
 *				image into the volume agent
 *	  container sandbox	the box; has that volume to read
 */
#ifndef WORKER_KUBERNETES_POD_BODY_H
#define WORKER_KUBERNETES_POD_BODY_H

#include <jansson.h>

#include "common/base.h"
#include "worker/backend.h"
#include "worker/kubernetes/pod_settings.h"
#include "worker/policy.h"

/* In the server's image (images/server). */
#define POD_AGENT_PROGRAM "/usr/local/libexec/mcp-sandboxd/sandbox-agent"
#define POD_AGENT_CONTAINER "agent"

struct pod_body {
	const struct policy *policy;
	const struct pod_settings *settings;
	const char *ns;
	const char *instance;
	const char *id; /* of the instance */
	const struct backend_spec *spec;
	int64_t created_ms;
	bool has_old_files; /* its volume was another box's before */
};
/* pod_body - the caller frees */
char *pod_body(const struct pod_body *p);
/* pod_body_has_volume - such a Pod has a claim (pod_volume.h) */
bool pod_body_has_volume(
    const struct pod_settings *s, const struct backend_spec *spec);
/* pod_body_put_place - into the spec of any Pod of ours: the nodes that it may
 * run on, and the secrets that its images are pulled with */
void pod_body_put_place(json_t *spec, const struct pod_settings *s);
/* pod_body_put_user - into the securityContext of a restricted one */
void pod_body_put_user(json_t *security, const struct pod_settings *s);

#endif
