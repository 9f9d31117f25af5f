#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/xattr.h>

#include "common/confine.h"
#include "tests/unit/common/forked.h"
#include "tests/unit/test.h"

static enum confine_role confined_as;
static void (*confined)(void);

static void
confine_and_run(void)
{
	struct err e;

	NEED(confine(confined_as, &e) == 0);
	confined();
}

static int
in_child(enum confine_role role, void (*body)(void))
{
	confined_as = role;
	confined = body;
	return forked_status(confine_and_run);
}

/* Of front and worker. */
static void
check_both(void (*body)(void))
{
	assert_int_equal(in_child(CONFINE_FRONT, body), 0);
	assert_int_equal(in_child(CONFINE_WORKER, body), 0);
}

static bool
is_denied_socket(int family, int type)
{
	int fd = socket(family, type, 0);

	if (fd >= 0) {
		(void)close(fd);
		return false;
	}
	return errno == EACCES;
}

/* What both may not.  Arguments of -1 are wrong for each of these calls, so
 * a filter that let one pass would do no harm and give another errno. */
#define CALL(name)                                                             \
	{                                                                      \
#name, SYS_##name                                              \
	}
static const struct {
	const char *name;
	long nr;
} denied[] = {
    CALL(ptrace),
    CALL(process_vm_readv),
    CALL(process_vm_writev),
    CALL(process_madvise),
    CALL(pidfd_getfd),
    CALL(kcmp),
    CALL(perf_event_open),
    CALL(userfaultfd),
    CALL(mount),
    CALL(umount2),
    CALL(pivot_root),
    CALL(chroot),
    CALL(move_mount),
    CALL(open_tree),
    CALL(fsopen),
    CALL(fsmount),
    CALL(fsconfig),
    CALL(fspick),
    CALL(mount_setattr),
    CALL(unshare),
    CALL(setns),
    CALL(open_by_handle_at),
    CALL(name_to_handle_at),
    CALL(bpf),
    CALL(keyctl),
    CALL(add_key),
    CALL(request_key),
    CALL(init_module),
    CALL(finit_module),
    CALL(delete_module),
    CALL(kexec_load),
    CALL(reboot),
    CALL(swapon),
    CALL(swapoff),
    CALL(acct),
    CALL(quotactl),
    CALL(syslog),
    CALL(settimeofday),
    CALL(clock_settime),
    CALL(clock_adjtime),
    CALL(adjtimex),
    CALL(sethostname),
    CALL(setdomainname),
    CALL(setuid),
    CALL(setgid),
    CALL(setreuid),
    CALL(setregid),
    CALL(setresuid),
    CALL(setresgid),
    CALL(setfsuid),
    CALL(setfsgid),
    CALL(setgroups),
    CALL(capset),
    CALL(io_uring_setup),
    CALL(io_uring_enter),
    CALL(io_uring_register),
#ifdef SYS_kexec_file_load
    CALL(kexec_file_load),
#endif
#ifdef SYS_iopl
    CALL(iopl),
    CALL(ioperm),
    CALL(modify_ldt),
#endif
};

static void
try_denied_calls(void)
{
	for (size_t i = 0; i < ARRAY_LEN(denied); i++) {
		errno = 0;
		if (syscall(denied[i].nr, -1, -1, -1, -1, -1, -1) != -1 ||
		    errno != EPERM) {
			(void)fprintf(
			    stderr, "%s: errno %d\n", denied[i].name, errno);
			_exit(1);
		}
	}
}

TEST(everybody_is_denied_every_listed_call)
{
	check_both(try_denied_calls);
	assert_int_equal(in_child(CONFINE_ENVOY, try_denied_calls), 0);
}

/* Without the filter they work: the tests above see it, not the machine. */
static void
try_allowed_without_filter(void)
{
	NEED(unshare(0) == 0);
	NEED(setuid(getuid()) == 0);
	NEED(syscall(SYS_setresgid, -1, -1, -1) == 0);
	NEED(!is_denied_socket(AF_UNIX, SOCK_STREAM));
	NEED(!is_denied_socket(AF_NETLINK, SOCK_RAW));
	NEED(!is_denied_socket(AF_INET, SOCK_STREAM));
}

TEST(an_unconfined_process_is_not_denied)
{
	assert_int_equal(forked_status(try_allowed_without_filter), 0);
}

