"""TLS: what is spoken, who is let in, and certificates that change."""
import hashlib
import http.client
import json
import os
import shutil
import signal
import socket
import ssl
import subprocess
import threading

import pytest

from certificates import Authority, openssl
from client import wait_for
from server import Server, harm, memory_kib, write

BIG_MB = 300
MCP = "io.modelcontextprotocol"


class TlsServer(Server):
    """A server with a certificate in a directory of its own."""

    def __init__(self, build, directory, env=None, algorithm="ec"):
        self.authority = Authority(directory)
        self.certificate = os.path.join(directory, "server.pem")
        self.key = os.path.join(directory, "server.key")
        self.install(*self.authority.issue("first", algorithm))
        super().__init__(build, env={"TLS_CERT_FILE": self.certificate,
                                     "TLS_KEY_FILE": self.key, **(env or {})})

    def is_ready(self):
        return any("front[" in n and n.endswith("is ready") for n in self.log)

    def install(self, certificate, key):
        shutil.copy(certificate, self.certificate)
        shutil.copy(key, self.key)
        os.chmod(self.key, 0o600)

    def context(self, client=None):
        c = ssl.create_default_context(cafile=self.authority.certificate)
        if client is not None:
            c.load_cert_chain(*client)
        return c

    def connect(self, context=None):
        return http.client.HTTPSConnection("127.0.0.1", self.port, timeout=60,
                                           context=context or self.context())

    def socket(self):
        return self.context().wrap_socket(socket.create_connection(
            ("127.0.0.1", self.port), timeout=60), server_hostname="127.0.0.1")

    def reload(self):
        self.proc.send_signal(signal.SIGHUP)


@pytest.fixture(scope="module")
def tls(build, engine, tmp_path_factory):
    t = TlsServer(build, str(tmp_path_factory.mktemp("tls")), env={
        "ARTIFACTS_MAX_EXTRACT_FILE_BYTES": BIG_MB << 20,
        "ARTIFACTS_MAX_EXTRACT_BYTES": 2 * BIG_MB << 20})
    yield t
    log = t.tail()
    t.destroy(engine)
    assert "Sanitizer" not in log and "runtime error" not in log


@pytest.fixture
def make_tls(build, engine, tmp_path):
    made = []

    def make(**kwargs):
        made.append(TlsServer(build, str(tmp_path / "tls"), **kwargs))
        return made[-1]

    yield make
    for t in made:
        t.destroy(engine)


def get(conn, path="/healthz", **headers):
    conn.request("GET", path, headers=headers)
    answer = conn.getresponse()
    return answer.status, answer.read()


def s_client(tls, *args, text=b""):
    done = subprocess.run(
        ["openssl", "s_client", "-connect", f"127.0.0.1:{tls.port}", "-CAfile",
         tls.authority.certificate, *args], input=text, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, check=False, timeout=60)
    return done.stdout.decode(errors="replace")


def test_tls_1_2_and_1_3_are_spoken_and_nothing_older(tls):
    for version in ("-tls1_2", "-tls1_3"):
        said = s_client(tls, version, "-alpn", "http/1.1")
        assert "Verify return code: 0" in said
        assert "ALPN protocol: http/1.1" in said
    for version in ("-tls1", "-tls1_1"):
        said = s_client(tls, version, "-cipher", "DEFAULT@SECLEVEL=0")
        assert "Cipher is (NONE)" in said


def test_weak_suites_and_other_protocols_are_refused(tls):
    for suite in ("AES128-SHA", "ECDHE-ECDSA-AES128-SHA"):
        said = s_client(tls, "-tls1_2", "-cipher", suite + ":@SECLEVEL=0")
        assert "Cipher is (NONE)" in said
    assert "no application protocol" in s_client(tls, "-alpn", "h2")


def test_renegotiation_is_refused(tls):
    said = s_client(tls, "-tls1_2", text=b"R\n")
    assert "no renegotiation" in said or "handshake failure" in said


def test_a_session_is_taken_up_again(tls, tmp_path):
    kept = str(tmp_path / "session")
    request = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n" \
        b"Connection: close\r\n\r\n" % tls.port
    s_client(tls, "-tls1_2", "-sess_out", kept, "-ign_eof", text=request)
    said = s_client(tls, "-tls1_2", "-sess_in", kept, "-ign_eof",
                    text=request)
    assert "Reused" in said and "HTTP/1.1 200" in said


