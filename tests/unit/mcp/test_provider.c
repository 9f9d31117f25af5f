#include "supervisor/mcp/provider.h"
#include "tests/unit/test.h"

/* Tables alone: nothing of theirs is called. */

static const struct mcp_method plain_methods[] = {
    {"ping", 20241105, 20251125, NULL},
    {"later", 20251125, 0, NULL},
};
static const struct mcp_notice plain_notices[] = {
    {"notifications/old", 20241105, 20250618, NULL},
};
static const struct mcp_method things_methods[] = {
    {"things/list", 20241105, 0, NULL},
};
static const struct mcp_provider plain = {
    .methods = plain_methods,
    .nmethods = ARRAY_LEN(plain_methods),
    .notices = plain_notices,
    .nnotices = ARRAY_LEN(plain_notices),
};
static const struct mcp_provider things = {
    .methods = things_methods,
    .nmethods = ARRAY_LEN(things_methods),
};
static const struct mcp_provider *const all[] = {&things, &plain};
static const struct mcp server = {
    .providers = all, .nproviders = ARRAY_LEN(all)};

static const struct era_revision *
rev(const char *date)
{
	for (size_t i = 0; i < ERA_REVISIONS; i++)
		if (strcmp(era_table[i].date, date) == 0)
			return &era_table[i];
	return NULL;
}

TEST(a_method_is_found_by_its_whole_name)
{
	const struct era_revision *r = rev("2025-06-18");

	assert_ptr_equal(
	    provider_method(&server, "things/list", r), &things_methods[0]);
	assert_ptr_equal(
	    provider_method(&server, "ping", r), &plain_methods[0]);
	assert_null(provider_method(&server, "things/", r));
	assert_null(provider_method(&server, "list", r));
	assert_null(provider_method(&server, "Ping", r));
	assert_null(provider_method(&server, "", r));
	assert_null(provider_method(&server, "notifications/old", r));
}

TEST(a_method_belongs_to_revisions_from_its_first_to_its_last)
{
	assert_null(provider_method(&server, "later", rev("2025-06-18")));
	assert_non_null(provider_method(&server, "later", rev("2025-11-25")));
	assert_non_null(provider_method(&server, "later", rev("2026-07-28")));
	assert_non_null(provider_method(&server, "ping", rev("2024-11-05")));
	assert_non_null(provider_method(&server, "ping", rev("2025-11-25")));
	assert_null(provider_method(&server, "ping", rev("2026-07-28")));
	/* initialize is looked up before there is a revision */
	assert_non_null(provider_method(&server, "later", NULL));
}

TEST(notifications_have_revisions_too)
{
	static const char name[] = "notifications/old";

	assert_non_null(provider_notice(&server, name, rev("2025-06-18")));
	assert_null(provider_notice(&server, name, rev("2025-11-25")));
	assert_null(provider_notice(&server, "ping", rev("2025-06-18")));
}

TEST_MAIN(NULL, NULL)