static void
try_namespaces(void)
{
	static const unsigned long flags[] = {CLONE_NEWNS, CLONE_NEWCGROUP,
	    CLONE_NEWUTS, CLONE_NEWIPC, CLONE_NEWUSER, CLONE_NEWPID,
	    CLONE_NEWNET, CLONE_NEWUSER | CLONE_NEWNS};

	for (size_t i = 0; i < ARRAY_LEN(flags); i++) {
		long pid = syscall(SYS_clone, flags[i] | SIGCHLD, 0, 0, 0, 0);

		if (pid == 0)
			_exit(0);
		NEED(pid == -1 && errno == EPERM);
	}
	NEED(syscall(SYS_clone3, NULL, 0) == -1 && errno == ENOSYS);
}

TEST(clone_makes_no_namespaces)
{
	check_both(try_namespaces);
}

static void
try_execve(void)
{
	char *argv[] = {NULL, NULL};

	NEED(execve("/bin/true", argv, argv) == -1 && errno == EPERM);
	NEED(
	    syscall(SYS_execveat, AT_FDCWD, "/bin/true", argv, argv, 0) == -1 &&
	    errno == EPERM);
}

static void
try_execveat(void)
{
	char *argv[] = {NULL, NULL};

	(void)syscall(SYS_execveat, AT_FDCWD, "/bin/true", argv, argv, 0);
}

TEST(exec_kills_the_front)
{
	int status;

	status = in_child(CONFINE_FRONT, try_execve);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS);
	status = in_child(CONFINE_FRONT, try_execveat);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS);
}

TEST(exec_is_denied_to_the_worker)
{
	assert_int_equal(in_child(CONFINE_WORKER, try_execve), 0);
}

static void
try_front_sockets(void)
{
	static const int families[] = {AF_UNSPEC, AF_UNIX, AF_INET, AF_INET6,
	    AF_NETLINK, AF_PACKET, AF_VSOCK, AF_ALG, AF_BLUETOOTH, AF_TIPC,
	    AF_XDP};
	static const int types[] = {SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET,
	    SOCK_RAW, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK};

	for (size_t f = 0; f < ARRAY_LEN(families); f++)
		for (size_t t = 0; t < ARRAY_LEN(types); t++)
			NEED(is_denied_socket(families[f], types[t]));
	/* Rubbish in the half that the kernel does not look at. */
	NEED(syscall(SYS_socket, 0x100000000 | AF_UNIX, SOCK_STREAM, 0) == -1 &&
	    errno == EACCES);
}

TEST(the_front_makes_no_socket)
{
	assert_int_equal(in_child(CONFINE_FRONT, try_front_sockets), 0);
}

static void
try_pairs(void)
{
	static const int types[] = {SOCK_STREAM, SOCK_DGRAM, SOCK_SEQPACKET};
	int fds[2];

	for (size_t t = 0; t < ARRAY_LEN(types); t++)
		NEED(socketpair(AF_UNIX, types[t], 0, fds) == -1 &&
		    errno == EACCES);
}

/* A datagram pair could be connected anew, to a path. */
TEST(the_front_makes_no_pair)
{
	assert_int_equal(in_child(CONFINE_FRONT, try_pairs), 0);
}

static void
try_worker_sockets(void)
{
	static const int families[] = {
	    AF_UNSPEC, AF_INET, AF_INET6, AF_NETLINK, AF_PACKET, AF_VSOCK};

	for (size_t i = 0; i < ARRAY_LEN(families); i++) {
		NEED(is_denied_socket(families[i], SOCK_STREAM));
		NEED(is_denied_socket(families[i], SOCK_DGRAM));
	}
}

static void
try_keys_sockets(void)
{
	static const int families[] = {AF_UNSPEC, AF_UNIX, AF_PACKET, AF_VSOCK,
	    AF_ALG, AF_BLUETOOTH, AF_TIPC, AF_XDP};
	int fd, fds[2];

	for (size_t i = 0; i < ARRAY_LEN(families); i++)
		NEED(socket(families[i], SOCK_STREAM, 0) == -1 &&
		    socket(families[i], SOCK_DGRAM, 0) == -1);
	NEED(syscall(SYS_socket, 0x100000000 | AF_UNIX, SOCK_STREAM, 0) == -1);
	NEED(socketpair(AF_UNIX, SOCK_DGRAM, 0, fds) == -1);
	NEED(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fds) == -1);
	NEED(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
	fd = socket(AF_INET, SOCK_STREAM, 0);
	NEED(fd != -1 && listen(fd, 1) == -1);
	fd = socket(AF_INET6, SOCK_DGRAM, 0);
	NEED(fd != -1 || errno == EAFNOSUPPORT);
}

