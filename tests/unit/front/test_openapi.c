/* schema/openapi.json against what is served: the table of routes, and the
 * tables of their parameters. */
#include <stdio.h>

#include "common/js.h"
#include "common/xmalloc.h"
#include "supervisor/front/routes.h"
#include "tests/unit/test.h"

#define PATH_MAX_BYTES 200

static json_t *doc;

static int
load(void **state)
{
	const char *top = getenv("srcdir");
	AUTO(auto_free)
	char *path =
	    xasprintf("%s/schema/openapi.json", top == NULL ? "." : top);
	json_error_t e;

	(void)state;
	doc = json_load_file(path, JSON_REJECT_DUPLICATES, &e);
	if (doc == NULL)
		fail_msg("%s:%d: %s", path, e.line, e.text);
	return 0;
}

static int
unload(void **state)
{
	(void)state;
	json_decref(doc);
	return 0;
}

/* ---- the document */

static const json_t *
member(const json_t *o, const char *key)
{
	return json_object_get(o, key);
}

/* "#/a/b", without escapes: this document has none in its references. */
static const json_t *
resolve(const char *ref)
{
	AUTO(auto_free) char *text = xstrdup(ref);
	const json_t *o = doc;
	char *part, *rest = text + 2;

	if (strncmp(ref, "#/", 2) != 0)
		fail_msg("schema/openapi.json: no reference of ours: %s", ref);
	while ((part = strsep(&rest, "/")) != NULL)
		o = member(o, part);
	if (o == NULL)
		fail_msg("schema/openapi.json: there is no %s", ref);
	return o;
}

static const json_t *
follow(const json_t *o)
{
	const char *ref = json_string_value(member(o, "$ref"));

	return ref == NULL ? o : resolve(ref);
}

TEST(it_is_of_this_version)
{
	assert_string_equal(
	    js_text(member(doc, "info"), "version"), PACKAGE_VERSION);
}

/* An object of ours says all of its members; those that clients may add to are
 * of protocols that others wrote. */
static void
check_closed(const char *name, const json_t *o)
{
	const char *key;
	const json_t *value;
	size_t i;

	if (json_is_object(member(o, "properties")) &&
	    member(o, "additionalProperties") == NULL &&
	    strncmp(name, "JsonRpc", 7) != 0)
		fail_msg("schema/openapi.json: in %s an object is open: add "
			 "\"additionalProperties\": false",
		    name);
	json_object_foreach ((json_t *)(uintptr_t)o, key, value)
		check_closed(name, value);
	if (json_is_array(o))
		for (i = 0; i < json_array_size(o); i++)
			check_closed(name, json_array_get(o, i));
}

TEST(answers_are_closed)
{
	const json_t *schemas = member(member(doc, "components"), "schemas");
	const char *name;
	const json_t *schema;

	json_object_foreach ((json_t *)(uintptr_t)schemas, name, schema)
		check_closed(name, schema);
}

/* ---- routes */

/* As the document writes it: ":run" and "*path" are "{run}" and "{path}". */
static const char *
path_of(const struct route *r, char out[PATH_MAX_BYTES])
{
	const char *p = r->pattern;
	size_t at = 0, n;

	if (r->place != ROUTE_TOP)
		at = (size_t)snprintf(out, PATH_MAX_BYTES, "/mcp");
	out[at] = '\0';
	while (*p != '\0') {
		n = strcspn(p + 1, "/") + 1;
		assert_true(at + n + 4 < PATH_MAX_BYTES);
		if (n > 1 && (p[1] == ':' || p[1] == '*'))
			at += (size_t)snprintf(out + at, PATH_MAX_BYTES - at,
			    "/{%.*s}", (int)n - 2, p + 2);
		else
			at += (size_t)snprintf(
			    out + at, PATH_MAX_BYTES - at, "%.*s", (int)n, p);
		p += n;
	}
	return out;
}

static const struct method {
	enum http_method bit;
	const char *name;
} methods[] = {
    {HTTP_METHOD_GET, "get"},
    {HTTP_METHOD_POST, "post"},
    {HTTP_METHOD_PUT, "put"},
    {HTTP_METHOD_PATCH, "patch"},
    {HTTP_METHOD_DELETE, "delete"},
};

