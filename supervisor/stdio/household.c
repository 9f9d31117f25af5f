#include "supervisor/stdio/household.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sysexits.h>

#include <event2/event.h>

#include "common/conf.h"
#include "common/exit.h"
#include "common/fd.h"
#include "common/layout.h"
#include "common/log.h"
#include "common/xmalloc.h"

#define DIR_MODE 0700
#define ARGS_MAX 256

struct household {
	const struct household_ops *ops;
	void *arg;
	char *program;
	char *const *args;
	char *data_setting; /* DATA_DIR=... */
	enum household_listens listens;
	int dir; /* DATA_DIR */
	char socket_path[64];
	pid_t pid; /* 0: none */
	bool is_stopping;
	struct event *on_child;
};

/* ---- the child */

/* Nothing of ours but stderr: stdout is the protocol's. */
static void
set_descriptors(void)
{
	int null = open("/dev/null", O_RDWR);

	if (null == -1 || dup2(null, STDIN_FILENO) == -1 ||
	    dup2(STDERR_FILENO, STDOUT_FILENO) == -1)
		_exit(EX_OSERR);
	fd_close_from(STDERR_FILENO + 1);
}

/* What names another server is not for this one, and no secret either. */
static void
set_environment(void)
{
	(void)unsetenv("MCP_SANDBOXD_URL");
	(void)unsetenv("MCP_SANDBOXD_CA_FILE");
	(void)unsetenv("MCP_SANDBOXD_TOKEN");
	(void)unsetenv("MCP_SANDBOXD_TOKEN_FILE");
}

static NORETURN void
become_server(const struct household *h, pid_t parent)
{
	char *argv[ARGS_MAX + 4];
	static char bind[] = "BIND=" CONF_BIND_NONE;
	size_t n = 0;

	argv[n++] = h->program;
	for (size_t i = 0; h->args[i] != NULL && i < ARGS_MAX; i++)
		argv[n++] = h->args[i];
	argv[n++] = h->data_setting;
	if (h->listens == HOUSEHOLD_SOCKET_ALONE)
		argv[n++] = bind;
	argv[n] = NULL;
	set_descriptors();
	set_environment();
	(void)signal(SIGPIPE, SIG_DFL);
	if (prctl(PR_SET_PDEATHSIG, SIGTERM) == -1 || getppid() != parent)
		_exit(EX_OSERR);
	/* A Ctrl-C in our terminal is ours alone. */
	(void)setsid();
	(void)execv(h->program, argv);
	log_error("%s: %s", h->program, strerror(errno));
	_exit(EX_CONFIG);
}

static bool
is_served(const struct household *h)
{
	struct sockaddr_un sun = {.sun_family = AF_UNIX};
	union {
		struct sockaddr_un *sun;
		struct sockaddr *sa;
	} p = {.sun = &sun};
	AUTO(auto_close)
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	(void)snprintf(
	    sun.sun_path, sizeof(sun.sun_path), "%s", h->socket_path);
	return fd != -1 &&
	    (connect(fd, p.sa, sizeof(sun)) == 0 || errno == EAGAIN);
}

void
household_wake(struct household *h)
{
	pid_t parent = getpid();

	if (h->pid != 0 || h->is_stopping || is_served(h))
		return;
	h->pid = fork();
	if (h->pid == -1) {
		log_error("fork: %s", strerror(errno));
		h->pid = 0;
	} else if (h->pid == 0) {
		become_server(h, parent);
	} else {
		log_info(
		    "starts a server on %s", strchr(h->data_setting, '=') + 1);
	}
}

/* DATA_DIR is another server's: it is asked instead. */
static bool
is_good(int status)
{
	return WIFSIGNALED(status) || WEXITSTATUS(status) == 0 ||
	    WEXITSTATUS(status) == EX_TEMPFAIL;
}

static void
child_cb(evutil_socket_t fd, short what, void *arg)
{
	struct household *h = arg;
	char why[200];
	int status;

	(void)fd;
	(void)what;
	if (h->pid == 0 || waitpid(h->pid, &status, WNOHANG) != h->pid)
		return;
	h->pid = 0;
	if (WIFSIGNALED(status))
		(void)snprintf(why, sizeof(why), "signal %d", WTERMSIG(status));
	else
		(void)snprintf(
		    why, sizeof(why), "status %d", WEXITSTATUS(status));
	log_info("the server that was started here has ended: %s", why);
	h->ops->on_end(is_good(status), why, h->arg);
}

bool
household_stop(struct household *h)
{
	h->is_stopping = true;
	return h->pid != 0 && kill(h->pid, SIGTERM) == 0;
}

/* ---- public */

/* By its directory's descriptor: a path may be longer than sun_path.  Whoever
 * owns the directory could put a socket there, and be asked in place of a
 * server of ours. */
static int
open_dir(struct household *h, const char *data_dir, struct err *e)
{
	struct stat st;

	if (fd_mkdir_all(data_dir, DIR_MODE, e) != 0)
		return err_wrap(e, "DATA_DIR");
	h->dir = open(data_dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (h->dir == -1)
		return err_errno(e, "DATA_DIR: open %s", data_dir);
	if (fstat(h->dir, &st) != 0)
		return err_errno(e, "DATA_DIR: %s", data_dir);
	if (st.st_uid != 0 && st.st_uid != geteuid())
		return err_set(e, ERR_POLICY,
		    "DATA_DIR: %s belongs to uid %u: name a directory of your "
		    "own",
		    data_dir, (unsigned int)st.st_uid);
	(void)snprintf(h->socket_path, sizeof(h->socket_path),
	    "/proc/self/fd/%d/" LAYOUT_ADMIN, h->dir);
	return 0;
}

int
household_new(struct event_base *base, const struct household_ask *ask,
    struct household **out, struct err *e)
{
	struct household *h = xcalloc(1, sizeof(*h));

	h->ops = ask->ops;
	h->arg = ask->arg;
	h->program = xstrdup(ask->program);
	h->args = ask->args;
	h->data_setting = xasprintf("DATA_DIR=%s", ask->data_dir);
	h->listens = ask->listens;
	h->dir = -1;
	if (open_dir(h, ask->data_dir, e) != 0) {
		household_free(h);
		return e->code;
	}
	h->on_child = evsignal_new(base, SIGCHLD, child_cb, h);
	if (h->on_child == NULL || event_add(h->on_child, NULL) == -1)
		fatal(EXIT_MEMORY, "no event");
	*out = h;
	return 0;
}

void
household_free(struct household *h)
{
	if (h == NULL)
		return;
	if (h->on_child != NULL)
		event_free(h->on_child);
	if (h->dir != -1)
		(void)close(h->dir);
	free(h->program);
	free(h->data_setting);
	free(h);
}

const char *
household_socket(const struct household *h)
{
	return h->socket_path;
}
