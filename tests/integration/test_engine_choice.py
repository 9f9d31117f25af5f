"""Which engine is taken where DOCKER_HOST names none, why it cannot be opened,
and an engine that becomes another version under a server that runs."""
import contextlib
import json
import os
import re
import socket
import threading

import pytest

from client import wait_for
from server import UnixConnection, write

pytestmark = pytest.mark.docker("of its engine")


def pump(read, conn, *ends):
    """What read gives goes to conn; the end of either is that of all."""
    with contextlib.suppress(OSError):
        while (data := read(65536)):
            conn.sendall(data)
    for end in (conn, *ends):
        with contextlib.suppress(OSError):  # it is closed already
            end.shutdown(socket.SHUT_RDWR)


class Stand:
    """The engine's socket at a path of ours, with another version: calls that
    are older than its oldest API are refused as an engine refuses them."""

    def __init__(self, engine, path, newest="1.41", oldest="1.24",
                 version="20.10.0", mode=0o666, **info):
        self.engine, self.path = engine, path
        self.newest, self.oldest, self.version = newest, oldest, version
        self.info = info
        self.spoken = set()  # versions in paths
        self.streams, self.conns = [], []
        self.listener = socket.socket(socket.AF_UNIX)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        self.listener.bind(path)
        os.chmod(path, mode)
        self.listener.listen(64)
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                conn, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(conn,),
                             daemon=True).start()

    def serve(self, conn):
        self.conns.append(conn)
        try:
            with conn, conn.makefile("rb") as f:
                while self.one(conn, f):
                    pass
        except (OSError, ValueError):
            pass

    def one(self, conn, f):
        line = f.readline().decode()
        if not line:
            return False
        method, path, _ = line.split()
        head = {}
        while (field := f.readline().strip()):
            k, _, v = field.decode().partition(":")
            head[k.lower()] = v.strip()
        body = f.read(int(head.get("content-length", 0)))
        if "/events" in path:
            self.streams.append(conn)
            conn.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
            f.read(1)
            return False
        if "upgrade" in head:
            self.hand_over(conn, f, path, body)
            return False
        status, data = self.answer(method, path, body, head)
        conn.sendall(f"HTTP/1.1 {status} X\r\nContent-Length: {len(data)}"
                     "\r\n\r\n".encode() + data)
        return True

    def hand_over(self, conn, f, path, body):
        """The streams of a program in a sandbox."""
        _, path = self.translate(path)
        with socket.socket(socket.AF_UNIX) as far:
            far.connect(self.engine.path)
            far.sendall((f"POST {path} HTTP/1.1\r\nHost: localhost\r\n"
                         "Connection: Upgrade\r\nUpgrade: tcp\r\n"
                         "Content-Type: application/json\r\n"
                         f"Content-Length: {len(body)}\r\n\r\n"
                         ).encode() + body)
            up = threading.Thread(target=pump, args=(far.recv, conn, far))
            up.start()
            pump(f.read1, far, conn)
            up.join()

    def translate(self, path):
        """(version in it or None, the path at the engine)"""
        found = re.match(r"/v1\.(\d+)/", path)
        if not found:
            return None, path
        self.spoken.add(found[1])
        return found[1], path.replace(found[0], "/v1.41/")

    def answer(self, method, path, body, head):
        version, path = self.translate(path)
        if version and int(version) < int(self.oldest[2:]):
            return 400, json.dumps({"message": (
                f"client version 1.{version} is too old. Minimum "
                f"supported API version is {self.oldest}")}).encode()
        conn = UnixConnection(self.engine.path)
        conn.request(method, path, body=body or None, headers={
            "Content-Type": head.get("content-type", "application/json")})
        answer = conn.getresponse()
        data = answer.read()
        conn.close()
        return answer.status, self.change(path, data)

    def change(self, path, data):
        if path.endswith("/version"):
            return json.dumps(json.loads(data) | {
                "ApiVersion": self.newest, "MinAPIVersion": self.oldest,
                "Version": self.version}).encode()
        if path.endswith("/info"):
            return json.dumps(json.loads(data) | self.info).encode()
        return data

    def become(self, newest, oldest, version):
        """Another version, as a restart between two pings shows it."""
        self.newest, self.oldest, self.version = newest, oldest, version
        while self.streams:
            self.streams.pop().shutdown(socket.SHUT_RDWR)

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for conn in self.conns:
            with contextlib.suppress(OSError):  # it has ended
                conn.shutdown(socket.SHUT_RDWR)
        self.conns = []


@pytest.fixture
def stand(engine, open_place):
    made = []

    def make(name="engine.sock", **kwargs):
        made.append(Stand(engine, str(open_place / name), **kwargs))
        return made[-1]

    yield make
    for s in made:
        with contextlib.suppress(OSError):  # a test has closed it
            s.close()


def taken(log, path):
    return any(f"{path} is the first that answers" in n for n in log)


