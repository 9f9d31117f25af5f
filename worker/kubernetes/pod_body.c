#include "worker/kubernetes/pod_body.h"

#include <stdio.h>

#include <jansson.h>

#include "common/exit.h"
#include "common/frame.h"
#include "common/js.h"
#include "common/log.h"
#include "worker/kubernetes/pod_labels.h"
#include "worker/kubernetes/pod_name.h"
#include "worker/kubernetes/pod_volume.h"

#define MIB (UINT64_C(1) << 20)
#define NANO_PER_MILLI 1000000u
#define PROGRAM_BYTES (64 * MIB) /* more than the agent's program has */
/* The agent's own limit of the file system comes first, and says so; a node
 * counts its program and what it logs, too. */
#define DISK_MORE_BYTES (128 * MIB)
#define BOX_GROUP 1000 /* of the sandbox's user (images/sandbox) */
#define VOLUME_AGENT "agent"
#define VOLUME_TMP "tmp"
#define VOLUME_WORKSPACE "workspace"
#define VOLUME_ARTIFACTS "artifacts"

/* ---- JSON */

static void
put(json_t *o, const char *key, json_t *value)
{
	if (json_object_set_new(o, key, value) != 0)
		fatal(EXIT_BUG, "pod: cannot set %s", key);
}

static void
put_text(json_t *o, const char *key, const char *s)
{
	put(o, key, json_string(s));
}

static json_t *
decimal(uint64_t n)
{
	return json_sprintf("%llu", (unsigned long long)n);
}

static void
add(json_t *a, json_t *item)
{
	if (json_array_append_new(a, item) != 0)
		fatal(EXIT_BUG, "pod: cannot add to a list");
}

static json_t *
list(const char *const *items)
{
	json_t *a = json_array();

	for (size_t i = 0; items[i] != NULL; i++)
		add(a, json_string(items[i]));
	return a;
}

/* ---- what it is known by */

static void
mark(json_t *o, const struct pod_body *p, const char *word, json_t *value)
{
	char name[POD_LABEL_MAX + 1];

	pod_label(p->settings->prefix, word, name);
	put(o, name, value);
}

static json_t *
labels(const struct pod_body *p)
{
	const struct box_identity *id = &p->spec->identity;
	const char *carrier = p->spec->wishes->carrier;
	char uuid[UUID_TEXT_LEN + 1], tenant[POD_TENANT_LEN + 1];
	json_t *o = json_object();

	uuid_format(&id->uuid, uuid);
	pod_tenant(id->tenant, tenant);
	put_text(o, "app.kubernetes.io/managed-by", "mcp-sandboxd");
	mark(o, p, POD_LABEL_ROLE,
	    json_string(p->spec->is_trial ? POD_ROLE_TRIAL : POD_ROLE));
	mark(o, p, POD_LABEL_ID, json_string(p->id));
	mark(o, p, POD_LABEL_BOX, json_string(uuid));
	mark(o, p, POD_LABEL_TENANT, json_string(tenant));
	mark(o, p, POD_LABEL_FINGERPRINT, json_string(id->fingerprint));
	if (carrier != NULL)
		mark(o, p, POD_LABEL_CARRIER, json_string(carrier));
	if (p->policy->network == POLICY_NETWORK_NONE)
		mark(o, p, POD_LABEL_NETWORK, json_string(POD_NETWORK_NONE));
	return o;
}

