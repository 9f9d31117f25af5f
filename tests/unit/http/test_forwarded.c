#include <stdio.h>

#include "supervisor/http/forwarded.h"
#include "tests/unit/test.h"

static char proxy_net[] = "10.0.0.0/8", proxy_v6[] = "2001:db8:1::/48",
	    proxy_unix[] = "unix";
static char *const list[] = {proxy_net, proxy_v6, proxy_unix, NULL};

static struct forwarded_proxies
proxies(void)
{
	struct forwarded_proxies p;
	struct err e;

	assert_int_equal(forwarded_parse_proxies(list, &p, &e), 0);
	return p;
}

/* The client, for a peer and the lines of its header, the last one first. */
static const char *
client(const char *peer, const char *line, const char *line_before)
{
	static char text[NETADDR_TEXT_MAX];
	const struct forwarded_proxies p = proxies();
	struct netaddr a = {.kind = NETADDR_UNIX};
	struct forwarded_walk w = {.proxies = &p, .client = &a};

	if (strcmp(peer, "unix") != 0)
		assert_int_equal(netaddr_parse(peer, strlen(peer), &a), 0);
	forwarded_step(&w, line);
	if (line_before != NULL)
		forwarded_step(&w, line_before);
	return netaddr_format(&a, text);
}

TEST(the_last_address_that_is_no_proxy_is_the_client)
{
	static const struct {
		const char *peer, *line, *client;
	} table[] = {
	    {"10.0.0.1", "192.0.2.1", "192.0.2.1"},
	    {"unix", "192.0.2.1", "192.0.2.1"},
	    {"10.0.0.1", "192.0.2.1:4711", "192.0.2.1"},
	    {"10.0.0.1", "2001:db8::1", "2001:db8::1"},
	    {"10.0.0.1", "[2001:db8::1]", "2001:db8::1"},
	    {"10.0.0.1", "[2001:db8::1]:443", "2001:db8::1"},
	    {"10.0.0.1", " \t192.0.2.1 \t", "192.0.2.1"},
	    /* what the client wrote itself comes before it */
	    {"10.0.0.1", "203.0.113.9, 192.0.2.1", "192.0.2.1"},
	    {"10.0.0.1", "rubbish, 192.0.2.1", "192.0.2.1"},
	    {"10.0.0.1", "192.0.2.1, 10.0.0.2, 2001:db8:1::5", "192.0.2.1"},
	    /* all are proxies: the first of them asked */
	    {"10.0.0.1", "10.0.0.3,10.0.0.2", "10.0.0.3"},
	};

	for (size_t i = 0; i < ARRAY_LEN(table); i++)
		assert_string_equal(client(table[i].peer, table[i].line, NULL),
		    table[i].client);
}

TEST(who_is_no_proxy_is_not_believed)
{
	assert_string_equal(
	    client("192.0.2.1", "203.0.113.9", NULL), "192.0.2.1");
	assert_string_equal(
	    client("11.0.0.1", "10.0.0.1, 203.0.113.9", NULL), "11.0.0.1");
}

TEST(lines_are_one_list_read_from_its_end)
{
	assert_string_equal(
	    client("10.0.0.1", "10.0.0.2", "203.0.113.9, 192.0.2.1"),
	    "192.0.2.1");
	assert_string_equal(
	    client("10.0.0.1", "192.0.2.1", "203.0.113.9"), "192.0.2.1");
}

TEST(what_is_malformed_ends_the_walk_at_who_sent_it)
{
	static const char *const bad[] = {"", ",", "unknown", "192.0.2.1,",
	    "192.0.2.1, ", "192.0.2.1 10.0.0.1", "192.0.2.1:", "192.0.2.1:x",
	    "192.0.2.1:123456", "[192.0.2.1]", "[2001:db8::1", "[::1]x",
	    "2001:db8::1%1", "[2001:db8::1]:", "\"192.0.2.1\"", "_hidden"};

	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_string_equal(
		    client("10.0.0.1", bad[i], NULL), "10.0.0.1");
	assert_string_equal(
	    client("10.0.0.1", "192.0.2.1, junk, 10.0.0.2", NULL), "10.0.0.2");
}

TEST(a_long_list_is_not_read_to_its_beginning)
{
	char line[40000] = "";
	size_t at = 0;

	for (int i = 0; i < 3000; i++)
		at += (size_t)snprintf(
		    line + at, sizeof(line) - at, "%s10.0.0.9", i ? "," : "");
	assert_string_equal(client("10.0.0.1", line, "192.0.2.1"), "10.0.0.9");
}

TEST(a_wrong_proxy_is_named)
{
	char bad[] = "10.0.0.1/8";
	char *const wrong[] = {proxy_net, bad, NULL};
	struct forwarded_proxies p;
	struct err e;

	assert_int_equal(forwarded_parse_proxies(wrong, &p, &e), ERR_INVAL);
	assert_non_null(strstr(e.msg, "TRUSTED_PROXIES"));
	assert_non_null(strstr(e.msg, "10.0.0.1/8"));
	assert_int_equal(forwarded_parse_proxies(NULL, &p, &e), 0);
	assert_int_equal(p.n, 0);
}

TEST(the_last_element_is_taken_without_blanks)
{
	const char *p;
	size_t n;

	p = forwarded_last("http, https ", &n);
	assert_int_equal(n, 5);
	assert_memory_equal(p, "https", n);
	assert_null(forwarded_last("https,", &n));
	assert_null(forwarded_last("", &n));
}

TEST_MAIN(NULL, NULL)
