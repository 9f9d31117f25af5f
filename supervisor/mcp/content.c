#include "supervisor/mcp/content.h"

#include "common/js.h"
#include "common/log.h"
#include "common/xmalloc.h"

struct mcp_content {
	json_t *blocks;     /* an array of ContentBlock */
	json_t *structured; /* an object, or NULL */
};

struct mcp_content *
mcp_content_new(void)
{
	struct mcp_content *c = xcalloc(1, sizeof(*c));

	c->blocks = json_array();
	return c;
}

void
mcp_content_free(struct mcp_content *c)
{
	if (c == NULL)
		return;
	json_decref(c->blocks);
	json_decref(c->structured);
	free(c);
}

void
mcp_content_text(struct mcp_content *c, const char *text, size_t n)
{
	json_t *block = json_object();

	json_object_set_new(block, "type", json_string("text"));
	json_object_set_new(block, "text", js_string_bytes(text, n, NULL));
	json_array_append_new(c->blocks, block);
}

void
mcp_content_structured(struct mcp_content *c, json_t *object)
{
	json_decref(c->structured);
	c->structured = NULL;
	if (json_is_object(object)) {
		c->structured = object;
		return;
	}
	log_error("structured content of a tool is not an object");
	json_decref(object);
}

char *
content_tool_result(const struct era_revision *rev,
    const struct mcp_content *content, enum mcp_outcome outcome)
{
	AUTO(auto_json) json_t *result = json_object();

	json_object_set(result, "content", content->blocks);
	if (content->structured != NULL && era_has(rev, ERA_STRUCTURED))
		json_object_set(
		    result, "structuredContent", content->structured);
	json_object_set_new(
	    result, "isError", json_boolean(outcome == MCP_TOOL_FAILED));
	return js_dump(result);
}
