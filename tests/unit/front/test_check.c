#include <arpa/inet.h>
#include <netinet/in.h>

#include "supervisor/front/check.h"
#include "tests/unit/test.h"

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
	struct check_way way = {0};
	struct check_refusal why;

	if (local != NULL) {
		assert_int_equal(inet_pton(AF_INET, local, &in4.sin_addr), 1);
		way.local = (void *)&in4;
	}
	return check_request(check, host, NULL, &way, &why) == 0;
}

static bool
is_good_from(const char *peer, const char *host)
{
	struct check_refusal why;
	struct netaddr from;

	assert_int_equal(netaddr_parse(peer, strlen(peer), &from), 0);
	return check_request(check, host, NULL,
		   &(struct check_way){.peer = &from}, &why) == 0;
}

/* From this machine. */
static bool
is_origin_good(const char *host, const char *origin)
{
	const struct netaddr from = {.kind = NETADDR_UNIX};
	struct check_refusal why;

	if (check_request(check, host, origin,
		&(struct check_way){.peer = &from}, &why) == 0)
		return true;
	assert_int_equal(why.status, 403);
	assert_string_equal(why.code, "origin_not_allowed");
	return false;
}

TEST(the_address_listened_on_is_a_name)
{
	listen_on("192.0.2.7", 8080);
	assert_true(is_good("192.0.2.7:8080", NULL));
	assert_true(is_good("localhost:8080", NULL));
	assert_false(is_good("192.0.2.8:8080", NULL));
	assert_false(is_good("192.0.2.8:8080", "192.0.2.8"));
	listen_on("2001:db8::7", 8081);
	assert_true(is_good("[2001:db8::7]:8081", NULL));
	assert_false(is_good("[2001:db8::7]:8080", NULL));
}

TEST(listening_everywhere_the_address_reached_is_a_name)
{
	listen_on("0.0.0.0", 8080);
	assert_true(is_good("127.0.0.1:8080", NULL));
	assert_true(is_good("192.0.2.8:8080", "192.0.2.8"));
	assert_false(is_good("192.0.2.8:8080", "192.0.2.9"));
	assert_false(is_good("192.0.2.8:8080", NULL));
	assert_false(is_good("0.0.0.0:8080", "192.0.2.8"));
	assert_false(is_good("evil.example:8080", "192.0.2.8"));
}

TEST(without_a_port_the_host_is_on_port_80)
{
	listen_on("127.0.0.1", 80);
	assert_true(is_good("127.0.0.1", NULL));
	assert_true(is_good("localhost", NULL));
	assert_true(is_good("[::1]", NULL));
	assert_true(is_good("localhost:80", NULL));
	assert_false(is_good("localhost:8080", NULL));
	assert_false(is_good("::1", NULL));
}

/* ssh -L, a forwarded port, a proxy that sends its own name for us. */
TEST(from_this_machine_a_loopback_name_has_any_port)
{
	static const char *const names[] = {"127.0.0.1", "localhost", "[::1]",
	    "127.0.0.1:1", "Localhost:9000", "[::1]:65535"};
	static const char *const near[] = {
	    "127.0.0.1", "127.8.9.1", "::1", "::ffff:127.0.0.1"};
	static const char *const far[] = {
	    "192.0.2.7", "::ffff:192.0.2.7", "2001:db8::1", "::"};

	listen_on("192.0.2.7", 8080);
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		for (size_t k = 0; k < ARRAY_LEN(near); k++)
			assert_true(is_good_from(near[k], names[i]));
		for (size_t k = 0; k < ARRAY_LEN(far); k++)
			assert_false(is_good_from(far[k], names[i]));
		assert_false(is_good(names[i], NULL));
	}
	assert_true(is_good_from("192.0.2.7", "localhost:8080"));
	assert_false(is_good_from("127.0.0.1", "evil.example"));
	assert_false(is_good_from("127.0.0.1", "evil.example:8080"));
	assert_false(is_good_from("127.0.0.1", "localhost:0"));
	assert_false(is_good_from("127.0.0.1", "localhost:99999"));
	assert_false(is_good_from("127.0.0.1", "localhost:-1"));
	assert_false(is_good_from("127.0.0.1", "localhost: 1"));
	assert_false(is_good_from("127.0.0.1", "[::1].evil.example"));
}

/* Another program of this machine serves it. */
TEST(a_page_from_another_port_of_loopback_must_be_listed)
{
	listen_on("127.0.0.1", 8080);
	assert_false(is_origin_good("localhost:3000", "http://localhost:3000"));
	assert_true(is_origin_good("localhost:3000", "http://localhost:8080"));
}

TEST(a_page_from_another_address_of_ours_must_be_listed)
{
	struct err e;

	listen_on("192.0.2.7", 8080);
	assert_false(is_origin_good("192.0.2.7:8080", "http://192.0.2.7:8080"));
	assert_int_equal(conf_set(conf, "CORS_ALLOW_ORIGINS",
			     "http://x,http://192.0.2.7:8080", &e),
	    0);
	assert_true(is_origin_good("192.0.2.7:8080", "http://192.0.2.7:8080"));
}

TEST(very_long_names_are_refused)
{
	char host[5000];

	listen_on("127.0.0.1", 80);
	memset(host, 'a', sizeof(host) - 1);
	host[sizeof(host) - 1] = '\0';
	assert_false(is_good(host, NULL));
	assert_false(is_good(host, "127.0.0.1"));
}

TEST_MAIN(setup, teardown)
