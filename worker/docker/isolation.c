#include "worker/docker/isolation.h"

#include <stdio.h>

#include "common/js.h"
#include "common/runtimes.h"
#include "common/text.h"
#include "worker/docker/answer.h"

#define DEPTH_MAX 32
#define WORD_MAX 65
#define CAPS_MAX 41 /* of each list; Linux 6.18 has as many */
#define CAP_NAME_MAX 32
#define DIGITS_MAX 18

static json_int_t
number(const json_t *v)
{
	json_int_t n = json_integer_value(v); /* 0 of what is none */

	return n < 0 ? 0 : n;
}

/* Decimal digits alone; 0 of all else. */
static json_int_t
number_of_text(const char *s)
{
	size_t n = s == NULL ? 0 : strlen(s);

	return n == 0 || n > DIGITS_MAX || strspn(s, "0123456789") != n ?
	    0 :
	    (json_int_t)strtoll(s, NULL, 10);
}

static json_t *
word(const char *s)
{
	char clean[WORD_MAX];

	text_clean(clean, sizeof(clean), s, strlen(s));
	return json_string(clean);
}

/* ---- what is let through */

/* The value of an option "NAME=..." or "NAME:...", "" for "NAME" alone; NULL
 * when there is none. */
static const char *
option(const json_t *host, const char *name)
{
	const json_t *a = json_object_get(host, "SecurityOpt"), *item;
	size_t i, n = strlen(name);

	json_array_foreach (a, i, item) {
		const char *s = json_string_value(item);

		if (s == NULL || strncmp(s, name, n) != 0)
			continue;
		if (s[n] == '=' || s[n] == ':')
			return s + n + 1;
		if (s[n] == '\0')
			return "";
	}
	return NULL;
}

static const char *
seccomp_word(const json_t *host, const struct isolation_host *h)
{
	const struct policy *p = h->policy;
	const char *s = option(host, "seccomp");

	/* gVisor drops the profile, unless --oci-seccomp asks for it. */
	if (!h->has_seccomp ||
	    runtimes_kind(js_text(host, "Runtime"), "") == RUNTIMES_GVISOR)
		return "not enforced";
	if (json_is_true(json_object_get(host, "Privileged")) ||
	    (s != NULL && strcmp(s, "unconfined") == 0))
		return "unconfined";
	if (s == NULL)
		return "engine";
	if (strcmp(s, p->seccomp) == 0 ||
	    (p->seccomp_path != NULL && strcmp(s, p->seccomp_path) == 0))
		return "server";
	return "other";
}

static json_t *
capabilities(const json_t *host, const char *key)
{
	const json_t *a = json_object_get(host, key), *item;
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

/* ---- limits */

/* What the agent was told: images/agent/terms.h. */
static json_int_t
agents_limit(const json_t *config, const char *flag)
{
	const json_t *a = json_object_get(config, "Cmd"), *item;
	size_t i;

	json_array_foreach (a, i, item) {
		const char *s = json_string_value(item);

		if (s != NULL && strcmp(s, flag) == 0)
			return number_of_text(
			    json_string_value(json_array_get(a, i + 1)));
	}
	return 0;
}

/* NanoCpus, or the quota of a period in its place. */
static double
cpus(const json_t *host)
{
	json_int_t nano = number(json_object_get(host, "NanoCpus"));
	json_int_t quota = number(json_object_get(host, "CpuQuota"));
	json_int_t period = number(json_object_get(host, "CpuPeriod"));

	if (nano == 0 && quota > 0 && period > 0)
		return (double)quota / (double)period;
	return (double)nano / 1e9;
}

static json_t *
limits(const json_t *config, const json_t *host)
{
	json_int_t by_engine = number_of_text(json_string_value(
	    json_object_get(json_object_get(host, "StorageOpt"), "size")));
	json_int_t by_agent = agents_limit(config, "-b");

	return json_pack("{s:I, s:f, s:I, s:I, s:s, s:I}", "memory_bytes",
	    number(json_object_get(host, "Memory")), "cpus", cpus(host), "pids",
	    number(json_object_get(host, "PidsLimit")), "disk_bytes",
	    by_engine > 0 ? by_engine : by_agent, "disk_by",
	    by_engine > 0    ? "engine" :
		by_agent > 0 ? "agent" :
			       "nobody",
	    "disk_files", agents_limit(config, "-n"));
}

/* ---- all of it */

static const char *
network_of(const json_t *config, const json_t *host)
{
	return json_is_true(json_object_get(config, "NetworkDisabled")) ?
	    "none" :
	    js_text(host, "NetworkMode");
}

static bool
is_remapped(const json_t *host, const struct isolation_host *h)
{
	const char *mode = js_text(host, "UsernsMode");

	return strcmp(mode, "auto") == 0 ||
	    (h->has_own_users && strcmp(mode, "host") != 0);
}

static json_t *
isolation_of(const json_t *o, const struct isolation_host *h)
{
	const json_t *config = json_object_get(o, "Config");
	const json_t *host = json_object_get(o, "HostConfig");
	const char *held = option(host, "no-new-privileges");
	json_t *out = json_pack(
	    "{s:o, s:s, s:b, s:b, s:b, s:o, s:o, s:o, s:b, s:o}", "runtime",
	    word(js_text(host, "Runtime")), "seccomp", seccomp_word(host, h),
	    "users_remapped", is_remapped(host, h), "no_new_privileges",
	    held != NULL && (held[0] == '\0' || strcmp(held, "true") == 0),
	    "privileged", json_is_true(json_object_get(host, "Privileged")),
	    "capabilities_dropped", capabilities(host, "CapDrop"),
	    "capabilities_added", capabilities(host, "CapAdd"), "network",
	    word(network_of(config, host)), "read_only_root",
	    json_is_true(json_object_get(host, "ReadonlyRootfs")), "limits",
	    limits(config, host));

	if (h->advisories != NULL)
		json_object_set(out, "advisories", h->advisories);
	return out;
}

void
isolation_write(const char *s, size_t n, const struct isolation_host *h,
    char out[BACKEND_ISOLATION_MAX + 1])
{
	AUTO(auto_json) json_t *o = NULL;
	AUTO(auto_json) json_t *said = NULL;
	AUTO(auto_free) char *text = NULL;

	out[0] = '\0';
	if (js_parse(s, n, ANSWER_SMALL_MAX, DEPTH_MAX, &o, NULL) != 0 ||
	    !json_is_object(o))
		return;
	said = isolation_of(o, h);
	text = js_dump(said);
	if (strlen(text) <= BACKEND_ISOLATION_MAX)
		(void)snprintf(out, BACKEND_ISOLATION_MAX + 1, "%s", text);
}
