#include "supervisor/mcp/registry.h"
#include "tests/unit/mcp/fake.h"
#include "tests/unit/test.h"

static int
setup(void **state)
{
	*state = registry_new();
	return 0;
}

static int
teardown(void **state)
{
	registry_free(*state);
	return fake_teardown(state);
}

/* The code of adding what this packs; the text holds part. */
static void
expect(struct registry *r, const char *text, int code, const char *part)
{
	json_t *definition = json_loads(text, 0, NULL);
	struct err e = {0};

	assert_non_null(definition);
	assert_int_equal(
	    registry_add(r, definition, fake_echo_cb, r, &e), code);
	if (code != 0)
		fake_expect_has(e.msg, part);
	json_decref(definition);
}

#define SCHEMA "\"inputSchema\":{\"type\":\"object\"}"
#define TOOL(name) "{\"name\":\"" name "\",\"description\":\"d\"," SCHEMA "}"

TEST(tools_are_found_by_their_exact_name)
{
	const struct registry_tool *t;

	expect(*state, TOOL("a"), 0, NULL);
	expect(*state, TOOL("A.b_c-1"), 0, NULL);
	t = registry_find(*state, "A.b_c-1");
	assert_non_null(t);
	assert_string_equal(t->name, "A.b_c-1");
	assert_ptr_equal(t->on_call, fake_echo_cb);
	assert_ptr_equal(t->arg, *state);
	assert_null(registry_find(*state, "a.b_c-1"));
	assert_null(registry_find(*state, ""));
}

static int
change(struct registry *r, const char *text, struct err *e)
{
	json_t *definition = json_loads(text, 0, NULL);
	int rc;

	assert_non_null(definition);
	rc = registry_change(r, definition, e);
	json_decref(definition);
	return rc;
}

TEST(a_tool_is_listed_as_it_was_changed)
{
	const struct era_revision *rev = era_find_served("2025-11-25");
	const struct registry_tool *t;
	struct err e;

	expect(*state, TOOL("a"), 0, NULL);
	expect(*state, TOOL("b"), 0, NULL);
	fake_expect_has(registry_list(*state, rev), "\"description\":\"d\"");
	assert_int_equal(
	    change(*state,
		"{\"name\":\"a\",\"description\":\"new\"," SCHEMA "}", &e),
	    0);
	fake_expect_has(registry_list(*state, rev), "\"description\":\"new\"");
	fake_expect_has(registry_list(*state, rev), "\"description\":\"d\"");
	t = registry_find(*state, "a");
	assert_non_null(t);
	assert_ptr_equal(t->on_call, fake_echo_cb);
	assert_int_equal(change(*state, TOOL("c"), &e), ERR_NOTFOUND);
	assert_int_equal(
	    change(*state,
		"{\"name\":\"a\",\"description\":\"x\",\"inputSchema\":"
		"{\"type\":\"object\",\"minItems\":-1}}",
		&e),
	    ERR_INVAL);
	fake_expect_has(e.msg, "tool a: inputSchema: minItems");
	fake_expect_has(registry_list(*state, rev), "\"description\":\"new\"");
}

#define OPEN                                                                   \
	"{\"name\":\"open\",\"description\":\"d\",\"inputSchema\":{\"type\":"  \
	"\"object\",\"properties\":{\"p\":{\"type\":\"string\",\"x-"           \
	"unlisted\":"                                                          \
	"{\"type\":[\"string\",\"boolean\"]}}},\"x-unlisted\":"                \
	"{\"additionalProperties\":false}}}"

static void
check(const struct registry *r, const char *arguments, const char *why)
{
	json_t *j = json_loads(arguments, 0, NULL);
	struct err e = {0};
	int rc = schema_check(registry_find(r, "open")->input, j, &e);

	assert_int_equal(rc, why == NULL ? 0 : ERR_INVAL);
	if (why != NULL)
		fake_expect_has(e.msg, why);
	json_decref(j);
}

