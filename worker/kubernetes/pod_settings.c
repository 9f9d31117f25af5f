#include "worker/kubernetes/pod_settings.h"

#include <ctype.h>

#include "common/xmalloc.h"
#include "worker/kubernetes/pod_name.h"
#include "worker/kubernetes/pod_namespace.h"

#define LIST_MAX 32
#define IMAGE_MAX 255
#define VALUE_MAX 63 /* of a label */
#define MIB (UINT64_C(1) << 20)
#define HOUR_MS INT64_C(3600000)

/* ---- words of the API */

/* As label values, and the last part of label names: what ends are not. */
static bool
is_value(const char *s, size_t n)
{
	if (n == 0 || n > VALUE_MAX || !isalnum((unsigned char)s[0]) ||
	    !isalnum((unsigned char)s[n - 1]))
		return false;
	for (size_t i = 0; i < n; i++)
		if (!isalnum((unsigned char)s[i]) &&
		    strchr("-_.", s[i]) == NULL)
			return false;
	return true;
}

/* Labels of RFC 1123 with dots between them. */
static bool
is_subdomain(const char *s, size_t n)
{
	if (n == 0 || n > POD_PREFIX_MAX)
		return false;
	while (n > 0) {
		const char *dot = memchr(s, '.', n);
		size_t one = dot == NULL ? n : (size_t)(dot - s);
		char label[POD_NAME_MAX + 1];

		if (one > POD_NAME_MAX || one + 1 == n)
			return false;
		memcpy(label, s, one);
		label[one] = '\0';
		if (!pod_name_is_label(label))
			return false;
		n -= dot == NULL ? one : one + 1;
		s += one + 1;
	}
	return true;
}

static bool
is_label_name(const char *s, size_t n)
{
	const char *slash = memchr(s, '/', n);
	size_t prefix = slash == NULL ? 0 : (size_t)(slash - s);

	if (slash == NULL)
		return is_value(s, n);
	return is_subdomain(s, prefix) && is_value(slash + 1, n - prefix - 1);
}

/* ---- the settings */

static int
take_name(char **out, const struct conf *c, enum conf_key key, const char *word,
    struct err *e)
{
	const char *s = conf_str(c, key);

	*out = xstrdup(s);
	if (pod_name_is_label(s))
		return 0;
	return err_set(e, ERR_INVAL,
	    "%s: \"%.64s\" is no name of at most %d small letters, digits and "
	    "'-'",
	    word, s, POD_NAME_MAX);
}

static int
take_names(struct pod_settings *s, const struct conf *c, struct err *e)
{
	const char *prefix = conf_str(c, CONF_KUBERNETES_SANDBOX_LABEL_PREFIX);
	const char *class = conf_str(c, CONF_KUBERNETES_VOLUME_CLASS);
	int rc = 0;

	s->ns = xstrdup(conf_str(c, CONF_KUBERNETES_SANDBOX_NAMESPACE));
	if (s->ns[0] != '\0')
		rc = pod_namespace_check(s->ns, e);
	if (rc == 0)
		rc = take_name(&s->container, c,
		    CONF_KUBERNETES_SANDBOX_CONTAINER_NAME,
		    "KUBERNETES_SANDBOX_CONTAINER_NAME", e);
	s->prefix = xstrdup(prefix);
	s->volume_class = xstrdup(class);
	if (rc == 0 && !is_subdomain(prefix, strlen(prefix)))
		rc = err_set(e, ERR_INVAL,
		    "KUBERNETES_SANDBOX_LABEL_PREFIX: \"%.64s\" is no DNS name",
		    prefix);
	if (rc == 0 && class[0] != '\0' && !is_subdomain(class, strlen(class)))
		rc = err_set(e, ERR_INVAL,
		    "KUBERNETES_VOLUME_CLASS: \"%.64s\" is no name of a "
		    "storage class",
		    class);
	return rc;
}

static bool
is_image(const char *s)
{
	size_t n = strlen(s);

	if (n == 0 || n > IMAGE_MAX || !isalnum((unsigned char)s[0]))
		return false;
	for (size_t i = 0; i < n; i++)
		if (!isalnum((unsigned char)s[i]) &&
		    strchr("._-/:@", s[i]) == NULL)
			return false;
	return true;
}

static int
take_agent_image(struct pod_settings *s, const struct conf *c, struct err *e)
{
	const char *image = conf_str(c, CONF_KUBERNETES_AGENT_IMAGE);

	s->agent_image = xstrdup(image);
	if (is_image(image))
		return 0;
	if (image[0] == '\0')
		return err_set(e, ERR_INVAL,
		    "KUBERNETES_AGENT_IMAGE is empty: name this server's "
		    "image, "
		    "as the nodes pull it");
	return err_set(e, ERR_INVAL,
	    "KUBERNETES_AGENT_IMAGE: \"%.100s\" is no image name", image);
}

static bool
is_node_label(const char *s)
{
	const char *sign = strchr(s, '=');

	return sign != NULL && is_label_name(s, (size_t)(sign - s)) &&
	    (sign[1] == '\0' || is_value(sign + 1, strlen(sign + 1)));
}