def test_curl_speaks_to_it(tls):
    done = subprocess.run(
        ["curl", "-sS", "--cacert", tls.authority.certificate,
         "-H", "Accept: text/html", f"https://127.0.0.1:{tls.port}/"],
        stdout=subprocess.PIPE, check=True, timeout=60)
    assert f"https://127.0.0.1:{tls.port}/mcp" in done.stdout.decode()


def test_plain_http_is_not_spoken(tls):
    sock = socket.create_connection(("127.0.0.1", tls.port), 60)
    sock.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
    answer = b""
    try:
        while chunk := sock.recv(4096):
            answer += chunk
    except ConnectionResetError:
        pass
    assert b"HTTP/" not in answer
    sock.close()


def test_a_connection_is_kept_and_pipelined(tls):
    conn = tls.connect()
    for _ in range(200):
        assert get(conn)[0] == 200
    host = f"Host: 127.0.0.1:{tls.port}\r\n".encode()
    one = b"GET /healthz HTTP/1.1\r\n" + host + b"\r\n"
    last = b"GET /healthz HTTP/1.1\r\n" + host + b"Connection: close\r\n\r\n"
    conn.sock.sendall(one * 300 + last)
    said = b""
    while chunk := conn.sock.recv(65536):
        said += chunk
    assert said.count(b"HTTP/1.1 200") == 301
    conn.close()


@pytest.mark.parametrize("path", ["/mcp", "/nothing"])
@pytest.mark.parametrize("size", [10, 100000])
def test_a_body_that_comes_in_pieces_is_taken(tls, size, path):
    """With and without waiting for 100 Continue, many times: libevent tells
    over TLS that something was written a moment later."""
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping",
                       "params": {"_meta": {"x": "y" * size}}}).encode()
    head = (f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{tls.port}\r\n"
            "Content-Type: application/json\r\n"
            "Accept: application/json, text/event-stream\r\n"
            f"Content-Length: {len(body)}\r\n")
    sock = tls.socket()
    reader = sock.makefile("rb")
    for turn in range(200):
        sock.sendall((head + "Expect: 100-continue\r\n\r\n").encode())
        if turn % 2:
            sock.sendall(body)
        if turn % 2 == 0:
            assert reader.readline().startswith(b"HTTP/1.1 100")
            assert reader.readline() == b"\r\n"
            sock.sendall(body)
        line = reader.readline()
        if line.startswith(b"HTTP/1.1 100"):
            assert reader.readline() == b"\r\n"
            line = reader.readline()
        assert line.startswith(b"HTTP/1.1 "), line
        length = 0
        while (line := reader.readline()) != b"\r\n":
            name, _, value = line.partition(b":")
            if name.lower() == b"content-length":
                length = int(value)
        assert len(reader.read(length)) == length
    sock.close()


def memory_bound_kib(pid):
    """Sanitizers have a shadow of terabytes, and keep what was freed."""
    return 65536 if memory_kib(pid, "VmSize") < 1 << 30 else BIG_MB << 10


def front_of(server):
    found = server.pids("front")
    return found[0] if found else None


def test_runs_streams_and_a_large_artifact(tls):
    client = tls.client()
    client.conn = tls.connect()
    name = f"tls{os.getpid()}"
    final = client.run(
        name, "seq 1 200000", f"head -c {BIG_MB}M /dev/urandom "
        ">/artifacts/big && sha256sum /artifacts/big", wait_ms=120000)
    assert final["state"] == "completed", final
    path = f"/artifacts/{name}/{final['run_id']}/big"
    before = memory_kib(front_of(tls))
    conn = tls.connect()
    conn.request("GET", path)
    answer = conn.getresponse()
    assert answer.status == 200
    digest, n, most = hashlib.sha256(), 0, 0
    while chunk := answer.read(1 << 20):
        digest.update(chunk)
        n += len(chunk)
        most = max(most, memory_kib(front_of(tls)))
    assert n == BIG_MB << 20
    assert digest.hexdigest() in json.dumps(final)
    assert most - before < memory_bound_kib(front_of(tls)), (before, most)
    # A part of it, on the same connection.
    conn.request("GET", path,
                 headers={"Range": "bytes=1000000-1999999"})
    assert len(conn.getresponse().read()) == 1000000
    conn.close()
    client.delete(name)


