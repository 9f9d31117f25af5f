#include "supervisor/mcp/era.h"
#include "supervisor/mcp/mcp.h"
#include "tests/unit/test.h"

TEST(the_table_is_in_order_and_its_numbers_are_its_dates)
{
	for (size_t i = 0; i < ERA_REVISIONS; i++) {
		const char *d = era_table[i].date;
		unsigned long n = strtoul(d, NULL, 10) * 10000 +
		    strtoul(d + 5, NULL, 10) * 100 + strtoul(d + 8, NULL, 10);

		assert_int_equal(era_table[i].number, n);
		if (i > 0)
			assert_true(strcmp(era_table[i - 1].date, d) < 0);
	}
}

TEST(a_served_revision_is_negotiated_and_others_get_the_newest)
{
	static const char *const legacy[] = {
	    "2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"};
	static const char *const others[] = {
	    "1999-01-01", "2026-07-28", "2024-11-05 junk", "", "x"};

	for (size_t i = 0; i < ARRAY_LEN(legacy); i++)
		assert_string_equal(era_negotiate(legacy[i])->date, legacy[i]);
	for (size_t i = 0; i < ARRAY_LEN(others); i++)
		assert_string_equal(
		    era_negotiate(others[i])->date, "2025-11-25");
}

TEST(only_served_revisions_are_found)
{
	for (size_t i = 0; i < ERA_REVISIONS; i++) {
		assert_ptr_equal(
		    era_find_served(era_table[i].date), &era_table[i]);
		assert_ptr_equal(
		    era_find_number(era_table[i].number), &era_table[i]);
	}
	assert_null(era_find_served("2025-11-25 junk"));
	assert_null(era_find_served(""));
	assert_null(era_find_number(0));
}

TEST(each_kind_has_its_dates)
{
	json_t *legacy = era_dates(ERA_KIND_LEGACY);
	json_t *modern = era_dates(ERA_KIND_MODERN);
	char *text = json_dumps(legacy, JSON_COMPACT);

	assert_string_equal(text,
	    "[\"2024-11-05\",\"2025-03-26\",\"2025-06-18\","
	    "\"2025-11-25\"]");
	free(text);
	text = json_dumps(modern, JSON_COMPACT);
	assert_string_equal(text, "[\"2026-07-28\"]");
	free(text);
	json_decref(legacy);
	json_decref(modern);
}

TEST(modern_headers_are_dates_from_2026_07_28_on)
{
	assert_true(era_is_modern("2026-07-28"));
	assert_true(era_is_modern("2027-01-01"));
	assert_false(era_is_modern("2025-11-25"));
	assert_false(era_is_modern("2026-07-27"));
	assert_false(era_is_modern(NULL));
	assert_false(era_is_modern(""));
	assert_false(era_is_modern("2026-07-28 junk"));
	assert_false(era_is_modern("9999-aa-bb"));
}

static struct era_answer
decide(
    const char *method, const char *params, const char *id, const char *header)
{
	json_t *p = params == NULL ? NULL : json_loads(params, 0, NULL);
	struct era_question q = {method, p, id, header};
	struct era_answer a;

	era_decide(&q, &a);
	json_decref(p);
	return a;
}

#define META "{\"_meta\":{\"" ERA_CLAIM "\":\"2026-07-28\"}}"

TEST(messages_without_a_modern_sign_are_legacy)
{
	assert_int_equal(
	    decide("initialize", "{}", "1", NULL).branch, ERA_INITIALIZE);
	assert_int_equal(decide("initialize", "{}", "1", "1999-01-01").branch,
	    ERA_INITIALIZE);
	assert_int_equal(
	    decide("initialize", "{}", NULL, NULL).branch, ERA_LEGACY);
	assert_int_equal(
	    decide("ping", NULL, "1", "2025-11-25").branch, ERA_LEGACY);
	assert_int_equal(
	    decide("ping", "{\"_meta\":7}", "1", NULL).branch, ERA_LEGACY);
	assert_int_equal(decide(NULL, NULL, NULL, NULL).branch, ERA_LEGACY);
}

TEST(a_claim_in_the_body_is_modern_whatever_else_there_is)
{
	assert_int_equal(
	    decide("server/discover", META, "1", "2026-07-28").branch,
	    ERA_MODERN);
	assert_int_equal(
	    decide("tools/list", META, "1", NULL).branch, ERA_MODERN);
	assert_int_equal(
	    decide("tools/list", META, "1", "2025-11-25").branch, ERA_MODERN);
	assert_int_equal(
	    decide("initialize", META, "1", NULL).branch, ERA_MODERN);
	assert_int_equal(
	    decide("notifications/x", META, NULL, NULL).branch, ERA_MODERN);
	assert_int_equal(
	    decide("ping", "{\"_meta\":{\"" ERA_CLAIM "\":7}}", "1", NULL)
		.branch,
	    ERA_MODERN);
	assert_int_equal(
	    decide("ping", "{\"_meta\":{\"" ERA_CLAIM "\":null}}", "1", NULL)
		.branch,
	    ERA_MODERN);
}

TEST(a_modern_header_without_a_claim_lets_notifications_alone_pass)
{
	struct era_answer a = decide("tools/list", "{}", "1", "2026-07-28");

	assert_int_equal(a.branch, ERA_REFUSED);
	assert_int_equal(a.code, MCP_INVALID_PARAMS);
	assert_non_null(strstr(a.message, ERA_CLAIM));
	a = decide("tools/list", NULL, "1", "2027-01-01");
	assert_int_equal(a.code, MCP_INVALID_PARAMS);
	assert_int_equal(
	    decide("notifications/x", "{}", NULL, "2026-07-28").branch,
	    ERA_MODERN);
	assert_int_equal(
	    decide("initialize", "{}", NULL, "2026-07-28").branch, ERA_MODERN);
	a = decide(NULL, NULL, NULL, "2026-07-28");
	assert_int_equal(a.branch, ERA_REFUSED);
	assert_int_equal(a.code, MCP_INVALID_REQUEST);
}

TEST(initialize_under_a_modern_header_is_a_mismatch)
{
	struct era_answer a = decide("initialize", "{}", "1", "2026-07-28");

	assert_int_equal(a.branch, ERA_REFUSED);
	assert_int_equal(a.code, MCP_HEADER_MISMATCH);
}

TEST_MAIN(NULL, NULL)
