/*
 * An allow-list, built from lists by purpose (confine_calls.h) and from rules
 * that look at arguments, which are here.  The promise behind them is that a
 * front that was taken over has no path to the engine, nor to anything else,
 * and neither process has a way to become more than it is.
 *
 * A rule whose conditions do not hold leaves a call to the default, ENOSYS.
 */
#include "common/confine.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "common/confine_calls.h"

/* Of newer headers. */
#ifndef PR_SET_VMA
#define PR_SET_VMA 0x53564d41
#endif
#ifndef MSG_FASTOPEN
#define MSG_FASTOPEN 0x20000000
#endif

/*
 * Leak checking attaches to its own process by ptrace at exit, which the
 * filter denies: without this hook every sanitizer build would end with an
 * error.  Unit tests of the same code, unconfined, do look for leaks.
 */
#if defined(__SANITIZE_ADDRESS__)
#define CONFINE_LEAK_CHECK 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define CONFINE_LEAK_CHECK 1
#endif
#endif
#ifdef CONFINE_LEAK_CHECK
static bool is_confined;
int __lsan_is_turned_off(void);
int
__lsan_is_turned_off(void)
{
	return is_confined;
}
#endif

static void
auto_filter(scmp_filter_ctx *f)
{
	if (*f != NULL)
		seccomp_release(*f);
}

/* A call that this machine does not have, or that libseccomp does not know
 * yet, needs no rule. */
static int
add_list(scmp_filter_ctx f, uint32_t action, const char *const *names)
{
	for (; *names != NULL; names++) {
		int nr = seccomp_syscall_resolve_name(*names);

		if (nr >= 0 && seccomp_rule_add(f, action, nr, 0) != 0)
			return -1;
	}
	return 0;
}

/* Allowed where argument arg is one of these. */
static int
allow_values(scmp_filter_ctx f, const char *name, unsigned int arg,
    const uint64_t *values, size_t n)
{
	int nr = seccomp_syscall_resolve_name(name);

	for (size_t i = 0; nr >= 0 && i < n; i++)
		if (seccomp_rule_add(f, SCMP_ACT_ALLOW, nr, 1,
			SCMP_CMP(arg, SCMP_CMP_EQ, values[i], 0)) != 0)
			return -1;
	return 0;
}

/* Allowed where argument arg has none of these bits, else EPERM. */
static int
allow_without(
    scmp_filter_ctx f, const char *name, unsigned int arg, uint64_t bits)
{
	int nr = seccomp_syscall_resolve_name(name);

	if (nr < 0)
		return 0;
	if (seccomp_rule_add(f, SCMP_ACT_ALLOW, nr, 1,
		SCMP_CMP(arg, SCMP_CMP_MASKED_EQ, bits, 0)) != 0)
		return -1;
	for (uint64_t bit = 1; bit != 0 && bit <= bits; bit <<= 1)
		if ((bits & bit) != 0 &&
		    seccomp_rule_add(f, SCMP_ACT_ERRNO(EPERM), nr, 1,
			SCMP_CMP(arg, SCMP_CMP_MASKED_EQ, bit, bit)) != 0)
			return -1;
	return 0;
}

/* Allowed for this process, which pid or 0 stands for, else EPERM. */
static int
allow_own(scmp_filter_ctx f, int nr, uint64_t pid)
{
	if (seccomp_rule_add(
		f, SCMP_ACT_ALLOW, nr, 1, SCMP_A0(SCMP_CMP_EQ, pid, 0)) != 0)
		return -1;
	return seccomp_rule_add(
	    f, SCMP_ACT_ERRNO(EPERM), nr, 1, SCMP_A0(SCMP_CMP_NE, pid, 0));
}

/*
 * Threads, and nothing else of clone: no process, no namespace.  clone3 has
 * its flags behind a pointer, where a filter cannot look; told that the kernel
 * has no clone3, libc starts threads by clone.
 */
static int
add_clone(scmp_filter_ctx f)
{
	const uint64_t spaces = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS |
	    CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET;

	if (seccomp_rule_add(f, SCMP_ACT_ALLOW, SCMP_SYS(clone), 1,
		SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD | spaces,
		    CLONE_THREAD)) != 0 ||
	    seccomp_rule_add(f, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(clone), 1,
		SCMP_A0(SCMP_CMP_MASKED_EQ, CLONE_THREAD, 0)) != 0)
		return -1;
	for (uint64_t bit = 1; bit <= spaces; bit <<= 1)
		if ((spaces & bit) != 0 &&
		    seccomp_rule_add(f, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(clone),
			1,
			SCMP_A0(SCMP_CMP_MASKED_EQ, bit | CLONE_THREAD,
			    bit | CLONE_THREAD)) != 0)
			return -1;
	return 0; /* clone3: the default */
}

