#include <stdio.h>

#include "common/js.h"
#include "common/xmalloc.h"
#include "worker/kubernetes/pod_body.h"
#include "worker/kubernetes/pod_view.h"
#include "tests/unit/test.h"

#define UID "63295854-234a-414d-ab12-9a4f72b00984"
#define BOX "\"containerStatuses\":[{\"name\":\"sandbox\",\"ready\":"
#define SCHEDULED                                                              \
	"\"conditions\":[{\"type\":\"PodScheduled\",\"status\":\"True\"}]"

static const struct pod_ours ours = {.prefix = "mcp-sandboxd",
    .id = "5eed",
    .container = "sandbox",
    .tenant = ""};
static struct pod_state seen;

static json_t *
pod_of(const char *meta, const char *status)
{
	json_t *o = NULL;
	AUTO(auto_free)
	char *s = xasprintf("{\"metadata\":{\"name\":\"box-1\",\"uid\":\"" UID
			    "\"%s},\"status\":{%s}}",
	    meta, status);
	struct err e;

	assert_int_equal(js_parse(s, strlen(s), 65536, 16, &o, &e), 0);
	return o;
}

static void
look(const char *meta, const char *status)
{
	AUTO(auto_json) json_t *pod = pod_of(meta, status);
	struct err e;

	assert_int_equal(pod_view_state(pod, "sandbox", &seen, &e), 0);
}

TEST(one_that_runs_has_a_life)
{
	char life[BACKEND_LIFE_MAX + 1], uid[POD_UID_MAX + 1];

	look("",
	    "\"phase\":\"Running\"," BOX
	    "true,\"restartCount\":2,\"state\":{\"running\":{}}}]");
	assert_int_equal(seen.phase, POD_RUNNING);
	pod_view_life(&seen, life);
	assert_string_equal(life, UID "/2");
	assert_true(pod_view_uid_of(life, uid));
	assert_string_equal(uid, UID);
	assert_false(pod_view_uid_of("", uid));
	assert_false(pod_view_uid_of(UID, uid));
}

TEST(one_that_is_not_ready_is_pending)
{
	look("",
	    "\"phase\":\"Running\"," SCHEDULED "," BOX
	    "false,\"state\":{\"running\":{}}}]");
	assert_int_equal(seen.phase, POD_PENDING);
	look("", "\"phase\":\"Pending\"");
	assert_int_equal(seen.phase, POD_PENDING);
	assert_string_equal(seen.reason, "no scheduler has looked at it");
	assert_false(seen.is_mute);
}

TEST(the_schedulers_words_are_the_reason)
{
	look("",
	    "\"phase\":\"Pending\",\"conditions\":[{\"type\":\"PodScheduled\","
	    "\"status\":\"False\",\"reason\":\"Unschedulable\",\"message\":\"0/"
	    "1 "
	    "nodes are available: 1 Insufficient cpu.\"}]");
	assert_int_equal(seen.phase, POD_PENDING);
	assert_string_equal(seen.reason,
	    "no node takes it: Unschedulable: 0/1 nodes are available: 1 "
	    "Insufficient cpu.");
	assert_false(seen.is_hopeless);
}

TEST(an_image_that_cannot_be_pulled_is_the_reason)
{
	look("",
	    "\"phase\":\"Pending\"," SCHEDULED "," BOX
	    "false,\"state\":{\"waiting\":{\"reason\":\"ErrImagePull\","
	    "\"message\":\"not\\u0007found\\n\"}}}]");
	assert_string_equal(seen.reason, "ErrImagePull: not found");
	assert_false(seen.is_hopeless);
	assert_false(seen.is_mute);
	look("",
	    "\"phase\":\"Pending\"," SCHEDULED "," BOX
	    "false,\"state\":{\"waiting\":{\"reason\":\"InvalidImageName\"}}}"
	    "]");
	assert_string_equal(seen.reason, "InvalidImageName");
	assert_true(seen.is_hopeless);
}

TEST(the_agents_container_comes_first)
{
	look("",
	    "\"phase\":\"Pending\"," SCHEDULED
	    ",\"initContainerStatuses\":[{\"name\":\"agent\",\"state\":{"
	    "\"waiting\":{\"reason\":\"ImagePullBackOff\"}}}]," BOX
	    "false,\"state\":{\"waiting\":{\"reason\":\"PodInitializing\"}}}]");
	assert_string_equal(
	    seen.reason, "the agent's container: ImagePullBackOff");
}

TEST(one_that_says_nothing_is_mute)
{
	look("",
	    "\"phase\":\"Pending\"," SCHEDULED "," BOX
	    "false,\"state\":{\"waiting\":{\"reason\":"
	    "\"ContainerCreating\"}}}]");
	assert_true(seen.is_mute);
	assert_string_not_equal(seen.reason, "");
}

