#include "common/frame.h"
#include "common/js.h"
#include "common/xmalloc.h"
#include "worker/kubernetes/pod_body.h"
#include "worker/kubernetes/pod_labels.h"
#include "worker/kubernetes/pod_volume.h"
#include "tests/unit/test.h"

static struct conf *conf;
static struct policy policy;
static struct pod_settings settings;
static struct backend_wishes wishes;
static struct backend_spec spec;
static json_t *pod;

static void
set(const char *key, const char *value)
{
	struct err e;

	assert_int_equal(conf_set(conf, key, value, &e), 0);
}

static int
setup(void **state)
{
	static const char *const command[] = {FRAME_PROGRAM_IN_SANDBOX, NULL};

	(void)state;
	conf = conf_new();
	set("KUBERNETES_AGENT_IMAGE", "server:1");
	wishes = (struct backend_wishes){.command = command,
	    .carrier = "bridge",
	    .prepared = true,
	    .listens = true};
	spec = (struct backend_spec){.name = "inst-Box.1",
	    .identity = {.uuid = {{0xab}}, .tenant = "default"},
	    .template = {.image = "img:1",
		.runtime = "",
		.memory_bytes = 64 << 20,
		.nano_cpus = 500000000},
	    .claim = {.identifier = "_a", .generation = 3},
	    .wishes = &wishes};
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	json_decref(pod);
	pod = NULL;
	pod_settings_clear(&settings);
	policy_clear(&policy);
	conf_free(conf);
	return 0;
}

static const json_t *
make(void)
{
	AUTO(auto_free) char *s = NULL;
	struct err e;

	assert_int_equal(policy_init(&policy, conf, &e), 0);
	assert_int_equal(pod_settings_init(&settings, conf, &e), 0);
	memcpy(spec.identity.fingerprint, policy.fingerprint,
	    sizeof(spec.identity.fingerprint));
	s = pod_body(&(struct pod_body){.policy = &policy,
	    .settings = &settings,
	    .ns = "boxes",
	    .instance = "inst",
	    .id = "5eed",
	    .spec = &spec,
	    .created_ms = 1700000000123});
	assert_int_equal(js_parse(s, strlen(s), 65536, 16, &pod, &e), 0);
	return json_object_get(pod, "spec");
}

static const json_t *
only(const json_t *o, const char *key)
{
	const json_t *a = json_object_get(o, key);

	assert_int_equal(json_array_size(a), 1);
	return json_array_get(a, 0);
}

/* The value at a path of members with "." between them, as JSON. */
static void
check(const json_t *o, const char *path, const char *want)
{
	AUTO(auto_free) char *got = NULL, *copy = xstrdup(path), *rest = copy;

	while (rest != NULL)
		o = json_object_get(o, strsep(&rest, "."));
	got = o == NULL ? xstrdup("none") :
			  json_dumps(o, JSON_COMPACT | JSON_ENCODE_ANY);
	if (strcmp(got, want) != 0)
		fail_msg("%s is %s, want %s", path, got, want);
}

static void
check_marked(const char *of, const char *word, const char *want)
{
	const json_t *o = json_object_get(json_object_get(pod, "metadata"), of);
	char name[POD_LABEL_MAX + 1];

	pod_label(settings.prefix, word, name);
	assert_string_equal(js_text(o, name), want);
}

TEST(nothing_of_the_cluster_gets_into_a_pod)
{
	const json_t *s = make();

	check(pod, "kind", "\"Pod\"");
	check(pod, "metadata.namespace", "\"boxes\"");
	check(s, "restartPolicy", "\"Never\"");
	check(s, "automountServiceAccountToken", "false");
	check(s, "enableServiceLinks", "false");
	check(s, "terminationGracePeriodSeconds", "1");
	check(s, "securityContext.seccompProfile.type", "\"RuntimeDefault\"");
	check(s, "hostUsers", "none");
	check(s, "hostNetwork", "none");
	check(s, "runtimeClassName", "none");
	check(s, "nodeSelector", "{}");
	check(s, "imagePullSecrets", "[]");
}

