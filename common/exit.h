/*
 * exit.h - how processes end, beside 0 and 1
 *
 * Ours: the numbers of sysexits.h where they fit; master/restart.h says what
 * the supervisor makes of them.  The agent.  A command in a sandbox: as a shell
 * has it.
 */
#ifndef COMMON_EXIT_H
#define COMMON_EXIT_H

enum exit_status {
	EXIT_USAGE = 64,
	EXIT_BUG = 70,
	EXIT_MEMORY = 71,
	EXIT_ANEW = 75,      /* another process of the kind can do it */
	EXIT_PROTO = 76,     /* a peer process broke the protocol */
	EXIT_PRIVILEGE = 77, /* not restarted */
	EXIT_CONFIG = 78     /* not restarted */
};

enum exit_agent {
	EXIT_SPACE = 73,    /* its file system is far over its limit */
	EXIT_ABANDONED = 75 /* no server came for its lease */
};

enum exit_command {
	EXIT_CANNOT = 126, /* there, but not to be started */
	EXIT_NOT_FOUND = 127,
	EXIT_KILLED = 128 + 9 /* by SIGKILL */
};

#endif
