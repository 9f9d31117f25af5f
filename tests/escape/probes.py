"""What a program in a sandbox tries against its walls.

Runs inside a sandbox, alone, with the standard library: reads no argument,
prints a line of JSON per probe: [group, name, outcome, detail].  The outcome
is "held" or "open"; walls.py says which may be open, for whom and why.

A probe is a function that raises OSError, or answers None, when it was
stopped; what else it answers says what it got.  Each has a process of its
own, so that one may die, hang or change its own view.
"""
import ctypes
import errno
import fcntl
import glob
import json
import mmap
import os
import resource
import select
import signal
import socket
import stat
import struct
import sys
import tempfile
import time

LIBC = ctypes.CDLL(None, use_errno=True)
LIMIT_S = 60  # against a hanging probe, not a measurement
X86 = os.uname().machine == "x86_64"
PROBES = []


def add(group, name, function, *args):
    PROBES.append((group, name, function, args))


def numbers(text):
    """{name: number} of name=number words."""
    return {n: int(v) for n, v in (w.split("=") for w in text.split())}


def syscall(number, *args):
    """Its result; OSError as C has it."""
    rest = [ctypes.c_long(a) if isinstance(a, int) else a for a in args]
    result = LIBC.syscall(ctypes.c_long(number), *rest)
    if result == -1:
        raise OSError(ctypes.get_errno(), "")
    return result


def must_be(number, *wanted):
    """A call with -1 everywhere: held if the filter answered it."""
    try:
        syscall(number, -1, -1, -1, -1, -1, -1)
    except OSError as e:
        if e.errno in wanted:
            return None
        return f"the kernel answered: {errno.errorcode[e.errno]}"
    return "it went well"


# ---- system calls that the profile denies

DENIED = numbers("""
    io_uring_setup=425 io_uring_enter=426 io_uring_register=427
    userfaultfd=323 add_key=248 request_key=249 keyctl=250 bpf=321
    perf_event_open=298 kexec_load=246 kexec_file_load=320 mount=165
    umount2=166 pivot_root=155 chroot=161 open_tree=428 move_mount=429
    fsopen=430 fsconfig=431 fsmount=432 fspick=433 mount_setattr=442
    unshare=272 setns=308 open_by_handle_at=304 name_to_handle_at=303
    init_module=175 finit_module=313 delete_module=176 create_module=174
    query_module=178 syslog=103 quotactl=179 quotactl_fd=443 swapon=167
    swapoff=168 reboot=169 iopl=172 ioperm=173 modify_ldt=154 settimeofday=164
    clock_settime=227 clock_adjtime=305 adjtimex=159 acct=163
    fanotify_init=300 fanotify_mark=301 pidfd_getfd=438 kcmp=312
    process_madvise=440 sethostname=170 setdomainname=171 lookup_dcookie=212
    vhangup=153 migrate_pages=256 move_pages=279 mbind=237 set_mempolicy=238
    uselib=134 ustat=136 sysfs=139 _sysctl=156 nfsservctl=180
    remap_file_pages=216
""")
ABSENT = {"clone3": 435, "statmount": 457, "listmount": 458,
          "lsm_set_self_attr": 460, "open_tree_attr": 467,
          "a call of tomorrow": 600}


