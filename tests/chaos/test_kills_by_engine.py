"""Front, workers and the programs of bridges die in turn, fifty times, on each
engine and by each carrier: runs that go on meanwhile print all that they print
once, and afterwards nothing is left, neither here nor on the engine.

A kill waits until each run has printed more since the one before: none meets a
server that has not come back, or one that does nothing.  Calls that meet kills
are test_chaos.py's.
"""
import contextlib
import itertools
import json
import os
import pathlib
import signal
import tempfile
import uuid

import pytest

from client import wait_for
from engines import Certificates, dockerd, podman
from server import processes, serving

KILLS, BOXES, AT_ONCE = 50, 3, 6
ROLES = {"unix": ("front", "worker"), "bridge": ("front", "worker", "bridge")}
# Numbers for some seconds.  A command that was begun twice is in the file.
BLOCKS, LINES = 60, 200
PRINTER = (f"echo $RUN >>/workspace/begun; for i in $(seq {BLOCKS}); do "
           f"seq $((i * {LINES})) $((i * {LINES} + {LINES - 1})); "
           "echo e$i >&2; sleep 0.1; done; exit 7")
STDOUT = "".join(f"{n}\n" for n in range(LINES, (BLOCKS + 1) * LINES))
STDERR = "".join(f"e{n}\n" for n in range(1, BLOCKS + 1))


@contextlib.contextmanager
def docker_by_tls():
    with tempfile.TemporaryDirectory(prefix="mcp-sandboxd-tls-") as path:
        os.chmod(path, 0o755)  # where the worker's user gets to
        with dockerd(tls=Certificates(path)) as e:
            yield e


@pytest.fixture(scope="module", params=[dockerd, docker_by_tls, podman],
                ids=["docker", "docker-tls", "podman"])
def private_engine(request):
    with request.param() as e:
        e.image = e.import_image()
        yield e


@pytest.fixture(params=ROLES)
def killed(request, build, private_engine):
    """A server whose roles may die as often as they do, and as young."""
    with serving(build, private_engine, env=private_engine.env | {
            "SANDBOX_IMAGE": private_engine.image, "CARRIER": request.param,
            "WORKERS": "1", "DEFAULT_MEMORY_MB": "128",
            "MCP_SANDBOXD_BURST": str(2 * KILLS),
            "MCP_SANDBOXD_FRONT_HEALTHY_MS": "0",
            "MCP_SANDBOXD_WORKER_HEALTHY_MS": "1"}) as server:
        server.carrier = request.param
        yield server


class Printers:
    """Runs, of which some go on at any time."""

    def __init__(self, client):
        self.client = client
        self.numbers = itertools.count()
        self.printed = {}  # by run that goes on: how much, when last seen
        self.begun = {f"box{i}": [] for i in range(BOXES)}

    def start(self):
        number = next(self.numbers)
        name = f"box{number % BOXES}"
        self.begun[name].append(f"r{number}")
        run = self.client.start(name, {
            "shell": PRINTER, "env": {"RUN": f"r{number}"}})["run_id"]
        self.printed[run] = 0

    def go_on(self):
        """As many as ever, each a bit further."""
        while len(self.printed) < AT_ONCE:
            self.start()
        for run in list(self.printed):
            wait_for(lambda run=run: self.has_moved(run), 60,
                     f"more output of run {run}")

    def has_moved(self, run):
        view = self.client.status(run)
        printed = view["commands"][0]["stdout_bytes"]
        if view["state"] not in ("queued", "running"):
            self.check(run)
            return True
        moved = printed > self.printed[run]
        self.printed[run] = printed
        return moved

    def check(self, run):
        """It has ended, with all that it printed, once."""
        view = self.client.status(run)
        command, = view["commands"]
        assert (command["end_reason"], command["exit_code"]) == ("exit", 7), \
            json.dumps(view)[-600:]
        assert command["stdout"] == STDOUT
        assert command["stderr"] == STDERR
        del self.printed[run]

    def finish(self):
        for run in list(self.printed):
            self.client.wait_end(run, 90)
            self.check(run)
        for name, begun in self.begun.items():
            told = self.client.out(name, "cat /workspace/begun").split()
            assert sorted(told) == sorted(begun)


def boxes(engine):
    status, data = engine.request("GET", "/containers/json?all=1")
    assert status == 200, data
    return [c["Id"] for c in json.loads(data)]


def kill_bridge(engine, box):
    """And its successor is there."""
    old = engine.bridges(box)
    assert old
    for pid in old:
        with contextlib.suppress(ProcessLookupError):  # replaced just now
            os.kill(pid, signal.SIGKILL)
    wait_for(lambda: set(engine.bridges(box)) - set(old), 60,
             "another bridge")


def check_no_bridge_too_many(engine, carrier):
    """The agent ends one that its worker has left: Docker does not."""
    want = 1 if carrier == "bridge" else 0
    wait_for(lambda: {len(engine.bridges(box)) for box in boxes(engine)} ==
             {want}, 60, "the end of all other bridges")


def check_nothing_is_left_on(engine):
    wait_for(lambda: not boxes(engine), 60, "the containers' end")
    # The base, and what is prepared of it once.
    images = json.loads(engine.request("GET", "/images/json")[1])
    assert len(images) <= 2, images
    wait_for(lambda: not keepers(engine), 60, "the end of what kept them")


def keepers(engine):
    """Processes of an engine for its containers.  Podman has one for each exec,
    too, which stays for five minutes to be asked how that ended."""
    return [words for _, words in processes() if engine.dir in str(words) and
            ("shim" in words[0] or "conmon" in words[0]) and
            "--exec-attach" not in words]


def check_nothing_is_left_of(server):
    """Its history stays."""
    runs = {f"{uuid.UUID(bytes=run)}.log"
            for run, in server.sql("SELECT uuid FROM run")}
    assert server.stop() == 0
    assert not users_of(server.dir)
    files = {str(p.relative_to(server.data)): p.name
             for p in pathlib.Path(server.data).rglob("*") if p.is_file()}
    left = {path for path, name in files.items()
            if name not in runs and not name.startswith(".agent-")}
    assert left == {"instance", "secrets.key", "links/.key",
                    "front/session.key", "front/history.db",
                    "front/mcp-sandboxd.db"}
    assert sum(name.startswith(".agent-") for name in files.values()) <= 1


def users_of(directory):
    """Processes that have a file open there, or are there."""
    found = []
    for pid, words in processes():
        with contextlib.suppress(OSError):  # it has ended
            fds = f"/proc/{pid}/fd"
            held = [os.readlink(f"{fds}/{n}") for n in os.listdir(fds)]
            held.append(os.readlink(f"/proc/{pid}/cwd"))
            if any(f"{path}/".startswith(f"{directory}/") for path in held):
                found.append((pid, words))
    return found


def test_fifty_kills_cost_no_byte_and_leave_nothing(private_engine, killed):
    client = killed.client()
    printers = Printers(client)
    roles = ROLES[killed.carrier]
    for n in range(KILLS):
        printers.go_on()
        role = roles[n % len(roles)]
        if role == "bridge":
            all_boxes = sorted(boxes(private_engine))
            kill_bridge(private_engine, all_boxes[n % len(all_boxes)])
        else:
            killed.kill(role)
    printers.finish()
    check_no_bridge_too_many(private_engine, killed.carrier)
    for name in printers.begun:
        client.delete(name)
    check_nothing_is_left_on(private_engine)
    check_nothing_is_left_of(killed)