/* abort(3) and threads signal the process they are in. */
static int
add_signals(scmp_filter_ctx f)
{
	if (allow_own(f, SCMP_SYS(kill), (uint64_t)getpid()) != 0)
		return -1;
	return allow_own(f, SCMP_SYS(tgkill), (uint64_t)getpid());
}

/* Its own limits; another process of the same user is not its business. */
static int
add_limits(scmp_filter_ctx f)
{
	return allow_own(f, SCMP_SYS(prlimit64), 0);
}

/* No F_SETOWN and F_SETSIG, which send signals, nor F_NOTIFY. */
static int
add_descriptors(scmp_filter_ctx f)
{
	static const uint64_t commands[] = {F_DUPFD, F_DUPFD_CLOEXEC, F_GETFD,
	    F_SETFD, F_GETFL, F_SETFL, F_GETLK, F_SETLK, F_SETLKW, F_OFD_GETLK,
	    F_OFD_SETLK, F_OFD_SETLKW, F_ADD_SEALS, F_GET_SEALS, F_GETPIPE_SZ,
	    F_SETPIPE_SZ};
	static const uint64_t requests[] = {
	    FIONBIO, FIONREAD, FIOCLEX, FIONCLEX, TCGETS, TIOCGWINSZ};

	if (allow_values(f, "fcntl", 1, commands, ARRAY_LEN(commands)) != 0 ||
	    allow_values(f, "fcntl64", 1, commands, ARRAY_LEN(commands)) != 0)
		return -1;
	return allow_values(f, "ioctl", 1, requests, ARRAY_LEN(requests));
}

/* Not dumpable stays not dumpable. */
static int
add_prctl(scmp_filter_ctx f)
{
	static const uint64_t options[] = {PR_SET_NAME, PR_GET_NAME, PR_SET_VMA,
	    PR_GET_DUMPABLE, PR_GET_PDEATHSIG, PR_GET_NO_NEW_PRIVS,
	    PR_SET_NO_NEW_PRIVS, PR_GET_SECCOMP, PR_CAPBSET_READ,
	    PR_GET_TIMERSLACK};

	return allow_values(f, "prctl", 0, options, ARRAY_LEN(options));
}

/* No program that runs as us for whoever starts it. */
static int
add_modes(scmp_filter_ctx f)
{
	const uint64_t bits = S_ISUID | S_ISGID;

	if (allow_without(f, "chmod", 1, bits) != 0 ||
	    allow_without(f, "fchmod", 1, bits) != 0 ||
	    allow_without(f, "fchmodat", 2, bits) != 0)
		return -1;
	return allow_without(f, "fchmodat2", 2, bits);
}

/*
 * Sending on sockets that are there.  A listening socket that is shut down can
 * be sent on with MSG_FASTOPEN, which connects it to any address without a
 * call to connect.
 */
static int
add_sending(scmp_filter_ctx f)
{
	static const uint64_t levels[] = {SOL_SOCKET, IPPROTO_TCP};

	if (allow_without(f, "sendto", 3, MSG_FASTOPEN) != 0 ||
	    allow_without(f, "sendmsg", 2, MSG_FASTOPEN) != 0 ||
	    allow_without(f, "sendmmsg", 3, MSG_FASTOPEN) != 0)
		return -1;
	return allow_values(f, "setsockopt", 1, levels, ARRAY_LEN(levels));
}

/* The front has all its sockets, or is given them: it makes none, and names
 * no address. */
static int
add_sockets_front(scmp_filter_ctx f)
{
	static const int calls[] = {SCMP_SYS(socket), SCMP_SYS(socketpair),
	    SCMP_SYS(connect), SCMP_SYS(bind), SCMP_SYS(listen)};

	for (size_t i = 0; i < ARRAY_LEN(calls); i++)
		if (seccomp_rule_add(f, SCMP_ACT_ERRNO(EACCES), calls[i], 0) !=
		    0)
			return -1;
	return 0;
}

/* The worker: AF_UNIX alone.  The filter compares all 64 bits where the
 * kernel takes 32: a family with rubbish in the upper half falls under
 * "greater", which is denied. */
static int
add_sockets_worker(scmp_filter_ctx f)
{
	static const int calls[] = {SCMP_SYS(socket), SCMP_SYS(socketpair)};

	for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
		if (seccomp_rule_add(f, SCMP_ACT_ALLOW, calls[i], 1,
			SCMP_A0(SCMP_CMP_EQ, AF_UNIX, 0)) != 0 ||
		    seccomp_rule_add(f, SCMP_ACT_ERRNO(EACCES), calls[i], 1,
			SCMP_A0(SCMP_CMP_LT, AF_UNIX, 0)) != 0 ||
		    seccomp_rule_add(f, SCMP_ACT_ERRNO(EACCES), calls[i], 1,
			SCMP_A0(SCMP_CMP_GT, AF_UNIX, 0)) != 0)
			return -1;
	}
	return add_list(f, SCMP_ACT_ALLOW, confine_calls_worker);
}