def add_calls():
    if not X86:
        return
    for name, number in DENIED.items():
        add("call", name, must_be, number, errno.EPERM, errno.ENOSYS)
    for name, number in ABSENT.items():
        add("call", name, must_be, number, errno.ENOSYS)
    for flag, name in NAMESPACES.items():
        add("namespace", f"unshare {name}", syscall, 272, flag)
        add("namespace", f"clone {name}", clone_with, flag)
    for name in ("cgroup", "ipc", "mnt", "net", "pid", "time", "user", "uts"):
        add("namespace", f"setns of /proc/1/ns/{name}", join, name)
    add("namespace", "clone3 with all of them", clone3_with, 0x7e020000)
    add("namespace", "a line in /proc/self/uid_map", write_to,
        "/proc/self/uid_map", b"0 0 1\n")
    for number, name in ((0x400000, "READ_IMPLIES_EXEC"), (8, "LINUX32"),
                         (0x20000, "UNAME26"), (0x100000, "MMAP_PAGE_ZERO"),
                         (0x4000000, "STICKY_TIMEOUTS"), (6, "BSD")):
        add("call", f"personality {name}", syscall, 135, number)
    add("call", "getpid by int 0x80 (i386)", foreign_abi)
    add("call", "getpid of x32", syscall, 0x40000000 | 39)
    for kind in ("proc", "sysfs", "cgroup", "cgroup2", "tmpfs", "overlay",
                 "devtmpfs"):
        add("mount", kind, do_mount, kind.encode(), kind.encode(), 0)
    add("mount", "bind of /", do_mount, b"/", b"", 4096)
    add("mount", "remount of /proc/sys", do_mount, b"", b"", 4096 | 32)
    add("mount", "umount of /proc/sys", syscall, 166, b"/proc/sys", 2)
    add("mount", "umount of a masked file", syscall, 166, b"/proc/kcore", 2)


NAMESPACES = {0x20000: "NEWNS", 0x2000000: "NEWCGROUP", 0x4000000: "NEWUTS",
              0x8000000: "NEWIPC", 0x10000000: "NEWUSER",
              0x20000000: "NEWPID", 0x40000000: "NEWNET"}


def clone_with(flag):
    pid = syscall(56, flag | signal.SIGCHLD, 0, 0, 0, 0)
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    return "a process in it"


def clone3_with(flags):
    args = (ctypes.c_uint64 * 8)(flags, 0, 0, 0, signal.SIGCHLD, 0, 0, 0)
    pid = syscall(435, args, 64)
    if pid == 0:
        os._exit(0)
    return "a process in them"


def join(name):
    with open(f"/proc/1/ns/{name}", "rb") as f:
        syscall(308, f.fileno(), 0)
    return "joined"


def do_mount(source, kind, flags):
    where = b"/proc/sys" if flags & 32 else tempfile.mkdtemp().encode()
    syscall(165, source, where, kind, flags, 0)
    return "mounted"


def foreign_abi():
    """mov eax, 20; int 0x80; ret"""
    code = mmap.mmap(-1, 4096, prot=7)
    code.write(b"\xb8\x14\x00\x00\x00\xcd\x80\xc3")
    at = ctypes.addressof(ctypes.c_char.from_buffer(code))
    result = ctypes.CFUNCTYPE(ctypes.c_int)(at)()
    return None if result < 0 else f"it answered {result}"


# ---- sockets

def open_socket(family, kind, protocol):
    with socket.socket(family, kind, protocol):
        return "a socket"


def any_socket(family):
    last = None
    for kind in (1, 2, 3, 5, 10):
        try:
            return open_socket(family, kind, 0)
        except OSError as e:
            last = e
    raise last


def raw_socket(family, kind, protocol):
    """With bits that Python would not pass on."""
    return f"descriptor {syscall(41, family, kind, protocol)}"


def option(level, name, value):
    with socket.socket() as s:
        s.setsockopt(level, name, value)
        if s.getsockopt(level, name, 64).strip(b"\0") in (b"", b"reno"):
            return None
    return "it was taken"


def reach(address, port):
    with socket.socket() as s:
        s.settimeout(LIMIT_S)
        s.connect((address, port))
    return "connected"


def interfaces():
    names = {n for _, n in socket.if_nameindex()} - {"lo"}
    # Fallback devices that the kernel puts into every namespace: all down.
    up = [n for n in names if not hardware_flags(n) & 1 == 0]
    return ", ".join(up) or None


def hardware_flags(name):
    with open(f"/sys/class/net/{name}/flags", encoding="ascii") as f:
        return int(f.read(), 16)


