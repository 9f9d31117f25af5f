/*
 * quota.h - what a tenant may have: the table of schema/quota.txt
 *
 * Keys, units, bounds and defaults are data; whoever stores, sets, shows or
 * enforces a quota takes them from here.
 */
#ifndef COMMON_QUOTA_H
#define COMMON_QUOTA_H

#include "common/base.h"
#include "common/err.h"
#include "common/quota_keys.h"

struct quota_rule {
	const char *key;
	const char *unit;
	int64_t min; /* where it is 0, 0 is no limit */
	int64_t max;
	int64_t fallback; /* of a tenant, where nothing is set */
	const char *text;
};

const struct quota_rule *quota_rule(enum quota_key key);
/* quota_fallback - where nothing is set.  The tenant that a server has from the
 * first is the host's own: the configuration's limits are all it has. */
enum quota_for {
	QUOTA_FOR_TENANT,
	QUOTA_FOR_HOST
};
int64_t quota_fallback(enum quota_key key, enum quota_for whom);
/* quota_find - by its name; ERR_INVAL names those there are */
int quota_find(const char *name, enum quota_key *out, struct err *e) MUSTCHECK;
/* quota_check - is it a value of that one?  ERR_INVAL */
int quota_check(enum quota_key key, int64_t value, struct err *e) MUSTCHECK;
/* quota_parse - a value in digits; ERR_INVAL */
int quota_parse(enum quota_key key, const char *text, int64_t *out,
    struct err *e) MUSTCHECK;

#endif
