/*
 * schema_check.c - arguments held against a schema
 *
 * Goes down value and schema together, with the path for the message kept on
 * the stack (schema_path.h).  The first fault ends it: a model mends one at a
 * time, and anyOf needs only yes or no of each branch.
 */
#include "supervisor/mcp/schema.h"

#include <math.h>
#include <stdio.h>

#include "supervisor/mcp/schema_path.h"

#define EXACT_MAX 9007199254740992.0 /* doubles are exact integers below */

struct schema_check {
	const struct schema *schema;
	struct err *e;
};

static int check_value(const struct schema_check *c, const json_t *node,
    json_t *value, const struct schema_path *path);

/* ---- type */

static bool
has_type(const json_t *value, const char *name)
{
	switch (json_typeof(value)) {
	case JSON_OBJECT:
		return strcmp(name, "object") == 0;
	case JSON_ARRAY:
		return strcmp(name, "array") == 0;
	case JSON_STRING:
		return strcmp(name, "string") == 0;
	case JSON_INTEGER:
		return strcmp(name, "integer") == 0 ||
		    strcmp(name, "number") == 0;
	case JSON_REAL:
		return strcmp(name, "number") == 0;
	case JSON_TRUE:
	case JSON_FALSE:
		return strcmp(name, "boolean") == 0;
	case JSON_NULL:
		return strcmp(name, "null") == 0;
	}
	return false;
}

static bool
fits_type(const json_t *type, const json_t *value)
{
	const json_t *name;
	size_t i;

	if (type == NULL)
		return true;
	if (json_is_string(type))
		return has_type(value, json_string_value(type));
	json_array_foreach (type, i, name)
		if (has_type(value, json_string_value(name)))
			return true;
	return false;
}

static const char *
article(const char *type)
{
	if (strcmp(type, "null") == 0)
		return "";
	return strchr("aio", type[0]) != NULL ? "an " : "a ";
}

/* Append "a string, null or a boolean". */
static void
type_format(const json_t *type, char *out, size_t size)
{
	size_t n = json_is_array(type) ? json_array_size(type) : 1;

	for (size_t i = 0; i < n; i++) {
		const json_t *one =
		    json_is_array(type) ? json_array_get(type, i) : type;
		const char *name = json_string_value(one);
		size_t used = strlen(out);

		(void)snprintf(out + used, size - used, "%s%s%s",
		    used == 0      ? "" :
			i + 1 == n ? " or " :
				     ", ",
		    article(name), name);
	}
}

static int
check_type(const struct schema_check *c, const json_t *node,
    const json_t *value, const struct schema_path *path)
{
	const json_t *type = json_object_get(node, "type");
	char want[128] = "";

	if (fits_type(type, value))
		return 0;
	type_format(type, want, sizeof(want));
	return schema_path_fail(
	    path, c->e, "want %s, got %s", want, schema_type_of(value));
}

/* 30.0 is an integer to JSON Schema; give the tool one. */
static json_t *
as_integer(const json_t *node, const json_t *value)
{
	const json_t *type = json_object_get(node, "type");
	double d = json_real_value(value);

	if (!json_is_real(value) || !json_is_string(type) ||
	    strcmp(json_string_value(type), "integer") != 0 ||
	    fabs(d) > EXACT_MAX || (double)(json_int_t)d != d)
		return NULL;
	return json_integer((json_int_t)d);
}

/* ---- values without parts */

/* Texts are made only of what does not fit. */
static int
fail_wanted(const struct schema_check *c, const char *how, const json_t *wanted,
    const json_t *value, const struct schema_path *path)
{
	char got[SCHEMA_VALUE_TEXT], want[SCHEMA_VALUE_TEXT];

	schema_value_format(value, got);
	schema_value_format(wanted, want);
	return schema_path_fail(
	    path, c->e, "want %s%s, got %s", how, want, got);
}

static int
check_number(const struct schema_check *c, const json_t *node,
    const json_t *value, const struct schema_path *path)
{
	const json_t *min = json_object_get(node, "minimum");
	const json_t *max = json_object_get(node, "maximum");
	double d = json_number_value(value);

	if (min != NULL && d < json_number_value(min))
		return fail_wanted(c, "at least ", min, value, path);
	if (max != NULL && d > json_number_value(max))
		return fail_wanted(c, "at most ", max, value, path);
	return 0;
}