TEST(an_end_has_a_status_and_a_time)
{
	look("",
	    "\"phase\":\"Failed\"," BOX
	    "false,\"state\":{\"terminated\":{\"exitCode\":137,\"reason\":"
	    "\"OOMKilled\",\"finishedAt\":\"2026-11-20T17:29:44Z\"}}}]");
	assert_int_equal(seen.phase, POD_ENDED);
	assert_int_equal(seen.exit_code, 137);
	assert_true(seen.oom_killed);
	assert_false(seen.was_ended_from_outside);
	assert_int_equal(seen.finished_ms, 1795195784000);
}

/* It may say Succeeded, or that its container runs. */
TEST(a_container_that_ended_is_an_end)
{
	look("",
	    "\"phase\":\"Succeeded\"," BOX
	    "false,\"state\":{\"running\":{}}}]");
	assert_int_equal(seen.phase, POD_ENDED);
	look("",
	    "\"phase\":\"Running\"," BOX
	    "false,\"state\":{\"terminated\":{\"exitCode\":0}}}]");
	assert_int_equal(seen.phase, POD_ENDED);
	assert_int_equal(seen.exit_code, 0);
	assert_true(seen.finished_ms == INT64_MAX);
}

TEST(an_eviction_is_said_as_the_cluster_says_it)
{
	look("",
	    "\"phase\":\"Failed\",\"reason\":\"Evicted\",\"message\":\"The "
	    "node was low on resource: memory.\"");
	assert_int_equal(seen.phase, POD_ENDED);
	assert_true(seen.was_ended_from_outside);
	assert_string_equal(
	    seen.reason, "Evicted: The node was low on resource: memory.");
}

TEST(an_agent_that_could_not_be_put_in_is_the_reason)
{
	look("",
	    "\"phase\":\"Failed\",\"initContainerStatuses\":[{\"name\":"
	    "\"agent\",\"state\":{\"terminated\":{\"exitCode\":1,\"reason\":"
	    "\"Error\",\"message\":\"no room\"}}}]");
	assert_string_equal(
	    seen.reason, "the agent's container: Error: no room");
	assert_int_equal(seen.exit_code, 1);
}

TEST(one_that_is_being_deleted_is_removed_whatever_it_does)
{
	look(",\"deletionTimestamp\":\"2026-11-20T17:29:44Z\"",
	    "\"phase\":\"Running\"," BOX "true,\"state\":{\"running\":{}}}]");
	assert_int_equal(seen.phase, POD_REMOVING);
}

TEST(what_has_no_good_name_and_uid_is_no_pod)
{
	static const char slash[] =
	    "{\"metadata\":{\"name\":\"a/b\",\"uid\":\"" UID "\"}}";
	static const char *const bad[] = {"{}", "[]", slash,
	    "{\"metadata\":{\"name\":\"a\",\"uid\":\"x y\"}}",
	    "{\"metadata\":{\"name\":\"a\",\"uid\":7}}",
	    "{\"metadata\":{\"name\":\"a\",\"uid\":\"\"}}"};
	struct err e;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		AUTO(auto_json) json_t *o = NULL;

		assert_int_equal(
		    js_parse(bad[i], strlen(bad[i]), 65536, 16, &o, &e), 0);
		assert_int_equal(
		    pod_view_state(o, "sandbox", &seen, &e), ERR_BACKEND);
	}
}

/* ---- boxes */

static struct conf *conf;
static json_t *made; /* as pod_body makes it, with a uid */

static int
make(void **unused)
{
	static const char *const command[] = {"/agent", NULL};
	struct backend_wishes wishes = {
	    .command = command, .carrier = "bridge"};
	struct backend_spec spec = {.name = "Box.1",
	    .identity = {.uuid = {{0xab}},
		.tenant = "default",
		.fingerprint = "0123456789abcdef"},
	    .template = {.image = "img:1",
		.runtime = "",
		.memory_bytes = 64 << 20,
		.nano_cpus = 500000000},
	    .claim = {.identifier = "a", .generation = 3},
	    .wishes = &wishes};
	struct pod_settings settings;
	struct policy policy;
	AUTO(auto_free) char *s = NULL;
	struct err e;

	(void)unused;
	conf = conf_new();
	assert_int_equal(
	    conf_set(conf, "KUBERNETES_AGENT_IMAGE", "server:1", &e), 0);
	assert_int_equal(policy_init(&policy, conf, &e), 0);
	assert_int_equal(pod_settings_init(&settings, conf, &e), 0);
	s = pod_body(&(struct pod_body){.policy = &policy,
	    .settings = &settings,
	    .ns = "boxes",
	    .instance = "inst",
	    .id = "5eed",
	    .spec = &spec,
	    .created_ms = 1700000000123});
	assert_int_equal(js_parse(s, strlen(s), 65536, 16, &made, &e), 0);
	json_object_set_new(
	    json_object_get(made, "metadata"), "uid", json_string(UID));
	pod_settings_clear(&settings);
	policy_clear(&policy);
	return 0;
}

