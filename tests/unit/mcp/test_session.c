#include <stdio.h>

#include "common/err.h"
#include "supervisor/mcp/session.h"
#include "tests/unit/test.h"

#define NOW 1800000000
#define TTL 100

static const struct principal t_a = {
    .tenant = {1}, .tenant_name = "t", .subject = "a"};
static const struct principal t_b = {
    .tenant = {1}, .tenant_name = "t", .subject = "b"};
static const struct principal t = {.tenant = {1}, .tenant_name = "t"};
static const struct principal ta = {.tenant = {2}, .tenant_name = "ta"};

static const uint8_t key[32] = "0123456789abcdef0123456789abcde";

static const struct session_said nothing = {.client = ""};
static const struct session_said editor = {.client = "editor/1"};
static const struct session_said able = {
    .client = "editor/1", .client_can = 0x15};

static int
setup(void **state)
{
	*state = session_keeper_new(key, sizeof(key), TTL);
	return 0;
}

static int
teardown(void **state)
{
	session_keeper_free(*state);
	return 0;
}

TEST(an_issued_session_is_opened_with_its_revision)
{
	char id[SESSION_TEXT_MAX + 1];
	struct session s;

	session_issue(
	    *state, era_find_served("2025-06-18"), &t_a, &nothing, NOW, id);
	assert_int_equal(strlen(id), 80);
	for (const char *p = id; *p != '\0'; p++)
		assert_in_range(*p, 0x21, 0x7e);
	assert_int_equal(session_open(*state, id, &t_a, NOW, &s), 0);
	assert_string_equal(s.rev->date, "2025-06-18");
	assert_int_equal(s.issued_s, NOW);
}

TEST(a_session_says_which_client_it_is_of)
{
	char client[CALL_CLIENT_MAX + 1] = "", id[SESSION_TEXT_MAX + 1];
	struct session s;

	for (size_t n = 0; n <= CALL_CLIENT_MAX; n++) {
		const struct session_said said = {
		    client, n % 2 == 0 ? 0 : (unsigned int)n};

		session_issue(*state, era_negotiate(""), &t_a, &said, NOW, id);
		assert_int_equal(session_open(*state, id, &t_a, NOW, &s), 0);
		assert_string_equal(s.client, client);
		assert_int_equal(s.client_can, said.client_can);
		assert_int_equal(
		    session_open(*state, id, &t_b, NOW, &s), ERR_NOTFOUND);
		if (n < CALL_CLIENT_MAX)
			client[n] = (char)('a' + n % 26);
	}
}

TEST(the_longest_session_has_room)
{
	char client[CALL_CLIENT_MAX + 1], id[SESSION_TEXT_MAX + 1];
	const struct session_said said = {client, 0xff};
	struct session s;

	memset(client, 'x', CALL_CLIENT_MAX);
	client[CALL_CLIENT_MAX] = '\0';
	session_issue(*state, era_negotiate(""), &t_a, &said, NOW, id);
	assert_int_equal(strlen(id), SESSION_TEXT_MAX);
	assert_int_equal(session_open(*state, id, &t_a, NOW, &s), 0);
	assert_string_equal(s.client, client);
	assert_int_equal(s.client_can, 0xff);
}

TEST(a_session_says_what_its_client_can_without_a_name)
{
	const struct session_said said = {.client = "", .client_can = 2};
	char id[SESSION_TEXT_MAX + 1];
	struct session s;

	session_issue(*state, era_negotiate(""), &t_a, &said, NOW, id);
	assert_int_equal(session_open(*state, id, &t_a, NOW, &s), 0);
	assert_string_equal(s.client, "");
	assert_int_equal(s.client_can, 2);
}

/* As the first two forms were issued, under this key and for this principal. */
TEST(sessions_of_before_are_still_read)
{
	static const char bare[] =
	    "AQE1AfUAa0nSAFJSUlJSUlJSUlJSUlJSUlJSUr8ADjqP0-JyrRSORWAtBCkQPM1D"
	    "SUSuQ5e8XjN3gMBE";
	static const char named[] =
	    "AgE1AfUAa0nSAFJSUlJSUlJSUlJSUlJSUlJSUghlZGl0b3IvMf6czoeRpq1JERVG"
	    "RWgAg0BgrKn6ob3tWPEPlKkJF2s0";
	struct session s;

	assert_int_equal(session_open(*state, bare, &t_a, NOW, &s), 0);
	assert_string_equal(s.rev->date, "2025-11-25");
	assert_string_equal(s.client, "");
	assert_int_equal(s.client_can, 0);
	assert_int_equal(session_open(*state, named, &t_a, NOW, &s), 0);
	assert_string_equal(s.client, "editor/1");
	assert_int_equal(s.client_can, 0);
}

