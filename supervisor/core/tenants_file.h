/*
 * tenants_file.h - TENANTS_FILE: tenants and tokens to have at the start
 *
 *	# lines of words: common/tenant_lines.h
 *	tenant NAME [disabled] [quota.KEY=VALUE ...] [ceiling.KEY=VALUE ...]
 *	    [rule.KEY=VALUE ...]		(common/ceiling.h; in one line)
 *	token TENANT|- ID ROLE SHA256 [expires=SECONDS] [name=WORD]
 *
 * ID and SHA256 (64 hexadecimal digits, of the secret) are what "sandboxctl
 * token make" prints beside the token itself: the file holds no secret.
 * SECONDS are since 1970.  What it names is made so at each start; what it
 * does not name stays as it is, and a token that was revoked stays revoked.
 */
#ifndef CORE_TENANTS_FILE_H
#define CORE_TENANTS_FILE_H

#include "common/base.h"
#include "common/err.h"

struct acts;
struct tenants;

/* tenants_file_apply - ERR_INVAL names path and line; what stood before that
 * line holds.  What changes is told to acts, unless it is NULL.  text is
 * changed. */
int tenants_file_apply(struct tenants *t, struct acts *acts, const char *path,
    char *text, struct err *e) MUSTCHECK;
/* tenants_file_check - the same without tenants: what can be said of its lines
 * alone; wants_tokens: a server with them would.  text is changed. */
int tenants_file_check(
    const char *path, char *text, bool *wants_tokens, struct err *e) MUSTCHECK;

#endif
