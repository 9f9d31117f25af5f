/*
 * schema.h - a JSON Schema made ready for checking arguments
 *
 * Knows: type (one or several), properties, required, additionalProperties,
 * items, minItems, maxItems, minimum, maximum, minLength and maxLength (in
 * characters), pattern (as a POSIX extended expression), enum, const, anyOf.
 * Other keywords are ignored.  Nothing is ever fetched; a default is only a
 * text for the client and is not filled in.
 */
#ifndef MCP_SCHEMA_H
#define MCP_SCHEMA_H

#include <jansson.h>
#include <regex.h>

#include "common/base.h"
#include "common/err.h"

#define SCHEMA_DEPTH_MAX 32 /* of subschemas */

struct schema;

/*
 * schema_new - take a schema that its author wrote
 *
 *	root	kept by reference; never changed
 * ERR_INVAL names the keyword that is not usable, ERR_LIMIT the depth.
 */
int schema_new(json_t *root, struct schema **out, struct err *e) MUSTCHECK;
void schema_free(struct schema *s);
json_t *schema_root(const struct schema *s);
/* schema_pattern - the compiled form of a "pattern" keyword's value */
const regex_t *schema_pattern(const struct schema *s, const json_t *pattern);

/*
 * schema_check - do these arguments fit?
 *
 * 0, or ERR_INVAL with a text for the model: which argument, by its path,
 * what is wanted, and what it got.  Where the schema wants an integer, a
 * number such as 30.0 is put in as the integer that it is; nothing else is
 * changed.  Text with a NUL character never fits.
 */
int schema_check(
    const struct schema *s, json_t *arguments, struct err *e) MUSTCHECK;

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