NETLINK = numbers("""
    UNUSED=1 USERSOCK=2 FIREWALL=3 SOCK_DIAG=4 NFLOG=5 XFRM=6 SELINUX=7
    ISCSI=8 AUDIT=9 FIB_LOOKUP=10 CONNECTOR=11 NETFILTER=12 IP6_FW=13
    DNRTMSG=14 KOBJECT_UEVENT=15 GENERIC=16 SCSITRANSPORT=18 ECRYPTFS=19
    RDMA=20 CRYPTO=21 SMC=22
""")
FAMILIES = numbers("""
    AX25=3 IPX=4 APPLETALK=5 NETROM=6 BRIDGE=7 ATMPVC=8 X25=9 ROSE=11
    DECnet=12 NETBEUI=13 SECURITY=14 KEY=15 PACKET=17 ASH=18 ECONET=19
    ATMSVC=20 RDS=21 SNA=22 IRDA=23 PPPOX=24 WANPIPE=25 LLC=26 IB=27 MPLS=28
    CAN=29 TIPC=30 BLUETOOTH=31 IUCV=32 RXRPC=33 ISDN=34 PHONET=35
    IEEE802154=36 CAIF=37 ALG=38 NFC=39 VSOCK=40 KCM=41 QIPCRTR=42 SMC=43
    XDP=44 MCTP=45
""")
PROTOCOLS = {"SCTP": (1, 132), "SCTP, SEQPACKET": (5, 132), "DCCP": (6, 33),
             "UDPLITE": (2, 136), "MPTCP": (1, 262), "L2TP": (2, 115),
             "SMC": (1, 256), "raw TCP": (3, 6), "raw ICMP": (3, 1),
             "raw RAW": (3, 255), "SOCK_PACKET": (10, 768)}


def add_sockets():
    for name, family in FAMILIES.items():
        add("socket", f"AF_{name}", any_socket, family)
    for name, number in NETLINK.items():
        add("socket", f"NETLINK_{name}", open_socket, 16, 3, number)
    for name, (kind, number) in PROTOCOLS.items():
        add("socket", f"AF_INET {name}", open_socket, 2, kind, number)
        add("socket", f"AF_INET6 {name}", open_socket, 10, kind, number)
    if X86:
        for family in (17, 38, 40):
            add("socket", f"family {family} with a bit above", raw_socket,
                (1 << 32) | family, 2, 0)
        add("socket", "NETLINK_NETFILTER with a bit above", raw_socket, 16, 3,
            (1 << 32) | 12)
    for family in (2, 10, 16, 30, 40):
        add("socket", f"socketpair of family {family}", pair, family)
    for name, args in {
            "SO_MARK": (1, 36, 7), "SO_RCVBUFFORCE": (1, 33, 1 << 30),
            "SO_SNDBUFFORCE": (1, 32, 1 << 30), "SO_DEBUG": (1, 1, 1),
            "IP_TRANSPARENT": (0, 19, 1), "TCP_REPAIR": (6, 19, 1),
            "TCP_ULP tls": (6, 31, b"tls\0"),
            "TCP_CONGESTION dctcp": (6, 13, b"dctcp\0")}.items():
        add("socket", name, option, *args)
    add("network", "an interface besides lo", interfaces)
    for address, port in (("8.8.8.8", 53), ("169.254.169.254", 80),
                          ("172.17.0.1", 22), ("10.0.0.1", 80),
                          ("192.168.0.1", 80)):
        add("network", f"connect to {address}", reach, address, port)
    for name, request in (("an address for lo", 0x8916),
                          ("lo taken down", 0x8914),
                          ("a new bridge", 0x89a0)):
        add("network", name, ioctl_socket, request)


def pair(family):
    a, b = socket.socketpair(family, 1, 0)
    a.close()
    b.close()
    return "a pair"


def ioctl_socket(request):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        fcntl.ioctl(s, request, b"lo\0".ljust(16, b"\0") +
                    struct.pack("<HH4s", 2, 0, b"\x7f\0\0\2") + bytes(16))
    return "done"


# ---- /proc and /sys, to be read