@pytest.mark.parametrize("how", ["with a word", "without"])
def test_a_waiting_client_that_leaves_is_noticed(tls, how):
    """Of MCP 2026-07-28, where that cancels what it waits for."""
    client = tls.client()
    client.conn = tls.connect()
    name = f"left{os.getpid()}-{how.replace(' ', '-')}"
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
                       "params": {"name": "run_sandbox", "arguments": {
                           "identifier": name,
                           "commands": [{"shell": "sleep 100000"}],
                           "options": {"await_completion": True}}, "_meta": {
                               f"{MCP}/protocolVersion": "2026-07-28",
                               f"{MCP}/clientCapabilities": {}}}}).encode()
    sock = tls.socket()
    sock.sendall(tls.message(
        "POST /mcp", "Content-Type: application/json",
        "Accept: application/json", "MCP-Protocol-Version: 2026-07-28",
        "Mcp-Method: tools/call", "Mcp-Name: run_sandbox", body=body))

    def state():
        page = client.get(f"/api/v1/runs?identifier={name}")
        return page["runs"][0]["state"] if page["runs"] else None

    wait_for(lambda: state() == "running", 60, "the run to begin")
    if how == "with a word":
        sock.unwrap()
    sock.close()
    wait_for(lambda: state() == "canceled", 60, "the run to be cancelled")
    client.delete(name)


def test_a_new_certificate_is_taken_without_a_failed_request(tls):
    stop, failures, done = threading.Event(), [], [0]

    def load():
        conn = tls.connect()
        i = 0
        while not stop.is_set():
            try:
                if i % 10 == 9:
                    conn.close()
                    conn = tls.connect()
                status, _ = get(conn)
                if status != 200:
                    failures.append(status)
                done[0] += 1
            except Exception as e:
                failures.append(repr(e))
                return
            i += 1
        conn.close()

    kept = tls.connect()
    assert get(kept)[0] == 200
    threads = [threading.Thread(target=load) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        for i in range(5):
            fresh = tls.authority.issue(f"fresh{i}")
            tls.install(*fresh)
            tls.reload()
            wait_for(lambda: served(tls) == fingerprint(fresh[0]), 30,
                     "the new certificate")
            assert get(kept)[0] == 200
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert failures == [] and done[0] > 20
    kept.close()


def fingerprint(path):
    with open(path) as f:
        return ssl.PEM_cert_to_DER_cert(f.read())


def served(tls):
    conn = tls.connect()
    conn.connect()
    found = conn.sock.getpeercert(binary_form=True)
    conn.close()
    return found


def test_a_bad_certificate_keeps_the_old_one(tls):
    before = served(tls)
    other = tls.authority.issue("other")
    for certificate, key, word in (
            (other[0], tls.key, "not the key"),
            ("/etc/hostname", tls.key, "no certificate"),
            (None, tls.key, "no certificate")):
        good = tls.certificate + ".good"
        shutil.copy(tls.certificate, good)
        before_log = len(tls.log)
        if certificate is None:
            write(tls.certificate, "-----BEGIN CERTIFICATE-----\nrubbish\n"
                  "-----END CERTIFICATE-----\n")
        else:
            shutil.copy(certificate, tls.certificate)
        tls.reload()
        tls.wait_log(word, "stays as it was", since=before_log)
        assert served(tls) == before
        shutil.copy(good, tls.certificate)
    # A front that is started anew has the good one, too.
    pid = front_of(tls)
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: front_of(tls) not in (None, pid), 60, "another front")
    wait_for(lambda: served(tls) == before, 60, "the good certificate")


def test_slow_handshakes_do_not_keep_others_out(tls):
    """Half a greeting each, more than there are places for."""
    slow = []
    for _ in range(300):
        sock = socket.create_connection(("127.0.0.1", tls.port), 60)
        sock.sendall(bytes.fromhex("16030102000100"))
        slow.append(sock)
    conn = tls.connect()
    assert get(conn)[0] == 200
    conn.close()
    for sock in slow:
        sock.close()


def test_a_key_never_is_in_a_log(tls):
    with open(tls.key) as f:
        lines = [n.strip() for n in f if "-----" not in n]
    log = "\n".join(tls.log)
    assert all(n not in log for n in lines if len(n) > 20)


