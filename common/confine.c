/*
 * The lists are by purpose; the promise behind them is that a front that
 * was taken over has no path to the engine and neither process has a way to
 * become more than it is.
 */
#include "common/confine.h"

#include <errno.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/prctl.h>
#include <sys/socket.h>

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

/* Ways into other processes. */
static const int deny_processes[] = {SCMP_SYS(ptrace),
    SCMP_SYS(process_vm_readv), SCMP_SYS(process_vm_writev),
    SCMP_SYS(process_madvise), SCMP_SYS(pidfd_getfd), SCMP_SYS(kcmp),
    SCMP_SYS(perf_event_open), SCMP_SYS(userfaultfd)};

/* Another view of the file system, other namespaces. */
static const int deny_namespaces[] = {SCMP_SYS(mount), SCMP_SYS(umount2),
    SCMP_SYS(umount), SCMP_SYS(pivot_root), SCMP_SYS(chroot),
    SCMP_SYS(move_mount), SCMP_SYS(open_tree), SCMP_SYS(fsopen),
    SCMP_SYS(fsmount), SCMP_SYS(fsconfig), SCMP_SYS(fspick),
    SCMP_SYS(mount_setattr), SCMP_SYS(unshare), SCMP_SYS(setns),
    SCMP_SYS(open_by_handle_at), SCMP_SYS(name_to_handle_at)};

/* The kernel itself, the machine, and large parts with a history. */
static const int deny_kernel[] = {SCMP_SYS(bpf), SCMP_SYS(keyctl),
    SCMP_SYS(add_key), SCMP_SYS(request_key), SCMP_SYS(init_module),
    SCMP_SYS(finit_module), SCMP_SYS(delete_module), SCMP_SYS(kexec_load),
    SCMP_SYS(kexec_file_load), SCMP_SYS(reboot), SCMP_SYS(swapon),
    SCMP_SYS(swapoff), SCMP_SYS(acct), SCMP_SYS(quotactl), SCMP_SYS(syslog),
    SCMP_SYS(iopl), SCMP_SYS(ioperm), SCMP_SYS(modify_ldt),
    SCMP_SYS(settimeofday), SCMP_SYS(clock_settime), SCMP_SYS(clock_adjtime),
    SCMP_SYS(adjtimex), SCMP_SYS(sethostname), SCMP_SYS(setdomainname)};

/* Another user. */
static const int deny_ids[] = {SCMP_SYS(setuid), SCMP_SYS(setgid),
    SCMP_SYS(setreuid), SCMP_SYS(setregid), SCMP_SYS(setresuid),
    SCMP_SYS(setresgid), SCMP_SYS(setfsuid), SCMP_SYS(setfsgid),
    SCMP_SYS(setgroups), SCMP_SYS(capset)};

/* io_uring opens and connects sockets without the calls we look at. */
static const int deny_uring[] = {SCMP_SYS(io_uring_setup),
    SCMP_SYS(io_uring_enter), SCMP_SYS(io_uring_register)};

static const int exec_calls[] = {SCMP_SYS(execve), SCMP_SYS(execveat)};

static const struct {
	const int *calls;
	size_t n;
} deny_lists[] = {
    {deny_processes, ARRAY_LEN(deny_processes)},
    {deny_namespaces, ARRAY_LEN(deny_namespaces)},
    {deny_kernel, ARRAY_LEN(deny_kernel)},
    {deny_ids, ARRAY_LEN(deny_ids)},
    {deny_uring, ARRAY_LEN(deny_uring)},
};

static void
auto_filter(scmp_filter_ctx *f)
{
	if (*f != NULL)
		seccomp_release(*f);
}

static int
add_list(scmp_filter_ctx f, uint32_t action, const int *calls, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		/* A call that this machine does not have needs no rule. */
		if (calls[i] < 0)
			continue;
		if (seccomp_rule_add(f, action, calls[i], 0) != 0)
			return -1;
	}
	return 0;
}

/*
 * Namespaces by clone: any CLONE_NEW flag is denied.  clone3 has its flags
 * behind a pointer, where a filter cannot look; told that the kernel has no
 * clone3, libc starts threads by clone.
 */
