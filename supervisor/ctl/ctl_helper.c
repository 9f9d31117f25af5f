#include "supervisor/ctl/ctl_helper.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "common/fd.h"
#include "common/privdrop.h"

/* ---- signals that end us end the process that does the work; what it left is
 * then for us to take away */

static const int ends[] = {SIGHUP, SIGINT, SIGTERM};
static volatile sig_atomic_t helper; /* 0: nobody */

struct signals_before {
	sigset_t mask;
	struct sigaction acts[ARRAY_LEN(ends)];
};

static void
pass_on_cb(int sig)
{
	(void)sig;
	if (helper > 0)
		(void)kill((pid_t)helper, SIGTERM);
}

/* They wait until helper is known. */
static void
signals_take(struct signals_before *b)
{
	const struct sigaction act = {.sa_handler = pass_on_cb};
	sigset_t set;

	(void)sigemptyset(&set);
	for (size_t i = 0; i < ARRAY_LEN(ends); i++)
		(void)sigaddset(&set, ends[i]);
	(void)sigprocmask(SIG_BLOCK, &set, &b->mask);
	for (size_t i = 0; i < ARRAY_LEN(ends); i++)
		if (sigaction(ends[i], NULL, &b->acts[i]) == 0 &&
		    b->acts[i].sa_handler != SIG_IGN)
			(void)sigaction(ends[i], &act, NULL);
}

static void
signals_give_back(const struct signals_before *b)
{
	for (size_t i = 0; i < ARRAY_LEN(ends); i++)
		(void)sigaction(ends[i], &b->acts[i], NULL);
	(void)sigprocmask(SIG_SETMASK, &b->mask, NULL);
}

/* ---- the process */

struct answer {
	int rc;
	struct err why;
	char said[CTL_HELPER_TEXT];
};

static int
become(const struct ctl_helper_user *user, struct err *e)
{
	struct privdrop_user to = {.uid = user->uid, .gid = user->gid};

	(void)snprintf(
	    to.name, sizeof(to.name), "uid %u", (unsigned int)user->uid);
	return geteuid() != 0 || user->uid == 0 ? 0 : privdrop_apply(&to, e);
}

static NORETURN void
help(const struct ctl_helper_user *user, int to, pid_t parent,
    int (*work)(char *said, void *arg, struct err *e), void *arg)
{
	static struct answer a;

	a.rc = become(user, &a.why);
	/* Behind the change of users, which forgets it. */
	if (a.rc == 0 && prctl(PR_SET_PDEATHSIG, SIGKILL) == -1)
		a.rc = err_errno(&a.why, "prctl");
	if (getppid() != parent)
		_exit(1);
	if (a.rc == 0)
		a.rc = work(a.said, arg, &a.why);
	if (fd_write_all(to, &a, sizeof(a), &a.why) != 0)
		_exit(1);
	_exit(0);
}

static int
take(int from, pid_t pid, char *said, struct err *e)
{
	static struct answer a;
	size_t used = 0;
	int status = 0;
	ssize_t n;

	while (used < sizeof(a) &&
	    ((n = read(from, (char *)&a + used, sizeof(a) - used)) > 0 ||
		(n == -1 && errno == EINTR)))
		used += n > 0 ? (size_t)n : 0;
	helper = 0;
	while (waitpid(pid, &status, 0) == -1 && errno == EINTR)
		;
	if (used != sizeof(a))
		return err_set(e, ERR_SYS,
		    WIFSIGNALED(status) ?
			"it was ended by signal %d" :
			"the process that does it ended with status %d",
		    WIFSIGNALED(status) ? WTERMSIG(status) :
					  WEXITSTATUS(status));
	a.said[sizeof(a.said) - 1] = '\0';
	a.why.msg[sizeof(a.why.msg) - 1] = '\0';
	(void)snprintf(said, CTL_HELPER_TEXT, "%s", a.said);
	if (a.rc != 0)
		*e = a.why;
	return a.rc;
}

int
ctl_helper_run(const struct ctl_helper_user *user,
    int (*work)(char *said, void *arg, struct err *e), void *arg, char *said,
    struct err *e)
{
	pid_t parent = getpid(), pid;
	struct signals_before before;
	int fds[2], rc;

	if (pipe2(fds, O_CLOEXEC) == -1)
		return err_errno(e, "pipe");
	(void)fflush(NULL);
	signals_take(&before);
	pid = fork();
	if (pid == 0) {
		signals_give_back(&before);
		help(user, fds[1], parent, work, arg);
	}
	helper = pid == -1 ? 0 : pid;
	(void)sigprocmask(SIG_SETMASK, &before.mask, NULL);
	(void)close(fds[1]);
	rc = pid == -1 ? err_errno(e, "fork") : take(fds[0], pid, said, e);
	(void)close(fds[0]);
	signals_give_back(&before);
	return rc;
}
