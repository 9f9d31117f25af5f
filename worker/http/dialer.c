/*
 *	worker	a byte, for one connection ->
 *	dialer	looks the name up, connects to one address after another
 *		<- struct dial_answer, and with it the socket
 *
 * One question after another: a host that does not answer costs each of them
 * DIAL_MS, and who asks gives up before.
 */
#include "worker/http/dialer.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#include <event2/event.h>

#include "common/confine.h"
#include "common/exit.h"
#include "common/fd.h"
#include "common/fence.h"
#include "common/log.h"
#include "common/xmalloc.h"
#include "worker/later.h"

#define DIAL_MS 3000 /* for each address */
#define DIALED_FD 3
/* A peer that is gone without a word is noticed in half a minute. */
#define IDLE_S 15
#define BETWEEN_S 5
#define PROBES 3
#define UNSENT_MS 30000

struct dial_answer {
	int32_t number; /* errno; 0 with a socket, or why says more */
	char why[DIALER_WHY_MAX];
};

struct dialer {
	struct event_base *base;
	struct event *ev;
	int fd;
	char *host;
	dialer_cb cb;
	void *arg;
};

/* ---- the dialer's process */

/* Names are looked up in these.  The whole of /etc: Landlock's rules are of
 * inodes, and /etc/resolv.conf is a file that others replace. */
static int
dialer_confine(struct err *e)
{
	static const struct fence_gate gates[] = {{NULL, FENCE_TCP},
	    {"/etc", FENCE_READ}, {"/run/systemd/resolve", FENCE_READ},
	    {"/run/resolvconf", FENCE_READ},
	    {"/run/NetworkManager", FENCE_READ}};

	if (fence_raise(gates, ARRAY_LEN(gates), e) != 0)
		return e->code;
	return confine(CONFINE_ENVOY, e);
}

static void
set_options(int fd)
{
	static const struct {
		int level, name, value;
	} options[] = {{SOL_SOCKET, SO_KEEPALIVE, 1},
	    {IPPROTO_TCP, TCP_NODELAY, 1}, {IPPROTO_TCP, TCP_KEEPIDLE, IDLE_S},
	    {IPPROTO_TCP, TCP_KEEPINTVL, BETWEEN_S},
	    {IPPROTO_TCP, TCP_KEEPCNT, PROBES},
	    {IPPROTO_TCP, TCP_USER_TIMEOUT, UNSENT_MS}};

	for (size_t i = 0; i < ARRAY_LEN(options); i++)
		(void)setsockopt(fd, options[i].level, options[i].name,
		    &options[i].value, sizeof(options[i].value));
}

static int
await_connection(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLOUT};
	int number = ETIMEDOUT;
	socklen_t n = sizeof(number);

	if (poll(&p, 1, DIAL_MS) == 1)
		(void)getsockopt(fd, SOL_SOCKET, SO_ERROR, &number, &n);
	return number;
}

/* -1: *number says why. */
static int
dial_address(const struct addrinfo *a, int *number)
{
	int fd = socket(a->ai_family,
	    (int)((unsigned int)a->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK),
	    0);

	*number = fd == -1 ? errno : 0;
	if (fd == -1)
		return -1;
	if (connect(fd, a->ai_addr, a->ai_addrlen) == -1)
		*number = errno == EINPROGRESS ? await_connection(fd) : errno;
	if (*number == 0) {
		set_options(fd);
		return fd;
	}
	(void)close(fd);
	return -1;
}

