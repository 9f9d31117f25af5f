#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <netinet/in.h>

#include "supervisor/front/check.h"

/* The usual case stands in test_front.c, over real requests. */

static struct conf *conf;
static struct check *check;

static int
setup(void **state)
{
	(void)state;
	conf = conf_new();
	check = check_new(conf);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	check_free(check);
	conf_free(conf);
	return 0;
}

static void
listen_on(const char *address, uint16_t port)
{
	struct sockaddr_in in4 = {
	    .sin_family = AF_INET, .sin_port = htons(port)};
	struct sockaddr_in6 in6 = {
	    .sin6_family = AF_INET6, .sin6_port = htons(port)};

	if (inet_pton(AF_INET, address, &in4.sin_addr) == 1) {
		check_add_listener(check, (void *)&in4);
		return;
	}
	assert_int_equal(inet_pton(AF_INET6, address, &in6.sin6_addr), 1);
	check_add_listener(check, (void *)&in6);
}

static bool
is_good(const char *host, const char *local)
{
	struct sockaddr_in in4 = {
	    .sin_family = AF_INET, .sin_port = htons(8080)};
	struct check_refusal why;

	if (local != NULL)
		assert_int_equal(inet_pton(AF_INET, local, &in4.sin_addr), 1);
	return check_request(check, host, NULL,
		   local != NULL ? (void *)&in4 : NULL, &why) == 0;
}

static void
the_address_listened_on_is_a_name(void **state)
{
	(void)state;
	listen_on("192.0.2.7", 8080);
	assert_true(is_good("192.0.2.7:8080", NULL));
	assert_true(is_good("localhost:8080", NULL));
	assert_false(is_good("192.0.2.8:8080", NULL));
	assert_false(is_good("192.0.2.8:8080", "192.0.2.8"));
	listen_on("2001:db8::7", 8081);
	assert_true(is_good("[2001:db8::7]:8081", NULL));
	assert_false(is_good("[2001:db8::7]:8080", NULL));
}

static void
listening_everywhere_the_address_reached_is_a_name(void **state)
{
	(void)state;
	listen_on("0.0.0.0", 8080);
	assert_true(is_good("127.0.0.1:8080", NULL));
	assert_true(is_good("192.0.2.8:8080", "192.0.2.8"));
	assert_false(is_good("192.0.2.8:8080", "192.0.2.9"));
	assert_false(is_good("192.0.2.8:8080", NULL));
	assert_false(is_good("0.0.0.0:8080", "192.0.2.8"));
	assert_false(is_good("evil.example:8080", "192.0.2.8"));
}

static void
without_a_port_the_host_is_on_port_80(void **state)
{
	(void)state;
	listen_on("127.0.0.1", 80);
	assert_true(is_good("127.0.0.1", NULL));
	assert_true(is_good("localhost", NULL));
	assert_true(is_good("[::1]", NULL));
	assert_true(is_good("localhost:80", NULL));
	assert_false(is_good("localhost:8080", NULL));
	assert_false(is_good("::1", NULL));
}

static void
a_page_from_another_address_of_ours_must_be_listed(void **state)
{
	struct check_refusal why;
	struct err e;

	(void)state;
	listen_on("192.0.2.7", 8080);
	assert_int_equal(check_request(check, "192.0.2.7:8080",
			     "http://192.0.2.7:8080", NULL, &why),
	    -1);
	assert_int_equal(why.status, 403);
	assert_string_equal(why.code, "origin_not_allowed");
	assert_int_equal(conf_set(conf, "CORS_ALLOW_ORIGINS",
			     "http://x,http://192.0.2.7:8080", &e),
	    0);
	check_reload(check, conf);
	assert_int_equal(check_request(check, "192.0.2.7:8080",
			     "http://192.0.2.7:8080", NULL, &why),
	    0);
}

static void
very_long_names_are_refused(void **state)
{
	char host[5000];

	(void)state;
	listen_on("127.0.0.1", 80);
	memset(host, 'a', sizeof(host) - 1);
	host[sizeof(host) - 1] = '\0';
	assert_false(is_good(host, NULL));
	assert_false(is_good(host, "127.0.0.1"));
}

int
main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
	    T(the_address_listened_on_is_a_name),
	    T(listening_everywhere_the_address_reached_is_a_name),
	    T(without_a_port_the_host_is_on_port_80),
	    T(a_page_from_another_address_of_ours_must_be_listed),
	    T(very_long_names_are_refused),
	};

	return cmocka_run_group_tests_name("check", tests, NULL, NULL);
}
