#include "supervisor/mcp/provider.h"

#include "common/js.h"
#include "common/xmalloc.h"
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
static bool offered;

static bool
is_offered(const struct mcp *m)
{
	(void)m;
	return offered;
}

static void
announce(
    const struct mcp *m, const struct era_revision *r, json_t *capabilities)
{
	json_object_set_new(capabilities, "things",
	    r->number >= 20250618 ? provider_list_capability(m) :
				    json_object());
}

static const struct mcp_provider plain = {
    .methods = plain_methods,
    .nmethods = ARRAY_LEN(plain_methods),
    .notices = plain_notices,
    .nnotices = ARRAY_LEN(plain_notices),
};
static const struct mcp_provider things = {
    .is_offered = is_offered,
    .announce = announce,
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

	offered = true;
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

static void
expect_capabilities(const struct mcp *m, const char *date, const char *text)
{
	AUTO(auto_json) json_t *j = provider_capabilities(m, rev(date));
	AUTO(auto_free) char *have = js_dump(j);

	assert_string_equal(have, text);
}

TEST(what_is_not_offered_has_no_method_and_no_capability)
{
	offered = false;
	assert_null(provider_method(&server, "things/list", rev("2025-06-18")));
	expect_capabilities(&server, "2025-06-18", "{}");
	offered = true;
	assert_non_null(
	    provider_method(&server, "things/list", rev("2025-06-18")));
	expect_capabilities(&server, "2025-06-18", "{\"things\":{}}");
}

TEST(a_list_that_may_change_says_so)
{
	struct mcp changing = server;

	offered = true;
	changing.list_changes = true;
	expect_capabilities(
	    &changing, "2025-06-18", "{\"things\":{\"listChanged\":true}}");
	expect_capabilities(&changing, "2025-03-26", "{\"things\":{}}");
}

TEST_MAIN(NULL, NULL)
