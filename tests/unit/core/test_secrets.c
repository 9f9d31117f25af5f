/* Secrets over a real store: their bounds, what a run is given, and what a new
 * life of the server knows of them. */
#include <stdio.h>

#include <event2/event.h>
#include <sqlite3.h>

#include "common/clock.h"
#include "common/runspec.h"
#include "common/xmalloc.h"
#include "supervisor/core/seal.h"
#include "supervisor/core/secrets.h"
#include "tests/unit/test.h"
#include "tests/unit/world.h"

#define PATIENCE_MS 20000
#define KEY "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
#define OTHER "100102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"

static const struct tenant_id ours = {STORE_TENANT_DEFAULT};
static const struct tenant_id others = {STORE_TENANT_DEFAULT + 1};

static struct principal our_user = {.refs = 1,
    .tenant = {STORE_TENANT_DEFAULT},
    .role = PRINCIPAL_USER,
    .tenant_name = "ours",
    .subject = "a token"};

static struct {
	char dir[64];
	struct event_base *base;
	struct store *store;
	struct secrets *ss;
	struct rekeying rekeying;
	unsigned int done; /* writes that are on disk */
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
wait_for_writes(unsigned int n)
{
	uint64_t end = clock_mono_ms() + PATIENCE_MS;

	while (g.done < n && clock_mono_ms() < end)
		(void)event_base_loop(g.base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
	assert_int_equal(g.done, n);
}

static void
live(const char *keys)
{
	struct err e;

	g.done = 0;
	g.rekeying = (struct rekeying){0};
	assert_int_equal(store_open(g.base, g.dir, NULL, &g.store, &e), 0);
	if (secrets_open(g.store, &g.ss, &e) != 0 ||
	    secrets_unlock(g.ss, keys, strlen(keys), &g.rekeying, &e) != 0)
		fail_msg("%s", e.msg);
}

static void
die(void)
{
	secrets_free(g.ss);
	store_close(g.store);
}

static int
setup(void **state)
{
	static const char other[] = "b";
	struct store_tenant row = {
	    .id = others.n, .name = (char *)(uintptr_t)other};

	(void)state;
	(void)snprintf(g.dir, sizeof(g.dir), "/tmp/test-secrets-XXXXXX");
	assert_non_null(mkdtemp(g.dir));
	g.base = event_base_new();
	live(KEY);
	store_tenant_put(g.store, &row, done_cb, NULL);
	wait_for_writes(1);
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

static int
put(struct tenant_id tenant, const char *name, const char *value, size_t n)
{
	struct err e;

	return secrets_put(g.ss, tenant, name,
	    &(struct span){(const uint8_t *)value, n}, done_cb, NULL, &e);
}

static void
put_text(struct tenant_id tenant, const char *name, const char *value)
{
	unsigned int n = g.done + 1;

	assert_int_equal(put(tenant, name, value, strlen(value)), 0);
	wait_for_writes(n);
}

/* ---- a run with two commands, each with one variable */

static char *argv_of[] = {(char *)(uintptr_t) "true", NULL};
static char *env_of[2][2];
static struct runspec_command commands[2];

static struct runspec
spec_of(const char *first, const char *second)
{
	env_of[0][0] = (char *)(uintptr_t)first;
	env_of[1][0] = (char *)(uintptr_t)second;
	for (size_t i = 0; i < 2; i++)
		commands[i] = (struct runspec_command){.argv = argv_of,
		    .argc = 1,
		    .env = env_of[i],
		    .nenv = 1,
		    .cwd = (char *)(uintptr_t) "/",
		    .timeout_ms = 1};
	return (struct runspec){.commands = commands, .ncommands = 2};
}

static int
check(const char *first, const char *second)
{
	struct runspec s = spec_of(first, second);
	struct err e;

	return secrets_check(g.ss, &our_user, &s, &e);
}

/* What the worker is told. */
static struct runspec
fill(const char *first, const char *second)
{
	struct runspec s = spec_of(first, second), out = {0};
	struct span span;
	struct buf in, b;
	struct err e;

	buf_init(&in, RUNSPEC_BYTES_MAX);
	assert_int_equal(runspec_encode(&s, &in, &e), 0);
	span = (struct span){buf_data(&in), buf_len(&in)};
	assert_true(secrets_are_in(&span));
	if (secrets_fill(g.ss, ours, &span, &b, &e) != 0 ||
	    runspec_decode(buf_data(&b), buf_len(&b), &out, &e) != 0)
		fail_msg("%s", e.msg);
	if (out.commands == NULL)
		abort();
	buf_clear(&in);
	buf_clear(&b);
	return out;
}

TEST(a_value_takes_the_place_of_its_reference)
{
	struct runspec s;

	put_text(ours, "a.B-c_1", "hunter2");
	s = fill("A=secret://a.B-c_1", "B=plain");
	assert_string_equal(s.commands[0].env[0], "A=hunter2");
	assert_string_equal(s.commands[1].env[0], "B=plain");
	assert_int_equal(s.commands[0].flags | s.commands[1].flags, 0);
	runspec_clear(&s);
	assert_true(secrets_find(g.ss, ours, "a.B-c_1")->row.used_ms > 0);
}

TEST(a_reference_is_a_whole_value_and_nothing_else)
{
	static const char *const plain[] = {"A=", "A=secret:/x",
	    "A= secret://x", "A=SECRET://x", "secret://x=1"};

	for (size_t i = 0; i < ARRAY_LEN(plain); i++)
		assert_int_equal(check(plain[i], plain[i]), 0);
	assert_int_equal(check("A=secret://", "B="), ERR_INVAL);
	assert_int_equal(check("A=secret://x y", "B="), ERR_INVAL);
	assert_int_equal(check("A=secret://..", "B="), ERR_INVAL);
	assert_int_equal(check("A=secret://x", "B="), ERR_NO_SECRET);
}

TEST(a_secret_of_another_tenant_is_as_none)
{
	struct err ours_e, never_e;
	struct runspec s;

	put_text(others, "theirs", "hunter2");
	s = spec_of("A=secret://theirs", "B=");
	assert_int_equal(
	    secrets_check(g.ss, &our_user, &s, &ours_e), ERR_NO_SECRET);
	assert_int_equal(
	    secrets_check(g.ss,
		&(struct principal){.tenant = {99}, .role = PRINCIPAL_USER}, &s,
		&never_e),
	    ERR_NO_SECRET);
	assert_string_equal(ours_e.msg, never_e.msg);
	assert_null(secrets_next(g.ss, ours, NULL));
}

/* Also when it says that it is of the tenant. */
TEST(nobody_but_the_tenants_users_may_run_with_one)
{
	struct principal who = our_user;
	struct runspec s;
	struct err e;

	put_text(ours, "key", "hunter2");
	for (unsigned int role = 0; role < PRINCIPAL_ROLE_COUNT; role++) {
		who.role = (enum principal_role)role;
		if (role == PRINCIPAL_USER)
			continue;
		s = spec_of("A=plain", "B=");
		assert_int_equal(secrets_check(g.ss, &who, &s, &e), 0);
		s = spec_of("A=plain", "B=secret://key");
		assert_int_equal(secrets_check(g.ss, &who, &s, &e), ERR_POLICY);
		assert_non_null(strstr(e.msg, "token of role user"));
		s = spec_of("A=secret://never", "B=");
		assert_int_equal(secrets_check(g.ss, &who, &s, &e), ERR_POLICY);
	}
	assert_int_equal(check("A=plain", "B=secret://key"), 0);
}

TEST(a_command_that_lacks_one_says_so_and_no_other_does)
{
	struct runspec s;

	put_text(ours, "there", "v");
	s = fill("A=secret://gone", "B=secret://there");
	assert_int_equal(s.commands[0].flags, RUNSPEC_NO_SECRET);
	assert_non_null(strstr(
	    s.commands[0].deny, "secret_not_found: there is no secret gone: "));
	assert_int_equal(s.commands[1].flags, 0);
	assert_string_equal(s.commands[1].env[0], "B=v");
	runspec_clear(&s);
}

TEST(what_is_no_secret_is_refused)
{
	AUTO(auto_free) char *large = xcalloc(1, SECRET_BYTES_MAX + 2);
	char name[SECRET_NAME_MAX + 2] = "";

	memset(large, 'v', SECRET_BYTES_MAX + 1);
	memset(name, 'n', SECRET_NAME_MAX + 1);
	assert_int_equal(put(ours, "a", "", 0), ERR_INVAL);
	assert_int_equal(put(ours, "a", "a\0b", 3), ERR_INVAL);
	assert_int_equal(
	    put(ours, "a", large, SECRET_BYTES_MAX + 1), ERR_INVAL);
	assert_int_equal(put(ours, name, "v", 1), ERR_INVAL);
	assert_int_equal(put(ours, "", "v", 1), ERR_INVAL);
	assert_int_equal(put(ours, "a/b", "v", 1), ERR_INVAL);
	name[SECRET_NAME_MAX] = '\0';
	assert_int_equal(put(ours, name, large, SECRET_BYTES_MAX), 0);
	wait_for_writes(g.done + 1);
}

TEST(a_tenant_has_so_many_and_so_much)
{
	AUTO(auto_free) char *large = xcalloc(1, SECRET_BYTES_MAX + 1);
	unsigned int n = SECRETS_TENANT_BYTES / SECRET_COST(SECRET_BYTES_MAX);
	unsigned int before = g.done;
	char name[16];

	memset(large, 'v', SECRET_BYTES_MAX);
	for (unsigned int i = 0; i < SECRETS_PER_TENANT; i++) {
		(void)snprintf(name, sizeof(name), "n%u", i);
		assert_int_equal(put(others, name, "v", 1), 0);
	}
	assert_int_equal(put(others, "more", "v", 1), ERR_LIMIT);
	assert_int_equal(put(others, "n0", "w", 1), 0); /* in its place */
	for (unsigned int i = 0; i < n; i++) {
		(void)snprintf(name, sizeof(name), "l%u", i);
		assert_int_equal(put(ours, name, large, SECRET_BYTES_MAX), 0);
	}
	assert_int_equal(put(ours, "more", large, SECRET_BYTES_MAX), ERR_LIMIT);
	assert_int_equal(put(ours, "l0", "small", 5), 0);
	assert_int_equal(put(ours, "more", large, SECRET_BYTES_MAX), 0);
	wait_for_writes(before + SECRETS_PER_TENANT + 1 + n + 2);
}

TEST(a_run_that_would_be_too_large_is_refused_before_it_is)
{
	AUTO(auto_free) char *large = xcalloc(1, SECRET_BYTES_MAX + 1);
	char *env[41];
	struct runspec_command c = {.argv = argv_of,
	    .argc = 1,
	    .env = env,
	    .nenv = 40,
	    .cwd = (char *)(uintptr_t) "/",
	    .timeout_ms = 1};
	struct runspec s = {.commands = &c, .ncommands = 1};
	struct err e;

	memset(large, 'v', SECRET_BYTES_MAX);
	put_text(ours, "l", large);
	for (size_t i = 0; i < 40; i++)
		env[i] = (char *)(uintptr_t) "A=secret://l";
	env[40] = NULL;
	assert_int_equal(secrets_check(g.ss, &our_user, &s, &e), ERR_LIMIT);
	c.nenv = 31;
	assert_int_equal(secrets_check(g.ss, &our_user, &s, &e), 0);
}

TEST(they_are_known_to_the_next_server)
{
	struct runspec s;

	put_text(ours, "b", "first");
	put_text(ours, "a", "other");
	put_text(ours, "b", "second");
	secrets_drop(g.ss, secrets_find(g.ss, ours, "a"), done_cb, NULL);
	wait_for_writes(g.done + 1);
	die();
	live(KEY);
	assert_null(secrets_find(g.ss, ours, "a"));
	s = fill("A=secret://b", "B=secret://b");
	assert_string_equal(s.commands[0].env[0], "A=second");
	runspec_clear(&s);
}

TEST(an_old_keys_are_sealed_anew_and_a_lost_keys_stay)
{
	struct err e;

	put_text(ours, "s", "kept");
	die();
	live(OTHER); /* lost */
	assert_int_equal(check("A=secret://s", "B="), ERR_NO_SECRET_KEY);
	die();
	live(OTHER "\n" KEY); /* back */
	assert_int_equal(check("A=secret://s", "B="), 0);
	die();
	live(OTHER);
	assert_int_equal(check("A=secret://s", "B="), 0);
	die();
	assert_int_equal(store_open(g.base, g.dir, NULL, &g.store, &e), 0);
	assert_int_equal(secrets_open(g.store, &g.ss, &e), 0); /* no key */
	assert_int_equal(check("A=secret://s", "B="), ERR_NO_SECRET_KEY);
	assert_int_equal(put(ours, "t", "v", 1), ERR_NO_SECRET_KEY);
	assert_int_equal(
	    secrets_unlock(g.ss, "x", 1, &g.rekeying, &e), ERR_PARSE);
}

/* Who may write the database, but has no key. */
static void
change_database(const char *sql)
{
	char path[100];
	sqlite3 *db;

	(void)snprintf(path, sizeof(path), "%s/mcp-sandboxd.db", g.dir);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
	(void)sqlite3_close(db);
}

static void
wait_for_verdict(enum rekeying_verdict verdict)
{
	uint64_t end = clock_mono_ms() + PATIENCE_MS;

	rekeying_asked(&g.rekeying, secrets_have_older_key(g.ss));
	while (rekeying_verdict_of(&g.rekeying) == REKEYING_GOES_ON &&
	    clock_mono_ms() < end)
		(void)event_base_loop(g.base, EVLOOP_ONCE | EVLOOP_NONBLOCK);
	assert_int_equal(rekeying_verdict_of(&g.rekeying), verdict);
}

TEST(an_old_key_can_go_when_all_is_sealed_anew)
{
	put_text(ours, "a", "one");
	put_text(ours, "b", "two");
	wait_for_verdict(REKEYING_IDLE);
	die();
	live(OTHER "\n" KEY);
	assert_int_equal(g.rekeying.waiting, 2);
	wait_for_verdict(REKEYING_DONE);
	assert_int_equal(g.rekeying.anew, 2);
	die();
	live(OTHER "\n" KEY); /* nothing is left to be done */
	wait_for_verdict(REKEYING_DONE);
}

TEST(an_old_key_stays_while_the_disk_has_what_it_sealed)
{
	put_text(ours, "a", "one");
	put_text(ours, "b", "two");
	die();
	change_database("CREATE TRIGGER no BEFORE UPDATE ON secret"
			" WHEN NEW.name = 'a' BEGIN"
			" SELECT raise(ABORT, 'no'); END");
	live(OTHER "\n" KEY);
	wait_for_verdict(REKEYING_LEFT);
	assert_int_equal(g.rekeying.left, 1);
	assert_int_equal(g.rekeying.anew, 1);
}

TEST(an_old_key_stays_for_what_cannot_be_sealed_anew)
{
	put_text(ours, "a", "one");
	put_text(ours, "b", "two");
	die();
	change_database("UPDATE secret SET name = 'c' WHERE name = 'a'");
	live(OTHER "\n" KEY);
	wait_for_verdict(REKEYING_LEFT);
	assert_int_equal(g.rekeying.left, 1);
	assert_int_equal(g.rekeying.anew, 1);
	die();
	live(OTHER); /* its key is gone */
	wait_for_verdict(REKEYING_LEFT);
}

TEST(a_row_that_was_exchanged_or_changed_is_good_for_nothing)
{
	static const char *const changes[] = {
	    /* another tenant's in the place of ours */
	    "UPDATE secret SET sealed = (SELECT sealed FROM secret WHERE "
	    "tenant = 2 AND name = 's') WHERE tenant = 1 AND name = 's'",
	    "UPDATE secret SET sealed = (SELECT sealed FROM secret WHERE "
	    "name = 't') WHERE tenant = 1 AND name = 's'",
	    "UPDATE secret SET name = 'old' WHERE tenant = 1 AND name = 's';"
	    "UPDATE secret SET name = 's' WHERE name = 't'",
	};
	struct runspec s;

	for (size_t i = 0; i < ARRAY_LEN(changes); i++) {
		put_text(ours, "s", "ours");
		put_text(ours, "t", "other");
		put_text(others, "s", "theirs");
		die();
		change_database(changes[i]);
		live(KEY);
		s = fill("A=secret://s", "B=");
		assert_int_equal(s.commands[0].flags, RUNSPEC_NO_SECRET);
		assert_non_null(strstr(s.commands[0].deny,
		    "secret_unavailable: secret s was changed"));
		runspec_clear(&s);
	}
}

TEST(those_of_an_erased_tenant_go)
{
	put_text(others, "a", "v");
	put_text(others, "b", "v");
	put_text(ours, "a", "v");
	secrets_forget(g.ss, others);
	assert_null(secrets_next(g.ss, others, NULL));
	store_tenant_erase(g.store, others, 1, done_cb, NULL);
	wait_for_writes(g.done + 1);
	die();
	live(KEY);
	assert_null(secrets_next(g.ss, others, NULL));
	assert_non_null(secrets_find(g.ss, ours, "a"));
}

TEST_MAIN(setup, teardown)