TEST(what_asks_for_keys_makes_internet_sockets_alone)
{
	assert_int_equal(in_child(CONFINE_ENVOY, try_keys_sockets), 0);
	assert_int_equal(in_child(CONFINE_ENVOY, try_namespaces), 0);
	assert_int_equal(in_child(CONFINE_ENVOY, try_execve), 0);
}

TEST(the_worker_makes_no_socket_but_unix)
{
	assert_int_equal(in_child(CONFINE_WORKER, try_worker_sockets), 0);
}

/* What they need. */

static int early_pair[2]; /* made before confine, as the channels are */
static int early_listener;
static int early_client; /* connected, not accepted yet */
static struct sockaddr_in early_address;

static void
make_early_descriptors(void)
{
	struct sockaddr_in a = {
	    .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(a);

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, early_pair), 0);
	early_listener = socket(AF_INET, SOCK_STREAM, 0);
	assert_true(early_listener >= 0);
	assert_int_equal(bind(early_listener, (struct sockaddr *)&a, len), 0);
	assert_int_equal(listen(early_listener, 5), 0);
	assert_int_equal(
	    getsockname(early_listener, (struct sockaddr *)&a, &len), 0);
	early_client = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(connect(early_client, (struct sockaddr *)&a, len), 0);
	early_address = a;
}

static void
close_early_descriptors(void)
{
	(void)close(early_pair[0]);
	(void)close(early_pair[1]);
	(void)close(early_listener);
	(void)close(early_client);
}

