/*
 * schema_check.c - arguments held against a schema
 *
 * Goes down value and schema together, with the path for the message kept on
 * the stack.  The first fault ends it: a model mends one at a time, and anyOf
 * needs only yes or no of each branch.
 */
#include "supervisor/mcp/schema.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "common/js.h"
#include "common/utf8.h"
#include "common/xmalloc.h"

#define KEY_SHOWN 48 /* bytes of a key or string of the client's */
#define PATH_TEXT 160
#define VALUE_TEXT 80
#define EXACT_MAX 9007199254740992.0 /* doubles are exact integers below */

/* ---- where in the arguments a value stands, and how to say it */

struct schema_path { /* a chain on the stack; NULL is the root */
	const struct schema_path *up;
	const char *key; /* NULL: an index */
	size_t index;
};

static size_t
path_append(const struct schema_path *path, char *out, size_t size)
{
	size_t used, key;
	int n;

	if (path == NULL)
		return 0;
	used = path_append(path->up, out, size);
	if (used >= size)
		return used;
	if (path->key == NULL) {
		n = snprintf(out + used, size - used, "[%zu]", path->index);
	} else {
		key = strnlen(path->key, KEY_SHOWN);
		key = utf8_complete_len(path->key, key);
		n = snprintf(out + used, size - used, "%s%.*s",
		    used == 0 ? "" : ".", (int)key, path->key);
	}
	return n < 0 ? size : used + (size_t)n;
}

/* "commands[0].timeout_ms"; keys are the client's: cut to a sane length */
static void
path_format(const struct schema_path *path, char out[PATH_TEXT])
{
	out[0] = '\0';
	(void)path_append(path, out, PATH_TEXT);
}

/* "argument PATH: TEXT" (or "arguments: TEXT") in *e */
static int PRINTF(3, 4) path_fail(
    const struct schema_path *path, struct err *e, const char *fmt, ...)
{
	char where[PATH_TEXT], text[ERR_TEXT_MAX];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (path == NULL)
		return err_set(e, ERR_INVAL, "arguments: %s", text);
	path_format(path, where);
	return err_set(e, ERR_INVAL, "argument %s: %s", where, text);
}

static const char *
type_of(const json_t *v)
{
	static const char *const names[] = {[JSON_OBJECT] = "an object",
	    [JSON_ARRAY] = "an array",
	    [JSON_STRING] = "a string",
	    [JSON_INTEGER] = "an integer",
	    [JSON_REAL] = "a number",
	    [JSON_TRUE] = "a boolean",
	    [JSON_FALSE] = "a boolean",
	    [JSON_NULL] = "null"};

	return names[json_typeof(v)];
}

/* A short JSON form of a value that came from the client. */
static void
value_format(const json_t *v, char out[VALUE_TEXT])
{
	AUTO(auto_json) json_t *cut = NULL;
	AUTO(auto_free) char *text = NULL;
	size_t n;

	if (json_is_object(v) || json_is_array(v)) {
		(void)snprintf(out, VALUE_TEXT, "%s", type_of(v));
		return;
	}
	if (json_is_string(v) && json_string_length(v) > KEY_SHOWN) {
		n = utf8_complete_len(json_string_value(v), KEY_SHOWN);
		cut = json_stringn(json_string_value(v), n);
		v = cut;
	}
	text = json_dumps(v, JSON_ENCODE_ANY);
	(void)snprintf(out, VALUE_TEXT, "%s%s", text == NULL ? "?" : text,
	    cut == NULL ? "" : "...");
}

/* ---- arguments held against it */

struct schema_check {
	const struct schema *schema;
	struct err *e;
};

static int check_value(const struct schema_check *c, const json_t *node,
    json_t *value, const struct schema_path *path);

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
	return path_fail(path, c->e, "want %s, got %s", want, type_of(value));
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
	char got[VALUE_TEXT], want[VALUE_TEXT];

	value_format(value, got);
	value_format(wanted, want);
	return path_fail(path, c->e, "want %s%s, got %s", how, want, got);
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
check_count(const struct schema_check *c, const char *of, size_t n, size_t min,
    size_t max, const struct schema_path *path)
{
	if (n < min)
		return path_fail(path, c->e, "want at least %zu %s%s, got %zu",
		    min, of, min == 1 ? "" : "s", n);
	if (n > max)
		return path_fail(path, c->e, "want at most %zu %s%s, got %zu",
		    max, of, max == 1 ? "" : "s", n);
	return 0;
}

static int
check_string(const struct schema_check *c, const json_t *node,
    const json_t *value, const struct schema_path *path)
{
	const json_t *pattern = json_object_get(node, "pattern");
	size_t min = limit(node, "minLength", 0);
	size_t max = limit(node, "maxLength", SIZE_MAX);
	size_t n = json_string_length(value);
	char got[VALUE_TEXT];

	/* Counted only when it matters: a character has up to four bytes. */
	if (n / 4 < min || n > max)
		n = characters(json_string_value(value), n);
	if (check_count(c, "character", n, min, max, path) != 0)
		return ERR_INVAL;
	if (pattern == NULL ||
	    regexec(schema_pattern(c->schema, pattern),
		json_string_value(value), 0, NULL, 0) == 0)
		return 0;
	value_format(value, got);
	return path_fail(path, c->e, "want text that matches %s, got %s",
	    json_string_value(pattern), got);
}

