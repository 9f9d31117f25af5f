/*
 * denylist.h - commands that are not to be run (DENYLIST_PATTERNS)
 *
 * A text match protects nobody from a program that wants to get by it; it
 * keeps a model from what it would only do by mistake.
 *
 * It is looked for on the loop: a text is read once for all patterns together,
 * which takes some 12 ns per byte and state that is alive, and what a call may
 * have of it is bounded (decision 93).
 */
#ifndef CORE_DENYLIST_H
#define CORE_DENYLIST_H

#include "common/base.h"
#include "common/conf.h"
#include "common/err.h"
#include "common/runspec.h"

#define DENYLIST_BYTES_MAX 262144 /* words of a call's commands */

struct denylist;

/* denylist_new - *out is NULL when it is switched off; ERR_INVAL names a bad
 * pattern, and one with back references, which cannot be read once */
int denylist_new(
    const struct conf *conf, struct denylist **out, struct err *e) MUSTCHECK;
void denylist_free(struct denylist *d); /* NULL too */
/* denylist_mark - each command whose words, joined by blanks, a pattern matches
 * is marked as denied, the others' deny text is set to "".  d may be NULL:
 * none is.  ERR_INVAL above DENYLIST_BYTES_MAX, with none looked at */
int denylist_mark(
    const struct denylist *d, struct runspec *s, struct err *e) MUSTCHECK;

#endif