/* By the TTL of now: annotations stay as they are, a TTL does not. */
static json_t *
annotations(const struct pod_body *p)
{
	const struct backend_spec *s = p->spec;
	uint64_t now = (uint64_t)p->created_ms;
	json_t *o = json_object();

	mark(o, p, POD_NOTE_NAME, json_string(s->name));
	mark(o, p, POD_NOTE_INSTANCE, json_string(p->instance));
	mark(o, p, POD_NOTE_TENANT, json_string(s->identity.tenant));
	mark(o, p, POD_NOTE_IDENTIFIER, json_string(s->claim.identifier));
	mark(o, p, POD_NOTE_GENERATION, decimal(s->claim.generation));
	mark(o, p, POD_NOTE_IMAGE, json_string(s->template.image));
	mark(o, p, POD_NOTE_CREATED, decimal(now));
	if (s->ttl_s != 0)
		mark(o, p, POD_NOTE_EXPIRES,
		    decimal(now + (uint64_t)s->ttl_s * 1000));
	mark(o, p, POD_NOTE_CPUS, decimal(s->template.nano_cpus));
	mark(o, p, POD_NOTE_MEMORY, decimal(s->template.memory_bytes));
	if (p->has_old_files)
		mark(o, p, POD_NOTE_OLD_FILES, json_string("true"));
	return o;
}

static json_t *
metadata(const struct pod_body *p)
{
	char name[POD_NAME_MAX + 1];
	json_t *o = json_object();

	pod_name(p->spec->name, name);
	put_text(o, "name", name);
	put_text(o, "namespace", p->ns);
	put(o, "labels", labels(p));
	put(o, "annotations", annotations(p));
	return o;
}

/* ---- what it may use */

static json_t *
limits(const struct pod_body *p)
{
	const struct policy_template *t = &p->spec->template;
	uint64_t milli = (t->nano_cpus + NANO_PER_MILLI - 1) / NANO_PER_MILLI;
	json_t *o = json_object();

	put(o, "cpu", json_sprintf("%llum", (unsigned long long)milli));
	put(o, "memory", decimal(t->memory_bytes));
	if (p->policy->disk_bytes != 0)
		put(o, "ephemeral-storage",
		    decimal(p->policy->disk_bytes + DISK_MORE_BYTES));
	return o;
}

/* What a node promises is what a container may have: of a Pod whose two differ
 * a crowded node takes memory away first. */
static json_t *
resources(const struct pod_body *p)
{
	json_t *o = json_object();

	put(o, "requests", limits(p));
	put(o, "limits", limits(p));
	return o;
}

static json_t *
capabilities(const struct pod_body *p)
{
	static const char *const all[] = {"ALL", NULL};
	json_t *o = json_object();

	if (p->settings->is_restricted) {
		put(o, "drop", list(all));
		return o;
	}
	put(o, "drop", list((const char *const *)p->policy->cap_drop));
	put(o, "add", list((const char *const *)p->policy->cap_add));
	return o;
}

static json_t *
box_security(const struct pod_body *p)
{
	json_t *o = json_object();

	put(o, "privileged", json_false());
	/* A container that may gain privileges is no restricted one. */
	put(o, "allowPrivilegeEscalation",
	    json_boolean(
		!p->policy->no_new_privileges && !p->settings->is_restricted));
	put(o, "capabilities", capabilities(p));
	put(o, "readOnlyRootFilesystem",
	    json_boolean(p->spec->template.read_only_root));
	if (p->settings->is_restricted) {
		put(o, "runAsNonRoot", json_true());
	} else {
		put(o, "runAsUser", json_integer(0));
		put(o, "runAsGroup", json_integer(0));
	}
	return o;
}

static json_t *
agent_security(const struct pod_body *p)
{
	static const char *const all[] = {"ALL", NULL};
	json_t *o = json_object();
	json_t *caps = json_object();

	put(caps, "drop", list(all));
	put(o, "privileged", json_false());
	put(o, "allowPrivilegeEscalation", json_false());
	put(o, "capabilities", caps);
	put(o, "readOnlyRootFilesystem", json_true());
	if (p->settings->is_restricted)
		put(o, "runAsNonRoot", json_true());
	return o;
}

/* ---- containers */

static json_t *
mounted(const char *volume, const char *path, bool is_read_only)
{
	return json_pack("{s:s, s:s, s:b}", "name", volume, "mountPath", path,
	    "readOnly", is_read_only);
}

