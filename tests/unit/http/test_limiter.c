/* link: -Wl,--wrap=clock_mono_ms */
#include <stdio.h>

#include "supervisor/http/limiter.h"
#include "tests/unit/test.h"

/* The time stands still unless a test moves it. */
static uint64_t now_ms = 1000000;
uint64_t __wrap_clock_mono_ms(void);
uint64_t
__wrap_clock_mono_ms(void)
{
	return now_ms;
}

static const struct limiter_rates rates = {.connections = 3,
    .requests_per_s = 10,
    .requests_burst = 20,
    .failed_logins_per_min = 5};

static struct netaddr
address(const char *text)
{
	struct netaddr a;

	assert_int_equal(netaddr_parse(text, strlen(text), &a), 0);
	return a;
}

static unsigned int
admitted(struct limiter *l, const char *text, unsigned int asked)
{
	const struct netaddr a = address(text);
	unsigned int n = 0;

	while (asked-- > 0)
		n += limiter_admit(l, &a) == 0;
	return n;
}

static struct limiter *
made(size_t entries)
{
	struct limiter *l = limiter_new(entries);

	limiter_set_rates(l, &rates);
	return l;
}

TEST(an_address_has_its_burst_and_then_its_rate)
{
	struct limiter *l = made(1024);
	const struct netaddr a = address("192.0.2.1");

	assert_int_equal(admitted(l, "192.0.2.1", 100), 20);
	assert_int_equal(limiter_admit(l, &a), 1);
	assert_int_equal(admitted(l, "192.0.2.2", 100), 20);
	now_ms += 1000;
	assert_int_equal(admitted(l, "192.0.2.1", 100), 10);
	now_ms += 100;
	assert_int_equal(admitted(l, "192.0.2.1", 100), 1);
	now_ms += 3600000;
	assert_int_equal(admitted(l, "192.0.2.1", 100), 20);
	assert_int_equal(
	    limiter_refused(l, LIMITER_REQUESTS), 80 + 1 + 80 + 90 + 99 + 80);
	limiter_free(l);
}

TEST(what_is_refused_takes_nothing)
{
	struct limiter *l = made(1024);

	assert_int_equal(admitted(l, "192.0.2.1", 100000), 20);
	now_ms += 1000;
	assert_int_equal(admitted(l, "192.0.2.1", 100000), 10);
	limiter_free(l);
}

TEST(an_ipv6_network_is_one_address)
{
	struct limiter *l = made(1024);

	assert_int_equal(admitted(l, "2001:db8::1", 15), 15);
	assert_int_equal(admitted(l, "2001:db8::ffff:1", 15), 5);
	assert_int_equal(admitted(l, "2001:db8:0:1::1", 15), 15);
	limiter_free(l);
}

/* Both keys of an address fall into one set now and then, here about once in
 * 128 networks, and want a place each. */
TEST(an_ipv6_network_and_its_site_have_a_place_each)
{
	struct limiter *l = made(1024);
	char text[64];

	for (unsigned int i = 0; i < 4000; i++) {
		struct netaddr a;

		(void)snprintf(text, sizeof(text), "2001:db8:%x::1", i);
		a = address(text);
		assert_true(limiter_connect(l, &a));
		limiter_disconnect(l, &a);
		assert_int_equal(admitted(l, text, 40), 20);
		now_ms += 60000;
	}
	limiter_free(l);
}

TEST(an_ipv6_site_has_so_many_times_as_much)
{
	struct limiter *l = made(65536);
	unsigned int n = 0;
	char text[64];

	for (unsigned int i = 0; i < 1000; i++) {
		(void)snprintf(text, sizeof(text), "2001:db8:0:%x::1", i);
		n += admitted(l, text, 20);
	}
	assert_int_equal(n, 20 * LIMITER_SITE);
	limiter_free(l);
}

