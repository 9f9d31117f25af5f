"""An engine at tcp://HOST:PORT, with TLS: what is right works, and of what is
wrong the log says what it is.  The engine is on this host: directories and
processes are seen through it as through a socket's."""
import os
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import threading
import time

import pytest

from client import wait_for
from engines import Certificates, dockerd
from server import Server, proc_status

pytestmark = pytest.mark.docker("of its engine")


@pytest.fixture(scope="module")
def certificates():
    """Where the worker's user gets to."""
    with tempfile.TemporaryDirectory(prefix="mcp-sandboxd-tls-") as path:
        os.chmod(path, 0o755)
        yield Certificates(os.path.join(path, "good"))


@pytest.fixture(scope="module")
def tls_engine(certificates):
    with dockerd(tls=certificates) as e:
        e.image = e.import_image()
        yield e


@pytest.fixture
def make_tls_server(build, tls_engine):
    """Servers of that engine, whose settings may be other ones."""
    made = []

    def make(wait=True, **env):
        made.append(Server(build, wait=wait, env=tls_engine.env | {
            "SANDBOX_IMAGE": tls_engine.image, "WORKERS": "1",
            "DEFAULT_MEMORY_MB": "128", "SANDBOX_TMP_MB": "16"} | env))
        return made[-1]

    yield make
    for s in made:
        s.destroy(tls_engine)


@pytest.fixture
def files(certificates, open_place):
    """A copy of DOCKER_CERT_PATH that a test may spoil."""
    path = open_place / "certs"
    shutil.copytree(certificates.dir, path)
    return path


def put_pair(files, made):
    """A certificate and its key, where the client's are."""
    for path, name in zip(made, ("cert.pem", "key.pem"), strict=True):
        shutil.copy(path, files / name)
        (files / name).chmod(0o644)


class Spoken:
    """A server on 127.0.0.1 that answers each connection by a function."""

    def __init__(self, answer):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.host = f"tcp://127.0.0.1:{self.listener.getsockname()[1]}"
        self.answer = answer
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            try:
                conn, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.one, args=(conn,),
                             daemon=True).start()

    def one(self, conn):
        try:
            with conn:
                self.answer(conn)
        except OSError:
            pass

    def close(self):
        self.listener.close()


@pytest.fixture
def speak():
    made = []

    def make(answer):
        made.append(Spoken(answer))
        return made[-1].host

    yield make
    for s in made:
        s.close()


def as_engine(context):
    """Shows a certificate; what it is asked does not matter."""
    def answer(conn):
        with context.wrap_socket(conn, server_side=True) as s:
            s.recv(4096)
    return answer


def context_of(certificate, key):
    c = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    c.load_cert_chain(certificate, key)
    return c


def says(server, *words):
    def found():
        return any(all(w in n for w in words) for n in server.log)
    try:
        wait_for(found, 20, words)
    except AssertionError as e:
        raise AssertionError(f"{e}\n{server.tail()}") from e


@pytest.mark.parametrize("carrier", ["unix", "bridge"])
def test_sandboxes_live_on_an_engine_behind_tls(
        make_tls_server, tls_engine, carrier):
    server = make_tls_server(CARRIER=carrier)
    client = server.client()
    assert client.out("a", "echo hello; id -u") == "hello\n1000\n"
    assert len(tls_engine.containers(server.instance)) == 1
    client.run("a", "echo kept > /workspace/f")
    run = client.start("a", "echo begun; while [ ! -e /workspace/go ]; do "
                       "sleep 0.05; done; seq 100000 | tail -n 1")
    client.wait_output(run["run_id"])
    server.kill("worker")
    assert client.out("a", "cat /workspace/f; touch /workspace/go") == "kept\n"
    final = client.wait_end(run["run_id"])
    assert final["commands"][0]["stdout"] == "begun\n100000\n"
    client.delete("a")
    wait_for(lambda: not tls_engine.containers(server.instance), 20,
             "its container's end")


@pytest.mark.parametrize("carrier", ["unix", "bridge"])
def test_a_run_outlives_an_engine_that_is_killed(
        build, certificates, carrier):
    """The connection is cut, and a new one is made when it is back."""
    with dockerd(tls=certificates, live_restore=True) as e:
        server = Server(build, env=e.env | {
            "SANDBOX_IMAGE": e.import_image(), "WORKERS": "1",
            "CARRIER": carrier})
        try:
            client = server.client()
            run = client.start(
                "a", "echo begun; while [ ! -e /workspace/go ]; do "
                "sleep 0.05; done; seq 100000 | tail -n 1")
            client.wait_output(run["run_id"])
            e.kill()
            wait_for(lambda: server.get("/readyz")[0] != 200, 30,
                     "its absence")
            e.start()
            e.await_start()
            wait_for(server.is_ready, 30, "readiness")
            client.run("a", "touch /workspace/go")
            final = client.wait_end(run["run_id"])
            assert final["commands"][0]["stdout"] == "begun\n100000\n"
        finally:
            server.destroy(e)


