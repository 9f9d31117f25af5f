/* Tokens of an authorization server at the front's door: who is let in, what
 * waits, what ends. */
#include "tests/unit/front/fixture.h"

#include "supervisor/front/oauth.h"
#include "tests/unit/front/jwt_ground.h"

#define ISSUER "https://login.example"
#define AUDIENCE "https://mcp.example/mcp"

static struct ipc_chan *keys; /* mcp-sandboxd-keys' end */
static unsigned int wanted;

static int
on_keys_wanted(void *arg, const struct msg_keys_wanted *m, struct err *e)
{
	(void)arg;
	(void)m;
	(void)e;
	wanted++;
	return 0;
}

static int
message_cb(struct ipc_chan *c, struct ipc_msg *m, void *arg, struct err *e)
{
	static const struct msg_front_to_keys handlers = {
	    .on_keys_wanted = on_keys_wanted};

	(void)c;
	return msg_dispatch_front_to_keys(&handlers, m, arg, e);
}

static void
close_cb(struct ipc_chan *c, const struct err *why, void *arg)
{
	(void)why;
	(void)arg;
	ipc_chan_free(c);
	keys = NULL;
}

static void
send_keys(void)
{
	AUTO(auto_free) char *text = ground_jwks("");

	msg_send_keys(
	    keys, &(struct msg_keys){.jwks = {(uint8_t *)text, strlen(text)}});
}