SECRET = """
    acpi asound bus/pci/devices config.gz driver interrupts iomem ioports
    kallsyms kcore key-users keys kmsg kpagecgroup kpagecount kpageflags
    latency_stats mdstat modules pagetypeinfo sched_debug schedstat scsi
    slabinfo softirqs swaps sysrq-trigger timer_list timer_stats vmallocinfo
    1/mem 1/task/1/mem
""".split()
SECRET_SYS = """
    devices/virtual/dmi/id/product_uuid devices/virtual/powercap firmware
    fs/bpf fs/pstore hypervisor kernel/debug kernel/security kernel/slab
    kernel/tracing kernel/livepatch module power
""".split()


def read_from(path):
    """What is there, unless it is nothing: a masked path is empty."""
    if os.path.isdir(path):
        return ", ".join(sorted(os.listdir(path))[:4]) or None
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        if not select.select([fd], [], [], 0)[0]:
            return None
        got = os.read(fd, 64)
    finally:
        os.close(fd)
    return repr(got[:24]) if got.strip(b"\0") else None


def write_to(path, data=b"0"):
    fd = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
    try:
        if os.fstat(fd).st_rdev == os.makedev(1, 3):
            return None  # masked by /dev/null
        os.write(fd, data)
    finally:
        os.close(fd)
    return "written"


def writable_below(top, *spared):
    """Files that can be opened for writing; nothing is written."""
    found = []
    for directory, names, files in os.walk(top):
        names[:] = [n for n in names
                    if os.path.join(directory, n) not in spared]
        for name in files:
            path = os.path.join(directory, name)
            try:
                os.close(os.open(path, os.O_WRONLY | os.O_NONBLOCK))
                found.append(path)
            except OSError:
                pass
    return ", ".join(found[:5]) or None


WRITES = """
    sys/kernel/core_pattern sys/kernel/modprobe sys/kernel/hotplug
    sys/kernel/sysrq sys/kernel/panic sys/kernel/hostname
    sys/kernel/domainname sys/kernel/randomize_va_space
    sys/kernel/ns_last_pid sys/kernel/shmmax sys/kernel/msgmni
    sys/kernel/sem sys/kernel/threads-max sys/kernel/pid_max
    sys/kernel/yama/ptrace_scope sys/kernel/unprivileged_bpf_disabled
    sys/kernel/io_uring_disabled sys/kernel/keys/maxkeys
    sys/vm/overcommit_memory sys/vm/drop_caches sys/vm/panic_on_oom
    sys/vm/mmap_min_addr sys/vm/nr_hugepages sys/fs/suid_dumpable
    sys/fs/protected_hardlinks sys/fs/file-max sys/fs/binfmt_misc/register
    sys/fs/inotify/max_user_instances sys/fs/mqueue/queues_max
    sys/net/ipv4/ip_forward sys/net/core/somaxconn
    sys/net/ipv4/ping_group_range sys/user/max_user_namespaces sysrq-trigger
    irq/default_smp_affinity bus/pci/00/00.0 scsi/scsi mtrr timer_stats
    kcore kmsg 1/oom_score_adj 1/mem 1/attr/current 1/uid_map 1/comm
    1/clear_refs 1/coredump_filter 1/setgroups 1/timerslack_ns 1/attr/exec
    1/attr/fscreate 1/autogroup 1/sched 1/oom_adj 1/loginuid 1/gid_map
    1/projid_map
""".split()
WRITES_SYS = """
    kernel/uevent_helper kernel/mm/ksm/run power/state class/net/lo/mtu
    kernel/profiling fs/bpf/x kernel/mm/transparent_hugepage/enabled block
    module/kernel/parameters/panic bus/pci/rescan
    devices/system/cpu/cpu0/online
""".split()


def add_files():
    for name in SECRET:
        add("read", f"/proc/{name}", read_from, f"/proc/{name}")
    for name in SECRET_SYS:
        add("read", f"/sys/{name}", read_from, f"/sys/{name}")
    for name in WRITES:
        add("write", f"/proc/{name}", write_to, f"/proc/{name}")
    for name in WRITES_SYS:
        add("write", f"/sys/{name}", write_to, f"/sys/{name}")
    add("write", "any file of /proc/sys", writable_below, "/proc/sys")
    add("write", "any file of /sys", writable_below, "/sys")
    for name in ("/dev/x", "/sys/fs/cgroup/x", "/proc/x", "/sys/x"):
        add("write", f"a new file {name}", new_file, name)
    add("write", "/etc/hostname, on the host's disk", append_to,
        "/etc/hostname")


