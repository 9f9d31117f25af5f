"""Images with the agent's program in them, on the real engine.

What of a worker does that is prepared_boxes, a program of the tests.
"""
import hashlib
import io
import json
import os
import select
import shutil
import signal
import subprocess
import tarfile
import time
import urllib.parse
import uuid

import pytest

import meddler
import quota_engine
from driver import reason, wait_for

REPO = "localhost/mcp-sandboxd/prepared"
PROGRAM = "/.mcp-sandboxd/agent"


class Preparer:
    """A process that makes boxes with prepared images, as a worker would."""

    def __init__(self, build, path, agent, instance, index=0):
        self.process = subprocess.Popen(
            [f"{build}/tests/unit/worker/helpers/prepared_boxes", path,
             instance, str(index), agent],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE)
        self.out = b""
        assert self.line() == "up"

    def line(self, timeout=60):
        end = time.monotonic() + timeout
        fd = self.process.stdout.fileno()
        while b"\n" not in self.out:
            left = end - time.monotonic()
            assert left > 0 and select.select([fd], [], [], left)[0], (
                "it says nothing")
            data = os.read(fd, 65536)
            assert data, self.process.stderr.read().decode()
            self.out += data
        line, _, self.out = self.out.partition(b"\n")
        return line.decode()

    def ask(self, image, *names):
        self.process.stdin.write(
            b"".join(b"%s %s\n" % (n.encode(), image.encode())
                     for n in names))
        self.process.stdin.flush()

    def make(self, image, *names):
        """{name: (whether, id or why)}"""
        self.ask(image, *names)
        return dict(self.answer() for _ in names)

    def answer(self):
        name, how, what = self.line().split(" ", 2)
        return name, (how == "ok", what)

    def kill(self):
        self.process.kill()
        self.end()

    def end(self):
        """What it said on stderr."""
        self.process.stdin.close()
        self.process.wait()
        said = self.process.stderr.read().decode()
        self.process.stdout.close()
        self.process.stderr.close()
        return said


class Ground:
    """One base image, what is made of it, and its end."""

    def __init__(self, build, engine, directory):
        self.build, self.engine = build, engine
        self.dir = directory
        self.agent = f"{build}/sandbox-agent"
        self.instance = uuid.uuid4().hex
        self.base = f"mcp-sandboxd/base-{self.instance[:12]}:latest"
        self.bases = []
        self.preparers = []
        self.rebuild()

    def rebuild(self):
        self.engine.import_image(self.base.removesuffix(":latest"))
        self.bases.append(self.image(self.base)["Id"])

    def image(self, name):
        status, data = self.engine.request("GET", f"/images/{name}/json")
        return json.loads(data) if status == 200 else None

    def preparer(self, path=None, agent=None, instance=None, index=0):
        p = Preparer(self.build, path or self.engine.path,
                     agent or self.agent, instance or self.instance, index)
        self.preparers.append(p)
        return p

    def names(self, n=1):
        return [f"mcp-test-{uuid.uuid4()}" for _ in range(n)]

    def one(self, preparer):
        name, = self.names()
        return preparer.make(self.base, name)[name]

    def other_agent(self):
        path = os.path.join(self.dir, "agent")
        shutil.copy(self.agent, path)
        with open(path, "ab") as f:
            f.write(b"of another version")
        return path

    def prepared(self):
        """Of all that our base was."""
        status, data = self.engine.request("GET", "/images/json?all=1")
        assert status == 200, data
        return [i for i in json.loads(data) if (i["Labels"] or {}).get(
            "mcp.prepared_base") in self.bases]

    def containers(self, role):
        filters = urllib.parse.quote(json.dumps(
            {"label": [f"mcp.role={role}"]}))
        status, data = self.engine.request(
            "GET", f"/containers/json?all=1&filters={filters}")
        assert status == 200, data
        return [c for c in json.loads(data) if self.is_ours(c["Labels"])]

    def is_ours(self, labels):
        return (labels.get("mcp.instance_id") == self.instance
                or labels.get("mcp.prepared_base") in self.bases)

    def remove_boxes(self):
        for role in "sandbox", "prepared":
            for c in self.containers(role):
                self.engine.request(
                    "DELETE", f"/containers/{c['Id']}?force=1&v=1")

    def destroy(self):
        said = [p.end() for p in self.preparers
                if p.process.returncode is None]
        self.remove_boxes()
        for name in [i["Id"] for i in self.prepared()] + self.bases:
            self.engine.request("DELETE", f"/images/{name}?force=1")
        assert not any("Sanitizer" in s or "runtime error" in s
                       for s in said), said


