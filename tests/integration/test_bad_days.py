"""Engine away, image missing, disk full, port taken, clients gone."""
import os
import signal
import subprocess
import time

import pytest

from client import wait_for
from server import CARRIER, memory_kib, write


class Proxy:
    """A socket before the engine that can be taken away and given back."""

    def __init__(self, path, target):
        self.path = path
        self.target = target
        self.proc = None

    def up(self):
        code = (
            "import socket, sys, threading, os\n"
            "path, target = sys.argv[1:]\n"
            "s = socket.socket(socket.AF_UNIX)\n"
            "s.bind(path); os.chmod(path, 0o666); s.listen(64)\n"
            "def pump(a, b):\n"
            "    try:\n"
            "        while (d := a.recv(65536)): b.sendall(d)\n"
            "    except OSError: pass\n"
            "    for x in (a, b):\n"
            "        try: x.shutdown(2)\n"
            "        except OSError: pass\n"
            "while True:\n"
            "    a, _ = s.accept()\n"
            "    b = socket.socket(socket.AF_UNIX); b.connect(target)\n"
            "    for x in ((a, b), (b, a)):\n"
            "        threading.Thread(target=pump, args=x,"
            " daemon=True).start()\n")
        self.proc = subprocess.Popen(
            ["/usr/bin/python3", "-c", code, self.path, self.target])

    def down(self):
        if self.proc is not None:
            self.proc.kill()
            self.proc.wait()
            self.proc = None
        if os.path.exists(self.path):
            os.unlink(self.path)


def wait_not_ready(server, why=b""):
    def not_ready():
        status, _, body = server.get("/readyz")
        return status == 503 and why in body
    wait_for(not_ready, 60, "not to be ready")


@pytest.fixture
def proxy(engine, open_place):
    made = Proxy(str(open_place / "engine.sock"), engine.path)
    yield made
    made.down()


def test_an_engine_that_is_down_gives_a_clear_error_and_recovers(
        proxy, make_server):
    server = make_server(env={"DOCKER_HOST": f"unix://{proxy.path}"},
                         wait="port")
    wait_not_ready(server)
    missing = engines(server)[0]
    assert missing["engine"] == "down" and proxy.path in missing["detail"]
    assert missing["version"] is None
    client = server.client()
    began = time.monotonic()
    text = wait_for(lambda: refused(client, proxy.path), 30,
                    "a refusal that names the socket")
    assert time.monotonic() - began < 20
    assert "engine" in text.lower()
    proxy.up()
    wait_for(server.is_ready, 60, "recovery")
    assert client.out("e", "echo up") == "up\n"
    found = engines(server)[0]
    assert found["engine"] == "up" and found["since"] > missing["since"]
    info = f'sandboxd_engine_info{{version="{found["version"]}",' \
        f'api="{found["api_version"]}"}}'
    assert server.metric(info) == 1
    proxy.down()
    wait_not_ready(server)
    wait_for(lambda: {w["engine"] for w in engines(server)} == {"down"}, 60,
             "all workers to miss it")
    lost = engines(server)[0]
    assert lost["since"] > found["since"]
    # What it was is still known; that it is there is not.
    assert lost["version"] == found["version"]
    text = server.ctl("status")
    assert "down" in text and "not ready: " in text
    assert "sandboxd_engine_info{" not in server.get("/metrics")[2].decode()
    # Where its agent is reached without one, a warm sandbox needs no engine.
    if CARRIER == "unix":
        assert client.out("e", "echo on") == "on\n"
    began = time.monotonic()
    assert "engine" in client.refused("fresh", "true").lower()
    assert time.monotonic() - began < 5
    proxy.up()
    wait_for(server.is_ready, 60, "recovery")
    assert client.run("fresh", "echo up")["state"] == "completed"
    server.stop()


def engines(server):
    """As status tells of them, one for each worker."""
    return server.ctl.json("status")["engine"]


def refused(client, path):
    """The text of the refusal once it names the socket."""
    result = client.tool("run_sandbox", identifier="e",
                         commands=[{"shell": "true"}],
                         options={"await_completion": True})
    text = result["content"][0]["text"]
    return text if result.get("isError") and path in text else None


