#include "common/outside.h"
#include "tests/unit/test.h"

static struct netaddr
address(const char *text)
{
	struct netaddr a;

	assert_int_equal(netaddr_parse(text, strlen(text), &a), 0);
	return a;
}

TEST(what_only_we_can_reach_is_not_public)
{
	static const char *const inside[] = {"0.0.0.0", "0.1.2.3", "10.0.0.1",
	    "10.255.255.255", "100.64.0.1", "100.127.255.255", "127.0.0.1",
	    "127.255.255.254", "169.254.169.254", "172.16.0.1",
	    "172.31.255.255", "192.0.0.1", "192.0.2.1", "192.88.99.1",
	    "192.168.1.1", "198.18.0.1", "198.19.255.255", "198.51.100.1",
	    "203.0.113.9", "224.0.0.1", "239.255.255.255", "240.0.0.1",
	    "255.255.255.255", "::", "::1", "::ffff:10.0.0.1",
	    "::ffff:127.0.0.1", "::127.0.0.1", "::8.8.8.8", "64:ff9b::10.0.0.1",
	    "64:ff9b::127.0.0.1", "64:ff9b:1::8.8.8.8", "fe80::1", "fc00::1",
	    "fd00:ec2::254", "ff02::1", "fec0::1", "100::1", "2001::1",
	    "2001:db8::1", "2002:7f00:1::", "2002:808:808::", "3fff::1",
	    "5f00::1"};
	const struct netaddr unix_peer = {.kind = NETADDR_UNIX};
	const struct netaddr none = {.kind = NETADDR_NONE};
	struct netaddr a;

	for (size_t i = 0; i < ARRAY_LEN(inside); i++) {
		a = address(inside[i]);
		if (outside_is_public(&a))
			fail_msg("%s", inside[i]);
	}
	assert_false(outside_is_public(&unix_peer));
	assert_false(outside_is_public(&none));
}

TEST(what_everybody_can_reach_is_public)
{
	static const char *const outside[] = {"1.1.1.1", "8.8.8.8",
	    "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0",
	    "126.255.255.255", "128.0.0.0", "169.253.255.255", "172.15.255.255",
	    "172.32.0.0", "192.0.1.0", "192.169.0.0", "198.17.255.255",
	    "198.20.0.0", "223.255.255.255", "::ffff:8.8.8.8",
	    "64:ff9b::8.8.8.8", "2001:200::1", "2606:4700::1111", "2a00::1",
	    "3ffe::1"};
	struct netaddr a;

	for (size_t i = 0; i < ARRAY_LEN(outside); i++) {
		a = address(outside[i]);
		if (!outside_is_public(&a))
			fail_msg("%s", outside[i]);
	}
}

TEST(who_is_named_may_be_reached)
{
	char names[3][32] = {"10.1.0.0/16", "hooks.internal", "::1"};
	char *list[] = {names[0], names[1], names[2], NULL};
	struct netaddr in = address("10.1.2.3"), other = address("10.2.0.1");
	struct netaddr one = address("::1"), outer = address("8.8.8.8");
	const struct netaddr unix_peer = {.kind = NETADDR_UNIX};
	struct outside_allow allow;
	struct err e;

	assert_int_equal(outside_parse(list, &allow, &e), 0);
	assert_true(outside_may_reach(&allow, "x.example", &in));
	assert_true(outside_may_reach(&allow, "x.example", &one));
	assert_true(outside_may_reach(&allow, "x.example", &outer));
	assert_false(outside_may_reach(&allow, "x.example", &other));
	assert_true(outside_may_reach(&allow, "Hooks.Internal", &other));
	assert_false(outside_may_reach(&allow, "xhooks.internal", &other));
	assert_false(outside_may_reach(&allow, "hooks.internal", &unix_peer));
}

TEST(what_names_nobody_is_refused)
{
	static const char *const bad[] = {"", "unix", "10.0.0.1/8",
	    "10.0.0.0/33", "1.2.3", "a b", "*", "a/8"};
	struct outside_allow allow;
	char text[16];
	char *list[] = {text, NULL};
	struct err e;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		memcpy(text, bad[i], strlen(bad[i]) + 1);
		assert_int_equal(outside_parse(list, &allow, &e), ERR_INVAL);
		assert_non_null(strstr(e.msg, bad[i]));
	}
}

TEST_MAIN(NULL, NULL)