/* Of those that the document must have; HEAD goes with GET, and OPTIONS is
 * everywhere. */
static void
each_operation(void (*check)(const struct route *r, const char *path,
    const char *method, const json_t *operation))
{
	const json_t *at;
	char path[PATH_MAX_BYTES];

	for (const struct route *r = routes_next(NULL); r != NULL;
	     r = routes_next(r)) {
		at = member(member(doc, "paths"), path_of(r, path));
		for (size_t i = 0; i < ARRAY_LEN(methods); i++)
			if ((r->methods & (unsigned int)methods[i].bit) != 0)
				check(r, path, methods[i].name,
				    member(at, methods[i].name));
	}
}

static void
check_there(const struct route *r, const char *path, const char *method,
    const json_t *operation)
{
	if (operation == NULL)
		fail_msg("schema/openapi.json lacks %s %s (routes.c: %s): add "
			 "\"paths\": {\"%s\": {\"%s\": ...}} with operationId, "
			 "x-roles, parameters, and each status with a closed "
			 "schema",
		    method, path, r->pattern, path, method);
}

TEST(every_route_is_in_the_document)
{
	each_operation(check_there);
}

static bool
is_served(const char *path, const char *method)
{
	char of[PATH_MAX_BYTES];

	for (const struct route *r = routes_next(NULL); r != NULL;
	     r = routes_next(r))
		for (size_t i = 0; i < ARRAY_LEN(methods); i++)
			if (strcmp(path_of(r, of), path) == 0 &&
			    strcmp(methods[i].name, method) == 0 &&
			    (r->methods & (unsigned int)methods[i].bit) != 0)
				return true;
	return false;
}

TEST(nothing_else_is_in_the_document)
{
	const char *path, *method;
	const json_t *at, *operation;

	json_object_foreach (
	    (json_t *)(uintptr_t)member(doc, "paths"), path, at)
		json_object_foreach ((json_t *)(uintptr_t)at, method, operation)
			if (!is_served(path, method))
				fail_msg("schema/openapi.json has %s %s, which "
					 "no row of routes.c serves: take it "
					 "away",
				    method, path);
}

/* ---- who may */

static void
check_roles(const struct route *r, const char *path, const char *method,
    const json_t *operation)
{
	const json_t *roles = member(operation, "x-roles"), *role;
	unsigned int said = 0;
	enum principal_role which;
	size_t i;

	json_array_foreach ((json_t *)(uintptr_t)roles, i, role) {
		assert_int_equal(
		    principal_role_parse(json_string_value(role), &which), 0);
		said |= ROUTE_ROLE(which);
	}
	if (said != (r->roles & ~ROUTE_WHILE_OPEN))
		fail_msg("schema/openapi.json: x-roles of %s %s are not those "
			 "of routes.c",
		    method, path);
	if ((r->roles == ROUTE_NOBODY) !=
	    json_is_array(member(operation, "security")))
		fail_msg("schema/openapi.json: %s %s: want \"security\": [] "
			 "exactly where nobody is asked who it is",
		    method, path);
}

TEST(roles_are_those_of_the_routes)
{
	each_operation(check_roles);
}

/* ---- parameters */

/* The parameter of that name and place; NULL: none. */
static const json_t *
parameter(const json_t *operation, const char *in, const char *name)
{
	const json_t *list = member(operation, "parameters");

	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *p = follow(json_array_get(list, i));

		if (strcmp(js_text(p, "in"), in) == 0 &&
		    strcmp(js_text(p, "name"), name) == 0)
			return p;
	}
	return NULL;
}

static size_t
count_in(const json_t *operation, const char *in)
{
	const json_t *list = member(operation, "parameters");
	size_t n = 0;

	for (size_t i = 0; i < json_array_size(list); i++)
		if (strcmp(js_text(follow(json_array_get(list, i)), "in"),
			in) == 0)
			n++;
	return n;
}