static int
add_clone(scmp_filter_ctx f)
{
	static const unsigned long flags[] = {CLONE_NEWNS, CLONE_NEWCGROUP,
	    CLONE_NEWUTS, CLONE_NEWIPC, CLONE_NEWUSER, CLONE_NEWPID,
	    CLONE_NEWNET};

	for (size_t i = 0; i < ARRAY_LEN(flags); i++)
		if (seccomp_rule_add(f, SCMP_ACT_ERRNO(EPERM), SCMP_SYS(clone),
			1,
			SCMP_A0(SCMP_CMP_MASKED_EQ, flags[i], flags[i])) != 0)
			return -1;
	return seccomp_rule_add(f, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
}

/* The filter compares all 64 bits where the kernel takes 32: a family with
 * rubbish in the upper half falls under "greater", which is denied. */
static int
deny_family(scmp_filter_ctx f, enum scmp_compare how, unsigned int family)
{
	return seccomp_rule_add(f, SCMP_ACT_ERRNO(EACCES), SCMP_SYS(socket), 1,
	    SCMP_A0(how, family, 0));
}

/* The front: AF_INET and AF_INET6.  A datagram socketpair could be connected
 * anew, to a path; a stream pair cannot. */
static int
add_sockets_front(scmp_filter_ctx f)
{
	if (deny_family(f, SCMP_CMP_GT, AF_INET6) != 0)
		return -1;
	for (unsigned int family = 0; family < AF_INET6; family++)
		if (family != AF_INET &&
		    deny_family(f, SCMP_CMP_EQ, family) != 0)
			return -1;
	return seccomp_rule_add(f, SCMP_ACT_ERRNO(EACCES), SCMP_SYS(socketpair),
	    1, SCMP_A1(SCMP_CMP_MASKED_EQ, 0xf, SOCK_DGRAM));
}

/* The worker: AF_UNIX alone. */
static int
add_sockets_worker(scmp_filter_ctx f)
{
	if (deny_family(f, SCMP_CMP_LT, AF_UNIX) != 0)
		return -1;
	return deny_family(f, SCMP_CMP_GT, AF_UNIX);
}

/* All threads of the process, the store's writer too, come under the filter;
 * calls of a foreign ABI (i386, x32) would go round it and end the process. */
static int
set_attributes(scmp_filter_ctx f)
{
	if (seccomp_attr_set(f, SCMP_FLTATR_CTL_NNP, 1) != 0 ||
	    seccomp_attr_set(f, SCMP_FLTATR_CTL_TSYNC, 1) != 0)
		return -1;
	return seccomp_attr_set(
	    f, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
}

static int
confine(int (*add_sockets)(scmp_filter_ctx f), uint32_t on_exec, struct err *e)
{
	AUTO(auto_filter) scmp_filter_ctx f = NULL;
	int rc = 0;

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == -1 ||
	    prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) == -1)
		return err_set(e, ERR_SYS, "prctl: %s", strerror(errno));
	f = seccomp_init(SCMP_ACT_ALLOW);
	if (f == NULL)
		return err_set(e, ERR_SYS, "seccomp: no filter");
	if (set_attributes(f) != 0)
		return err_set(e, ERR_SYS, "seccomp: attributes refused");
	for (size_t i = 0; i < ARRAY_LEN(deny_lists) && rc == 0; i++)
		rc = add_list(f, SCMP_ACT_ERRNO(EPERM), deny_lists[i].calls,
		    deny_lists[i].n);
	if (rc != 0 ||
	    add_list(f, on_exec, exec_calls, ARRAY_LEN(exec_calls)) != 0 ||
	    add_clone(f) != 0 || add_sockets(f) != 0)
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

int
confine_front(struct err *e)
{
	return confine(add_sockets_front, SCMP_ACT_KILL_PROCESS, e);
}

int
confine_worker(struct err *e)
{
	return confine(add_sockets_worker, SCMP_ACT_ERRNO(EPERM), e);
}
