/*
 * ceiling.h - what a worker lets the sandboxes of a tenant have, whatever the
 * front says
 *
 * Root's word: from TENANTS_FILE ("ceiling.KEY=VALUE", "rule.KEY=VALUE" on a
 * tenant's line) and the configuration.  The numbers are quotas of
 * schema/quota.txt, those of sandboxes: a quota is what the front holds a
 * tenant to, a ceiling is what holds the front.
 */
#ifndef COMMON_CEILING_H
#define COMMON_CEILING_H

#include "common/base.h"
#include "common/err.h"
#include "common/quota.h"

#define CEILING_KEY_MAX 31
#define CEILING_RUNTIME_MAX 63

enum ceiling_root { /* may a sandbox write outside its own directories? */
	CEILING_ROOT_UNSET,
	CEILING_ROOT_WRITABLE,
	CEILING_ROOT_READ_ONLY
};

/* Zeroed says nothing. */
struct ceiling {
	int64_t most[QUOTA_COUNT];             /* 0: none */
	char runtime[CEILING_RUNTIME_MAX + 1]; /* "": any that is allowed */
	enum ceiling_root root;
};

/* ceiling_set - a number, by a quota's key; ERR_INVAL names the keys */
int ceiling_set(struct ceiling *c, const char *key, const char *value,
    struct err *e) MUSTCHECK;
/* ceiling_rule - runtime=NAME or read_only_root=true|false; ERR_INVAL */
int ceiling_rule(struct ceiling *c, const char *key, const char *value,
    struct err *e) MUSTCHECK;
/* ceiling_word - "ceiling.KEY=VALUE" or "rule.KEY=VALUE" */
int ceiling_word(struct ceiling *c, const char *word, struct err *e) MUSTCHECK;
/* ceiling_is_word - whether it begins like one */
bool ceiling_is_word(const char *word);
/* ceiling_fill - what *c does not say, as *from does */
void ceiling_fill(struct ceiling *c, const struct ceiling *from);

#endif