static void
check_path_parameters(const struct route *r, const char *path,
    const char *method, const json_t *operation)
{
	char name[PATH_MAX_BYTES];
	size_t n = 0;
	const char *p;

	(void)r;
	for (p = strchr(path, '{'); p != NULL; p = strchr(p + 1, '{')) {
		(void)snprintf(name, sizeof(name), "%.*s",
		    (int)strcspn(p + 1, "}"), p + 1);
		if (parameter(operation, "path", name) == NULL)
			fail_msg("schema/openapi.json: %s %s lacks its "
				 "parameter {%s}",
			    method, path, name);
		n++;
	}
	assert_int_equal(count_in(operation, "path"), n);
}

TEST(every_part_of_a_path_is_described)
{
	each_operation(check_path_parameters);
}

static bool
has_words(const json_t *schema, const char *const *words, bool both_ways)
{
	const json_t *list = member(schema, "enum");
	size_t n = 0;
	char down[64];

	for (; words[n] != NULL; n++) {
		bool up = false, reverse = !both_ways;

		(void)snprintf(down, sizeof(down), "-%s", words[n]);
		for (size_t i = 0; i < json_array_size(list); i++) {
			const char *s =
			    json_string_value(json_array_get(list, i));

			up = up || strcmp(s, words[n]) == 0;
			reverse = reverse || strcmp(s, down) == 0;
		}
		if (!up || !reverse)
			return false;
	}
	return json_array_size(list) == n * (both_ways ? 2 : 1);
}

static bool
is_of_type(const json_t *schema, const char *type)
{
	return strcmp(js_text(schema, "type"), type) == 0;
}

static bool
has_bound(const json_t *schema, const char *key, uint64_t value)
{
	return (uint64_t)json_integer_value(member(schema, key)) == value;
}

/* Does the document say of it what its table does? */
static bool
is_alike(const json_t *schema, const struct query_param *p)
{
	switch (p->kind) {
	case QUERY_TEXT:
	case QUERY_SCOPE:
		return is_of_type(schema, "string") &&
		    has_bound(schema, "minLength", p->min == 0 ? 1 : p->min) &&
		    has_bound(schema, "maxLength",
			p->max == 0 ? QUERY_TEXT_MAX : p->max);
	case QUERY_UUID:
		return strcmp(js_text(schema, "format"), "uuid") == 0;
	case QUERY_WORD:
		return has_words(schema, p->words, false);
	case QUERY_SORT:
		return has_words(schema, p->words, true);
	case QUERY_NUMBER:
		return is_of_type(schema, "integer") &&
		    has_bound(schema, "minimum", p->min) &&
		    (p->max == 0 || has_bound(schema, "maximum", p->max));
	case QUERY_TIME:
		return is_of_type(schema, "string");
	case QUERY_BOOL:
		return is_of_type(schema, "boolean");
	}
	return false;
}

/* What is MCP's (MCP_PATH and below), probes and pages pass by what they do not
 * know. */
static bool
is_strict(const struct route *r)
{
	return r->place == ROUTE_TOP &&
	    (strncmp(r->pattern, "/api/", 5) == 0 ||
		strncmp(r->pattern, "/artifacts/", 11) == 0 ||
		strcmp(r->pattern, "/metrics") == 0);
}

static void
check_query(const struct route *r, const char *path, const char *method,
    const json_t *operation)
{
	const struct query_table *t = r->query;

	assert_int_equal(is_strict(r), t != NULL);
	if (t == NULL)
		return;
	for (size_t i = 0; i < t->n; i++) {
		const struct query_param *p = &t->params[i];
		const json_t *said = parameter(operation, "query", p->name);

		if (said == NULL)
			fail_msg("schema/openapi.json: %s %s lacks its "
				 "parameter %s: add {\"name\": \"%s\", \"in\": "
				 "\"query\", \"schema\": ...}",
			    method, path, p->name, p->name);
		if (!is_alike(follow(member(said, "schema")), p))
			fail_msg("schema/openapi.json: %s %s: the schema of "
				 "%s has another type, other bounds or words "
				 "than its table",
			    method, path, p->name);
	}
	if (count_in(operation, "query") != t->n)
		fail_msg("schema/openapi.json: %s %s has %zu parameters of "
			 "its query, its table %zu",
		    method, path, count_in(operation, "query"), t->n);
}

TEST(parameters_are_those_of_the_tables)
{
	each_operation(check_query);
}

int
main(void)
{
	return tests_run(NULL, NULL, load, unload);
}