TEST(labels_say_what_it_is_and_annotations_what_a_client_says)
{
	(void)make();
	check_marked("labels", POD_LABEL_ROLE, "sandbox");
	check_marked("labels", POD_LABEL_ID, "5eed");
	check_marked(
	    "labels", POD_LABEL_BOX, "ab000000-0000-0000-0000-000000000000");
	/* printf default | sha256sum */
	check_marked("labels", POD_LABEL_TENANT, "37a8eec1ce19687d");
	check_marked("labels", POD_LABEL_FINGERPRINT, policy.fingerprint);
	check_marked("labels", POD_LABEL_CARRIER, "bridge");
	check_marked("annotations", POD_NOTE_NAME, "inst-Box.1");
	check_marked("annotations", POD_NOTE_TENANT, "default");
	check_marked("annotations", POD_NOTE_IDENTIFIER, "_a");
	check_marked("annotations", POD_NOTE_GENERATION, "3");
	check_marked("annotations", POD_NOTE_IMAGE, "img:1");
	check_marked("annotations", POD_NOTE_CREATED, "1700000000123");
	check_marked("annotations", POD_NOTE_EXPIRES, "");
}

TEST(the_sandbox_is_root_of_itself_with_few_capabilities)
{
	const json_t *box = only(make(), "containers");

	check(box, "name", "\"sandbox\"");
	check(box, "image", "\"img:1\"");
	check(box, "imagePullPolicy", "\"IfNotPresent\"");
	check(box, "workingDir", "\"/workspace\"");
	check(box, "command", "[\"/.mcp-sandboxd/agent\"]");
	check(box, "securityContext.runAsUser", "0");
	check(box, "securityContext.privileged", "false");
	check(box, "securityContext.allowPrivilegeEscalation", "false");
	check(box, "securityContext.readOnlyRootFilesystem", "false");
	check(box, "securityContext.capabilities.drop", "[\"ALL\"]");
	check(box, "securityContext.capabilities.add",
	    "[\"SETUID\",\"SETGID\",\"CHOWN\",\"FOWNER\",\"DAC_OVERRIDE\","
	    "\"KILL\",\"SETPCAP\"]");
	check(box, "tty", "none");
}

TEST(the_agent_is_told_its_terms)
{
	const json_t *box = only(make(), "containers");

	check(box, "args",
	    "[\"-k\",\"120\",\"-b\",\"10737418240\",\"-n\",\"500000\",\"-l\","
	    "\"1\"]");
}

TEST(what_is_promised_is_what_it_may_have)
{
	const json_t *s = make(), *box = only(s, "containers");

	check(box, "resources.limits.cpu", "\"500m\"");
	check(box, "resources.limits.memory", "\"67108864\"");
	/* SANDBOX_DISK_MB, and 128 MiB for what is the node's. */
	check(box, "resources.limits.ephemeral-storage", "\"10871635968\"");
	assert_true(json_equal(
	    json_object_get(json_object_get(box, "resources"), "limits"),
	    json_object_get(json_object_get(box, "resources"), "requests")));
	assert_true(json_equal(json_object_get(box, "resources"),
	    json_object_get(only(s, "initContainers"), "resources")));
}

TEST(the_agents_program_comes_out_of_the_servers_image)
{
	const json_t *s = make(), *init = only(s, "initContainers");

	check(init, "name", "\"agent\"");
	check(init, "image", "\"server:1\"");
	check(init, "command",
	    "[\"/usr/local/libexec/mcp-sandboxd/sandbox-agent\",\"install\","
	    "\"/.mcp-sandboxd\"]");
	check(init, "volumeMounts",
	    "[{\"name\":\"agent\",\"mountPath\":\"/.mcp-sandboxd\","
	    "\"readOnly\":false}]");
	check(init, "securityContext.capabilities", "{\"drop\":[\"ALL\"]}");
	check(only(s, "containers"), "volumeMounts",
	    "[{\"name\":\"agent\",\"mountPath\":\"/.mcp-sandboxd\","
	    "\"readOnly\":true},{\"name\":\"tmp\",\"mountPath\":\"/tmp\","
	    "\"readOnly\":false}]");
	check(s, "volumes",
	    "[{\"name\":\"agent\",\"emptyDir\":{\"sizeLimit\":\"67108864\"}},"
	    "{\"name\":\"tmp\",\"emptyDir\":{\"medium\":\"Memory\","
	    "\"sizeLimit\":\"268435456\"}}]");
}

