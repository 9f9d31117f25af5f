/* What a token says, and for whom it is good. */
#include "supervisor/front/claims.h"
#include "tests/unit/test.h"

#define NOW_MS INT64_C(1000000000)
#define GOOD                                                                   \
	"\"iss\":\"https://login.example\",\"aud\":\"https://mcp.example\","   \
	"\"sub\":\"alice\",\"exp\":1000100"

static struct conf *conf;

static int
setup(void **state)
{
	static const char *const settings[][2] = {
	    {"OAUTH_ISSUER", "https://login.example"},
	    {"OAUTH_AUDIENCE", "https://mcp.example"},
	    {"OAUTH_METRICS_SCOPE", ""}};
	struct err e;

	(void)state;
	conf = conf_new();
	for (size_t i = 0; i < ARRAY_LEN(settings); i++)
		if (conf_set(conf, settings[i][0], settings[i][1], &e) != 0)
			return -1;
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	conf_free(conf);
	return 0;
}

static const char *
judge(const char *text, struct claims *out)
{
	json_t *o = json_loads(text, 0, NULL);
	const char *why;

	assert_non_null(o);
	why = claims_read(conf, o, NOW_MS, out);
	json_decref(o);
	return why;
}

TEST(what_is_good_is_taken)
{
	struct claims c;

	assert_null(judge("{" GOOD ",\"tenant\":\"acme\",\"scope\":\"openid "
			  "sandbox\",\"nbf\":1000000,\"iat\":999999.5}",
	    &c));
	assert_string_equal(c.subject, "alice");
	assert_string_equal(c.tenant, "acme");
	assert_int_equal(c.roles, 1u << PRINCIPAL_USER);
	assert_int_equal(c.until_ms, (1000100 + 30) * INT64_C(1000));
}

TEST(what_is_wrong_is_named)
{
	static const struct {
		const char *text, *why;
	} cases[] = {
	    {"{}", "iss"},
	    {"{\"iss\":\"https://login.example/\"}", "iss"},
	    {"{\"iss\":[\"https://login.example\"]}", "iss"},
	    {"{\"iss\":\"https://login.example\"}", "aud"},
	    {"{\"iss\":\"https://login.example\",\"aud\":"
	     "\"https://mcp.example/\"}",
		"aud"},
	    {"{\"iss\":\"https://login.example\",\"aud\":[]}", "aud"},
	    {"{\"iss\":\"https://login.example\",\"aud\":"
	     "[[\"https://mcp.example\"]]}",
		"aud"},
	    {"{\"iss\":\"https://login.example\",\"aud\":"
	     "{\"https://mcp.example\":1}}",
		"aud"},
	    {"{\"iss\":\"https://login.example\",\"aud\":[\"x\","
	     "\"https://mcp.example\"]}",
		"exp"},
	    {"{" GOOD ",\"exp\":\"1000100\"}", "exp"},
	    {"{" GOOD ",\"exp\":-1}", "exp"},
	    {"{" GOOD ",\"exp\":1e300}", "exp"},
	    {"{" GOOD ",\"exp\":null}", "exp"},
	    {"{" GOOD ",\"exp\":999970}", "expired"},
	    {"{" GOOD ",\"nbf\":1000031}", "nbf"},
	    {"{" GOOD ",\"nbf\":\"1\"}", "nbf"},
	    {"{" GOOD ",\"iat\":1000031}", "iat"},
	    {"{" GOOD ",\"iat\":true}", "iat"},
	    {"{" GOOD ",\"sub\":\"\"}", "sub"},
	    {"{" GOOD ",\"sub\":5}", "sub"},
	    {"{" GOOD ",\"tenant\":7}", "tenant"},
	    {"{" GOOD ",\"tenant\":\"\"}", "tenant"},
	    {"{" GOOD ",\"tenant\":[\"acme\"]}", "tenant"},
	    {"{" GOOD ",\"tenant\":\"a1234567890123456789012345678901234567890"
	     "\"}",
		"tenant"},
	};
	struct claims c;

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const char *why = judge(cases[i].text, &c);

		if (why == NULL || strstr(why, cases[i].why) == NULL)
			fail_msg("%s: %s", cases[i].text, why);
	}
}

TEST(the_skew_is_allowed_for_and_no_more)
{
	struct claims c;

	assert_null(judge("{" GOOD ",\"exp\":999971,\"nbf\":1000030,"
			  "\"iat\":1000030}",
	    &c));
}

TEST(scopes_are_whole_words)
{
	static const struct {
		const char *text;
		unsigned int roles;
	} cases[] = {
	    {"{" GOOD "}", 0},
	    {"{" GOOD ",\"scope\":\"\"}", 0},
	    {"{" GOOD ",\"scope\":\"sandboxes sandbo sandbox:\"}", 0},
	    {"{" GOOD ",\"scope\":[\"sandbox\"]}", 0},
	    {"{" GOOD ",\"scope\":\"  sandbox  \"}", 1u << PRINCIPAL_USER},
	    {"{" GOOD ",\"scp\":\"sandbox\"}", 1u << PRINCIPAL_USER},
	    {"{" GOOD ",\"scp\":[\"a\",1,\"sandbox\"]}", 1u << PRINCIPAL_USER},
	    {"{" GOOD ",\"scope\":\"sandbox sandbox:admin\"}",
		1u << PRINCIPAL_USER | 1u << PRINCIPAL_ADMIN},
	    /* Its scope is empty: nobody has it. */
	    {"{" GOOD ",\"scope\":\"sandbox:metrics  \"}", 0},
	};
	struct claims c;

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		assert_null(judge(cases[i].text, &c));
		if (c.roles != cases[i].roles)
			fail_msg("%s: %u", cases[i].text, c.roles);
	}
}

int
main(void)
{
	return tests_run(NULL, NULL, setup, teardown);
}
