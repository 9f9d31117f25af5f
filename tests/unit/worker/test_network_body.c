#include "common/js.h"
#include "common/xmalloc.h"
#include "worker/kubernetes/network_body.h"
#include "tests/unit/test.h"

static char *none[] = {NULL};
static char *selector[] = {(char[]){"disk=ssd"}, NULL};
static struct pod_settings settings = {.prefix = (char[]){"p"},
    .agent_image = (char[]){"server:1"},
    .pull_policy = (char[]){"Always"},
    .node_selector = selector,
    .pull_secrets = none};

static json_t *
parsed(char *text)
{
	struct err e;
	json_t *o;

	assert_int_equal(js_parse(text, strlen(text), 65536, 20, &o, &e), 0);
	free(text);
	return o;
}

/* ---- the policy */

static int
check(const char *spec, struct err *e)
{
	AUTO(auto_json)
	json_t *policy = parsed(xasprintf("{\"spec\":%s}", spec));

	return network_policy_check(policy, "p", e);
}

#define OURS "\"podSelector\":{\"matchLabels\":{\"p/network\":\"none\"}}"
#define BOTH "\"policyTypes\":[\"Ingress\",\"Egress\"]"

TEST(the_policy_that_is_made_is_good)
{
	AUTO(auto_json) json_t *policy = parsed(network_policy_body("p"));
	struct err e;

	assert_int_equal(network_policy_check(policy, "p", &e), 0);
	assert_int_equal(network_policy_check(policy, "q", &e), ERR_POLICY);
}

TEST(a_policy_for_all_pods_is_good)
{
	struct err e;

	assert_int_equal(check("{\"podSelector\":{}," BOTH "}", &e), 0);
	assert_int_equal(check("{" OURS "," BOTH ",\"egress\":[]}", &e), 0);
}

TEST(a_policy_that_selects_fewer_is_told)
{
	static const char *const specs[] = {
	    "{\"podSelector\":{\"matchLabels\":{\"p/network\":\"none\","
	    "\"a\":\"b\"}}," BOTH "}",
	    "{\"podSelector\":{\"matchLabels\":{\"p/network\":\"some\"}}," BOTH
	    "}",
	    "{\"podSelector\":{\"matchExpressions\":[{\"key\":\"a\"}]}," BOTH
	    "}",
	    "[]", "null"};
	struct err e;

	for (size_t i = 0; i < ARRAY_LEN(specs); i++) {
		assert_int_equal(check(specs[i], &e), ERR_POLICY);
		assert_non_null(
		    strstr(e.msg, "does not select the label p/network=none"));
	}
}

TEST(a_policy_that_lets_something_through_is_told)
{
	struct err e;

	assert_int_equal(
	    check("{" OURS "," BOTH ",\"egress\":[{}]}", &e), ERR_POLICY);
	assert_non_null(strstr(e.msg, "(egress)"));
	assert_int_equal(
	    check("{" OURS ",\"policyTypes\":[\"Egress\"]}", &e), ERR_POLICY);
	assert_non_null(strstr(e.msg, "(ingress)"));
}

/* ---- Pods */

static json_t *
make(enum network_part part, const char *address)
{
	return parsed(
	    network_pod_body(&(struct network_pod){.settings = &settings,
		.id = "i1",
		.name = "x-1",
		.part = part,
		.address = address,
		.owner_name = address != NULL ? "x-0" : NULL,
		.owner_uid = address != NULL ? "u-0" : NULL}));
}

static const char *
argument(const json_t *pod, size_t i)
{
	const json_t *box = json_array_get(
	    json_object_get(json_object_get(pod, "spec"), "containers"), 0);

	return json_string_value(
	    json_array_get(json_object_get(box, "command"), i));
}

static const char *
label(const json_t *pod, const char *name)
{
	return js_text(
	    json_object_get(json_object_get(pod, "metadata"), "labels"), name);
}

TEST(the_listener_is_under_no_policy_and_belongs_to_nobody)
{
	AUTO(auto_json) json_t *pod = make(NETWORK_LISTENER, NULL);

	assert_string_equal(argument(pod, 1), "listen");
	assert_string_equal(argument(pod, 2), "4280");
	assert_string_equal(label(pod, "p/network"), "");
	assert_string_equal(label(pod, "p/network-trial"), "i1");
	assert_null(json_object_get(
	    json_object_get(pod, "metadata"), "ownerReferences"));
}

TEST(the_barred_one_is_under_the_policy_and_goes_with_the_listener)
{
	AUTO(auto_json) json_t *pod = make(NETWORK_BARRED, "fd00::1");
	const json_t *owner =
	    json_array_get(json_object_get(json_object_get(pod, "metadata"),
			       "ownerReferences"),
		0);

	assert_string_equal(argument(pod, 1), "barred");
	assert_string_equal(argument(pod, 2), "[fd00::1]:4280");
	assert_string_equal(label(pod, "p/network"), "none");
	assert_string_equal(js_text(owner, "uid"), "u-0");
	assert_string_equal(js_text(owner, "name"), "x-0");
}

TEST(the_free_one_reaches_the_same)
{
	AUTO(auto_json) json_t *pod = make(NETWORK_FREE, "10.0.0.1");

	assert_string_equal(argument(pod, 1), "reach");
	assert_string_equal(argument(pod, 2), "10.0.0.1:4280");
	assert_string_equal(label(pod, "p/network"), "");
}

TEST(they_are_placed_as_sandboxes_are)
{
	AUTO(auto_json) json_t *pod = make(NETWORK_LISTENER, NULL);
	const json_t *spec = json_object_get(pod, "spec");

	assert_string_equal(
	    js_text(json_object_get(spec, "nodeSelector"), "disk"), "ssd");
	assert_true(json_is_false(
	    json_object_get(spec, "automountServiceAccountToken")));
}

TEST(an_address_is_one)
{
	static const char *const bad[] = {"{}", "{\"status\":{}}",
	    "{\"status\":{\"podIP\":\"\"}}", "{\"status\":{\"podIP\":\"x\"}}",
	    "{\"status\":{\"podIP\":\"10.0.0.1:80\"}}"};
	char out[64];
	json_t *pod = parsed(xstrdup("{\"status\":{\"podIP\":\"10.1.2.3\"}}"));

	assert_true(network_pod_address(pod, out, sizeof(out)));
	assert_string_equal(out, "10.1.2.3");
	assert_false(network_pod_address(pod, out, 8));
	json_decref(pod);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		pod = parsed(xstrdup(bad[i]));
		assert_false(network_pod_address(pod, out, sizeof(out)));
		json_decref(pod);
	}
}

TEST_MAIN(NULL, NULL)
