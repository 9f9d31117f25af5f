/*
 * schema_tidy.h - what clients put around arguments, taken away
 */
#ifndef MCP_SCHEMA_TIDY_H
#define MCP_SCHEMA_TIDY_H

#include <jansson.h>

#include "supervisor/mcp/schema.h"

/*
 * schema_tidy - bring arguments into the form that the schema speaks of
 *
 * Everywhere that the schema names properties, down to SCHEMA_DEPTH_MAX:
 * - null for a property that is optional and cannot be null is taken out:
 *   callers with strict schemas send every property, null for the absent;
 * - so is "" for one that is optional and of type "string", and 0 for one that
 *   is optional and whose minimum is above it: other callers fill in these;
 * - a key that the schema does not name, and that models are known to
 *   decorate calls with (description, reason, explanation, thought), is
 *   taken out.
 * All else stays, for schema_check to judge.  removed, an array, gets what was
 * taken out, so that who has it says where it is freed; NULL: here.
 */
void schema_tidy(const struct schema *s, json_t *arguments, json_t *removed);

#endif
