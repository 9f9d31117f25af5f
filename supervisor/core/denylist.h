/*
 * denylist.h - commands that are not to be run (DENYLIST_PATTERNS)
 *
 * A text match protects nobody from a program that wants to get by it; it
 * keeps a model from what it would only do by mistake.
 */
#ifndef CORE_DENYLIST_H
#define CORE_DENYLIST_H

#include "common/base.h"
#include "common/conf.h"
#include "common/err.h"
#include "common/runspec.h"

struct denylist;

/* denylist_new - *out is NULL when it is switched off; ERR_INVAL names a bad
 * pattern */
int denylist_new(
    const struct conf *conf, struct denylist **out, struct err *e) MUSTCHECK;
void denylist_free(struct denylist *d); /* NULL too */
/* denylist_mark - if a pattern matches the command's words, joined by blanks,
 * it is marked as denied; else its deny text is set to "" */
void denylist_mark(const struct denylist *d, struct runspec_command *c);

#endif
