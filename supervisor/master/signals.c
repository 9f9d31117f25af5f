#include "supervisor/master/signals.h"

#include <errno.h>
#include <signal.h>
#include <sys/signalfd.h>

#include <event2/event.h>

#include "common/xmalloc.h"

struct signals {
	int fd;
	struct event *event;
	signals_cb cb;
	void *arg;
};

static void
signals_read_cb(evutil_socket_t fd, short what, void *arg)
{
	struct signals *s = arg;
	struct signalfd_siginfo info;

	(void)what;
	while (read(fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
		s->cb((int)info.ssi_signo,
		    info.ssi_code == SI_KERNEL ? SIGNALS_KERNEL : SIGNALS_SENT,
		    s->arg);
}

int
signals_open(struct event_base *base, signals_cb cb, void *arg,
    struct signals **out, struct err *e)
{
	static const int wanted[] = {SIGTERM, SIGINT, SIGHUP, SIGCHLD};
	struct signals *s;
	sigset_t set;
	int fd;

	(void)signal(SIGPIPE, SIG_IGN);
	/* Ignored by who started us, SIGCHLD would take the zombies away. */
	(void)signal(SIGCHLD, SIG_DFL);
	(void)sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_LEN(wanted); i++)
		(void)sigaddset(&set, wanted[i]);
	if (sigprocmask(SIG_BLOCK, &set, NULL) == -1)
		return err_set(e, ERR_SYS, "sigprocmask: %s", strerror(errno));
	fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	if (fd == -1)
		return err_set(e, ERR_SYS, "signalfd: %s", strerror(errno));

	s = xcalloc(1, sizeof(*s));
	s->fd = fd;
	s->cb = cb;
	s->arg = arg;
	s->event =
	    event_new(base, fd, EV_READ | EV_PERSIST, signals_read_cb, s);
	if (s->event == NULL || event_add(s->event, NULL) == -1) {
		signals_close(s);
		return err_set(e, ERR_SYS, "signals: no event");
	}
	*out = s;
	return 0;
}

void
signals_close(struct signals *s)
{
	if (s == NULL)
		return;
	if (s->event != NULL)
		event_free(s->event);
	(void)close(s->fd);
	free(s);
}
