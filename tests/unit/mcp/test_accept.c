#include "supervisor/mcp/accept.h"
#include "tests/unit/test.h"

TEST(what_a_client_takes_is_read_leniently)
{
	static const struct {
		const char *accept;
		unsigned int forms;
	} want[] = {{NULL, ACCEPT_JSON}, {"", ACCEPT_JSON},
	    {"application/json", ACCEPT_JSON},
	    {"text/event-stream", ACCEPT_STREAM},
	    {"application/json, text/event-stream",
		ACCEPT_JSON | ACCEPT_STREAM},
	    {"text/event-stream;q=0.5 ,\tApplication/JSON ; q=1",
		ACCEPT_JSON | ACCEPT_STREAM},
	    {"*/*", ACCEPT_JSON}, {"text/html, */*;q=0.8", ACCEPT_JSON},
	    {"application/*", ACCEPT_JSON}, {"text/*", ACCEPT_STREAM}};

	for (size_t i = 0; i < ARRAY_LEN(want); i++)
		assert_int_equal(accept_forms(want[i].accept), want[i].forms);
}

TEST(other_types_and_weight_zero_are_not_taken)
{
	static const char *const none[] = {"text/html", "application/jsonx",
	    "application/json;q=0", "*/*; q=0.000", ",", ";", "application",
	    "application/json;q=0, text/html", " ; application/json"};

	for (size_t i = 0; i < ARRAY_LEN(none); i++)
		assert_int_equal(accept_forms(none[i]), 0);
	assert_int_equal(accept_forms("application/json;q=0.01"), ACCEPT_JSON);
}

TEST(only_json_is_a_content_type)
{
	assert_true(accept_is_json("application/json"));
	assert_true(accept_is_json("Application/JSON; charset=utf-8"));
	assert_true(accept_is_json(" application/json ;x"));
	assert_false(accept_is_json(NULL));
	assert_false(accept_is_json(""));
	assert_false(accept_is_json("text/plain"));
	assert_false(accept_is_json("application/json-rpc"));
	assert_false(accept_is_json("text/plain; application/json"));
}

TEST_MAIN(NULL, NULL)
