"""Engine away, image missing, disk full, port taken, clients gone."""
import json
import os
import signal
import socket
import subprocess
import tempfile
import time

import pytest

from client import wait_for
from screens import Ctl


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


@pytest.fixture
def open_dir():
    """Not below tmp_path: another pytest shuts what that is in."""
    with tempfile.TemporaryDirectory() as path:
        os.chmod(path, 0o755)
        yield path


def test_an_engine_that_is_down_gives_a_clear_error_and_recovers(
        make_server, engine, open_dir):
    proxy = Proxy(os.path.join(open_dir, "engine.sock"), engine.path)
    server = make_server(env={"DOCKER_HOST": f"unix://{proxy.path}"},
                         wait=False)
    try:
        server.port = wait_for(server.find_port, 30, "the port")
        wait_for(lambda: server.get("/readyz")[0] == 503, 30, "not ready")
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
        assert client.run("e", "echo up")["commands"][0]["stdout"] == "up\n"
        found = engines(server)[0]
        assert found["engine"] == "up" and found["since"] > missing["since"]
        info = f'sandboxd_engine_info{{version="{found["version"]}",' \
            f'api="{found["api_version"]}"}} 1\n'
        assert info in server.get("/metrics")[2].decode()
        proxy.down()
        wait_for(lambda: server.get("/readyz")[0] == 503, 60, "not ready")
        wait_for(lambda: {w["engine"] for w in engines(server)} == {"down"},
                 60, "all workers to miss it")
        lost = engines(server)[0]
        assert lost["since"] > found["since"]
        # What it was is still known; that it is there is not.
        assert lost["version"] == found["version"]
        text = Ctl(server)("status")
        assert "down" in text and "not ready: " in text
        assert "sandboxd_engine_info{" not in \
            server.get("/metrics")[2].decode()
        # A warm sandbox needs no engine.
        assert client.run("e", "echo on")["commands"][0]["stdout"] == "on\n"
        began = time.monotonic()
        assert "engine" in client.fail(
            "run_sandbox", identifier="fresh", commands=[{"shell": "true"}],
            options={"await_completion": True}).lower()
        assert time.monotonic() - began < 5
        proxy.up()
        wait_for(server.is_ready, 60, "recovery")
        assert client.run("fresh", "echo up")["state"] == "completed"
    finally:
        server.stop()
        proxy.down()


def engines(server):
    """As status tells of them, one for each worker."""
    return Ctl(server).json("status")["engine"]


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
                         wait=False)
    server.port = wait_for(server.find_port, 30, "the listening port")

    def not_ready():
        status, _, body = server.get("/readyz")
        return status == 503 and b"no-such-image:none is missing" in body
    wait_for(not_ready, 60, "the image to be missed")
    assert "no-such-image:none" in engines(server)[0]["detail"]
    text = server.client().fail(
        "run_sandbox", identifier="a", commands=[{"shell": "true"}],
        options={"await_completion": True})
    assert "no-such-image:none" in text


def test_an_image_that_comes_later_makes_a_server_ready(
        make_server, engine):
    """And one that its first use would make is no reason to wait."""
    name = f"localhost/mcp-sandboxd/later-{os.getpid()}"
    env = {"SANDBOX_IMAGE": f"{name}:1", "AUTO_BUILD_SANDBOX_IMAGE": "false"}
    usual = os.environ["SANDBOX_IMAGE"].replace("/", "%2F")
    server = make_server(env=env, wait=False)
    server.port = wait_for(server.find_port, 30, "the listening port")
    wait_for(lambda: b"is missing" in server.get("/readyz")[2], 60,
             "the image to be missed")
    try:
        assert engine.request(
            "POST", f"/images/{usual}/tag?repo={name}&tag=1")[0] == 201
        wait_for(server.is_ready, 60, "readiness")
    finally:
        engine.request("DELETE", f"/images/{name}:1?noprune=1")
    wait_for(lambda: server.get("/readyz")[0] == 503, 60, "not ready")
    dockerfile = os.path.join(server.dir, "Dockerfile")
    with open(dockerfile, "w", encoding="ascii") as f:
        f.write("FROM scratch\n")
    make_server(env={
        "SANDBOX_IMAGE": "localhost/mcp-sandboxd/never:1",
        "SANDBOX_DOCKERFILE_PATH": dockerfile})  # it becomes ready