TEST(what_a_client_cannot_is_not_in_the_form_of_its_session)
{
	char bare[SESSION_TEXT_MAX + 1], named[SESSION_TEXT_MAX + 1];
	struct session s;

	session_issue(*state, era_negotiate(""), &t_a, &nothing, NOW, bare);
	session_issue(*state, era_negotiate(""), &t_a, &editor, NOW, named);
	assert_int_equal(strncmp(bare, "AQ", 2), 0);
	assert_int_equal(strncmp(named, "Ag", 2), 0);
	assert_int_equal(session_open(*state, bare, &t_a, NOW, &s), 0);
	assert_int_equal(s.client_can, 0);
	assert_int_equal(session_open(*state, named, &t_a, NOW, &s), 0);
	assert_int_equal(s.client_can, 0);
	assert_string_equal(s.client, "editor/1");
}

TEST(no_character_of_a_session_with_a_client_can_be_changed)
{
	char id[SESSION_TEXT_MAX + 1];
	struct session s;

	session_issue(*state, era_negotiate(""), &t_a, &able, NOW, id);
	assert_int_equal(session_open(*state, id, &t_a, NOW, &s), 0);
	for (char *p = id; *p != '\0'; p++) {
		char was = *p;

		*p = was == 'A' ? 'B' : 'A';
		assert_int_equal(
		    session_open(*state, id, &t_a, NOW, &s), ERR_NOTFOUND);
		*p = '\0';
		assert_int_equal(
		    session_open(*state, id, &t_a, NOW, &s), ERR_NOTFOUND);
		*p = was;
	}
	assert_int_equal(session_open(*state, id, &t_a, NOW, &s), 0);
}

TEST(two_sessions_have_two_names_and_one_keeps_its_own)
{
	char a[SESSION_TEXT_MAX + 1], b[SESSION_TEXT_MAX + 1];
	struct session s, again, other;

	session_issue(*state, era_negotiate(""), &t_a, &nothing, NOW, a);
	session_issue(*state, era_negotiate(""), &t_a, &nothing, NOW, b);
	assert_int_equal(session_open(*state, a, &t_a, NOW, &s), 0);
	assert_int_equal(session_open(*state, a, &t_a, NOW, &again), 0);
	assert_string_equal(s.name, again.name);
	assert_int_equal(strlen(s.name), SESSION_NAME_LEN);
	assert_int_equal(session_open(*state, b, &t_a, NOW, &other), 0);
	assert_string_not_equal(s.name, other.name);
}

TEST(two_sessions_are_never_the_same)
{
	char a[SESSION_TEXT_MAX + 1], b[SESSION_TEXT_MAX + 1];

	session_issue(*state, era_negotiate(""), &t_a, &nothing, NOW, a);
	session_issue(*state, era_negotiate(""), &t_a, &nothing, NOW, b);
	assert_string_not_equal(a, b);
}

TEST(a_session_lives_on_in_a_new_server_with_the_same_key)
{
	struct session_keeper *other =
	    session_keeper_new(key, sizeof(key), TTL);
	char id[SESSION_TEXT_MAX + 1];
	struct session s;

	session_issue(*state, era_negotiate(""), &t_a, &nothing, NOW, id);
	assert_int_equal(session_open(other, id, &t_a, NOW, &s), 0);
	session_keeper_free(other);
}

TEST(a_server_with_another_key_does_not_know_it)
{
	uint8_t changed[32];
	struct session_keeper *other;
	char id[SESSION_TEXT_MAX + 1];
	struct session s;

	memcpy(changed, key, sizeof(key));
	changed[31] ^= 1;
	other = session_keeper_new(changed, sizeof(changed), TTL);
	session_issue(*state, era_negotiate(""), &t_a, &nothing, NOW, id);
	assert_int_equal(session_open(other, id, &t_a, NOW, &s), ERR_NOTFOUND);
	session_keeper_free(other);
}

/* Whether its own has used it before or not. */
TEST(another_principal_does_not_find_it)
{
	char id[SESSION_TEXT_MAX + 1];
	struct session s;

	session_issue(*state, era_negotiate(""), &t_a, &nothing, NOW, id);
	for (int i = 0; i < 2; i++) {
		assert_int_equal(
		    session_open(*state, id, &t_b, NOW, &s), ERR_NOTFOUND);
		assert_int_equal(
		    session_open(*state, id, &t, NOW, &s), ERR_NOTFOUND);
		/* The same letters, cut elsewhere. */
		assert_int_equal(
		    session_open(*state, id, &ta, NOW, &s), ERR_NOTFOUND);
		assert_int_equal(session_open(*state, id, &t_a, NOW, &s), 0);
	}
}