/* A message with a descriptor, as job channels carry them. */
static void
use_existing_channel(void)
{
	union {
		char space[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = {.space = {0}};
	char byte = 'x';
	struct iovec iov = {&byte, 1};
	struct msghdr mh = {.msg_iov = &iov,
	    .msg_iovlen = 1,
	    .msg_control = control.space,
	    .msg_controllen = sizeof(control.space)};
	struct cmsghdr *cm = CMSG_FIRSTHDR(&mh);
	int fd = open("/dev/null", O_WRONLY);

	NEED(fd >= 0 && cm != NULL);
	cm->cmsg_level = SOL_SOCKET;
	cm->cmsg_type = SCM_RIGHTS;
	cm->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(cm), &fd, sizeof(fd));
	NEED(sendmsg(early_pair[0], &mh, 0) == 1);
	memset(&control, 0, sizeof(control));
	NEED(recvmsg(early_pair[1], &mh, MSG_CMSG_CLOEXEC) == 1);
	cm = CMSG_FIRSTHDR(&mh);
	NEED(cm != NULL);
	memcpy(&fd, CMSG_DATA(cm), sizeof(fd));
	NEED(write(fd, "y", 1) == 1);
}

TEST(channels_that_exist_go_on_working)
{
	make_early_descriptors();
	check_both(use_existing_channel);
	close_early_descriptors();
}

static void
accept_a_client(void)
{
	char byte = 0;
	int served;

	served =
	    accept4(early_listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	NEED(served >= 0);
	NEED(write(served, "z", 1) == 1);
	NEED(read(early_client, &byte, 1) == 1 && byte == 'z');
}

TEST(the_front_accepts_on_its_listening_socket)
{
	make_early_descriptors();
	assert_int_equal(in_child(CONFINE_FRONT, accept_a_client), 0);
	close_early_descriptors();
}

/* Shut down, a listening socket is as one that was never connected: then a
 * first packet with data connects it, without connect(2). */
static void
try_to_connect_the_listener(void)
{
	const struct sockaddr *to = (const struct sockaddr *)&early_address;
	struct msghdr mh = {
	    .msg_name = &early_address, .msg_namelen = sizeof(early_address)};
	struct mmsghdr many = {.msg_hdr = mh};

	NEED(shutdown(early_listener, SHUT_RDWR) == 0);
	NEED(connect(early_listener, to, sizeof(early_address)) == -1 &&
	    errno == EACCES);
	NEED(sendto(early_listener, "x", 1, MSG_FASTOPEN, to,
		 sizeof(early_address)) == -1 &&
	    errno == EPERM);
	NEED(
	    sendmsg(early_listener, &mh, MSG_FASTOPEN) == -1 && errno == EPERM);
	NEED(sendmmsg(early_listener, &many, 1, MSG_FASTOPEN) == -1 &&
	    errno == EPERM);
	NEED(bind(early_listener, to, sizeof(early_address)) == -1 &&
	    errno == EACCES);
	NEED(listen(early_listener, 1) == -1 && errno == EACCES);
}

/* Without the filter that way is open: the test sees it closed by it. */
static void
connect_the_listener(void)
{
	int other = socket(AF_INET, SOCK_STREAM, 0);
	socklen_t len = sizeof(early_address);

	NEED(listen(other, 1) == 0);
	NEED(getsockname(other, (struct sockaddr *)&early_address, &len) == 0);
	early_address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	NEED(shutdown(early_listener, SHUT_RDWR) == 0);
	if (sendto(early_listener, "x", 1, MSG_FASTOPEN,
		(const struct sockaddr *)&early_address, len) == -1 &&
	    errno == EOPNOTSUPP)
		return; /* net.ipv4.tcp_fastopen is 0 */
	NEED(getpeername(
		 early_listener, (struct sockaddr *)&early_address, &len) == 0);
}

TEST(the_front_connects_no_socket_that_is_there)
{
	make_early_descriptors();
	assert_int_equal(
	    in_child(CONFINE_FRONT, try_to_connect_the_listener), 0);
	close_early_descriptors();
	make_early_descriptors();
	assert_int_equal(forked_status(connect_the_listener), 0);
	close_early_descriptors();
}

static void
call_the_unknown(void)
{
	NEED(syscall(4000, 0) == -1 && errno == ENOSYS);
	NEED(syscall(SYS_clone3, NULL, 0) == -1 && errno == ENOSYS);
	NEED(syscall(SYS_inotify_init1, 0) == -1 && errno == ENOSYS);
}

TEST(an_unknown_call_is_as_on_an_older_kernel)
{
	check_both(call_the_unknown);
}

static void
try_processes(void)
{
	NEED(fork() == -1 && errno == EPERM);
	NEED(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) == -1 && errno == EPERM);
	NEED(syscall(SYS_clone, CLONE_VM | CLONE_VFORK | SIGCHLD, 0, 0, 0, 0) ==
		-1 &&
	    errno == EPERM);
}

TEST(nobody_makes_another_process)
{
	check_both(try_processes);
}

static void
try_signals(void)
{
	static const pid_t others[] = {0, -1, 1};

	NEED(kill(getppid(), 0) == -1 && errno == EPERM);
	for (size_t i = 0; i < ARRAY_LEN(others); i++)
		NEED(kill(others[i], 0) == -1 && errno == EPERM);
	NEED(syscall(SYS_tgkill, getppid(), getppid(), 0) == -1 &&
	    errno == EPERM);
	NEED(kill(getpid(), 0) == 0 && raise(0) == 0);
}

TEST(nobody_signals_another_process)
{
	check_both(try_signals);
}

static void
try_to_undo(void)
{
	struct rlimit core;
	int fd = open("/dev/null", O_RDONLY);

	NEED(getrlimit(RLIMIT_CORE, &core) == 0);
	NEED(core.rlim_cur == 0 && core.rlim_max == 0);
	NEED(prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) == -1);
	NEED(prctl(PR_SET_PTRACER, 1, 0, 0, 0) == -1);
	NEED(syscall(SYS_prlimit64, getppid(), RLIMIT_CORE, NULL, &core) == -1);
	NEED(syscall(SYS_sched_setattr, 0, NULL, 0) == -1 && errno == ENOSYS);
	NEED(fcntl(fd, F_SETOWN, getppid()) == -1 && errno == ENOSYS);
	NEED(fchmod(fd, S_ISUID | 0755) == -1 && errno == EPERM);
	NEED(fchmodat(AT_FDCWD, "/tmp", S_ISGID, 0) == -1 && errno == EPERM);
	NEED(symlink("/", "/tmp/test-confine-link") == -1 && errno == EPERM);
}

TEST(what_would_undo_it_is_refused)
{
	check_both(try_to_undo);
}

