#include "supervisor/master/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "common/child.h"
#include "common/exit.h"
#include "common/fd.h"
#include "common/log.h"
#include "common/place.h"
#include "common/xmalloc.h"

#ifndef PKGLIBEXECDIR
#define PKGLIBEXECDIR "/usr/local/libexec/mcp-sandboxd"
#endif

#define SPAWN_NOFILE 65536 /* thousands of event streams in the front */
#define SPAWN_ENV_MAX 64

/* The directory of the running program, without the last slash. */
static int
own_directory(char *out, size_t size, struct err *e)
{
	ssize_t n = readlink("/proc/self/exe", out, size - 1);
	char *slash;

	if (n < 0)
		return err_errno(e, "/proc/self/exe");
	out[n] = '\0';
	slash = strrchr(out, '/');
	if (slash == NULL)
		return err_set(e, ERR_SYS, "/proc/self/exe: no path");
	*slash = '\0';
	return 0;
}

/* It is started with the rights of its role. */
static int
refuse_writable(const char *path, struct err *e)
{
	struct stat st;

	if (stat(path, &st) == 0 && (st.st_mode & S_IWOTH) != 0)
		return err_set(e, ERR_POLICY,
		    "program %s may be written by everybody: chmod o-w it",
		    path);
	return 0;
}

int
spawn_find(const char *program, char **path, struct err *e)
{
	char dir[PATH_MAX];
	AUTO(auto_free) char *beside = NULL;
	AUTO(auto_free) char *installed = NULL;
	char **found;

	if (own_directory(dir, sizeof(dir), e) != 0)
		return e->code;
	beside = xasprintf("%s/%s", dir, program);
	installed = xasprintf("%s/%s", PKGLIBEXECDIR, program);
	found = access(beside, X_OK) == 0 ? &beside : &installed;
	if (access(*found, X_OK) == 0) {
		if (refuse_writable(*found, e) != 0)
			return e->code;
		*path = *found; /* the caller frees it */
		*found = NULL;
		return 0;
	}
	return err_set(e, ERR_NOTFOUND,
	    "there is no program %s, nor %s: build or install all of "
	    "mcp-sandboxd",
	    beside, installed);
}

int
spawn_copy(int fd, const char *what)
{
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);

	if (copy == -1)
		log_error("%s: %s", what, strerror(errno));
	return copy;
}

int
spawn_ask(void (*work)(const void *arg, void *answer), const void *arg,
    void *answer, size_t size)
{
	ssize_t n = -1;
	int fds[2];
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC) == -1)
		return -1;
	pid = fork();
	if (pid == 0) {
		work(arg, answer);
		_exit(write(fds[1], answer, size) != (ssize_t)size);
	}
	(void)close(fds[1]);
	if (pid != -1) {
		n = read(fds[0], answer, size);
		(void)waitpid(pid, NULL, 0);
	}
	(void)close(fds[0]);
	return n == (ssize_t)size ? 0 : -1;
}

/* From here on: the child's own steps, in their order. */

static void
reset_signals(void)
{
	struct sigaction sa;
	sigset_t none;

	memset(&sa, 0, sizeof(sa));
	sa.sa_handler = SIG_DFL;
	for (int sig = 1; sig < NSIG; sig++)
		(void)sigaction(sig, &sa, NULL); /* some refuse, rightly */
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
}

static int
arrange_descriptors(int channel, struct err *e)
{
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	if (null == -1 || dup2(null, STDIN_FILENO) == -1)
		return err_errno(e, "/dev/null");
	/* dup2 of a descriptor onto itself would leave close-on-exec set. */
	if (channel == CHILD_CTL_FD) {
		if (fcntl(channel, F_SETFD, 0) == -1)
			return err_errno(e, "channel");
	} else if (dup2(channel, CHILD_CTL_FD) == -1) {
		return err_errno(e, "channel");
	}
	/* Output of a library goes where the log goes. */
	if (dup2(STDERR_FILENO, STDOUT_FILENO) == -1)
		return err_errno(e, "stdout");
	fd_close_from(CHILD_CTL_FD + 1);
	return 0;
}

