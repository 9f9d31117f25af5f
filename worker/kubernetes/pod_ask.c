#include "worker/kubernetes/kubernetes_int.h"

#include <stdarg.h>
#include <stdio.h>

struct cluster_call *
pod_ask(struct cluster *cluster, const char *ns, const struct cluster_ask *ask,
    const char *path, ...)
{
	struct cluster_ask full = *ask;
	char text[API_PATH_MAX];
	va_list ap;
	int n;

	n = snprintf(text, sizeof(text), "/api/v1/namespaces/%s/", ns);
	va_start(ap, path);
	(void)vsnprintf(text + n, sizeof(text) - (size_t)n, path, ap);
	va_end(ap);
	full.path = text;
	return cluster_start(cluster, &full);
}

/* What stands before the cluster may say 404, too. */
static bool
is_absent(const struct cluster_answer *a)
{
	return a->rc == ERR_NOTFOUND && strcmp(a->reason, "NotFound") == 0;
}

int
pod_check(const struct cluster_answer *a, const char *what, struct err *e)
{
	int rc = a->rc;

	if (rc == 0)
		return 0;
	if (rc != ERR_WRONG_STATE && rc != ERR_POLICY && rc != ERR_QUOTA &&
	    !is_absent(a))
		rc = ERR_BACKEND;
	return err_set(e, rc, "%s: %s", what, a->why->msg);
}
