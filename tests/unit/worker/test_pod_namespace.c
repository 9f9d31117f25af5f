#include <stdio.h>

#include "worker/kubernetes/pod_namespace.h"
#include "tests/unit/test.h"

static void
check(const char *setting, const char *tenant, const char *want)
{
	char got[POD_NAME_MAX + 1];
	struct err e;

	assert_int_equal(pod_namespace_check(setting, &e), 0);
	assert_int_equal(pod_namespace_of(setting, tenant, got, &e), 0);
	assert_string_equal(got, want);
}

static void
refuse(const char *setting, const char *tenant, const char *word)
{
	char got[POD_NAME_MAX + 1];
	struct err e;

	assert_int_equal(
	    pod_namespace_of(setting, tenant, got, &e), ERR_POLICY);
	assert_non_null(strstr(e.msg, word));
	assert_non_null(strstr(e.msg, tenant));
}

TEST(a_tenants_name_stands_in_its_place)
{
	assert_true(pod_namespace_is_per_tenant("sandboxes-{tenant}"));
	check("sandboxes-{tenant}", "acme", "sandboxes-acme");
	check("{tenant}-sandboxes", "acme", "acme-sandboxes");
	check("a{tenant}b", "1-2", "a1-2b");
}

TEST(without_a_place_there_is_one_namespace_for_all)
{
	assert_false(pod_namespace_is_per_tenant("sandboxes"));
	check("sandboxes", "acme", "sandboxes");
	check("sandboxes", "Acme_1", "sandboxes");
}

TEST(a_name_that_cannot_stand_there_is_refused_as_it_is)
{
	refuse("sandboxes-{tenant}", "Acme", "\"sandboxes-Acme\"");
	refuse("sandboxes-{tenant}", "a_b", "\"sandboxes-a_b\"");
	refuse("sandboxes-{tenant}", "a.b", "\"sandboxes-a.b\"");
	refuse("sandboxes-{tenant}", "a-", "\"sandboxes-a-\"");
	refuse("{tenant}-sandboxes", "-a", "\"-a-sandboxes\"");
}

TEST(a_namespace_has_at_most_63_letters)
{
	char setting[64], tenant[41], got[POD_NAME_MAX + 1];
	struct err e;

	memset(tenant, 't', 40);
	tenant[40] = '\0';
	(void)snprintf(setting, sizeof(setting), "%.*s{tenant}", 23,
	    "sandboxes-of-everybody-");
	check(setting, tenant,
	    "sandboxes-of-everybody-tttttttttttttttttttttttttttttttttttttttt");
	(void)snprintf(
	    setting, sizeof(setting), "sandboxes-of-everybody-x{tenant}");
	assert_int_equal(pod_namespace_check(setting, &e), 0);
	assert_int_equal(
	    pod_namespace_of(setting, tenant, got, &e), ERR_POLICY);
}

/* Alone, a tenant's name could be "kube-system". */
TEST(a_setting_has_one_place_and_more)
{
	static const char *const bad[] = {"{tenant}", "{tenant}-{tenant}",
	    "sandboxes-{tenant", "sandboxes-{Tenant}", "-{tenant}", "{tenant}-",
	    "A-{tenant}", ""};
	struct err e;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		assert_int_equal(pod_namespace_check(bad[i], &e), ERR_INVAL);
		assert_non_null(strstr(e.msg, "KUBERNETES_SANDBOX_NAMESPACE"));
	}
}

TEST_MAIN(NULL, NULL)