def test_a_client_that_leaves_does_not_stop_its_run(server, sandbox):
    c = server.client()
    c.initialize()
    body = json.dumps({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
            "name": "run_sandbox", "arguments": {
                "identifier": sandbox,
                "commands": [{"shell": "sleep 1; echo x > /workspace/done"}],
                "options": {"await_completion": True}}}}).encode()
    with socket.create_connection(("127.0.0.1", server.port)) as s:
        s.sendall(b"POST /mcp HTTP/1.1\r\n"
                  b"Host: 127.0.0.1:%d\r\n" % server.port +
                  b"Content-Type: application/json\r\n"
                  b"Accept: application/json, text/event-stream\r\n"
                  b"Mcp-Session-Id: " + c.session.encode() + b"\r\n"
                  b"Content-Length: " + str(len(body)).encode() +
                  b"\r\n\r\n" + body)
        time.sleep(0.3)
    wait_for(lambda: c.run(sandbox, "cat done || true")[
        "commands"][0]["stdout"] == "x\n", 30, "the run's end")


def test_code_cannot_kill_the_agent(client, sandbox):
    # From inside, the kernel shields the first process of a PID namespace
    # from every signal it has no handler for, root's included.
    for user in ("sandbox", "root"):
        final = client.run(sandbox, "kill -9 1; sleep 0.2; echo still",
                           as_user=user)
        assert final["commands"][0]["stdout"] == "still\n"
    final = client.run(sandbox, "kill -9 -1", as_user="root")
    assert final["commands"][0]["end_reason"] in ("signal", "exit")
    assert client.run(sandbox, "echo on")["commands"][0]["stdout"] == "on\n"


def test_an_agent_killed_from_outside_is_a_lost_sandbox(
        client, sandbox, engine):
    out = client.start(sandbox, "echo x; sleep 60")
    wait_for(lambda: client.status(out["run_id"])["commands"][0]["stdout"],
             30, "its output")
    container = client.status(out["run_id"])["sandbox_container_id"]
    _, data = engine.request("GET", f"/containers/{container}/json")
    os.kill(json.loads(data)["State"]["Pid"], signal.SIGKILL)
    final = client.wait_end(out["run_id"])
    assert final["end_reason"] == "sandbox_lost"
    assert client.run(sandbox, "echo new")["commands"][0]["stdout"] == "new\n"


def test_a_gigabyte_of_output_is_counted_and_memory_stays_flat(
        server, client, sandbox):
    size = 1 << 30

    def rss():
        total = 0
        for pid, _ in server.children():
            with open(f"/proc/{pid}/status", encoding="ascii") as f:
                total += next(int(n.split()[1]) for n in f
                              if n.startswith("VmRSS"))
        return total

    client.run(sandbox, "true")
    before = rss()
    final = client.run(sandbox, {
        "shell": f"head -c {size} /dev/zero | tr '\\0' x",
        "timeout_ms": 300000}, wait_ms=300000)
    command = final["commands"][0]
    assert command["stdout_bytes"] == size
    assert command["stdout_truncated"] is True
    status = client.status(final["run_id"])
    assert len(status["commands"][0]["stdout"]) == 1 << 20
    assert command["exit_code"] == 0
    assert rss() - before < 200 * 1024  # KiB; far below what was printed


def test_output_beyond_the_limit_ends_the_run(make_server):
    server = make_server(env={"RUN_OUTPUT_MAX_BYTES": "1000000"})
    final = server.client().run("a", "yes")
    assert final["end_reason"] == "output_limit"
    assert final["commands"][0]["end_reason"] == "output_limit"


def test_caps_keep_the_first_bytes_and_count_all(make_server):
    server = make_server(env={"DEFAULT_STDOUT_MAX_BYTES": "1024"})
    command = server.client().run(
        "a", "head -c 5000 /dev/zero | tr '\\0' x")["commands"][0]
    assert command["stdout"] == "x" * 1024
    assert command["stdout_truncated"] is True
    assert command["stdout_bytes"] == 5000


def test_the_denylist_stops_a_run_before_it_begins(make_server):
    server = make_server(env={"DENYLIST_ENABLED": "true"})
    final = server.client().run("a", "docker ps")
    assert final["state"] == "failed"
    assert final["commands"][0]["exit_code"] == 1
    assert "denylist matched" in final["error"]


def test_a_long_command_does_not_keep_the_denylist_busy(make_server):
    server = make_server(env={"DENYLIST_ENABLED": "true",
                              "DENYLIST_PATTERNS": "rm .*-rf"})
    text = "true " + "rm " * 40000
    final = server.client().run("a", *[text] * 2)
    assert final["state"] == "completed"
    assert server.metric(
        'sandboxd_process_restarts_total{role="front"}') == 0
    refused = server.client().fail("run_sandbox", identifier="a",
                                   commands=[{"shell": text}] * 3)
    assert "bytes of words" in refused
