#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "supervisor/master/listen.h"
#include "tests/unit/test.h"

static int
connect_to(uint16_t port)
{
	struct sockaddr_in to = {.sin_family = AF_INET,
	    .sin_port = htons(port),
	    .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	assert_true(fd >= 0);
	if (connect(fd, (struct sockaddr *)&to, sizeof(to)) == -1) {
		(void)close(fd);
		return -1;
	}
	return fd;
}

TEST(port_0_takes_a_free_port_and_says_which)
{
	struct listener l = LISTENER_INIT;
	char want[LISTEN_ADDRESS_MAX];
	struct err e;
	int fd;

	assert_int_equal(listen_open("127.0.0.1", 0, &l, &e), 0);
	assert_int_not_equal(l.port, 0);
	(void)snprintf(want, sizeof(want), "127.0.0.1:%u", l.port);
	assert_string_equal(l.address, want);
	fd = connect_to(l.port);
	assert_true(fd >= 0);
	(void)close(fd);
	listen_close(&l);
	assert_int_equal(l.fd, -1);
}

TEST(ipv6_is_written_in_brackets)
{
	struct listener l = LISTENER_INIT;
	char want[LISTEN_ADDRESS_MAX];
	struct err e;

	assert_int_equal(listen_open("::1", 0, &l, &e), 0);
	(void)snprintf(want, sizeof(want), "[::1]:%u", l.port);
	assert_string_equal(l.address, want);
	listen_close(&l);
}

TEST(the_socket_is_non_blocking_and_not_inherited)
{
	struct listener l = LISTENER_INIT;
	struct err e;

	assert_int_equal(listen_open("127.0.0.1", 0, &l, &e), 0);
	assert_true((fcntl(l.fd, F_GETFL) & O_NONBLOCK) != 0);
	assert_true((fcntl(l.fd, F_GETFD) & FD_CLOEXEC) != 0);
	assert_int_equal(accept(l.fd, NULL, NULL), -1);
	assert_int_equal(errno, EAGAIN);
	listen_close(&l);
}

/* The front of a server that was killed holds it until it has ended, too. */
TEST(a_port_that_is_about_to_be_free_is_waited_for)
{
	struct listener first = LISTENER_INIT, second = LISTENER_INIT;
	const struct timespec while_it_ends = {.tv_nsec = 100000000};
	uint16_t port;
	struct err e;
	pid_t holder;

	assert_int_equal(listen_open("127.0.0.1", 0, &first, &e), 0);
	port = first.port;
	holder = fork();
	assert_true(holder >= 0);
	if (holder == 0) {
		(void)nanosleep(&while_it_ends, NULL);
		_exit(0);
	}
	listen_close(&first);
	assert_int_equal(listen_open("127.0.0.1", port, &second, &e), 0);
	assert_int_equal(second.port, port);
	listen_close(&second);
	assert_int_equal(waitpid(holder, NULL, 0), holder);
}

TEST(a_taken_port_says_what_to_do)
{
	struct listener first = LISTENER_INIT, second = LISTENER_INIT;
	char want[128];
	struct err e;

	assert_int_equal(listen_open("127.0.0.1", 0, &first, &e), 0);
	assert_int_equal(
	    listen_open("127.0.0.1", first.port, &second, &e), ERR_CONFLICT);
	(void)snprintf(want, sizeof(want),
	    "port %u on 127.0.0.1 is in use: stop the other server or set "
	    "PORT",
	    first.port);
	assert_string_equal(e.msg, want);
	assert_int_equal(second.fd, -1);
	listen_close(&first);
}

/* SO_REUSEADDR: a connection in TIME_WAIT must not keep a server away. */
TEST(a_port_with_lingering_connections_can_be_taken_again)
{
	struct listener l = LISTENER_INIT;
	int client, served;
	uint16_t port;
	struct err e;

	assert_int_equal(listen_open("127.0.0.1", 0, &l, &e), 0);
	port = l.port;
	client = connect_to(port);
	assert_true(client >= 0);
	served = accept(l.fd, NULL, NULL);
	assert_true(served >= 0);
	(void)close(served); /* first: the server's side lingers */
	(void)close(client);
	listen_close(&l);
	assert_int_equal(listen_open("127.0.0.1", port, &l, &e), 0);
	listen_close(&l);
}

TEST(what_is_no_address_is_refused_by_name)
{
	static const char *const bad[] = {
	    "", "localhost", "127.0.0.1:80", "127.1", "[::1]", " 127.0.0.1"};
	struct listener l = LISTENER_INIT;
	struct err e;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		assert_int_equal(listen_open(bad[i], 0, &l, &e), ERR_INVAL);
		assert_non_null(strstr(e.msg, "BIND"));
		assert_int_equal(l.fd, -1);
	}
}

TEST_MAIN(NULL, NULL)
