#include "worker/kubernetes/network_body.h"

#include <arpa/inet.h>
#include <stdio.h>

#include "common/js.h"
#include "common/xmalloc.h"
#include "worker/kubernetes/pod_body.h"
#include "worker/kubernetes/pod_labels.h"

#define NETWORK_PORT "4280"
#define NETWORK_REACH_MS "20000"
#define NETWORK_BARRED_MS "10000"
#define NETWORK_QUIET_MS "2000"
/* What a worker that dies leaves ends by itself. */
#define NETWORK_LIFE_S 300
#define NETWORK_UID 65534

/* ---- the policy */

char *
network_policy_body(const char *prefix)
{
	char label[POD_LABEL_MAX + 1];
	AUTO(auto_json) json_t *o = NULL;

	pod_label(prefix, POD_LABEL_NETWORK, label);
	o = json_pack("{s:s, s:s, s:{s:s, s:{s:s}}, s:{s:{s:{s:s}}, s:[s, s]}}",
	    "apiVersion", "networking.k8s.io/v1", "kind", "NetworkPolicy",
	    "metadata", "name", NETWORK_POLICY, "labels",
	    "app.kubernetes.io/managed-by", "mcp-sandboxd", "spec",
	    "podSelector", "matchLabels", label, POD_NETWORK_NONE,
	    "policyTypes", "Ingress", "Egress");
	return js_dump(o);
}

/* All Pods, or those of our label and no fewer. */
static bool
selects(const json_t *selector, const char *label)
{
	const json_t *labels = json_object_get(selector, "matchLabels");

	if (json_array_size(json_object_get(selector, "matchExpressions")) > 0)
		return false;
	return json_object_size(labels) == 0 ||
	    (json_object_size(labels) == 1 &&
		strcmp(js_text(labels, label), POD_NETWORK_NONE) == 0);
}

static bool
has_type(const json_t *spec, const char *type)
{
	const json_t *types = json_object_get(spec, "policyTypes"), *one;
	size_t i;

	json_array_foreach (types, i, one) {
		const char *s = js_plain(one);

		if (s != NULL && strcmp(s, type) == 0)
			return true;
	}
	return false;
}

int
network_policy_check(const json_t *policy, const char *prefix, struct err *e)
{
	static const char *const ways[][2] = {
	    {"Ingress", "ingress"}, {"Egress", "egress"}};
	const json_t *spec = json_object_get(policy, "spec");
	char label[POD_LABEL_MAX + 1];

	pod_label(prefix, POD_LABEL_NETWORK, label);
	if (!json_is_object(spec) ||
	    !selects(json_object_get(spec, "podSelector"), label))
		return err_set(e, ERR_POLICY,
		    "the NetworkPolicy " NETWORK_POLICY
		    " does not select the label %.80s=" POD_NETWORK_NONE,
		    label);
	for (size_t i = 0; i < ARRAY_LEN(ways); i++)
		if (!has_type(spec, ways[i][0]) ||
		    json_array_size(json_object_get(spec, ways[i][1])) > 0)
			return err_set(e, ERR_POLICY,
			    "the NetworkPolicy " NETWORK_POLICY
			    " lets something through (%s)",
			    ways[i][1]);
	return 0;
}

/* ---- Pods */

static json_t *
command_of(const struct network_pod *p)
{
	const bool is_v6 =
	    p->address != NULL && strchr(p->address, ':') != NULL;
	AUTO(auto_free)
	char *to = xasprintf("%s%s%s:" NETWORK_PORT, is_v6 ? "[" : "",
	    p->address != NULL ? p->address : "", is_v6 ? "]" : "");

	switch (p->part) {
	case NETWORK_FREE:
		return json_pack("[s, s, s, s]", POD_AGENT_PROGRAM, "reach", to,
		    NETWORK_REACH_MS);
	case NETWORK_BARRED:
		return json_pack("[s, s, s, s, s]", POD_AGENT_PROGRAM, "barred",
		    to, NETWORK_BARRED_MS, NETWORK_QUIET_MS);
	case NETWORK_LISTENER:
	case NETWORK_PARTS:
	default:
		return json_pack(
		    "[s, s, s]", POD_AGENT_PROGRAM, "listen", NETWORK_PORT);
	}
}

static json_t *
metadata(const struct network_pod *p)
{
	char label[POD_LABEL_MAX + 1];
	json_t *o, *labels = json_object();

	pod_label(p->settings->prefix, POD_LABEL_TRIAL, label);
	json_object_set_new(labels, label, json_string(p->id));
	json_object_set_new(labels, "app.kubernetes.io/managed-by",
	    json_string("mcp-sandboxd"));
	if (p->part == NETWORK_BARRED) {
		pod_label(p->settings->prefix, POD_LABEL_NETWORK, label);
		json_object_set_new(
		    labels, label, json_string(POD_NETWORK_NONE));
	}
	o = json_pack("{s:s, s:o}", "name", p->name, "labels", labels);
	if (p->owner_uid != NULL)
		json_object_set_new(o, "ownerReferences",
		    json_pack("[{s:s, s:s, s:s, s:s}]", "apiVersion", "v1",
			"kind", "Pod", "name", p->owner_name, "uid",
			p->owner_uid));
	return o;
}

static json_t *
resources(void)
{
	return json_pack("{s:s, s:s, s:s}", "cpu", "100m", "memory", "32Mi",
	    "ephemeral-storage", "16Mi");
}

/* As little as any Pod can have: it passes at each level. */
static json_t *
container(const struct network_pod *p)
{
	return json_pack(
	    "{s:s, s:s, s:s, s:o, s:{s:o, s:o}, s:{s:b, s:b, s:{s:[s]}}}",
	    "name", NETWORK_CONTAINER, "image", p->settings->agent_image,
	    "imagePullPolicy", p->settings->pull_policy, "command",
	    command_of(p), "resources", "requests", resources(), "limits",
	    resources(), "securityContext", "allowPrivilegeEscalation", 0,
	    "readOnlyRootFilesystem", 1, "capabilities", "drop", "ALL");
}

static json_t *
security(const struct network_pod *p)
{
	json_t *o = json_pack("{s:b, s:{s:s}}", "runAsNonRoot", 1,
	    "seccompProfile", "type", "RuntimeDefault");

	if (p->settings->is_restricted)
		pod_body_put_user(o, p->settings);
	else
		json_object_set_new(o, "runAsUser", json_integer(NETWORK_UID));
	return o;
}

char *
network_pod_body(const struct network_pod *p)
{
	json_t *spec = json_pack("{s:s, s:b, s:b, s:i, s:i, s:o, s:[o]}",
	    "restartPolicy", "Never", "automountServiceAccountToken", 0,
	    "enableServiceLinks", 0, "activeDeadlineSeconds", NETWORK_LIFE_S,
	    "terminationGracePeriodSeconds", 1, "securityContext", security(p),
	    "containers", container(p));
	AUTO(auto_json)
	json_t *o = json_pack("{s:s, s:s, s:o, s:o}", "apiVersion", "v1",
	    "kind", "Pod", "metadata", metadata(p), "spec", spec);

	pod_body_put_place(spec, p->settings);
	return js_dump(o);
}

bool
network_pod_address(const json_t *pod, char *out, size_t size)
{
	const char *ip = js_text(json_object_get(pod, "status"), "podIP");
	struct in6_addr any;

	if (inet_pton(AF_INET, ip, &any) != 1 &&
	    inet_pton(AF_INET6, ip, &any) != 1)
		return false;
	return (size_t)snprintf(out, size, "%s", ip) < size;
}