/* The last of what it says at a failure is in the Pod's status, then. */
static json_t *
container(const struct pod_body *p, const char *name, const char *image)
{
	json_t *o = json_object();

	put_text(o, "name", name);
	put_text(o, "image", image);
	put_text(o, "imagePullPolicy", p->settings->pull_policy);
	put_text(o, "terminationMessagePolicy", "FallbackToLogsOnError");
	put(o, "resources", resources(p));
	return o;
}

static json_t *
agent_container(const struct pod_body *p)
{
	static const char *const command[] = {
	    POD_AGENT_PROGRAM, "install", FRAME_PROGRAM_DIR_IN_SANDBOX, NULL};
	json_t *o = container(p, POD_AGENT_CONTAINER, p->settings->agent_image);
	json_t *mounts = json_array();

	add(mounts, mounted(VOLUME_AGENT, FRAME_PROGRAM_DIR_IN_SANDBOX, false));
	put(o, "command", list(command));
	put(o, "securityContext", agent_security(p));
	put(o, "volumeMounts", mounts);
	return o;
}

/* Behind the carrier's command: images/agent/terms.h. */
static json_t *
box_arguments(const struct pod_body *p)
{
	const struct policy *of = p->policy;
	json_t *a = json_pack("[s, o, s, o, s, o]", "-k",
	    json_sprintf("%llx", (unsigned long long)of->withheld), "-b",
	    decimal(of->disk_bytes), "-n", decimal(of->disk_inodes));

	if (p->spec->wishes->listens) {
		add(a, json_string("-l"));
		add(a, json_string("1"));
	}
	return a;
}

bool
pod_body_has_volume(
    const struct pod_settings *s, const struct backend_spec *spec)
{
	return s->volume_class[0] != '\0' && !spec->is_trial;
}

static bool
has_volume(const struct pod_body *p)
{
	return pod_body_has_volume(p->settings, p->spec);
}

/* Nobody makes or writes directories in the image's file system: the agent is
 * not root, or it is read-only. */
static bool
has_directories(const struct pod_body *p)
{
	return p->settings->is_restricted || p->spec->template.read_only_root;
}

static json_t *
box_mounts(const struct pod_body *p)
{
	json_t *a = json_array();

	add(a, mounted(VOLUME_AGENT, FRAME_PROGRAM_DIR_IN_SANDBOX, true));
	add(a, mounted(VOLUME_TMP, "/tmp", false));
	if (has_volume(p) || has_directories(p))
		add(a, mounted(VOLUME_WORKSPACE, "/workspace", false));
	if (has_directories(p))
		add(a, mounted(VOLUME_ARTIFACTS, "/artifacts", false));
	return a;
}

static json_t *
box_container(const struct pod_body *p)
{
	json_t *o =
	    container(p, p->settings->container, p->spec->template.image);

	put(o, "command", list(p->spec->wishes->command));
	put(o, "args", box_arguments(p));
	put_text(o, "workingDir", "/workspace");
	put(o, "securityContext", box_security(p));
	put(o, "volumeMounts", box_mounts(p));
	return o;
}

/* ---- volumes */

static json_t *
empty_volume(const char *name, const char *medium, uint64_t bytes)
{
	json_t *o = json_object();

	if (medium[0] != '\0')
		put_text(o, "medium", medium);
	put(o, "sizeLimit", decimal(bytes));
	return json_pack("{s:s, s:o}", "name", name, "emptyDir", o);
}

/* Made before the Pod, and there when that is gone. */
static json_t *
workspace_volume(const struct pod_body *p)
{
	const struct backend_spec *s = p->spec;
	char name[POD_NAME_MAX + 1];

	pod_volume_name(p->id, s->identity.tenant, s->claim.identifier, name);
	return json_pack("{s:s, s:{s:s}}", "name", VOLUME_WORKSPACE,
	    "persistentVolumeClaim", "claimName", name);
}

