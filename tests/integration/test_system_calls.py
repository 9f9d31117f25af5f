"""The seccomp profile of sandboxes: what it denies, what goes on working,
and how an operator takes another."""
import json
import os
import pathlib
import subprocess

import pytest

from client import python, wait_for

TOP = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))

# errno of one system call made with -1 as each argument; 0 if it went well.
CALL = """
import ctypes, sys
libc = ctypes.CDLL(None, use_errno=True)
for n in sys.argv[1:]:
    r = libc.syscall(int(n), -1, -1, -1, -1, -1, -1)
    print(ctypes.get_errno() if r == -1 else 0)
"""
EPERM, ENOSYS = 1, 38
# By number, as in Linux' table for x86_64.
DENIED = {
    "io_uring_setup": 425, "io_uring_enter": 426, "io_uring_register": 427,
    "userfaultfd": 323, "add_key": 248, "request_key": 249, "keyctl": 250,
    "bpf": 321, "perf_event_open": 298, "kexec_load": 246,
    "kexec_file_load": 320, "mount": 165, "umount2": 166, "pivot_root": 155,
    "chroot": 161, "open_tree": 428, "move_mount": 429, "fsopen": 430,
    "fsconfig": 431, "fsmount": 432, "fspick": 433, "mount_setattr": 442,
    "unshare": 272, "setns": 308, "open_by_handle_at": 304,
    "name_to_handle_at": 303, "init_module": 175, "finit_module": 313,
    "delete_module": 176, "syslog": 103, "quotactl": 179, "swapon": 167,
    "reboot": 169, "iopl": 172, "ioperm": 173, "modify_ldt": 154,
    "settimeofday": 164, "clock_settime": 227, "acct": 163,
    "fanotify_init": 300, "pidfd_getfd": 438, "kcmp": 312,
    "process_madvise": 440, "personality": 135, "sethostname": 170,
    "lookup_dcookie": 212, "vhangup": 153, "move_pages": 279}
ABSENT = {"clone3": 435, "the one after the last": 1000}


@pytest.fixture(params=["sandbox", "root"])
def user(request):
    return request.param


def run_python(client, name, code, *words, **options):
    command = client.run(name, python(code, *words), **options)["commands"][0]
    assert command["exit_code"] == 0, command
    return command["stdout"]


def test_calls_that_no_program_needs_are_denied(client, sandbox, user):
    names = {**DENIED, **ABSENT}
    said = run_python(client, sandbox, CALL, *map(str, names.values()),
                      as_user=user).split()
    got = dict(zip(names, map(int, said), strict=True))
    assert {n: got[n] for n in DENIED} == dict.fromkeys(DENIED, EPERM)
    assert {n: got[n] for n in ABSENT} == dict.fromkeys(ABSENT, ENOSYS)


def test_programs_that_people_run_still_run(client, sandbox, user):
    """Threads, processes, pipes between them, sockets, a terminal."""
    assert run_python(client, sandbox, """
import concurrent.futures, ctypes, multiprocessing, os, pty, socket
import tempfile
with multiprocessing.Pool(2) as pool:
    assert pool.map(abs, [1, -2]) == [1, 2]
with concurrent.futures.ThreadPoolExecutor(4) as pool:
    assert list(pool.map(abs, range(8))) == list(range(8))
child = multiprocessing.get_context("spawn").Process(target=print)
child.start(); child.join(); assert child.exitcode == 0
with socket.create_server(("127.0.0.1", 0)) as s:
    socket.create_connection(s.getsockname()).close()
assert socket.getaddrinfo("localhost", 80)
socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0).close()
a, b = socket.socketpair()
a.send(b"x"); assert b.recv(1) == b"x"
assert os.waitstatus_to_exitcode(pty.spawn(["true"], lambda fd: b"")) == 0
os.memfd_create("x")
os.mkfifo(tempfile.mktemp())
# A debugger of its own child: stop at exec, go on, see its end.
pid = os.fork()
if pid == 0:
    ctypes.CDLL(None).ptrace(0, 0, 0, 0)
    os.execlp("true", "true")
assert os.WIFSTOPPED(os.waitpid(pid, 0)[1])
libc = ctypes.CDLL(None, use_errno=True)
assert libc.ptrace(7, pid, 0, 0) == 0
assert os.waitpid(pid, 0)[1] == 0
assert libc.personality(0x40000) >= 0
print("all")
""", as_user=user).split()[-1] == "all"


def test_root_installs_a_package(client, sandbox):
    final = client.run(sandbox, """
set -e
mkdir -p p/DEBIAN p/usr/bin
printf '#!/bin/sh\\necho from the package\\n' >p/usr/bin/of-a-package
chmod 755 p/usr/bin/of-a-package
printf '%s\\n' 'Package: tried' 'Version: 1' 'Architecture: all' \\
    'Maintainer: nobody <nobody@example.org>' 'Description: tried' \\
    >p/DEBIAN/control
printf '#!/bin/sh\\necho configured\\n' >p/DEBIAN/postinst
chmod 755 p/DEBIAN/postinst
dpkg-deb --root-owner-group -b p tried.deb >&2
dpkg -i tried.deb >&2
of-a-package
""", as_user="root")
    command = final["commands"][0]
    assert command["stdout"] == "from the package\n", command


def engines_profile():
    return json.loads(subprocess.run(
        [os.path.join(TOP, "schema/gen.py"), "seccomp", "json",
         os.path.join(TOP, "schema/seccomp.txt"), "-"],
        capture_output=True, check=True).stdout)


@pytest.mark.own
def test_an_operator_may_widen_it(server, client):
    """Another profile is another fingerprint: with the new one a sandbox of
    the old one is made anew."""
    profile = engines_profile()
    profile["syscalls"].append({"names": ["keyctl"],
                                "action": "SCMP_ACT_ALLOW"})
    call = python(CALL, "250", "425")
    assert client.out("a", call, "touch /workspace/x").split() == ["1", "1"]
    path = pathlib.Path(server.dir, "wider.json")
    path.write_text(json.dumps(profile, indent=2))
    path.chmod(0o644)
    server.extra["SANDBOX_SECCOMP"] = str(path)
    server.restart()

    def run_in_a_new_one():
        final = client.run("a", call, "ls /workspace/x || echo gone")
        return final if final["state"] == "completed" else None
    final = wait_for(run_in_a_new_one, 60, "the old sandbox to be given up")
    keyctl, io_uring = map(int, final["commands"][0]["stdout"].split())
    assert keyctl not in (EPERM, ENOSYS) and io_uring == EPERM
    assert final["commands"][1]["stdout"] == "gone\n"


# Without the second word it does not start: test_refusals.py.
@pytest.mark.own(SANDBOX_SECCOMP="unconfined", SANDBOX_ALLOW_UNCONFINED="true")
def test_unconfined_is_taken_when_it_is_meant(client):
    said = client.out("a", "grep ^Seccomp: /proc/self/status")
    assert said.split() == ["Seccomp:", "0"]
