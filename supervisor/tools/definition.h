/*
 * definition.h - a tool's definition, as the operator's settings have it
 *
 * A file of schema/tools/ names settings in braces: "{DEFAULT_TTL_SECONDS}" in
 * a text stands for the value, and as a whole text, such as that of a default,
 * for the number or truth value itself.  So what tools/list says is what the
 * server does.
 */
#ifndef TOOLS_DEFINITION_H
#define TOOLS_DEFINITION_H

#include <jansson.h>

#include "common/conf.h"
#include "common/embed.h"
#include "common/err.h"

/* definition_make - of the tool of that name, from its file; *out is the
 * caller's.  ERR_INVAL: there is none, or it names a setting that
 * definition.c does not have */
int definition_make(const struct conf *conf, const struct embed_file *files,
    const char *name, json_t **out, struct err *e) MUSTCHECK;

#endif