def new_file(path):
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))
    return "made"


def append_to(path):
    with open(path, "ab") as f:
        f.write(b"x")
    return "written"


# ---- the link directory and the agent

LINK = "/.mcp-sandbox"


def link_socket():
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as s:
        s.settimeout(LIMIT_S)
        s.connect(f"{LINK}/sock")
        # Only the first process is listened to: who else is cut off.
        return None if s.recv(1) == b"" else "it was spoken to"


def debug_first():
    syscall(101, 16, 1, 0, 0)
    syscall(101, 17, 1, 0, 0)
    return "attached"


def read_memory_of(pid):
    with open(f"/proc/{pid}/maps", encoding="ascii") as f:
        start = int(f.readline().split("-")[0], 16)
    room = ctypes.create_string_buffer(16)
    local = (ctypes.c_void_p * 2)(ctypes.addressof(room), 16)
    remote = (ctypes.c_void_p * 2)(start, 16)
    syscall(310, pid, ctypes.byref(local), 1, ctypes.byref(remote), 1, 0)
    return "read"


def outside(pid):
    """A descriptor that leads where our root does not reach."""
    for fd in os.listdir(f"/proc/{pid}/fd"):
        try:
            seen = os.stat(f"/proc/{pid}/fd/{fd}")
        except OSError:
            continue
        if stat.S_ISDIR(seen.st_mode):
            up = os.stat(f"/proc/{pid}/fd/{fd}/../../../../../../../..")
            if (up.st_dev, up.st_ino) != root_id():
                return f"descriptor {fd}"
    return None


def root_id():
    seen = os.stat("/")
    return seen.st_dev, seen.st_ino


def others_root(pid):
    seen = os.stat(f"/proc/{pid}/root/.")
    if (seen.st_dev, seen.st_ino) != root_id():
        return "another root"
    return None


def foreign_processes():
    """Whoever is not of this namespace would have no parent in it."""
    known = {0}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        known.add(int(pid))
    for pid in sorted(known - {0}):
        try:
            with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
                parent = int(f.read().rsplit(")", 1)[1].split()[1])
        except OSError:
            continue
        if parent not in known and os.path.exists(f"/proc/{pid}"):
            return f"process {pid} of {parent}"
    return None


def add_agent():
    agent = f"{LINK}/agent"
    for name, function, args in (
            ("a new file beside it", new_file, (f"{LINK}/x",)),
            ("its program, written", append_to, (agent,)),
            ("its program, removed", os.unlink, (agent,)),
            ("its program, renamed", os.rename, (agent, f"{LINK}/old")),
            ("its program, another mode", os.chmod, (agent, 0o777)),
            ("its program, another owner", os.chown, (agent, 1000, 1000)),
            ("its program, another time", os.utime, (agent,)),
            ("its program, linked", os.link, (agent, f"{LINK}/again")),
            ("its socket, removed", os.unlink, (f"{LINK}/sock",)),
            ("its socket, spoken to", link_socket, ()),
            ("the directory, another mode", os.chmod, (LINK, 0o777)),
            ("the directory, removed", os.rmdir, (LINK,))):
        add("link", name, refuse, function, *args)
    for name, function, args in (
            ("/proc/1/exe, written", append_to, ("/proc/1/exe",)),
            ("/proc/1/root leads elsewhere", others_root, (1,)),
            ("a descriptor of it leads outside", outside, (1,)),
            ("a descriptor of ours leads outside", outside, ("self",)),
            ("attached to as a debugger", debug_first, ()),
            ("its memory, read", read_memory_of, (1,)),
            ("killed", refuse_signal, (signal.SIGKILL,)),
            ("stopped", refuse_signal, (signal.SIGSTOP,)),
            ("ended by SIGSEGV", refuse_signal, (signal.SIGSEGV,)),
            ("its limits, changed", limit_first, ()),
            ("its processors, changed", os.sched_setaffinity, (1, {0})),
            ("its scheduling, changed", idle_first, ()),
            ("its priority, raised", os.setpriority, (0, 1, -10)),
            ("its environment, read", read_from, ("/proc/1/environ",)),
            ("a process of the host", foreign_processes, ())):
        add("agent", name, function, *args)