def test_client_certificates(make_tls, tmp_path):
    others = Authority(str(tmp_path / "others"), "another authority")
    people = Authority(str(tmp_path / "people"), "people")
    t = make_tls(env={"TLS_CLIENT_CA_FILE": people.certificate})
    conn = t.connect(t.context(people.issue("alice")))
    assert get(conn)[0] == 200
    assert get(conn)[0] == 200
    conn.close()
    for context in (t.context(), t.context(others.issue("mallory"))):
        with pytest.raises((ssl.SSLError, ConnectionError,
                            http.client.RemoteDisconnected)):
            get(t.connect(context))
    conn = t.connect(t.context(people.issue("bob")))
    page = get(conn, "/metrics")[1].decode()
    assert 'sandboxd_tls_handshakes_total{result="failed"} 2' in page
    conn.close()


def test_a_handshake_flood_leaves_turns_short(make_tls):
    """RSA keys are the slow ones: a turn of the loop that did all of them
    would be in the log (common/turns.h)."""
    t = make_tls(algorithm="rsa")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    hello = client_hello(context)
    for _ in range(3):
        flood = [socket.create_connection(("127.0.0.1", t.port), 60)
                 for _ in range(200)]
        os.kill(front_of(t), signal.SIGSTOP)
        for sock in flood:
            sock.sendall(hello)
        os.kill(front_of(t), signal.SIGCONT)
        conn = t.connect()
        assert get(conn)[0] == 200
        conn.close()
        for sock in flood:
            assert sock.recv(1) == b"\x16"
            sock.close()
    assert not harm(t.log, 0)


def client_hello(context):
    out = ssl.MemoryBIO()
    conn = context.wrap_bio(ssl.MemoryBIO(), out)
    with pytest.raises(ssl.SSLWantReadError):
        conn.do_handshake()
    return out.read()


@pytest.mark.parametrize("wrong, word", [
    ("other key", "TLS_KEY_FILE is not the key"),
    ("passphrase", "has a passphrase"),
    ("no file", "No such file"),
    ("everybody", "chmod 600"),
    ("alone", "belong together"),
])
def test_wrong_files_are_told_by_start_and_check(program, tmp_path, wrong,
                                                 word):
    authority = Authority(str(tmp_path))
    certificate, key = authority.issue("one")
    if wrong == "other key":
        key = authority.issue("two")[1]
    elif wrong == "passphrase":
        openssl("ec", "-in", key, "-aes128", "-passout", "pass:secret",
                "-out", key + ".locked")
        key += ".locked"
        os.chmod(key, 0o600)
    elif wrong == "no file":
        key = str(tmp_path / "missing")
    elif wrong == "everybody":
        os.chmod(key, 0o644)
    env = {"TLS_CERT_FILE": certificate}
    if wrong != "alone":
        env["TLS_KEY_FILE"] = key
    for args in ([], ["--check-config"]):
        program.refuses(*args, **env, words=[word])


def check_files(program, certificate, key):
    done = program("--check-config", TLS_CERT_FILE=certificate,
                   TLS_KEY_FILE=key)
    assert done.returncode == 0, done.stderr
    return done.stderr


def test_check_config_warns_of_a_certificate_that_ends(program, tmp_path):
    files = Authority(str(tmp_path)).issue("short", days=3)
    assert "expires in " in check_files(program, *files)


def test_a_key_of_another_user_is_read_once_and_both_times_said(tls, program):
    if os.geteuid() != 0:
        pytest.skip("needs root, who can give files away")
    os.chown(tls.key, 65534, -1)
    assert "cannot be read again at SIGHUP" in check_files(
        program, tls.certificate, tls.key)
    before = len(tls.log)
    tls.reload()
    tls.wait_log("chown root it", "stays as it was", since=before)
    os.chown(tls.key, 0, -1)
    before = len(tls.log)
    tls.reload()
    tls.wait_log("was read again", since=before)


@pytest.mark.parametrize("waits", [True, False])
def test_a_body_may_follow_before_100_continue_has_come(tls, waits):
    sock = tls.socket()
    head = (f"POST /healthz HTTP/1.1\r\nHost: 127.0.0.1:{tls.port}\r\n"
            "Content-Length: 5\r\nExpect: 100-continue\r\n\r\n").encode()
    for _ in range(10):
        got = b""
        sock.sendall(head)
        while waits and b"100 Continue\r\n\r\n" not in got:
            got += sock.recv(4096) or pytest.fail(f"closed after {got}")
        sock.sendall(b"hello")
        while b"}}" not in got:  # the end of the refusal, of an answer at once
            got += sock.recv(4096) or pytest.fail(f"closed after {got}")
        assert got.count(b"HTTP/1.1 405") == 1
    sock.close()