static int
fail_choice(const struct schema_check *c, const json_t *choice,
    const json_t *value, const struct schema_path *path)
{
	char got[VALUE_TEXT], one[VALUE_TEXT], want[256] = "";
	const json_t *v;
	size_t i;

	json_array_foreach (choice, i, v) {
		size_t used = strlen(want);

		value_format(v, one);
		(void)snprintf(want + used, sizeof(want) - used, "%s%s",
		    used == 0 ? "" : ", ", one);
	}
	value_format(value, got);
	return path_fail(path, c->e, "want one of %s, got %s", want, got);
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

	if (check_count(c, "item", n, min, max, path) != 0)
		return ERR_INVAL;
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
	char where[PATH_TEXT], known[256] = "";
	const char *name;
	json_t *sub;

	json_object_foreach (properties, name, sub) {
		size_t used = strlen(known);

		(void)snprintf(known + used, sizeof(known) - used, "%s%s",
		    used == 0 ? "" : ", ", name);
	}
	path_format(at, where);
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
			return path_fail(
			    &at, c->e, "missing, and it is required");
	}
	return 0;
}

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
	return path_fail(path, c->e, "want %s, got %s",
	    want[0] == '\0' ? "one of the forms in the schema" : want,
	    type_of(value));
}

static int
check_value(const struct schema_check *c, const json_t *node, json_t *value,
    const struct schema_path *path)
{
	if (json_is_true(node))
		return 0;
	if (json_is_false(node))
		return path_fail(path, c->e, "must not be there");
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
		return path_fail(
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

/* ---- what clients put around arguments, taken away */

static void tidy_value(
    const json_t *node, json_t *value, json_t *removed, unsigned int depth);

static bool
is_decoration(const char *key)
{
	static const char *const keys[] = {
	    "description", "reason", "explanation", "thought"};

	for (size_t i = 0; i < ARRAY_LEN(keys); i++)
		if (strcmp(keys[i], key) == 0)
			return true;
	return false;
}

static bool
is_required(const json_t *node, const char *key)
{
	const json_t *name;
	size_t i;

	json_array_foreach (json_object_get(node, "required"), i, name)
		if (strcmp(json_string_value(name), key) == 0)
			return true;
	return false;
}

static bool
names_null(const json_t *type)
{
	const json_t *name;
	size_t i;

	if (json_is_string(type))
		return strcmp(json_string_value(type), "null") == 0;
	json_array_foreach (type, i, name)
		if (strcmp(json_string_value(name), "null") == 0)
			return true;
	return false;
}

/* Does the schema itself have a meaning for null here? */
static bool
may_be_null(const json_t *node)
{
	const json_t *forms = json_object_get(node, "anyOf");
	const json_t *type = json_object_get(node, "type");
	const json_t *form;
	size_t i;

	if (type != NULL)
		return names_null(type);
	json_array_foreach (forms, i, form)
		if (names_null(json_object_get(form, "type")))
			return true;
	return forms == NULL;
}

/* "", or 0 where the least that may be asked for is more.  Where 0 may be, it
 * means something: how long to wait, where to begin, an exit code. */
static bool
is_blank(const json_t *node, const json_t *value)
{
	const json_t *type = json_object_get(node, "type");
	const json_t *least = json_object_get(node, "minimum");

	if (json_is_string(value))
		return json_string_length(value) == 0 && json_is_string(type) &&
		    strcmp(json_string_value(type), "string") == 0;
	return json_is_number(value) && !(json_number_value(value) < 0) &&
	    !(json_number_value(value) > 0) && json_number_value(least) > 0;
}

static bool
is_superfluous(const json_t *node, const char *key, const json_t *value)
{
	const json_t *sub =
	    json_object_get(json_object_get(node, "properties"), key);

	if (sub == NULL)
		return is_decoration(key) &&
		    json_is_false(
			json_object_get(node, "additionalProperties"));
	if (is_required(node, key))
		return false;
	return json_is_null(value) ? !may_be_null(sub) : is_blank(sub, value);
}

static void
tidy_object(
    const json_t *node, json_t *object, json_t *removed, unsigned int depth)
{
	const json_t *properties = json_object_get(node, "properties");
	const char *key;
	json_t *value;
	void *next;

	if (properties == NULL)
		return;
	json_object_foreach_safe (object, next, key, value) {
		if (!is_superfluous(node, key, value)) {
			tidy_value(json_object_get(properties, key), value,
			    removed, depth);
			continue;
		}
		if (removed != NULL)
			json_array_append(removed, value);
		json_object_del(object, key);
	}
}

static void
tidy_value(
    const json_t *node, json_t *value, json_t *removed, unsigned int depth)
{
	const json_t *items = json_object_get(node, "items");
	json_t *item;
	size_t i;

	if (depth > SCHEMA_DEPTH_MAX)
		return;
	if (json_is_object(value))
		tidy_object(node, value, removed, depth + 1);
	json_array_foreach (value, i, item)
		tidy_value(items, item, removed, depth + 1);
}

void
schema_tidy(const struct schema *s, json_t *arguments, json_t *removed)
{
	tidy_value(schema_root(s), arguments, removed, 0);
}