def test_a_worker_makes_no_internet_socket(make_tls_server):
    """Its dialer does: worker's child, with a filter of its own."""
    server = make_tls_server()
    worker, = server.pids("worker")
    with open(f"/proc/{worker}/task/{worker}/children",
              encoding="ascii") as f:
        dialer, = f.read().split()
    for pid in (worker, dialer):
        status = proc_status(pid)
        assert status["Seccomp"] == "2" and status["NoNewPrivs"] == "1"
    assert proc_status(dialer)["Name"] == "sandboxd-dialer"
    os.kill(int(dialer), signal.SIGKILL)  # then there is no way to the engine
    wait_for(lambda: server.pids("worker") not in ([], [worker]), 20,
             "another worker")
    wait_for(lambda: sum("is ready" in n and "worker/0" in n
                         for n in server.log) == 2, 20, "its READY")
    wait_for(server.is_ready, 30, "readiness")
    assert server.client().out("b", "echo again") == "again\n"


def test_the_host_may_be_a_name(make_tls_server, tls_engine):
    server = make_tls_server(
        DOCKER_HOST=f"tcp://localhost:{tls_engine.port}")
    assert server.client().out("a", "echo hello") == "hello\n"


def test_a_renewed_certificate_is_taken_without_a_restart(
        make_tls_server, certificates, files):
    (files / "cert.pem").unlink()  # half of a pair, as in the middle of it
    server = make_tls_server(wait="port", DOCKER_CERT_PATH=files)
    says(server, "DOCKER_CERT_PATH", "cert.pem", "No such file")
    shutil.copy(certificates.path("cert.pem"), files / "cert.pem")
    wait_for(server.is_ready, 20, "readiness")
    assert server.client().out("a", "echo hello") == "hello\n"


def test_a_directory_that_comes_after_the_start_is_read(
        make_tls_server, certificates, open_place):
    """Its worker was fenced in without it: another one takes its place."""
    files = open_place / "later" / "certs"
    server = make_tls_server(wait="port", DOCKER_CERT_PATH=files)
    says(server, "DOCKER_CERT_PATH", "ca.pem", "No such file")
    shutil.copytree(certificates.dir, open_place / "new" / "certs")
    (open_place / "new").rename(files.parent)
    wait_for(server.is_ready, 60, "readiness")
    assert server.client().out("a", "echo hello") == "hello\n"
    says(server, "is there now", "the next one may")


def test_a_directory_in_place_of_another_wants_a_restart(
        make_tls_server, certificates, files):
    server = make_tls_server(DOCKER_CERT_PATH=files)
    files.rename(files.with_name("old"))
    shutil.copytree(certificates.dir, files)
    says(server, "the directory itself was exchanged, restart the server")


def test_a_link_to_elsewhere_is_said(make_tls_server, files):
    (files / "ca.pem").rename(files.with_name("ca.pem"))
    (files / "ca.pem").symlink_to(files.with_name("ca.pem"))
    server = make_tls_server(wait="port", DOCKER_CERT_PATH=files)
    says(server, "ca.pem is outside", "must be no link to elsewhere")


def test_another_authority_is_not_believed(make_tls_server, files, tmp_path):
    other = Certificates(tmp_path / "other")
    shutil.copy(other.path("ca.pem"), files / "ca.pem")
    server = make_tls_server(wait="port", DOCKER_CERT_PATH=files)
    says(server, "does not vouch for")


def test_a_certificate_that_ended_is_said(
        make_tls_server, certificates, speak, tmp_path):
    old = certificates.authority.issue("old", days=-1)
    host = speak(as_engine(context_of(*old)))
    server = make_tls_server(wait="port", DOCKER_HOST=host)
    says(server, "too old or not valid yet")


def test_a_certificate_for_another_name_is_said(
        make_tls_server, certificates, speak):
    other = certificates.authority.issue("other", alt="DNS:elsewhere")
    host = speak(as_engine(context_of(*other)))
    server = make_tls_server(wait="port", DOCKER_HOST=host)
    says(server, "for another name", "127.0.0.1")


def plainly(conn):
    conn.recv(4096)
    conn.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")