static size_t
characters(const char *p, size_t bytes)
{
	size_t n = 0;

	for (size_t i = 0; i < bytes; i++)
		n += ((unsigned char)p[i] & 0xc0) != 0x80;
	return n;
}

static size_t
limit(const json_t *node, const char *keyword, size_t none)
{
	const json_t *v = json_object_get(node, keyword);

	return v == NULL ? none : (size_t)json_integer_value(v);
}

static int
check_string(const struct schema_check *c, const json_t *node,
    const json_t *value, const struct schema_path *path)
{
	const json_t *pattern = json_object_get(node, "pattern");
	size_t min = limit(node, "minLength", 0);
	size_t max = limit(node, "maxLength", SIZE_MAX);
	size_t n = json_string_length(value);
	char got[SCHEMA_VALUE_TEXT];

	/* Counted only when it matters: a character has up to four bytes. */
	if (n / 4 < min || n > max)
		n = characters(json_string_value(value), n);
	if (n < min)
		return schema_path_fail(path, c->e,
		    "want at least %zu character%s, got %zu", min,
		    min == 1 ? "" : "s", n);
	if (n > max)
		return schema_path_fail(path, c->e,
		    "want at most %zu character%s, got %zu", max,
		    max == 1 ? "" : "s", n);
	if (pattern == NULL ||
	    regexec(schema_pattern(c->schema, pattern),
		json_string_value(value), 0, NULL, 0) == 0)
		return 0;
	schema_value_format(value, got);
	return schema_path_fail(path, c->e, "want text that matches %s, got %s",
	    json_string_value(pattern), got);
}

static int
fail_choice(const struct schema_check *c, const json_t *choice,
    const json_t *value, const struct schema_path *path)
{
	char got[SCHEMA_VALUE_TEXT], one[SCHEMA_VALUE_TEXT], want[256] = "";
	const json_t *v;
	size_t i;

	json_array_foreach (choice, i, v) {
		size_t used = strlen(want);

		schema_value_format(v, one);
		(void)snprintf(want + used, sizeof(want) - used, "%s%s",
		    used == 0 ? "" : ", ", one);
	}
	schema_value_format(value, got);
	return schema_path_fail(
	    path, c->e, "want one of %s, got %s", want, got);
}

static int
check_choice(const struct schema_check *c, const json_t *node,
    const json_t *value, const struct schema_path *path)
{
	const json_t *choice = json_object_get(node, "enum");
	const json_t *only = json_object_get(node, "const");
	const json_t *v;
	size_t i;

	if (only != NULL && !json_equal(only, value))
		return fail_wanted(c, "", only, value, path);
	if (choice == NULL)
		return 0;
	json_array_foreach (choice, i, v)
		if (json_equal(v, value))
			return 0;
	return fail_choice(c, choice, value, path);
}

/* ---- arrays and objects */

static int
check_array(const struct schema_check *c, const json_t *node, json_t *value,
    const struct schema_path *path)
{
	const json_t *items = json_object_get(node, "items");
	size_t n = json_array_size(value);
	size_t min = limit(node, "minItems", 0);
	size_t max = limit(node, "maxItems", SIZE_MAX);
	struct schema_path at = {path, NULL, 0};

	if (n < min)
		return schema_path_fail(path, c->e,
		    "want at least %zu item%s, got %zu", min,
		    min == 1 ? "" : "s", n);
	if (n > max)
		return schema_path_fail(path, c->e,
		    "want at most %zu item%s, got %zu", max,
		    max == 1 ? "" : "s", n);
	for (; items != NULL && at.index < n; at.index++) {
		json_t *item = json_array_get(value, at.index);
		json_t *whole = as_integer(items, item);

		if (whole != NULL) {
			json_array_set_new(value, at.index, whole);
			item = whole;
		}
		if (check_value(c, items, item, &at) != 0)
			return ERR_INVAL;
	}
	return 0;
}

static int
fail_unknown(const struct schema_check *c, json_t *properties,
    const struct schema_path *at)
{
	char where[SCHEMA_PATH_TEXT], known[256] = "";
	const char *name;
	json_t *sub;

	json_object_foreach (properties, name, sub) {
		size_t used = strlen(known);

		(void)snprintf(known + used, sizeof(known) - used, "%s%s",
		    used == 0 ? "" : ", ", name);
	}
	schema_path_format(at, where);
	return err_set(c->e, ERR_INVAL, "unknown argument %s; known: %s", where,
	    known[0] == '\0' ? "none" : known);
}