TEST(a_restricted_pod_has_one_user_and_no_capability)
{
	const json_t *s, *box;

	set("KUBERNETES_SECURITY", "restricted");
	set("SANDBOX_NO_NEW_PRIVILEGES", "false");
	s = make();
	box = only(s, "containers");
	check(s, "securityContext.runAsNonRoot", "true");
	check(s, "securityContext.runAsUser", "1000");
	check(s, "securityContext.runAsGroup", "1000");
	check(s, "securityContext.fsGroup", "none");
	check(box, "securityContext.runAsNonRoot", "true");
	check(box, "securityContext.runAsUser", "none");
	check(box, "securityContext.allowPrivilegeEscalation", "false");
	check(box, "securityContext.capabilities", "{\"drop\":[\"ALL\"]}");
	check(
	    only(s, "initContainers"), "securityContext.runAsNonRoot", "true");
}

TEST(a_restricted_pod_may_have_the_user_of_the_cluster)
{
	const json_t *s;

	set("KUBERNETES_SECURITY", "restricted");
	set("KUBERNETES_RUN_AS_USER", "0");
	set("KUBERNETES_VOLUME_CLASS", "fast");
	s = make();
	check(s, "securityContext.runAsNonRoot", "true");
	check(s, "securityContext.runAsUser", "none");
	check(s, "securityContext.fsGroup", "none");
}

TEST(a_restricted_pod_can_write_where_sandboxes_do)
{
	const json_t *s, *mounts;

	set("KUBERNETES_SECURITY", "restricted");
	set("SANDBOX_DISK_MB", "5");
	s = make();
	mounts = json_object_get(only(s, "containers"), "volumeMounts");
	check(json_array_get(mounts, 2), "mountPath", "\"/workspace\"");
	check(json_array_get(mounts, 3), "mountPath", "\"/artifacts\"");
	check(json_array_get(json_object_get(s, "volumes"), 2), "emptyDir",
	    "{\"sizeLimit\":\"5242880\"}");
}

TEST(a_pod_whose_root_is_read_only_can_write_there_too)
{
	const json_t *box, *mounts;

	spec.template.read_only_root = true;
	box = only(make(), "containers");
	spec.template.read_only_root = false;
	check(box, "securityContext.readOnlyRootFilesystem", "true");
	mounts = json_object_get(box, "volumeMounts");
	check(json_array_get(mounts, 2), "mountPath", "\"/workspace\"");
	check(json_array_get(mounts, 3), "mountPath", "\"/artifacts\"");
}

TEST(what_belongs_to_the_cluster_is_as_the_settings_say)
{
	const json_t *s;

	set("KUBERNETES_HOST_USERS", "false");
	set("KUBERNETES_NODE_SELECTOR", "pool=boxes,zone=");
	set("KUBERNETES_PULL_SECRETS", "one");
	set("SANDBOX_RUNTIME", "gvisor");
	s = make();
	check(s, "hostUsers", "false");
	check(s, "nodeSelector", "{\"pool\":\"boxes\",\"zone\":\"\"}");
	check(s, "imagePullSecrets", "[{\"name\":\"one\"}]");
	check(s, "runtimeClassName", "\"gvisor\"");
}

TEST(a_volume_is_the_sandboxs_claim)
{
	char name[POD_NAME_MAX + 1];
	const json_t *s, *volume;

	set("KUBERNETES_VOLUME_CLASS", "fast");
	s = make();
	pod_volume_name("5eed", "default", "_a", name);
	volume = json_array_get(json_object_get(s, "volumes"), 2);
	assert_true(pod_volume_is_in(pod, name));
	assert_string_equal(
	    js_text(
		json_object_get(volume, "persistentVolumeClaim"), "claimName"),
	    name);
	check(s, "securityContext.fsGroup", "1000");
	check(json_array_get(
		  json_object_get(only(s, "containers"), "volumeMounts"), 2),
	    "mountPath", "\"/workspace\"");
	check_marked("annotations", POD_NOTE_OLD_FILES, "");
}

TEST(a_trial_has_no_claim)
{
	set("KUBERNETES_VOLUME_CLASS", "fast");
	spec.is_trial = true;
	check(make(), "securityContext.fsGroup", "none");
	assert_int_equal(json_array_size(json_object_get(
			     json_object_get(pod, "spec"), "volumes")),
	    2);
}

TEST(a_trial_is_no_sandbox)
{
	spec.is_trial = true;
	spec.ttl_s = 60;
	(void)make();
	check_marked("labels", POD_LABEL_ROLE, "carrier-trial");
	check_marked("annotations", POD_NOTE_EXPIRES, "1700000060123");
}

TEST_MAIN(setup, teardown)
