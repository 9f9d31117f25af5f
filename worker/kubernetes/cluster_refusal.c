#include "worker/kubernetes/cluster_refusal.h"

#include <stdio.h>

#include "common/js.h"
#include "common/text.h"

#define PATH_SHOWN_MAX 120
#define RETRY_MAX_S 3600

static void
take_text(char *to, size_t size, const json_t *from, const char *key)
{
	const char *text = js_text(from, key);

	text_clean(to, size, text, strlen(text));
}

void
cluster_refusal_read(const json_t *json, const char *text, size_t n,
    struct cluster_refusal_said *out)
{
	const json_t *details = json_object_get(json, "details");
	json_int_t wait =
	    json_integer_value(json_object_get(details, "retryAfterSeconds"));

	memset(out, 0, sizeof(*out));
	out->is_status = strcmp(js_text(json, "kind"), "Status") == 0;
	if (!out->is_status) {
		text_clean(out->message, sizeof(out->message), text, n);
		return;
	}
	take_text(out->reason, sizeof(out->reason), json, "reason");
	take_text(out->message, sizeof(out->message), json, "message");
	take_text(out->kind, sizeof(out->kind), details, "kind");
	out->has_name = js_text(details, "name")[0] != '\0';
	if (wait > 0)
		out->retry_s =
		    wait < RETRY_MAX_S ? (uint32_t)wait : RETRY_MAX_S;
}

/* ---- what each is */

/* "POST /api/v1/namespaces/sbx/pods", without the query. */
static const char *
shown(const struct cluster_refusal_asked *asked, char out[PATH_SHOWN_MAX])
{
	(void)snprintf(out, PATH_SHOWN_MAX, "%s %.*s", asked->method,
	    (int)strcspn(asked->path, "?"), asked->path);
	return out;
}

static int
judge_credentials(const struct cluster_refusal_asked *asked, struct err *e)
{
	return err_set(e, ERR_BACKEND,
	    "the API server at %.100s does not take our credentials (401): the "
	    "token or certificate is too old, or another cluster's; renew the "
	    "kubeconfig, or the service account's token",
	    asked->where);
}

/* RBAC's words; a missing right to create an exec has an end with none. */
static bool
is_missing_right(const char *message)
{
	static const char end[] = "is forbidden: ";
	size_t n = strlen(message);

	return (strstr(message, "forbidden: User \"") != NULL &&
		   strstr(message, "\" cannot ") != NULL) ||
	    (n >= strlen(end) - 1 &&
		strncmp(message + n - (strlen(end) - 1), end,
		    strlen(end) - 1) == 0);
}

/* A ResourceQuota's words, or a LimitRange's: "maximum cpu usage per Container
 * is 1, but limit is 2". */
static bool
is_about_quota(const char *message)
{
	return strstr(message, "exceeded quota: ") != NULL ||
	    strstr(message, "failed quota: ") != NULL ||
	    strstr(message, " usage per Container is ") != NULL ||
	    strstr(message, " usage per Pod is ") != NULL ||
	    strstr(message, " usage per PersistentVolumeClaim is ") != NULL ||
	    strstr(message, " max limit to request ratio per ") != NULL;
}

static int
judge_forbidden(const struct cluster_refusal_said *said,
    const struct cluster_refusal_asked *asked, struct err *e)
{
	char what[PATH_SHOWN_MAX];

	if (!said->is_status && said->message[0] == '\0')
		return err_set(e, ERR_BACKEND,
		    "the API server at %.100s refuses %s (403) without a word",
		    asked->where, shown(asked, what));
	if (!said->is_status || is_missing_right(said->message) ||
	    strcmp(asked->method, "GET") == 0)
		return err_set(e, ERR_BACKEND,
		    "a right is missing in the cluster for %s: %s; the Role in "
		    "deploy/kubernetes has all that are needed",
		    shown(asked, what), said->message);
	return err_set(e,
	    is_about_quota(said->message) ? ERR_QUOTA : ERR_POLICY,
	    "the cluster refuses it: %s", said->message);
}

static int
judge_not_found(const struct cluster_refusal_said *said,
    const struct cluster_refusal_asked *asked, struct err *e)
{
	char what[PATH_SHOWN_MAX];

	if (said->is_status && strcmp(said->kind, "namespaces") == 0)
		return err_set(e, ERR_BACKEND,
		    "%s: make the namespace, or name another by "
		    "KUBERNETES_SANDBOX_NAMESPACE",
		    said->message);
	if (said->is_status && said->has_name)
		return err_set(
		    e, ERR_NOTFOUND, "the cluster says: %s", said->message);
	return err_set(e, ERR_BACKEND,
	    "the API server at %.100s does not know %s (404): the cluster is "
	    "too old for it, or the server that the kubeconfig names is no "
	    "Kubernetes API server",
	    asked->where, shown(asked, what));
}

/* A write may have been done all the same, but where the server says that it
 * began with none. */
static bool
may_be_done(const struct cluster_refusal_said *said,
    const struct cluster_refusal_asked *asked)
{
	return asked->status >= 500 && !asked->upgrades &&
	    strcmp(asked->method, "GET") != 0 &&
	    strcmp(said->reason, "ServiceUnavailable") != 0 &&
	    strcmp(said->reason, "ServerTimeout") != 0;
}

/* By an admission webhook or policy, which choose their own status. */
static bool
is_denied(const struct cluster_refusal_said *said)
{
	return strstr(said->message, "denied the request") != NULL ||
	    strstr(said->message, "denied request") != NULL;
}

static int
judge_other(const struct cluster_refusal_said *said,
    const struct cluster_refusal_asked *asked, struct err *e)
{
	int code = ERR_BACKEND;
	char what[PATH_SHOWN_MAX];

	if (asked->status == 409)
		code = ERR_CONFLICT;
	else if (may_be_done(said, asked))
		code = ERR_LOST;
	else if (asked->status >= 400 && asked->status < 500 && is_denied(said))
		return err_set(
		    e, ERR_POLICY, "the cluster refuses it: %s", said->message);
	return err_set(e, code,
	    "the API server at %.100s answers %s with %ld: %s", asked->where,
	    shown(asked, what), asked->status,
	    said->message[0] != '\0' ? said->message : "no words");
}

int
cluster_refusal_judge(const struct cluster_refusal_said *said,
    const struct cluster_refusal_asked *asked, struct err *e)
{
	switch (asked->status) {
	case 401:
		return judge_credentials(asked, e);
	case 403:
		return judge_forbidden(said, asked, e);
	case 404:
		return judge_not_found(said, asked, e);
	default:
		return judge_other(said, asked, e);
	}
}
