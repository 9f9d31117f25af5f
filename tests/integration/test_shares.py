"""Whose the processors are when all want them."""
import ctypes
import errno
import json
import os
import struct

from client import wait_for
from test_tenants import Ctl


def shares(engine, container):
    _, body = engine.request("GET", f"/containers/{container}/json")
    return json.loads(body)["HostConfig"]["CpuShares"]


def test_a_tenants_weight_is_divided_among_its_sandboxes(build, engine):
    from server import Server
    server = Server(build)
    try:
        ctl = Ctl(server)
        made = {}
        for name, sandboxes in (("a", 4), ("b", 1)):
            ctl("tenant", "add", name)
            client = server.client(token=ctl.token(name))
            made[name] = [
                client.run(f"box-{i}", "true")["sandbox_container_id"]
                for i in range(sandboxes)]

        def are(name, each):
            wait_for(lambda: all(shares(engine, c) == each
                                 for c in made[name]), 60,
                     f"{each} shares of {name}'s sandboxes")

        are("a", 64)
        are("b", 256)
        ctl("tenant", "set", "a", "quota.weight=400")
        are("a", 256)
        server.client(token=ctl.token("a")).call(
            "delete_sandbox", identifier="box-3")
        server.client(token=ctl.token("a")).call(
            "delete_sandbox", identifier="box-2")
        made["a"] = made["a"][:2]
        are("a", 512)
    finally:
        server.destroy(engine)


def slice_ns(pid):
    """As sched_getattr says: 0 before Linux 6.12, -1 of one that is gone."""
    number = {"x86_64": 315, "aarch64": 275}[os.uname().machine]
    attr = ctypes.create_string_buffer(48)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syscall(number, pid, attr, 48, 0) != 0:
        assert ctypes.get_errno() == errno.ESRCH
        return -1
    return struct.unpack_from("Q", attr, 24)[0]


def children(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
            return [int(p) for p in f.read().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []


def test_who_wakes_for_all_interrupts_who_works_for_one(
        server, client, sandbox, engine):
    """Ours have the shortest slice, a command has the kernel's."""
    usual = slice_ns(os.getpid())
    short = min(usual, 100000)
    box = client.run(sandbox, "true")["sandbox_container_id"]
    client.start(sandbox, "exec sleep 600")
    _, body = engine.request("GET", f"/containers/{box}/json")
    agent = json.loads(body)["State"]["Pid"]

    def are_short():
        ours = [server.proc.pid, agent, *children(agent),
                *(pid for pid, _ in server.children())]
        return len(ours) > 4 and {slice_ns(p) for p in ours} == {short}

    def commands():
        return [c for k in children(agent) for c in children(k)]

    wait_for(are_short, 60, "short slices")
    wait_for(commands, 60, "the command")
    assert [slice_ns(c) for c in commands()] == [usual]
