#include "images/agent/reap.h"

#include <errno.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>

#include "common/clock.h"
#include "images/agent/tree.h"

#define REAP_ROUND_US 20000
#define REAP_AGAIN_MS 2
#define REAP_UNKILLABLE_MS 1000
#define REAP_SHUTDOWN_MS 300

static bool
is_keeper(pid_t pid, void *arg)
{
	const struct reaper *r = arg;

	return keepers_has(&r->procs->keepers, pid);
}

static void
orphans_begin(struct reaper *r)
{
	uint64_t now = clock_mono_ms();

	if (!r->orphans)
		r->since_ms = now;
	r->orphans = true;
	r->next_ms = now;
}

static void
reap_children(struct reaper *r)
{
	int status;
	pid_t pid;

	/* Reports first: a keeper's report counts, not how the keeper ended. */
	procs_read_reports(r->procs);
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		if (procs_on_reaped(r->procs, pid))
			orphans_begin(r);
}

/* Only of kill(2), where the kernel names the sender; with other codes the
 * sender does. */
static bool
is_to_end(const struct signalfd_siginfo *info)
{
	return info->ssi_signo == SIGTERM && info->ssi_code == SI_USER &&
	    (getpid() != 1 || info->ssi_pid == 0);
}

static void
reap_signal_cb(uint32_t events, void *arg)
{
	struct signalfd_siginfo info[8];
	struct reaper *r = arg;
	ssize_t n = read(r->fd, info, sizeof(info));

	(void)events;
	for (size_t i = 0; n > 0 && i < (size_t)n / sizeof(info[0]); i++)
		if (is_to_end(&info[i]))
			r->quit = true;
	reap_children(r);
}

int
reap_init(
    struct reaper *r, struct loop *loop, struct procs *procs, struct err *e)
{
	sigset_t set;

	memset(r, 0, sizeof(*r));
	r->loop = loop;
	r->procs = procs;
	(void)sigfillset(&set);
	if (sigprocmask(SIG_SETMASK, &set, NULL) == -1)
		return err_set(e, ERR_SYS, "sigprocmask: %s", strerror(errno));
	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGCHLD);
	(void)sigaddset(&set, SIGTERM);
	r->fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (r->fd == -1)
		return err_set(e, ERR_SYS, "signalfd: %s", strerror(errno));
	r->token = loop_add(loop, r->fd, EPOLLIN, reap_signal_cb, r);
	if (r->token == 0)
		return err_set(e, ERR_SYS, "epoll_ctl: %s", strerror(errno));
	return 0;
}

void
reap_tick(struct reaper *r, uint64_t now_ms)
{
	size_t n;

	if (r->procs->left_orphans) {
		r->procs->left_orphans = false;
		orphans_begin(r);
	}
	if (!r->orphans || now_ms < r->next_ms)
		return;
	n = tree_kill(getpid(), is_keeper, r, clock_mono_us() + REAP_ROUND_US);
	if (n == 0 || now_ms - r->since_ms >= REAP_ORPHANS_MS)
		procs_on_orphans_gone(r->procs);
	r->orphans = n > 0;
	/* What is still there dies soon, unless the kernel holds it. */
	r->next_ms = now_ms +
	    (now_ms - r->since_ms < REAP_ORPHANS_MS ? REAP_AGAIN_MS :
						      REAP_UNKILLABLE_MS);
}

uint64_t
reap_next_ms(const struct reaper *r)
{
	if (r->procs->left_orphans)
		return 0;
	return r->orphans ? r->next_ms : UINT64_MAX;
}

void
reap_shutdown(struct reaper *r)
{
	uint64_t end = clock_mono_ms() + REAP_SHUTDOWN_MS;
	const struct timespec pause = {0, 2000000};

	if (getpid() == 1) {
		(void)kill(-1, SIGKILL);
		return;
	}
	/* Not init: only what is ours. */
	procs_kill_all(r->procs);
	while (r->procs->nlive > 0 && clock_mono_ms() < end) {
		(void)nanosleep(&pause, NULL);
		reap_children(r);
	}
	(void)tree_kill(getpid(), NULL, NULL, clock_mono_us() + REAP_ROUND_US);
}
