"""Whose users a sandbox has: SANDBOX_AS_ROOT, an engine that remaps users, and
what the kernel counts per user."""
import http.client
import os
import shutil
import signal
import subprocess
import tempfile

import pytest

from client import wait_for
from server import Engine, UnixConnection, serving, write

TIMERS = """
import ctypes, sys, time
libc = ctypes.CDLL(None)
timer, n = ctypes.c_void_p(), 0
while n < int(sys.argv[1]) and libc.timer_create(
        0, None, ctypes.byref(timer)) == 0:
    n += 1
print(n, flush=True)
time.sleep(float(sys.argv[2]))
"""
QUEUE = """
import ctypes, os
libc = ctypes.CDLL(None)
print(libc.mq_open(b"/q", os.O_CREAT | os.O_RDWR, 0o600, None) >= 0)
"""


class RemappedEngine(Engine):
    """A private engine with --userns-remap, and the image of the suite's."""

    def __init__(self):
        self.dir = tempfile.mkdtemp(prefix="mcpe-", dir="/tmp")
        os.chmod(self.dir, 0o711)
        super().__init__(f"unix://{self.dir}/s")
        self.config = os.path.join(self.dir, "c")
        write(self.config, "{}")
        self.log = open(os.path.join(self.dir, "log"), "w+b")
        self.process = subprocess.Popen(
            ["unshare", "--mount", "--propagation", "slave", "--net",
             "dockerd", "--host", f"unix://{self.dir}/s",
             "--data-root", f"{self.dir}/d", "--exec-root", f"{self.dir}/x",
             "--pidfile", f"{self.dir}/p", "--config-file", self.config,
             "--group", "root", "--userland-proxy=false", "--iptables=false",
             "--ip-masq=false", "--userns-remap=default"],
            stdout=self.log, stderr=self.log, stdin=subprocess.DEVNULL,
            start_new_session=True)

    def answers(self):
        if self.process.poll() is not None:
            self.log.seek(0)
            pytest.skip("no engine with --userns-remap here: "
                        + self.log.read().decode()[-300:])
        try:
            return self.request("GET", "/_ping")[0] == 200
        except (OSError, http.client.HTTPException):
            return False

    def take_image(self, other, name):
        source = UnixConnection(other.path)
        source.request("GET", f"/images/{name}/get")
        there = UnixConnection(self.path)
        there.request("POST", "/images/load?quiet=1", source.getresponse(),
                      {"Content-Type": "application/x-tar"},
                      encode_chunked=True)
        answer = there.getresponse()
        assert answer.status == 200 and b"Loaded" in answer.read()
        source.close()
        there.close()

    def close(self):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(10)
        self.log.close()
        # Named after the exec root, by the users it is for.
        for name in os.listdir(self.dir):
            shutil.rmtree(os.path.join(self.dir, name), ignore_errors=True)
        shutil.rmtree(self.dir, ignore_errors=True)


@pytest.fixture(scope="module")
def remapped(engine):
    if os.geteuid() != 0 or shutil.which("dockerd") is None:
        pytest.skip("starting an engine needs root and dockerd")
    e = RemappedEngine()
    try:
        wait_for(e.answers, 60, "the engine")
        e.take_image(engine, os.environ["SANDBOX_IMAGE"])
        yield e
    finally:
        e.close()


@pytest.fixture(scope="module")
def on_remapped(build, remapped):
    with serving(build, remapped,
                 env={"DOCKER_HOST": "unix://" + remapped.path,
                      "SANDBOX_AS_ROOT": "remapped"}) as s:
        yield s


def has_remap(engine):
    return b'"name=userns"' in engine.request("GET", "/info")[1]


def as_root(client, name, script):
    return client.run(name, script, as_user="root")


@pytest.mark.parametrize("setting", ["deny", "remapped"])
def test_root_is_refused_where_it_is_not_allowed(
        make_server, engine, setting):
    if setting == "remapped" and has_remap(engine):
        pytest.skip("this engine remaps users")
    server = make_server(env={"SANDBOX_AS_ROOT": setting})
    client = server.client()
    final = as_root(client, "a", "id -u")
    assert final["state"] == "failed"
    assert "SANDBOX_AS_ROOT=" + setting in str(final)
    assert client.out("a", "id -u") == "1000\n"


def test_a_start_says_whose_root_it_is(server, engine):
    words = ("root of a sandbox is another user of this host"
             if has_remap(engine) else
             "root of a sandbox is this host's root")
    assert words in "\n".join(server.log)


def test_root_of_a_remapped_sandbox_is_not_the_hosts(on_remapped, remapped):
    client = on_remapped.client()
    final = as_root(client, "a", "id -u; cat /proc/self/uid_map; "
                    "touch /workspace/x && chown 1000 /workspace/x && "
                    "stat -c %u /workspace/x")
    out = final["commands"][0]["stdout"].split()
    assert (out[0], out[1], out[-1]) == ("0", "0", "1000")
    assert int(out[2]) > 0
    container = final["sandbox_container_id"]
    shown = remapped.inspect(container)
    assert os.stat(f"/proc/{shown['State']['Pid']}").st_uid == int(out[2])
    user = client.run("a", "id -un; id -u; echo x > /artifacts/y")
    assert user["commands"][0]["stdout"] == "sandbox\n1000\n"
    assert "root of a sandbox is another user" in on_remapped.tail()
    # Let in by an access list, which the worker may make.
    assert "Function not implemented" not in on_remapped.tail()


def test_a_run_of_root_outlives_its_worker(on_remapped):
    client = on_remapped.client()
    run = client.start(
        "a", "echo begun; while [ ! -e /workspace/go ]; do sleep 0.05; done; "
        "echo done", as_user="root")
    client.wait_output(run["run_id"])
    on_remapped.kill("worker")
    client.run("a", "touch /workspace/go")
    final = client.wait_end(run["run_id"])
    assert final["commands"][0]["stdout"] == "begun\ndone\n"
    assert final["commands"][0]["exit_code"] == 0


def test_neighbours_on_a_remapped_engine_keep_their_timers(on_remapped):
    client = on_remapped.client()
    client.run("a", "cat > /workspace/t.py <<'E'\n" + TIMERS + "E")
    client.run("b", "cat > /workspace/t.py <<'E'\n" + TIMERS + "E")
    greedy = client.start("a", "python3 /workspace/t.py 1000000 60")
    client.wait_output(greedy["run_id"])
    taken = client.stdout_of(greedy["run_id"])
    assert 0 < int(taken) <= 1024
    assert client.out("b", "python3 /workspace/t.py 1000 0") == "1000\n"
    host = subprocess.run(["python3", "-c", TIMERS, "1000", "0"],
                          stdout=subprocess.PIPE, text=True, check=True)
    assert host.stdout == "1000\n"


def test_nobody_takes_posix_queues(client, sandbox):
    for options in ({}, {"as_user": "root"}):
        assert client.out(sandbox, "python3 - <<'E'\n" + QUEUE + "E",
                          **options) == "False\n"
    host = subprocess.run(["python3", "-c", QUEUE.replace("/q", "/mcpq")
                           + "libc.mq_unlink(b'/mcpq')\n"],
                          stdout=subprocess.PIPE, text=True, check=True)
    assert host.stdout == "True\n"
