"""Whose the processors are when all want them."""
import ctypes
import errno
import json
import os
import struct
import time

from client import wait_for
from test_tenants import Ctl

MIB = 1048576


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
    _, body = engine.request("GET", f"/containers/{container}/json")
    host = json.loads(body)["HostConfig"]
    return host["CpuQuota"] / host["CpuPeriod"]


def place(engine, container):
    """The processors that the engine lets it run on."""
    _, body = engine.request("GET", f"/containers/{container}/json")
    text = json.loads(body)["HostConfig"]["CpusetCpus"]
    cpus = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        cpus |= set(range(int(first), int(last or first) + 1))
    return cpus


def test_a_tenant_alone_has_all_and_beside_others_a_part(build, engine):
    """A's burners are bound while B works, and not for ever."""
    from server import Server
    cores = len(os.sched_getaffinity(0))
    server = Server(build, {"DEFAULT_CPU_CORES": str(cores)})
    try:
        ctl = Ctl(server)
        clients = {}
        for name in ("a", "b"):
            ctl("tenant", "add", name)
            clients[name] = server.client(token=ctl.token(name))
        boxes = [clients["a"].run(f"burner-{i}", "true")[
            "sandbox_container_id"] for i in range(2)]
        runs = [clients["a"].start(
            f"burner-{i}", "while :; do :; done")["run_id"]
            for i in range(2)]
        wait_for(lambda: all(shares(engine, c) == 128 for c in boxes), 60,
                 "shares of both")
        assert [cpus(engine, c) for c in boxes] == [cores] * 2

        wait_for(lambda: (clients["b"].run("quiet", "true"), [
            cpus(engine, c) for c in boxes])[1] == [cores / 4] * 2, 60,
            "half of the processors for both together")
        if cores > 1:
            ours = os.sched_getaffinity(0)
            own = [place(engine, c) for c in boxes]
            assert own[0] == own[1] and len(own[0]) == cores // 2, own
            assert own[0] < ours, own

        for run in runs:
            clients["a"].call("control_run", run_id=run, action="cancel")
        wait_for(lambda: [cpus(engine, c) for c in boxes] == [cores] * 2, 60,
                 "all of its own again")
        if cores > 1:
            assert [place(engine, c) for c in boxes] == [ours] * 2
    finally:
        server.destroy(engine)


def test_what_is_printed_beside_others_comes_at_its_rate(build, engine):
    """However slow the machine is, it is never more."""
    from server import Server
    cores = len(os.sched_getaffinity(0))
    server = Server(build, {"CROWDED_OUTPUT_MB_S": "1",
                            "DEFAULT_CPU_CORES": str(cores)})
    try:
        ctl = Ctl(server)
        clients = {}
        for name in ("a", "b"):
            ctl("tenant", "add", name)
            clients[name] = server.client(token=ctl.token(name))
        box = clients["a"].run("printer", "true")["sandbox_container_id"]
        run = clients["a"].start("printer", "yes")["run_id"]

        def is_bound():
            clients["b"].run("other", "true")
            return cpus(engine, box) < cores

        def printed():
            return clients["a"].status(run)["commands"][0]["stdout_bytes"]

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
        more = printed() - before
        assert more < (time.monotonic() - begin + 2) * MIB
        clients["a"].call("control_run", run_id=run, action="cancel")
        end = clients["a"].wait_end(run)
        assert end["end_reason"] == "canceled", end
    finally:
        server.destroy(engine)
