#include "supervisor/front/claims.h"

#include <stdio.h>

#include "common/js.h"
#include "common/words_gen.h"

#define SECONDS_MAX 1e11 /* some thousand years: fits in milliseconds */

/* Of a number that is there. */
static bool
take_seconds(const json_t *v, int64_t *ms)
{
	double s = json_number_value(v);

	if (!json_is_number(v) || !(s >= 0 && s <= SECONDS_MAX))
		return false;
	*ms = (int64_t)(s * 1000);
	return true;
}

static const char *
read_times(const json_t *o, int64_t now_ms, int64_t skew_ms, struct claims *out)
{
	const json_t *nbf = json_object_get(o, "nbf");
	const json_t *iat = json_object_get(o, "iat");
	int64_t ms;

	if (!take_seconds(json_object_get(o, "exp"), &ms))
		return "it has no expiry (exp)";
	out->until_ms = ms + skew_ms;
	if (out->until_ms <= now_ms)
		return "it has expired";
	if (nbf != NULL && (!take_seconds(nbf, &ms) || ms > now_ms + skew_ms))
		return "it is not valid yet (nbf)";
	if (iat != NULL && (!take_seconds(iat, &ms) || ms > now_ms + skew_ms))
		return "it was issued in the future (iat)";
	return NULL;
}

static bool
is_text(const json_t *v, const char *text)
{
	return json_is_string(v) && strcmp(json_string_value(v), text) == 0;
}

static bool
is_for(const json_t *aud, const char *audience)
{
	const json_t *one;
	size_t i;

	json_array_foreach (aud, i, one)
		if (is_text(one, audience))
			return true;
	return is_text(aud, audience);
}

/* ---- roles */

const char *
claims_scope(const struct conf *conf, enum principal_role role)
{
	static const enum conf_key keys[PRINCIPAL_ROLE_COUNT] = {
	    [PRINCIPAL_USER] = CONF_OAUTH_USER_SCOPE,
	    [PRINCIPAL_ADMIN] = CONF_OAUTH_ADMIN_SCOPE,
	    [PRINCIPAL_METRICS] = CONF_OAUTH_METRICS_SCOPE};

	return conf_str(conf, keys[role]);
}

static unsigned int
roles_of_word(const struct conf *conf, const char *word, size_t n)
{
	unsigned int roles = 0;

	for (unsigned int i = 0; i < PRINCIPAL_ROLE_COUNT; i++) {
		const char *scope = claims_scope(conf, (enum principal_role)i);

		if (n > 0 && strlen(scope) == n && memcmp(scope, word, n) == 0)
			roles |= 1u << i;
	}
	return roles;
}

static unsigned int
roles_of_text(const struct conf *conf, const json_t *v)
{
	const char *p = json_is_string(v) ? json_string_value(v) : "";
	unsigned int roles = 0;

	while (*p != '\0') {
		size_t n = strcspn(p, " ");

		roles |= roles_of_word(conf, p, n);
		p += n + (p[n] == ' ');
	}
	return roles;
}

static unsigned int
read_roles(const struct conf *conf, const json_t *o)
{
	const json_t *scp = json_object_get(o, "scp"), *one;
	unsigned int roles = roles_of_text(conf, json_object_get(o, "scope")) |
	    roles_of_text(conf, scp);
	size_t i;

	json_array_foreach (scp, i, one)
		roles |= roles_of_text(conf, one);
	return roles;
}

/* ---- all */

static const char *
read_names(const struct conf *conf, const json_t *o, struct claims *out)
{
	const char *sub = js_text(o, "sub");
	const json_t *tenant =
	    json_object_get(o, conf_str(conf, CONF_OAUTH_TENANT_CLAIM));

	if (sub[0] == '\0' || strlen(sub) > CLAIMS_SUBJECT_MAX)
		return "it names no subject (sub)";
	if (tenant != NULL &&
	    (!json_is_string(tenant) || json_string_length(tenant) == 0 ||
		json_string_length(tenant) > PRINCIPAL_TENANT_MAX))
		return "its tenant (OAUTH_TENANT_CLAIM) is no name of one";
	(void)snprintf(out->subject, sizeof(out->subject), "%s", sub);
	(void)snprintf(out->tenant, sizeof(out->tenant), "%s",
	    tenant == NULL ? "" : json_string_value(tenant));
	return NULL;
}

const char *
claims_read(const struct conf *conf, const json_t *o, int64_t wall_ms,
    struct claims *out)
{
	int64_t skew_ms = conf_int(conf, CONF_OAUTH_CLOCK_SKEW_SECONDS) * 1000;
	const char *why;

	memset(out, 0, sizeof(*out));
	if (strcmp(js_text(o, "iss"), conf_str(conf, CONF_OAUTH_ISSUER)) != 0)
		return "it is of another issuer (iss)";
	if (!is_for(
		json_object_get(o, "aud"), conf_str(conf, CONF_OAUTH_AUDIENCE)))
		return "it is for another server (aud)";
	why = read_times(o, wall_ms, skew_ms, out);
	if (why == NULL)
		why = read_names(conf, o, out);
	if (why == NULL)
		out->roles = read_roles(conf, o);
	return why;
}
