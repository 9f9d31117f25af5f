/*
 * verified.h - tokens whose signature was found good, by the digest of their
 * text: no signature is computed twice
 *
 * An entry is good until its token expires or the issuer's keys change.  A full
 * table drops what came first.
 */
#ifndef FRONT_VERIFIED_H
#define FRONT_VERIFIED_H

#include "supervisor/front/claims.h"

#define VERIFIED_MAX 4096

struct verified;

struct verified *verified_new(void);
void verified_free(struct verified *v); /* NULL is fine */
void verified_clear(struct verified *v);
/* verified_find - or NULL; valid until the next call of another of these */
const struct claims *verified_find(
    const struct verified *v, const char *token, int64_t wall_ms);
/* verified_put - what verified_find did not find; the copy */
const struct claims *verified_put(
    struct verified *v, const char *token, const struct claims *c);

#endif
