#include "supervisor/mcp/content.h"

#include "common/js.h"
#include "common/log.h"
#include "common/xmalloc.h"
#include "supervisor/mcp/base64.h"
#include "supervisor/mcp/offer.h"

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

static void
add_bytes(struct mcp_content *c, const char *kind, const void *data, size_t n,
    const char *type)
{
	AUTO(auto_free) char *text = base64_write(data, n);

	/* Long, and known to be UTF-8: it is not looked through for that. */
	json_array_append_new(c->blocks,
	    json_pack("{s:s, s:o, s:s}", "type", kind, "data",
		json_string_nocheck(text), "mimeType", type));
}

void
mcp_content_image(
    struct mcp_content *c, const void *data, size_t n, const char *type)
{
	add_bytes(c, "image", data, n, type);
}

void
mcp_content_audio(
    struct mcp_content *c, const void *data, size_t n, const char *type)
{
	add_bytes(c, "audio", data, n, type);
}

void
mcp_content_resource(struct mcp_content *c, json_t *resource)
{
	json_array_append_new(c->blocks,
	    json_pack("{s:s, s:o}", "type", "resource", "resource", resource));
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

/* ---- in the form of a revision */

/* What it says in place of a block that the revision does not have. */
static char *
audio_note(const json_t *block)
{
	size_t n = json_string_length(json_object_get(block, "data"));

	return xasprintf("[audio of about %zu bytes, %s: not shown, the "
			 "protocol revision of this session has no audio]",
	    n / 4 * 3, js_text(block, "mimeType"));
}

static char *
link_note(const json_t *block)
{
	const char *name = js_text(block, "name");
	const char *about = js_text(block, "description");

	return xasprintf("%s%s%s%s%s", name, *name != '\0' ? ": " : "",
	    js_text(block, "uri"), *about != '\0' ? " - " : "", about);
}

static const struct newer {
	const char *kind;
	enum era_feature needs;
	char *(*note)(const json_t *block);
} newer[] = {
    {"audio", ERA_AUDIO, audio_note},
    {"resource_link", ERA_RESOURCE_LINK, link_note},
};

json_t *
content_block(const struct era_revision *rev, json_t *block)
{
	const char *kind = js_text(block, "type");

	for (size_t i = 0; i < ARRAY_LEN(newer); i++) {
		AUTO(auto_free) char *note = NULL;

		if (strcmp(kind, newer[i].kind) != 0 ||
		    era_has(rev, newer[i].needs))
			continue;
		note = newer[i].note(block);
		return json_pack("{s:s, s:s}", "type", "text", "text", note);
	}
	return json_incref(block);
}

static json_t *
blocks_for(const struct era_revision *rev, const struct mcp_content *content)
{
	json_t *out, *block;
	size_t i;

	if (era_has(rev, ERA_AUDIO) && era_has(rev, ERA_RESOURCE_LINK))
		return json_incref(content->blocks);
	out = json_array();
	json_array_foreach (content->blocks, i, block)
		json_array_append_new(out, content_block(rev, block));
	return out;
}

json_t *
content_tool_json(const struct era_revision *rev,
    const struct mcp_content *content, enum mcp_outcome outcome)
{
	json_t *structured =
	    era_has(rev, ERA_STRUCTURED) ? content->structured : NULL;

	return json_pack("{s:o, s:O*, s:O*, s:b}", "content",
	    blocks_for(rev, content), "structuredContent", structured, "_meta",
	    content->meta, "isError", outcome == MCP_TOOL_FAILED);
}

const char *
content_text(const struct mcp_content *content)
{
	json_t *block;
	size_t i;

	json_array_foreach (content->blocks, i, block)
		if (strcmp(js_text(block, "type"), "text") == 0)
			return js_text(block, "text");
	return "";
}
