#include "supervisor/mcp/content.h"

#include "common/buf.h"
#include "common/exit.h"
#include "common/js.h"
#include "common/log.h"
#include "common/xmalloc.h"

/* Blocks are kept as the text that is sent: a tree of them would be made only
 * to be written. */
struct mcp_content {
	struct buf blocks;  /* of ContentBlock, with commas between */
	json_t *structured; /* an object, or NULL */
	json_t *meta;       /* likewise */
};

struct mcp_content *
mcp_content_new(void)
{
	struct mcp_content *c = xcalloc(1, sizeof(*c));

	buf_init(&c->blocks, 0); /* the tool's own limits hold */
	return c;
}

void
mcp_content_free(struct mcp_content *c)
{
	if (c == NULL)
		return;
	buf_clear(&c->blocks);
	json_decref(c->structured);
	json_decref(c->meta);
	free(c);
}

static void
add_bytes(struct buf *b, const void *p, size_t n)
{
	if (n > 0 && buf_append(b, p, n) != 0)
		fatal(EXIT_MEMORY, "out of memory (content of %zu bytes)", n);
}

static void
add(struct buf *b, const char *text)
{
	add_bytes(b, text, strlen(text));
}

void
mcp_content_text(struct mcp_content *c, const char *text, size_t n)
{
	if (buf_len(&c->blocks) > 0)
		add(&c->blocks, ",");
	add(&c->blocks, "{\"type\":\"text\",\"text\":");
	js_append_text(&c->blocks, text, n);
	add(&c->blocks, "}");
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
	struct buf b;

	buf_init(&b, 0);
	add(&b, "{\"content\":[");
	add_bytes(&b, buf_data(&content->blocks), buf_len(&content->blocks));
	add(&b, "]");
	if (content->structured != NULL && era_has(rev, ERA_STRUCTURED)) {
		add(&b, ",\"structuredContent\":");
		js_append(&b, content->structured);
	}
	if (content->meta != NULL) {
		add(&b, ",\"_meta\":");
		js_append(&b, content->meta);
	}
	add(&b,
	    outcome == MCP_TOOL_FAILED ? ",\"isError\":true}" :
					 ",\"isError\":false}");
	add_bytes(&b, "", 1);
	return (char *)b.mem; /* nothing was consumed */
}
