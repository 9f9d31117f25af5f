/*
 * schema.c - a schema taken in: keywords checked, patterns compiled
 *
 * Walks all subschemas once.  A keyword that is known but not usable is an
 * error of the schema's author, found at the start; schema_check.c can then
 * trust what it reads.
 */
#include "supervisor/mcp/schema.h"

#include "common/xmalloc.h"

struct pattern {
	const json_t *keyword;
	regex_t re;
};

struct schema {
	json_t *root;
	struct pattern *patterns;
	size_t npatterns;
};

static int prepare(
    struct schema *s, const json_t *node, unsigned int depth, struct err *e);

static bool
is_type_name(const json_t *v)
{
	static const char *const names[] = {"object", "array", "string",
	    "integer", "number", "boolean", "null"};

	for (size_t i = 0; json_is_string(v) && i < ARRAY_LEN(names); i++)
		if (strcmp(json_string_value(v), names[i]) == 0)
			return true;
	return false;
}

static int
prepare_type(const json_t *type, struct err *e)
{
	size_t i;
	const json_t *name;

	if (type == NULL || is_type_name(type))
		return 0;
	if (!json_is_array(type) || json_array_size(type) == 0)
		return err_set(e, ERR_INVAL, "type is not the name of a type");
	json_array_foreach (type, i, name)
		if (!is_type_name(name))
			return err_set(e, ERR_INVAL,
			    "type[%zu] is not the name of a type", i);
	return 0;
}

static int
prepare_pattern(struct schema *s, const json_t *keyword, struct err *e)
{
	struct pattern *p;
	char why[128];
	int rc;

	if (keyword == NULL)
		return 0;
	s->patterns =
	    xreallocarray(s->patterns, s->npatterns + 1, sizeof(*s->patterns));
	p = &s->patterns[s->npatterns];
	rc = regcomp(
	    &p->re, json_string_value(keyword), REG_EXTENDED | REG_NOSUB);
	if (rc != 0) {
		(void)regerror(rc, &p->re, why, sizeof(why));
		return err_set(e, ERR_INVAL, "pattern %s: %s",
		    json_string_value(keyword), why);
	}
	p->keyword = keyword;
	s->npatterns++;
	return 0;
}

#define IS(type) (1u << (type))

static const struct keyword {
	const char *name;
	unsigned int types; /* JSON_..., as bits */
	const char *want;
} keywords[] = {
    {"pattern", IS(JSON_STRING), "a string"},
    {"minItems", IS(JSON_INTEGER), "a count"},
    {"maxItems", IS(JSON_INTEGER), "a count"},
    {"minLength", IS(JSON_INTEGER), "a count"},
    {"maxLength", IS(JSON_INTEGER), "a count"},
    {"minimum", IS(JSON_INTEGER) | IS(JSON_REAL), "a number"},
    {"maximum", IS(JSON_INTEGER) | IS(JSON_REAL), "a number"},
    {"enum", IS(JSON_ARRAY), "an array"},
    {"required", IS(JSON_ARRAY), "an array"},
    {"properties", IS(JSON_OBJECT), "an object"},
};

static int
check_keywords(const json_t *node, struct err *e)
{
	const json_t *name;
	size_t i;

	for (i = 0; i < ARRAY_LEN(keywords); i++) {
		const struct keyword *k = &keywords[i];
		const json_t *v = json_object_get(node, k->name);

		if (v == NULL)
			continue;
		if ((k->types & IS(json_typeof(v))) == 0 ||
		    (k->types == IS(JSON_INTEGER) && json_integer_value(v) < 0))
			return err_set(
			    e, ERR_INVAL, "%s is not %s", k->name, k->want);
	}
	json_array_foreach (json_object_get(node, "required"), i, name)
		if (!json_is_string(name))
			return err_set(
			    e, ERR_INVAL, "required[%zu] is not a string", i);
	return 0;
}

static int
prepare_properties(
    struct schema *s, json_t *properties, unsigned int depth, struct err *e)
{
	const char *name;
	json_t *sub;

	json_object_foreach (properties, name, sub)
		if (prepare(s, sub, depth, e) != 0)
			return err_wrap(e, "%s", name);
	return 0;
}

static int
prepare_any_of(
    struct schema *s, const json_t *any_of, unsigned int depth, struct err *e)
{
	const json_t *sub;
	size_t i;

	if (any_of == NULL)
		return 0;
	if (!json_is_array(any_of) || json_array_size(any_of) == 0)
		return err_set(e, ERR_INVAL, "anyOf is not an array of forms");
	json_array_foreach (any_of, i, sub)
		if (prepare(s, sub, depth, e) != 0)
			return err_wrap(e, "anyOf[%zu]", i);
	return 0;
}

static int
prepare_subschemas(
    struct schema *s, const json_t *node, unsigned int depth, struct err *e)
{
	static const char *const single[] = {"items", "additionalProperties"};

	for (size_t i = 0; i < ARRAY_LEN(single); i++) {
		const json_t *sub = json_object_get(node, single[i]);

		if (sub != NULL && prepare(s, sub, depth, e) != 0)
			return err_wrap(e, "%s", single[i]);
	}
	if (prepare_properties(
		s, json_object_get(node, "properties"), depth, e) != 0)
		return e->code;
	return prepare_any_of(s, json_object_get(node, "anyOf"), depth, e);
}

static int
prepare(struct schema *s, const json_t *node, unsigned int depth, struct err *e)
{
	if (json_is_boolean(node)) /* everything, or nothing */
		return 0;
	if (!json_is_object(node))
		return err_set(e, ERR_INVAL, "a schema is not an object");
	if (depth > SCHEMA_DEPTH_MAX)
		return err_set(e, ERR_LIMIT, "deeper than %d subschemas",
		    SCHEMA_DEPTH_MAX);
	if (check_keywords(node, e) != 0 ||
	    prepare_type(json_object_get(node, "type"), e) != 0 ||
	    prepare_pattern(s, json_object_get(node, "pattern"), e) != 0)
		return e->code;
	return prepare_subschemas(s, node, depth + 1, e);
}

int
schema_new(json_t *root, struct schema **out, struct err *e)
{
	struct schema *s = xcalloc(1, sizeof(*s));
	struct err why;

	s->root = json_incref(root);
	if (prepare(s, root, 0, &why) != 0) {
		schema_free(s);
		return err_set(e, why.code, "%s", why.msg);
	}
	*out = s;
	return 0;
}

void
schema_free(struct schema *s)
{
	if (s == NULL)
		return;
	for (size_t i = 0; i < s->npatterns; i++)
		regfree(&s->patterns[i].re);
	free(s->patterns);
	json_decref(s->root);
	free(s);
}

json_t *
schema_root(const struct schema *s)
{
	return s->root;
}

const regex_t *
schema_pattern(const struct schema *s, const json_t *pattern)
{
	for (size_t i = 0; i < s->npatterns; i++)
		if (s->patterns[i].keyword == pattern)
			return &s->patterns[i].re;
	return NULL;
}
