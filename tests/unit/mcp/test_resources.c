/* resources/list, templates/list and read. */
#include "common/js.h"
#include "supervisor/mcp/list_page.h"
#include "supervisor/mcp/offer.h"
#include "supervisor/mcp/shape.h"
#include "tests/unit/mcp/call_ground.h"

#define ASK(method, params)                                                    \
	"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"resources/" method         \
	"\",\"params\":" params "}"

static char *asked_cursor, *asked_uri;

static void
list_cb(struct mcp_call *c, const char *cursor, void *arg)
{
	(void)arg;
	asked_cursor = xstrdup(cursor == NULL ? "(none)" : cursor);
	mcp_call_answer(c,
	    json_pack(
		"{s:[{s:s, s:s}]}", "resources", "uri", "x://a", "name", "a"));
}

static void
read_cb(struct mcp_call *c, const char *uri, void *arg)
{
	(void)arg;
	asked_uri = xstrdup(uri);
	if (strcmp(uri, "x://a") != 0) {
		mcp_call_no_resource(c, uri);
		return;
	}
	mcp_call_answer(c,
	    json_pack(
		"{s:[{s:s, s:s}]}", "contents", "uri", uri, "text", "hello"));
}

static const struct mcp_resource_ops ops = {.list = list_cb, .read = read_cb};

static int
setup_resources(void **state)
{
	AUTO(auto_json)
	json_t *templates = json_pack(
	    "[{s:s, s:s}]", "uriTemplate", "x://{name}", "name", "any");
	struct ground *g;

	setup(state);
	g = *state;
	mcp_set_resources(g->m, templates, &ops, NULL);
	return 0;
}

static int
teardown_resources(void **state)
{
	free(asked_cursor);
	free(asked_uri);
	asked_cursor = asked_uri = NULL;
	return teardown(state);
}

static void
expect_result(struct ground *g, const char *body, const char *want)
{
	struct fake_answer a;

	fake_post(g->m, &g->client, body, &a);
	fake_expect(&a, 200, 0);
	fake_expect_has(a.body, want);
	fake_clear(&a);
}

static void
expect_error(struct ground *g, const char *body, int code, const char *want)
{
	struct fake_answer a;

	fake_post(g->m, &g->client, body, &a);
	fake_expect(&a, 200, code);
	fake_expect_has(a.body, want);
	fake_clear(&a);
}

TEST(the_offer_lists_what_there_is)
{
	expect_result(*state, ASK("list", "{}"),
	    "\"result\":{\"resources\":[{\"uri\":\"x://a\",\"name\":\"a\"}]}");
	assert_string_equal(asked_cursor, "(none)");
}

TEST(the_offer_gets_its_own_cursor_back)
{
	expect_result(
	    *state, ASK("list", "{\"cursor\":\"next please\"}"), "resources");
	assert_string_equal(asked_cursor, "next please");
}

TEST(an_empty_cursor_is_none)
{
	expect_result(*state, ASK("list", "{\"cursor\":\"\"}"), "resources");
	assert_string_equal(asked_cursor, "(none)");
}

TEST(a_cursor_is_text)
{
	expect_error(*state, ASK("list", "{\"cursor\":7}"), MCP_INVALID_PARAMS,
	    "params.cursor");
	expect_error(*state, ASK("list", "{\"cursor\":\"\\u0000\"}"),
	    MCP_INVALID_PARAMS, "params.cursor");
	assert_null(asked_cursor);
}

TEST(templates_are_listed)
{
	expect_result(*state, ASK("templates/list", "{}"),
	    "\"result\":{\"resourceTemplates\":[{\"uriTemplate\":\"x://{name}\""
	    ",\"name\":\"any\"}]}");
	expect_error(*state, ASK("templates/list", "{\"cursor\":\"x\"}"),
	    MCP_INVALID_PARAMS, "unknown cursor");
}