TEST(what_is_unlisted_is_checked_and_not_listed)
{
	const struct era_revision *rev = era_find_served("2025-11-25");
	json_t *definition = json_loads(OPEN, 0, NULL);
	json_t *same = json_deep_copy(definition);
	struct err e;

	assert_int_equal(
	    registry_add(*state, definition, fake_echo_cb, NULL, &e), 0);
	assert_true(json_equal(definition, same)); /* it is the caller's */
	json_decref(definition);
	json_decref(same);
	assert_string_equal(registry_list(*state, rev),
	    "{\"tools\":[{\"name\":\"open\",\"description\":\"d\","
	    "\"inputSchema\":{\"type\":\"object\",\"properties\":{\"p\":"
	    "{\"type\":\"string\"}}}}]}");
	check(*state, "{\"p\":\"a\"}", NULL);
	check(*state, "{\"p\":true}", NULL);
	check(*state, "{\"p\":1}", "want a string or a boolean");
	check(*state, "{\"q\":1}", "unknown argument q; known: p");
}

TEST(definitions_that_cannot_be_used_are_refused)
{
	expect(*state, TOOL("twice"), 0, NULL);
	expect(*state, TOOL("twice"), ERR_INVAL, "twice");
	expect(*state, TOOL(""), ERR_INVAL, "1 to 64 characters");
	expect(*state, TOOL("a/b"), ERR_INVAL, "1 to 64 characters");
	expect(*state,
	    TOOL("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
		 "aaaaaaa"),
	    ERR_INVAL, "1 to 64 characters");
	expect(*state, "{" SCHEMA "}", ERR_INVAL, "name");
	expect(*state, "{\"name\":\"x\"," SCHEMA "}", ERR_INVAL, "description");
	expect(*state, "{\"name\":\"x\",\"description\":\"d\"}", ERR_INVAL,
	    "inputSchema");
	expect(*state,
	    "{\"name\":\"x\",\"description\":\"d\",\"inputSchema\":"
	    "{\"type\":\"string\"}}",
	    ERR_INVAL, "inputSchema");
	expect(*state,
	    "{\"name\":\"x\",\"description\":\"d\",\"inputSchema\":"
	    "{\"type\":\"object\",\"properties\":{\"p\":{\"type\":1}}}}",
	    ERR_INVAL, "inputSchema: p: type");
	expect(*state,
	    "{\"name\":\"x\",\"description\":\"d\"," SCHEMA
	    ",\"outputSchema\":{}}",
	    ERR_INVAL, "outputSchema");
	expect(*state,
	    "{\"name\":\"x\",\"description\":\"d\"," SCHEMA ",\"title\":1}",
	    ERR_INVAL, "title");
	expect(*state,
	    "{\"name\":\"x\",\"description\":\"d\"," SCHEMA
	    ",\"annotations\":[]}",
	    ERR_INVAL, "annotations");
}

TEST(the_number_of_tools_is_bounded)
{
	char text[200];

	for (int i = 0; i < REGISTRY_TOOLS_MAX; i++) {
		(void)snprintf(text, sizeof(text), TOOL("t%d"), i);
		expect(*state, text, 0, NULL);
	}
	expect(*state, TOOL("more"), ERR_LIMIT, "64 tools");
}

#define FULL                                                                   \
	"{\"x-ours\":1,\"_meta\":{\"m\":1},\"execution\":{},\"annotations\":"  \
	"{},\"outputSchema\":{\"type\":\"object\"}," SCHEMA                    \
	",\"icons\":[],\"description\":\"d\",\"title\":\"T\",\"name\":\"f\"}"