@pytest.fixture(name="ground")
def ground_fixture(build, engine, tmp_path):
    g = Ground(build, engine, str(tmp_path))
    yield g
    g.destroy()


@pytest.fixture(name="between")
def between_fixture(engine, tmp_path):
    m = meddler.Meddler(engine, str(tmp_path))
    yield m
    m.close()


def test_an_image_is_prepared_once_for_many_sandboxes(ground):
    made = ground.preparer().make(ground.base, *ground.names(6))
    assert all(ok for ok, _ in made.values()), made
    image, = ground.prepared()
    with open(ground.agent, "rb") as f:
        digest = hashlib.sha256(f.read()).hexdigest()
    assert image["Labels"]["mcp.prepared_agent"] == digest
    assert image["RepoTags"] == [
        f"{REPO}:{digest[:16]}-{ground.bases[0].partition(':')[2][:16]}"]
    for _, container in made.values():
        assert ground.engine.inspect(container)["Image"] == image["Id"]
    assert ground.containers("prepared") == []


def test_the_agent_runs_in_a_sandbox_of_a_prepared_image(ground):
    _, container = ground.one(ground.preparer())
    status, data = ground.engine.request(
        "POST", f"/containers/{container}/start")
    assert status == 204, data
    status, data = ground.engine.request("GET", f"/containers/{container}/top")
    assert status == 200, data
    assert any(PROGRAM in " ".join(p) for p in json.loads(data)["Processes"])


def test_the_program_is_roots_and_nobody_may_write_it(ground):
    ok, container = ground.one(ground.preparer())
    assert ok, container
    status, data = ground.engine.request(
        "GET", f"/containers/{container}/archive?path=/.mcp-sandboxd")
    assert status == 200, data
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        found = {m.name: (m.mode & 0o7777, m.uid, m.gid, m.isdir())
                 for m in tar}
    assert found == {".mcp-sandboxd": (0o755, 0, 0, True),
                     ".mcp-sandboxd/agent": (0o555, 0, 0, False)}


def test_a_sandbox_shows_the_image_that_was_asked_for(ground):
    _, container = ground.one(ground.preparer())
    labels = ground.engine.inspect(container)["Config"]["Labels"]
    assert labels["mcp.image"] == ground.base
    assert labels["mcp.role"] == "sandbox"


def test_the_variables_of_an_image_are_those_of_the_prepared_one(ground):
    status, data = ground.engine.request(
        "POST", "/containers/create",
        json.dumps({"Image": ground.base, "Cmd": ["sh"]}),
        {"Content-Type": "application/json"})
    assert status == 201, data
    container = json.loads(data)["Id"]
    status, data = ground.engine.request(
        "POST", f"/commit?container={container}&repo="
        f"{ground.base.removesuffix(':latest')}&tag=latest&changes="
        + urllib.parse.quote("ENV A=b\nUSER 1000\nWORKDIR /tmp"))
    assert status == 201, data
    ground.engine.request("DELETE", f"/containers/{container}?force=1")
    ground.bases.append(ground.image(ground.base)["Id"])
    ok, container = ground.one(ground.preparer())
    assert ok, container
    image, = ground.prepared()
    config = ground.image(image["Id"])["Config"]
    assert "A=b" in config["Env"] and config["User"] == "1000"
    assert config["WorkingDir"] == "/tmp"
    box = ground.engine.inspect(container)["Config"]
    assert "A=b" in box["Env"] and box["User"] == "0:0"
    assert box["WorkingDir"] == "/workspace"
    assert box["Entrypoint"] == [PROGRAM] and box["Cmd"][0] == "-k"


