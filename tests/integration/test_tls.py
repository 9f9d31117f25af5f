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
from client import Client, wait_for
from server import Server, harm

BIG_MB = 300


class TlsServer:
    """A server with a certificate in a directory of its own."""

    def __init__(self, build, directory, env=None, algorithm="ec", **kwargs):
        self.authority = Authority(directory)
        self.certificate = os.path.join(directory, "server.pem")
        self.key = os.path.join(directory, "server.key")
        self.install(*self.authority.issue("first", algorithm))
        settings = {"TLS_CERT_FILE": self.certificate,
                    "TLS_KEY_FILE": self.key}
        settings.update(env or {})
        self.server = Server(build, env=settings, wait=False, **kwargs)
        self.server.port = wait_for(self.find_port, 60, "the port")
        wait_for(self.is_ready, 60, "readiness")

    def find_port(self):
        import re
        assert self.server.proc.poll() is None, self.server.tail()
        for line in self.server.log:
            found = re.search(r"listening on https://\S+:(\d+)", line)
            if found:
                return int(found.group(1))
        return None

    def is_ready(self):
        return any("front[" in n and n.endswith("is ready")
                   for n in self.server.log)

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
        return http.client.HTTPSConnection(
            "127.0.0.1", self.server.port, timeout=60,
            context=context or self.context())

    def reload(self):
        self.server.proc.send_signal(signal.SIGHUP)


class TlsClient(Client):
    def __init__(self, tls, **kwargs):
        super().__init__(tls.server.port, **kwargs)
        self.conn = tls.connect()

    def close(self):
        self.conn.close()


@pytest.fixture(scope="module")
def tls(build, engine, tmp_path_factory):
    t = TlsServer(build, str(tmp_path_factory.mktemp("tls")), env={
        "ARTIFACTS_MAX_EXTRACT_FILE_BYTES": str(BIG_MB << 20),
        "ARTIFACTS_MAX_EXTRACT_BYTES": str(2 * BIG_MB << 20)})
    yield t
    log = t.server.tail()
    t.server.destroy(engine)
    assert "Sanitizer" not in log and "runtime error" not in log


def get(conn, path="/healthz", **headers):
    conn.request("GET", path, headers=headers)
    answer = conn.getresponse()
    return answer.status, answer.read()


def s_client(tls, *args, text=b""):
    done = subprocess.run(
        ["openssl", "s_client", "-connect", f"127.0.0.1:{tls.server.port}",
         "-CAfile", tls.authority.certificate, *args],
        input=text, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        check=False, timeout=60)
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
        b"Connection: close\r\n\r\n" % tls.server.port
    s_client(tls, "-tls1_2", "-sess_out", kept, "-ign_eof", text=request)
    said = s_client(tls, "-tls1_2", "-sess_in", kept, "-ign_eof",
                    text=request)
    assert "Reused" in said and "HTTP/1.1 200" in said


def test_curl_speaks_to_it(tls):
    done = subprocess.run(
        ["curl", "-sS", "--cacert", tls.authority.certificate,
         "-H", "Accept: text/html", f"https://127.0.0.1:{tls.server.port}/"],
        stdout=subprocess.PIPE, check=True, timeout=60)
    assert f"https://127.0.0.1:{tls.server.port}/mcp" in done.stdout.decode()


def test_plain_http_is_not_spoken(tls):
    sock = socket.create_connection(("127.0.0.1", tls.server.port), 60)
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
    host = f"Host: 127.0.0.1:{tls.server.port}\r\n".encode()
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
    head = (f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{tls.server.port}\r\n"
            "Content-Type: application/json\r\n"
            "Accept: application/json, text/event-stream\r\n"
            f"Content-Length: {len(body)}\r\n")
    sock = tls.context().wrap_socket(
        socket.create_connection(("127.0.0.1", tls.server.port), 20),
        server_hostname="127.0.0.1")
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


def memory_kb(pid, what="VmRSS"):
    with open(f"/proc/{pid}/status") as f:
        return int(next(n for n in f if n.startswith(what)).split()[1])


def memory_bound_kb(pid):
    """Sanitizers have a shadow of terabytes, and keep what was freed."""
    return 65536 if memory_kb(pid, "VmSize") < 1 << 30 else BIG_MB << 10


def front_pid(server):
    import re
    for line in reversed(server.log):
        found = re.search(r"front\[(\d+)\] is ready", line)
        if found:
            return int(found.group(1))
    raise AssertionError("no front in the log")


