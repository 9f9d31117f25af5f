#include "common/confine_calls.h"

#include <stddef.h>

const char *const confine_calls_self[] = {
    /* memory */
    "brk", "mmap", "mmap2", "munmap", "mprotect", "mremap", "madvise",
    "mincore", "msync", "mlock", "mlock2", "munlock", "membarrier", "mseal",
    "map_shadow_stack",
    /* threads; clone is looked at, clone3 cannot be */
    "futex", "futex_time64", "futex_waitv", "futex_wait", "futex_wake",
    "futex_requeue", "set_robust_list", "get_robust_list", "set_tid_address",
    "set_thread_area", "get_thread_area", "arch_prctl", "rseq", "sched_yield",
    "sched_getaffinity", "sched_getparam", "sched_getscheduler",
    "sched_getattr", "sched_get_priority_max", "sched_get_priority_min",
    "getcpu", "exit", "exit_group", "restart_syscall",
    /* signals to itself */
    "rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "rt_sigpending",
    "rt_sigsuspend", "rt_sigtimedwait", "rt_sigtimedwait_time64", "sigaltstack",
    "sigaction", "sigprocmask", "sigreturn", "pause",
    /* time */
    "clock_gettime", "clock_gettime64", "clock_getres", "clock_getres_time64",
    "clock_nanosleep", "clock_nanosleep_time64", "nanosleep", "gettimeofday",
    "time", "times",
    /* what it is and has */
    "getpid", "gettid", "getppid", "getpgid", "getpgrp", "getsid", "getuid",
    "geteuid", "getgid", "getegid", "getresuid", "getresgid", "getgroups",
    "capget", "getrlimit", "ugetrlimit", "getrusage", "getpriority", "sysinfo",
    "uname", "getrandom", "getcwd", "umask", NULL};

const char *const confine_calls_files[] = {"open", "openat", "openat2", "creat",
    "close", "close_range", "dup", "dup2", "dup3", "read", "write", "readv",
    "writev", "pread64", "pwrite64", "preadv", "pwritev", "preadv2", "pwritev2",
    "lseek", "_llseek", "flock", "fsync", "fdatasync", "syncfs",
    "sync_file_range", "sync_file_range2", "ftruncate", "ftruncate64",
    "truncate", "truncate64", "fallocate", "fadvise64", "fadvise64_64",
    "readahead", "copy_file_range", "sendfile", "sendfile64", "splice", "tee",
    "stat", "stat64", "lstat", "lstat64", "fstat", "fstat64", "newfstatat",
    "fstatat64", "statx", "statfs", "statfs64", "fstatfs", "fstatfs64",
    "access", "faccessat", "faccessat2", "readlink", "readlinkat", "getdents",
    "getdents64", "mkdir", "mkdirat", "rmdir", "unlink", "unlinkat", "rename",
    "renameat", "renameat2", "link", "linkat", "fchown", "fchown32",
    "utimensat", "utimensat_time64", "futimesat", "utimes", "utime",
    "cachestat", "memfd_create", NULL};

const char *const confine_calls_events[] = {"epoll_create", "epoll_create1",
    "epoll_ctl", "epoll_wait", "epoll_pwait", "epoll_pwait2", "poll", "ppoll",
    "ppoll_time64", "select", "_newselect", "pselect6", "pselect6_time64",
    "eventfd", "eventfd2", "timerfd_create", "timerfd_settime",
    "timerfd_settime64", "timerfd_gettime", "timerfd_gettime64", "signalfd",
    "signalfd4", "pipe", "pipe2", NULL};

/* Those that send are looked at: confine.c. */
const char *const confine_calls_socket[] = {"accept", "accept4", "recvfrom",
    "recvmsg", "recvmmsg", "recvmmsg_time64", "shutdown", "getsockname",
    "getpeername", "getsockopt", NULL};

/* An access list lets the agent of a remapped sandbox to its socket. */
const char *const confine_calls_worker[] = {
    "bind", "listen", "connect", "setxattr", NULL};

const char *const confine_calls_refused[] = {
    /* ways into other processes */
    "ptrace", "process_vm_readv", "process_vm_writev", "process_madvise",
    "process_mrelease", "pidfd_open", "pidfd_getfd", "pidfd_send_signal",
    "kcmp", "perf_event_open", "userfaultfd", "tkill", "rt_sigqueueinfo",
    "rt_tgsigqueueinfo", "setpriority", "sched_setscheduler", "sched_setparam",
    "sched_setaffinity", "ioprio_set", "setpgid", "setsid", "migrate_pages",
    "move_pages",
    /* another process */
    "fork", "vfork",
    /* another view of the file system, other namespaces */
    "mount", "umount", "umount2", "pivot_root", "chroot", "move_mount",
    "open_tree", "open_tree_attr", "fsopen", "fsmount", "fsconfig", "fspick",
    "mount_setattr", "statmount", "listmount", "unshare", "setns",
    "open_by_handle_at", "name_to_handle_at", "chdir", "fchdir",
    /* links and nodes to be found by others */
    "symlink", "symlinkat", "mknod", "mknodat",
    /* the kernel itself, the machine, large parts with a history */
    "bpf", "keyctl", "add_key", "request_key", "init_module", "finit_module",
    "delete_module", "kexec_load", "kexec_file_load", "reboot", "swapon",
    "swapoff", "acct", "quotactl", "quotactl_fd", "syslog", "iopl", "ioperm",
    "modify_ldt", "settimeofday", "clock_settime", "clock_settime64",
    "clock_adjtime", "clock_adjtime64", "adjtimex", "stime", "sethostname",
    "setdomainname", "personality", "vhangup", "fanotify_init",
    "lookup_dcookie", "nfsservctl", "shmget", "shmat", "shmctl", "msgget",
    "msgsnd", "msgctl", "semget", "semop", "semctl", "mq_open",
    /* another user, another filter */
    "setuid", "setgid", "setreuid", "setregid", "setresuid", "setresgid",
    "setfsuid", "setfsgid", "setgroups", "capset", "seccomp",
    /* io_uring makes and connects sockets without the calls we look at */
    "io_uring_setup", "io_uring_enter", "io_uring_register", NULL};

const char *const confine_calls_exec[] = {"execve", "execveat", NULL};
