/* content.c - tools that answer at once, with each kind of content */
#include "tests/conformance/fixtures.h"

#include "common/js.h"

/* A sound of one sample. */
static const unsigned char wav[] = {'R', 'I', 'F', 'F', 37, 0, 0, 0, 'W', 'A',
    'V', 'E', 'f', 'm', 't', ' ', 16, 0, 0, 0, 1, 0, 1, 0, 0x40, 0x1f, 0, 0,
    0x40, 0x1f, 0, 0, 1, 0, 8, 0, 'd', 'a', 't', 'a', 1, 0, 0, 0, 0x80};

/* As the suite's description of the scenario json-schema-2020-12 has it. */
static const char schema_2020_12[] =
    "{\"$schema\": \"https://json-schema.org/draft/2020-12/schema\","
    "\"type\": \"object\","
    "\"$defs\": {\"address\": {\"$anchor\": \"addressDef\","
    "  \"type\": \"object\", \"properties\": {"
    "    \"street\": {\"type\": \"string\"},"
    "    \"city\": {\"type\": \"string\"}}}},"
    "\"properties\": {\"name\": {\"type\": \"string\"},"
    "  \"address\": {\"$ref\": \"#/$defs/address\"},"
    "  \"contactMethod\": {\"type\": \"string\","
    "    \"enum\": [\"phone\", \"email\"]},"
    "  \"phone\": {\"type\": \"string\"},"
    "  \"email\": {\"type\": \"string\"}},"
    "\"allOf\": [{\"anyOf\": [{\"required\": [\"phone\"]},"
    "  {\"required\": [\"email\"]}]}],"
    "\"if\": {\"properties\": {\"contactMethod\": {\"const\": \"phone\"}},"
    "  \"required\": [\"contactMethod\"]},"
    "\"then\": {\"required\": [\"phone\"]},"
    "\"else\": {\"required\": [\"email\"]},"
    "\"additionalProperties\": false}";

static const char region_schema[] =
    "{\"type\": \"object\", \"required\": [\"region\"], \"properties\": {"
    "\"region\": {\"type\": \"string\", \"x-mcp-header\": \"Region\"}}}";

static void
on_simple_text(struct mcp_call *c, json_t *arguments, void *arg)
{
	(void)arguments;
	(void)arg;
	fixture_say(c, "This is a simple text response for testing.");
}

static void
on_error(struct mcp_call *c, json_t *arguments, void *arg)
{
	(void)arguments;
	(void)arg;
	fixture_fail(c, "This tool intentionally returns an error for testing");
}

static void
on_image(struct mcp_call *c, json_t *arguments, void *arg)
{
	struct mcp_content *content = mcp_content_new();

	(void)arguments;
	(void)arg;
	mcp_content_image(
	    content, fixture_png, sizeof(fixture_png), "image/png");
	mcp_call_result(c, content, MCP_TOOL_DONE);
}

static void
on_audio(struct mcp_call *c, json_t *arguments, void *arg)
{
	struct mcp_content *content = mcp_content_new();

	(void)arguments;
	(void)arg;
	mcp_content_audio(content, wav, sizeof(wav), "audio/wav");
	mcp_call_result(c, content, MCP_TOOL_DONE);
}

static void
on_embedded(struct mcp_call *c, json_t *arguments, void *arg)
{
	struct mcp_content *content = mcp_content_new();

	(void)arguments;
	(void)arg;
	mcp_content_resource(content,
	    json_pack("{s:s, s:s, s:s}", "uri", "test://embedded-resource",
		"mimeType", "text/plain", "text",
		"This is an embedded resource content."));
	mcp_call_result(c, content, MCP_TOOL_DONE);
}

static void
on_mixed(struct mcp_call *c, json_t *arguments, void *arg)
{
	static const char text[] = "Multiple content types test:";
	struct mcp_content *content = mcp_content_new();

	(void)arguments;
	(void)arg;
	mcp_content_text(content, text, strlen(text));
	mcp_content_image(
	    content, fixture_png, sizeof(fixture_png), "image/png");
	mcp_content_resource(content,
	    json_pack("{s:s, s:s, s:s}", "uri", "test://mixed-content-resource",
		"mimeType", "application/json", "text",
		"{\"test\":\"data\",\"value\":123}"));
	mcp_call_result(c, content, MCP_TOOL_DONE);
}

static void
on_region(struct mcp_call *c, json_t *arguments, void *arg)
{
	(void)arg;
	fixture_say(c, js_text(arguments, "region"));
}

static void
on_tool_change(struct mcp_call *c, json_t *arguments, void *arg)
{
	const struct fixtures *f = arg;

	(void)arguments;
	mcp_tools_changed(f->mcp);
	fixture_say(c, "the tools changed");
}

static void
on_prompt_change(struct mcp_call *c, json_t *arguments, void *arg)
{
	const struct fixtures *f = arg;

	(void)arguments;
	mcp_prompts_changed(f->mcp);
	fixture_say(c, "the prompts changed");
}

static const struct fixture_tool tools[] = {
    {"test_simple_text", "Answers a text", NULL, NULL, on_simple_text},
    {"test_image_content", "Answers an image", NULL, NULL, on_image},
    {"test_audio_content", "Answers a sound", NULL, NULL, on_audio},
    {"test_embedded_resource", "Answers a resource", NULL, NULL, on_embedded},
    {"test_multiple_content_types", "Answers a text, an image, a resource",
	NULL, NULL, on_mixed},
    {"test_error_handling", "Fails", NULL, NULL, on_error},
    {"json_schema_2020_12_tool", "Tool with JSON Schema 2020-12 features",
	schema_2020_12, NULL, on_simple_text},
    {"test_custom_header", "Answers its argument, which a header has, too",
	region_schema, NULL, on_region},
    {"test_trigger_tool_change", "Says that the list of tools is another", NULL,
	NULL, on_tool_change},
    {"test_trigger_prompt_change", "Says that the list of prompts is another",
	NULL, NULL, on_prompt_change},
};

void
content_fixtures(struct fixtures *f)
{
	fixture_add_tools(f, tools, ARRAY_LEN(tools));
}
