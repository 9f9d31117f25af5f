/* schema_path.h - where in the arguments a value stands, and how to say it */
#ifndef MCP_SCHEMA_PATH_H
#define MCP_SCHEMA_PATH_H

#include <jansson.h>

#include "common/base.h"
#include "common/err.h"

struct schema_path { /* a chain on the stack; NULL is the root */
	const struct schema_path *up;
	const char *key; /* NULL: an index */
	size_t index;
};

#define SCHEMA_PATH_TEXT 160
/* "commands[0].timeout_ms"; keys are the client's: cut to a sane length */
void schema_path_format(
    const struct schema_path *path, char out[SCHEMA_PATH_TEXT]);
/* schema_path_fail - "argument PATH: TEXT" (or "arguments: TEXT") in *e */
int schema_path_fail(const struct schema_path *path, struct err *e,
    const char *fmt, ...) PRINTF(3, 4);

#define SCHEMA_VALUE_TEXT 80
/* a short JSON form of a value that came from the client */
void schema_value_format(const json_t *v, char out[SCHEMA_VALUE_TEXT]);
/* "a string", "an integer", ... */
const char *schema_type_of(const json_t *v);

#endif