void
spawn_raise_limits(void)
{
	struct rlimit l, higher;

	if (getrlimit(RLIMIT_NOFILE, &l) == -1 || l.rlim_cur >= SPAWN_NOFILE)
		return;
	higher = l;
	higher.rlim_cur = SPAWN_NOFILE;
	if (higher.rlim_max < SPAWN_NOFILE)
		higher.rlim_max = SPAWN_NOFILE;
	if (setrlimit(RLIMIT_NOFILE, &higher) == 0)
		return;
	l.rlim_cur = l.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &l) == -1)
		log_warn("RLIMIT_NOFILE: %s", strerror(errno));
}

/* Memory of a child holds what clients sent: it goes to no file. */
static int
refuse_core(struct err *e)
{
	const struct rlimit none = {0, 0};

	if (setrlimit(RLIMIT_CORE, &none) == -1)
		return err_errno(e, "RLIMIT_CORE");
	return 0;
}

/* After the ids: a change of ids clears the death signal.  A parent that
 * died before prctl is noticed by its pid. */
static int
tie_to_parent(pid_t parent, struct err *e)
{
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == -1 ||
	    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) == -1)
		return err_errno(e, "prctl");
	if (getppid() != parent)
		_exit(0);
	return 0;
}

static bool
env_is_kept(const char *entry)
{
	/* The API server's address is there alone in a Pod. */
	static const char *const kept[] = {
	    "TZ=", "XDG_RUNTIME_DIR=", "KUBERNETES_SERVICE_HOST=",
	    "KUBERNETES_SERVICE_PORT=", "MCP_SANDBOXD_"};

	/* Of the bridge (stdio_command.h), and a secret. */
	if (strncmp(entry, "MCP_SANDBOXD_TOKEN", 18) == 0)
		return false;
	for (size_t i = 0; i < ARRAY_LEN(kept); i++)
		if (strncmp(entry, kept[i], strlen(kept[i])) == 0)
			return true;
	return false;
}

static void
select_environment(char **out, size_t max)
{
	size_t n = 0;

	for (char **p = environ; *p != NULL && n + 1 < max; p++)
		if (env_is_kept(*p))
			out[n++] = *p;
	out[n] = NULL;
}

static NORETURN void
exec_program(const struct spawn *s)
{
	char *env[SPAWN_ENV_MAX];
	char *argv[] = {NULL, NULL, NULL};
	const char *base = strrchr(s->path, '/');
	struct err why;
	int failed;

	argv[0] = xstrdup(base != NULL ? base + 1 : s->path);
	argv[1] = s->arg != NULL ? xstrdup(s->arg) : NULL;
	select_environment(env, ARRAY_LEN(env));
	(void)execve(s->path, argv, env);
	failed = errno;
	if (failed != EACCES || place_check_way(s->path, &why) == 0)
		(void)err_set(&why, ERR_SYS, "%s", strerror(failed));
	log_error("cannot execute %s as %s: %s", s->path,
	    s->user != NULL ? s->user->name : "the present user", why.msg);
	_exit(failed == EACCES ? EXIT_PRIVILEGE : EXIT_MEMORY);
}

static NORETURN void
run_child(const struct spawn *s, int channel, pid_t parent)
{
	struct err e;

	log_init(s->name);
	reset_signals();
	(void)setsid();
	(void)umask(077);
	if (arrange_descriptors(channel, &e) != 0) {
		log_error("%s", e.msg);
		_exit(EXIT_MEMORY);
	}
	if (privdrop_bound(0, &e) != 0 ||
	    (s->user != NULL && privdrop_apply(s->user, &e) != 0) ||
	    privdrop_keep(0, &e) != 0 || refuse_core(&e) != 0 ||
	    tie_to_parent(parent, &e) != 0) {
		log_error("%s", e.msg);
		_exit(EXIT_PRIVILEGE);
	}
	exec_program(s);
}

int
spawn_child(const struct spawn *s, int channel, pid_t *pid, struct err *e)
{
	pid_t parent = getpid();
	pid_t made = fork();

	if (made == -1)
		return err_errno(e, "fork of %s", s->name);
	if (made == 0)
		run_child(s, channel, parent);
	*pid = made;
	return 0;
}
