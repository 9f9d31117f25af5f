/* accept.h - what the client sent and what it takes, by its header lines. */
#ifndef MCP_ACCEPT_H
#define MCP_ACCEPT_H

#include "common/base.h"

enum accept_form {
	ACCEPT_JSON = 1,
	ACCEPT_STREAM = 2
};

/*
 * accept_forms - the forms, OR-ed, that an Accept line allows; 0: none
 *
 * Lenient: one of the two types is enough, wildcards count, no line means
 * JSON.  A lone wildcard never means an event stream, since whoever sends it
 * (curl) would not know what to do with one.
 */
unsigned int accept_forms(const char *accept);
/* accept_is_json - is this Content-Type application/json? NULL is not */
bool accept_is_json(const char *content_type);

#endif