/* More than are remembered, in turns. */
TEST(many_sessions_each_find_their_own)
{
	char id[300][SESSION_TEXT_MAX + 1], client[16];
	struct session s;

	for (int i = 0; i < 300; i++) {
		const struct session_said said = {client, (unsigned int)i % 3};

		(void)snprintf(client, sizeof(client), "client/%d", i);
		session_issue(*state, era_negotiate(""), i % 2 ? &t_a : &t_b,
		    &said, NOW, id[i]);
	}
	for (int i = 0; i < 900; i++) {
		int k = i * 7 % 300;

		(void)snprintf(client, sizeof(client), "client/%d", k);
		assert_int_equal(
		    session_open(*state, id[k], k % 2 ? &t_a : &t_b, NOW, &s),
		    0);
		assert_string_equal(s.client, client);
		assert_int_equal(
		    session_open(*state, id[k], k % 2 ? &t_b : &t_a, NOW, &s),
		    ERR_NOTFOUND);
	}
}

TEST(each_changed_character_makes_it_unknown)
{
	char id[SESSION_TEXT_MAX + 1];
	struct session s;

	session_issue(*state, era_negotiate(""), &t_a, &nothing, NOW, id);
	for (size_t i = 0; i < 80; i++) {
		char was = id[i];

		id[i] = was == 'A' ? 'B' : 'A';
		assert_int_equal(
		    session_open(*state, id, &t_a, NOW, &s), ERR_NOTFOUND);
		id[i] = was;
	}
	assert_int_equal(session_open(*state, id, &t_a, NOW, &s), 0);
}

TEST(texts_of_another_form_are_unknown)
{
	char id[SESSION_TEXT_MAX + 1], text[SESSION_TEXT_MAX + 8];
	struct session s;

	session_issue(*state, era_negotiate(""), &t_a, &nothing, NOW, id);
	(void)snprintf(text, sizeof(text), "%s ", id);
	assert_int_equal(
	    session_open(*state, text, &t_a, NOW, &s), ERR_NOTFOUND);
	(void)snprintf(text, sizeof(text), "%.79s", id);
	assert_int_equal(
	    session_open(*state, text, &t_a, NOW, &s), ERR_NOTFOUND);
	(void)snprintf(text, sizeof(text), "%.79s=", id);
	assert_int_equal(
	    session_open(*state, text, &t_a, NOW, &s), ERR_NOTFOUND);
	assert_int_equal(session_open(*state, "", &t_a, NOW, &s), ERR_NOTFOUND);
	assert_int_equal(
	    session_open(
		*state, "123e4567-e89b-42d3-a456-426614174000", &t_a, NOW, &s),
	    ERR_NOTFOUND);
}

TEST(a_session_expires)
{
	char id[SESSION_TEXT_MAX + 1];
	struct session s;

	session_issue(*state, era_negotiate(""), &t_a, &nothing, NOW, id);
	assert_int_equal(session_open(*state, id, &t_a, NOW + TTL, &s), 0);
	assert_int_equal(
	    session_open(*state, id, &t_a, NOW + TTL + 1, &s), ERR_NOTFOUND);
}

TEST(an_ended_session_is_unknown_and_others_are_not)
{
	char a[SESSION_TEXT_MAX + 1], b[SESSION_TEXT_MAX + 1];
	struct session s;

	session_issue(*state, era_negotiate(""), &t_a, &nothing, NOW, a);
	session_issue(*state, era_negotiate(""), &t_a, &nothing, NOW, b);
	assert_int_equal(session_open(*state, a, &t_a, NOW, &s), 0);
	session_end(*state, &s, NOW);
	session_end(*state, &s, NOW);
	assert_int_equal(session_open(*state, a, &t_a, NOW, &s), ERR_NOTFOUND);
	assert_int_equal(session_open(*state, b, &t_a, NOW, &s), 0);
}

/* The one that ended first is forgotten first. */
TEST(the_memory_of_ended_sessions_is_bounded)
{
	struct session s = {.rev = era_negotiate(""), .issued_s = NOW}, first;
	char id[SESSION_TEXT_MAX + 1];

	session_issue(*state, era_negotiate(""), &t_a, &nothing, NOW, id);
	assert_int_equal(session_open(*state, id, &t_a, NOW, &first), 0);
	session_end(*state, &first, NOW);
	for (uint32_t i = 1; i < SESSION_ENDED_MAX; i++) {
		memcpy(s.id, &i, sizeof(i));
		session_end(*state, &s, NOW);
	}
	assert_int_equal(
	    session_open(*state, id, &t_a, NOW, &first), ERR_NOTFOUND);
	memset(s.id, 0xff, sizeof(s.id));
	session_end(*state, &s, NOW);
	assert_int_equal(session_open(*state, id, &t_a, NOW, &first), 0);
}

TEST_MAIN(setup, teardown)