/* A pair of streams, by which libcurl's threads wake each other, reaches
 * nobody; one of datagrams could be connected anew.  Netlink says to libc which
 * addresses this machine has. */
static int
add_sockets_envoy(scmp_filter_ctx f)
{
	static const uint64_t families[] = {AF_INET, AF_INET6, AF_NETLINK};
	static const uint64_t levels[] = {IPPROTO_IP, IPPROTO_IPV6};
	static const char *const calls[] = {"connect", "bind", NULL};

	if (allow_values(f, "socket", 0, families, ARRAY_LEN(families)) != 0 ||
	    allow_values(f, "setsockopt", 1, levels, ARRAY_LEN(levels)) != 0 ||
	    seccomp_rule_add(f, SCMP_ACT_ALLOW, SCMP_SYS(socketpair), 2,
		SCMP_A0(SCMP_CMP_EQ, AF_UNIX, 0),
		SCMP_A1(SCMP_CMP_MASKED_EQ, 0xf, SOCK_STREAM)) != 0)
		return -1;
	return add_list(f, SCMP_ACT_ALLOW, calls);
}

static int
add_lists(scmp_filter_ctx f, enum confine_role role)
{
	const char *const *const allowed[] = {confine_calls_self,
	    confine_calls_files, confine_calls_events, confine_calls_socket};

	for (size_t i = 0; i < ARRAY_LEN(allowed); i++)
		if (add_list(f, SCMP_ACT_ALLOW, allowed[i]) != 0)
			return -1;
	if (add_list(f, SCMP_ACT_ERRNO(EPERM), confine_calls_refused) != 0)
		return -1;
	return add_list(f,
	    role == CONFINE_FRONT ? SCMP_ACT_KILL_PROCESS :
				    SCMP_ACT_ERRNO(EPERM),
	    confine_calls_exec);
}

static int
add_rules(scmp_filter_ctx f, enum confine_role role)
{
	static int (*const rules[])(scmp_filter_ctx) = {add_clone, add_signals,
	    add_limits, add_descriptors, add_prctl, add_modes, add_sending};

	if (add_lists(f, role) != 0)
		return -1;
	for (size_t i = 0; i < ARRAY_LEN(rules); i++)
		if (rules[i](f) != 0)
			return -1;
	return role == CONFINE_FRONT ? add_sockets_front(f) :
	    role == CONFINE_WORKER   ? add_sockets_worker(f) :
				       add_sockets_envoy(f);
}

/* All threads of the process, the store's writer too, come under the filter;
 * calls of a foreign ABI (i386, x32) would go round it and end the process.
 * What is refused is in the kernel's log, where that is kept. */
static int
set_attributes(scmp_filter_ctx f)
{
	if (seccomp_attr_set(f, SCMP_FLTATR_CTL_NNP, 1) != 0 ||
	    seccomp_attr_set(f, SCMP_FLTATR_CTL_TSYNC, 1) != 0)
		return -1;
	(void)seccomp_attr_set(f, SCMP_FLTATR_CTL_LOG, 1);
	return seccomp_attr_set(
	    f, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
}

/* Memory holds secrets of tenants: none of it goes to disk, nor to a debugger
 * of the same user. */
static int
seal_memory(struct err *e)
{
	const struct rlimit none = {0, 0};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == -1 ||
	    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == -1)
		return err_errno(e, "prctl");
	if (setrlimit(RLIMIT_CORE, &none) == -1)
		return err_errno(e, "RLIMIT_CORE");
	return 0;
}

int
confine(enum confine_role role, struct err *e)
{
	AUTO(auto_filter) scmp_filter_ctx f = NULL;
	int rc = seal_memory(e);

	if (rc != 0)
		return rc;
	f = seccomp_init(SCMP_ACT_ERRNO(ENOSYS));
	if (f == NULL)
		return err_set(e, ERR_SYS, "seccomp: no filter");
	if (set_attributes(f) != 0)
		return err_set(e, ERR_SYS, "seccomp: attributes refused");
	if (add_rules(f, role) != 0)
		return err_set(e, ERR_SYS, "seccomp: a rule was refused");
	rc = seccomp_load(f);
	if (rc != 0)
		return err_set(e, ERR_SYS,
		    "seccomp: the kernel refused the filter: %s",
		    strerror(rc < 0 ? -rc : rc));
#ifdef CONFINE_LEAK_CHECK
	is_confined = true;
#endif
	return 0;
}