def refuse(function, *args):
    answer = function(*args)
    return answer if function is link_socket else "done"


def refuse_signal(number):
    """From inside, the first process gets none that it does not handle."""
    os.kill(1, number)
    time.sleep(0.05)
    with open("/proc/1/stat", encoding="ascii") as f:
        state = f.read().rsplit(")", 1)[1].split()[0]
    return "stopped" if state in "TtZ" else None


def limit_first():
    old = resource.prlimit(1, resource.RLIMIT_NOFILE)
    resource.prlimit(1, resource.RLIMIT_NOFILE, old)
    return "changed"


def idle_first():
    os.sched_setscheduler(1, os.SCHED_OTHER, os.sched_param(0))
    return "changed"


# ---- capabilities, users, limits

CAPS = ("CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID KILL SETGID SETUID "
        "SETPCAP LINUX_IMMUTABLE NET_BIND_SERVICE NET_BROADCAST NET_ADMIN "
        "NET_RAW IPC_LOCK IPC_OWNER SYS_MODULE SYS_RAWIO SYS_CHROOT "
        "SYS_PTRACE SYS_PACCT SYS_ADMIN SYS_BOOT SYS_NICE SYS_RESOURCE "
        "SYS_TIME SYS_TTY_CONFIG MKNOD LEASE AUDIT_WRITE AUDIT_CONTROL "
        "SETFCAP MAC_OVERRIDE MAC_ADMIN SYSLOG WAKE_ALARM BLOCK_SUSPEND "
        "AUDIT_READ PERFMON BPF CHECKPOINT_RESTORE").split()
OF_ROOT = {"CHOWN", "DAC_OVERRIDE", "FOWNER", "SETGID", "SETUID"}


def has_cap(bit, *sets):
    with open("/proc/self/status", encoding="utf-8") as f:
        status = dict(line.split(":", 1) for line in f if ":" in line)
    held = [s for s in sets if int(status[s], 16) >> bit & 1]
    return ", ".join(held) or None


def become_by_set_id():
    for path in ("/bin/su", "/usr/bin/passwd", "/bin/mount", "/usr/bin/sudo"):
        if os.path.exists(path) and os.stat(path).st_mode & stat.S_ISUID:
            break
    else:
        raise OSError(errno.ENOENT, "none here")
    with open("/proc/self/status", encoding="utf-8") as f:
        if "NoNewPrivs:\t1" in f.read():
            return None
    return path


def raise_limit(which, value):
    soft, hard = resource.getrlimit(which)
    if hard in (-1, resource.RLIM_INFINITY):
        raise OSError(errno.EPERM, "as high as it gets")
    resource.setrlimit(which, (value, hard + 1))
    return f"above {hard}"


def dump_core():
    """No core file, whatever a program asks for."""
    os.chdir(tempfile.mkdtemp())
    pid = os.fork()
    if pid == 0:
        try:
            resource.setrlimit(resource.RLIMIT_CORE, (1 << 20, 1 << 20))
        except (OSError, ValueError):
            pass
        os.kill(os.getpid(), signal.SIGABRT)
    _, status = os.waitpid(pid, 0)
    return "a core" if os.WCOREDUMP(status) or os.listdir(".") else None


def real_time():
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    return "real time"


