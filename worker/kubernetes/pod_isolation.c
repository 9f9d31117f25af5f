#include "worker/kubernetes/pod_isolation.h"

#include <stdio.h>

#include "common/js.h"
#include "common/text.h"

#define WORD_MAX 65
#define CAPS_MAX 41
#define CAP_NAME_MAX 32
#define DIGITS_MAX 15

/* ---- quantities */

uint64_t
pod_quantity(const char *s)
{
	static const struct {
		const char *suffix;
		uint64_t milli;
	} units[] = {{"m", 1}, {"", 1000}, {"k", 1000000}, {"M", 1000000000},
	    {"G", 1000000000000}, {"Ki", UINT64_C(1000) << 10},
	    {"Mi", UINT64_C(1000) << 20}, {"Gi", UINT64_C(1000) << 30},
	    {"Ti", UINT64_C(1000) << 40}};
	size_t n = strspn(s, "0123456789");
	uint64_t v = n > 0 && n <= DIGITS_MAX ? strtoull(s, NULL, 10) : 0;

	for (size_t i = 0; i < ARRAY_LEN(units); i++)
		if (strcmp(s + n, units[i].suffix) == 0)
			return v > INT64_MAX / units[i].milli ?
			    0 :
			    v * units[i].milli;
	return 0;
}

static uint64_t
limit_of(const json_t *limits, const char *name)
{
	return pod_quantity(js_text(limits, name));
}

/* ---- the container */

static const json_t *
container_of(const json_t *spec, const char *name)
{
	const json_t *all = json_object_get(spec, "containers"), *one;
	size_t i;

	json_array_foreach (all, i, one)
		if (strcmp(js_text(one, "name"), name) == 0)
			return one;
	return NULL;
}

static json_t *
capabilities(const json_t *security, const char *key)
{
	const json_t *a = json_object_get(
			 json_object_get(security, "capabilities"), key),
		     *item;
	json_t *out = json_array();
	size_t i;

	json_array_foreach (a, i, item) {
		const char *s = json_string_value(item);
		size_t n = s == NULL ? 0 : strlen(s);

		if (n > 0 && n <= CAP_NAME_MAX &&
		    strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789") == n &&
		    json_array_size(out) < CAPS_MAX)
			json_array_append_new(out, json_string(s));
	}
	return out;
}

/* The container's own comes before the Pod's; with none of them it depends on
 * the node. */
static const char *
seccomp_word(const json_t *spec, const json_t *security)
{
	const json_t *profile = json_object_get(security, "seccompProfile");
	const char *type;

	if (profile == NULL)
		profile = json_object_get(
		    json_object_get(spec, "securityContext"), "seccompProfile");
	type = js_text(profile, "type");
	if (strcmp(type, "RuntimeDefault") == 0)
		return "engine";
	return strcmp(type, "Localhost") == 0 ? "other" : "unconfined";
}

/* What the agent was told: images/agent/terms.h. */
static uint64_t
agents_limit(const json_t *box, const char *flag)
{
	const json_t *a = json_object_get(box, "args"), *item;
	size_t i;

	json_array_foreach (a, i, item) {
		const char *s = json_string_value(item);
		const char *value = json_string_value(json_array_get(a, i + 1));

		if (s != NULL && value != NULL && strcmp(s, flag) == 0)
			return pod_quantity(value) / 1000;
	}
	return 0;
}

/* A Pod has no field for processes. */
static json_t *
limits(const json_t *box)
{
	const json_t *l =
	    json_object_get(json_object_get(box, "resources"), "limits");
	uint64_t by_agent = agents_limit(box, "-b");
	uint64_t by_node = limit_of(l, "ephemeral-storage") / 1000;

	return json_pack("{s:I, s:f, s:I, s:I, s:s, s:I}", "memory_bytes",
	    (json_int_t)(limit_of(l, "memory") / 1000), "cpus",
	    (double)limit_of(l, "cpu") / 1000, "pids", (json_int_t)0,
	    "disk_bytes", (json_int_t)(by_agent > 0 ? by_agent : by_node),
	    "disk_by",
	    by_agent > 0    ? "agent" :
		by_node > 0 ? "engine" :
			      "nobody",
	    "disk_files", (json_int_t)agents_limit(box, "-n"));
}

/* ---- all of it */

static json_t *
isolation_of(const json_t *spec, const json_t *box, const char *network)
{
	const json_t *security = json_object_get(box, "securityContext");
	const char *runtime = js_text(spec, "runtimeClassName");
	char word[WORD_MAX];

	text_clean(word, sizeof(word), runtime, strlen(runtime));
	return json_pack("{s:s, s:s, s:b, s:b, s:b, s:o, s:o, s:s, s:b, s:o}",
	    "runtime", word, "seccomp", seccomp_word(spec, security),
	    "users_remapped", json_is_false(json_object_get(spec, "hostUsers")),
	    "no_new_privileges",
	    json_is_false(
		json_object_get(security, "allowPrivilegeEscalation")),
	    "privileged", json_is_true(json_object_get(security, "privileged")),
	    "capabilities_dropped", capabilities(security, "drop"),
	    "capabilities_added", capabilities(security, "add"), "network",
	    network, "read_only_root",
	    json_is_true(json_object_get(security, "readOnlyRootFilesystem")),
	    "limits", limits(box));
}

void
pod_isolation_write(const json_t *pod, const char *container,
    const char *network, char out[BACKEND_ISOLATION_MAX + 1])
{
	const json_t *spec = json_object_get(pod, "spec");
	AUTO(auto_json)
	json_t *said =
	    isolation_of(spec, container_of(spec, container), network);
	AUTO(auto_free) char *text = js_dump(said);

	out[0] = '\0';
	if (strlen(text) <= BACKEND_ISOLATION_MAX)
		memcpy(out, text, strlen(text) + 1);
}
