#include "worker/kubernetes/pod_namespace.h"

#include <stdio.h>

#include "common/xmalloc.h"

#define TENANT_LEN (sizeof(POD_NAMESPACE_TENANT) - 1)

/* The caller frees; as it is where there is no place for a tenant. */
static char *
filled(const char *setting, const char *tenant)
{
	const char *at = strstr(setting, POD_NAMESPACE_TENANT);

	if (at == NULL)
		return xstrdup(setting);
	return xasprintf(
	    "%.*s%s%s", (int)(at - setting), setting, tenant, at + TENANT_LEN);
}

bool
pod_namespace_is_per_tenant(const char *setting)
{
	return strstr(setting, POD_NAMESPACE_TENANT) != NULL;
}

/* A second place would be no letters of a name. */
int
pod_namespace_check(const char *setting, struct err *e)
{
	AUTO(auto_free) char *shortest = filled(setting, "a");

	if (pod_name_is_label(shortest) &&
	    strcmp(setting, POD_NAMESPACE_TENANT) != 0)
		return 0;
	return err_set(e, ERR_INVAL,
	    "KUBERNETES_SANDBOX_NAMESPACE: \"%.80s\" is no name of at most %d "
	    "small letters, digits and '-', with " POD_NAMESPACE_TENANT
	    " in it at most once and not alone",
	    setting, POD_NAME_MAX);
}

int
pod_namespace_of(const char *setting, const char *tenant,
    char out[POD_NAME_MAX + 1], struct err *e)
{
	AUTO(auto_free) char *name = filled(setting, tenant);

	if (!pod_name_is_label(name))
		return err_set(e, ERR_POLICY,
		    "tenant %.64s has no namespace: \"%.128s\" "
		    "(KUBERNETES_SANDBOX_NAMESPACE) is no name of at most %d "
		    "small letters, digits and '-'; a tenant of another name "
		    "can have one",
		    tenant, name, POD_NAME_MAX);
	memcpy(out, name, strlen(name) + 1);
	return 0;
}
