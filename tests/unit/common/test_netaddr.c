#include "common/netaddr.h"
#include "tests/unit/test.h"

static struct netaddr
address(const char *text)
{
	struct netaddr a;

	assert_int_equal(netaddr_parse(text, strlen(text), &a), 0);
	return a;
}

TEST(addresses_come_back_as_they_are_written)
{
	static const char *const same[] = {
	    "192.0.2.1", "2001:db8::1", "::1", "::", "0.0.0.0"};
	char text[NETADDR_TEXT_MAX];
	struct netaddr a;

	for (size_t i = 0; i < ARRAY_LEN(same); i++) {
		a = address(same[i]);
		assert_string_equal(netaddr_format(&a, text), same[i]);
	}
	a = address("::ffff:192.0.2.1");
	assert_string_equal(netaddr_format(&a, text), "192.0.2.1");
}

TEST(what_is_no_address_is_refused)
{
	static const char *const bad[] = {"", "1.2.3", "1.2.3.4.5", "01.2.3.4",
	    "1.2.3.4 ", " 1.2.3.4", "1.2.3.256", "2001:db8::1%eth0", "[::1]",
	    "localhost", ":::", "1.2.3.4:80",
	    "1111:2222:3333:4444:5555:6666:7777:8888:9999:aaaa:bbbb"};
	struct netaddr a;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		assert_int_equal(
		    netaddr_parse(bad[i], strlen(bad[i]), &a), ERR_INVAL);
	assert_int_equal(netaddr_parse("1.2.3.4\0x", 9, &a), ERR_INVAL);
}

TEST(loopback_is_known)
{
	static const struct {
		const char *text;
		bool loopback;
	} table[] = {{"127.0.0.1", true}, {"127.255.0.9", true}, {"::1", true},
	    {"::ffff:127.0.0.1", true}, {"128.0.0.1", false}, {"::2", false},
	    {"::", false}, {"0.0.0.0", false}};
	const struct netaddr unix_peer = {.kind = NETADDR_UNIX};

	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		const struct netaddr a = address(table[i].text);

		assert_int_equal(netaddr_is_loopback(&a), table[i].loopback);
	}
	assert_true(netaddr_is_loopback(&unix_peer));
}

TEST(a_block_has_what_begins_alike)
{
	static const struct {
		const char *block, *address;
		bool has;
	} table[] = {
	    {"192.0.2.0/24", "192.0.2.255", true},
	    {"192.0.2.0/24", "192.0.3.0", false},
	    {"192.0.2.128/25", "192.0.2.129", true},
	    {"192.0.2.128/25", "192.0.2.127", false},
	    {"192.0.2.7", "192.0.2.7", true},
	    {"192.0.2.7", "192.0.2.6", false},
	    {"0.0.0.0/0", "203.0.113.9", true},
	    {"0.0.0.0/0", "2001:db8::1", false},
	    {"::/0", "2001:db8::1", true},
	    {"::/0", "192.0.2.1", false},
	    {"2001:db8::/33", "2001:db8:7fff::1", true},
	    {"2001:db8::/33", "2001:db8:8000::1", false},
	    {"10.0.0.0/8", "::ffff:10.1.2.3", true},
	};
	struct netblock b;
	struct err e;

	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		const struct netaddr a = address(table[i].address);

		assert_int_equal(netblock_parse(table[i].block, &b, &e), 0);
		assert_int_equal(netblock_has(&b, &a), table[i].has);
	}
}

TEST(unix_is_a_block_of_its_own)
{
	const struct netaddr peer = {.kind = NETADDR_UNIX},
			     none = {.kind = NETADDR_NONE},
			     v4 = address("0.0.0.0");
	struct netblock local, all;
	struct err e;

	assert_int_equal(netblock_parse("unix", &local, &e), 0);
	assert_int_equal(netblock_parse("0.0.0.0/0", &all, &e), 0);
	assert_true(netblock_has(&local, &peer));
	assert_false(netblock_has(&local, &v4));
	assert_false(netblock_has(&all, &peer));
	assert_false(netblock_has(&all, &none));
}

TEST(what_is_no_block_is_refused_by_name)
{
	static const char *const bad[] = {"", "/", "/8", "10.0.0.0/",
	    "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/ 8", "10.0.0.0/8/8",
	    "10.0.0.1/8", "2001:db8::/129", "2001:db8::1/64", "proxy.example",
	    "unix:", "10.0.0.0/0008"};
	struct netblock b;
	struct err e;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		assert_int_equal(netblock_parse(bad[i], &b, &e), ERR_INVAL);
		assert_non_null(strstr(e.msg, bad[i]));
	}
}

TEST_MAIN(NULL, NULL)