def test_the_next_worker_and_the_next_server_use_it_again(ground):
    assert ground.one(ground.preparer())[0]
    image, = ground.prepared()
    for more in {"index": 1}, {"instance": uuid.uuid4().hex}:
        _, container = ground.one(ground.preparer(**more))
        assert ground.engine.inspect(container)["Image"] == image["Id"]
        ground.engine.request("DELETE", f"/containers/{container}?force=1")
    assert ground.prepared() == [image]


def test_two_workers_may_prepare_it_at_a_time(ground, between):
    go_on = between.keep("POST /commit")
    first = ground.preparer(between.path)
    name, = ground.names()
    first.ask(ground.base, name)
    assert between.reached.wait(30)
    assert ground.one(ground.preparer(index=1))[0]
    go_on.set()
    assert first.answer()[1][0]
    # The later one has the name, and the other goes when nothing is made of
    # it.
    ground.remove_boxes()
    assert ground.one(ground.preparer(index=2))[0]
    wait_for(lambda: len(ground.prepared()) == 1)
    assert ground.prepared()[0]["RepoTags"][0].startswith(REPO)


def test_a_sandbox_more_of_a_prepared_image_is_one_request(ground, between):
    p = ground.preparer(between.path)
    assert ground.one(p)[0]
    del between.asked[:]
    assert ground.one(p)[0]
    assert [a for a in between.asked if not a.endswith((
        "/_ping", "/json"))] == ["POST /containers/create"]
    assert not any("prepared:" in a for a in between.asked)


@pytest.mark.parametrize("call", [
    "POST /commit", "PUT /containers/", "POST /containers/create"])
def test_what_an_engine_forbids_is_said_and_nothing_is_left(
        ground, between, call):
    between.answers[call] = 403, "commits are not for you"
    p = ground.preparer(between.path)
    ok, why = ground.one(p)
    assert not ok
    assert f"image {ground.base} cannot be given the agent's program" in why
    assert "answers 403: commits are not for you" in why
    assert "let this server" in why
    assert ground.containers("prepared") == [] == ground.prepared()
    # It holds for a moment, however many ask.
    n = sum(call in a for a in between.asked)
    assert not any(ok for ok, _ in p.make(
        ground.base, *ground.names(4)).values())
    assert sum(call in a for a in between.asked) == n


def test_an_engine_that_allows_it_again_is_asked_again(ground, between):
    between.answers["POST /commit"] = 500, "not now"
    p = ground.preparer(between.path)
    assert not ground.one(p)[0]
    between.answers.clear()
    wait_for(lambda: ground.one(p)[0])


def test_a_base_that_goes_while_it_is_prepared_is_looked_for_again(
        ground, between):
    go_on = between.keep("POST /containers/create")
    p = ground.preparer(between.path)
    name, = ground.names()
    p.ask(ground.base, name)
    assert between.reached.wait(30)
    status, data = ground.engine.request(
        "DELETE", f"/images/{ground.base}?force=1")
    assert status == 200, data
    go_on.set()
    ok, why = p.answer()[1]
    assert not ok and f"image {ground.base} is missing" in why
    assert ground.containers("prepared") == []


def test_a_prepared_image_that_was_removed_is_made_again(ground):
    p = ground.preparer()
    assert ground.one(p)[0]
    ground.remove_boxes()
    image, = ground.prepared()
    status, data = ground.engine.request("DELETE", f"/images/{image['Id']}")
    assert status == 200, data
    ok, why = ground.one(p)
    assert ok, why
    assert ground.prepared()[0]["Id"] != image["Id"]