def test_runs_streams_and_a_large_artifact(tls):
    client = TlsClient(tls)
    client.initialize()
    name = f"tls{os.getpid()}"
    final = client.run(
        name, "seq 1 200000", f"head -c {BIG_MB}M /dev/urandom "
        ">/artifacts/big && sha256sum /artifacts/big", wait_ms=120000)
    assert final["state"] == "completed", final
    path = f"/artifacts/{name}/{final['run_id']}/big"
    before = memory_kb(front_pid(tls.server))
    conn = tls.connect()
    conn.request("GET", path)
    answer = conn.getresponse()
    assert answer.status == 200
    digest, n, most = hashlib.sha256(), 0, 0
    while chunk := answer.read(1 << 20):
        digest.update(chunk)
        n += len(chunk)
        most = max(most, memory_kb(front_pid(tls.server)))
    assert n == BIG_MB << 20
    assert digest.hexdigest() in json.dumps(final)
    assert most - before < memory_bound_kb(front_pid(tls.server)), \
        (before, most)
    # A part of it, on the same connection.
    conn.request("GET", path,
                 headers={"Range": "bytes=1000000-1999999"})
    assert len(conn.getresponse().read()) == 1000000
    conn.close()
    client.call("delete_sandbox", identifier=name)
    client.close()


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
        count = sum(word in n for n in tls.server.log)
        if certificate is None:
            with open(tls.certificate, "w") as f:
                f.write("-----BEGIN CERTIFICATE-----\nrubbish\n"
                        "-----END CERTIFICATE-----\n")
        else:
            shutil.copy(certificate, tls.certificate)
        tls.reload()
        wait_for(lambda: sum(word in n and "stays as it was" in n
                             for n in tls.server.log) > count - 1 and
                 sum(word in n for n in tls.server.log) > count, 30,
                 "the refusal in the log")
        assert served(tls) == before
        shutil.copy(good, tls.certificate)
    # A front that is started anew has the good one, too.
    pid = front_pid(tls.server)
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: front_pid(tls.server) != pid, 60, "another front")
    wait_for(lambda: served(tls) == before, 60, "the good certificate")


def test_slow_handshakes_do_not_keep_others_out(tls):
    """Half a greeting each, more than there are places for."""
    slow = []
    for _ in range(300):
        sock = socket.create_connection(("127.0.0.1", tls.server.port), 60)
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
    log = "\n".join(tls.server.log)
    assert all(n not in log for n in lines if len(n) > 20)


def test_client_certificates(build, engine, tmp_path):
    others = Authority(str(tmp_path / "others"), "another authority")
    people = Authority(str(tmp_path / "people"), "people")
    t = TlsServer(build, str(tmp_path / "tls"), env={
        "TLS_CLIENT_CA_FILE": people.certificate})
    try:
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
    finally:
        t.server.destroy(engine)


def test_a_handshake_flood_leaves_turns_short(build, engine, tmp_path):
    """RSA keys are the slow ones: a turn of the loop that did all of them
    would be in the log (common/turns.h)."""
    t = TlsServer(build, str(tmp_path / "tls"), algorithm="rsa")
    try:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        hello = client_hello(context)
        for _ in range(3):
            flood = [socket.create_connection(
                ("127.0.0.1", t.server.port), 60) for _ in range(200)]
            os.kill(front_pid(t.server), signal.SIGSTOP)
            for sock in flood:
                sock.sendall(hello)
            os.kill(front_pid(t.server), signal.SIGCONT)
            conn = t.connect()
            assert get(conn)[0] == 200
            conn.close()
            for sock in flood:
                assert sock.recv(1) == b"\x16"
                sock.close()
        assert not harm(t.server.log, 0)
    finally:
        t.server.destroy(engine)


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
def test_wrong_files_are_told_by_start_and_check(build, engine, tmp_path,
                                                 wrong, word):
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
        s = Server(build, env=env, args=args, wait=False)
        try:
            assert s.proc.wait(60) == 78
            wait_for(lambda: word in s.tail(), 30, "the reason")
        finally:
            s.destroy(engine)


def test_check_config_warns_of_a_certificate_that_ends(build, engine,
                                                       tmp_path):
    authority = Authority(str(tmp_path))
    certificate, key = authority.issue("short", days=3)
    s = Server(build, env={"TLS_CERT_FILE": certificate,
                           "TLS_KEY_FILE": key},
               args=["--check-config"], wait=False)
    try:
        assert s.proc.wait(60) == 0
        wait_for(lambda: "expires in " in s.tail(), 30, "the warning")
    finally:
        s.destroy(engine)


def test_a_key_of_another_user_is_read_once_and_both_times_said(tls, build,
                                                                engine):
    if os.geteuid() != 0:
        pytest.skip("needs root, who can give files away")
    s = tls.server
    os.chown(tls.key, 65534, -1)
    look = Server(build, env={"TLS_CERT_FILE": tls.certificate,
                              "TLS_KEY_FILE": tls.key},
                  args=["--check-config"], wait=False)
    try:
        assert look.proc.wait(60) == 0
        wait_for(lambda: "cannot be read again at SIGHUP" in look.tail(), 30,
                 "the warning")
    finally:
        look.destroy(engine)
    before = len(s.log)
    tls.reload()
    wait_for(lambda: any("chown root it" in n and "stays as it was" in n
                         for n in s.log[before:]), 30, "what to do")
    os.chown(tls.key, 0, -1)
    before = len(s.log)
    tls.reload()
    wait_for(lambda: any("was read again" in n for n in s.log[before:]), 30,
             "that it was read")


@pytest.mark.parametrize("waits", [True, False])
def test_a_body_may_follow_before_100_continue_has_come(tls, waits):
    sock = tls.context().wrap_socket(
        socket.create_connection(("127.0.0.1", tls.server.port), timeout=60),
        server_hostname="127.0.0.1")
    head = (f"POST /healthz HTTP/1.1\r\nHost: 127.0.0.1:{tls.server.port}\r\n"
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