def add_rights():
    for bit, name in enumerate(CAPS):
        if name in OF_ROOT and os.getuid() == 0:
            continue
        add("capability", name, has_cap, bit, "CapInh", "CapPrm", "CapEff",
            "CapAmb", *(() if name in OF_ROOT else ("CapBnd",)))
    for name, function, args in (
            ("a set-id program that works", become_by_set_id, ()),
            ("a lower oom_score_adj", write_to,
             ("/proc/self/oom_score_adj", b"-500")),
            ("a better priority", os.nice, (-10,)),
            ("a real time process", real_time, ()),
            ("a core file", dump_core, ()),
            ("more descriptors", raise_limit,
             (resource.RLIMIT_NOFILE, 1024)),
            ("more locked memory", raise_limit,
             (resource.RLIMIT_MEMLOCK, 1024)),
            ("more message queues", raise_limit,
             (resource.RLIMIT_MSGQUEUE, 1024)),
            ("new privileges again", new_privileges, ()),
            ("a filter taken off", seccomp_off, ())):
        add("right", name, function, *args)
    if os.getuid() != 0:
        for name, function, args in (
                ("uid 0", os.setuid, (0,)), ("gid 0", os.setgid, (0,)),
                ("group 0", os.setgroups, ([0],)),
                ("saved uid 0", os.setresuid, (1000, 1000, 0)),
                ("/etc/shadow", read_from, ("/etc/shadow",)),
                ("/etc/passwd, written", append_to, ("/etc/passwd",)),
                ("/root", os.listdir, ("/root",)),
                ("a file of root's, owned", os.chown,
                 ("/etc/passwd", 1000, 1000))):
            add("right", name, refuse, function, *args)


def new_privileges():
    if LIBC.prctl(38, 0, 0, 0, 0) == 0:
        return "taken back"
    return None


def seccomp_off():
    if LIBC.prctl(22, 0, 0, 0, 0) == 0:
        return "off"
    with open("/proc/self/status", encoding="utf-8") as f:
        return None if "Seccomp:\t2" in f.read() else "no filter"


# ---- devices

NODES = {"mem": ("c", 1, 1), "kmem": ("c", 1, 2), "port": ("c", 1, 4),
         "kmsg": ("c", 1, 11), "tty1": ("c", 4, 1), "ttyS0": ("c", 4, 64),
         "loop-control": ("c", 10, 237), "fuse": ("c", 10, 229),
         "kvm": ("c", 10, 232), "tun": ("c", 10, 200),
         "vhost-vsock": ("c", 10, 241), "vhost-net": ("c", 10, 238),
         "userfaultfd": ("c", 10, 126), "rtc": ("c", 254, 0),
         "loop0": ("b", 7, 0), "sda": ("b", 8, 0), "vda": ("b", 254, 0),
         "vda of old": ("b", 252, 0), "nvme": ("b", 259, 0),
         "dm-0": ("b", 253, 0)}
DEVICES = """
    kvm fuse net/tun mem kmsg vda sda loop0 loop-control vhost-vsock vsock
    vhost-net dri snd input bus/usb mapper/control btrfs-control rtc0 hpet
    userfaultfd cuse uinput nvram ppp port
""".split()


def make_node(kind, major, minor):
    path = os.path.join(tempfile.mkdtemp(), "node")
    mode = (stat.S_IFCHR if kind == "c" else stat.S_IFBLK) | 0o666
    os.mknod(path, mode, os.makedev(major, minor))
    os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK))
    return "opened"


def unknown_device():
    known = {"null", "zero", "full", "random", "urandom", "tty", "ptmx",
             "console", "core", "fd", "stdin", "stdout", "stderr", "shm",
             "pts", "mqueue"}
    return ", ".join(set(os.listdir("/dev")) - known) or None


def file_ioctl(path, request, argument):
    fd = os.open(path, os.O_RDONLY)
    try:
        fcntl.ioctl(fd, request, argument)
    finally:
        os.close(fd)
    return "done"


