#include "supervisor/mcp/can.h"

#include "common/js.h"
#include "common/xmalloc.h"
#include "tests/unit/test.h"

static const struct era_revision *
rev(const char *date)
{
	for (size_t i = 0; i < ERA_REVISIONS; i++)
		if (strcmp(era_table[i].date, date) == 0)
			return &era_table[i];
	return NULL;
}

static unsigned int
of(const char *text, const char *date)
{
	AUTO(auto_json)
	json_t *j = json_loads(text, JSON_DECODE_ANY, NULL);

	assert_non_null(j);
	return can_of(j, rev(date));
}

#define FORM (1u << MCP_CAN_ELICIT)
#define URL (1u << MCP_CAN_ELICIT_URL)
#define SAMPLE (1u << MCP_CAN_SAMPLE)
#define ROOTS (1u << MCP_CAN_LIST_ROOTS)
#define TASKS (1u << MCP_CAN_TASKS)
#define ALL                                                                    \
	"{\"elicitation\":{\"form\":{},\"url\":{}},\"sampling\":{},"           \
	"\"roots\":{\"listChanged\":true},"                                    \
	"\"extensions\":{\"io.modelcontextprotocol/tasks\":{}}}"

TEST(a_client_can_what_it_declares_and_its_revision_has)
{
	assert_int_equal(of(ALL, "2024-11-05"), SAMPLE | ROOTS);
	assert_int_equal(of(ALL, "2025-06-18"), FORM | SAMPLE | ROOTS);
	assert_int_equal(of(ALL, "2025-11-25"), FORM | URL | SAMPLE | ROOTS);
	assert_int_equal(
	    of(ALL, "2026-07-28"), FORM | URL | SAMPLE | ROOTS | TASKS);
}

TEST(elicitation_without_a_mode_means_forms)
{
	assert_int_equal(of("{\"elicitation\":{}}", "2025-11-25"), FORM);
	assert_int_equal(
	    of("{\"elicitation\":{\"form\":{}}}", "2025-11-25"), FORM);
	assert_int_equal(
	    of("{\"elicitation\":{\"url\":{}}}", "2025-11-25"), URL);
}

TEST(what_is_no_object_declares_nothing)
{
	static const char *const texts[] = {"7", "null", "[]", "{}",
	    "{\"elicitation\":true,\"sampling\":null,\"roots\":[]}",
	    "{\"extensions\":[],\"elicitation\":\"form\"}",
	    "{\"extensions\":{\"io.modelcontextprotocol/tasks\":1}}"};

	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		assert_int_equal(of(texts[i], "2026-07-28"), 0);
	assert_int_equal(can_of(NULL, rev("2026-07-28")), 0);
}

TEST(what_is_required_is_said_as_a_client_would_declare_it)
{
	static const struct {
		enum mcp_can what;
		const char *text;
	} cases[] = {{MCP_CAN_ELICIT, "{\"elicitation\":{}}"},
	    {MCP_CAN_ELICIT_URL, "{\"elicitation\":{\"url\":{}}}"},
	    {MCP_CAN_SAMPLE, "{\"sampling\":{}}"},
	    {MCP_CAN_LIST_ROOTS, "{\"roots\":{}}"},
	    {MCP_CAN_TASKS,
		"{\"extensions\":{\"io.modelcontextprotocol/tasks\":{}}}"}};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO(auto_json) json_t *j = can_required(cases[i].what);
		AUTO(auto_free) char *text = js_dump(j);

		assert_string_equal(text, cases[i].text);
		assert_int_equal(
		    can_of(j, rev("2026-07-28")), can_bit(cases[i].what));
	}
}

TEST_MAIN(NULL, NULL)
