/*
 * schema_tidy.c - what clients put around arguments, taken away
 */
#include "supervisor/mcp/schema_tidy.h"

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
