"""Who can reach the engine: nobody but a worker."""
import os
import socket
import struct
import subprocess

import pytest

from server import proc_status


def sockets_of(pid):
    inodes = set()
    for fd in os.listdir(f"/proc/{pid}/fd"):
        try:
            target = os.readlink(f"/proc/{pid}/fd/{fd}")
        except OSError:
            continue
        if target.startswith("socket:["):
            inodes.add(int(target[8:-1]))
    return inodes


def connected_to(pid, inodes):
    """Whether a socket of pid has one of these inodes as its peer: ss(8)
    names both, also across network namespaces."""
    text = subprocess.run(["ss", "-xH"], capture_output=True, text=True,
                          check=True).stdout
    mine = sockets_of(pid)
    for line in text.split("\n"):
        words = line.split()
        if len(words) >= 8 and int(words[5]) in mine \
                and int(words[7]) in inodes:
            return True
    return False


def engine_pid(engine):
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(engine.path)
        cred = s.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    return struct.unpack("3i", cred)[0]


def test_only_workers_hold_the_engines_socket(server, client, sandbox,
                                              engine):
    client.run(sandbox, "true")
    inodes = sockets_of(engine_pid(engine))
    assert inodes, "the engine's sockets cannot be seen"
    for pid, role in server.children():
        assert connected_to(pid, inodes) == (role == "worker"), role
    assert not connected_to(server.proc.pid, inodes)


def test_front_and_workers_run_under_seccomp_without_new_privileges(server):
    for pid, role in server.children():
        status = proc_status(pid)
        assert status["Seccomp"] == "2", role
        assert status["NoNewPrivs"] == "1", role


def test_the_children_have_an_empty_environment(server):
    for pid, role in server.children():
        with open(f"/proc/{pid}/environ", "rb") as f:
            names = {v.split(b"=")[0] for v in f.read().split(b"\0") if v}
        assert b"HOME" not in names and b"SANDBOX_IMAGE" not in names, role


@pytest.mark.own(RUN_AS_FRONT="games", RUN_AS_WORKER="daemon")
def test_as_root_the_three_run_as_three_users(server):
    """With two accounts that every Debian has, as stand-ins."""
    import pwd
    final = server.client().run("a", "echo hi > /artifacts/f; echo ok")
    assert final["commands"][0]["stdout"] == "ok\n"
    assert server.get("/artifacts/a/latest/f")[2] == b"hi\n"
    wanted = {"front": pwd.getpwnam("games").pw_uid,
              "worker": pwd.getpwnam("daemon").pw_uid}
    for pid, role in server.children():
        status = proc_status(pid)
        assert set(map(int, status["Uid"].split())) == {wanted[role]}
        assert int(status["CapEff"], 16) == 0
    server.kill("front")
    final = server.client().run("a", "echo again")
    assert final["commands"][0]["stdout"] == "again\n"
