#include "worker/kubernetes/pod_settings.h"
#include "tests/unit/test.h"

static struct conf *conf;
static struct pod_settings settings;

static void
set(const char *key, const char *value)
{
	struct err e;

	assert_int_equal(conf_set(conf, key, value, &e), 0);
}

static int
setup(void **state)
{
	(void)state;
	conf = conf_new();
	set("KUBERNETES_AGENT_IMAGE", "registry.example/server:1");
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	pod_settings_clear(&settings);
	conf_free(conf);
	return 0;
}

static void
take(void)
{
	struct err e;

	pod_settings_clear(&settings);
	assert_int_equal(pod_settings_init(&settings, conf, &e), 0);
}

static void
refuse(const char *key, const char *value)
{
	struct err e = {.code = 0};

	pod_settings_clear(&settings);
	set(key, value);
	assert_int_equal(pod_settings_init(&settings, conf, &e), ERR_INVAL);
	assert_non_null(strstr(e.msg, key));
}

TEST(the_image_alone_is_needed)
{
	take();
	assert_string_equal(settings.ns, "");
	assert_string_equal(settings.container, "sandbox");
	assert_string_equal(settings.prefix, "mcp-sandboxd");
	assert_string_equal(settings.agent_image, "registry.example/server:1");
	assert_string_equal(settings.pull_policy, "IfNotPresent");
	assert_false(settings.is_restricted);
	assert_int_equal(settings.host_users, POD_HOST_USERS_AUTO);
	assert_int_equal(settings.pending_ms, 120000);
	assert_null(settings.node_selector[0]);
	assert_null(settings.pull_secrets[0]);
	assert_string_equal(settings.volume_class, "");
}

TEST(lists_are_taken_whole)
{
	set("KUBERNETES_NODE_SELECTOR",
	    "kubernetes.io/arch=amd64,pool=sandboxes,empty=");
	set("KUBERNETES_PULL_SECRETS", "one,two.example");
	set("KUBERNETES_HOST_USERS", "false");
	set("KUBERNETES_SECURITY", "restricted");
	take();
	assert_string_equal(
	    settings.node_selector[0], "kubernetes.io/arch=amd64");
	assert_string_equal(settings.node_selector[2], "empty=");
	assert_string_equal(settings.pull_secrets[1], "two.example");
	assert_int_equal(settings.host_users, POD_HOST_USERS_FALSE);
	assert_true(settings.is_restricted);
}

TEST(an_image_that_is_none_is_refused)
{
	refuse("KUBERNETES_AGENT_IMAGE", "");
}

TEST(an_image_with_a_blank_is_refused)
{
	refuse("KUBERNETES_AGENT_IMAGE", "server 1");
}

TEST(a_namespace_is_a_label)
{
	refuse("KUBERNETES_SANDBOX_NAMESPACE", "Sandboxes");
	refuse("KUBERNETES_SANDBOX_NAMESPACE", "{tenant}");
}

TEST(a_container_is_a_label)
{
	refuse("KUBERNETES_SANDBOX_CONTAINER_NAME", "sand_box");
}

TEST(a_prefix_is_a_dns_name)
{
	refuse("KUBERNETES_SANDBOX_LABEL_PREFIX", "example.org/sandbox");
}

TEST(a_dot_at_the_end_is_no_dns_name)
{
	refuse("KUBERNETES_SANDBOX_LABEL_PREFIX", "example.org.");
}

TEST(a_node_label_has_a_value)
{
	refuse("KUBERNETES_NODE_SELECTOR", "pool");
}

TEST(a_node_label_has_a_good_name)
{
	refuse("KUBERNETES_NODE_SELECTOR", "a b=c");
}

TEST(a_pull_secret_is_a_name)
{
	refuse("KUBERNETES_PULL_SECRETS", "a/b");
}

TEST(a_volume_class_is_a_name)
{
	refuse("KUBERNETES_VOLUME_CLASS", "a b");
}

TEST(a_profile_of_our_own_is_refused)
{
	refuse("SANDBOX_SECCOMP", "/etc/profile.json");
}

TEST(users_are_another_setting)
{
	refuse("SANDBOX_USERNS", "auto");
}

TEST(writes_have_no_limit_in_a_pod)
{
	refuse("SANDBOX_WRITE_MB_S", "5");
}

TEST(a_runtime_is_a_runtime_class)
{
	refuse("SANDBOX_RUNTIME", "Kata");
}

TEST_MAIN(setup, teardown)