static int
unmake(void **unused)
{
	(void)unused;
	json_decref(made);
	conf_free(conf);
	return 0;
}

static struct backend_container box;
static struct backend_report report;

static void
look_at_box(void)
{
	struct err e;

	assert_int_equal(pod_view_container(made, &ours, &box, &report, &e), 0);
}

TEST_WITH(make, unmake, what_was_made_is_known_again)
{
	static const struct uuid uuid = {{0xab}};

	look_at_box();
	assert_true(box.is_ours);
	assert_false(box.is_trial);
	assert_true(box.created);
	assert_string_equal(box.name, "Box.1");
	assert_string_equal(box.handle.life, UID "/0");
	assert_true(uuid_is_equal(&box.identity.uuid, &uuid));
	assert_string_equal(box.identity.tenant, "default");
	assert_string_equal(box.identity.fingerprint, "0123456789abcdef");
	assert_int_equal(box.created_ms, 1700000000123);
	assert_int_equal(box.nano_cpus, 500000000);
	assert_int_equal(box.memory_bytes, 64 << 20);
	assert_string_equal(box.carrier, "bridge");
	assert_ptr_equal(box.report, &report);
	assert_string_equal(report.identifier, "a");
	assert_string_equal(report.image, "img:1");
	assert_int_equal(report.generation, 3);
	assert_int_equal(report.finished_ms, 0);
	assert_string_equal(report.ended, "");
}

static void
change(const char *of, const char *word, const char *value)
{
	json_t *o = json_object_get(json_object_get(made, "metadata"), of);

	json_object_set_new(o, word, json_string(value));
}

static void
check_is_not_ours(void)
{
	look_at_box();
	assert_false(box.is_ours);
	assert_false(box.is_trial);
	assert_string_equal(box.name, "");
	assert_string_equal(box.identity.tenant, "");
	assert_null(box.report);
}

TEST_WITH(make, unmake, another_instances_pod_is_not_ours)
{
	change("labels", "mcp-sandboxd/instance-id", "other");
	check_is_not_ours();
}

TEST_WITH(make, unmake, a_pod_of_another_box_is_not_ours)
{
	change("annotations", "mcp-sandboxd/name", "Box.2");
	check_is_not_ours();
}

TEST_WITH(make, unmake, a_tenant_that_is_not_the_labels_is_not_believed)
{
	change("annotations", "mcp-sandboxd/tenant", "other");
	check_is_not_ours();
}

/* Who may make Pods in a tenant's namespace can write any label. */
TEST_WITH(make, unmake, in_a_tenants_namespace_no_other_tenant_is_believed)
{
	struct pod_ours its = ours;
	struct err e;

	its.tenant = "default";
	assert_int_equal(pod_view_container(made, &its, &box, &report, &e), 0);
	assert_true(box.is_ours);
	assert_string_equal(box.handle.tenant, "default");
	its.tenant = "acme";
	assert_int_equal(pod_view_container(made, &its, &box, &report, &e), 0);
	assert_false(box.is_ours);
	assert_string_equal(box.identity.tenant, "");
}

TEST_WITH(make, unmake, a_box_without_a_uuid_is_not_ours)
{
	change("labels", "mcp-sandboxd/sandbox", "7");
	check_is_not_ours();
}

TEST_WITH(make, unmake, a_role_that_is_not_known_is_not_ours)
{
	change("labels", "mcp-sandboxd/role", "probe");
	check_is_not_ours();
}

TEST_WITH(make, unmake, a_trial_is_known_as_one)
{
	change("labels", "mcp-sandboxd/role", "carrier-trial");
	look_at_box();
	assert_true(box.is_trial);
	assert_false(box.is_ours);
}

TEST_WITH(make, unmake, an_eviction_is_in_the_report)
{
	char why[BACKEND_WHY_MAX];

	json_object_set_new(made, "status",
	    json_pack("{s:s, s:s, s:s}", "phase", "Failed", "reason", "Evicted",
		"message", "no room"));
	look_at_box();
	assert_false(box.running);
	assert_string_equal(report.ended, "Evicted: no room");
	backend_why_ended(&box, why, sizeof(why));
	assert_string_equal(why, "Evicted: no room");
}

TEST_MAIN(NULL, NULL)