TEST(an_ipv4_address_is_one_whichever_way_it_comes)
{
	struct limiter *l = made(1024);

	assert_int_equal(admitted(l, "192.0.2.1", 15), 15);
	assert_int_equal(admitted(l, "::ffff:192.0.2.1", 15), 5);
	limiter_free(l);
}

TEST(loopback_is_counted_only_when_told_to)
{
	struct limiter_rates all = rates;
	struct limiter *l = made(1024);

	assert_int_equal(admitted(l, "127.0.0.1", 1000), 1000);
	assert_int_equal(admitted(l, "::1", 1000), 1000);
	all.loopback = true;
	limiter_set_rates(l, &all);
	assert_int_equal(admitted(l, "127.0.0.1", 1000), 20);
	assert_int_equal(admitted(l, "127.0.0.2", 1000), 20);
	limiter_free(l);
}

/* An attack: fill the table from many addresses, so that the own bucket is
 * forgotten and full again. */
TEST(many_addresses_do_not_reset_a_bucket)
{
	struct limiter *l = made(1024);
	const struct netaddr mine = address("192.0.2.1");
	unsigned int crowd = 0;
	char text[64];

	assert_int_equal(admitted(l, "192.0.2.1", 100), 20);
	for (unsigned int i = 0; i < 100000; i++) {
		(void)snprintf(text, sizeof(text), "10.%u.%u.%u", i >> 16 & 255,
		    i >> 8 & 255, i & 255);
		crowd += admitted(l, text, 1);
	}
	assert_int_not_equal(limiter_admit(l, &mine), 0);
	/* Each place once, and what newcomers share. */
	assert_true(crowd <= 1024 + 20 * LIMITER_CROWD);
	now_ms += 60000;
	assert_int_equal(limiter_admit(l, &mine), 0);
	limiter_free(l);
}

TEST(connections_are_counted_until_they_close)
{
	struct limiter *l = made(1024);
	const struct netaddr a = address("192.0.2.1");

	for (int i = 0; i < 3; i++)
		assert_true(limiter_connect(l, &a));
	assert_false(limiter_connect(l, &a));
	limiter_disconnect(l, &a);
	assert_true(limiter_connect(l, &a));
	assert_int_equal(limiter_refused(l, LIMITER_CONNECTIONS), 1);
	now_ms += 3600000; /* an open connection is not forgotten */
	assert_false(limiter_connect(l, &a));
	for (int i = 0; i < 3; i++)
		limiter_disconnect(l, &a);
	limiter_free(l);
}

TEST(failed_logins_end_further_ones_for_a_while)
{
	struct limiter *l = made(1024);
	const struct netaddr a = address("192.0.2.1");

	for (int i = 0; i < 5; i++) {
		assert_int_equal(limiter_login_wait(l, &a), 0);
		limiter_failed_login(l, &a);
	}
	assert_in_range(limiter_login_wait(l, &a), 1, 13);
	assert_int_equal(admitted(l, "192.0.2.1", 1), 1);
	now_ms += 12000;
	assert_int_equal(limiter_login_wait(l, &a), 0);
	limiter_failed_login(l, &a);
	assert_int_not_equal(limiter_login_wait(l, &a), 0);
	assert_int_equal(limiter_refused(l, LIMITER_LOGINS), 2);
	limiter_free(l);
}

TEST(without_rates_nothing_is_refused)
{
	const struct limiter_rates none = {.loopback = true};
	struct limiter *l = limiter_new(1024);
	const struct netaddr a = address("192.0.2.1");

	limiter_set_rates(l, &none);
	assert_int_equal(admitted(l, "192.0.2.1", 5000), 5000);
	for (int i = 0; i < 5000; i++) {
		assert_true(limiter_connect(l, &a));
		limiter_failed_login(l, &a);
	}
	assert_int_equal(limiter_login_wait(l, &a), 0);
	limiter_free(l);
}

TEST_MAIN(NULL, NULL)
