#include "common/engine_host.h"
#include "tests/unit/test.h"

TEST(a_socket_is_an_absolute_path)
{
	struct engine_host h;
	struct err e;

	assert_int_equal(engine_host_parse("unix:///run/x.sock", &h, &e), 0);
	assert_int_equal(h.kind, ENGINE_HOST_UNIX);
	assert_string_equal(h.path, "/run/x.sock");
}

TEST(a_host_is_a_name_or_an_address_with_a_port)
{
	static const struct {
		const char *text, *name;
		uint16_t port;
		bool is_ipv6, is_loopback;
	} good[] = {{"tcp://docker:2376", "docker", 2376, false, false},
	    {"tcp://Docker.Example:1", "docker.example", 1, false, false},
	    {"tcp://192.0.2.1:65535", "192.0.2.1", 65535, false, false},
	    {"tcp://127.0.0.2:2375", "127.0.0.2", 2375, false, true},
	    {"tcp://localhost:2375", "localhost", 2375, false, true},
	    {"tcp://[::1]:2375", "::1", 2375, true, true},
	    {"tcp://[2001:db8::1]:2375", "2001:db8::1", 2375, true, false}};
	struct engine_host h;
	struct err e;

	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		if (engine_host_parse(good[i].text, &h, &e) != 0)
			fail_msg("%s: %s", good[i].text, e.msg);
		assert_int_equal(h.kind, ENGINE_HOST_TCP);
		assert_string_equal(h.name, good[i].name);
		assert_int_equal(h.port, good[i].port);
		assert_int_equal(h.is_ipv6, good[i].is_ipv6);
		assert_int_equal(h.is_loopback, good[i].is_loopback);
	}
}

TEST(what_else_stands_there_is_refused)
{
	static const char *const bad[] = {"", "docker:2375", "ssh://x:22",
	    "unix://run/x", "unix://", "tcp://", "tcp://x", "tcp://:2375",
	    "tcp://x:", "tcp://x:0", "tcp://x:65536", "tcp://x:123456",
	    "tcp://x:2375/", "tcp://x:2375?a", "tcp://u@x:2375",
	    "tcp://::1:2375", "tcp://[x]:2375", "tcp://[::1:2375",
	    "tcp://[127.0.0.1]:2375", "tcp://x y:2375", "tcp://x\r\n:2375"};
	struct engine_host h;
	struct err e;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		if (engine_host_parse(bad[i], &h, &e) != ERR_INVAL)
			fail_msg("%s", bad[i]);
		assert_non_null(strstr(e.msg, "DOCKER_HOST is \""));
	}
}

TEST(the_order_is_the_compatible_servers)
{
	char *usual[ENGINE_HOST_USUAL_MAX];

	assert_int_equal(setenv("XDG_RUNTIME_DIR", "/own", 1), 0);
	assert_int_equal(engine_host_usual(usual), ENGINE_HOST_USUAL_MAX);
	assert_string_equal(usual[0], "/own/podman/podman.sock");
	assert_string_equal(usual[1], "/own/docker.sock");
	assert_string_equal(usual[2], "/run/podman/podman.sock");
	assert_string_equal(usual[3], "/var/run/docker.sock");
	for (size_t i = 0; i < ENGINE_HOST_USUAL_MAX; i++)
		free(usual[i]);
}

TEST_MAIN(NULL, NULL)