def test_without_docker_host_the_first_that_answers_is_taken(
        make_server, stand, open_place):
    """Podman's before Docker's; what was passed over is said."""
    write(str(open_place / "file"), "")
    mute = socket.socket(socket.AF_UNIX)
    (open_place / "podman").mkdir()
    mute.bind(str(open_place / "podman/podman.sock"))  # nobody listens
    (open_place / "podman/podman.sock").chmod(0o666)
    docker = stand("docker.sock")
    server = make_server(wait=None, env={"WORKERS": "1", "DOCKER_HOST": ""})
    server.extra |= {"XDG_RUNTIME_DIR": str(open_place)}
    server.start()
    assert taken(server.log, docker.path)
    line, = (n for n in server.log if "DOCKER_HOST is not set" in n)
    assert f"{open_place}/podman/podman.sock: " in line
    assert "Connection refused" in line
    mute.close()


def test_the_order_is_the_compatible_servers(make_server, stand, open_place):
    stand("docker.sock")
    podman = stand("podman/podman.sock")
    server = make_server(wait=None, env={
        "WORKERS": "1", "DOCKER_HOST": "",
        "XDG_RUNTIME_DIR": str(open_place)})
    server.start()
    assert taken(server.log, podman.path)


def test_an_engine_that_was_taken_is_not_left_for_another(
        make_server, stand, open_place):
    """Its sandboxes are on it: with another one they would be missed."""
    docker = stand("docker.sock")
    server = make_server(wait=None, env={
        "WORKERS": "1", "DOCKER_HOST": "",
        "XDG_RUNTIME_DIR": str(open_place)})
    server.start()
    podman = stand("podman/podman.sock")
    docker.close()
    os.unlink(docker.path)
    wait_for(lambda: server.get("/readyz")[0] != 200, 30, "its absence")
    again = stand("docker.sock")
    wait_for(server.is_ready, 30, "readiness")
    assert podman.spoken == set() and again.spoken


def test_a_socket_without_permission_says_whose_it_is(make_server, stand):
    closed = stand("closed/e.sock", mode=0o660)
    os.chown(closed.path, 0, 0)
    plain = make_server(wait=None, env={
        "WORKERS": "1", "DOCKER_HOST": f"unix://{closed.path}",
        "RUN_AS_FRONT": "", "RUN_AS_WORKER": ""})
    plain.prefix = ("setpriv", "--reuid", "1000", "--regid", "1000",
                    "--clear-groups", "--inh-caps=-all")
    os.chown(plain.dir, 1000, 1000)
    plain.start(wait="port")
    wait_for(lambda: any(
        "it is for group root, which user" in n and "usermod -aG root" in n
        for n in plain.log), 20, "the group's name")


@pytest.mark.parametrize("newest, oldest, spoken", [
    ("1.54", "1.44", "44"), ("1.41", "1.12", "41"), ("1.30", "1.12", "30")])
def test_the_version_of_the_api_is_negotiated(
        make_server, stand, newest, oldest, spoken):
    s = stand(newest=newest, oldest=oldest)
    server = make_server(env={"WORKERS": "1",
                              "DOCKER_HOST": f"unix://{s.path}"})
    assert server.client().out("a", "echo hello") == "hello\n"
    assert s.spoken == {spoken}


def test_an_engine_that_is_too_old_is_named(make_server, stand):
    s = stand(newest="1.20", oldest="1.12")
    server = make_server(wait="port", env={
        "WORKERS": "1", "DOCKER_HOST": f"unix://{s.path}"})
    wait_for(lambda: any("API 1.20 and older, want 1.24" in n
                         for n in server.log), 20, "its version")


def test_an_engine_upgraded_meanwhile_is_spoken_to_anew(make_server, stand):
    s = stand()
    server = make_server(env={"WORKERS": "1",
                              "DOCKER_HOST": f"unix://{s.path}"})
    client = server.client()
    run = client.start("a", "echo begun; while [ ! -e /workspace/go ]; do "
                       "sleep 0.05; done; echo done")
    client.wait_output(run["run_id"])
    s.become("1.54", "1.44", "29.0.0")
    wait_for(lambda: any("29.0.0, API v1.44" in n for n in server.log), 20,
             "its new version")
    assert client.out("b", "echo hello") == "hello\n"
    client.run("a", "touch /workspace/go")
    final = client.wait_end(run["run_id"])
    assert final["commands"][0]["stdout"] == "begun\ndone\n"


def test_what_an_engine_without_root_does_not_limit_is_said(
        make_server, stand, program):
    s = stand(MemoryLimit=False, PidsLimit=False, CpuCfsQuota=False,
              CgroupVersion="1", CgroupDriver="none",
              SecurityOptions=["name=seccomp,profile=default",
                               "name=rootless"])
    host = f"unix://{s.path}"
    server = make_server(wait="port", env={
        "WORKERS": "1", "DOCKER_HOST": host})
    wait_for(lambda: any(
        "does not enforce limits of memory, processes, CPU: it runs without "
        "root" in n for n in server.log), 20, "what does not hold")
    done = program("doctor", DOCKER_HOST=host)
    assert "without root" in done.stdout
    assert "memory no, processes no, CPU no" in done.stdout
