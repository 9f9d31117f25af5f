/*
 * claims.h - what a token says of its bearer, and whether it is for this server
 *
 * RFC 7519 and 9068: iss is OAUTH_ISSUER, aud is or holds OAUTH_AUDIENCE, exp
 * must be there and is to come, nbf and iat, where they are, have passed, all
 * within OAUTH_CLOCK_SKEW_SECONDS.  Scopes are in "scope", words with blanks
 * between, or in "scp", which may be a list; each that the settings name is a
 * role.
 */
#ifndef FRONT_CLAIMS_H
#define FRONT_CLAIMS_H

#include <jansson.h>

#include "common/conf.h"
#include "common/principal.h"

#define CLAIMS_SUBJECT_MAX 255

struct claims {
	char subject[CLAIMS_SUBJECT_MAX + 1];
	char tenant[PRINCIPAL_TENANT_MAX + 1]; /* "": none is named */
	unsigned int roles;                    /* 1 << enum principal_role */
	int64_t until_ms; /* of exp, with the skew; wall clock */
};

/* claims_read - NULL, or why not: a text that stays */
const char *claims_read(const struct conf *conf, const json_t *o,
    int64_t wall_ms, struct claims *out) MUSTCHECK;
/* claims_scope - the scope of a role; "": none is */
const char *claims_scope(const struct conf *conf, enum principal_role role);

#endif