static int
check_member(const struct schema_check *c, const json_t *node, json_t *object,
    const char *name, const struct schema_path *path)
{
	json_t *properties = json_object_get(node, "properties");
	const json_t *sub = json_object_get(properties, name);
	json_t *value = json_object_get(object, name), *whole;
	struct schema_path at = {path, name, 0};

	if (sub == NULL) {
		sub = json_object_get(node, "additionalProperties");
		if (sub == NULL)
			return 0;
		if (json_is_false(sub))
			return fail_unknown(c, properties, &at);
	}
	whole = as_integer(sub, value);
	if (whole != NULL) { /* the key exists: iterators stay valid */
		json_object_set_new(object, name, whole);
		value = whole;
	}
	return check_value(c, sub, value, &at);
}

static int
check_object(const struct schema_check *c, const json_t *node, json_t *value,
    const struct schema_path *path)
{
	const json_t *required = json_object_get(node, "required"), *want;
	const char *name;
	json_t *member;
	size_t i;

	/* What is there first: a misspelt name explains a missing one. */
	json_object_foreach (value, name, member)
		if (check_member(c, node, value, name, path) != 0)
			return ERR_INVAL;
	json_array_foreach (required, i, want) {
		struct schema_path at = {path, json_string_value(want), 0};

		if (json_object_get(value, at.key) == NULL)
			return schema_path_fail(
			    &at, c->e, "missing, and it is required");
	}
	return 0;
}

/* ---- forms */

/* The message of the form that the client most likely meant: the one of the
 * value's own type. */
static int
check_any_of(const struct schema_check *c, const json_t *node, json_t *value,
    const struct schema_path *path)
{
	const json_t *any_of = json_object_get(node, "anyOf"), *form;
	struct err why, meant = {0};
	struct schema_check each = {c->schema, &why};
	char want[128] = "";
	size_t i;

	json_array_foreach (any_of, i, form) {
		const json_t *type = json_object_get(form, "type");

		if (check_value(&each, form, value, path) == 0)
			return 0;
		if (meant.code == 0 && fits_type(type, value))
			meant = why;
		if (type != NULL)
			type_format(type, want, sizeof(want));
	}
	if (any_of == NULL)
		return 0;
	if (meant.code != 0)
		return err_set(c->e, meant.code, "%s", meant.msg);
	return schema_path_fail(path, c->e, "want %s, got %s",
	    want[0] == '\0' ? "one of the forms in the schema" : want,
	    schema_type_of(value));
}

static int
check_value(const struct schema_check *c, const json_t *node, json_t *value,
    const struct schema_path *path)
{
	if (json_is_true(node))
		return 0;
	if (json_is_false(node))
		return schema_path_fail(path, c->e, "must not be there");
	if (check_type(c, node, value, path) != 0 ||
	    check_choice(c, node, value, path) != 0 ||
	    check_any_of(c, node, value, path) != 0)
		return ERR_INVAL;
	if (json_is_number(value))
		return check_number(c, node, value, path);
	if (json_is_string(value))
		return check_string(c, node, value, path);
	if (json_is_array(value))
		return check_array(c, node, value, path);
	if (json_is_object(value))
		return check_object(c, node, value, path);
	return 0;
}

/* Also where the schema does not look: tools read C strings.  The depth is
 * bounded by the parser. */
static int
check_nul(
    const struct schema_check *c, json_t *value, const struct schema_path *path)
{
	struct schema_path at = {path, NULL, 0};
	const char *name;
	json_t *part;

	if (json_is_string(value) &&
	    strlen(json_string_value(value)) != json_string_length(value))
		return schema_path_fail(
		    path, c->e, "text with a NUL character cannot be used");
	json_array_foreach (value, at.index, part)
		if (check_nul(c, part, &at) != 0)
			return ERR_INVAL;
	json_object_foreach (value, name, part) {
		at.key = name;
		if (check_nul(c, part, &at) != 0)
			return ERR_INVAL;
	}
	return 0;
}

int
schema_check(const struct schema *s, json_t *arguments, struct err *e)
{
	struct schema_check c = {s, e};

	if (check_nul(&c, arguments, NULL) != 0)
		return ERR_INVAL;
	return check_value(&c, schema_root(s), arguments, NULL);
}
