#include "supervisor/mcp/content.h"

#include "common/js.h"
#include "common/log.h"
#include "common/xmalloc.h"

struct mcp_content {
	json_t *blocks;     /* an array of ContentBlock */
	json_t *structured; /* an object, or NULL */
	json_t *meta;       /* likewise */
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
	json_decref(c->meta);
	free(c);
}

void
mcp_content_text(struct mcp_content *c, const char *text, size_t n)
{
	json_array_append_new(c->blocks,
	    json_pack("{s:s, s:o}", "type", "text", "text",
		js_string_bytes(text, n, NULL)));
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

void
mcp_content_meta(struct mcp_content *c, const char *key, json_t *object)
{
	if (c->meta == NULL)
		c->meta = json_object();
	json_object_set_new(c->meta, key, object);
}

char *
content_tool_result(const struct era_revision *rev,
    const struct mcp_content *content, enum mcp_outcome outcome)
{
	json_t *structured =
	    era_has(rev, ERA_STRUCTURED) ? content->structured : NULL;
	AUTO(auto_json)
	json_t *result = json_pack("{s:O, s:O*, s:O*, s:b}", "content",
	    content->blocks, "structuredContent", structured, "_meta",
	    content->meta, "isError", outcome == MCP_TOOL_FAILED);

	return js_dump(result);
}