TEST(many_templates_come_in_pages)
{
	struct ground *g = *state;
	AUTO(auto_json) json_t *many = json_array();

	for (int i = 0; i <= LIST_PAGE_LEN; i++)
		json_array_append_new(many,
		    json_pack(
			"{s:o}", "uriTemplate", json_sprintf("x://%d/{y}", i)));
	mcp_set_resources(g->m, many, &ops, NULL);
	expect_result(g, ASK("templates/list", "{}"), "\"nextCursor\":\"1\"");
	expect_result(g, ASK("templates/list", "{\"cursor\":\"1\"}"),
	    "[{\"uriTemplate\":\"x://100/{y}\"}]}");
}

TEST(a_server_may_have_no_templates)
{
	struct ground *g = *state;

	mcp_set_resources(g->m, NULL, &ops, NULL);
	expect_result(
	    g, ASK("templates/list", "{}"), "{\"resourceTemplates\":[]}");
}

TEST(a_resource_is_read)
{
	expect_result(*state, ASK("read", "{\"uri\":\"x://a\"}"),
	    "\"result\":{\"contents\":[{\"uri\":\"x://a\",\"text\":"
	    "\"hello\"}]}");
}

TEST(what_is_not_there_is_named)
{
	expect_error(*state, ASK("read", "{\"uri\":\"x://b\"}"), -32002,
	    "\"data\":{\"uri\":\"x://b\"}");
}

TEST(an_address_is_text)
{
	static const char *const bodies[] = {ASK("read", "{}"),
	    ASK("read", "{\"uri\":7}"), ASK("read", "{\"uri\":\"\"}"),
	    ASK("read", "{\"uri\":null}"),
	    ASK("read", "{\"uri\":\"x://a\\u0000b\"}")};

	for (size_t i = 0; i < ARRAY_LEN(bodies); i++)
		expect_error(
		    *state, bodies[i], MCP_INVALID_PARAMS, "params.uri");
	assert_null(asked_uri);
}

TEST(without_resources_there_are_no_methods)
{
	struct mcp *m = fake_server();
	char *session = fake_session(m);
	struct fake_client c = fake_client(session);

	fake_ask(m, &c, ASK("list", "{}"), 200, MCP_METHOD_NOT_FOUND);
	fake_ask(m, &c, ASK("templates/list", "{}"), 200, MCP_METHOD_NOT_FOUND);
	free(session);
	mcp_free(m);
}

TEST(initialize_announces_resources)
{
	struct ground *g = *state;
	struct fake_client c = fake_client(NULL);
	struct fake_answer a;

	fake_post(g->m, &c, FAKE_INITIALIZE("2025-11-25"), &a);
	fake_expect_has(a.body,
	    "\"capabilities\":{\"tools\":{},\"resources\":{},\"logging\":{}}");
	fake_clear(&a);
}

TEST(members_are_left_out_before_their_revision)
{
	AUTO(auto_json)
	json_t *result = json_loads(
	    "{\"resources\":[{\"uri\":\"x://a\",\"name\":\"a\",\"title\":\"A\","
	    "\"icons\":[],\"_meta\":{}}],\"nextCursor\":\"n\"}",
	    0, NULL);
	AUTO(auto_json)
	json_t *old = shape_member(&era_table[0], result, "resources");
	AUTO(auto_json)
	json_t *mid = shape_member(&era_table[2], result, "resources");
	AUTO(auto_json)
	json_t *now = shape_member(&era_table[3], result, "resources");
	AUTO(auto_free) char *old_text = js_dump(old);
	AUTO(auto_free) char *mid_text = js_dump(mid);

	assert_string_equal(old_text,
	    "{\"resources\":[{\"uri\":\"x://a\",\"name\":\"a\"}],"
	    "\"nextCursor\":\"n\"}");
	fake_expect_has(mid_text, "\"title\":\"A\",\"_meta\":{}}");
	assert_ptr_equal(now, result);
}

TEST_MAIN(setup_resources, teardown_resources)