/* As the link does: a socket of its own, and as libcurl: connect to one. */
static void
listen_and_connect_unix(void)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int server = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int client = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	NEED(server >= 0 && client >= 0);
	(void)snprintf(a.sun_path + 1, sizeof(a.sun_path) - 1,
	    "test-confine-%d", (int)getpid());
	NEED(bind(server, (struct sockaddr *)&a, sizeof(a)) == 0);
	NEED(listen(server, 5) == 0);
	NEED(connect(client, (struct sockaddr *)&a, sizeof(a)) == 0);
	NEED(accept(server, NULL, NULL) >= 0);
}

TEST(the_worker_listens_on_and_connects_to_unix_sockets)
{
	assert_int_equal(in_child(CONFINE_WORKER, listen_and_connect_unix), 0);
}

/* As the link does for an agent of another user.  No file system has this name:
 * the kernel, not the filter, must refuse it. */
static void
set_access_list(void)
{
	NEED(setxattr("/tmp", "nonsense.name", "", 0, 0) == -1 &&
	    errno == EOPNOTSUPP);
}

static void
refuse_access_list(void)
{
	NEED(setxattr("/tmp", "nonsense.name", "", 0, 0) == -1 &&
	    errno == ENOSYS);
}

TEST(the_worker_alone_sets_access_lists)
{
	assert_int_equal(in_child(CONFINE_WORKER, set_access_list), 0);
	assert_int_equal(in_child(CONFINE_FRONT, refuse_access_list), 0);
}

static void *
say_yes(void *arg)
{
	*(int *)arg = 1;
	return NULL;
}

static void
use_everyday_calls(void)
{
	char path[] = "/tmp/test-confine-XXXXXX";
	int fd = mkstemp(path);
	pthread_t thread;
	int said = 0;

	NEED(fd >= 0);
	NEED(pwrite(fd, "abc", 3, 0) == 3 && fsync(fd) == 0);
	NEED(mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0) != MAP_FAILED);
	NEED(fcntl(fd, F_SETLK, &(struct flock){.l_type = F_WRLCK}) == 0);
	NEED(unlink(path) == 0);
	NEED(epoll_create1(0) >= 0 && eventfd(0, 0) >= 0);
	NEED(memfd_create("x", MFD_ALLOW_SEALING) >= 0);
	NEED(pthread_create(&thread, NULL, say_yes, &said) == 0);
	NEED(pthread_join(thread, NULL) == 0 && said == 1);
	NEED(kill(getpid(), 0) == 0);
}

TEST(files_threads_and_events_go_on_working)
{
	check_both(use_everyday_calls);
}

static void
look_at_attributes(void)
{
	NEED(prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1);
	NEED(prctl(PR_GET_DUMPABLE, 0, 0, 0, 0) == 0);
	NEED(prctl(PR_GET_SECCOMP, 0, 0, 0, 0) == 2);
}

TEST(no_new_privileges_and_not_dumpable)
{
	check_both(look_at_attributes);
}

static void *
try_socket_when_told(void *arg)
{
	const int *fds = arg;
	char byte;

	NEED(read(fds[0], &byte, 1) == 1);
	NEED(is_denied_socket(AF_UNIX, SOCK_STREAM));
	return NULL;
}

/* The store's writer is there before the filter is. */
static void
confine_with_a_thread(void)
{
	pthread_t thread;
	struct err e;
	int fds[2];

	NEED(pipe(fds) == 0);
	NEED(pthread_create(&thread, NULL, try_socket_when_told, fds) == 0);
	NEED(confine(CONFINE_FRONT, &e) == 0);
	NEED(write(fds[1], "x", 1) == 1);
	NEED(pthread_join(thread, NULL) == 0);
}

TEST(threads_that_exist_are_confined_too)
{
	assert_int_equal(forked_status(confine_with_a_thread), 0);
}

#ifdef __x86_64__
static void
call_x32(void)
{
	(void)syscall(0x40000000 | SYS_getpid);
}

static void
call_i386(void)
{
	long nr = 20; /* getpid there */

	__asm__ volatile("int $0x80" : "+a"(nr) : : "memory", "cc");
}

/* Numbers of another ABI mean other calls: none gets through.  A kernel
 * without i386 calls kills by itself. */
TEST(calls_of_a_foreign_abi_kill)
{
	int status;

	status = in_child(CONFINE_FRONT, call_x32);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS);
	status = in_child(CONFINE_WORKER, call_x32);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS);
	assert_int_not_equal(in_child(CONFINE_FRONT, call_i386), 0);
}
#endif

TEST_MAIN(NULL, NULL)
