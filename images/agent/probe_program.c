#include "images/agent/probe_program.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <time.h>

#include "common/clock.h"
#include "common/exit.h"

#define PROBE_AGAIN_MS 50
#define PROBE_MS_MAX 600000

struct probe_target {
	const char *text;
	struct sockaddr_storage address;
	socklen_t len;
};

/* A decimal number from 1 to max; 0: it is none. */
static unsigned long
number_of(const char *text, unsigned long max)
{
	char *end;
	unsigned long n;

	if (*text < '0' || *text > '9')
		return 0;
	errno = 0;
	n = strtoul(text, &end, 10);
	return errno != 0 || *end != '\0' || n > max ? 0 : n;
}

static bool
take_v4(struct probe_target *t, const char *host, in_port_t port)
{
	struct sockaddr_in *in = (struct sockaddr_in *)&t->address;

	in->sin_family = AF_INET;
	in->sin_port = port;
	t->len = sizeof(*in);
	return inet_pton(AF_INET, host, &in->sin_addr) == 1;
}

/* host without its first bracket */
static bool
take_v6(struct probe_target *t, char *host, in_port_t port)
{
	struct sockaddr_in6 *in = (struct sockaddr_in6 *)&t->address;
	size_t n = strlen(host);

	if (n == 0 || host[n - 1] != ']')
		return false;
	host[n - 1] = '\0';
	in->sin6_family = AF_INET6;
	in->sin6_port = port;
	t->len = sizeof(*in);
	return inet_pton(AF_INET6, host, &in->sin6_addr) == 1;
}

static bool
take_target(struct probe_target *t, const char *text)
{
	const char *colon = strrchr(text, ':');
	char host[INET6_ADDRSTRLEN + 2];
	unsigned long port;

	*t = (struct probe_target){.text = text};
	if (colon == NULL || (size_t)(colon - text) >= sizeof(host))
		return false;
	port = number_of(colon + 1, 65535);
	memcpy(host, text, (size_t)(colon - text));
	host[colon - text] = '\0';
	if (port == 0)
		return false;
	return host[0] == '[' ? take_v6(t, host + 1, htons((in_port_t)port)) :
				take_v4(t, host, htons((in_port_t)port));
}

/* 0: somebody took the connection within ms; or an errno. */
static int
knock_once(const struct probe_target *t, uint64_t ms)
{
	AUTO(auto_close) int fd = -1;
	struct pollfd p = {.events = POLLOUT};
	int error = 0;
	socklen_t len = sizeof(error);

	fd = socket(t->address.ss_family,
	    SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd == -1)
		return errno;
	if (connect(fd, (const struct sockaddr *)&t->address, t->len) == 0)
		return 0;
	if (errno != EINPROGRESS)
		return errno;
	p.fd = fd;
	if (poll(&p, 1, (int)ms) <= 0)
		return ETIMEDOUT;
	return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) == -1 ?
	    errno :
	    error;
}

static uint64_t
at_most(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static void
pause_shortly(void)
{
	const struct timespec pause = {0, PROBE_AGAIN_MS * 1000000};

	(void)nanosleep(&pause, NULL);
}

static int
reach(const struct probe_target *t, uint64_t ms)
{
	uint64_t now = clock_mono_ms();
	const uint64_t until = now + ms;
	int error = 0;

	for (; now < until; now = clock_mono_ms()) {
		error = knock_once(t, until - now);
		if (error == 0)
			return 0;
		pause_shortly();
	}
	(void)dprintf(
	    STDERR_FILENO, "agent reach: %s: %s\n", t->text, strerror(error));
	return 1;
}

static int
barred(const struct probe_target *t, uint64_t ms, uint64_t quiet_ms)
{
	uint64_t now = clock_mono_ms(), since = now;
	const uint64_t until = now + ms;

	for (; now < until; now = clock_mono_ms()) {
		if (knock_once(t, at_most(quiet_ms, until - now)) == 0)
			since = clock_mono_ms();
		else if (clock_mono_ms() - since >= quiet_ms)
			return 0;
		pause_shortly();
	}
	(void)dprintf(
	    STDERR_FILENO, "agent barred: %s can be reached\n", t->text);
	return 1;
}

/* On all addresses, of both families where there are both. */
static int
open_listener(in_port_t port)
{
	const struct sockaddr_in6 both = {
	    .sin6_family = AF_INET6, .sin6_port = port};
	const struct sockaddr_in one = {
	    .sin_family = AF_INET, .sin_port = port};
	const int on = 1, off = 0;
	bool has_v6;
	int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);

	has_v6 = fd != -1;
	if (!has_v6)
		fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd == -1)
		return -1;
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (has_v6)
		(void)setsockopt(
		    fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
	if ((has_v6 ? bind(fd, (const struct sockaddr *)&both, sizeof(both)) :
		      bind(fd, (const struct sockaddr *)&one, sizeof(one))) ==
		0 &&
	    listen(fd, SOMAXCONN) == 0)
		return fd;
	(void)close(fd);
	return -1;
}

static NORETURN void
end_cb(int sig)
{
	(void)sig;
	_exit(0);
}

static int
listen_on(unsigned long port)
{
	int fd;

	/* The first process of a container has to want to end. */
	(void)signal(SIGTERM, end_cb);
	fd = open_listener(htons((in_port_t)port));
	if (fd == -1) {
		(void)dprintf(STDERR_FILENO, "agent listen: port %lu: %s\n",
		    port, strerror(errno));
		return 1;
	}
	for (;;) {
		int caller = accept(fd, NULL, NULL);

		if (caller != -1)
			(void)close(caller);
		else if (errno != EINTR && errno != ECONNABORTED)
			pause_shortly();
	}
}

static int
usage(void)
{
	(void)dprintf(STDERR_FILENO,
	    "agent listen PORT\n"
	    "agent reach ADDRESS:PORT MS\n"
	    "agent barred ADDRESS:PORT MS QUIET_MS\n");
	return EXIT_USAGE;
}

static int
run_listen(int argc, char **argv)
{
	unsigned long port = argc == 3 ? number_of(argv[2], 65535) : 0;

	return port == 0 ? usage() : listen_on(port);
}

static int
run_reach(int argc, char **argv)
{
	struct probe_target target;
	unsigned long ms = argc == 4 ? number_of(argv[3], PROBE_MS_MAX) : 0;

	return ms == 0 || !take_target(&target, argv[2]) ? usage() :
							   reach(&target, ms);
}

static int
run_barred(int argc, char **argv)
{
	struct probe_target target;
	unsigned long ms = argc == 5 ? number_of(argv[3], PROBE_MS_MAX) : 0;
	unsigned long quiet_ms = ms != 0 ? number_of(argv[4], ms) : 0;

	return quiet_ms == 0 || !take_target(&target, argv[2]) ?
	    usage() :
	    barred(&target, ms, quiet_ms);
}

static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
} programs[] = {
    {"listen", run_listen}, {"reach", run_reach}, {"barred", run_barred}};

static size_t
find_program(int argc, char **argv)
{
	size_t i = 0;

	while (i < ARRAY_LEN(programs) &&
	    (argc < 2 || strcmp(argv[1], programs[i].name) != 0))
		i++;
	return i;
}

bool
probe_program_is(int argc, char **argv)
{
	return find_program(argc, argv) < ARRAY_LEN(programs);
}

int
probe_program_run(int argc, char **argv)
{
	return programs[find_program(argc, argv)].run(argc, argv);
}