/* For has_directories: everybody may write to such a volume. */
static json_t *
disk_volume(const struct pod_body *p, const char *name)
{
	return p->policy->disk_bytes != 0 ?
	    empty_volume(name, "", p->policy->disk_bytes) :
	    json_pack("{s:s, s:{}}", "name", name, "emptyDir");
}

static json_t *
volumes(const struct pod_body *p)
{
	json_t *a = json_array();

	add(a, empty_volume(VOLUME_AGENT, "", PROGRAM_BYTES));
	add(a, empty_volume(VOLUME_TMP, "Memory", p->policy->tmp_bytes));
	if (has_volume(p))
		add(a, workspace_volume(p));
	else if (has_directories(p))
		add(a, disk_volume(p, VOLUME_WORKSPACE));
	if (has_directories(p))
		add(a, disk_volume(p, VOLUME_ARTIFACTS));
	return a;
}

/* ---- the Pod */

void
pod_body_put_user(json_t *security, const struct pod_settings *s)
{
	put(security, "runAsNonRoot", json_true());
	if (s->user == 0)
		return;
	put(security, "runAsUser", json_integer(s->user));
	put(security, "runAsGroup", json_integer(s->user));
}

/* Once, of a new volume: later its files keep the modes that they have. */
static void
put_group(json_t *security, uint32_t group)
{
	put(security, "fsGroup", json_integer(group));
	put_text(security, "fsGroupChangePolicy", "OnRootMismatch");
}

/* What is new in a volume is root's. */
static json_t *
pod_security(const struct pod_body *p)
{
	json_t *o =
	    json_pack("{s:{s:s}}", "seccompProfile", "type", "RuntimeDefault");

	if (!p->settings->is_restricted) {
		if (has_volume(p))
			put_group(o, BOX_GROUP);
		return o;
	}
	pod_body_put_user(o, p->settings);
	if (has_volume(p) && p->settings->user != 0)
		put_group(o, p->settings->user);
	return o;
}

void
pod_body_put_place(json_t *spec, const struct pod_settings *s)
{
	json_t *nodes = json_object(), *secrets = json_array();

	for (char *const *n = s->node_selector; *n != NULL; n++) {
		size_t len = strcspn(*n, "=");
		char *name = strndup(*n, len);

		if (name == NULL)
			fatal(EXIT_MEMORY, "no memory for a label");
		put_text(nodes, name, *n + len + 1);
		free(name);
	}
	for (char *const *n = s->pull_secrets; *n != NULL; n++)
		add(secrets, json_pack("{s:s}", "name", *n));
	put(spec, "nodeSelector", nodes);
	put(spec, "imagePullSecrets", secrets);
}

static json_t *
pod_spec(const struct pod_body *p)
{
	const struct policy_template *t = &p->spec->template;
	const char *runtime =
	    t->runtime[0] != '\0' ? t->runtime : p->policy->runtime;
	enum pod_host_users users = p->settings->host_users;
	json_t *o = json_object();

	put_text(o, "restartPolicy", "Never");
	put(o, "automountServiceAccountToken", json_false());
	put(o, "enableServiceLinks", json_false());
	put(o, "terminationGracePeriodSeconds", json_integer(1));
	put_text(o, "hostname", "sandbox");
	put(o, "securityContext", pod_security(p));
	if (runtime[0] != '\0')
		put_text(o, "runtimeClassName", runtime);
	if (users != POD_HOST_USERS_AUTO)
		put(o, "hostUsers", json_boolean(users == POD_HOST_USERS_TRUE));
	pod_body_put_place(o, p->settings);
	put(o, "initContainers", json_pack("[o]", agent_container(p)));
	put(o, "containers", json_pack("[o]", box_container(p)));
	put(o, "volumes", volumes(p));
	return o;
}

char *
pod_body(const struct pod_body *p)
{
	AUTO(auto_json)
	json_t *o = json_pack("{s:s, s:s}", "apiVersion", "v1", "kind", "Pod");

	put(o, "metadata", metadata(p));
	put(o, "spec", pod_spec(p));
	return js_dump(o);
}
