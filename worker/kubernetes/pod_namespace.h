/*
 * pod_namespace.h - which namespace a tenant's sandboxes are in
 *
 * KUBERNETES_SANDBOX_NAMESPACE is a name, or has POD_NAMESPACE_TENANT in it
 * once.  A tenant's name is put there as it is: who makes the namespace knows
 * what it is called, and two tenants never meet.
 */
#ifndef WORKER_KUBERNETES_POD_NAMESPACE_H
#define WORKER_KUBERNETES_POD_NAMESPACE_H

#include "common/base.h"
#include "common/err.h"
#include "worker/kubernetes/pod_name.h"

#define POD_NAMESPACE_TENANT "{tenant}"

bool pod_namespace_is_per_tenant(const char *setting);
/* pod_namespace_check - whether any tenant's name would do: beside it there is
 * something else, so that none names a namespace of the cluster's own.
 * ERR_INVAL names the setting. */
int pod_namespace_check(const char *setting, struct err *e) MUSTCHECK;
/* pod_namespace_of - of a good setting.  ERR_POLICY: that tenant's would have
 * no good name, and which. */
int pod_namespace_of(const char *setting, const char *tenant,
    char out[POD_NAME_MAX + 1], struct err *e) MUSTCHECK;

#endif