def test_an_engine_that_speaks_plain_where_tls_is_wanted_is_said(
        make_tls_server, speak):
    server = make_tls_server(wait="port", DOCKER_HOST=speak(plainly))
    says(server, "does not speak TLS there")


def test_an_engine_that_wants_tls_where_none_is_spoken_is_said(
        make_tls_server):
    server = make_tls_server(wait="port", DOCKER_TLS_VERIFY="",
                             DOCKER_CERT_PATH="")
    says(server, "the engine speaks TLS there", "DOCKER_TLS_VERIFY=1")


def test_an_engine_that_refuses_our_certificate_is_said(
        make_tls_server, files, tmp_path):
    other = Certificates(tmp_path / "other")
    put_pair(files, (other.path("cert.pem"), other.path("key.pem")))
    server = make_tls_server(wait="port", DOCKER_CERT_PATH=files)
    says(server, "does not take our certificate", "--tlscacert")


def test_a_key_of_another_certificate_is_said(
        make_tls_server, files, tmp_path):
    other = Certificates(tmp_path / "other")
    shutil.copy(other.path("key.pem"), files / "key.pem")
    server = make_tls_server(wait="port", DOCKER_CERT_PATH=files)
    says(server, "key.pem is not the key of the certificate")


def test_files_that_the_worker_cannot_read_are_named(make_tls_server, files):
    (files / "key.pem").chmod(0o600)
    server = make_tls_server(wait="port", DOCKER_CERT_PATH=files)
    says(server, "key.pem: Permission denied", "by user mcp-worker")


def test_an_engine_that_hangs_after_its_greeting_is_late(
        make_tls_server, certificates, speak):
    def hang(conn):
        context = context_of(certificates.path("server.pem"),
                             certificates.path("server.key"))
        with context.wrap_socket(conn, server_side=True):
            time.sleep(60)
    server = make_tls_server(wait="port", DOCKER_HOST=speak(hang))
    says(server, "did not answer GET /_ping within")


@pytest.mark.parametrize("env, words", [
    ({"DOCKER_TLS_VERIFY": ""}, "DOCKER_TLS_VERIFY=1"),
    ({"DOCKER_CERT_PATH": ""}, "want the absolute path"),
    ({"DOCKER_CERT_PATH": "certs"}, "want the absolute path")])
def test_half_of_the_settings_is_refused(program, tls_engine, env, words):
    program.refuses("--check-config", words=[words],
                    **{**tls_engine.env, **env})


def test_tcp_without_tls_is_warned_of_but_on_loopback(program):
    there = program("--check-config", DOCKER_HOST="tcp://192.0.2.1:2375")
    assert "without TLS: whoever reaches that port" in there.stderr
    here = program("--check-config", DOCKER_HOST="tcp://127.0.0.1:1")
    assert "without TLS" not in here.stderr


def wire(program, **env):
    """The finding, and what it says."""
    done = program("doctor", **env)
    lines = [n for n in done.stdout.splitlines() if " wire " in n]
    assert len(lines) == 1, done.stdout + done.stderr
    return lines[0].split()[0], lines[0]


def test_doctor_says_when_certificates_end(
        program, tls_engine, certificates, files):
    state, line = wire(program, **tls_engine.env)
    assert state == "holds" and "by TLS" in line
    put_pair(files, certificates.authority.issue("soon", days=3))
    state, line = wire(
        program, **{**tls_engine.env, "DOCKER_CERT_PATH": str(files)})
    assert state == "fails" and "cert.pem" in line and "in 2 days" in line


def test_a_certificate_that_ends_soon_is_warned_of(
        make_tls_server, certificates, files):
    put_pair(files, certificates.authority.issue("soon", days=3))
    server = make_tls_server(DOCKER_CERT_PATH=files)
    says(server, "warn", "cert.pem of DOCKER_CERT_PATH ends on")


def test_bootstrap_finds_an_engine_behind_tls(tls_engine):
    top = os.path.dirname(os.path.dirname(os.path.dirname(
        os.path.abspath(__file__))))
    script = ('die() { echo "$*" >&2; exit 1; }; engine=/nowhere; '
              'engine_socket=/nowhere; . "$0/bootstrap.d/engine.sh"; '
              'find_engine && image_of_test=$(engine_curl '
              '"/images/$1/json" -o /dev/null -w "%{http_code}") && '
              'echo "$image_of_test"')

    def find(**env):
        return subprocess.run(
            ["bash", "-c", script, top, tls_engine.image],
            env=os.environ | tls_engine.env | env, capture_output=True,
            text=True, check=False)

    assert find().stdout == "200\n"
    assert "no engine answers at" in find(DOCKER_TLS_VERIFY="").stderr