static int
setup(void **state)
{
	static const char *const settings[] = {"OAUTH_ISSUER", ISSUER,
	    "OAUTH_AUDIENCE", AUDIENCE, "LIMIT_LOOPBACK", "true",
	    "FAILED_LOGINS_PER_MINUTE_PER_ADDRESS", "5", NULL};
	static const struct ipc_ops ops = {message_cb, close_cb, NULL};
	int fds[2];

	(void)state;
	ground_make_keys();
	fixture_open(settings);
	wanted = 0;
	assert_int_equal(
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
	keys = ipc_chan_new(fx.base, fds[0], "keys", &ops, NULL);
	oauth_attach(fx.front->oauth, fds[1]);
	return 0;
}

static int
teardown(void **state)
{
	ipc_chan_free(keys);
	keys = NULL;
	return fixture_teardown(state);
}

static int
setup_acme(void **state)
{
	struct tenant *n;
	struct err e;

	(void)setup(state);
	assert_int_equal(
	    tenant_add(core_tenants(fx.core), "acme", NULL, NULL, &n, &e), 0);
	return 0;
}

static char *
claims_of(const char *sub, const char *more)
{
	return xasprintf("{\"iss\":\"" ISSUER "\",\"aud\":\"" AUDIENCE "\","
			 "\"sub\":\"%s\",\"exp\":%lld%s}",
	    sub, (long long)clock_wall_ms() / 1000 + 600, more);
}

static char *
header_of(const char *sub, const char *more)
{
	AUTO(auto_free) char *claims = claims_of(sub, more);
	AUTO(auto_free) char *token = ground_token(JWT_EDDSA, claims);

	return xasprintf("Authorization: Bearer %s\r\n", token);
}

static void
some_turns(void)
{
	for (int i = 0; i < 20; i++)
		raw_turn(fx.base);
}

static void
send_whoami(const char *header)
{
	buf_consume(&fx.c.in, buf_len(&fx.c.in));
	fixture_send("GET", "/api/v1/whoami", header, "");
}

static void
expect_whoami(const char *header, int status)
{
	fixture_expect("GET", "/api/v1/whoami", header, status);
}

#define ACME ",\"tenant\":\"acme\",\"scope\":\"sandbox\""

TEST(a_bearer_is_its_tenant_and_subject)
{
	AUTO(auto_free) char *header = header_of("alice", ACME);
	json_t *o;

	send_keys();
	o = fixture_body(fixture_ask("GET", "/api/v1/whoami", header, ""));
	assert_string_equal(js_text(o, "tenant"), "acme");
	assert_string_equal(js_text(o, "subject"), "alice");
	assert_string_equal(js_text(o, "issuer"), ISSUER);
	assert_string_equal(js_text(o, "role"), "user");
	json_decref(o);
}

TEST(without_a_token_nobody_comes_in)
{
	fixture_expect("GET", "/api/v1/whoami", "", 401);
	fixture_has(
	    "resource_metadata=\"https://mcp.example"
	    "/.well-known/oauth-protected-resource/mcp\", scope=\"sandbox\"");
	fixture_expect("GET", "/.well-known/oauth-protected-resource", "", 200);
	fixture_expect(
	    "GET", "/.well-known/oauth-protected-resource/mcp", "", 200);
	fixture_expect(
	    "GET", "/.well-known/oauth-protected-resource/mc", "", 404);
	fixture_expect(
	    "GET", "/.well-known/oauth-authorization-server", "", 404);
}

TEST(scopes_and_tenants_are_refused_by_name)
{
	AUTO(auto_free)
	char *scope = header_of("a", ",\"tenant\":\"acme\",\"scope\":\"x\"");
	AUTO(auto_free) char *none = header_of("a", ",\"scope\":\"sandbox\"");
	AUTO(auto_free)
	char *other =
	    header_of("a", ",\"tenant\":\"acm\",\"scope\":\"sandbox\"");
	AUTO(auto_free) char *user = header_of("a", ACME);
	AUTO(auto_free)
	char *admin = header_of("a", ",\"scope\":\"sandbox:admin\"");
	AUTO(auto_free)
	char *both = header_of("a", ",\"scope\":\"sandbox sandbox:admin\"");

	send_keys();
	expect_whoami(scope, 403);
	fixture_has("error=\"insufficient_scope\", "
		    "error_description=\"it lacks the scope for this\"");
	raw_wait_until(fx.base,
	    (fixture_expect("GET", "/api/v1/audit", admin, 200),
		raw_has(&fx.c, "\"lacks the scope\"")));
	expect_whoami(none, 403);
	fixture_has("\"code\":\"tenant_unknown\"");
	expect_whoami(both, 200);
	fixture_has("\"role\":\"admin\"");
	fixture_expect("GET", "/mcp", both, 403);
	fixture_has("\"code\":\"tenant_unknown\"");
	expect_whoami(other, 403);
	fixture_has("\"code\":\"tenant_unknown\"");
	fixture_expect("GET", "/api/v1/tenants", user, 403);
	fixture_has("scope=\"sandbox:admin\"");
}

TEST_WITH(setup, teardown, a_tenant_is_made_only_where_a_setting_says_so)
{
	AUTO(auto_free) char *header = header_of("a", ACME);
	AUTO(auto_free)
	char *bad =
	    header_of("a", ",\"tenant\":\"../x\",\"scope\":\"sandbox\"");
	struct err e;

	send_keys();
	expect_whoami(header, 403);
	assert_int_equal(
	    conf_set(fx.conf, "OAUTH_TENANT_CREATE", "true", &e), 0);
	expect_whoami(header, 200);
	assert_non_null(tenants_find_name(core_tenants(fx.core), "acme"));
	expect_whoami(bad, 403);
}

TEST(disabling_a_tenant_is_at_once_and_ends_what_is_open)
{
	AUTO(auto_free) char *header = header_of("a", ACME);
	struct tenant *n = tenants_find_name(core_tenants(fx.core), "acme");

	send_keys();
	expect_whoami(header, 200);
	tenant_use(n, TENANT_DISABLED, NULL, NULL);
	expect_whoami(header, 403);
	fixture_has("\"code\":\"tenant_disabled\"");
	tenant_use(n, TENANT_ENABLED, NULL, NULL);
	expect_whoami(header, 200);
	tenant_use(n, TENANT_DISABLED, NULL, NULL);
	oauth_tick(fx.front->oauth);
	raw_wait_until(fx.base, (raw_receive(&fx.c), fx.c.ended));
}

TEST(tokens_of_one_subject_are_one_caller)
{
	AUTO(auto_free) char *first = header_of("a", ACME);
	AUTO(auto_free) char *renewed = header_of("a", ACME ",\"jti\":\"2\"");
	AUTO(auto_free) char *other = header_of("b", ACME);
	static const char ping[] =
	    "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"ping\"}";
	AUTO(auto_free) char *same = NULL;
	AUTO(auto_free) char *foreign = NULL;

	send_keys();
	expect_whoami(first, 200);
	fixture_initialize_as(first);
	same = xasprintf("%s" FIXTURE_JSON FIXTURE_BOTH "Mcp-Session-Id: %s\r\n"
			 "MCP-Protocol-Version: 2025-11-25\r\n",
	    renewed, fx.session);
	foreign =
	    xasprintf("%s" FIXTURE_JSON FIXTURE_BOTH "Mcp-Session-Id: %s\r\n"
		      "MCP-Protocol-Version: 2025-11-25\r\n",
		other, fx.session);
	assert_int_equal(
	    fixture_status(fixture_ask("POST", "/mcp", same, ping)), 200);
	assert_int_equal(
	    fixture_status(fixture_ask("POST", "/mcp", foreign, ping)), 404);
}

/* Once: the keys of the test are those that come. */
TEST(a_request_waits_for_the_keys)
{
	AUTO(auto_free) char *header = header_of("a", ACME);

	send_whoami(header);
	some_turns();
	raw_receive(&fx.c);
	assert_int_equal(buf_len(&fx.c.in), 0);
	send_keys();
	assert_int_equal(fixture_status(fixture_answer()), 200);
}

TEST(a_client_that_goes_while_it_waits)
{
	AUTO(auto_free) char *header = header_of("a", ACME);

	fixture_send("GET", "/api/v1/whoami", header, "");
	some_turns();
	raw_close(&fx.c);
	some_turns();
	send_keys();
	raw_open(&fx.c, fx.port, 0);
	expect_whoami(header, 200);
}

TEST(keys_that_cannot_be_had_are_503)
{
	AUTO(auto_free) char *header = header_of("a", ACME);

	send_whoami(header);
	raw_wait_until(fx.base,
	    (msg_send_keys_failed(
		 keys, &(struct msg_keys_failed){.why = "away"}),
		fixture_is_whole()));
	assert_int_equal(fixture_status(raw_text(&fx.c)), 503);
	fixture_has("\"code\":\"keys_unavailable\"");
}

/* However many tokens name keys that nobody has. */
TEST(unknown_keys_are_asked_for_once)
{
	AUTO(auto_free) char *claims = claims_of("a", ACME);
	AUTO(auto_free)
	char *token = token_signed(JWT_EDDSA, ground_keys[JWT_EDDSA],
	    "{\"alg\":\"EdDSA\",\"kid\":\"other\"}", claims);
	AUTO(auto_free)
	char *header = xasprintf("Authorization: Bearer %s\r\n", token);

	send_keys();
	raw_wait_until(fx.base, oauth_has_keys(fx.front->oauth));
	send_whoami(header);
	raw_wait_until(fx.base, wanted == 1);
	send_keys();
	assert_int_equal(fixture_status(fixture_answer()), 401);
	fixture_has("error=\"invalid_token\", "
		    "error_description=\"its key is none of the issuer's\"");
	expect_whoami(header, 401);
	assert_int_equal(wanted, 1);
}

struct waiter {
	struct oauth_wait wait;
	unsigned int went_on;
};

static void
waiter_go_on(struct oauth_wait *w)
{
	CONTAINER_OF(w, struct waiter, wait)->went_on++;
}

/* What comes beyond them is answered at once; when the keys come all others go
 * on, once. */
TEST(so_many_requests_wait_and_no_more)
{
	AUTO(auto_free) char *header = header_of("a", ACME);
	struct waiter waiters[OAUTH_WAITING_MAX + 1] = {0};
	struct oauth *o = fx.front->oauth;

	for (size_t i = 0; i < ARRAY_LEN(waiters); i++) {
		waiters[i].wait.go_on = waiter_go_on;
		assert_int_equal(
		    oauth_wait(o, &waiters[i].wait), i < OAUTH_WAITING_MAX);
	}
	expect_whoami(header, 503);
	oauth_wait_cancel(o, &waiters[0].wait); /* its client went away */
	assert_true(oauth_wait(o, &waiters[OAUTH_WAITING_MAX].wait));
	send_keys();
	raw_wait_until(fx.base, oauth_has_keys(o));
	for (size_t i = 0; i < ARRAY_LEN(waiters); i++)
		assert_int_equal(waiters[i].went_on, i != 0);
	expect_whoami(header, 200);
}

TEST(nonsense_leaves_the_keys_as_they_were)
{
	AUTO(auto_free) char *header = header_of("a", ACME);
	static uint8_t nonsense[] = "<html>";

	log_set_level((enum log_level)LOG_ERROR);
	send_keys();
	msg_send_keys(keys, &(struct msg_keys){.jwks = {nonsense, 6}});
	expect_whoami(header, 200);
}

/* A key that is withdrawn takes with it what it signed. */
TEST(what_a_withdrawn_key_signed_is_good_no_more)
{
	AUTO(auto_free) char *header = header_of("a", ACME);
	AUTO(auto_free)
	char *jwk = jwk_of(ground_keys[JWT_RS256], "rs", "");
	AUTO(auto_free) char *text = xasprintf("{\"keys\":[%s]}", jwk);

	send_keys();
	expect_whoami(header, 200);
	msg_send_keys(
	    keys, &(struct msg_keys){.jwks = {(uint8_t *)text, strlen(text)}});
	buf_consume(&fx.c.in, buf_len(&fx.c.in));
	raw_turn(fx.base);
	raw_turn(fx.base);
	fixture_send("GET", "/api/v1/whoami", header, "");
	raw_wait_until(fx.base, wanted == 1);
	msg_send_keys_failed(keys, &(struct msg_keys_failed){.why = "away"});
	assert_int_equal(fixture_status(fixture_answer()), 401);
}

/* Before its signature is computed; those that are known pass. */
TEST(who_was_wrong_too_often_waits_with_a_new_token)
{
	AUTO(auto_free) char *good = header_of("a", ACME);
	AUTO(auto_free) char *fresh = header_of("b", ACME);
	AUTO(auto_free) char *bad = xstrdup(good);
	char *last = strrchr(bad, '.') + 5;

	send_keys();
	*last = *last == 'A' ? 'B' : 'A';
	expect_whoami(good, 200);
	for (int i = 0; i < 5; i++)
		expect_whoami(bad, 401);
	expect_whoami(bad, 429);
	expect_whoami(fresh, 429);
	fixture_has("\"code\":\"too_many_failed_logins\"");
	expect_whoami(good, 200);
}

/* What is no plain word, or long, gets a name that cannot be another's. */
TEST(odd_subjects_have_names_of_their_own)
{
	static const char *const subjects[] = {"a b", "\\u00e9", "a",
	    "0123456789012345678901234567890123456789012345678901234567890123",
	    "sha256:ca978112ca1bbdcafac231b39a23dc4da786eff8"};
	char seen[ARRAY_LEN(subjects)][PRINCIPAL_SUBJECT_MAX + 1];
	const struct act origin = {.origin = "test"};

	for (size_t i = 0; i < ARRAY_LEN(subjects); i++) {
		struct claims c = {.tenant = "acme",
		    .roles = 1u << PRINCIPAL_USER,
		    .until_ms = INT64_MAX};
		struct principal *who;
		int64_t until_ms;

		(void)snprintf(c.subject, sizeof(c.subject), "%s", subjects[i]);
		assert_int_equal(
		    oauth_know(fx.front->oauth, &c, ~0u, &origin, &who),
		    OAUTH_KNOWN);
		(void)snprintf(seen[i], sizeof(seen[i]), "%s", who->subject);
		assert_string_equal(
		    oauth_subject(fx.front->oauth, who, &until_ms),
		    subjects[i]);
		for (size_t k = 0; k < i; k++)
			assert_string_not_equal(seen[i], seen[k]);
	}
}

int
main(void)
{
	int failed = tests_run(setup_acme, teardown, NULL, NULL);

	ground_free_keys();
	return failed;
}