/* The first that answers; else the first's failure is told. */
static int
dial(const char *host, const char *port, struct dial_answer *out)
{
	const struct addrinfo hints = {
	    .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
	struct addrinfo *list = NULL;
	int fd = -1, number, rc = getaddrinfo(host, port, &hints, &list);

	if (rc != 0) {
		(void)snprintf(out->why, sizeof(out->why),
		    "the name %.60s has no address: %s", host,
		    gai_strerror(rc));
		return -1;
	}
	for (const struct addrinfo *a = list; a != NULL && fd == -1;
	     a = a->ai_next) {
		fd = dial_address(a, &number);
		if (out->number == 0)
			out->number = number;
	}
	freeaddrinfo(list);
	if (fd != -1)
		out->number = 0;
	return fd;
}

static int
send_answer(const struct dial_answer *a, int fd)
{
	struct iovec iov = {(void *)(uintptr_t)a, sizeof(*a)};
	union {
		char room[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = {.room = ""};
	struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1};
	struct cmsghdr *c;

	if (fd != -1) {
		m.msg_control = control.room;
		m.msg_controllen = sizeof(control.room);
		c = CMSG_FIRSTHDR(&m);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(fd));
		memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	}
	return sendmsg(DIALED_FD, &m, MSG_NOSIGNAL) == sizeof(*a) ? 0 : -1;
}

static void
serve(const char *host, const char *port)
{
	char question;

	while (recv(DIALED_FD, &question, 1, 0) == 1) {
		struct dial_answer a = {.why = ""};
		int fd = dial(host, port, &a);
		int rc = send_answer(&a, fd);

		if (fd != -1)
			(void)close(fd);
		if (rc != 0)
			return;
	}
}

static void
reset_handlers(void)
{
	const struct sigaction standard = {.sa_handler = SIG_DFL};
	sigset_t none;

	for (int sig = 1; sig < NSIG; sig++)
		(void)sigaction(sig, &standard, NULL); /* some refuse */
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
}

static NORETURN void
dialer_main(int fd, pid_t parent, const char *host, uint16_t port)
{
	char service[8];
	struct err e;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	(void)prctl(PR_SET_NAME, "sandboxd-dialer", 0, 0, 0);
	if (getppid() != parent)
		_exit(0);
	reset_handlers();
	if (fd != DIALED_FD && dup2(fd, DIALED_FD) == -1)
		_exit(EXIT_BUG);
	fd_close_from(DIALED_FD + 1);
	if (fcntl(DIALED_FD, F_SETFL, 0) == -1)
		_exit(EXIT_BUG);
	if (dialer_confine(&e) != 0) {
		log_error("the process that connects to %s: %s", host, e.msg);
		_exit(EXIT_PRIVILEGE);
	}
	(void)snprintf(service, sizeof(service), "%u", (unsigned int)port);
	serve(host, service);
	_exit(0);
}

/* ---- the worker's side */

/* -1: there is none. */
static int
take_socket(struct msghdr *m)
{
	const struct cmsghdr *c = CMSG_FIRSTHDR(m);
	int fd;

	if (c == NULL || c->cmsg_level != SOL_SOCKET ||
	    c->cmsg_type != SCM_RIGHTS || c->cmsg_len != CMSG_LEN(sizeof(fd)))
		return -1;
	memcpy(&fd, CMSG_DATA(c), sizeof(fd));
	return fd;
}

static void
answer_cb(evutil_socket_t at, short what, void *arg)
{
	struct dialer *d = arg;
	struct dial_answer a;
	struct iovec iov = {&a, sizeof(a)};
	union {
		char room[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control;
	struct msghdr m = {.msg_iov = &iov,
	    .msg_iovlen = 1,
	    .msg_control = control.room,
	    .msg_controllen = sizeof(control.room)};
	ssize_t n = recvmsg(at, &m, MSG_CMSG_CLOEXEC);

	(void)what;
	if (n == -1 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n != sizeof(a))
		fatal(EXIT_BUG, "the process that connects to %s has ended",
		    d->host);
	a.why[sizeof(a.why) - 1] = '\0';
	d->cb(take_socket(&m), a.number, a.why, d->arg);
}

static void
dialer_start(struct dialer *d, uint16_t port)
{
	pid_t parent = getpid(), pid;
	int fds[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK,
		0, fds) == -1)
		fatal(EXIT_MEMORY, "socketpair: %s", strerror(errno));
	pid = fork();
	if (pid == -1)
		fatal(EXIT_MEMORY, "fork: %s", strerror(errno));
	if (pid == 0)
		dialer_main(fds[1], parent, d->host, port);
	(void)close(fds[1]);
	d->fd = fds[0];
}

struct dialer *
dialer_new(struct event_base *base, const char *host, uint16_t port,
    dialer_cb cb, void *arg)
{
	struct dialer *d = xcalloc(1, sizeof(*d));

	d->base = base;
	d->host = xstrdup(host);
	d->cb = cb;
	d->arg = arg;
	dialer_start(d, port);
	d->ev = event_new(base, d->fd, EV_READ | EV_PERSIST, answer_cb, d);
	if (d->ev == NULL || event_add(d->ev, NULL) == -1)
		fatal(EXIT_MEMORY, "no memory for an event");
	return d;
}

/* A full queue is of questions that will be answered first. */
void
dialer_ask(struct dialer *d)
{
	if (send(d->fd, "", 1, MSG_NOSIGNAL) != 1 && errno != EAGAIN)
		fatal(EXIT_BUG, "the process that connects to %s has ended",
		    d->host);
}

/* Its process ends by the end of its socket.  Nobody waits for it: it may be
 * waiting for a name server, and the worker ends soon. */
void
dialer_free(struct dialer *d)
{
	if (d == NULL)
		return;
	later_event_free(d->base, d->ev);
	(void)close(d->fd);
	free(d->host);
	free(d);
}
