/* What a tool answers with, in the form of each revision. */
#include "supervisor/mcp/content.h"

#include "common/js.h"
#include "common/xmalloc.h"
#include "supervisor/mcp/offer.h"
#include "tests/unit/test.h"

static const struct era_revision *
rev(const char *date)
{
	for (size_t i = 0; i < ERA_REVISIONS; i++)
		if (strcmp(era_table[i].date, date) == 0)
			return &era_table[i];
	return NULL;
}

/* The blocks as text; content is taken. */
static void
expect_blocks(struct mcp_content *c, const char *date, const char *want)
{
	AUTO(auto_json)
	json_t *j = content_tool_json(rev(date), c, MCP_TOOL_DONE);
	AUTO(auto_free) char *have = js_dump(json_object_get(j, "content"));

	assert_string_equal(have, want);
	mcp_content_free(c);
}

TEST(images_go_as_base64_to_every_revision)
{
	for (size_t i = 0; i < ERA_REVISIONS; i++) {
		struct mcp_content *c = mcp_content_new();

		mcp_content_image(c, "\0\xff", 2, "image/png");
		expect_blocks(c, era_table[i].date,
		    "[{\"type\":\"image\",\"data\":\"AP8=\",\"mimeType\":"
		    "\"image/png\"}]");
	}
}

TEST(audio_is_a_note_where_there_is_none)
{
	static const char block[] = "[{\"type\":\"audio\",\"data\":\"YWJj\","
				    "\"mimeType\":\"audio/wav\"}]";
	struct mcp_content *c = mcp_content_new();

	mcp_content_audio(c, "abc", 3, "audio/wav");
	expect_blocks(c, "2025-03-26", block);
	c = mcp_content_new();
	mcp_content_audio(c, "abc", 3, "audio/wav");
	expect_blocks(c, "2026-07-28", block);
	c = mcp_content_new();
	mcp_content_audio(c, "abc", 3, "audio/wav");
	expect_blocks(c, "2024-11-05",
	    "[{\"type\":\"text\",\"text\":\"[audio of about 3 bytes, "
	    "audio/wav: not shown, the protocol revision of this session has "
	    "no audio]\"}]");
}

TEST(resources_are_embedded_in_every_revision)
{
	for (size_t i = 0; i < ERA_REVISIONS; i++) {
		struct mcp_content *c = mcp_content_new();

		mcp_content_resource(c,
		    json_pack("{s:s, s:s, s:s}", "uri", "x://y", "mimeType",
			"text/plain", "text", "z"));
		expect_blocks(c, era_table[i].date,
		    "[{\"type\":\"resource\",\"resource\":{\"uri\":\"x://y\","
		    "\"mimeType\":\"text/plain\",\"text\":\"z\"}}]");
	}
}

TEST(blocks_stay_in_their_order)
{
	struct mcp_content *c = mcp_content_new();

	mcp_content_text(c, "a", 1);
	mcp_content_image(c, "b", 1, "image/png");
	mcp_content_text(c, "c", 1);
	expect_blocks(c, "2024-11-05",
	    "[{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"image\","
	    "\"data\":\"Yg==\",\"mimeType\":\"image/png\"},"
	    "{\"type\":\"text\",\"text\":\"c\"}]");
}

TEST(links_are_lines_of_text_where_there_are_none)
{
	AUTO(auto_json)
	json_t *link = json_pack("{s:s, s:s, s:s, s:s}", "type",
	    "resource_link", "uri", "x://y", "name", "y", "description", "why");
	AUTO(auto_json) json_t *old = content_block(rev("2025-03-26"), link);
	AUTO(auto_json) json_t *now = content_block(rev("2025-06-18"), link);

	assert_ptr_equal(now, link);
	assert_string_equal(js_text(old, "type"), "text");
	assert_string_equal(js_text(old, "text"), "y: x://y - why");
}

TEST(a_link_needs_nothing_but_its_address)
{
	AUTO(auto_json)
	json_t *link =
	    json_pack("{s:s, s:s}", "type", "resource_link", "uri", "x://y");
	AUTO(auto_json) json_t *old = content_block(rev("2024-11-05"), link);

	assert_string_equal(js_text(old, "text"), "x://y");
}

TEST_MAIN(NULL, NULL)
