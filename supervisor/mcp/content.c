#include "supervisor/mcp/content.h"

#include "common/js.h"
#include "common/log.h"

static json_t *
text_block(const char *text)
{
	json_t *block = json_object();

	json_object_set_new(block, "type", json_string("text"));
	json_object_set_new(
	    block, "text", js_string_bytes(text, strlen(text), NULL));
	return block;
}

char *
content_tool_result(const struct era_revision *rev, const char *text,
    json_t *structured, bool is_error)
{
	AUTO(auto_json) json_t *result = json_object();
	json_t *content = json_array();

	if (text != NULL)
		json_array_append_new(content, text_block(text));
	json_object_set_new(result, "content", content);
	if (structured != NULL && !json_is_object(structured))
		log_error("structured content of a tool is not an object");
	else if (structured != NULL && era_has(rev, ERA_STRUCTURED))
		json_object_set(result, "structuredContent", structured);
	json_object_set_new(result, "isError", json_boolean(is_error));
	return js_dump(result);
}