def test_a_base_that_is_built_anew_is_prepared_anew_and_the_old_one_goes(
        ground):
    p = ground.preparer()
    assert ground.one(p)[0]
    old, = ground.prepared()
    ground.rebuild()

    def is_new():
        _, container = ground.one(p)
        return ground.engine.inspect(container)["Image"] != old["Id"]

    wait_for(is_new)  # the id of a base holds for 5 s
    # A sandbox is made of it still.
    assert len(ground.prepared()) == 2
    ground.remove_boxes()
    assert ground.one(ground.preparer(index=1))[0]
    wait_for(lambda: old["Id"] not in [i["Id"] for i in ground.prepared()])
    assert len(ground.prepared()) == 1


def test_an_image_of_another_version_is_left_for_a_day(ground):
    assert ground.one(ground.preparer(agent=ground.other_agent()))[0]
    ground.remove_boxes()
    assert ground.one(ground.preparer(index=1))[0]
    # Its maker has looked around since.
    p = ground.preparer(index=2)
    assert ground.one(p)[0]
    assert len(ground.prepared()) == 2


def test_a_worker_that_is_killed_at_it_leaves_nothing_to_the_next(
        ground, between):
    for call in "PUT /containers/", "POST /commit":
        between.keep(call)
        p = ground.preparer(between.path)
        p.ask(ground.base, *ground.names())
        assert between.reached.wait(30)
        assert len(ground.containers("prepared")) == 1
        p.process.send_signal(signal.SIGKILL)
        p.end()
        # By looking around, without preparing anything.
        p = ground.preparer()
        wait_for(lambda: ground.containers("prepared") == [])
        p.end()
    assert ground.prepared() == []
    assert ground.one(ground.preparer())[0]


def test_what_another_worker_prepares_is_left_alone(ground, between):
    go_on = between.keep("POST /commit")
    first = ground.preparer(between.path)
    name, = ground.names()
    first.ask(ground.base, name)
    assert between.reached.wait(30)
    other = ground.preparer(index=1)
    assert ground.one(other)[0]  # has looked around meanwhile
    assert len(ground.containers("prepared")) == 1
    go_on.set()
    assert first.answer()[1][0]


def test_a_worker_behind_its_fence_runs_commands_in_one(
        ground, make_worker):
    worker = make_worker(CARRIER="bridge", SANDBOX_IMAGE=ground.base).start()
    sandbox, _, container = worker.open()
    run = worker.run(sandbox, "ls -l /.mcp-sandboxd/agent; echo x >> "
                     "/.mcp-sandboxd/agent || echo refused")
    assert reason(worker.finish(run)) == "exit"
    assert run.stdout().startswith(b"-r-xr-xr-x")
    assert run.stdout().endswith(b"refused\n")
    image, = ground.prepared()
    shown = ground.engine.inspect(container)
    assert shown["Image"] == image["Id"]
    assert shown["Config"]["Labels"]["mcp.image"] == ground.base
    assert shown["HostConfig"].get("Binds") in (None, [])


@pytest.fixture(name="small_engine")
def small_engine_fixture():
    with quota_engine.running("small") as (engine, data):
        yield engine, data


def test_a_full_disk_is_said_and_is_left_as_it_was(
        build, small_engine, tmp_path):
    engine, data = small_engine
    ground = Ground(build, engine, str(tmp_path))
    try:
        fill = os.path.join(data, "fill")
        p = ground.preparer()
        with open(fill, "wb") as f:
            st = os.statvfs(data)
            os.posix_fallocate(
                f.fileno(), 0, st.f_bavail * st.f_frsize - (1 << 20))
        ok, why = ground.one(p)
        assert not ok and "no space left on device" in why
        assert "make room on the engine's disk" in why
        assert ground.containers("prepared") == [] == ground.prepared()
        os.unlink(fill)
        wait_for(lambda: ground.one(p)[0])
        assert ground.containers("prepared") == []
    finally:
        ground.destroy()
