"""Whose the processors are when all want them."""
import ctypes
import errno
import os
import struct
import time

import pytest

from client import wait_for
from tenants import Tenant

MIB = 1048576


def limits(engine, container):
    return engine.inspect(container)["HostConfig"]


def shares(engine, container):
    return limits(engine, container)["CpuShares"]


@pytest.mark.own
def test_a_tenants_weight_is_divided_among_its_sandboxes(server, engine):
    tenants = {name: Tenant(server, name) for name in ("a", "b")}
    made = {name: [tenants[name].client.run(
        f"box-{i}", "true")["sandbox_container_id"] for i in range(n)]
            for name, n in (("a", 4), ("b", 1))}

    def are(name, each):
        wait_for(lambda: all(shares(engine, c) == each for c in made[name]),
                 60, f"{each} shares of {name}'s sandboxes")

    are("a", 64)
    are("b", 256)
    tenants["a"].set(weight=400)
    are("a", 256)
    for box in ("box-3", "box-2"):
        tenants["a"].client.delete(box)
    made["a"] = made["a"][:2]
    are("a", 512)


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
    agent = engine.inspect(box)["State"]["Pid"]

    def are_short():
        ours = [server.proc.pid, agent, *children(agent),
                *(pid for pid, _ in server.children())]
        return len(ours) > 4 and {slice_ns(p) for p in ours} == {short}

    def name(pid):
        with open(f"/proc/{pid}/comm", encoding="ascii") as f:
            return f.read().strip()

    def commands():
        """Not what waits to become one."""
        return [c for k in children(agent) for c in children(k)
                if name(c) == "sleep"]

    wait_for(are_short, 60, "short slices")
    wait_for(commands, 60, "the command")
    assert [slice_ns(c) for c in commands()] == [usual]


def cpus(engine, container):
    """The most of the processors that the engine gives it."""
    host = limits(engine, container)
    return host["CpuQuota"] / host["CpuPeriod"]


def place(engine, container):
    """The processors that the engine lets it run on."""
    found = set()
    for part in filter(None,
                       limits(engine, container)["CpusetCpus"].split(",")):
        first, _, last = part.partition("-")
        found |= set(range(int(first), int(last or first) + 1))
    return found


CORES = len(os.sched_getaffinity(0))


@pytest.mark.own(DEFAULT_CPU_CORES=CORES)
def test_a_tenant_alone_has_all_and_beside_others_a_part(server, engine):
    """A's burners are bound while B works, and not for ever."""
    a, b = (Tenant(server, name).client for name in ("a", "b"))
    names = [f"burner-{i}" for i in range(2)]
    boxes = [a.run(n, "true")["sandbox_container_id"] for n in names]
    runs = [a.start(n, "while :; do :; done")["run_id"] for n in names]
    wait_for(lambda: all(shares(engine, c) == 128 for c in boxes), 60,
             "shares of both")
    assert [cpus(engine, c) for c in boxes] == [CORES] * 2

    wait_for(lambda: (b.run("quiet", "true"),
                      [cpus(engine, c) for c in boxes])[1] == [CORES / 4] * 2,
             60, "half of the processors for both together")
    ours = os.sched_getaffinity(0)
    if CORES > 1:
        own = [place(engine, c) for c in boxes]
        assert own[0] == own[1] and len(own[0]) == CORES // 2, own
        assert own[0] < ours, own

    for run in runs:
        a.cancel(run)
    wait_for(lambda: [cpus(engine, c) for c in boxes] == [CORES] * 2, 60,
             "all of its own again")
    if CORES > 1:
        assert [place(engine, c) for c in boxes] == [ours] * 2


@pytest.mark.own(DEFAULT_CPU_CORES=CORES, CROWDED_OUTPUT_MB_S=1)
def test_what_is_printed_beside_others_comes_at_its_rate(server, engine):
    """However slow the machine is, it is never more."""
    a, b = (Tenant(server, name).client for name in ("a", "b"))
    box = a.run("printer", "true")["sandbox_container_id"]
    run = a.start("printer", "yes")["run_id"]

    def is_bound():
        b.run("other", "true")
        return cpus(engine, box) < CORES

    def printed():
        return a.status(run)["commands"][0]["stdout_bytes"]

    wait_for(is_bound, 60, "the bound of the printer")
    seen = [printed(), time.monotonic()]

    def is_settled():
        """What was read before is paid for first, and told in pieces."""
        was, then = seen
        is_bound()
        seen[:] = printed(), time.monotonic()
        return seen[0] - was < (seen[1] - then + 0.25) * MIB

    wait_for(is_settled, 60, "its rate")
    before, begin = seen
    wait_for(lambda: (is_bound(), printed())[1] > before + 2 * MIB, 60,
             "two more MiB")
    assert printed() - before < (time.monotonic() - begin + 2) * MIB
    a.cancel(run)
    assert a.wait_end(run)["end_reason"] == "canceled"
