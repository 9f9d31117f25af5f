#include "common/quota.h"

#include <stdio.h>

static const struct quota_rule rules[QUOTA_COUNT] = {
#include "common/quota_table.h"
};

const struct quota_rule *
quota_rule(enum quota_key key)
{
	return &rules[key];
}

int64_t
quota_fallback(enum quota_key key, enum quota_for whom)
{
	const struct quota_rule *r = &rules[key];

	if (whom == QUOTA_FOR_TENANT || key == QUOTA_WEIGHT ||
	    key == QUOTA_REQUEST_BURST || key == QUOTA_EVENTS ||
	    key == QUOTA_WEBHOOKS)
		return r->fallback;
	return r->min == 0 ? 0 : r->max;
}

static int
no_such_quota(const char *name, struct err *e)
{
	char known[ERR_TEXT_MAX - 100] = "";
	size_t at = 0;

	for (size_t i = 0; i < QUOTA_COUNT && at < sizeof(known); i++)
		at += (size_t)snprintf(known + at, sizeof(known) - at, "%s%s",
		    i == 0 ? "" : ", ", rules[i].key);
	return err_set(
	    e, ERR_INVAL, "no quota %.40s: want one of %s", name, known);
}

int
quota_find(const char *name, enum quota_key *out, struct err *e)
{
	for (size_t i = 0; i < QUOTA_COUNT; i++)
		if (strcmp(rules[i].key, name) == 0) {
			*out = (enum quota_key)i;
			return 0;
		}
	return no_such_quota(name, e);
}

int
quota_check(enum quota_key key, int64_t value, struct err *e)
{
	const struct quota_rule *r = &rules[key];

	if (value >= r->min && value <= r->max)
		return 0;
	return err_set(e, ERR_INVAL,
	    "quota %s: want a number from %lld to %lld (%s)%s", r->key,
	    (long long)r->min, (long long)r->max, r->unit,
	    r->min == 0 ? "; 0 is no limit" : "");
}

int
quota_parse(enum quota_key key, const char *text, int64_t *out, struct err *e)
{
	size_t n = strlen(text);

	/* 18 digits are no overflow. */
	if (n == 0 || n > 18 || strspn(text, "0123456789") != n)
		return quota_check(key, -1, e);
	*out = strtoll(text, NULL, 10);
	return quota_check(key, *out, e);
}