static bool
is_secret_name(const char *s)
{
	return is_subdomain(s, strlen(s));
}

static int
take_list(char ***out, const struct conf *c, enum conf_key key,
    const char *word, bool (*is_good)(const char *), const char *want,
    struct err *e)
{
	char *const *given = conf_list(c, key);
	char **list = xcalloc(LIST_MAX + 1, sizeof(*list));
	size_t n = 0;

	*out = list;
	for (; given != NULL && *given != NULL; given++) {
		if (n == LIST_MAX || !is_good(*given))
			return err_set(e, ERR_INVAL,
			    "%s: \"%.100s\" is no %s, or there are more than "
			    "%d",
			    word, *given, want, LIST_MAX);
		list[n++] = xstrdup(*given);
	}
	return 0;
}

static enum pod_host_users
take_host_users(const struct conf *c)
{
	const char *word = conf_str(c, CONF_KUBERNETES_HOST_USERS);

	if (strcmp(word, "true") == 0)
		return POD_HOST_USERS_TRUE;
	return strcmp(word, "false") == 0 ? POD_HOST_USERS_FALSE :
					    POD_HOST_USERS_AUTO;
}

static enum pod_network_rule
take_network_rule(const struct conf *c)
{
	const char *word = conf_str(c, CONF_KUBERNETES_NETWORK_POLICY);

	if (strcmp(word, "make") == 0)
		return POD_NETWORK_MAKE;
	return strcmp(word, "check") == 0 ? POD_NETWORK_CHECK :
					    POD_NETWORK_LEAVE;
}

/* What holds for containers of an engine, and has no field in a Pod. */
static int
check_others(const struct conf *c, struct err *e)
{
	const char *runtime = conf_str(c, CONF_SANDBOX_RUNTIME);

	if (strcmp(conf_str(c, CONF_SANDBOX_SECCOMP), "default") != 0)
		return err_set(e, ERR_INVAL,
		    "SANDBOX_SECCOMP is set: a Pod has the profile of its "
		    "node's runtime, leave the setting away");
	if (conf_str(c, CONF_SANDBOX_USERNS)[0] != '\0')
		return err_set(e, ERR_INVAL,
		    "SANDBOX_USERNS is set: for Pods it is "
		    "KUBERNETES_HOST_USERS=false");
	if (conf_int(c, CONF_SANDBOX_WRITE_MB_S) != 0)
		return err_set(e, ERR_INVAL,
		    "SANDBOX_WRITE_MB_S is set: a Pod has no such limit, leave "
		    "the setting away");
	if (runtime[0] != '\0' && !is_subdomain(runtime, strlen(runtime)))
		return err_set(e, ERR_INVAL,
		    "SANDBOX_RUNTIME: \"%.64s\" is no name of a RuntimeClass",
		    runtime);
	return 0;
}

int
pod_settings_init(struct pod_settings *s, const struct conf *c, struct err *e)
{
	int rc;

	memset(s, 0, sizeof(*s));
	s->is_restricted =
	    strcmp(conf_str(c, CONF_KUBERNETES_SECURITY), "restricted") == 0;
	s->user = (uint32_t)conf_int(c, CONF_KUBERNETES_RUN_AS_USER);
	s->host_users = take_host_users(c);
	s->network_rule = take_network_rule(c);
	s->may_be_unenforced =
	    conf_bool(c, CONF_KUBERNETES_ALLOW_UNENFORCED_NETWORK);
	s->pull_policy = xstrdup(conf_str(c, CONF_KUBERNETES_PULL_POLICY));
	s->pending_ms =
	    (uint32_t)conf_int(c, CONF_KUBERNETES_PENDING_SECONDS) * 1000;
	s->volume_bytes =
	    (uint64_t)conf_int(c, CONF_KUBERNETES_VOLUME_MB) * MIB;
	s->volume_keep_ms =
	    conf_int(c, CONF_KUBERNETES_VOLUME_KEEP_HOURS) * HOUR_MS;
	rc = take_names(s, c, e);
	if (rc == 0)
		rc = take_agent_image(s, c, e);
	if (rc == 0)
		rc = take_list(&s->node_selector, c,
		    CONF_KUBERNETES_NODE_SELECTOR, "KUBERNETES_NODE_SELECTOR",
		    is_node_label, "label as NAME=VALUE", e);
	if (rc == 0)
		rc = take_list(&s->pull_secrets, c,
		    CONF_KUBERNETES_PULL_SECRETS, "KUBERNETES_PULL_SECRETS",
		    is_secret_name, "secret's name", e);
	return rc == 0 ? check_others(c, e) : rc;
}

static void
list_free(char **list)
{
	for (size_t i = 0; list != NULL && list[i] != NULL; i++)
		free(list[i]);
	free(list);
}

void
pod_settings_clear(struct pod_settings *s)
{
	list_free(s->node_selector);
	list_free(s->pull_secrets);
	free(s->ns);
	free(s->container);
	free(s->prefix);
	free(s->agent_image);
	free(s->pull_policy);
	free(s->volume_class);
	memset(s, 0, sizeof(*s));
}