TEST(each_revision_gets_the_members_that_it_knows)
{
	static const char *const want[ERA_REVISIONS] = {
	    "{\"tools\":[{\"name\":\"f\",\"description\":\"d\"," SCHEMA "}]}",
	    "{\"tools\":[{\"name\":\"f\",\"description\":\"d\"," SCHEMA
	    ",\"annotations\":{}}]}",
	    "{\"tools\":[{\"name\":\"f\",\"title\":\"T\",\"description\":"
	    "\"d\"," SCHEMA ",\"outputSchema\":{\"type\":\"object\"},"
	    "\"annotations\":{},\"_meta\":{\"m\":1}}]}",
	    "{\"tools\":[{\"name\":\"f\",\"title\":\"T\",\"description\":\"d\","
	    "\"icons\":[]," SCHEMA ",\"outputSchema\":{\"type\":\"object\"},"
	    "\"annotations\":{},\"execution\":{},\"_meta\":{\"m\":1}}]}",
	    "{\"tools\":[{\"name\":\"f\",\"title\":\"T\",\"description\":\"d\","
	    "\"icons\":[]," SCHEMA ",\"outputSchema\":{\"type\":\"object\"},"
	    "\"annotations\":{},\"_meta\":{\"m\":1}}]}"};

	expect(*state, FULL, 0, NULL);
	for (size_t i = 0; i < ERA_REVISIONS; i++)
		assert_string_equal(
		    registry_list(*state, &era_table[i]), want[i]);
}

/* Other revisions know no such keyword. */
TEST(headers_are_asked_for_in_2026_07_28_alone)
{
#define LISTED(keyword)                                                        \
	"{\"name\":\"h\",\"description\":\"d\",\"inputSchema\":{\"type\":"     \
	"\"object\",\"properties\":{\"x-mcp-header\":{\"type\":\"object\","    \
	"\"properties\":{\"r\":{\"type\":\"string\"" keyword "}}}}}}"
	static const char with[] = LISTED(",\"x-mcp-header\":\"Region\"");
	char want[300];

	expect(*state, with, 0, NULL);
	for (size_t i = 0; i < ERA_REVISIONS; i++) {
		(void)snprintf(want, sizeof(want), "{\"tools\":[%s]}",
		    era_table[i].number < 20260728 ? LISTED("") : with);
		assert_string_equal(registry_list(*state, &era_table[i]), want);
	}
	expect(*state,
	    "{\"name\":\"x\",\"description\":\"d\",\"inputSchema\":{\"type\":"
	    "\"object\",\"properties\":{\"r\":{\"type\":\"number\","
	    "\"x-mcp-header\":\"R\"}}}}",
	    ERR_INVAL, "inputSchema: r: x-mcp-header");
}

TEST(the_list_keeps_the_order_and_shows_tools_added_later)
{
	const struct era_revision *rev = era_find_served("2025-11-25");

	assert_string_equal(registry_list(*state, rev), "{\"tools\":[]}");
	expect(*state, TOOL("z"), 0, NULL);
	expect(*state, TOOL("a"), 0, NULL);
	assert_string_equal(registry_list(*state, rev),
	    "{\"tools\":[{\"name\":\"z\",\"description\":\"d\"," SCHEMA
	    "},{\"name\":\"a\",\"description\":\"d\"," SCHEMA "}]}");
}

TEST(schemas_pass_through_as_they_are)
{
	static const char text[] =
	    "{\"name\":\"s\",\"description\":\"d\",\"inputSchema\":{"
	    "\"$schema\":\"https://json-schema.org/draft/2020-12/schema\","
	    "\"type\":\"object\",\"$defs\":{\"a\":{\"$anchor\":\"q\"}},"
	    "\"properties\":{\"p\":{\"$ref\":\"#/$defs/a\"}},"
	    "\"allOf\":[{}],\"if\":{},\"then\":{},\"else\":{}}}";
	char want[600];

	expect(*state, text, 0, NULL);
	(void)snprintf(want, sizeof(want), "{\"tools\":[%s]}", text);
	assert_string_equal(
	    registry_list(*state, era_find_served("2025-11-25")), want);
}

TEST_MAIN(setup, teardown)
