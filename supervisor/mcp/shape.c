#include "supervisor/mcp/shape.h"

static const struct newer_member {
	const char *name;
	enum era_feature needs;
} newer[] = {
    {"title", ERA_TITLE}, {"icons", ERA_ICONS}, {"_meta", ERA_TOOL_META}};

static bool
is_whole(const struct era_revision *rev)
{
	for (size_t i = 0; i < ARRAY_LEN(newer); i++)
		if (!era_has(rev, newer[i].needs))
			return false;
	return true;
}

/* What it has of its own, and that of its arguments (of a prompt). */
static void
strip(const struct era_revision *rev, json_t *item)
{
	json_t *argument;
	size_t k;

	for (size_t i = 0; i < ARRAY_LEN(newer); i++)
		if (!era_has(rev, newer[i].needs))
			(void)json_object_del(item, newer[i].name);
	json_array_foreach (json_object_get(item, "arguments"), k, argument)
		for (size_t i = 0; i < ARRAY_LEN(newer); i++)
			if (!era_has(rev, newer[i].needs))
				(void)json_object_del(argument, newer[i].name);
}

json_t *
shape_item(const struct era_revision *rev, json_t *item)
{
	json_t *out;

	if (is_whole(rev) || !json_is_object(item))
		return json_incref(item);
	out = json_copy(item);
	if (json_object_get(out, "arguments") != NULL)
		json_object_set_new(out, "arguments",
		    json_deep_copy(json_object_get(out, "arguments")));
	strip(rev, out);
	return out;
}

json_t *
shape_items(
    const struct era_revision *rev, const json_t *list, size_t from, size_t to)
{
	json_t *out = json_array();

	for (size_t i = from; i < to; i++)
		json_array_append_new(
		    out, shape_item(rev, json_array_get(list, i)));
	return out;
}

json_t *
shape_member(const struct era_revision *rev, json_t *result, const char *member)
{
	const json_t *list = json_object_get(result, member);
	json_t *out;

	if (is_whole(rev) || !json_is_array(list))
		return json_incref(result);
	out = json_copy(result);
	json_object_set_new(
	    out, member, shape_items(rev, list, 0, json_array_size(list)));
	return out;
}
