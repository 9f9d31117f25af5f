/*
 * main.c - the agent's process: init of a sandbox
 *
 *	agent [-k MASK] [-b BYTES] [-n INODES] [-l 0|1] [-q MS] [socket]
 *					terms.h says what they mean
 *
 * and, no init, other programs in the same file:
 *
 *	agent bridge			bridge_program.h
 *	agent install DIR		install_program.h
 *	agent listen|reach|barred ...	probe_program.h
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "common/exit.h"
#include "common/fd.h"
#include "common/log.h"
#include "common/slice.h"
#include "images/agent/agent.h"
#include "images/agent/base_env.h"
#include "images/agent/bridge_program.h"
#include "images/agent/caps.h"
#include "images/agent/install_program.h"
#include "images/agent/oom.h"
#include "images/agent/places.h"
#include "images/agent/probe_program.h"
#include "images/agent/say.h"
#include "images/agent/terms.h"

/* /dev/null as 0, 1 and KEEPER_REPORT_FD, stderr as it is, nothing above. */
static void
init_descriptors(void)
{
	int null = open("/dev/null", O_RDWR);

	if (null == -1)
		fatal(EXIT_BUG, "open /dev/null: %s", strerror(errno));
	if (fcntl(STDERR_FILENO, F_GETFD) == -1)
		(void)dup2(null, STDERR_FILENO);
	(void)dup2(null, STDIN_FILENO);
	(void)dup2(null, STDOUT_FILENO);
	(void)dup3(null, KEEPER_REPORT_FD, O_CLOEXEC);
	fd_close_from(KEEPER_REPORT_FD + 1);
}

/* What all commands get, set once here: they inherit it. */
static void
init_process(const struct terms *t)
{
	static const struct rlimit no_core = {0, 0};

	for (int sig = 1; sig < NSIG; sig++)
		(void)signal(sig, SIG_DFL);
	(void)umask(022);
	(void)setrlimit(RLIMIT_CORE, &no_core);
	slice_shorten(SLICE_OWN); /* what a command does is not ours */
	/* Nobody below may look into us or the keepers, which are copies. */
	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	if (getpid() != 1)
		(void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	if (chdir("/") == -1)
		say_line(FRAME_SAID_LEVEL_WARN, FRAME_SAID_WHAT_NOT_PREPARED,
		    NULL, "chdir /: %s", strerror(errno));
	places_fill_hosts(PLACES_HOSTS);
	places_make();
	caps_init(t->withheld);
	base_env_init(environ, "/etc/passwd");
	oom_init();
}

int
main(int argc, char **argv)
{
	static struct agent agent;
	struct terms terms;
	struct err e;

	if (argc == 2 && strcmp(argv[1], "bridge") == 0)
		return bridge_program_run();
	if (argc == 3 && strcmp(argv[1], "install") == 0)
		return install_program_run(argv[2]);
	if (probe_program_is(argc, argv))
		return probe_program_run(argc, argv);
	log_init("agent");
	if (terms_parse(&terms, argc, argv, &e) != 0)
		fatal(EXIT_USAGE, "%s", e.msg);
	init_descriptors();
	init_process(&terms);
	if (agent_init(&agent, &terms, &e) != 0)
		fatal(EXIT_BUG, "%s", e.msg);
	return agent_run(&agent);
}
