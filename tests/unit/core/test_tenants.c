/* The directory over a real store: what is said, and what a new life of the
 * server knows of it. */
#include <stdio.h>

#include <event2/event.h>

#include "common/clock.h"
#include "common/hex.h"
#include "common/log.h"
#include "common/xmalloc.h"
#include "supervisor/core/tenants.h"
#include "supervisor/core/tenants_file.h"
#include "tests/unit/test.h"
#include "tests/unit/world.h"

#define PATIENCE_MS 20000

static struct {
	char dir[64];
	struct event_base *base;
	struct store *store;
	struct tenants *t;
	unsigned int done; /* writes that are on disk */
	const struct principal *ended;
	unsigned int nended;
} g;

static void
done_cb(int rc, const struct err *why, void *arg)
{
	(void)arg;
	if (rc != 0)
		fail_msg("%s", why->msg);
	g.done++;
}

static void
ended_cb(const struct principal *who, void *arg)
{
	(void)arg;
	g.ended = who;
	g.nended++;
}

static void
wait_for_writes(unsigned int n)
{
	uint64_t end = clock_mono_ms() + PATIENCE_MS;

	while (g.done < n && clock_mono_ms() < end)
		(void)event_base_loop(g.base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
	assert_int_equal(g.done, n);
}

static void
live(void)
{
	struct err e;

	g.done = g.nended = 0;
	assert_int_equal(store_open(g.base, g.dir, NULL, &g.store, &e), 0);
	if (tenants_open(g.store, &g.t, &e) != 0)
		fail_msg("%s", e.msg);
	tenants_on_ended(g.t, ended_cb, NULL);
}

static void
die(void)
{
	tenants_free(g.t);
	store_close(g.store);
}

static void
live_again(void)
{
	die();
	live();
}

static int
setup(void **state)
{
	(void)state;
	log_set_level(LOG_ERROR);
	(void)snprintf(g.dir, sizeof(g.dir), "/tmp/test-tenants-XXXXXX");
	assert_non_null(mkdtemp(g.dir));
	g.base = event_base_new();
	live();
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	die();
	event_base_free(g.base);
	world_remove_dir(g.dir);
	return 0;
}

static struct tenant *
add(const char *name)
{
	struct tenant *n;
	struct err e;

	if (tenant_add(g.t, name, done_cb, NULL, &n, &e) != 0)
		fail_msg("%s", e.msg);
	return n;
}

static struct token *
add_token(struct tenant *n, enum principal_role role, int64_t expires_ms,
    char text[TOKEN_TEXT_LEN + 1])
{
	const struct token_wish w = {role, "t", expires_ms};
	struct token_made made;
	struct err e;

	if (tenants_add_token(g.t, n, &w, done_cb, NULL, &made, &e) != 0)
		fail_msg("%s", e.msg);
	memcpy(text, made.text, sizeof(made.text));
	return made.token;
}

TEST(a_new_server_is_open_until_the_first_token)
{
	char text[TOKEN_TEXT_LEN + 1];
	struct principal *who;

	assert_true(tenants_is_open(g.t));
	assert_int_equal(tenants_local(g.t, &who), TENANTS_KNOWN);
	assert_string_equal(who->tenant_name, "default");
	(void)add_token(
	    tenants_find_name(g.t, "default"), PRINCIPAL_USER, 0, text);
	assert_ptr_equal(g.ended, who);
	assert_false(tenants_is_open(g.t));
	assert_int_equal(tenants_local(g.t, &who), TENANTS_UNKNOWN);
}

TEST(the_operators_socket_is_the_default_tenants_until_another_is_made)
{
	char text[TOKEN_TEXT_LEN + 1];
	struct principal *who = NULL;

	assert_int_equal(tenants_resident(g.t, &who), TENANTS_KNOWN);
	assert_string_equal(who->tenant_name, "default");
	(void)add_token(
	    tenants_find_name(g.t, "default"), PRINCIPAL_USER, 0, text);
	assert_ptr_not_equal(g.ended, who);
	assert_int_equal(tenants_resident(g.t, &who), TENANTS_KNOWN);
	(void)add("acme");
	assert_int_equal(tenants_resident(g.t, &who), TENANTS_UNKNOWN);
}

TEST(a_server_whose_last_token_was_revoked_stays_closed)
{
	char text[TOKEN_TEXT_LEN + 1];
	struct token *k = add_token(
	    tenants_find_name(g.t, "default"), PRINCIPAL_USER, 0, text);

	token_revoke(g.t, k, done_cb, NULL);
	assert_false(tenants_is_open(g.t));
	wait_for_writes(2);
	live_again();
	assert_false(tenants_is_open(g.t));
}

TEST(a_server_whose_last_tenant_is_gone_stays_closed)
{
	struct tenant *n = add("acme");
	struct tenant_id id = tenant_id_of(n);
	uint64_t end = clock_mono_ms() + PATIENCE_MS;
	struct err e;

	assert_int_equal(tenant_delete(n, done_cb, NULL, &e), 0);
	tenant_erase(n);
	while (tenants_find(g.t, id) != NULL && clock_mono_ms() < end)
		(void)event_base_loop(g.base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
	assert_null(tenants_find(g.t, id));
	assert_false(tenants_is_open(g.t));
	live_again();
	assert_null(tenants_find_name(g.t, "acme"));
	assert_false(tenants_is_open(g.t));
	/* The name is free, the number is not. */
	assert_true(add("acme")->row.id > id.n);
}

TEST(what_changes_while_a_tenant_is_erased_leaves_nothing)
{
	char text[TOKEN_TEXT_LEN + 1];
	struct tenant *n = add("acme");
	struct token *k = add_token(n, PRINCIPAL_USER, 0, text);
	struct tenant_id id = tenant_id_of(n);
	uint64_t end = clock_mono_ms() + PATIENCE_MS;
	struct err e;

	assert_int_equal(tenant_delete(n, done_cb, NULL, &e), 0);
	wait_for_writes(3);
	tenant_erase(n);
	token_revoke(g.t, k, done_cb, NULL);
	tenant_use(n, TENANT_DISABLED, done_cb, NULL);
	tenant_grant(n, QUOTA_SANDBOXES, 1, done_cb, NULL);
	while (tenants_find(g.t, id) != NULL && clock_mono_ms() < end)
		(void)event_base_loop(g.base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
	assert_null(tenants_find(g.t, id));
	wait_for_writes(6);
	live_again(); /* a token of no tenant would be a damaged database */
	assert_null(tenants_next_token(g.t, NULL));
	(void)add("acme"); /* its name is free, on disk as well */
	wait_for_writes(1);
	live_again();
	assert_non_null(tenants_find_name(g.t, "acme"));
}

TEST(a_token_says_whose_it_is_also_in_another_life)
{
	char text[TOKEN_TEXT_LEN + 1], other[TOKEN_TEXT_LEN + 1];
	struct principal *who;
	struct tenant *n = add("acme");

	(void)add_token(n, PRINCIPAL_USER, 0, text);
	(void)add_token(NULL, PRINCIPAL_ADMIN, 0, other);
	wait_for_writes(3);
	for (int life = 0; life < 2; life++) {
		assert_int_equal(tenants_know(g.t, text, clock_wall_ms(), &who),
		    TENANTS_KNOWN);
		assert_string_equal(who->tenant_name, "acme");
		assert_int_equal(who->role, PRINCIPAL_USER);
		assert_int_equal(
		    tenants_know(g.t, other, clock_wall_ms(), &who),
		    TENANTS_KNOWN);
		assert_int_equal(who->tenant.n, 0);
		assert_int_equal(who->role, PRINCIPAL_ADMIN);
		live_again();
	}
}

TEST(a_wrong_secret_is_as_an_unknown_token)
{
	char text[TOKEN_TEXT_LEN + 1];
	struct principal *who;

	(void)add_token(add("acme"), PRINCIPAL_USER, 0, text);
	for (size_t i = 0; i < TOKEN_TEXT_LEN; i++) {
		char was = text[i];

		text[i] = was == 'a' ? 'b' : 'a';
		assert_int_equal(tenants_know(g.t, text, clock_wall_ms(), &who),
		    TENANTS_UNKNOWN);
		text[i] = was;
	}
	assert_int_equal(
	    tenants_know(g.t, text, clock_wall_ms(), &who), TENANTS_KNOWN);
}

TEST(a_revoked_token_ends_at_once_and_for_good)
{
	char text[TOKEN_TEXT_LEN + 1];
	struct principal *who;
	struct token *k = add_token(add("acme"), PRINCIPAL_USER, 0, text);

	token_revoke(g.t, k, done_cb, NULL);
	assert_ptr_equal(g.ended, k->who);
	assert_int_equal(
	    tenants_know(g.t, text, clock_wall_ms(), &who), TENANTS_UNKNOWN);
	wait_for_writes(3);
	live_again();
	assert_int_equal(
	    tenants_know(g.t, text, clock_wall_ms(), &who), TENANTS_UNKNOWN);
}

TEST(a_token_ends_when_its_time_is_over)
{
	char text[TOKEN_TEXT_LEN + 1];
	struct principal *who;
	int64_t end = clock_wall_ms() + 3600000;
	struct token *k = add_token(add("acme"), PRINCIPAL_USER, end, text);

	g.ended = NULL;
	assert_int_equal(tenants_know(g.t, text, end - 1, &who), TENANTS_KNOWN);
	tenants_tick(g.t, end - 1);
	assert_null(g.ended);
	assert_int_equal(tenants_know(g.t, text, end, &who), TENANTS_UNKNOWN);
	tenants_tick(g.t, end);
	assert_ptr_equal(g.ended, k->who);
}

TEST(who_is_disabled_comes_back)
{
	char text[TOKEN_TEXT_LEN + 1];
	struct principal *who;
	struct tenant *n = add("acme");
	struct token *k = add_token(n, PRINCIPAL_USER, 0, text);

	tenant_use(n, TENANT_DISABLED, done_cb, NULL);
	assert_ptr_equal(g.ended, k->who);
	assert_int_equal(
	    tenants_know(g.t, text, clock_wall_ms(), &who), TENANTS_DISABLED);
	wait_for_writes(3);
	live_again();
	assert_int_equal(
	    tenants_know(g.t, text, clock_wall_ms(), &who), TENANTS_DISABLED);
	tenant_use(
	    tenants_find_name(g.t, "acme"), TENANT_ENABLED, done_cb, NULL);
	assert_int_equal(
	    tenants_know(g.t, text, clock_wall_ms(), &who), TENANTS_KNOWN);
}

TEST(the_use_of_a_token_is_kept_to_a_minute)
{
	char text[TOKEN_TEXT_LEN + 1];
	struct principal *who;
	struct token *k = add_token(add("acme"), PRINCIPAL_USER, 0, text);
	int64_t now = clock_wall_ms();

	assert_int_equal(tenants_know(g.t, text, now, &who), TENANTS_KNOWN);
	assert_int_equal(
	    tenants_know(g.t, text, now + 59999, &who), TENANTS_KNOWN);
	assert_true(k->row.used_ms == now);
	assert_int_equal(
	    tenants_know(g.t, text, now + 60000, &who), TENANTS_KNOWN);
	assert_true(k->row.used_ms == now + 60000);
}

TEST(quotas_hold_at_once_and_later)
{
	struct tenant *n = add("acme");
	struct tenant_id id = tenant_id_of(n);

	assert_int_equal(tenants_quota(g.t, id, QUOTA_SANDBOXES),
	    quota_rule(QUOTA_SANDBOXES)->fallback);
	tenant_grant(n, QUOTA_SANDBOXES, 7, done_cb, NULL);
	assert_int_equal(tenants_quota(g.t, id, QUOTA_SANDBOXES), 7);
	wait_for_writes(2);
	live_again();
	assert_int_equal(tenants_quota(g.t, id, QUOTA_SANDBOXES), 7);
	tenant_ungrant(tenants_find(g.t, id), QUOTA_SANDBOXES, done_cb, NULL);
	wait_for_writes(1);
	live_again();
	assert_int_equal(tenants_quota(g.t, id, QUOTA_SANDBOXES),
	    quota_rule(QUOTA_SANDBOXES)->fallback);
}

TEST(names_of_tenants_are_plain_and_their_own)
{
	static const char *const bad[] = {"", ".a", "-a", "a b", "a/b", "ä",
	    "12345678901234567890123456789012345678901"};
	struct tenant *n;
	struct err e;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_int_equal(
		    tenant_add(g.t, bad[i], NULL, NULL, &n, &e), ERR_INVAL);
	(void)add("acme");
	assert_int_equal(
	    tenant_add(g.t, "acme", NULL, NULL, &n, &e), ERR_CONFLICT);
	assert_int_equal(
	    tenant_delete(tenants_find_name(g.t, "default"), NULL, NULL, &e),
	    ERR_INVAL);
}

TEST(a_tenant_has_so_many_tokens_and_dead_ones_give_way)
{
	const struct token_wish w = {PRINCIPAL_USER, "", 0};
	struct tenant *n = add("acme");
	struct token *first = NULL;
	struct token_made made;
	struct err e;

	for (unsigned int i = 0; i < TENANT_TOKENS_MAX; i++) {
		assert_int_equal(
		    tenants_add_token(g.t, n, &w, NULL, NULL, &made, &e), 0);
		first = first == NULL ? made.token : first;
	}
	assert_int_equal(
	    tenants_add_token(g.t, n, &w, NULL, NULL, &made, &e), ERR_LIMIT);
	token_revoke(g.t, first, NULL, NULL);
	assert_int_equal(
	    tenants_add_token(g.t, n, &w, NULL, NULL, &made, &e), 0);
	assert_int_equal(n->ntokens, TENANT_TOKENS_MAX);
}

/* ---- TENANTS_FILE */

static void
expect_file(const char *text, int rc, const char *words)
{
	char *copy = xstrdup(text);
	struct err e = {0};

	if (tenants_file_apply(g.t, NULL, "/f", copy, &e) != rc)
		fail_msg("%s: %s", text, e.msg);
	if (rc != 0 && strstr(e.msg, words) == NULL)
		fail_msg("%s", e.msg);
	free(copy);
}

/* Said already of the lines alone. */
static void
expect_alone(const char *text, int rc)
{
	char *copy = xstrdup(text);
	struct err e = {0};
	bool wants_tokens;

	if (tenants_file_check("/f", copy, &wants_tokens, &e) != rc)
		fail_msg("%s: %s", text, e.msg);
	free(copy);
}

TEST(the_file_makes_tenants_and_tokens)
{
	struct token_text of;
	char text[TOKEN_TEXT_LEN + 1], hex[HEX_BYTES(32)];
	struct principal *who;
	char *lines;

	token_make(&of, text);
	hex_encode(of.digest, sizeof(of.digest), hex);
	lines = xasprintf("# ours\n\ntenant acme quota.sandboxes=3\r\n"
			  "tenant other disabled\n"
			  "token acme %s user %s name=ci # for tests\n",
	    of.id, hex);
	for (int life = 0; life < 2; life++) { /* the second time: the same */
		expect_file(lines, 0, "");
		assert_int_equal(tenants_know(g.t, text, clock_wall_ms(), &who),
		    TENANTS_KNOWN);
		assert_string_equal(who->tenant_name, "acme");
		assert_int_equal(
		    tenants_quota(g.t, who->tenant, QUOTA_SANDBOXES), 3);
		assert_true(
		    tenants_find_name(g.t, "other")->row.disabled_ms != 0);
	}
	token_revoke(g.t, tenants_find_token(g.t, of.id), NULL, NULL);
	expect_file(lines, 0, "");
	assert_int_equal(
	    tenants_know(g.t, text, clock_wall_ms(), &who), TENANTS_UNKNOWN);
	free(lines);
}

TEST(a_line_that_is_wrong_is_named)
{
#define DIGEST                                                                 \
	"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	expect_file("\nsomebody\n", ERR_INVAL, "line 2: a line begins with");
	expect_file("tenant\n", ERR_INVAL, "line 1: want tenant NAME");
	expect_file("tenant .x", ERR_INVAL, "line 1: a tenant's name");
	expect_file("tenant a quota.x=1", ERR_INVAL, "no quota x");
	expect_file("tenant a quota.weight=0", ERR_INVAL, "from 1 to 1000");
	expect_file("tenant a quota.weight", ERR_INVAL, "quota.KEY=VALUE");
	expect_file("tenant a what", ERR_INVAL, "want disabled");
	expect_file("token nobody aaaaaaaaaaaa user " DIGEST, ERR_INVAL,
	    "there is no tenant nobody");
	expect_file("token - aaaaaaaaaaaa user " DIGEST, ERR_INVAL,
	    "belongs to a tenant");
	expect_file("token - aaaaaaaaaaaa root " DIGEST, ERR_INVAL,
	    "want user, admin or metrics");
	expect_file("token - aaa admin " DIGEST, ERR_INVAL, "a token's id");
	expect_file("token - aaaaaaaaaaaa admin abc", ERR_INVAL, "SHA-256");
	expect_file("token - aaaaaaaaaaaa admin " DIGEST " expires=soon",
	    ERR_INVAL, "seconds since 1970");
	expect_file("token - aaaaaaaaaaaa admin " DIGEST, 0, "");
	expect_file("token - aaaaaaaaaaaa metrics " DIGEST, ERR_INVAL,
	    "another token of the id");
}

TEST(a_line_can_be_checked_without_tenants)
{
	static const char *const bad[] = {"\nsomebody\n", "tenant\n",
	    "tenant .x", "tenant a quota.x=1", "tenant a quota.weight=0",
	    "tenant a what", ("token - aaaaaaaaaaaa root " DIGEST),
	    "token - aaaaaaaaaaaa admin abc"};

	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		expect_alone(bad[i], ERR_INVAL);
	expect_alone("tenant a quota.weight=2\ntenant b disabled\n"
		     "token a aaaaaaaaaaaa user " DIGEST "\n",
	    0);
	assert_null(tenants_find_name(g.t, "a"));
}

TEST_MAIN(setup, teardown)