def test_a_missing_image_is_named(make_server):
    server = make_server(env={"SANDBOX_IMAGE": "no-such-image:none",
                              "AUTO_BUILD_SANDBOX_IMAGE": "false"},
                         wait="port")
    wait_not_ready(server, b"no-such-image:none is missing")
    assert "no-such-image:none" in engines(server)[0]["detail"]
    assert "no-such-image:none" in server.client().refused("a", "true")


def test_an_image_that_comes_later_makes_a_server_ready(make_server, engine):
    """And one that its first use would make is no reason to wait."""
    name = f"localhost/mcp-sandboxd/later-{os.getpid()}"
    usual = os.environ["SANDBOX_IMAGE"].replace("/", "%2F")
    server = make_server(env={"SANDBOX_IMAGE": f"{name}:1",
                              "AUTO_BUILD_SANDBOX_IMAGE": "false"},
                         wait="port")
    wait_not_ready(server, b"is missing")
    try:
        assert engine.request(
            "POST", f"/images/{usual}/tag?repo={name}&tag=1")[0] == 201
        wait_for(server.is_ready, 60, "readiness")
    finally:
        engine.request("DELETE", f"/images/{name}:1?noprune=1")
    wait_not_ready(server)
    dockerfile = os.path.join(server.dir, "Dockerfile")
    write(dockerfile, "FROM scratch\n")
    make_server(env={
        "SANDBOX_IMAGE": "localhost/mcp-sandboxd/never:1",
        "SANDBOX_DOCKERFILE_PATH": dockerfile})  # it becomes ready


def test_code_cannot_kill_the_agent(client, sandbox):
    # From inside, the kernel shields the first process of a PID namespace
    # from every signal it has no handler for, root's included.
    for user in ("sandbox", "root"):
        assert client.out(sandbox, "kill -9 1; sleep 0.2; echo still",
                          as_user=user) == "still\n"
    final = client.run(sandbox, "kill -9 -1", as_user="root")
    assert final["commands"][0]["end_reason"] in ("signal", "exit")
    assert client.out(sandbox, "echo on") == "on\n"


def test_an_agent_killed_from_outside_is_a_lost_sandbox(
        client, sandbox, engine):
    run = client.start(sandbox, "echo x; sleep 60")["run_id"]
    client.wait_output(run)
    os.kill(engine.inspect(client.status(
        run)["sandbox_container_id"])["State"]["Pid"], signal.SIGKILL)
    assert client.wait_end(run)["end_reason"] == "sandbox_lost"
    assert client.out(sandbox, "echo new") == "new\n"


def test_a_gigabyte_of_output_is_counted_and_memory_stays_flat(
        server, client, sandbox):
    size = 1 << 30

    def rss():
        return sum(memory_kib(pid) for pid, _ in server.children())

    client.run(sandbox, "true")
    before = rss()
    final = client.run(sandbox, {
        "shell": f"head -c {size} /dev/zero | tr '\\0' x",
        "timeout_ms": 300000}, wait_ms=300000)
    command = final["commands"][0]
    assert command["stdout_bytes"] == size
    assert command["stdout_truncated"] is True
    assert len(client.stdout_of(final["run_id"])) == 1 << 20
    assert command["exit_code"] == 0
    assert rss() - before < 200 * 1024  # KiB; far below what was printed


@pytest.mark.own(DEFAULT_STDOUT_MAX_BYTES=1024)
def test_caps_keep_the_first_bytes_and_count_all(client):
    command, = client.run("a",
                          "head -c 5000 /dev/zero | tr '\\0' x")["commands"]
    assert command["stdout"] == "x" * 1024
    assert command["stdout_truncated"] is True
    assert command["stdout_bytes"] == 5000


@pytest.mark.own(DENYLIST_ENABLED="true")
def test_the_denylist_stops_a_run_before_it_begins(client):
    final = client.run("a", "docker ps")
    assert final["state"] == "failed"
    assert final["commands"][0]["exit_code"] == 1
    assert "denylist matched" in final["error"]


@pytest.mark.own(DENYLIST_ENABLED="true", DENYLIST_PATTERNS="rm .*-rf")
def test_a_long_command_does_not_keep_the_denylist_busy(server, client):
    text = "true " + "rm " * 40000
    assert client.run("a", *[text] * 2)["state"] == "completed"
    assert server.metric('sandboxd_process_restarts_total{role="front"}') == 0
    assert "bytes of words" in client.refused("a", *[text] * 3)