def add_devices():
    for name, node in NODES.items():
        add("device", f"a node of {name}", make_node, *node)
    for name in DEVICES:
        add("device", f"/dev/{name}", open_device, f"/dev/{name}")
    add("device", "one that is not ordinary", unknown_device)
    for name, request, argument in (
            ("FIFREEZE", 0xc0045877, 0), ("FITHAW", 0xc0045878, 0),
            ("FITRIM", 0xc0185879, bytes(24)), ("FIBMAP", 1, bytes(4)),
            ("FS_IOC_SETFLAGS immutable", 0x40086602,
             struct.pack("<q", 0x10)),
            ("EXT4_IOC_RESIZE_FS", 0x40086610, bytes(8)),
            ("EXT4_IOC_SHUTDOWN", 0x8004587d, bytes(4)),
            ("FS_IOC_ENABLE_VERITY", 0x40806685, bytes(128))):
        add("device", f"{name} on /", file_ioctl, "/", request, argument)
    add("device", "TIOCSTI, keys for a terminal", push_key)
    add("device", "TIOCLINUX", file_ioctl, "/dev/tty", 0x541c, b"\x0c")


def open_device(path):
    if os.path.isdir(path):
        return ", ".join(os.listdir(path)) or None
    os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK))
    return "opened"


def push_key():
    with open("/dev/tty", "rb") as f:
        fcntl.ioctl(f, 0x5412, b"x")
    return "pushed"


# ---- control groups

def add_groups():
    add("cgroup", "any file of it, written", writable_below, "/sys/fs/cgroup")
    add("cgroup", "a new group", any_group, os.mkdir, "escape")
    for name in ("release_agent", "notify_on_release", "cgroup.procs",
                 "devices.allow", "memory.limit_in_bytes", "memory.max",
                 "pids.max", "cpu.shares", "cpu.max", "cgroup.freeze",
                 "cgroup.subtree_control"):
        add("cgroup", name, any_group, write_to, name)
    add("cgroup", "another's group", others_groups)
    add("read", "a path of the host in mountinfo", host_paths)


def any_group(function, name):
    last = OSError(errno.ENOENT, "")
    for path in ["/sys/fs/cgroup/"] + glob.glob("/sys/fs/cgroup/*/"):
        try:
            function(os.path.join(path, name))
            return path
        except OSError as e:
            last = e
    raise last


def others_groups():
    """Names of containers that are not this one."""
    with open("/proc/self/cgroup", encoding="ascii") as f:
        own = f.read()
    for path in glob.glob("/sys/fs/cgroup/**/", recursive=True):
        name = os.path.basename(path.rstrip("/"))
        if len(name) == 64 and name not in own:
            return name
    return None


def host_paths():
    """The root of the link directory's mount names where it lies."""
    with open("/proc/self/mountinfo", encoding="utf-8") as f:
        for line in f:
            root, where = line.split()[3:5]
            if where == LINK and "/" in root.strip("/"):
                return root
    return None


# ---- running them

def run_probe(function, args):
    """(outcome, detail)"""
    r, w = os.pipe()
    pid = os.fork()
    if pid == 0:
        answer(w, function, args)
    os.close(w)
    said = b""
    end = time.monotonic() + LIMIT_S
    while time.monotonic() < end and \
            select.select([r], [], [], end - time.monotonic())[0]:
        piece = os.read(r, 65536)
        if not piece:
            break
        said += piece
    else:
        os.kill(pid, signal.SIGKILL)
        said = b'["open", "it hangs"]'
    os.close(r)
    _, status = os.waitpid(pid, 0)
    if said:
        return json.loads(said)
    if os.WIFSIGNALED(status):
        return ["held", signal.Signals(os.WTERMSIG(status)).name]
    return ["open", f"the probe is wrong: status {status}"]


def answer(w, function, args):
    try:
        got = function(*args)
        said = ["held", "nothing"] if got is None else ["open", str(got)]
    except OSError as e:
        said = ["held", errno.errorcode.get(e.errno, str(e))]
    except ValueError as e:  # of setrlimit
        said = ["held", str(e)]
    os.write(w, json.dumps(said).encode())
    os._exit(0)


def main():
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    for add_some in (add_calls, add_sockets, add_files, add_agent, add_rights,
                     add_devices, add_groups):
        add_some()
    for group, name, function, args in PROBES:
        outcome, detail = run_probe(function, args)
        print(json.dumps([group, name, outcome, detail]))
    sys.stdout.flush()


if __name__ == "__main__":
    main()
